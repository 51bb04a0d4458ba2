//! Leases in dense slots, found through two search trees.
//!
//! One tree is ordered by deadline, the other by the hash of the id; `lease_trees.rs` has their operations. A table of few
//! leases has no trees: reading all slots is then faster.
//!
//! Slots are grouped into small blocks, so a table never moves as a whole when it grows. The last lease moves into the
//! slot of a lease that is removed. So a table has no more blocks than its leases need.
//!
//! ```text
//! blocks      [ a:9 c:4 x:7 k:2 ] [ b:8 ]       id and deadline; blocks of four for this example
//! by deadline k c x b a
//! by id       x a k b c                         in the order of hashes
//! remove c    [ a:9 b:8 x:7 k:2 ]               b moves into the slot of c
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem::replace;

use super::lease_trees::{ByDeadline, ById, Key, LEAF, Links, NONE, Roots, Tree};
use super::timeline::Tick;

/// The most leases without trees.
const FEW: usize = 64;

/// The leases of a full block.
const BLOCK: usize = 128;

/// The most leases by which a block grows, so that a table has little memory to spare.
const GROWTH: usize = 24;

/// The fewest leases for which a block that is not the first one has room.
const LEAST: usize = 8;

/// A lease that was taken.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The lease is held before this tick: `era` and `micros`. Two fields leave no gap in the struct.
    era: u32,
    pub(super) cost: u32,
    micros: u64,
    /// The cost of this lease and of all below it in the tree by deadline.
    pub(super) total: u64,
    /// Of the id. Leases are found by it first, so ids are seldom compared.
    pub(super) hash: u64,
    pub(super) id: Box<[u8]>,
    pub(super) by_deadline: Links,
    pub(super) by_id: Links,
}

impl Lease {
    pub(super) fn new(id: &[u8], deadline: Tick, cost: u32) -> Lease {
        let Tick { era, micros } = deadline;
        let total = u64::from(cost);
        Lease { era, cost, micros, total, hash: hash(id), id: Box::from(id), by_deadline: LEAF, by_id: LEAF }
    }

    fn is_of(&self, hash: u64, id: &[u8]) -> bool {
        self.hash == hash && self.id.as_ref() == id
    }

    pub(super) fn deadline(&self) -> Tick {
        Tick { era: self.era, micros: self.micros }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { deadline: self.deadline(), hash: self.hash, id: &self.id }
    }
}

/// A table of leases, expired ones included.
#[derive(Clone, Default, Debug)]
pub(super) struct Table {
    /// All blocks but the last are full.
    blocks: Vec<Vec<Lease>>,
    /// The bytes that are allocated for ids.
    id_bytes: usize,
    /// The cost of all leases.
    cost: u64,
    /// No lease expires before this tick.
    soonest: Tick,
    /// The latest deadline of all leases.
    latest: Tick,
    /// `None` if there are few leases.
    pub(super) roots: Option<Roots>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        let last = self.blocks.last().map_or(0, Vec::len);
        self.blocks.len().saturating_sub(1) * BLOCK + last
    }

    /// The lease in a slot.
    pub(super) fn get(&self, slot: u32) -> Option<&Lease> {
        let slot = slot as usize;
        self.blocks.get(slot / BLOCK)?.get(slot % BLOCK)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Lease> {
        let slot = slot as usize;
        self.blocks.get_mut(slot / BLOCK)?.get_mut(slot % BLOCK)
    }

    /// The slot of the lease of this id.
    pub(super) fn find(&self, id: &[u8]) -> Option<u32> {
        self.find_hashed(hash(id), id)
    }

    fn find_hashed(&self, hash: u64, id: &[u8]) -> Option<u32> {
        match self.roots {
            Some(Roots { by_id, .. }) => self.find_below(by_id, hash, id),
            None => self.position(|lease| lease.is_of(hash, id)),
        }
    }

    /// The number and the cost of the leases that are held at `now`.
    pub(super) fn held(&self, now: Tick) -> (u64, u64) {
        if now < self.soonest {
            return (self.len() as u64, self.cost);
        }
        if let Some(Roots { by_deadline, .. }) = self.roots {
            return self.held_below(by_deadline, now);
        }
        let held = self.iter().filter(|lease| lease.deadline() > now);
        held.fold((0, 0), |(count, cost), lease| (count + 1, cost + u64::from(lease.cost)))
    }

    /// The deadline by which leases of this cost will have expired, of those held at `now`; `None` if all cost less.
    pub(super) fn ends(&self, mut cost: u64, now: Tick) -> Option<Tick> {
        if let Some(Roots { by_deadline, .. }) = self.roots {
            return self.ends_below(by_deadline, cost, now);
        }
        // Most callers wait for the lease that expires first.
        let held = || self.iter().filter(|lease| lease.deadline() > now);
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

    /// The latest deadline; the first tick if there are no leases.
    pub(super) fn latest(&self) -> Tick {
        self.latest
    }

    /// Removes up to `most` leases that have expired at `now`.
    pub(super) fn remove_expired(&mut self, now: Tick, most: usize) {
        if now < self.soonest {
            return;
        }
        for _ in 0..most {
            match self.soonest() {
                Some((slot, deadline)) if deadline <= now => self.remove(slot),
                _ => break,
            }
        }
        if let Some((_, deadline)) = self.soonest() {
            self.soonest = deadline;
        }
    }

    /// The slot of a lease that expires first, and its deadline.
    fn soonest(&self) -> Option<(u32, Tick)> {
        if let Some(Roots { by_deadline, .. }) = self.roots {
            let slot = self.first_below(by_deadline);
            return Some((slot, self.get(slot)?.deadline()));
        }
        let (slot, lease) = self.iter().enumerate().min_by_key(|(_, lease)| lease.deadline())?;
        Some((u32::try_from(slot).ok()?, lease.deadline()))
    }

    /// All leases in the order of their deadlines, and of their ids if deadlines are equal.
    pub(super) fn in_order(&self) -> Vec<&Lease> {
        let mut leases = Vec::with_capacity(self.len());
        if let Some(Roots { by_deadline, .. }) = self.roots {
            self.collect_below(by_deadline, &mut leases);
        } else {
            leases.extend(self.iter());
            leases.sort_unstable_by(|a, b| ByDeadline::order(a.key(), b.key()));
        }
        leases
    }

    /// Gives a lease this deadline. A lease that is not held at `now` also gets this cost. A lease that is not in the
    /// table is added.
    pub(super) fn hold(&mut self, id: &[u8], deadline: Tick, cost: u32, now: Tick) {
        let key = Key { deadline, hash: hash(id), id };
        let Some(slot) = self.find_hashed(key.hash, id) else {
            return self.add(key, cost);
        };
        self.unlink::<ByDeadline>(slot);
        let mut before = deadline;
        if let Some(lease) = self.get_mut(slot) {
            before = lease.deadline();
            (lease.era, lease.micros) = (deadline.era, deadline.micros);
            let new = if before > now { lease.cost } else { cost };
            let old = replace(&mut lease.cost, new);
            self.cost = self.cost - u64::from(old) + u64::from(new);
        }
        self.link::<ByDeadline>(slot);
        self.soonest = self.soonest.min(deadline);
        self.set_latest(before, deadline);
    }

    fn add(&mut self, key: Key<'_>, cost: u32) {
        let slot = self.push(Lease::new(key.id, key.deadline, cost));
        self.link::<ByDeadline>(slot);
        self.link::<ById>(slot);
        if self.roots.is_none() && self.len() > FEW {
            self.grow_trees();
        }
    }

    /// Updates the latest deadline after a lease's deadline changed.
    fn set_latest(&mut self, before: Tick, after: Tick) {
        if after >= self.latest {
            self.latest = after;
        } else if before == self.latest {
            let latest = match self.roots {
                Some(Roots { by_deadline, .. }) => {
                    self.get(self.last_below(by_deadline)).map(Lease::deadline)
                }
                None => self.iter().map(Lease::deadline).max(),
            };
            self.latest = latest.unwrap_or_default();
        }
    }

    /// Adds a lease to the slots, but not to the trees.
    pub(super) fn push(&mut self, lease: Lease) -> u32 {
        let slot = self.len();
        self.id_bytes += size_class(lease.id.len());
        self.cost += u64::from(lease.cost);
        self.soonest = if slot == 0 { lease.deadline() } else { self.soonest.min(lease.deadline()) };
        self.latest = self.latest.max(lease.deadline());
        if slot.is_multiple_of(BLOCK) {
            if self.blocks.is_empty() {
                self.blocks.reserve_exact(1);
            }
            self.blocks.push(Vec::new());
        }
        if let Some(block) = self.blocks.last_mut() {
            if block.len() == block.capacity() {
                // Most tables hold one or two leases.
                let least = if slot < BLOCK { 1 } else { LEAST };
                block.reserve_exact(block.len().clamp(least, GROWTH).min(BLOCK - block.len()));
            }
            block.push(lease);
        }
        u32::try_from(slot).unwrap_or(NONE)
    }

    /// Makes the trees if there are more than few leases. Returns `None` if two leases have the same id.
    pub(super) fn check(&mut self) -> Option<()> {
        if self.len() > FEW {
            return self.grow_trees();
        }
        let twice = self
            .iter()
            .enumerate()
            .any(|(slot, lease)| self.iter().take(slot).any(|other| other.id == lease.id));
        (!twice).then_some(())
    }

    /// Removes the lease in a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        self.unlink::<ByDeadline>(slot);
        self.unlink::<ById>(slot);
        let last = u32::try_from(self.len()).unwrap_or(NONE).saturating_sub(1);
        if slot != last {
            self.rename::<ByDeadline>(last, slot);
            self.rename::<ById>(last, slot);
        }
        let moved = self.blocks.last_mut().and_then(Vec::pop);
        let removed = match self.get_mut(slot) {
            Some(lease) => moved.map(|moved| replace(lease, moved)),
            None => moved,
        };
        if let Some(lease) = removed {
            self.id_bytes -= size_class(lease.id.len());
            self.cost -= u64::from(lease.cost);
            self.set_latest(lease.deadline(), Tick::default());
        }
        self.shrink();
        // Trees are made at `FEW` leases. This bound is far lower, so that they are not made and removed in turns.
        if self.len() < FEW / 4 {
            self.roots = None;
        }
    }

    /// Frees memory that is not needed.
    fn shrink(&mut self) {
        if let Some(last) = self.blocks.last_mut() {
            let spare = last.capacity() - last.len();
            if last.is_empty() {
                self.blocks.pop();
            } else if spare > (3 * last.len()).clamp(LEAST, GROWTH) {
                last.shrink_to(last.len() + last.len().min(GROWTH / 2));
            }
        }
        if self.blocks.capacity() > 4 * self.blocks.len() {
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }

    /// The bytes that the table has allocated.
    pub(super) fn allocated(&self) -> usize {
        let last = self.blocks.last().map_or(0, Vec::capacity);
        let slots = self.blocks.len().saturating_sub(1) * BLOCK + last;
        self.blocks.capacity() * size_of::<Vec<Lease>>() + slots * size_of::<Lease>() + self.id_bytes
    }

    /// All leases in the order of their slots.
    fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.blocks.iter().flatten()
    }

    fn position(&self, wanted: impl Fn(&Lease) -> bool) -> Option<u32> {
        self.iter().position(wanted).and_then(|slot| u32::try_from(slot).ok())
    }

    /// Compares the leases in two slots in the order of a tree.
    pub(super) fn compare<T: Tree>(&self, a: u32, b: u32) -> Ordering {
        match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => T::order(a.key(), b.key()),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }

    /// Checks the trees, the order and the sums.
    #[cfg(test)]
    pub(super) fn audit(&self) {
        assert!(
            self.blocks.iter().rev().skip(1).all(|block| block.len() == BLOCK && block.capacity() == BLOCK)
        );
        assert!(self.blocks.last().is_none_or(|last| !last.is_empty()));
        let ids: usize = self.iter().map(|lease| size_class(lease.id.len())).sum();
        let cost: u64 = self.iter().map(|lease| u64::from(lease.cost)).sum();
        assert_eq!((self.id_bytes, self.cost), (ids, cost));
        assert!(self.iter().all(|lease| lease.deadline() >= self.soonest));
        assert_eq!(self.latest, self.iter().map(Lease::deadline).max().unwrap_or_default());
        let in_order = self.in_order();
        assert_eq!(in_order.len(), self.len());
        let order = |a: &Lease, b: &Lease| ByDeadline::order(a.key(), b.key());
        assert!(in_order.is_sorted_by(|a, b| order(a, b) == Ordering::Less));
        self.audit_trees();
    }
}

/// A hash that differs for most ids. Ids of equal hashes only take longer to find, so it needs no secret.
fn hash(id: &[u8]) -> u64 {
    let (words, rest) = id.as_chunks::<8>();
    let rest = rest.iter().fold(id.len() as u64, |word, byte| word << 8 | u64::from(*byte));
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.chain([rest]).fold(0, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

/// The bytes that jemalloc allocates for this many: the next of its sizes, which has four per doubling.
fn size_class(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16))
}
