//! A table of leases, in the order in which they end, and by id.
//!
//! What costs time in such a table is the crowd that ends at once: 100,000 leases whose holders all died. Two
//! things keep it from stalling a call. The order is cut into blocks that know the cost of what they hold, so that
//! counting what has ended adds up blocks, not leases. And a charge drops only a few leases that have ended; the
//! others stay, uncounted, until later charges drop them or the key expires.
//!
//! The order is by deadline and, among equals, by id, so that the bytes depend on nothing but the leases.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::lease_change::Change;
use crate::time::{Span, Time};

/// The most leases of a block. Half of it is moved by an insertion on average.
const BLOCK: usize = 128;

/// Up to so many leases an id is found by looking at each; a tree of ids would take more memory than the leases.
const FEW: usize = 16;

/// The most ended leases that one charge drops. Each charge adds one, so any number above that catches up.
const DROPS: usize = 16;

#[derive(Clone, PartialEq, Debug)]
pub struct Lease {
    /// Held while now is before it.
    pub deadline: Time,
    pub cost: u64,
    pub(super) id: Rc<[u8]>,
}

impl Lease {
    pub(super) fn order(&self, deadline: Time, id: &[u8]) -> Ordering {
        self.deadline.cmp(&deadline).then_with(|| self.id.as_ref().cmp(id))
    }
}

/// A run of the order; never empty.
#[derive(Default, Debug)]
struct Block {
    cost: u128,
    leases: Vec<Lease>,
}

impl Block {
    /// Whether all of it has ended.
    fn ended(&self, now: Time) -> bool {
        self.leases.last().is_none_or(|last| last.deadline <= now)
    }
}

#[derive(Default, Debug)]
pub struct Leases {
    pub(super) last: Time,
    pub(super) len: usize,
    pub(super) cost: u128,
    blocks: VecDeque<Block>,
    /// Every lease's deadline by id, when there are more than a few.
    #[allow(clippy::box_collection, reason = "most tables have none")]
    by_id: Option<Box<BTreeMap<Rc<[u8]>, Time>>>,
}

impl Leases {
    /// The lease of this id if it is held at `now`.
    pub fn held(&self, id: &[u8], now: Time) -> Option<&Lease> {
        self.find(id).filter(|lease| lease.deadline > now)
    }

    /// The cost of all leases that are held at `now`.
    pub fn cost(&self, now: Time) -> u128 {
        let mut ended = 0;
        for block in &self.blocks {
            if !block.ended(now) {
                let some = block.leases.iter().take_while(|lease| lease.deadline <= now);
                ended += some.map(|lease| u128::from(lease.cost)).sum::<u128>();
                break;
            }
            ended += block.cost;
        }
        self.cost - ended
    }

    /// When so much of what is held at `now` will have ended.
    pub fn ends(&self, mut cost: u128, now: Time) -> Option<Time> {
        for block in self.blocks.iter().filter(|block| !block.ended(now)) {
            let whole = block.leases.first().is_some_and(|first| first.deadline > now);
            if whole && block.cost < cost {
                cost -= block.cost;
                continue;
            }
            for lease in block.leases.iter().filter(|lease| lease.deadline > now) {
                cost = cost.saturating_sub(u128::from(lease.cost));
                if cost == 0 {
                    return Some(lease.deadline);
                }
            }
        }
        None
    }

    /// When the last lease ends; none is held from then on.
    pub fn end(&self) -> Time {
        self.newest().map_or(Time::EPOCH, |lease| lease.deadline)
    }

    /// The lease that ends last.
    pub(super) fn newest(&self) -> Option<&Lease> {
        self.blocks.back().and_then(|block| block.leases.last())
    }

    /// The change that any charge begins with: time has come to `now`, and some of what has ended is dropped.
    pub fn tidied(&self, now: Time) -> Change<'_> {
        let ended = self.iter().take(DROPS).take_while(|lease| lease.deadline <= now).last();
        let dropped = ended.map(|lease| (lease.deadline, lease.id.as_ref()));
        Change { last: now, dropped, ..Change::default() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.blocks.iter().flat_map(|block| block.leases.iter())
    }

    pub(super) fn find(&self, id: &[u8]) -> Option<&Lease> {
        let (block, place) = match &self.by_id {
            None => return self.iter().find(|lease| lease.id.as_ref() == id),
            Some(by_id) => self.place(*by_id.get(id)?, id),
        };
        self.blocks.get(block)?.leases.get(place)
    }

    /// Where in the order a lease is, or would go: its block and its place there.
    fn place(&self, deadline: Time, id: &[u8]) -> (usize, usize) {
        let before = |lease: &Lease| lease.order(deadline, id) == Ordering::Less;
        let block = self.blocks.partition_point(|block| block.leases.last().is_some_and(before));
        let place = self.blocks.get(block).map_or(0, |block| block.leases.partition_point(before));
        (block, place)
    }

    /// Makes a lease end then and cost that much, whether it is in the table or not.
    pub(super) fn hold(&mut self, id: &[u8], deadline: Time, cost: u64) {
        let before = self.find(id).map(|lease| lease.deadline);
        let lease = match before.and_then(|before| self.take(before, id)) {
            Some(lease) => Lease { deadline, cost, ..lease },
            None => Lease { deadline, cost, id: Rc::from(id) },
        };
        if let Some(by_id) = &mut self.by_id {
            by_id.insert(Rc::clone(&lease.id), deadline);
        }
        self.insert(lease);
        if self.by_id.is_none() && self.len > FEW {
            let ids = self.iter().map(|lease| (Rc::clone(&lease.id), lease.deadline)).collect();
            self.by_id = Some(Box::new(ids));
        }
    }

    /// Puts a lease into the order.
    fn insert(&mut self, lease: Lease) {
        self.len += 1;
        self.cost += u128::from(lease.cost);
        let (at, place) = self.place(lease.deadline, &lease.id);
        match self.blocks.get_mut(at) {
            Some(block) => {
                block.cost += u128::from(lease.cost);
                block.leases.insert(place, lease);
                self.split(at);
            }
            None => self.append(lease),
        }
    }

    /// Adds the newest lease of all: to the last block, or behind it when it is full.
    fn append(&mut self, lease: Lease) {
        if self.blocks.back().is_none_or(|block| block.leases.len() >= BLOCK) {
            if self.blocks.is_empty() {
                self.blocks.reserve_exact(1);
            }
            // Most tables hold a lease or two: start small.
            self.blocks.push_back(Block { cost: 0, leases: Vec::with_capacity(1) });
        }
        if let Some(block) = self.blocks.back_mut() {
            block.cost += u128::from(lease.cost);
            block.leases.push(lease);
        }
    }

    /// Cuts a block that has grown too long in two.
    fn split(&mut self, at: usize) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| block.leases.len() > BLOCK) else {
            return;
        };
        let leases = block.leases.split_off(BLOCK / 2);
        let cost = leases.iter().map(|lease| u128::from(lease.cost)).sum();
        block.cost -= cost;
        self.blocks.insert(at + 1, Block { cost, leases });
    }

    pub(super) fn remove(&mut self, id: &[u8]) {
        if let Some(deadline) = self.find(id).map(|lease| lease.deadline) {
            self.take(deadline, id);
            self.forget(id);
        }
    }

    /// Takes a lease out of the order.
    fn take(&mut self, deadline: Time, id: &[u8]) -> Option<Lease> {
        let (at, place) = self.place(deadline, id);
        let block = self.blocks.get_mut(at).filter(|block| place < block.leases.len())?;
        let lease = block.leases.remove(place);
        block.cost -= u128::from(lease.cost);
        if block.leases.is_empty() {
            self.blocks.remove(at);
        }
        self.len -= 1;
        self.cost -= u128::from(lease.cost);
        Some(lease)
    }

    /// Takes the id of a lease that has left the order off the books.
    fn forget(&mut self, id: &[u8]) {
        if let Some(by_id) = &mut self.by_id {
            by_id.remove(id);
        }
        // Far below where the tree is made, so that it does not come and go.
        if self.len < FEW / 4 {
            self.by_id = None;
        }
    }

    pub(super) fn drop_up_to(&mut self, deadline: Time, id: &[u8]) {
        while let Some(block) = self.blocks.front_mut() {
            let ended = block.leases.partition_point(|lease| lease.order(deadline, id) != Ordering::Greater);
            let whole = ended == block.leases.len();
            let gone: Vec<Lease> = block.leases.drain(..ended).collect();
            let cost = gone.iter().map(|lease| u128::from(lease.cost)).sum::<u128>();
            block.cost -= cost;
            self.cost -= cost;
            self.len -= ended;
            if whole {
                self.blocks.pop_front();
            }
            for lease in &gone {
                self.forget(&lease.id);
            }
            if !whole {
                return;
            }
        }
    }

    /// Bytes that the table holds outside itself.
    pub(super) fn allocated(&self) -> usize {
        let blocks = self.blocks.capacity() * size_of::<Block>();
        let leases: usize =
            self.blocks.iter().map(|block| block.leases.capacity() * size_of::<Lease>()).sum();
        // An id stands behind two counters. A node of the tree has room for eleven in 320 bytes; it is half full if ids
        // come in their order, and three quarters if they come in none: seven of eleven, say.
        let ids: usize = self.iter().map(|lease| size_class(16 + lease.id.len())).sum();
        let tree = self.by_id.as_ref().map_or(0, |by_id| by_id.len() * 320 / 7);
        blocks + leases + ids + tree
    }

    /// Moves all deadlines back by `step`, without changing their order.
    pub(super) fn shift(&mut self, step: Span) {
        // What would end before the epoch has long ended; its order would collapse.
        self.drop_up_to(Time::EPOCH.plus(step), &[]);
        for lease in self.blocks.iter_mut().flat_map(|block| &mut block.leases) {
            lease.deadline = lease.deadline.minus(step);
        }
        for deadline in self.by_id.iter_mut().flat_map(|by_id| by_id.values_mut()) {
            *deadline = deadline.minus(step);
        }
    }
}

/// What an allocator takes for so many bytes: the next of jemalloc's sizes, of which each doubling has four.
fn size_class(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16))
}

#[cfg(test)]
mod tests {
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

    /// Whether the books agree with the leases.
    fn audit(leases: &Leases) {
        assert!(leases.blocks.iter().all(|block| !block.leases.is_empty() && block.leases.len() <= BLOCK));
        for block in &leases.blocks {
            assert_eq!(block.cost, block.leases.iter().map(|lease| u128::from(lease.cost)).sum::<u128>());
        }
        let all: Vec<_> = leases.iter().collect();
        assert!(all.is_sorted_by(|a, b| a.order(b.deadline, &b.id) == Ordering::Less));
        assert_eq!(leases.len, all.len());
        assert_eq!(leases.cost, all.iter().map(|lease| u128::from(lease.cost)).sum::<u128>());
        if let Some(by_id) = &leases.by_id {
            assert_eq!(by_id.len(), all.len());
            assert!(all.iter().all(|lease| by_id.get(&lease.id) == Some(&lease.deadline)));
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
                        let bound = leases.iter().take(DROPS).take_while(|l| l.deadline <= now).last().cloned();
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
    fn a_table_that_was_set_back_twice_by_the_same_change_moved_once() {
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
    fn what_would_end_before_the_epoch_is_dropped_and_the_rest_stays_held() {
        let mut leases = Leases { last: at(9000), ..Leases::blank() };
        for id in 0..300 {
            hold(&mut leases, id, 5000 + u64::from(id), 1);
        }
        hold(&mut leases, 1000, 9500, 7);
        leases.last = at(9000);
        leases.apply(Change { last: at(10), moved: Some((at(9000), at(10))), ..Change::default() });
        audit(&leases);
        assert_eq!((leases.len, leases.cost(at(10)), leases.end()), (1, 7, at(510)));
    }

    #[test]
    fn counting_what_has_ended_looks_at_blocks_and_dropping_it_takes_a_few_at_a_time() {
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
        assert_eq!(leases.len, 100_000 - DROPS);
    }
}
