//! Leases in dense slots, found through two search trees.
//!
//! One tree is ordered by deadline, the other by id; `lease_trees.rs` has their operations. A table of few leases has no
//! trees: reading all slots is then faster.
//!
//! Slots are grouped into small blocks, so a table never moves as a whole when it grows. The last lease moves into the
//! slot of a lease that is removed. So a table has no more blocks than its leases need.
//!
//! ```text
//! blocks      [ a:9 c:4 x:7 k:2 ] [ b:8 ]        id and deadline; blocks of four for this example
//! by deadline k c x b a
//! by id       a b c k x
//! remove c    [ a:9 b:8 x:7 k:2 ]                b moves into the slot of c
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::lease_trees::{ByDeadline, ById, LEAF, Links, NONE, Roots, Tree};
use super::timeline::Tick;

/// The most leases without trees.
pub(super) const FEW: usize = 16;

/// The leases of a block. It bounds the memory that a table has to spare.
const BLOCK: usize = 32;

/// A lease that was taken.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The lease is held before this tick: `era` and `micros`. Two fields leave no gap in the struct.
    era: u32,
    pub(super) cost: u32,
    micros: u64,
    /// The cost of this lease and of all below it in the tree by deadline.
    pub(super) total: u64,
    pub(super) id: Box<[u8]>,
    pub(super) by_deadline: Links,
    pub(super) by_id: Links,
}

impl Lease {
    pub(super) fn new(id: &[u8], deadline: Tick, cost: u32) -> Lease {
        let Tick { era, micros } = deadline;
        let total = u64::from(cost);
        Lease { era, cost, micros, total, id: Box::from(id), by_deadline: LEAF, by_id: LEAF }
    }

    pub(super) fn deadline(&self) -> Tick {
        Tick { era: self.era, micros: self.micros }
    }
}

/// A table of leases, expired ones included.
#[derive(Clone, Default, Debug)]
pub(super) struct Table {
    /// All blocks but the last are full.
    blocks: Vec<Vec<Lease>>,
    /// The bytes that are allocated for ids.
    id_bytes: usize,
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
        match self.roots {
            Some(Roots { by_id, .. }) => self.find_below(by_id, id),
            None => self.position(|lease| lease.id.as_ref() == id),
        }
    }

    /// The number and the cost of the leases that are held at `now`.
    pub(super) fn held(&self, now: Tick) -> (u64, u64) {
        if let Some(Roots { by_deadline, .. }) = self.roots {
            return self.held_below(by_deadline, now);
        }
        let held = self.iter().filter(|lease| lease.deadline() > now);
        held.fold((0, 0), |(count, cost), lease| (count + 1, cost + u64::from(lease.cost)))
    }

    /// The deadline by which leases of this cost will have expired, of those held at `now`; `None` if all cost less.
    pub(super) fn ends(&self, cost: u64, now: Tick) -> Option<Tick> {
        if let Some(Roots { by_deadline, .. }) = self.roots {
            return self.ends_below(by_deadline, cost, now);
        }
        let mut left = cost;
        let in_order = self.in_order();
        let mut held = in_order.iter().filter(|lease| lease.deadline() > now);
        let last = held.find(|lease| {
            left = left.saturating_sub(lease.cost.into());
            left == 0
        });
        last.map(|lease| lease.deadline())
    }

    /// The latest deadline.
    pub(super) fn latest(&self) -> Option<Tick> {
        match self.roots {
            Some(Roots { by_deadline, .. }) => self.last_below(by_deadline).map(Lease::deadline),
            None => self.iter().map(Lease::deadline).max(),
        }
    }

    /// The slot of a lease that has expired at `now`.
    pub(super) fn expired(&self, now: Tick) -> Option<u32> {
        let expired = |lease: &Lease| lease.deadline() <= now;
        match self.roots {
            Some(Roots { by_deadline, .. }) => {
                let first = self.first_below(by_deadline);
                self.get(first).is_some_and(expired).then_some(first)
            }
            None => self.position(expired),
        }
    }

    /// All leases in the order of their deadlines, and of their ids if deadlines are equal.
    pub(super) fn in_order(&self) -> Vec<&Lease> {
        let mut leases = Vec::with_capacity(self.len());
        if let Some(Roots { by_deadline, .. }) = self.roots {
            self.collect_below(by_deadline, &mut leases);
        } else {
            leases.extend(self.iter());
            leases.sort_unstable_by(|a, b| ByDeadline::order(a, b));
        }
        leases
    }

    /// Gives a lease this deadline and cost. A lease that is not in the table is added.
    pub(super) fn hold(&mut self, id: &[u8], deadline: Tick, cost: u32) {
        let Some(slot) = self.find(id) else {
            let slot = self.push(Lease::new(id, deadline, cost));
            self.link::<ByDeadline>(slot);
            self.link::<ById>(slot);
            if self.roots.is_none() && self.len() > FEW {
                self.grow_trees();
            }
            return;
        };
        self.unlink::<ByDeadline>(slot);
        if let Some(lease) = self.get_mut(slot) {
            (lease.era, lease.micros, lease.cost) = (deadline.era, deadline.micros, cost);
        }
        self.link::<ByDeadline>(slot);
    }

    /// Adds a lease to the slots, but not to the trees.
    pub(super) fn push(&mut self, lease: Lease) -> u32 {
        let slot = self.len();
        self.id_bytes += size_class(lease.id.len());
        if slot.is_multiple_of(BLOCK) {
            if self.blocks.is_empty() {
                self.blocks.reserve_exact(1);
            }
            self.blocks.push(Vec::new());
        }
        if let Some(block) = self.blocks.last_mut() {
            if block.len() == block.capacity() {
                // Most tables hold one or two leases.
                block.reserve_exact(block.len().clamp(1, BLOCK - block.len()));
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
            Some(lease) => moved.map(|moved| core::mem::replace(lease, moved)),
            None => moved,
        };
        self.id_bytes -= removed.map_or(0, |lease| size_class(lease.id.len()));
        self.shrink();
        // Trees are made at `FEW` leases. This bound is far lower, so that they are not made and removed in turns.
        if self.len() < FEW / 4 {
            self.roots = None;
        }
    }

    /// Frees memory that is not needed.
    fn shrink(&mut self) {
        match self.blocks.last_mut() {
            Some(last) if last.is_empty() => _ = self.blocks.pop(),
            Some(last) if last.capacity() > 4 * last.len() => last.shrink_to(2 * last.len()),
            _ => {}
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
            (Some(a), Some(b)) => T::order(a, b),
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
        assert_eq!(self.id_bytes, ids);
        let in_order = self.in_order();
        assert_eq!(in_order.len(), self.len());
        assert!(in_order.is_sorted_by(|a, b| ByDeadline::order(a, b) == Ordering::Less));
        self.audit_trees();
    }
}

/// The bytes that jemalloc allocates for this many: the next of its sizes, which has four per doubling.
fn size_class(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16))
}
