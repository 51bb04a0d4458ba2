//! A table of leases, each with its id, its deadline and its cost.
//!
//! A lease whose deadline is at or before the last charge has expired. It no longer belongs to the table: it is neither
//! counted nor encoded. Its memory is freed later, as 100,000 leases can expire at once, for example if a data center
//! fails. So each change frees a few expired leases.

mod stored;

pub use stored::Change;

use super::table::Table;
use super::timeline::{Tick, Timeline};
use crate::time::{Span, Time};

/// The most expired leases that one change frees. A change adds at most one, so later changes free the rest.
const FREED: usize = 4;

/// A table of leases.
#[derive(Clone, Default, Debug)]
pub struct Leases {
    timeline: Timeline,
    table: Table,
}

/// A lease that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub cost: u64,
    /// The time until it expires.
    pub left: Span,
}

impl Leases {
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

    /// The cost of the leases that are held at `now`.
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

    /// Gives a lease this deadline, which is after the last charge. A lease that was not held also gets this cost.
    fn hold(&mut self, id: &[u8], deadline: Time, cost: u32) {
        self.table.hold(id, self.timeline.tick_at(deadline), cost, self.timeline.tick);
    }

    /// Removes the lease of this id.
    fn remove(&mut self, id: &[u8]) {
        if let Some(slot) = self.table.find(id) {
            self.table.remove(slot);
        }
    }

    /// Frees a few expired leases.
    fn tidy(&mut self) {
        self.table.remove_expired(self.timeline.tick, FREED);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::State;
    use super::super::codec::Reader;
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn hold(leases: &mut Leases, id: u32, deadline: u64, cost: u64) {
        let held = Some((&id.to_be_bytes()[..], at(deadline), cost));
        leases.apply(Change { last: leases.last(), released: None, held });
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
                        leases.apply(Change { last: at(last), released, held: None });
                        plain.remove(&id);
                    }
                    3 => {
                        let last = last + wait / 40;
                        leases.apply(Change { last: at(last), released: None, held: None });
                        plain.retain(|_, (deadline, _)| *deadline > last);
                    }
                    4 => {
                        let step = last.min(wait);
                        leases.apply(Change { last: at(last - step), released: None, held: None });
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

    #[test]
    fn a_move_keeps_the_time_until_each_lease_expires() {
        let mut leases = Leases::blank();
        for id in 0..200 {
            hold(&mut leases, id, 6000 + u64::from(id), 1);
        }
        for last in [5000, 1000, 1000] {
            leases.apply(Change { last: at(last), released: None, held: None });
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
        leases.apply(Change { last: at(1000), released: None, held: None });
        leases.table.audit();
        assert_eq!(leases.table.len(), 100_000 - FREED);
        assert_eq!(encoded(&leases), encoded(&Leases { timeline: leases.timeline, ..Leases::blank() }));
    }

    #[test]
    fn leases_that_expired_stay_expired_however_often_the_table_is_moved_by_millennia() {
        let mut leases = Leases::blank();
        for id in 0..10_000u32 {
            hold(&mut leases, id, 1000, 1);
        }
        for round in 0..200u32 {
            leases.apply(Change { last: Time::LATEST, released: None, held: None });
            leases.apply(Change { last: at(0), released: None, held: None });
            hold(&mut leases, 20_000 + round, 1000, 1);
            assert_eq!((leases.cost(at(0)), leases.cost(at(1000))), (1, 0));
            leases.table.audit();
        }
    }

    /// The most bytes of a lease with an id of four bytes, and of a table beside its leases.
    const MOST_BYTES: [u64; 2] = [100, 2000];

    #[test]
    fn a_table_takes_at_most_two_kilobytes_and_100_bytes_a_lease() {
        let check = |leases: &Leases| {
            let held = leases.table.held(leases.timeline.tick).0;
            let bytes = leases.heap_bytes() as u64;
            assert!(bytes <= MOST_BYTES[1] + MOST_BYTES[0] * held, "{bytes} bytes for {held} leases");
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
    fn a_lease_that_expired_at_the_last_charge_gets_the_new_cost() {
        let mut leases = Leases::blank();
        hold(&mut leases, 1, 1000, 2);
        let held = Some((&1u32.to_be_bytes()[..], at(2000), 3));
        leases.apply(Change { last: at(1000), released: None, held });
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
                leases.apply(Change { last: at(0), released: None, held });
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
