//! Leases in dense slots, found through two search trees.
//!
//! One tree is ordered by deadline, the other by the hash of the id (`trees.rs`). A table of few leases has no trees:
//! reading all slots is then faster.
//!
//! The last lease moves into the slot of a lease that is removed. So a table takes no more memory than its leases need.
//!
//! ```text
//! slots       a:9 c:4 x:7 k:2 b:8               id and deadline
//! by deadline k c x b a
//! by id       x a k b c                         in the order of hashes
//! remove c    a:9 b:8 x:7 k:2                   b moves into the slot of c
//! ```

mod balance;
mod lease;
mod node;
mod owned;
mod slots;
mod trees;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::replace;

pub(super) use lease::{Lease, decode_id};
pub use lease::{MAX_ID, hash as hash_of_id};
pub(super) use owned::{HeldByOwners, Owned};
pub(super) use slots::{Slots, number, size_class};

use super::timeline::Tick;
use crate::time::Span;
use lease::{Key, hash};
use node::{ByDeadline, ById, OfTable};
use trees::Trees;

/// The most leases without trees.
const FEW: usize = 64;

/// A table of leases, expired ones included.
#[derive(Clone, Default, Debug)]
pub(super) struct Table<K = ()> {
    leases: Slots<Lease<K>>,
    /// `None` if there are few leases.
    trees: Option<Box<Trees>>,
    /// The bytes that are allocated for ids.
    id_bytes: usize,
    /// The cost of all leases.
    cost: u64,
    /// No lease expires before this tick.
    soonest: Tick,
    /// The latest deadline of all leases.
    latest: Tick,
}

impl<K> Table<K> {
    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// The lease in a slot.
    pub(super) fn get(&self, slot: u32) -> Option<&Lease<K>> {
        self.leases.get(slot)
    }

    /// Calls `change` with what the table keeps with each lease.
    pub(super) fn each_kept(&mut self, change: impl FnMut(&mut K)) {
        self.leases.iter_mut().map(|lease| &mut lease.kept).for_each(change);
    }

    /// The leases, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lease<K>> {
        self.leases.iter()
    }

    /// The slot of the lease of this id.
    pub(super) fn find(&self, id: &[u8]) -> Option<u32> {
        self.find_hashed(hash(id), id)
    }

    fn find_hashed(&self, hash: u64, id: &[u8]) -> Option<u32> {
        match &self.trees {
            Some(trees) => trees.find(&self.leases, hash, id),
            None => self.leases.position(|lease| lease.is_of(hash, id)),
        }
    }

    /// The number and the cost of the leases that are held at `now`.
    #[inline]
    pub(super) fn held(&self, now: Tick) -> (u64, u64) {
        if now < self.soonest { (self.len() as u64, self.cost) } else { self.held_of_some(now) }
    }

    /// The same, if some leases may have expired.
    #[inline(never)]
    fn held_of_some(&self, now: Tick) -> (u64, u64) {
        if let Some(trees) = &self.trees {
            return trees.held(&self.leases, now);
        }
        let held = self.leases.iter().filter(|lease| lease.deadline() > now);
        held.fold((0, 0), |(count, cost), lease| (count + 1, cost + u64::from(lease.cost)))
    }

    /// The deadline by which leases of this cost will have expired, of those held at `now`; `None` if all cost less.
    pub(super) fn ends(&self, mut cost: u64, now: Tick) -> Option<Tick> {
        if let Some(trees) = &self.trees {
            return trees.ends(&self.leases, cost, now);
        }
        // Most callers wait for the lease that expires first.
        let held = || self.leases.iter().filter(|lease| lease.deadline() > now);
        let first = held().min_by_key(|lease| lease.deadline())?;
        if cost <= u64::from(first.cost) {
            return Some(first.deadline());
        }
        let mut in_order: Vec<_> = held().map(|lease| (lease.deadline(), lease.cost)).collect();
        in_order.sort_unstable();
        let last = in_order.into_iter().find(|(_, freed)| {
            cost = cost.saturating_sub(u64::from(*freed));
            cost == 0
        });
        last.map(|(deadline, _)| deadline)
    }

    /// The time from `now` until the last lease expires.
    pub(super) fn reset(&self, now: Tick) -> Span {
        if self.latest > now { self.latest.since(now) } else { Span::ZERO }
    }

    /// The latest deadline; the first tick if there are no leases.
    pub(super) fn latest(&self) -> Tick {
        self.latest
    }

    /// Removes up to `most` leases that have expired at `now`.
    pub(super) fn remove_expired(&mut self, now: Tick, most: usize) {
        for _ in 0..most {
            match self.first_expired(now) {
                Some(slot) => self.remove(slot),
                None => break,
            }
        }
    }

    /// Whether a lease may have expired at `now`.
    pub(super) fn may_have_expired(&self, now: Tick) -> bool {
        self.len() > 0 && now >= self.soonest
    }

    /// The slot of a lease that expires first, if it has expired at `now`.
    pub(super) fn first_expired(&mut self, now: Tick) -> Option<u32> {
        if now < self.soonest {
            return None;
        }
        let (slot, deadline) = self.soonest()?;
        self.soonest = deadline;
        (deadline <= now).then_some(slot)
    }

    /// The slot of a lease that expires first, and its deadline.
    fn soonest(&self) -> Option<(u32, Tick)> {
        let slot = if let Some(trees) = &self.trees {
            trees.first()
        } else {
            let soonest = self.leases.iter().map(Lease::deadline).min()?;
            self.leases.position(|lease| lease.deadline() == soonest)?
        };
        Some((slot, self.get(slot)?.deadline()))
    }

    /// All leases in the order of their deadlines, and of their ids if deadlines are equal.
    pub(super) fn in_order(&self) -> Vec<&Lease<K>> {
        if let Some(trees) = &self.trees {
            return trees.in_order(&self.leases);
        }
        let mut leases: Vec<&Lease<K>> = self.leases.iter().collect();
        leases.sort_unstable_by_key(|lease| ByDeadline::order(lease.key()));
        leases
    }

    /// The first leases that are held at `now`, at most `most`, in the order of [`Table::in_order`].
    pub(super) fn first_held(&self, now: Tick, most: usize) -> Vec<&Lease<K>> {
        if let Some(trees) = &self.trees {
            return trees.first_held(&self.leases, now, most);
        }
        let mut held: Vec<_> = self.leases.iter().filter(|lease| lease.deadline() > now).collect();
        held.sort_unstable_by_key(|lease| ByDeadline::order(lease.key()));
        held.truncate(most);
        held
    }

    /// Adds a lease whose id the table does not have.
    pub(super) fn add(&mut self, lease: Lease<K>) -> u32 {
        let slot = self.push(lease);
        if let Some(trees) = &mut self.trees {
            trees.push();
        }
        self.link::<ByDeadline>(slot);
        self.link::<ById>(slot);
        if self.trees.is_none() {
            self.grow_trees();
        }
        slot
    }

    fn link<T: OfTable<K>>(&mut self, slot: u32) {
        if let Some(trees) = &mut self.trees {
            trees.link::<T, _>(&self.leases, slot);
        }
    }

    fn unlink<T: OfTable<K>>(&mut self, slot: u32) {
        if let Some(trees) = &mut self.trees {
            trees.unlink::<T, _>(&self.leases, slot);
        }
    }

    /// Updates the latest deadline after a lease's deadline changed.
    fn set_latest(&mut self, before: Tick, after: Tick) {
        if after >= self.latest {
            self.latest = after;
        } else if before == self.latest {
            let latest = match &self.trees {
                Some(trees) => self.get(trees.last()).map(Lease::deadline),
                None => self.leases.iter().map(Lease::deadline).max(),
            };
            self.latest = latest.unwrap_or_default();
        }
    }

    /// Adds a lease to the slots, but not to the trees.
    pub(super) fn push(&mut self, lease: Lease<K>) -> u32 {
        let deadline = lease.deadline();
        self.id_bytes += size_class(lease.id.len());
        self.cost += u64::from(lease.cost);
        self.soonest = if self.len() == 0 { deadline } else { self.soonest.min(deadline) };
        self.latest = self.latest.max(deadline);
        self.leases.push(lease)
    }

    /// Makes the trees if there are more than few leases.
    pub(super) fn grow_trees(&mut self) {
        if self.len() > FEW {
            self.trees = Some(Box::new(Trees::grow(&self.leases)));
        }
    }

    /// Returns whether all ids differ.
    pub(super) fn ids_differ(&self) -> bool {
        let keys = || self.leases.iter().map(Lease::key);
        match &self.trees {
            Some(trees) => trees.ids_differ(&self.leases),
            None => keys().enumerate().all(|(slot, key)| keys().take(slot).all(|other| other.id != key.id)),
        }
    }

    /// Removes the lease in a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(trees) = &mut self.trees {
            trees.remove(&self.leases, slot);
        }
        if let Some(lease) = self.leases.swap_remove(slot) {
            self.id_bytes -= size_class(lease.id.len());
            self.cost -= u64::from(lease.cost);
            self.set_latest(lease.deadline(), Tick::default());
        }
        // Trees are made at `FEW` leases. This bound is far lower, so that they are not made and removed in turns.
        if self.len() < FEW / 4 {
            self.trees = None;
        }
    }

    /// The bytes that the table has allocated.
    pub(super) fn allocated(&self) -> usize {
        let trees = self.trees.as_ref().map_or(0, |trees| size_of::<Trees>() + trees.allocated());
        self.leases.allocated() + self.id_bytes + trees
    }

    /// Checks the trees, the order and the sums.
    #[cfg(test)]
    pub(super) fn audit(&self) {
        let leases = || self.leases.iter();
        let ids: usize = leases().map(|lease| size_class(lease.id.len())).sum();
        let cost: u64 = leases().map(|lease| u64::from(lease.cost)).sum();
        assert_eq!((self.id_bytes, self.cost), (ids, cost));
        assert!(leases().all(|lease| lease.deadline() >= self.soonest));
        assert_eq!(self.latest, leases().map(Lease::deadline).max().unwrap_or_default());
        let in_order: Vec<_> =
            self.in_order().into_iter().map(|lease| (lease.deadline(), &lease.id)).collect();
        assert_eq!(in_order.len(), self.len());
        assert!(in_order.is_sorted_by(|a, b| a < b));
        assert!(self.ids_differ());
        self.trees.iter().for_each(|trees| trees.audit(&self.leases));
    }
}

impl Table {
    /// Gives a lease this deadline. A lease that is not held at `now` also gets this cost. A lease that is not in the
    /// table is added.
    #[inline(always)]
    pub(super) fn hold(&mut self, id: &[u8], deadline: Tick, cost: u32, now: Tick) -> u32 {
        let key = Key { deadline, hash: hash(id), id };
        let Some(slot) = self.find_hashed(key.hash, id) else {
            return self.add(Lease::hashed(key, cost, ()));
        };
        self.unlink::<ByDeadline>(slot);
        let mut before = deadline;
        if let Some(lease) = self.leases.get_mut(slot) {
            before = lease.deadline();
            lease.set_deadline(deadline);
            let new = if before > now { lease.cost } else { cost };
            let old = replace(&mut lease.cost, new);
            self.cost = self.cost - u64::from(old) + u64::from(new);
        }
        self.link::<ByDeadline>(slot);
        self.soonest = self.soonest.min(deadline);
        self.set_latest(before, deadline);
        slot
    }
}
