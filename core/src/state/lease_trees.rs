//! The search trees over the slots of a table of leases.
//!
//! The tree by deadline stores in each node the total cost of all leases below it. So the cost of the leases that are
//! held at an instant is a sum along one path.
//!
//! The trees are weight-balanced: no subtree outweighs its sibling more than three times. So every operation takes
//! O(log n) in any order of operations, and a tree of 100 million leases has at most 65 levels. Source of the two
//! constants, with a proof: Hirai and Yamamoto, "Balancing weight-balanced trees",
//! <https://doi.org/10.1017/S0956796811000104>.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::lease_table::Lease;
use super::slots::{Slots, number};
use super::timeline::Tick;

/// How many times a subtree may outweigh its sibling.
const BALANCE: u64 = 3;
/// A single rotation balances a tree if the inner grandchild is less than this many times as heavy as the outer one.
const SINGLE: u64 = 2;

/// More than the leases on any path from a root. 2^32 leases are at most 78 levels.
const DEPTH: usize = 80;

/// No slot: an empty tree.
const NONE: u32 = u32::MAX;

const LEAF: Links = Links { left: NONE, right: NONE, size: 1 };

/// The place of a slot in a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Links {
    left: u32,
    right: u32,
    /// The number of slots in this subtree.
    size: u32,
}

impl Links {
    /// Refers to another child.
    fn replace(&mut self, old: u32, new: u32) {
        *(if self.left == old { &mut self.left } else { &mut self.right }) = new;
    }
}

/// The places of a slot in both trees.
#[derive(Clone, Debug)]
pub(super) struct Node {
    by_deadline: Links,
    by_id: Links,
    /// The cost of this lease and of all below it in the tree by deadline.
    total: u64,
}

const NEW: Node = Node { by_deadline: LEAF, by_id: LEAF, total: 0 };

/// Both trees.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    nodes: Slots<Node>,
    /// The roots.
    by_deadline: u32,
    by_id: u32,
}

/// What the orders of the trees depend on.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) deadline: Tick,
    /// The hash of the id.
    pub(super) hash: u64,
    pub(super) id: &'a [u8],
}

/// One of the trees.
pub(super) trait Tree {
    /// Whether [`Node::total`] is the sum over this tree.
    const TOTALS: bool;

    /// The tree's order of leases.
    fn order(a: Key<'_>, b: Key<'_>) -> Ordering;
    fn links(node: &Node) -> Links;
    fn links_mut(node: &mut Node) -> &mut Links;
    fn root(trees: &mut Trees) -> &mut u32;
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

    fn links(node: &Node) -> Links {
        node.by_deadline
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.by_deadline
    }

    fn root(trees: &mut Trees) -> &mut u32 {
        &mut trees.by_deadline
    }
}

impl Tree for ById {
    const TOTALS: bool = false;

    fn order(a: Key<'_>, b: Key<'_>) -> Ordering {
        (a.hash, a.id).cmp(&(b.hash, b.id))
    }

    fn links(node: &Node) -> Links {
        node.by_id
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.by_id
    }

    fn root(trees: &mut Trees) -> &mut u32 {
        &mut trees.by_id
    }
}

/// Searches.
impl Trees {
    /// The slot of the lease of this id.
    pub(super) fn find<K>(&self, leases: &Slots<Lease<K>>, hash: u64, id: &[u8]) -> Option<u32> {
        let mut slot = self.by_id;
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
        let mut slot = self.by_deadline;
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
        let mut slot = self.by_deadline;
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
        let mut slot = self.by_deadline;
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
        let mut slots = Vec::with_capacity(leases.len());
        self.collect::<ByDeadline>(self.by_deadline, &mut slots);
        slots.into_iter().filter_map(|slot| leases.get(slot)).collect()
    }

    fn collect<T: Tree>(&self, slot: u32, slots: &mut Vec<u32>) {
        if let Some(Links { left, right, .. }) = self.nodes.get(slot).map(T::links) {
            self.collect::<T>(left, slots);
            slots.push(slot);
            self.collect::<T>(right, slots);
        }
    }

    /// Returns whether all ids differ.
    pub(super) fn ids_differ<K>(&self, leases: &Slots<Lease<K>>) -> bool {
        let mut slots = Vec::with_capacity(leases.len());
        self.collect::<ById>(self.by_id, &mut slots);
        slots.is_sorted_by(|a, b| compare::<ById, _>(leases, *a, *b) == Ordering::Less)
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
        let mut trees = Trees { nodes: Slots::default(), by_deadline: NONE, by_id: NONE };
        let mut slots: Vec<u32> = leases.iter().map(|_| trees.nodes.push(NEW)).collect();
        slots.sort_unstable_by(|a, b| compare::<ByDeadline, _>(leases, *a, *b));
        trees.by_deadline = Forest { nodes: &mut trees.nodes, leases }.grow::<ByDeadline>(&slots);
        slots.sort_unstable_by(|a, b| compare::<ById, _>(leases, *a, *b));
        trees.by_id = Forest { nodes: &mut trees.nodes, leases }.grow::<ById>(&slots);
        trees
    }

    /// Makes room for the table's last slot, which is then linked to both trees.
    pub(super) fn push(&mut self) {
        self.nodes.push(NEW);
    }

    /// Adds a slot to a tree.
    pub(super) fn link<T: Tree, K>(&mut self, leases: &Slots<Lease<K>>, slot: u32) {
        let root = *T::root(self);
        *T::root(self) = Forest { nodes: &mut self.nodes, leases }.link::<T>(root, slot);
    }

    /// Takes a slot out of a tree.
    pub(super) fn unlink<T: Tree, K>(&mut self, leases: &Slots<Lease<K>>, slot: u32) {
        let root = *T::root(self);
        *T::root(self) = Forest { nodes: &mut self.nodes, leases }.unlink::<T>(root, slot);
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
    fn rename<T: Tree, K>(&mut self, leases: &Slots<Lease<K>>, from: u32, to: u32) {
        let root = *T::root(self);
        let mut forest = Forest { nodes: &mut self.nodes, leases };
        match forest.path::<T>(root, from).above().last() {
            Some(parent) => forest.replace_child::<T>(*parent, from, to),
            None => *T::root(self) = to,
        }
    }
}

/// A path from a root.
struct Path {
    above: [u32; DEPTH],
    depth: usize,
    /// Whether it goes on to the left of its last slot.
    left: bool,
}

impl Path {
    /// The slots from the root to the parent of the path's end.
    fn above(&self) -> &[u32] {
        self.above.get(..self.depth).unwrap_or(&[])
    }
}

/// The nodes of the trees while they are changed. Each tree is known by its root.
struct Forest<'a, K> {
    nodes: &'a mut Slots<Node>,
    leases: &'a Slots<Lease<K>>,
}

impl<K> Forest<'_, K> {
    fn links<T: Tree>(&self, slot: u32) -> Option<Links> {
        self.nodes.get(slot).map(T::links)
    }

    fn size<T: Tree>(&self, slot: u32) -> u64 {
        self.links::<T>(slot).map_or(0, |links| links.size.into())
    }

    fn total(&self, slot: u32) -> u64 {
        self.nodes.get(slot).map_or(0, |node| node.total)
    }

    fn cost(&self, slot: u32) -> u64 {
        self.leases.get(slot).map_or(0, |lease| lease.cost.into())
    }

    /// Makes a tree of slots that are in its order, and returns its root.
    fn grow<T: Tree>(&mut self, slots: &[u32]) -> u32 {
        let (left, right) = slots.split_at(slots.len() / 2);
        let Some((root, right)) = right.split_first() else {
            return NONE;
        };
        let (left, right) = (self.grow::<T>(left), self.grow::<T>(right));
        self.set::<T>(*root, left, right)
    }

    /// Adds a slot to a tree, and returns the new root.
    fn link<T: Tree>(&mut self, root: u32, slot: u32) -> u32 {
        let path = self.path::<T>(root, slot);
        self.set::<T>(slot, NONE, NONE);
        let parent = path.above().last().and_then(|parent| self.nodes.get_mut(*parent)).map(T::links_mut);
        if let Some(links) = parent {
            *(if path.left { &mut links.left } else { &mut links.right }) = slot;
        }
        let cost = self.cost(slot);
        self.ascend::<T>(&path, slot, 1, |total| total.wrapping_add(cost))
    }

    /// Takes a slot out of a tree, and returns the new root.
    fn unlink<T: Tree>(&mut self, root: u32, slot: u32) -> u32 {
        let path = self.path::<T>(root, slot);
        let Links { left, right, .. } = self.links::<T>(slot).unwrap_or(LEAF);
        let rest = self.join::<T>(left, right);
        if let Some(parent) = path.above().last() {
            self.replace_child::<T>(*parent, slot, rest);
        }
        let cost = self.cost(slot);
        self.ascend::<T>(&path, rest, -1, |total| total.wrapping_sub(cost))
    }

    /// The path to a slot, or to where it would be.
    fn path<T: Tree>(&self, root: u32, slot: u32) -> Path {
        let mut path = Path { above: [NONE; DEPTH], depth: 0, left: false };
        let Some(key) = self.leases.get(slot).map(Lease::key) else { return path };
        let mut at = root;
        while let Some((step, lease)) = path.above.get_mut(path.depth).zip(self.leases.get(at)) {
            let order = T::order(key, lease.key());
            let Some(links) = self.nodes.get(at).map(T::links).filter(|_| order != Ordering::Equal) else {
                break;
            };
            *step = at;
            path.depth += 1;
            path.left = order == Ordering::Less;
            at = if path.left { links.left } else { links.right };
        }
        path
    }

    /// Updates the slots of a path, below which `child` was added or removed, and rotates where one side became too
    /// heavy. Returns the new root.
    fn ascend<T: Tree>(&mut self, path: &Path, child: u32, change: i32, total: impl Fn(u64) -> u64) -> u32 {
        let (mut old, mut new) = (child, child);
        let mut side = self.size::<T>(child);
        for at in path.above().iter().rev() {
            let Some(node) = self.nodes.get_mut(*at) else { continue };
            if T::TOTALS {
                node.total = total(node.total);
            }
            let links = T::links_mut(node);
            links.size = links.size.wrapping_add_signed(change);
            if old != new {
                links.replace(old, new);
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
        if let Some(links) = self.nodes.get_mut(parent).map(T::links_mut) {
            links.replace(old, new);
        }
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
        let Links { left, right, .. } = self.links::<T>(root)?;
        Some(match self.take_first::<T>(left) {
            None => (root, right),
            Some((first, left)) => (first, self.balance::<T>(root, left, right)),
        })
    }

    /// Gives a slot these subtrees, and rotates if one of them is too heavy. Returns the new root.
    fn balance<T: Tree>(&mut self, root: u32, left: u32, right: u32) -> u32 {
        let weight = |forest: &Self, slot| forest.size::<T>(slot) + 1;
        let heavy = |forest: &Self, slot, than| weight(forest, slot) > BALANCE * weight(forest, than);
        if heavy(self, right, left) {
            let Links { left: inner, right: outer, .. } = self.links::<T>(right).unwrap_or(LEAF);
            if weight(self, inner) < SINGLE * weight(self, outer) {
                self.set::<T>(root, left, inner);
                return self.set::<T>(right, root, outer);
            }
            let middle = self.links::<T>(inner).unwrap_or(LEAF);
            self.set::<T>(root, left, middle.left);
            self.set::<T>(right, middle.right, outer);
            return self.set::<T>(inner, root, right);
        }
        if heavy(self, left, right) {
            let Links { left: outer, right: inner, .. } = self.links::<T>(left).unwrap_or(LEAF);
            if weight(self, inner) < SINGLE * weight(self, outer) {
                self.set::<T>(root, inner, right);
                return self.set::<T>(left, outer, root);
            }
            let middle = self.links::<T>(inner).unwrap_or(LEAF);
            self.set::<T>(left, outer, middle.left);
            self.set::<T>(root, middle.right, right);
            return self.set::<T>(inner, left, root);
        }
        self.set::<T>(root, left, right)
    }

    /// Gives a slot these subtrees, and returns it.
    fn set<T: Tree>(&mut self, slot: u32, left: u32, right: u32) -> u32 {
        let size = self.size::<T>(left) + 1 + self.size::<T>(right);
        let total = if T::TOTALS { self.cost(slot) + self.total(left) + self.total(right) } else { 0 };
        if let Some(node) = self.nodes.get_mut(slot) {
            *T::links_mut(node) = Links { left, right, size: u32::try_from(size).unwrap_or(NONE) };
            if T::TOTALS {
                node.total = total;
            }
        }
        slot
    }
}

/// Compares the leases in two slots in the order of a tree.
fn compare<T: Tree, K>(leases: &Slots<Lease<K>>, a: u32, b: u32) -> Ordering {
    match (leases.get(a), leases.get(b)) {
        (Some(a), Some(b)) => T::order(a.key(), b.key()),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
impl Trees {
    /// Checks the order, the balance and the sums of both trees.
    pub(super) fn audit<K>(&self, leases: &Slots<Lease<K>>) {
        assert_eq!(self.nodes.len(), leases.len());
        assert_eq!(self.audit_below::<ByDeadline, _>(leases, self.by_deadline).len(), leases.len());
        assert_eq!(self.audit_below::<ById, _>(leases, self.by_id).len(), leases.len());
    }

    /// The slots of a tree in their order.
    fn audit_below<T: Tree, K>(&self, leases: &Slots<Lease<K>>, slot: u32) -> Vec<u32> {
        let Some(node) = self.nodes.get(slot) else {
            return Vec::new();
        };
        let Links { left, right, size } = T::links(node);
        let mut slots = self.audit_below::<T, _>(leases, left);
        let before = slots.len();
        slots.push(slot);
        slots.extend(self.audit_below::<T, _>(leases, right));
        let sides = [before + 1, slots.len() - before].map(|weight| weight as u64);
        assert!(sides[0] <= BALANCE * sides[1] && sides[1] <= BALANCE * sides[0], "{sides:?}");
        assert_eq!(slots.len(), size as usize);
        assert!(slots.is_sorted_by(|a, b| compare::<T, _>(leases, *a, *b) == Ordering::Less));
        let cost = |slot: &u32| leases.get(*slot).map_or(0, |lease| u64::from(lease.cost));
        assert!(!T::TOTALS || node.total == slots.iter().map(cost).sum::<u64>());
        slots
    }
}
