//! Leases in the order in which they expire, grouped into blocks that store their total cost.
//!
//! The cost of expired leases is then a sum over blocks. Leases with equal deadlines are ordered by id, so that the
//! order depends on the leases alone.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::time::{Span, Time};

/// The most leases of a block. An insertion moves half of them on average.
const BLOCK: usize = 128;

/// A lease that was taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Lease {
    /// The lease is held before this instant.
    pub deadline: Time,
    pub cost: u64,
    pub(super) id: Rc<[u8]>,
}

impl Lease {
    /// Compares the lease with another of this deadline and id.
    pub(super) fn order(&self, deadline: Time, id: &[u8]) -> Ordering {
        self.deadline.cmp(&deadline).then_with(|| self.id.as_ref().cmp(id))
    }
}

/// A run of leases in their order; never empty.
#[derive(Default, Debug)]
struct Block {
    /// The sum of the leases' costs.
    cost: u128,
    leases: Vec<Lease>,
}

impl Block {
    /// Whether all its leases have expired.
    fn expired(&self, now: Time) -> bool {
        self.leases.last().is_none_or(|last| last.deadline <= now)
    }
}

/// Leases in the order in which they expire.
#[derive(Default, Debug)]
pub(super) struct Order {
    /// The number of leases, expired ones included.
    pub(super) len: usize,
    /// The sum of the leases' costs, expired ones included.
    pub(super) cost: u128,
    blocks: VecDeque<Block>,
}

impl Order {
    /// The cost of the leases that are held at `now`.
    pub(super) fn held_cost(&self, now: Time) -> u128 {
        let mut expired = 0;
        for block in &self.blocks {
            if !block.expired(now) {
                let some = block.leases.iter().take_while(|lease| lease.deadline <= now);
                expired += some.map(|lease| u128::from(lease.cost)).sum::<u128>();
                break;
            }
            expired += block.cost;
        }
        self.cost - expired
    }

    /// When enough of the leases held at `now` will have expired to free `cost`; `None` if all cost less.
    pub(super) fn ends(&self, mut cost: u128, now: Time) -> Option<Time> {
        for block in self.blocks.iter().filter(|block| !block.expired(now)) {
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

    /// The lease that expires last.
    pub(super) fn latest(&self) -> Option<&Lease> {
        self.blocks.back().and_then(|block| block.leases.last())
    }

    /// All leases in their order, expired ones included.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.blocks.iter().flat_map(|block| block.leases.iter())
    }

    /// The lease with this deadline and id.
    pub(super) fn get(&self, deadline: Time, id: &[u8]) -> Option<&Lease> {
        let (block, place) = self.place(deadline, id);
        self.blocks.get(block)?.leases.get(place)
    }

    /// Where a lease is in the order, or would be: its block, and its place in the block.
    fn place(&self, deadline: Time, id: &[u8]) -> (usize, usize) {
        let before = |lease: &Lease| lease.order(deadline, id) == Ordering::Less;
        let block = self.blocks.partition_point(|block| block.leases.last().is_some_and(before));
        let place = self.blocks.get(block).map_or(0, |block| block.leases.partition_point(before));
        (block, place)
    }

    /// Puts a lease into the order.
    pub(super) fn insert(&mut self, lease: Lease) {
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

    /// Adds a lease that expires after all others: to the last block, or to a new one if that is full.
    fn append(&mut self, lease: Lease) {
        if self.blocks.back().is_none_or(|block| block.leases.len() >= BLOCK) {
            if self.blocks.is_empty() {
                self.blocks.reserve_exact(1);
            }
            // Most tables hold one or two leases.
            self.blocks.push_back(Block { cost: 0, leases: Vec::with_capacity(1) });
        }
        if let Some(block) = self.blocks.back_mut() {
            block.cost += u128::from(lease.cost);
            block.leases.push(lease);
        }
    }

    /// Splits a block in two if it has too many leases.
    fn split(&mut self, at: usize) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| block.leases.len() > BLOCK) else {
            return;
        };
        let leases = block.leases.split_off(BLOCK / 2);
        let cost = leases.iter().map(|lease| u128::from(lease.cost)).sum();
        block.cost -= cost;
        self.blocks.insert(at + 1, Block { cost, leases });
    }

    /// Takes a lease out of the order.
    pub(super) fn take(&mut self, deadline: Time, id: &[u8]) -> Option<Lease> {
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

    /// Drops the leases of the first block up to the one with this deadline and id. Returns them, and whether those
    /// were all of the block. `None` if no lease is left.
    pub(super) fn drop_from_first_block(&mut self, deadline: Time, id: &[u8]) -> Option<(Vec<Lease>, bool)> {
        let block = self.blocks.front_mut()?;
        let count = block.leases.partition_point(|lease| lease.order(deadline, id) != Ordering::Greater);
        let whole = count == block.leases.len();
        let dropped: Vec<Lease> = block.leases.drain(..count).collect();
        let cost = dropped.iter().map(|lease| u128::from(lease.cost)).sum::<u128>();
        block.cost -= cost;
        self.cost -= cost;
        self.len -= count;
        if whole {
            self.blocks.pop_front();
        }
        Some((dropped, whole))
    }

    /// Moves all deadlines back by `step`.
    pub(super) fn shift(&mut self, step: Span) {
        for lease in self.blocks.iter_mut().flat_map(|block| &mut block.leases) {
            lease.deadline = lease.deadline.minus(step);
        }
    }

    /// The bytes that the order has allocated, without the ids.
    pub(super) fn allocated(&self) -> usize {
        let leases = self.blocks.iter().map(|block| block.leases.capacity() * size_of::<Lease>());
        self.blocks.capacity() * size_of::<Block>() + leases.sum::<usize>()
    }

    /// Checks that the blocks agree with their leases.
    #[cfg(test)]
    pub(super) fn audit(&self) {
        assert!(self.blocks.iter().all(|block| !block.leases.is_empty() && block.leases.len() <= BLOCK));
        for block in &self.blocks {
            assert_eq!(block.cost, block.leases.iter().map(|lease| u128::from(lease.cost)).sum::<u128>());
        }
        let all: Vec<_> = self.iter().collect();
        assert!(all.is_sorted_by(|a, b| a.order(b.deadline, &b.id) == Ordering::Less));
        assert_eq!(self.len, all.len());
        assert_eq!(self.cost, all.iter().map(|lease| u128::from(lease.cost)).sum::<u128>());
    }
}
