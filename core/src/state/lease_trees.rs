//! The search trees over the slots of a table of leases.
//!
//! The tree by deadline stores in each lease the total cost of all leases below it. So the cost of the leases that are
//! held at an instant is a sum along one path.
//!
//! The trees are weight-balanced: no subtree outweighs its sibling more than three times. So every operation takes
//! O(log n) in any order of operations, and a tree of 100 million leases has at most 65 levels. Source of the two
//! constants, with a proof: Hirai and Yamamoto, "Balancing weight-balanced trees",
//! <https://doi.org/10.1017/S0956796811000104>.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::lease_table::{Lease, Table};
use super::timeline::Tick;

/// How many times a subtree may outweigh its sibling.
const BALANCE: u64 = 3;
/// A single rotation balances a tree if the inner grandchild is less than this many times as heavy as the outer one.
const SINGLE: u64 = 2;

/// More than the leases on any path from a root. 2^32 leases are at most 78 levels.
const DEPTH: usize = 80;

/// No slot: an empty tree.
pub(super) const NONE: u32 = u32::MAX;

pub(super) const LEAF: Links = Links { left: NONE, right: NONE, size: 1 };

/// The place of a lease in a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Links {
    left: u32,
    right: u32,
    /// The number of leases in this subtree.
    size: u32,
}

/// The slots at the roots of both trees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roots {
    pub(super) by_deadline: u32,
    pub(super) by_id: u32,
}

/// What the orders of the trees depend on.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) deadline: Tick,
    /// Of the id.
    pub(super) hash: u64,
    pub(super) id: &'a [u8],
}

/// One of the trees.
pub(super) trait Tree {
    /// Whether [`Lease::total`] is the sum over this tree.
    const TOTALS: bool;

    /// The tree's order of leases.
    fn order(a: Key<'_>, b: Key<'_>) -> Ordering;
    fn links(lease: &Lease) -> Links;
    fn links_mut(lease: &mut Lease) -> &mut Links;
    fn root(roots: &mut Roots) -> &mut u32;
}

/// The tree in the order of deadlines, and of ids if deadlines are equal.
pub(super) struct ByDeadline;

/// The tree in the order of the hashes of ids, and of ids if hashes are equal.
pub(super) struct ById;

impl Tree for ByDeadline {
    const TOTALS: bool = true;

    fn order(a: Key<'_>, b: Key<'_>) -> Ordering {
        (a.deadline, a.id).cmp(&(b.deadline, b.id))
    }

    fn links(lease: &Lease) -> Links {
        lease.by_deadline
    }

    fn links_mut(lease: &mut Lease) -> &mut Links {
        &mut lease.by_deadline
    }

    fn root(roots: &mut Roots) -> &mut u32 {
        &mut roots.by_deadline
    }
}

impl Tree for ById {
    const TOTALS: bool = false;

    fn order(a: Key<'_>, b: Key<'_>) -> Ordering {
        (a.hash, a.id).cmp(&(b.hash, b.id))
    }

    fn links(lease: &Lease) -> Links {
        lease.by_id
    }

    fn links_mut(lease: &mut Lease) -> &mut Links {
        &mut lease.by_id
    }

    fn root(roots: &mut Roots) -> &mut u32 {
        &mut roots.by_id
    }
}

/// A path from a root.
struct Path {
    above: [u32; DEPTH],
    depth: usize,
    /// Whether it goes on to the left of its last lease.
    left: bool,
}

impl Path {
    /// The leases from the root to the parent of the path's end.
    fn above(&self) -> &[u32] {
        self.above.get(..self.depth).unwrap_or(&[])
    }
}

/// Searches. Each starts at the root of a tree.
impl Table {
    pub(super) fn find_below(&self, mut slot: u32, hash: u64, id: &[u8]) -> Option<u32> {
        loop {
            let lease = self.get(slot)?;
            slot = match (hash, id).cmp(&(lease.hash, &lease.id)) {
                Ordering::Less => lease.by_id.left,
                Ordering::Equal => return Some(slot),
                Ordering::Greater => lease.by_id.right,
            };
        }
    }

    /// The number and the cost of the leases that are held at `now`.
    pub(super) fn held_below(&self, mut slot: u32, now: Tick) -> (u64, u64) {
        let (mut count, mut cost) = (0, 0);
        while let Some(lease) = self.get(slot) {
            let Links { left, right, .. } = lease.by_deadline;
            if lease.deadline() > now {
                count += 1 + self.size::<ByDeadline>(right);
                cost += u64::from(lease.cost) + self.total(right);
                slot = left;
            } else {
                slot = right;
            }
        }
        (count, cost)
    }

    /// The deadline by which leases of this cost will have expired, of those held at `now`.
    pub(super) fn ends_below(&self, mut slot: u32, cost: u64, now: Tick) -> Option<Tick> {
        // The sum over all leases up to that deadline, those that have expired at `now` included.
        let expired = self.total(slot) - self.held_below(slot, now).1;
        let mut cost = expired.checked_add(cost)?;
        loop {
            let lease = self.get(slot)?;
            let Links { left, right, .. } = lease.by_deadline;
            let before = self.total(left);
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
    pub(super) fn first_below(&self, root: u32) -> u32 {
        self.end_below(root, |links| links.left)
    }

    /// The slot of the lease that expires last.
    pub(super) fn last_below(&self, root: u32) -> u32 {
        self.end_below(root, |links| links.right)
    }

    fn end_below(&self, root: u32, next: impl Fn(Links) -> u32) -> u32 {
        let mut slot = root;
        while let Some(lease) = self.get(slot) {
            match next(lease.by_deadline) {
                NONE => break,
                below => slot = below,
            }
        }
        slot
    }

    /// Collects all leases in the order of the tree by deadline.
    pub(super) fn collect_below<'t>(&'t self, slot: u32, leases: &mut Vec<&'t Lease>) {
        if let Some(lease) = self.get(slot) {
            self.collect_below(lease.by_deadline.left, leases);
            leases.push(lease);
            self.collect_below(lease.by_deadline.right, leases);
        }
    }

    fn size<T: Tree>(&self, slot: u32) -> u64 {
        self.get(slot).map_or(0, |lease| T::links(lease).size.into())
    }

    fn total(&self, slot: u32) -> u64 {
        self.get(slot).map_or(0, |lease| lease.total)
    }
}

/// Changes. Without trees they do nothing.
impl Table {
    /// Makes both trees, perfectly balanced. Returns `None` if two leases have the same id.
    pub(super) fn grow_trees(&mut self) -> Option<()> {
        let mut slots: Vec<u32> = (0..u32::try_from(self.len()).ok()?).collect();
        slots.sort_unstable_by(|a, b| self.compare::<ByDeadline>(*a, *b));
        let by_deadline = self.grow::<ByDeadline>(&slots);
        slots.sort_unstable_by(|a, b| self.compare::<ById>(*a, *b));
        let differ = slots.is_sorted_by(|a, b| self.compare::<ById>(*a, *b) == Ordering::Less);
        let by_id = self.grow::<ById>(&slots);
        self.roots = Some(Roots { by_deadline, by_id });
        differ.then_some(())
    }

    /// Makes a tree of slots that are in its order, and returns its root.
    fn grow<T: Tree>(&mut self, slots: &[u32]) -> u32 {
        let (left, right) = slots.split_at(slots.len() / 2);
        let Some((root, right)) = right.split_first() else {
            return NONE;
        };
        let (left, right) = (self.grow::<T>(left), self.grow::<T>(right));
        self.set::<T>(*root, left, right);
        *root
    }

    /// Adds a slot to a tree.
    pub(super) fn link<T: Tree>(&mut self, slot: u32) {
        let Some((mut roots, lease)) = self.roots.zip(self.get(slot)) else { return };
        let cost = u64::from(lease.cost);
        let path = self.path::<T>(roots, lease.key());
        self.set::<T>(slot, NONE, NONE);
        let parent = path.above().last().and_then(|parent| self.get_mut(*parent)).map(T::links_mut);
        if let Some(links) = parent {
            *(if path.left { &mut links.left } else { &mut links.right }) = slot;
        }
        *T::root(&mut roots) = self.ascend::<T>(path.above(), slot, 1, |total| total.wrapping_add(cost));
        self.roots = Some(roots);
    }

    /// Takes a slot out of a tree.
    pub(super) fn unlink<T: Tree>(&mut self, slot: u32) {
        let Some((mut roots, lease)) = self.roots.zip(self.get(slot)) else { return };
        let (Links { left, right, .. }, cost) = (T::links(lease), u64::from(lease.cost));
        let path = self.path::<T>(roots, lease.key());
        let rest = self.join::<T>(left, right);
        if let Some(parent) = path.above().last() {
            self.replace_child::<T>(*parent, slot, rest);
        }
        let less_one = u32::MAX;
        *T::root(&mut roots) =
            self.ascend::<T>(path.above(), rest, less_one, |total| total.wrapping_sub(cost));
        self.roots = Some(roots);
    }

    /// The path to a key: to the lease that has it, or to where it would be.
    fn path<T: Tree>(&self, mut roots: Roots, key: Key<'_>) -> Path {
        let mut path = Path { above: [NONE; DEPTH], depth: 0, left: false };
        let mut at = *T::root(&mut roots);
        while let Some((step, lease)) = path.above.get_mut(path.depth).zip(self.get(at)) {
            let order = T::order(key, lease.key());
            if order == Ordering::Equal {
                break;
            }
            *step = at;
            path.depth += 1;
            path.left = order == Ordering::Less;
            let links = T::links(lease);
            at = if path.left { links.left } else { links.right };
        }
        path
    }

    /// Updates the leases of a path, below which `child` was added or removed, and rotates where one side became too
    /// heavy. Returns the new root.
    fn ascend<T: Tree>(&mut self, above: &[u32], child: u32, change: u32, total: impl Fn(u64) -> u64) -> u32 {
        let (mut old, mut new) = (child, child);
        let mut side = self.size::<T>(child);
        for at in above.iter().rev() {
            let Some(lease) = self.get_mut(*at) else { continue };
            if T::TOTALS {
                lease.total = total(lease.total);
            }
            let links = T::links_mut(lease);
            links.size = links.size.wrapping_add(change);
            if old != new {
                *(if links.left == old { &mut links.left } else { &mut links.right }) = new;
            }
            let Links { left, right, size } = *links;
            let size = u64::from(size);
            // The weights of both sides: one more than their sizes.
            let (one, other) = (side + 1, size - side);
            (old, new) = (*at, *at);
            if one > BALANCE * other || other > BALANCE * one {
                new = self.balance::<T>(*at, left, right);
            }
            side = size;
        }
        new
    }

    /// Makes a tree refer to another child.
    fn replace_child<T: Tree>(&mut self, parent: u32, old: u32, new: u32) {
        if let Some(links) = self.get_mut(parent).map(T::links_mut) {
            *(if links.left == old { &mut links.left } else { &mut links.right }) = new;
        }
    }

    /// Makes a tree refer to a lease by the slot `to`, to which it will move.
    pub(super) fn rename<T: Tree>(&mut self, from: u32, to: u32) {
        if let Some(mut roots) = self.roots {
            *T::root(&mut roots) = self.renamed::<T>(*T::root(&mut roots), from, to);
            self.roots = Some(roots);
        }
    }

    fn renamed<T: Tree>(&mut self, root: u32, from: u32, to: u32) -> u32 {
        if root == from {
            return to;
        }
        let mut slot = root;
        while let Some(lease) = self.get(slot) {
            let Links { left, right, .. } = T::links(lease);
            let next = if self.compare::<T>(from, slot) == Ordering::Less { left } else { right };
            if next == from {
                self.replace_child::<T>(slot, from, to);
                break;
            }
            slot = next;
        }
        root
    }

    /// Makes one tree of two that were siblings.
    fn join<T: Tree>(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE {
            return right;
        }
        match self.take_first::<T>(right) {
            None => left,
            Some((first, rest)) => self.balance::<T>(first, left, rest),
        }
    }

    /// Takes the first slot out of a tree, and returns it and the rest.
    fn take_first<T: Tree>(&mut self, root: u32) -> Option<(u32, u32)> {
        let Links { left, right, .. } = self.get(root).map(T::links)?;
        Some(match self.take_first::<T>(left) {
            None => (root, right),
            Some((first, left)) => (first, self.balance::<T>(root, left, right)),
        })
    }

    /// Gives a slot these subtrees, and rotates if one of them is too heavy. Returns the new root.
    fn balance<T: Tree>(&mut self, root: u32, left: u32, right: u32) -> u32 {
        let weight = |table: &Table, slot| table.size::<T>(slot) + 1;
        let heavy = |table: &Table, slot, than| weight(table, slot) > BALANCE * weight(table, than);
        let links = |table: &Table, slot| table.get(slot).map_or(LEAF, T::links);
        if heavy(self, right, left) {
            let Links { left: inner, right: outer, .. } = links(self, right);
            if weight(self, inner) < SINGLE * weight(self, outer) {
                self.set::<T>(root, left, inner);
                return self.set::<T>(right, root, outer);
            }
            let middle = links(self, inner);
            self.set::<T>(root, left, middle.left);
            self.set::<T>(right, middle.right, outer);
            return self.set::<T>(inner, root, right);
        }
        if heavy(self, left, right) {
            let Links { left: outer, right: inner, .. } = links(self, left);
            if weight(self, inner) < SINGLE * weight(self, outer) {
                self.set::<T>(root, inner, right);
                return self.set::<T>(left, outer, root);
            }
            let middle = links(self, inner);
            self.set::<T>(left, outer, middle.left);
            self.set::<T>(root, middle.right, right);
            return self.set::<T>(inner, left, root);
        }
        self.set::<T>(root, left, right)
    }

    /// Gives a slot these subtrees, and returns it.
    fn set<T: Tree>(&mut self, slot: u32, left: u32, right: u32) -> u32 {
        let size = self.size::<T>(left) + 1 + self.size::<T>(right);
        let below = if T::TOTALS { self.total(left) + self.total(right) } else { 0 };
        if let Some(lease) = self.get_mut(slot) {
            *T::links_mut(lease) = Links { left, right, size: u32::try_from(size).unwrap_or(NONE) };
            if T::TOTALS {
                lease.total = u64::from(lease.cost) + below;
            }
        }
        slot
    }
}

#[cfg(test)]
impl Table {
    /// Checks the order, the balance and the sums of both trees.
    pub(super) fn audit_trees(&self) {
        if let Some(Roots { by_deadline, by_id }) = self.roots {
            assert_eq!(self.audit_below::<ByDeadline>(by_deadline).len(), self.len());
            assert_eq!(self.audit_below::<ById>(by_id).len(), self.len());
        }
    }

    /// The slots of a tree in their order.
    fn audit_below<T: Tree>(&self, slot: u32) -> Vec<u32> {
        let Some(lease) = self.get(slot) else {
            return Vec::new();
        };
        let Links { left, right, size } = T::links(lease);
        let sides = [left, right].map(|child| self.size::<T>(child) + 1);
        assert!(sides[0] <= BALANCE * sides[1] && sides[1] <= BALANCE * sides[0], "{sides:?}");
        let mut slots = self.audit_below::<T>(left);
        slots.push(slot);
        slots.extend(self.audit_below::<T>(right));
        assert_eq!(slots.len(), size as usize);
        assert!(slots.is_sorted_by(|a, b| self.compare::<T>(*a, *b) == Ordering::Less));
        let cost = |slot: &u32| self.get(*slot).map_or(0, |lease| u64::from(lease.cost));
        assert!(!T::TOTALS || lease.total == slots.iter().map(cost).sum::<u64>());
        slots
    }
}
