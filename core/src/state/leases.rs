//! A table of leases, ordered by deadline and indexed by id.
//!
//! Many leases can expire at once: 100,000, for example, if a data center fails. Two measures keep calls fast then. The
//! cost of expired leases is summed by the block, not by the lease. And a charge drops only a few expired leases. The
//! others remain until later charges drop them or the key expires, but they do not count.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;

use super::lease_change::Change;
use super::lease_order::{Lease, Order};
use crate::time::{Span, Time};

/// The most leases without an index. An id is then found by comparing all, and an index would take more memory than the
/// leases.
const FEW: usize = 16;

/// The most expired leases that one charge drops. A charge adds one, so later charges drop the rest.
const DROPS: usize = 16;

/// A table of leases.
#[derive(Default, Debug)]
pub struct Leases {
    pub(super) last: Time,
    pub(super) order: Order,
    /// The index: every lease's deadline by its id. `None` while there are few leases.
    #[allow(clippy::box_collection, reason = "most tables have no index")]
    by_id: Option<Box<BTreeMap<Rc<[u8]>, Time>>>,
}

impl Leases {
    /// The lease of this id if it is held at `now`.
    pub fn held(&self, id: &[u8], now: Time) -> Option<&Lease> {
        self.find(id).filter(|lease| lease.deadline > now)
    }

    /// The cost of the leases that are held at `now`.
    pub fn cost(&self, now: Time) -> u128 {
        self.order.held_cost(now)
    }

    /// When enough of the leases held at `now` will have expired to free `cost`; `None` if all cost less.
    pub fn ends(&self, cost: u128, now: Time) -> Option<Time> {
        self.order.ends(cost, now)
    }

    /// When the last lease expires; the epoch if there are none.
    pub fn end(&self) -> Time {
        self.order.latest().map_or(Time::EPOCH, |lease| lease.deadline)
    }

    /// A change at `now` that drops a few expired leases. Every charge, renewal and release starts from it.
    pub fn tidied(&self, now: Time) -> Change<'_> {
        let expired = self.order.iter().take(DROPS).take_while(|lease| lease.deadline <= now).last();
        let dropped = expired.map(|lease| (lease.deadline, lease.id.as_ref()));
        Change { last: now, dropped, ..Change::default() }
    }

    /// The lease of this id, expired or not.
    pub(super) fn find(&self, id: &[u8]) -> Option<&Lease> {
        match &self.by_id {
            None => self.order.iter().find(|lease| lease.id.as_ref() == id),
            Some(by_id) => self.order.get(*by_id.get(id)?, id),
        }
    }

    /// Gives a lease this deadline and cost. A lease that is not in the table is added.
    pub(super) fn hold(&mut self, id: &[u8], deadline: Time, cost: u64) {
        let before = self.find(id).map(|lease| lease.deadline);
        let lease = match before.and_then(|before| self.order.take(before, id)) {
            Some(lease) => Lease { deadline, cost, ..lease },
            None => Lease { deadline, cost, id: Rc::from(id) },
        };
        if let Some(by_id) = &mut self.by_id {
            by_id.insert(Rc::clone(&lease.id), deadline);
        }
        self.order.insert(lease);
        if self.by_id.is_none() && self.order.len > FEW {
            let ids = self.order.iter().map(|lease| (Rc::clone(&lease.id), lease.deadline)).collect();
            self.by_id = Some(Box::new(ids));
        }
    }

    /// Removes the lease of this id.
    pub(super) fn remove(&mut self, id: &[u8]) {
        if let Some(deadline) = self.find(id).map(|lease| lease.deadline) {
            self.order.take(deadline, id);
            self.unindex(id);
        }
    }

    /// Removes an id from the index, and the index if few leases remain.
    fn unindex(&mut self, id: &[u8]) {
        if let Some(by_id) = &mut self.by_id {
            by_id.remove(id);
        }
        // The index is made at `FEW` leases. This bound is far lower, so that it is not made and removed in turns.
        if self.order.len < FEW / 4 {
            self.by_id = None;
        }
    }

    /// Drops the leases up to the one with this deadline and id, in their order.
    pub(super) fn drop_up_to(&mut self, deadline: Time, id: &[u8]) {
        while let Some((dropped, whole)) = self.order.drop_from_first_block(deadline, id) {
            for lease in &dropped {
                self.unindex(&lease.id);
            }
            if !whole {
                return;
            }
        }
    }

    /// The bytes that the table has allocated.
    pub(super) fn allocated(&self) -> usize {
        // An `Rc` stores two counters, 16 bytes, before the id. A node of the tree takes 320 bytes and has room for
        // eleven ids. It holds about six if ids are inserted in order, eight if not; this assumes seven.
        let ids: usize = self.order.iter().map(|lease| size_class(16 + lease.id.len())).sum();
        let tree = self.by_id.as_ref().map_or(0, |by_id| by_id.len() * 320 / 7);
        self.order.allocated() + ids + tree
    }

    /// Moves all deadlines back by `step`, without changing their order.
    pub(super) fn shift(&mut self, step: Span) {
        // Leases that would expire before the epoch have expired. Their deadlines would all become the epoch, which
        // would change their order.
        self.drop_up_to(Time::EPOCH.plus(step), &[]);
        self.order.shift(step);
        for deadline in self.by_id.iter_mut().flat_map(|by_id| by_id.values_mut()) {
            *deadline = deadline.minus(step);
        }
    }
}

/// The bytes that jemalloc allocates for this many: the next of its sizes, which has four per doubling.
fn size_class(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::cmp::Ordering;

    use proptest::prelude::*;

    use super::super::State;
    use super::super::codec::Reader;
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn hold(leases: &mut Leases, id: u32, deadline: u64, cost: u64) {
        let held = Some((&id.to_be_bytes()[..], at(deadline), cost));
        leases.apply(Change { held, ..Change::default() });
    }

    /// Checks that the index and the sums agree with the leases.
    fn audit(leases: &Leases) {
        leases.order.audit();
        if let Some(by_id) = &leases.by_id {
            assert_eq!(by_id.len(), leases.order.len);
            assert!(leases.order.iter().all(|lease| by_id.get(&lease.id) == Some(&lease.deadline)));
        }
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_a_plain_map(
            steps in prop::collection::vec((0u32..400, 1u64..2000, 1u64..5, 0u8..10), 1..800),
        ) {
            let mut leases = Leases::blank();
            let mut plain: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for (id, deadline, cost, what) in steps {
                match what {
                    0 => {
                        leases.apply(Change { released: Some(&id.to_be_bytes()), ..Change::default() });
                        plain.remove(&id);
                    }
                    1 => {
                        let now = at(deadline / 8);
                        let bound = leases.order.iter().take(DROPS).take_while(|l| l.deadline <= now).last().cloned();
                        if let Some(bound) = bound {
                            leases.apply(Change {
                                dropped: Some((bound.deadline, &bound.id)),
                                ..Change::default()
                            });
                            plain.retain(|id, (deadline, _)| {
                                bound.order(at(*deadline), &id.to_be_bytes()) == Ordering::Less
                            });
                        }
                    }
                    _ => {
                        hold(&mut leases, id, deadline, cost);
                        plain.insert(id, (deadline, cost));
                    }
                }
                audit(&leases);
            }
            for now in [0, 1, 500, 1000, 1999, 2000] {
                let held = || plain.iter().filter(|(_, (deadline, _))| *deadline > now);
                let cost: u64 = held().map(|(_, (_, cost))| cost).sum();
                prop_assert_eq!(leases.cost(at(now)), u128::from(cost));
                for id in 0..400u32 {
                    let theirs = plain.get(&id).filter(|(deadline, _)| *deadline > now);
                    let ours = leases.held(&id.to_be_bytes(), at(now));
                    prop_assert_eq!(ours.map(|l| (l.deadline.as_micros(), l.cost)), theirs.copied());
                }
                let mut by_end: Vec<_> = held().map(|(_, lease)| *lease).collect();
                by_end.sort_unstable();
                for need in [1, 2, cost / 2, cost, cost + 1] {
                    let mut left = need;
                    let end = by_end.iter().find(|(_, cost)| { left = left.saturating_sub(*cost); left == 0 });
                    if need > 0 {
                        prop_assert_eq!(leases.ends(need.into(), at(now)), end.map(|(end, _)| at(*end)));
                    }
                }
            }
            let mut bytes = Vec::new();
            leases.encode(&mut bytes);
            let mut again = Vec::new();
            let copy = Leases::decode(&mut Reader::new(&bytes)).unwrap();
            audit(&copy);
            copy.encode(&mut again);
            prop_assert_eq!(bytes, again);
        }
    }

    #[test]
    fn a_change_that_sets_the_clock_back_moves_the_table_once_when_applied_twice() {
        let mut leases = Leases { last: at(5000), ..Leases::blank() };
        for id in 0..200 {
            hold(&mut leases, id, 6000 + u64::from(id), 1);
        }
        leases.last = at(5000);
        let change = Change { last: at(1000), moved: Some((at(5000), at(1000))), ..Change::default() };
        leases.apply(change);
        leases.apply(change);
        audit(&leases);
        assert_eq!(leases.end(), at(2199));
        assert!(leases.held(&7u32.to_be_bytes(), at(2006)).is_some());
        assert!(leases.held(&7u32.to_be_bytes(), at(2007)).is_none());
    }

    #[test]
    fn leases_that_would_expire_before_the_epoch_are_dropped_and_the_others_stay() {
        let mut leases = Leases { last: at(9000), ..Leases::blank() };
        for id in 0..300 {
            hold(&mut leases, id, 5000 + u64::from(id), 1);
        }
        hold(&mut leases, 1000, 9500, 7);
        leases.last = at(9000);
        leases.apply(Change { last: at(10), moved: Some((at(9000), at(10))), ..Change::default() });
        audit(&leases);
        assert_eq!((leases.order.len, leases.cost(at(10)), leases.end()), (1, 7, at(510)));
    }

    #[test]
    fn expired_leases_do_not_count_and_a_charge_drops_a_few_of_them() {
        let mut leases = Leases::blank();
        for id in 0..100_000u32 {
            hold(&mut leases, id, 1000, 1);
        }
        assert_eq!(leases.cost(at(1000)), 0);
        assert_eq!(leases.ends(1, at(1000)), None);
        let tidied = leases.tidied(at(1000));
        let bound = tidied.dropped.map(|(deadline, id)| (deadline, id.to_vec()));
        let (deadline, id) = bound.unwrap();
        leases.apply(Change { dropped: Some((deadline, &id)), ..Change::default() });
        audit(&leases);
        assert_eq!(leases.order.len, 100_000 - DROPS);
    }
}
