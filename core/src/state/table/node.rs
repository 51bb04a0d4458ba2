//! The nodes of the search trees, and the trees' orders.

use super::lease::{Key, Lease};
use super::slots::Slots;
use crate::state::timeline::Tick;

/// No slot: an empty tree.
pub(super) const NONE: u32 = u32::MAX;

pub(super) const LEAF: Links = Links { left: NONE, right: NONE, size: 1 };

/// What is below a slot in a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Links {
    pub(super) left: u32,
    pub(super) right: u32,
    /// The number of slots in this subtree.
    pub(super) size: u32,
}

impl Links {
    /// Refers to another child.
    pub(super) fn replace(&mut self, old: u32, new: u32) {
        *(if self.left == old { &mut self.left } else { &mut self.right }) = new;
    }
}

/// A slot in both trees of a table.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) by_deadline: Links,
    pub(super) by_id: Links,
    /// The cost of this lease and of all below it in the tree by deadline.
    pub(super) total: u64,
}

pub(super) const NEW: Node = Node { by_deadline: LEAF, by_id: LEAF, total: 0 };

/// The root of each tree.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    pub(super) by_deadline: u32,
    pub(super) by_id: u32,
}

/// What a tree adds up: in each node, the sum over all slots below it.
pub(super) trait Total: Copy + Default + PartialEq {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

/// Of a tree without sums.
impl Total for () {
    fn plus(self, (): ()) {}
    fn minus(self, (): ()) {}
}

/// Of costs.
impl Total for u64 {
    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    fn minus(self, other: u64) -> u64 {
        self.wrapping_sub(other)
    }
}

/// A tree over slots. `L` has what is in the slots.
pub(super) trait Tree<L> {
    type Node;
    type Total: Total;
    /// What the tree's order depends on.
    type Key<'l>: Ord
    where
        L: 'l;

    fn key(leases: &L, slot: u32) -> Option<Self::Key<'_>>;
    fn links(node: &Self::Node) -> Links;
    fn links_mut(node: &mut Self::Node) -> &mut Links;
    /// What the slot itself adds to the sums.
    fn own(leases: &L, slot: u32) -> Self::Total;
    fn total(node: &Self::Node) -> Self::Total;
    fn set_total(node: &mut Self::Node, total: Self::Total);
}

/// One of the two trees of a table.
pub(super) trait OfTable<K>: Tree<Slots<Lease<K>>, Node = Node> {
    fn root(roots: &mut Roots) -> &mut u32;
}

/// The tree in the order of deadlines, and of ids if deadlines are equal.
pub(super) struct ByDeadline;

/// The tree in the order of the hashes of ids, and of ids if hashes are equal.
pub(super) struct ById;

impl ByDeadline {
    pub(super) fn order(key: Key<'_>) -> (Tick, &[u8]) {
        (key.deadline, key.id)
    }
}

impl<K> Tree<Slots<Lease<K>>> for ByDeadline {
    type Node = Node;
    type Total = u64;
    type Key<'l>
        = (Tick, &'l [u8])
    where
        K: 'l;

    fn key(leases: &Slots<Lease<K>>, slot: u32) -> Option<(Tick, &[u8])> {
        leases.get(slot).map(|lease| ByDeadline::order(lease.key()))
    }

    fn links(node: &Node) -> Links {
        node.by_deadline
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.by_deadline
    }

    fn own(leases: &Slots<Lease<K>>, slot: u32) -> u64 {
        leases.get(slot).map_or(0, |lease| lease.cost.into())
    }

    fn total(node: &Node) -> u64 {
        node.total
    }

    fn set_total(node: &mut Node, total: u64) {
        node.total = total;
    }
}

impl<K> Tree<Slots<Lease<K>>> for ById {
    type Node = Node;
    type Total = ();
    type Key<'l>
        = (u64, &'l [u8])
    where
        K: 'l;

    fn key(leases: &Slots<Lease<K>>, slot: u32) -> Option<(u64, &[u8])> {
        leases.get(slot).map(|lease| (lease.key().hash, &*lease.id))
    }

    fn links(node: &Node) -> Links {
        node.by_id
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.by_id
    }

    fn own(_: &Slots<Lease<K>>, _: u32) {}

    fn total(_: &Node) {}

    fn set_total(_: &mut Node, (): ()) {}
}

impl<K> OfTable<K> for ByDeadline {
    fn root(roots: &mut Roots) -> &mut u32 {
        &mut roots.by_deadline
    }
}

impl<K> OfTable<K> for ById {
    fn root(roots: &mut Roots) -> &mut u32 {
        &mut roots.by_id
    }
}
