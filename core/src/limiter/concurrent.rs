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
//! `ADAPT` finds the limit from what releases report: see [`adapt`](crate::adapt). The capacity is then the ceiling of the limit. A
//! cost that is above the limit, but not above the ceiling, is admitted when nothing else is held.
//!
//! `FENCE` gives the lease a fencing token: a number that is greater than all before it, so that a database can refuse a holder
//! whose lease has expired.
//!
//! `TENANT name` divides the leases among tenants: see [`line`](mod@crate::line). A lease keeps its tenant.
//!
//! Source: <https://stripe.com/blog/rate-limiters> (concurrent requests limiter, fleet usage load shedder);
//! <https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html> for fencing tokens.
//!
//! When not to use it: to limit a rate. One lease can serve a thousand requests a second that take a millisecond each.

use alloc::boxed::Box;

use super::{Capabilities, Limiter};
use crate::adapt::{Adapt, Adapted, Ended, Ending};
use crate::answer::{Gauge, Verdict};
use crate::state::{LeaseChange, Leases, Notes, State, Tenant};
use crate::time::{Period, Span, Time};

/// A request for a lease.
#[derive(Clone, Copy, Debug)]
pub struct Concurrent<'a> {
    /// The capacity for this caller: what is reserved for critical callers is subtracted.
    pub limit: u64,
    /// What is reserved for critical callers, if this one is not.
    pub reserved: u64,
    /// How long the lease lasts.
    pub ttl: Period,
    /// The lease's id.
    pub id: &'a [u8],
    /// Whether the caller comes before others that wait.
    pub critical: bool,
    /// The tenant that is to hold the lease.
    pub tenant: Option<Tenant<'a>>,
    /// The fencing token that a lease without one is given; `None` without `FENCE`.
    pub token: Option<u64>,
    /// How the limit adapts. `limit` is then the most that it can be for this caller.
    pub adapt: Option<Adapt>,
}

impl<'a> Concurrent<'a> {
    /// A request without options.
    #[inline(always)]
    pub const fn plain(limit: u64, ttl: Period, id: &'a [u8]) -> Concurrent<'a> {
        Concurrent { limit, reserved: 0, ttl, id, critical: false, tenant: None, token: None, adapt: None }
    }
}

impl Concurrent<'_> {
    /// What the table notes of a charge beside the lease.
    #[cold]
    #[inline(never)]
    fn notes<'a>(&'a self, leases: &'a Leases, now: Time) -> Box<Notes<'a>> {
        let tenant = self.tenant.and_then(|tenant| self.weighed(tenant, leases, now));
        let limit = self.adapted(leases, now).and_then(|adapted| changed(leases, adapted, now));
        let has_token = || leases.held(self.id, now).is_some() && leases.token(self.id).is_some();
        let token = self.token.filter(|_| !has_token());
        Box::new(Notes { tenant, timed: self.adapt.is_some(), token, limit })
    }

    /// The tenant of a lease that is taken, and its weight; `None` if the lease is held already.
    fn weighed<'a>(&self, tenant: Tenant<'a>, leases: &Leases, now: Time) -> Option<(&'a [u8], u32)> {
        if leases.held(self.id, now).is_some() {
            return None;
        }
        Some((tenant.name, tenant.weight.unwrap_or_else(|| leases.share(tenant.name, now).weight)))
    }

    /// The same request under another id, and for this tenant.
    #[must_use]
    pub fn for_caller<'a>(self, id: &'a [u8], tenant: Option<Tenant<'a>>) -> Concurrent<'a> {
        let Concurrent { limit, reserved, ttl, critical, token, adapt, .. } = self;
        Concurrent { limit, reserved, ttl, id, critical, tenant, token, adapt }
    }

    /// The same request of a critical caller.
    #[must_use]
    pub fn made_critical(self) -> Self {
        Concurrent { limit: self.limit + self.reserved, reserved: 0, critical: true, ..self }
    }

    /// The verdict on a cost for which this much must end first.
    #[inline(never)]
    fn without_room(&self, leases: &Leases, now: Time, cost: u64, excess: u64) -> Verdict {
        // The id is looked up only if there is no room; otherwise it does not matter.
        if leases.held(self.id, now).is_some() {
            return Verdict::ADMIT;
        }
        if cost > self.limit {
            return Verdict::NEVER;
        }
        // Only an adaptive limit can be below the cost. Then nothing else may be held.
        if excess == 0 {
            return Verdict::ADMIT;
        }
        // The held leases cost at least as much, so `ends` returns an instant.
        let ends = leases.ends(excess, now);
        let ends = ends.map(|ends| self.after_probe(leases, now, cost).map_or(ends, |after| after.min(ends)));
        ends.map_or(Verdict::NEVER, Verdict::refuse)
    }

    /// The time until the cost fits after a probe has ended by time, if no lease ends early; `None` without a probe.
    fn after_probe(&self, leases: &Leases, now: Time, cost: u64) -> Option<Span> {
        let left = Span::from_micros(self.adapted(leases, now)?.probe_left(leases.micros(now))?);
        let held = leases.cost(now);
        let excess = held.saturating_add(cost).saturating_sub(self.limit(leases, now.plus(left)));
        match excess.min(held) {
            0 => Some(left),
            excess => leases.ends(excess, now).map(|ends| ends.max(left)),
        }
    }

    /// The adaptive limit, as this call finds it; `None` without `ADAPT`.
    #[inline(never)]
    pub fn adapted(&self, leases: &Leases, now: Time) -> Option<Adapted> {
        let adapt = self.adapt?;
        let adapted = leases.adapted(now);
        let adapted = adapted.map(|adapted| adapted.adopt(adapt.settings).after(leases.micros(now)));
        Some(adapted.unwrap_or_else(|| Adapted::new(adapt)))
    }

    /// The limit for this caller at `now`.
    #[inline(always)]
    fn limit(&self, leases: &Leases, now: Time) -> u64 {
        if self.adapt.is_some() { self.found(leases, now) } else { self.limit }
    }

    /// The adaptive limit, for this caller.
    #[inline(never)]
    fn found(&self, leases: &Leases, now: Time) -> u64 {
        self.adapted(leases, now).map_or(self.limit, |adapted| {
            let kept_for_others = u64::from(adapted.settings.ceiling).saturating_sub(self.limit);
            adapted.limit().saturating_sub(kept_for_others)
        })
    }
}

/// The change that makes a lease expire `ttl` after `now`; `None` if the lease is not held.
pub fn renew<'a>(leases: &'a Leases, id: &'a [u8], ttl: Span, now: Time) -> Option<LeaseChange<'a>> {
    let cost = leases.held(id, now)?.cost;
    Some(LeaseChange { last: now, held: Some((id, now.plus(ttl), cost)), ..LeaseChange::default() })
}

/// The change that ends a lease; `None` if the lease is not held. The limit learns from the ending, if it adapts.
pub fn release<'a>(leases: &'a Leases, id: &'a [u8], ending: Ending, now: Time) -> Option<LeaseChange<'a>> {
    let cost = leases.held(id, now)?.cost;
    let limit = leases.adapted(now).zip(leases.taken(id)).and_then(|(adapted, taken)| {
        let mut learned = adapted.after(leases.micros(now));
        learned.learn(&Ended { taken, now: leases.micros(now), cost, held: leases.cost(now) }, ending);
        changed(leases, learned, now)
    });
    let notes = limit.map(|limit| Box::new(Notes { limit: Some(limit), ..Notes::default() }));
    Some(LeaseChange { last: now, released: Some(id), held: None, notes })
}

/// The limit as a change has it, if it differs from the stored one.
fn changed(leases: &Leases, limit: Adapted, now: Time) -> Option<Adapted> {
    let micros = leases.micros(now);
    let differs = leases.adapted(now) != Some(&limit);
    differs.then(|| limit.at(|instant| micros.wrapping_sub(instant)))
}

/// The change that moves a table to `now` after the clock was set back.
pub fn rebase(now: Time) -> LeaseChange<'static> {
    LeaseChange { last: now, ..LeaseChange::default() }
}

impl Concurrent<'_> {
    /// It reads the clock of a table of leases, which depends on no parameter.
    pub const READER: Concurrent<'static> = Concurrent::plain(0, Period::LONGEST, &[]);
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

    fn lease_id(&self) -> Option<&[u8]> {
        Some(self.id)
    }

    fn leases<'s>(&self, leases: &'s Leases) -> Option<&'s Leases> {
        Some(leases)
    }

    fn token(&self, leases: Option<&Leases>) -> Option<u64> {
        self.token.map(|_| leases.and_then(|leases| leases.token(self.id)).unwrap_or(0))
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
        let (held, limit) = (leases.cost(now), self.limit(leases, now));
        match held.saturating_add(cost).checked_sub(limit) {
            None | Some(0) => Verdict::ADMIT,
            Some(excess) => self.without_room(leases, now, cost, excess.min(held)),
        }
    }

    /// A lease that is held keeps its cost and its tenant.
    #[inline(always)]
    fn charge<'a>(&'a self, leases: &'a Leases, now: Time, cost: u64) -> LeaseChange<'a> {
        let held = Some((self.id, now.plus(self.ttl.span()), cost));
        let has_notes = self.tenant.is_some() || self.adapt.is_some() || self.token.is_some();
        let notes = has_notes.then(|| self.notes(leases, now));
        LeaseChange { last: now, released: None, held, notes }
    }

    #[inline(always)]
    fn gauge(&self, leases: &Leases, now: Time) -> Gauge {
        let limit = self.limit(leases, now);
        Gauge { limit, remaining: limit.saturating_sub(leases.cost(now)), reset: leases.reset(now) }
    }

    /// An adaptive limit can grow.
    fn most(&self, _: Gauge) -> u64 {
        self.limit
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
        Concurrent::plain(2, millis(60_000), id)
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
        assert!(release(&leases, b"b", Ending::Well, T0).is_none());
        assert!(release(&leases, b"a", Ending::Well, after(59_999)).is_some());
        assert!(release(&leases, b"a", Ending::Well, after(60_000)).is_none());
        assert!(renew(&leases, b"a", Span::from_millis(1), after(60_000)).is_none());
    }
}
