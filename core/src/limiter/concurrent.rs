//! Leases: at most `capacity` requests in progress at once.
//!
//! A request takes a lease under its own id before it starts, and releases the lease when it is done. If its holder
//! dies, the lease expires `ttl` after it was taken or last renewed.
//!
//! ```text
//! RL.CONCURRENT key 2 1m a       admitted, 1 remaining
//! RL.CONCURRENT key 2 1m b       admitted, 0 remaining
//! RL.CONCURRENT key 2 1m c       refused, retry in 60 s, when a's lease expires
//! RL.CONCURRENT key 2 1m a       admitted: an id that holds a lease renews it
//! RL.RELEASE key b               1: one lease is free
//! ```
//!
//! `RESERVED n` reserves the last `n` leases for callers that pass `CRITICAL`. With capacity 100 and 20 reserved, other
//! callers are refused when 80 leases are held.
//!
//! At every instant the held leases cost at most `capacity`.
//!
//! `TENANT name` divides the leases among tenants: see [`line`](mod@crate::line). A lease keeps its tenant.
//!
//! Source: <https://stripe.com/blog/rate-limiters> (concurrent requests limiter, fleet usage load shedder).
//!
//! When not to use it: to limit a rate. One lease can serve a thousand requests a second that take a millisecond each.

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::state::{LeaseChange, Leases, State, Tenant};
use crate::time::{Period, Span, Time};

/// A request for a lease.
#[derive(Clone, Copy, Debug)]
pub struct Concurrent<'a> {
    /// The capacity for this caller: what is reserved for critical callers is subtracted.
    pub limit: u64,
    /// How long the lease lasts.
    pub ttl: Period,
    /// The lease's id.
    pub id: &'a [u8],
    /// Whether the caller comes before others that wait.
    pub critical: bool,
    /// The tenant that is to hold the lease.
    pub tenant: Option<Tenant<'a>>,
}

impl Concurrent<'_> {
    /// The tenant of a lease that is taken, and its weight; `None` if the lease is held already.
    #[cold]
    #[inline(never)]
    fn weighed<'a>(&self, tenant: Tenant<'a>, leases: &Leases, now: Time) -> Option<(&'a [u8], u32)> {
        if leases.held(self.id, now).is_some() {
            return None;
        }
        Some((tenant.name, tenant.weight.unwrap_or_else(|| leases.share(tenant.name, now).weight)))
    }

    /// The same request under another id, and for this tenant.
    #[must_use]
    pub fn for_caller<'a>(self, id: &'a [u8], tenant: Option<Tenant<'a>>) -> Concurrent<'a> {
        Concurrent { limit: self.limit, ttl: self.ttl, critical: self.critical, id, tenant }
    }
}

/// The change that makes a lease expire `ttl` after `now`; `None` if the lease is not held.
pub fn renew<'a>(leases: &'a Leases, id: &'a [u8], ttl: Span, now: Time) -> Option<LeaseChange<'a>> {
    let cost = leases.held(id, now)?.cost;
    Some(LeaseChange { last: now, held: Some((id, now.plus(ttl), cost)), ..LeaseChange::default() })
}

/// The change that ends a lease; `None` if the lease is not held.
pub fn release<'a>(leases: &'a Leases, id: &'a [u8], now: Time) -> Option<LeaseChange<'a>> {
    leases.held(id, now)?;
    Some(LeaseChange { last: now, released: Some(id), ..LeaseChange::default() })
}

/// The change that moves a table to `now` after the clock was set back.
pub fn rebase(now: Time) -> LeaseChange<'static> {
    LeaseChange { last: now, ..LeaseChange::default() }
}

impl Limiter for Concurrent<'_> {
    type State = Leases;

    fn capabilities(&self) -> Capabilities {
        Capabilities { one_each: true, block: true, early: true, ..Capabilities::NONE }
    }

    fn is_critical(&self) -> bool {
        self.critical
    }

    fn is_held(&self, leases: &Leases, now: Time) -> bool {
        leases.held(self.id, now).is_some()
    }

    fn tenant(&self) -> Option<Tenant<'_>> {
        self.tenant
    }

    fn leases<'s>(&self, leases: &'s Leases) -> Option<&'s Leases> {
        Some(leases)
    }

    /// Zero: each lease has its own ttl, and a key has one table of leases.
    fn length(&self) -> Span {
        Span::ZERO
    }

    fn fresh(&self, _: Time) -> Leases {
        Leases::blank()
    }

    #[inline(always)]
    fn judge(&self, leases: &Leases, now: Time, cost: u64) -> Verdict {
        let after = leases.cost(now).saturating_add(cost);
        let Some(excess) = after.checked_sub(self.limit).filter(|excess| *excess > 0) else {
            return Verdict::ADMIT;
        };
        // The id is looked up only if there is no room; otherwise it does not matter.
        if leases.held(self.id, now).is_some() {
            return Verdict::ADMIT;
        }
        if cost > self.limit {
            return Verdict::NEVER;
        }
        // As cost <= limit, the held leases cost at least the excess, and `ends` returns an instant.
        leases.ends(excess, now).map_or(Verdict::NEVER, Verdict::refuse)
    }

    /// A lease that is held keeps its cost and its tenant.
    #[inline(always)]
    fn charge<'a>(&'a self, leases: &'a Leases, now: Time, cost: u64) -> LeaseChange<'a> {
        let tenant = self.tenant.and_then(|tenant| self.weighed(tenant, leases, now));
        LeaseChange {
            last: now,
            released: None,
            held: Some((self.id, now.plus(self.ttl.span()), cost)),
            tenant,
        }
    }

    #[inline(always)]
    fn gauge(&self, leases: &Leases, now: Time) -> Gauge {
        let remaining = self.limit.saturating_sub(leases.cost(now));
        Gauge { limit: self.limit, remaining, reset: leases.reset(now) }
    }

    fn rebase<'a>(&'a self, _: &'a Leases, now: Time) -> LeaseChange<'a> {
        rebase(now)
    }

    /// The answer depends only on the time until each lease expires.
    fn if_moved<T>(&self, leases: &Leases, _: Time, answer: impl FnOnce(&Leases, Time) -> T) -> T {
        answer(leases, leases.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis};

    fn two(id: &[u8]) -> Concurrent<'_> {
        Concurrent { limit: 2, ttl: millis(60_000), id, critical: false, tenant: None }
    }

    fn after(millis: u64) -> Time {
        T0.plus(Span::from_millis(millis))
    }

    #[test]
    fn a_lease_that_is_not_released_expires() {
        let leases = charged(&two(b"a"), None, T0, 1);
        let leases = charged(&two(b"b"), Some(leases), after(10_000), 1);
        assert_eq!(two(b"c").judge(&leases, after(10_000), 1), Verdict::refuse(Span::from_millis(50_000)));
        assert_eq!(two(b"c").judge(&leases, after(60_000), 1), Verdict::ADMIT);
        assert_eq!(two(b"c").gauge(&leases, after(60_000)).remaining, 1);
    }

    #[test]
    fn an_id_that_holds_a_lease_is_admitted_and_renews_it_at_its_old_cost() {
        let leases = charged(&two(b"a"), None, T0, 2);
        assert_eq!(two(b"a").judge(&leases, after(1), 2), Verdict::ADMIT);
        let leases = charged(&two(b"a"), Some(leases), after(30_000), 1);
        assert_eq!(two(b"a").gauge(&leases, after(30_000)).remaining, 0);
        assert_eq!(two(b"a").gauge(&leases, after(30_000)).reset, Span::from_millis(60_000));
    }

    #[test]
    fn only_critical_callers_get_the_reserved_leases() {
        let mut leases = None;
        for id in 0..80u8 {
            leases = Some(charged(&Concurrent { limit: 80, ..two(&[id]) }, leases, T0, 1));
        }
        let leases = leases.unwrap();
        let retry = Verdict::refuse(Span::from_millis(60_000));
        assert_eq!(Concurrent { limit: 80, ..two(b"x") }.judge(&leases, T0, 1), retry);
        assert_eq!(Concurrent { limit: 100, ..two(b"x") }.judge(&leases, T0, 20), Verdict::ADMIT);
    }

    #[test]
    fn only_a_held_lease_can_be_released_or_renewed() {
        let leases = charged(&two(b"a"), None, T0, 1);
        assert!(release(&leases, b"b", T0).is_none());
        assert!(release(&leases, b"a", after(59_999)).is_some());
        assert!(release(&leases, b"a", after(60_000)).is_none());
        assert!(renew(&leases, b"a", Span::from_millis(1), after(60_000)).is_none());
    }
}
