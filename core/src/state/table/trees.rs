//! The search trees over the slots of a table of leases.
//!
//! The tree by deadline stores in each node the total cost of all leases below it. So the cost of the leases that are
//! held at an instant is a sum along one path.

use alloc::vec::Vec;
use core::cmp::Ordering;

#[cfg(test)]
use super::balance::audit;
use super::balance::{Forest, in_order};
use super::lease::Lease;
use super::node::{ByDeadline, ById, Links, NEW, NONE, Node, OfTable, Roots, Tree};
use super::slots::{Slots, number};
use crate::state::timeline::Tick;

/// Both trees.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    nodes: Slots<Node>,
    roots: Roots,
}

/// Searches.
impl Trees {
    /// The slot of the lease of this id.
    pub(super) fn find<K>(&self, leases: &Slots<Lease<K>>, hash: u64, id: &[u8]) -> Option<u32> {
        let mut slot = self.roots.by_id;
        loop {
            let key = leases.get(slot)?.key();
            let Links { left, right, .. } = self.nodes.get(slot)?.by_id;
            slot = match (hash, id).cmp(&(key.hash, key.id)) {
                Ordering::Less => left,
                Ordering::Equal => return Some(slot),
                Ordering::Greater => right,
            };
        }
    }

    /// The number and the cost of the leases that are held at `now`.
    pub(super) fn held<K>(&self, leases: &Slots<Lease<K>>, now: Tick) -> (u64, u64) {
        let (mut count, mut cost) = (0, 0);
        let mut slot = self.roots.by_deadline;
        while let Some((lease, node)) = leases.get(slot).zip(self.nodes.get(slot)) {
            let Links { left, right, .. } = node.by_deadline;
            if lease.deadline() > now {
                let later = self.nodes.get(right);
                count += 1 + later.map_or(0, |node| u64::from(node.by_deadline.size));
                cost += u64::from(lease.cost) + later.map_or(0, |node| node.total);
                slot = left;
            } else {
                slot = right;
            }
        }
        (count, cost)
    }

    /// The deadline by which leases of this cost will have expired, of those held at `now`; `None` if all cost less.
    pub(super) fn ends<K>(&self, leases: &Slots<Lease<K>>, cost: u64, now: Tick) -> Option<Tick> {
        let total = |slot| self.nodes.get(slot).map_or(0, |node| node.total);
        let mut slot = self.roots.by_deadline;
        // The sum over all leases up to that deadline, those that have expired at `now` included.
        let mut cost = (total(slot) - self.held(leases, now).1).checked_add(cost)?;
        loop {
            let lease = leases.get(slot)?;
            let Links { left, right, .. } = self.nodes.get(slot)?.by_deadline;
            let before = total(left);
            let through = before + u64::from(lease.cost);
            if cost <= before {
                slot = left;
            } else if cost <= through {
                return Some(lease.deadline());
            } else {
                cost -= through;
                slot = right;
            }
        }
    }

    /// The slot of the lease that expires first.
    pub(super) fn first(&self) -> u32 {
        self.end(|links| links.left)
    }

    /// The slot of the lease that expires last.
    pub(super) fn last(&self) -> u32 {
        self.end(|links| links.right)
    }

    fn end(&self, next: impl Fn(Links) -> u32) -> u32 {
        let mut slot = self.roots.by_deadline;
        while let Some(node) = self.nodes.get(slot) {
            match next(node.by_deadline) {
                NONE => break,
                below => slot = below,
            }
        }
        slot
    }

    /// All leases in the order of the tree by deadline.
    pub(super) fn in_order<'t, K>(&self, leases: &'t Slots<Lease<K>>) -> Vec<&'t Lease<K>> {
        let slots = in_order::<_, Slots<Lease<K>>, ByDeadline>(&self.nodes, self.roots.by_deadline);
        slots.into_iter().filter_map(|slot| leases.get(slot)).collect()
    }

    /// The first leases that are held at `now`, at most `most`, in the order of the tree by deadline.
    pub(super) fn first_held<'t, K>(
        &self,
        leases: &'t Slots<Lease<K>>,
        now: Tick,
        most: usize,
    ) -> Vec<&'t Lease<K>> {
        let mut held = Vec::new();
        self.collect_held(leases, self.roots.by_deadline, now, most, &mut held);
        held
    }

    fn collect_held<'t, K>(
        &self,
        leases: &'t Slots<Lease<K>>,
        slot: u32,
        now: Tick,
        most: usize,
        held: &mut Vec<&'t Lease<K>>,
    ) {
        if held.len() >= most {
            return;
        }
        let Some((lease, node)) = leases.get(slot).zip(self.nodes.get(slot)) else { return };
        let Links { left, right, .. } = node.by_deadline;
        // Those on the left of an expired lease have expired too.
        if lease.deadline() > now {
            self.collect_held(leases, left, now, most, held);
            if held.len() < most {
                held.push(lease);
            }
        }
        self.collect_held(leases, right, now, most, held);
    }

    /// Returns whether all ids differ.
    pub(super) fn ids_differ<K>(&self, leases: &Slots<Lease<K>>) -> bool {
        let slots = in_order::<_, Slots<Lease<K>>, ById>(&self.nodes, self.roots.by_id);
        slots.is_sorted_by(|a, b| ById::key(leases, *a) < ById::key(leases, *b))
    }

    /// The bytes that the trees have allocated.
    pub(super) fn allocated(&self) -> usize {
        self.nodes.allocated()
    }
}

/// Changes.
impl Trees {
    /// Makes the trees of a table, perfectly balanced.
    pub(super) fn grow<K>(leases: &Slots<Lease<K>>) -> Trees {
        let mut trees = Trees { nodes: Slots::default(), roots: Roots { by_deadline: NONE, by_id: NONE } };
        let mut slots: Vec<u32> = leases.iter().map(|_| trees.nodes.push(NEW)).collect();
        slots.sort_unstable_by_key(|slot| ByDeadline::key(leases, *slot));
        trees.roots.by_deadline = Forest { nodes: &mut trees.nodes, leases }.grow::<ByDeadline>(&slots);
        slots.sort_unstable_by_key(|slot| ById::key(leases, *slot));
        trees.roots.by_id = Forest { nodes: &mut trees.nodes, leases }.grow::<ById>(&slots);
        trees
    }

    /// Makes room for the table's last slot, which is then linked to both trees.
    pub(super) fn push(&mut self) {
        self.nodes.push(NEW);
    }

    /// Adds a slot to a tree.
    pub(super) fn link<T: OfTable<K>, K>(&mut self, leases: &Slots<Lease<K>>, slot: u32) {
        let root = *T::root(&mut self.roots);
        *T::root(&mut self.roots) = Forest { nodes: &mut self.nodes, leases }.link::<T>(root, slot);
    }

    /// Takes a slot out of a tree.
    pub(super) fn unlink<T: OfTable<K>, K>(&mut self, leases: &Slots<Lease<K>>, slot: u32) {
        let root = *T::root(&mut self.roots);
        *T::root(&mut self.roots) = Forest { nodes: &mut self.nodes, leases }.unlink::<T>(root, slot);
    }

    /// Removes a slot, into which the last lease will move.
    pub(super) fn remove<K>(&mut self, leases: &Slots<Lease<K>>, slot: u32) {
        self.unlink::<ByDeadline, _>(leases, slot);
        self.unlink::<ById, _>(leases, slot);
        let last = number(leases.len()).saturating_sub(1);
        if slot != last {
            self.rename::<ByDeadline, _>(leases, last, slot);
            self.rename::<ById, _>(leases, last, slot);
        }
        self.nodes.swap_remove(slot);
    }

    /// Makes a tree refer to a lease by the slot `to`, to which it will move.
    fn rename<T: OfTable<K>, K>(&mut self, leases: &Slots<Lease<K>>, from: u32, to: u32) {
        let root = *T::root(&mut self.roots);
        *T::root(&mut self.roots) = Forest { nodes: &mut self.nodes, leases }.rename::<T>(root, from, to);
    }
}

#[cfg(test)]
impl Trees {
    /// Checks the order, the balance and the sums of both trees.
    pub(super) fn audit<K>(&self, leases: &Slots<Lease<K>>) {
        assert_eq!(self.nodes.len(), leases.len());
        for slots in [
            audit::<_, _, ByDeadline>(&self.nodes, leases, self.roots.by_deadline),
            audit::<_, _, ById>(&self.nodes, leases, self.roots.by_id),
        ] {
            assert_eq!(slots.len(), leases.len());
        }
    }
}
