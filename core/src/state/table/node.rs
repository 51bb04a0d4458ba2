//! The nodes of the search trees, and the trees' orders.

use core::cmp::Ordering;

use super::lease::{Key, Lease};
use super::slots::Slots;

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

/// A slot in both trees.
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

/// One of the trees.
pub(super) trait Tree {
    /// Whether [`Node::total`] is the sum over this tree.
    const TOTALS: bool;

    /// The tree's order of leases.
    fn order(a: Key<'_>, b: Key<'_>) -> Ordering;
    fn links(node: &Node) -> Links;
    fn links_mut(node: &mut Node) -> &mut Links;
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

    fn links(node: &Node) -> Links {
        node.by_deadline
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.by_deadline
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

    fn links(node: &Node) -> Links {
        node.by_id
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.by_id
    }

    fn root(roots: &mut Roots) -> &mut u32 {
        &mut roots.by_id
    }
}

/// Compares the leases in two slots in the order of a tree.
pub(super) fn compare<T: Tree, K>(leases: &Slots<Lease<K>>, a: u32, b: u32) -> Ordering {
    match (leases.get(a), leases.get(b)) {
        (Some(a), Some(b)) => T::order(a.key(), b.key()),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}
