//! Changing a tree, so that it stays balanced.
//!
//! The trees are weight-balanced: no subtree outweighs its sibling more than three times. So every operation takes
//! O(log n) in any order of operations, and a tree of 100 million leases has at most 65 levels. Source of the two
//! constants, with a proof: Hirai and Yamamoto, "Balancing weight-balanced trees",
//! <https://doi.org/10.1017/S0956796811000104>.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::node::{LEAF, Links, NONE, Total, Tree};
use super::slots::Slots;

/// How many times a subtree may outweigh its sibling.
pub(super) const BALANCE: u64 = 3;
/// A single rotation balances a tree if the inner grandchild is less than this many times as heavy as the outer one.
const SINGLE: u64 = 2;

/// More than the leases on any path from a root. 2^32 leases are at most 78 levels.
const DEPTH: usize = 80;

/// A path from a root.
pub(super) struct Path {
    above: [u32; DEPTH],
    depth: usize,
    /// Whether it goes on to the left of its last slot.
    left: bool,
}

impl Path {
    /// The slots from the root to the parent of the path's end.
    pub(super) fn above(&self) -> &[u32] {
        self.above.get(..self.depth).unwrap_or(&[])
    }
}

/// The nodes of the trees while they are changed. Each tree is known by its root.
pub(super) struct Forest<'a, N, L> {
    pub(super) nodes: &'a mut Slots<N>,
    /// What is in the slots.
    pub(super) leases: &'a L,
}

impl<N, L> Forest<'_, N, L> {
    fn links<T: Tree<L, Node = N>>(&self, slot: u32) -> Option<Links> {
        self.nodes.get(slot).map(T::links)
    }

    fn size<T: Tree<L, Node = N>>(&self, slot: u32) -> u64 {
        self.links::<T>(slot).map_or(0, |links| links.size.into())
    }

    fn total<T: Tree<L, Node = N>>(&self, slot: u32) -> T::Total {
        self.nodes.get(slot).map(T::total).unwrap_or_default()
    }

    /// Makes a tree of slots that are in its order, and returns its root.
    pub(super) fn grow<T: Tree<L, Node = N>>(&mut self, slots: &[u32]) -> u32 {
        let (left, right) = slots.split_at(slots.len() / 2);
        let Some((root, right)) = right.split_first() else {
            return NONE;
        };
        let (left, right) = (self.grow::<T>(left), self.grow::<T>(right));
        self.set::<T>(*root, left, right)
    }

    /// Adds a slot to a tree, and returns the new root.
    pub(super) fn link<T: Tree<L, Node = N>>(&mut self, root: u32, slot: u32) -> u32 {
        let path = self.path::<T>(root, slot);
        self.set::<T>(slot, NONE, NONE);
        let parent = path.above().last().and_then(|parent| self.nodes.get_mut(*parent)).map(T::links_mut);
        if let Some(links) = parent {
            *(if path.left { &mut links.left } else { &mut links.right }) = slot;
        }
        let own = T::own(self.leases, slot);
        self.ascend::<T>(&path, slot, 1, |total| total.plus(own))
    }

    /// Takes a slot out of a tree, and returns the new root.
    pub(super) fn unlink<T: Tree<L, Node = N>>(&mut self, root: u32, slot: u32) -> u32 {
        let path = self.path::<T>(root, slot);
        let Links { left, right, .. } = self.links::<T>(slot).unwrap_or(LEAF);
        let rest = self.join::<T>(left, right);
        if let Some(parent) = path.above().last() {
            self.replace_child::<T>(*parent, slot, rest);
        }
        let own = T::own(self.leases, slot);
        self.ascend::<T>(&path, rest, -1, |total| total.minus(own))
    }

    /// The path to a slot, or to where it would be.
    pub(super) fn path<T: Tree<L, Node = N>>(&self, root: u32, slot: u32) -> Path {
        let mut path = Path { above: [NONE; DEPTH], depth: 0, left: false };
        let Some(key) = T::key(self.leases, slot) else { return path };
        let mut at = root;
        while let Some((step, other)) = path.above.get_mut(path.depth).zip(T::key(self.leases, at)) {
            let order = key.cmp(&other);
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
    fn ascend<T: Tree<L, Node = N>>(
        &mut self,
        path: &Path,
        child: u32,
        change: i32,
        total: impl Fn(T::Total) -> T::Total,
    ) -> u32 {
        let (mut old, mut new) = (child, child);
        let mut side = self.size::<T>(child);
        for at in path.above().iter().rev() {
            let Some(node) = self.nodes.get_mut(*at) else { continue };
            T::set_total(node, total(T::total(node)));
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

    /// Makes a tree refer to what is in the slot `from` by the slot `to`, and returns the new root.
    pub(super) fn rename<T: Tree<L, Node = N>>(&mut self, root: u32, from: u32, to: u32) -> u32 {
        let Some(parent) = self.path::<T>(root, from).above().last().copied() else { return to };
        self.replace_child::<T>(parent, from, to);
        root
    }

    /// Changes the sums of a slot and of all above it.
    pub(super) fn add<T: Tree<L, Node = N>>(
        &mut self,
        root: u32,
        slot: u32,
        add: impl Fn(T::Total) -> T::Total,
    ) {
        let path = self.path::<T>(root, slot);
        for at in path.above().iter().chain([&slot]) {
            if let Some(node) = self.nodes.get_mut(*at) {
                T::set_total(node, add(T::total(node)));
            }
        }
    }

    /// Makes a tree refer to another child.
    fn replace_child<T: Tree<L, Node = N>>(&mut self, parent: u32, old: u32, new: u32) {
        if let Some(links) = self.nodes.get_mut(parent).map(T::links_mut) {
            links.replace(old, new);
        }
    }

    /// Makes one tree of two that were siblings.
    fn join<T: Tree<L, Node = N>>(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE {
            return right;
        }
        match self.take_first::<T>(right) {
            None => left,
            Some((first, rest)) => self.balance::<T>(first, left, rest),
        }
    }

    /// Takes the first slot out of a tree, and returns it and the rest.
    fn take_first<T: Tree<L, Node = N>>(&mut self, root: u32) -> Option<(u32, u32)> {
        let Links { left, right, .. } = self.links::<T>(root)?;
        Some(match self.take_first::<T>(left) {
            None => (root, right),
            Some((first, left)) => (first, self.balance::<T>(root, left, right)),
        })
    }

    /// Gives a slot these subtrees, and rotates if one of them is too heavy. Returns the new root.
    fn balance<T: Tree<L, Node = N>>(&mut self, root: u32, left: u32, right: u32) -> u32 {
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
    fn set<T: Tree<L, Node = N>>(&mut self, slot: u32, left: u32, right: u32) -> u32 {
        let size = self.size::<T>(left) + 1 + self.size::<T>(right);
        let below = self.total::<T>(left).plus(self.total::<T>(right));
        let total = T::own(self.leases, slot).plus(below);
        if let Some(node) = self.nodes.get_mut(slot) {
            *T::links_mut(node) = Links { left, right, size: u32::try_from(size).unwrap_or(NONE) };
            T::set_total(node, total);
        }
        slot
    }
}

/// The slots of a tree in its order.
pub(super) fn in_order<N, L, T: Tree<L, Node = N>>(nodes: &Slots<N>, root: u32) -> Vec<u32> {
    fn collect<N, L, T: Tree<L, Node = N>>(nodes: &Slots<N>, slot: u32, slots: &mut Vec<u32>) {
        if let Some(Links { left, right, .. }) = nodes.get(slot).map(T::links) {
            collect::<N, L, T>(nodes, left, slots);
            slots.push(slot);
            collect::<N, L, T>(nodes, right, slots);
        }
    }
    let mut slots = Vec::with_capacity(nodes.len());
    collect::<N, L, T>(nodes, root, &mut slots);
    slots
}

/// Checks the order, the balance and the sums of a tree, and returns its slots in order.
#[cfg(test)]
pub(super) fn audit<N, L, T: Tree<L, Node = N>>(nodes: &Slots<N>, leases: &L, root: u32) -> Vec<u32> {
    let Some(node) = nodes.get(root) else {
        return Vec::new();
    };
    let Links { left, right, size } = T::links(node);
    let mut slots = audit::<N, L, T>(nodes, leases, left);
    let before = slots.len();
    slots.push(root);
    slots.extend(audit::<N, L, T>(nodes, leases, right));
    let sides = [before + 1, slots.len() - before].map(|weight| weight as u64);
    assert!(sides[0] <= BALANCE * sides[1] && sides[1] <= BALANCE * sides[0], "{sides:?}");
    assert_eq!(slots.len(), size as usize);
    assert!(slots.is_sorted_by(|a, b| T::key(leases, *a) < T::key(leases, *b)));
    let total = slots.iter().fold(T::Total::default(), |sum, slot| sum.plus(T::own(leases, *slot)));
    assert!(T::total(node) == total);
    slots
}
