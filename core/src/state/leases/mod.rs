//! A table of leases, each with its id, its deadline and its cost, and some with a tenant (`tenants.rs`).
//!
//! A lease whose deadline is at or before the last charge has expired. It no longer belongs to the table: it is neither
//! counted nor encoded. Its memory is freed later, as 100,000 leases can expire at once, for example if a data center
//! fails. So each change frees a few expired leases.
//!
//! The limit of a table can adapt (`adaptive.rs`). Then the table remembers the limit for an hour after its last
//! change, and when each lease was taken.
//!
//! Leases that are asked for with `FENCE` have a fencing token, which is greater than all that the table has given before.

mod adaptive;
mod beside;
mod notes;
mod stored;
mod tenants;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use notes::{MAX_TOKEN, Notes};
pub use stored::Change;
pub use tenants::{MAX_TENANT, MAX_WEIGHT, Pool, Share, Tenant};

use super::table::{HeldByOwners, Table, number, size_class};
use super::timeline::{Tick, Timeline};
use crate::adapt::Adapted;
use crate::time::{Span, Time};
use adaptive::{Adaptive, MEMORY};
use beside::Beside;
use tenants::Tenants;

/// The most expired leases that one change frees. A change adds at most one, so later changes free the rest. Each is taken out
/// of several trees, of which little is in a cache if the table is large.
const FREED: usize = 8;

/// A table of leases.
#[derive(Clone, Default, Debug)]
pub struct Leases {
    timeline: Timeline,
    table: Table,
    /// `None` if the table has leases only.
    noted: Option<Box<Noted>>,
}

/// What a table notes beside its leases.
#[derive(Clone, Default, Debug)]
struct Noted {
    /// `None` if no lease had a tenant.
    tenants: Option<Box<Tenants>>,
    /// `None` if no call had `ADAPT`.
    adaptive: Option<Box<Adaptive>>,
    /// `None` if no lease was given a token.
    fences: Option<Box<Fences>>,
}

/// The fencing tokens of leases.
#[derive(Clone, Default, Debug)]
struct Fences {
    /// The greatest that was given.
    last: u64,
    tokens: Beside,
}

impl Fences {
    fn give(&mut self, slot: u32, token: u64) {
        self.last = self.last.max(token);
        self.tokens.set(slot, Some(token));
    }
}

impl Noted {
    /// The bytes that are allocated.
    fn allocated(&self) -> usize {
        let tenants = self.tenants.as_ref().map_or(0, |tenants| tenants.allocated());
        let adaptive = self.adaptive.as_ref().map_or(0, |adaptive| adaptive.allocated());
        let fences = self
            .fences
            .as_ref()
            .map_or(0, |fences| size_class(size_of::<Fences>()) + fences.tokens.allocated());
        size_class(size_of::<Noted>()) + tenants + adaptive + fences
    }
}

/// An instant on the clock of a table, which is never set back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment(Tick);

impl Moment {
    pub const FIRST: Moment = Moment(Tick { era: 0, micros: 0 });

    pub(crate) fn micros(self) -> u64 {
        self.0.micros
    }
}

/// A lease that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub cost: u64,
    /// The time until it expires.
    pub left: Span,
}

impl Leases {
    fn tenants(&self) -> Option<&Tenants> {
        self.noted.as_ref()?.tenants.as_deref()
    }

    fn adaptive(&self) -> Option<&Adaptive> {
        self.noted.as_ref()?.adaptive.as_deref()
    }

    fn fences(&self) -> Option<&Fences> {
        self.noted.as_ref()?.fences.as_deref()
    }

    /// The lease of this id, if it is held at `now`.
    pub fn held(&self, id: &[u8], now: Time) -> Option<Held> {
        let lease = self.table.find(id).and_then(|slot| self.table.get(slot))?;
        let (deadline, now) = (lease.deadline(), self.timeline.tick_at(now));
        (deadline > now).then(|| Held { cost: lease.cost.into(), left: deadline.since(now) })
    }

    /// The number of leases that are held at `now`.
    pub fn count(&self, now: Time) -> u64 {
        self.table.held(self.timeline.tick_at(now)).0
    }

    /// The leases that are held at `now`, at most `most`, each with its id. Those that expire first come first.
    pub fn soonest(&self, now: Time, most: usize) -> impl Iterator<Item = (&[u8], Held)> {
        let now = self.timeline.tick_at(now);
        let held = move |cost: u32, deadline: Tick| Held { cost: cost.into(), left: deadline.since(now) };
        let leases = self.table.first_held(now, most).into_iter();
        leases.map(move |lease| (&*lease.id, held(lease.cost, lease.deadline())))
    }

    /// The fencing token of the lease of this id, if it is in the table and was given one.
    pub fn token(&self, id: &[u8]) -> Option<u64> {
        self.fences()?.tokens.get(self.table.find(id)?)
    }

    /// The greatest fencing token that was given; 0 if none was.
    pub fn last_token(&self) -> u64 {
        self.fences().map_or(0, |fences| fences.last)
    }

    /// The cost of the leases that are held at `now`.
    #[inline]
    pub fn cost(&self, now: Time) -> u64 {
        self.table.held(self.timeline.tick_at(now)).1
    }

    /// The time from `now` until enough of the leases that are held then will have expired to free `cost`; `None` if all
    /// cost less.
    pub fn ends(&self, cost: u64, now: Time) -> Option<Span> {
        let now = self.timeline.tick_at(now);
        self.table.ends(cost, now).map(|end| end.since(now))
    }

    /// The time from `now` until the last lease expires.
    pub fn reset(&self, now: Time) -> Span {
        self.table.reset(self.timeline.tick_at(now))
    }

    /// The adaptive limit, if there is one at `now`.
    pub fn adapted(&self, now: Time) -> Option<&Adapted> {
        self.adaptive().filter(|_| !self.has_forgotten(now)).map(|adaptive| &adaptive.limit)
    }

    /// When the lease of this id was taken, if it was taken with `ADAPT`. As all instants of the limit, microseconds of the
    /// table's clock.
    pub fn taken(&self, id: &[u8]) -> Option<u64> {
        self.adaptive()?.taken.get(self.table.find(id)?)
    }

    /// The microseconds of the table's clock at `now`.
    pub fn micros(&self, now: Time) -> u64 {
        self.timeline.tick_at(now).micros
    }

    /// Whether the table's limit is forgotten at `now`.
    fn has_forgotten(&self, now: Time) -> bool {
        now.since(self.timeline.last) >= MEMORY && self.table.latest() <= self.timeline.tick_at(now)
    }

    /// Sets the adaptive limit. Its instants are ages.
    fn set_limit(&mut self, limit: Adapted) {
        let Tick { micros, .. } = self.timeline.tick;
        let limit = limit.at(|age| micros.wrapping_sub(age));
        let adaptive = &mut self.noted.get_or_insert_default().adaptive;
        match adaptive {
            Some(adaptive) => adaptive.limit = limit,
            None => *adaptive = Some(Box::new(Adaptive::new(limit))),
        }
    }

    /// Whether a tenant with a name holds something, or did at the last change.
    pub fn has_tenants(&self) -> bool {
        self.held_by_tenants(self.timeline.tick).owners > 0
    }

    /// What a tenant holds at `now`. The tenant of the empty name holds the leases that have none.
    pub fn share(&self, tenant: &[u8], now: Time) -> Share {
        let now = self.timeline.tick_at(now);
        if tenant.is_empty() {
            let held = self.table.held(now).1.saturating_sub(self.held_by_tenants(now).cost);
            return Share { held, weight: 1 };
        }
        self.named_share(tenant, now).unwrap_or(Share::NOTHING)
    }

    /// What all tenants with names hold.
    fn held_by_tenants(&self, now: Tick) -> HeldByOwners {
        self.tenants().map(|tenants| tenants.owned().held(&self.table, now)).unwrap_or_default()
    }

    /// The number of tenants with names that hold something at `now`.
    pub fn holders(&self, now: Time) -> u64 {
        self.held_by_tenants(self.timeline.tick_at(now)).owners.into()
    }

    /// The tenants with names that hold something at `now`. If they are more than `most`, only a `few` of those of the first `most`
    /// names.
    pub fn some_shares(&self, now: Time, most: usize, few: usize) -> Vec<(&[u8], Share)> {
        let Some(tenants) = self.tenants() else { return Vec::new() };
        let tick = self.timeline.tick_at(now);
        let share = |name| Some((name, self.named_share(name, tick)?));
        if self.holders(now) > most as u64 {
            let names = tenants.owned().names().take(most).map(|(name, _)| &**name);
            names.filter_map(share).take(few).collect()
        } else {
            tenants.owned().holders(&self.table, tick).into_iter().filter_map(share).collect()
        }
    }

    fn named_share(&self, name: &[u8], now: Tick) -> Option<Share> {
        let (held, weight) = self.tenants()?.owned().share(&self.table, name, now)?;
        Some(Share { held, weight })
    }

    /// As [`share`](Self::share) of a tenant with a name, and when that changes next because a lease of the tenant expires.
    pub fn share_until(&self, tenant: &[u8], now: Time) -> (Share, Option<Moment>) {
        let tick = self.timeline.tick_at(now);
        let next = self.tenants().and_then(|tenants| tenants.owned().next_end(&self.table, tenant, tick));
        (self.named_share(tenant, tick).unwrap_or(Share::NOTHING), next.map(Moment))
    }

    pub fn moment(&self, now: Time) -> Moment {
        Moment(self.timeline.tick_at(now))
    }

    /// The number of changes to what tenants hold so far, apart from leases that expire; `None` if no lease had a tenant.
    pub fn changes(&self) -> Option<u64> {
        self.tenants().map(Tenants::changes)
    }

    /// The tenants with names that changed after this number of changes, some of them more than once; `None` if that is too long
    /// ago.
    pub fn changed(&self, since: u64) -> Option<impl Iterator<Item = &[u8]>> {
        self.tenants()?.changed(since)
    }

    /// Whether leases may have ended at the last charge that are not freed yet.
    pub fn has_ended(&self) -> bool {
        self.table.may_have_expired(self.timeline.tick)
    }

    /// Frees leases that had ended at the last charge, at most this many. No dump changes by that.
    pub fn free_ended(&mut self, most: usize) {
        for _ in 0..most {
            match self.table.first_expired(self.timeline.tick) {
                Some(slot) => self.free(slot),
                None => break,
            }
        }
    }

    /// Gives a lease this deadline, which is after the last charge. A lease that was not held also gets this cost, and what the
    /// table notes beside it: its tenant, and the instant of the last charge if it is timed. A token is given in any case.
    fn hold(
        &mut self,
        (id, deadline, cost): (&[u8], Time, u32),
        Notes { tenant, timed, token, .. }: Notes<'_>,
    ) {
        let (now, deadline) = (self.timeline.tick, self.timeline.tick_at(deadline));
        let old = self.table.find(id);
        let is_held = old.and_then(|slot| self.table.get(slot)).is_some_and(|lease| lease.deadline() > now);
        let noted = self.noted.get_or_insert_default();
        // The trees of tenants are in the order of deadlines, so the lease is not in them while its deadline changes.
        let item = match (noted.tenants.as_mut(), old) {
            (Some(tenants), Some(slot)) if is_held => tenants.lift(&self.table, slot),
            (Some(tenants), Some(slot)) => {
                tenants.remove(&self.table, slot, false);
                None
            }
            _ => None,
        };
        let slot = self.table.hold(id, deadline, cost, now);
        if !is_held && (tenant.is_some() || noted.tenants.is_some()) {
            noted.tenants.get_or_insert_default().take(&self.table, slot, tenant);
        }
        if let Some((tenants, item)) = noted.tenants.as_mut().zip(item) {
            tenants.put_back(&self.table, item);
        }
        if let Some(adaptive) = noted.adaptive.as_mut().filter(|_| !is_held) {
            adaptive.taken.set(slot, timed.then_some(now.micros));
        }
        match (token, &mut noted.fences) {
            (Some(token), fences) => fences.get_or_insert_default().give(slot, token),
            (None, Some(fences)) if !is_held => fences.tokens.set(slot, None),
            _ => {}
        }
    }

    /// Removes the lease of this id.
    fn remove(&mut self, id: &[u8]) {
        if let Some(slot) = self.table.find(id) {
            self.free(slot);
        }
    }

    /// Frees a slot. The last lease moves into it.
    fn free(&mut self, slot: u32) {
        let last = number(self.table.len()).saturating_sub(1);
        let noted = self.noted.as_deref_mut();
        let moves = noted.and_then(|noted| {
            let tenants = noted.tenants.as_mut()?;
            let is_held = self.table.get(slot).is_some_and(|lease| lease.deadline() > self.timeline.tick);
            tenants.remove(&self.table, slot, is_held);
            tenants.item(&self.table, last)
        });
        self.table.remove(slot);
        let Some(noted) = &mut self.noted else { return };
        if let Some((tenants, item)) = noted.tenants.as_mut().zip(moves) {
            tenants.move_to(item, slot);
        }
        if let Some(adaptive) = &mut noted.adaptive {
            adaptive.taken.free(slot, last);
        }
        if let Some(fences) = &mut noted.fences {
            fences.tokens.free(slot, last);
        }
    }

    /// Forgets the adaptive limit, if it is time at `now`.
    fn forget(&mut self, now: Time) {
        if self.has_forgotten(now)
            && let Some(noted) = &mut self.noted
        {
            noted.adaptive = None;
        }
    }
}

#[cfg(test)]
impl Leases {
    /// Checks the sums of the tenants.
    fn audit_tenants(&self) {
        self.tenants().into_iter().for_each(|tenants| tenants.owned().audit(&self.table));
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;

    use proptest::prelude::*;

    use super::super::codec::Reader;
    use super::super::{LimitState, State};
    use super::*;
    use crate::adapt::{Adapt, Rule, Settings};

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn hold(leases: &mut Leases, id: u32, deadline: u64, cost: u64) {
        let held = Some((&id.to_be_bytes()[..], at(deadline), cost));
        leases.apply(Change { last: leases.last(), held, ..Change::default() });
    }

    fn encoded(leases: &Leases) -> Vec<u8> {
        let mut bytes = Vec::new();
        leases.encode(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_a_plain_map(
            steps in prop::collection::vec((0u32..400, 1u64..2000, 1u64..5, 0u8..12), 1..800),
        ) {
            let mut leases = Leases::blank();
            let mut plain: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for (id, wait, cost, what) in steps {
                let last = leases.last().as_micros();
                match what {
                    0..3 => {
                        let released = Some(&id.to_be_bytes()[..]);
                        leases.apply(Change { last: at(last), released, ..Change::default() });
                        plain.remove(&id);
                    }
                    3 => {
                        let last = last + wait / 40;
                        leases.apply(Change { last: at(last), ..Change::default() });
                        plain.retain(|_, (deadline, _)| *deadline > last);
                    }
                    4 => {
                        let step = last.min(wait);
                        leases.apply(Change { last: at(last - step), ..Change::default() });
                        for (deadline, _) in plain.values_mut() {
                            *deadline -= step;
                        }
                    }
                    _ => {
                        hold(&mut leases, id, last + wait, cost);
                        let cost = plain.get(&id).map_or(cost, |(_, cost)| *cost);
                        plain.insert(id, (last + wait, cost));
                    }
                }
                if wait % 8 == 0 {
                    leases.table.audit();
                }
            }
            let last = leases.last().as_micros();
            for now in [0, 1, 500, 1000, 1999, 2000].map(|later| last + later) {
                let held = || plain.iter().filter(|(_, (deadline, _))| *deadline > now);
                let cost: u64 = held().map(|(_, (_, cost))| cost).sum();
                prop_assert_eq!(leases.cost(at(now)), cost);
                prop_assert_eq!(leases.table.held(leases.timeline.tick_at(at(now))).0, held().count() as u64);
                for id in 0..400u32 {
                    let theirs = plain.get(&id).filter(|(deadline, _)| *deadline > now);
                    let theirs = theirs.map(|(deadline, cost)| (deadline - now, *cost));
                    let ours = leases.held(&id.to_be_bytes(), at(now));
                    prop_assert_eq!(ours.map(|held| (held.left.as_micros(), held.cost)), theirs);
                }
                let mut by_end: Vec<_> = held().map(|(_, lease)| *lease).collect();
                by_end.sort_unstable();
                let reset = by_end.last().map_or(0, |(deadline, _)| deadline - now);
                prop_assert_eq!(leases.reset(at(now)), Span::from_micros(reset));
                for need in [1, 2, cost / 2, cost, cost + 1] {
                    let mut left = need;
                    let end = by_end.iter().find(|(_, cost)| { left = left.saturating_sub(*cost); left == 0 });
                    if need > 0 {
                        let wait = end.map(|(end, _)| Span::from_micros(end - now));
                        prop_assert_eq!(leases.ends(need, at(now)), wait);
                    }
                }
            }
            let copy = Leases::decode(&mut Reader::new(&encoded(&leases))).unwrap();
            copy.table.audit();
            prop_assert_eq!(copy.table.len(), plain.len());
            prop_assert_eq!(encoded(&leases), encoded(&copy));
        }
    }

    /// Takes a lease for a tenant, or renews it.
    fn take(leases: &mut Leases, id: u32, deadline: u64, cost: u64, tenant: Option<(&[u8], u32)>) {
        let held = Some((&id.to_be_bytes()[..], at(deadline), cost));
        let notes = tenant.map(|_| Box::new(Notes { tenant, ..Notes::default() }));
        leases.apply(Change { last: leases.last(), held, notes, ..Change::default() });
    }

    const NAMES: [&[u8]; 4] = [b"", b"ann", b"bob", b"cid"];

    proptest! {
        #[test]
        fn the_shares_of_tenants_agree_with_a_plain_map(
            steps in prop::collection::vec((0u32..200, 1u64..2000, 1u64..5, 0u8..12, 0usize..4), 1..500),
        ) {
            let mut leases = Leases::blank();
            let mut plain: BTreeMap<u32, (u64, u64, usize)> = BTreeMap::new();
            // What somebody knows who reads only the tenants that changed and those of which a lease expired.
            let mut known: BTreeMap<&[u8], (u64, Option<Moment>)> = NAMES[1..].iter().map(|name| (*name, (0, None))).collect();
            let mut seen = (Some(0), Moment::FIRST);
            for (id, wait, cost, what, tenant) in steps {
                let last = leases.last().as_micros();
                match what {
                    0..3 => {
                        let id_bytes = id.to_be_bytes();
                        leases.apply(Change { last: at(last), released: Some(&id_bytes), ..Change::default() });
                        plain.remove(&id);
                    }
                    3..5 => {
                        let last = last + wait / 20;
                        leases.apply(Change { last: at(last), ..Change::default() });
                        plain.retain(|_, (deadline, ..)| *deadline > last);
                    }
                    5 => {
                        let step = last.min(wait);
                        leases.apply(Change { last: at(last - step), ..Change::default() });
                        for (deadline, ..) in plain.values_mut() {
                            *deadline -= step;
                        }
                    }
                    _ => {
                        let named = (tenant > 0).then_some((NAMES[tenant], 7));
                        take(&mut leases, id, last + wait, cost, named);
                        let (cost, tenant) =
                            plain.get(&id).map_or((cost, tenant), |(_, cost, tenant)| (*cost, *tenant));
                        plain.insert(id, (last + wait, cost, tenant));
                    }
                }
                leases.table.audit();
                leases.audit_tenants();
                // What is freed changes no dump.
                let mut tidied = leases.clone();
                tidied.free_ended(usize::MAX);
                tidied.audit_tenants();
                prop_assert_eq!(encoded(&leases), encoded(&tidied));
                let copy = Leases::decode(&mut Reader::new(&encoded(&leases))).unwrap();
                copy.audit_tenants();
                prop_assert_eq!(encoded(&leases), encoded(&copy));
                let last = leases.last().as_micros();
                for now in [0, wait / 3].map(|later| last + later) {
                    let moment = leases.moment(at(now));
                    let changed: Vec<&[u8]> = match (seen, leases.changes()) {
                        // What expires later is held again.
                        ((_, before), _) if before > moment => NAMES.to_vec(),
                        ((Some(since), _), Some(_)) => leases.changed(since).unwrap().collect(),
                        _ => Vec::new(),
                    };
                    for (name, (held, end)) in &mut known {
                        if changed.contains(name) || end.is_some_and(|end| end <= moment) {
                            let (share, next) = leases.share_until(name, at(now));
                            (*held, *end) = (share.held, next);
                        }
                    }
                    seen = (leases.changes().or(seen.0), moment);
                    let mut shares: BTreeMap<&[u8], Share> = leases.some_shares(at(now), NAMES.len(), 0).into_iter().collect();
                    prop_assert_eq!(leases.holders(at(now)), shares.len() as u64);
                    for (number, name) in NAMES.iter().enumerate() {
                        let held = plain.values().filter(|(deadline, _, of)| *deadline > now && *of == number);
                        let held: u64 = held.map(|(_, cost, _)| cost).sum();
                        let weight = if number > 0 && held > 0 { 7 } else { 1 };
                        prop_assert_eq!(leases.share(name, at(now)), Share { held, weight });
                        prop_assert_eq!(copy.share(name, at(now)), Share { held, weight });
                        prop_assert_eq!(known.get(name).map_or(held, |(held, _)| *held), held);
                        let listed = (number > 0 && held > 0).then_some(Share { held, weight });
                        prop_assert_eq!(shares.remove(name), listed);
                    }
                }
            }
        }
    }

    #[test]
    fn a_lease_keeps_its_tenant_until_it_expires_and_tenants_are_forgotten() {
        let mut leases = Leases::blank();
        take(&mut leases, 1, 1000, 2, Some((b"ann", 5)));
        take(&mut leases, 1, 2000, 9, Some((b"bob", 9)));
        assert_eq!(leases.share(b"ann", at(1999)), Share { held: 2, weight: 5 });
        assert_eq!(leases.share(b"ann", at(2000)), Share::NOTHING);
        leases.apply(Change { last: at(2000), ..Change::default() });
        assert!(!leases.has_tenants());
        take(&mut leases, 1, 3000, 3, Some((b"bob", 9)));
        assert_eq!(leases.share(b"bob", at(2000)), Share { held: 3, weight: 9 });
        assert_eq!(leases.share(b"ann", at(2000)), Share::NOTHING);
    }

    #[test]
    fn a_change_with_a_tenant_needs_a_lease_that_is_taken() {
        let held = Some((&b"a"[..], at(10), 1));
        let change = |weight| {
            let notes = Notes { tenant: Some((b"ann", weight)), ..Notes::default() };
            Change { last: at(9), held, notes: Some(Box::new(notes)), ..Change::default() }
        };
        let mut bytes = Vec::new();
        Leases::encode_change(&change(1000), &mut bytes);
        let read = |bytes: &[u8]| {
            Leases::decode_change(&mut Reader::new(bytes))
                .map(|change| change.notes.and_then(|notes| notes.tenant).map(|(_, weight)| weight))
        };
        assert_eq!(read(&bytes), Some(Some(1000)));
        for parts in [0, 1, 3, 4, 5, 8] {
            let mut wrong = bytes.clone();
            wrong[0] = parts;
            assert!(read(&wrong).flatten().is_none(), "{parts}");
        }
        let mut bytes = Vec::new();
        Leases::encode_change(&change(1001), &mut bytes);
        assert_eq!(read(&bytes), None);
    }

    #[test]
    fn a_move_keeps_the_time_until_each_lease_expires() {
        let mut leases = Leases::blank();
        for id in 0..200 {
            hold(&mut leases, id, 6000 + u64::from(id), 1);
        }
        for last in [5000, 1000, 1000] {
            leases.apply(Change { last: at(last), ..Change::default() });
        }
        assert_eq!(leases.reset(at(1000)), Span::from_micros(1199));
        assert!(leases.held(&7u32.to_be_bytes(), at(2006)).is_some());
        assert!(leases.held(&7u32.to_be_bytes(), at(2007)).is_none());
    }

    #[test]
    fn expired_leases_do_not_count_and_each_change_frees_a_few() {
        let mut leases = Leases::blank();
        for id in 0..100_000u32 {
            hold(&mut leases, id, 1000, 1);
        }
        assert_eq!(leases.cost(at(1000)), 0);
        assert_eq!(leases.ends(1, at(1000)), None);
        leases.apply(Change { last: at(1000), ..Change::default() });
        leases.table.audit();
        assert_eq!(leases.table.len(), 100_000 - FREED);
        assert_eq!(encoded(&leases), encoded(&Leases { timeline: leases.timeline, ..Leases::blank() }));
    }

    #[test]
    fn tenants_whose_leases_expired_hold_nothing_before_they_are_freed() {
        let mut leases = Leases::blank();
        for id in 0..10_000u32 {
            let tenant = format!("tenant {id:05}");
            take(&mut leases, id, if id % 10 == 7 { 2000 } else { 1000 }, 2, Some((tenant.as_bytes(), 3)));
        }
        assert_eq!(
            (leases.holders(at(999)), leases.holders(at(1000)), leases.holders(at(2000))),
            (10_000, 1000, 0)
        );
        // Of more than `most`, only those among the first names.
        assert_eq!(leases.some_shares(at(1000), 1000, 10).len(), 1000);
        assert_eq!(leases.some_shares(at(1000), 100, 20).len(), 10);
        leases.apply(Change { last: at(1000), ..Change::default() });
        assert_eq!(leases.table.len(), 10_000 - FREED);
        assert_eq!(leases.share(b"tenant 09998", at(1000)), Share::NOTHING);
        assert_eq!(leases.share(b"tenant 00007", at(1000)), Share { held: 2, weight: 3 });
        let copy = Leases::decode(&mut Reader::new(&encoded(&leases))).unwrap();
        assert_eq!((copy.table.len(), copy.holders(at(1000))), (1000, 1000));
        // A tenant whose lease is still in the table gets the weight of its new one.
        take(&mut leases, 9998, 3000, 4, Some((b"tenant 09998", 5)));
        assert_eq!(leases.share(b"tenant 09998", at(1000)), Share { held: 4, weight: 5 });
        leases.apply(Change { last: at(3000), ..Change::default() });
        assert!(!leases.has_tenants());
        while leases.table.len() > 0 {
            leases.apply(Change { last: at(3000), ..Change::default() });
            assert_eq!(encoded(&leases), encoded(&Leases { timeline: leases.timeline, ..Leases::blank() }));
        }
        leases.audit_tenants();
        assert_eq!(leases.tenants().map(|tenants| tenants.owned().names().count()), Some(0));
    }

    #[test]
    fn leases_that_expired_stay_expired_however_often_the_table_is_moved_by_millennia() {
        let mut leases = Leases::blank();
        for id in 0..10_000u32 {
            hold(&mut leases, id, 1000, 1);
        }
        for round in 0..200u32 {
            leases.apply(Change { last: Time::LATEST, ..Change::default() });
            leases.apply(Change { last: at(0), ..Change::default() });
            hold(&mut leases, 20_000 + round, 1000, 1);
            assert_eq!((leases.cost(at(0)), leases.cost(at(1000))), (1, 0));
            leases.table.audit();
        }
    }

    /// The most bytes of a lease with an id of four bytes, and of a table beside its leases.
    const MOST_BYTES: [u64; 2] = [100, 2000];
    /// The fewest of a lease among many, which also has an entry in each of the trees.
    const FEWEST_BYTES: u64 = 50;

    #[test]
    fn a_table_takes_at_most_two_kilobytes_and_100_bytes_a_lease() {
        let check = |leases: &Leases| {
            let held = leases.table.held(leases.timeline.tick).0;
            let bytes = leases.heap_bytes() as u64;
            let most = MOST_BYTES[1] + MOST_BYTES[0] * held;
            assert!((FEWEST_BYTES * held..=most).contains(&bytes), "{bytes} bytes for {held} leases");
        };
        // Of each 64 leases all but one are released, out of the order of their deadlines.
        let mut leases = Leases::blank();
        for batch in 0..2000u32 {
            for id in 64 * batch..64 * (batch + 1) {
                hold(&mut leases, id, 1_000_000 + u64::from(id.wrapping_mul(2_654_435_761) % 1_000_000), 1);
            }
            check(&leases);
            for id in (64 * batch).saturating_sub(64)..64 * batch {
                if id % 64 != 7 {
                    leases.remove(&id.to_be_bytes());
                    check(&leases);
                }
            }
        }
        leases.table.audit();
        // The table shrinks with its leases.
        for id in 0..64 * 2000 {
            leases.remove(&u32::to_be_bytes(id));
            check(&leases);
        }
        assert_eq!(leases.table.len(), 0);
    }

    #[test]
    fn a_lease_with_a_tenant_takes_at_most_100_bytes_more_and_a_tenant_100() {
        let mut leases = Leases::blank();
        for (tenants, most) in [(10u32, 200), (20_000, 300)] {
            for id in 0..20_000u32 {
                let tenant = format!("tenant {:05}", id % tenants);
                take(&mut leases, id, 1_000_000, 1, Some((tenant.as_bytes(), 1)));
            }
            let bytes = leases.heap_bytes() as u64;
            assert!(bytes <= MOST_BYTES[1] + most * 20_000, "{bytes} bytes, {tenants} tenants");
            for id in 0..20_000u32 {
                leases.remove(&id.to_be_bytes());
            }
            let bytes = leases.heap_bytes() as u64;
            assert!(bytes <= MOST_BYTES[1], "{bytes} bytes");
        }
    }

    #[test]
    fn a_lease_keeps_the_instant_at_which_it_was_taken_however_often_leases_move() {
        let settings =
            Settings { rule: Rule::Failures, ceiling: 900, floor: 1, reserved: 0, backoff: 10, slow: 0 };
        let limit = Some(Adapted::new(Adapt { settings, start: 900 }));
        let noted = |timed, limit| Some(Box::new(Notes { timed, limit, ..Notes::default() }));
        let mut leases = Leases::blank();
        hold(&mut leases, 9999, 5_000_000, 1);
        leases.apply(Change { last: at(1), notes: noted(false, limit), ..Change::default() });
        let mut plain: BTreeMap<u32, u64> = BTreeMap::new();
        for step in 0..3000u32 {
            // First more and more leases are held, so that there are trees, then fewer.
            let (id, last) = (step.wrapping_mul(2_654_435_761) % 400, u64::from(step) * 10 + 2);
            if step % 3 < u32::from(step > 1500) * 2 {
                leases.apply(Change {
                    last: at(last),
                    released: Some(&id.to_be_bytes()),
                    ..Change::default()
                });
                plain.remove(&id);
            } else {
                let name = id.to_be_bytes();
                let held = Some((&name[..], at(last + 20_000), 1));
                leases.apply(Change { last: at(last), held, notes: noted(true, None), ..Change::default() });
                plain.entry(id).or_insert(last);
            }
            plain.retain(|id, _| leases.held(&id.to_be_bytes(), at(last)).is_some());
            for id in 0..400u32 {
                let name = id.to_be_bytes();
                let taken = leases.held(&name, at(last)).and_then(|_| leases.taken(&name));
                assert_eq!(taken, plain.get(&id).copied(), "{id} in step {step}");
            }
        }
        assert_eq!(leases.taken(&9999u32.to_be_bytes()), None);
        let copy = Leases::decode(&mut Reader::new(&encoded(&leases))).unwrap();
        assert_eq!(encoded(&copy), encoded(&leases));
        assert!(plain.iter().all(|(id, taken)| copy.taken(&id.to_be_bytes()) == Some(*taken)));
        assert_eq!(copy.until(Span::ZERO), at(29_992 + 3_600_000_000));
        assert!(copy.adapted(at(29_991 + 3_600_000_000)).is_some());
        assert!(copy.adapted(at(29_992 + 3_600_000_000)).is_none());
    }

    #[test]
    fn a_lease_that_expired_at_the_last_charge_gets_the_new_cost() {
        let mut leases = Leases::blank();
        hold(&mut leases, 1, 1000, 2);
        let held = Some((&1u32.to_be_bytes()[..], at(2000), 3));
        leases.apply(Change { last: at(1000), held, ..Change::default() });
        assert_eq!(leases.cost(at(1000)), 3);
    }

    #[test]
    fn ids_of_equal_hashes_are_different_leases() {
        // One step of the hash.
        let step = |word: u64| {
            let mixed = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 32
        };
        let id = |[first, second]: [u64; 2]| [first.to_le_bytes(), second.to_le_bytes()].concat();
        let (one, other) = (id([1, 3]), id([2, 3 ^ step(1) ^ step(2)]));
        let mut leases = Leases::blank();
        // First without trees, then with them.
        for others in [0, 100] {
            (0..others).for_each(|i| hold(&mut leases, i, 1000, 1));
            for (id, cost) in [(&one, 5), (&other, 7)] {
                let held = Some((&id[..], at(1000), cost));
                leases.apply(Change { last: at(0), held, ..Change::default() });
            }
            leases.table.audit();
            let costs = [&one, &other].map(|id| leases.held(id, at(0)).map(|held| held.cost));
            assert_eq!(costs, [Some(5), Some(7)]);
            leases.remove(&one);
            assert!(leases.held(&one, at(0)).is_none() && leases.held(&other, at(0)).is_some());
            leases.remove(&other);
        }
    }
}
