//! A search tree that adds up what stands in it, so that a row of entries is one sum along a path.
//!
//! It is weight-balanced, as the trees of a table of leases are. `state/table/balance.rs` has the source of the two constants.

use alloc::boxed::Box;
use core::cmp::Ordering;
use core::ops::Bound::{self, Excluded, Included, Unbounded};

use super::sum::{Entry, Sum};

/// How many times a subtree may outweigh its sibling.
const BALANCE: usize = 3;
/// A single rotation suffices if the inner grandchild is less than this many times as heavy as the outer one.
const SINGLE: usize = 2;

type Link<K> = Option<Box<Node<K>>>;

/// Entries by their keys.
#[derive(Clone, Debug)]
pub(super) struct Tree<K> {
    root: Link<K>,
}

#[derive(Clone, Debug)]
struct Node<K> {
    key: K,
    entry: Entry,
    /// The number of entries in this subtree.
    size: usize,
    /// Of all entries in this subtree.
    sum: Sum,
    left: Link<K>,
    right: Link<K>,
}

impl<K> Default for Tree<K> {
    fn default() -> Self {
        Tree { root: None }
    }
}

impl<K: Ord> Tree<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Puts an entry under a key.
    pub(super) fn insert(&mut self, key: K, entry: Entry) {
        let sum = Sum::of(&entry);
        let new = Box::new(Node { key, entry, size: 1, sum, left: None, right: None });
        self.root = Some(insert(self.root.take(), new));
    }

    pub(super) fn has(&self, key: &K) -> bool {
        let mut at = &self.root;
        while let Some(node) = at {
            at = match key.cmp(&node.key) {
                Ordering::Less => &node.left,
                Ordering::Equal => return true,
                Ordering::Greater => &node.right,
            };
        }
        false
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.root = remove(self.root.take(), key);
    }

    /// The sum of all entries.
    pub(super) fn all(&self) -> Sum {
        sum_of(self.root.as_deref())
    }

    /// The sum of the entries up to `end`, in their order, without that of the key `skip`.
    pub(super) fn sum(&self, end: Bound<&K>, skip: Option<&K>) -> Sum {
        match skip {
            None => sum(self.root.as_deref(), Unbounded, end),
            Some(skip) if is_beyond(skip, end) => sum(self.root.as_deref(), Unbounded, end),
            Some(skip) => sum(self.root.as_deref(), Unbounded, Excluded(skip)).then(sum(
                self.root.as_deref(),
                Excluded(skip),
                end,
            )),
        }
    }

    /// The first caller that waits.
    pub(super) fn first_waiting(&self) -> Option<(&K, &Entry)> {
        let mut at = self.root.as_deref()?;
        loop {
            let left = at.left.as_deref().filter(|left| left.sum.waiting > 0);
            at = match left {
                Some(left) => left,
                None if at.entry.waits() => return Some((&at.key, &at.entry)),
                None => at.right.as_deref().filter(|right| right.sum.waiting > 0)?,
            };
        }
    }

    /// Calls `each` with all entries, in order.
    pub(super) fn each(&self, each: &mut dyn FnMut(&K, &Entry)) {
        each_of(self.root.as_deref(), each);
    }

    /// Calls `each` with the callers that wait and stand before `end`, in order.
    pub(super) fn each_waiting(&self, end: &K, each: &mut dyn FnMut(&K, &Entry)) {
        each_waiting(self.root.as_deref(), end, each);
    }
}

fn each_of<K>(node: Option<&Node<K>>, each: &mut dyn FnMut(&K, &Entry)) {
    let Some(node) = node else { return };
    each_of(node.left.as_deref(), each);
    each(&node.key, &node.entry);
    each_of(node.right.as_deref(), each);
}

fn each_waiting<K: Ord>(node: Option<&Node<K>>, end: &K, each: &mut dyn FnMut(&K, &Entry)) {
    let Some(node) = node.filter(|node| node.sum.waiting > 0) else { return };
    each_waiting(node.left.as_deref(), end, each);
    if node.key < *end {
        if node.entry.waits() {
            each(&node.key, &node.entry);
        }
        each_waiting(node.right.as_deref(), end, each);
    }
}

fn is_beyond<K: Ord>(key: &K, end: Bound<&K>) -> bool {
    match end {
        Included(end) => key > end,
        Excluded(end) => key >= end,
        Unbounded => false,
    }
}

/// The sum of the entries of a subtree after `start` and up to `end`.
fn sum<K: Ord>(node: Option<&Node<K>>, start: Bound<&K>, end: Bound<&K>) -> Sum {
    let Some(node) = node else { return Sum::NOTHING };
    match (start, end) {
        (Unbounded, Unbounded) => node.sum,
        (Excluded(start), _) if node.key <= *start => sum(node.right.as_deref(), Excluded(start), end),
        _ if is_beyond(&node.key, end) => sum(node.left.as_deref(), start, end),
        _ => {
            let [left, right] = [node.left.as_deref(), node.right.as_deref()];
            let through = sum(left, start, Unbounded).then(Sum::of(&node.entry));
            through.then(sum(right, Unbounded, end))
        }
    }
}

fn sum_of<K>(node: Option<&Node<K>>) -> Sum {
    node.map_or(Sum::NOTHING, |node| node.sum)
}

fn weight<K>(node: Option<&Node<K>>) -> usize {
    1 + node.map_or(0, |node| node.size)
}

fn insert<K: Ord>(link: Link<K>, new: Box<Node<K>>) -> Box<Node<K>> {
    let Some(mut node) = link else { return new };
    match new.key.cmp(&node.key) {
        Ordering::Less => node.left = Some(insert(node.left.take(), new)),
        Ordering::Equal => node.entry = new.entry,
        Ordering::Greater => node.right = Some(insert(node.right.take(), new)),
    }
    balance(node)
}

fn remove<K: Ord>(link: Link<K>, key: &K) -> Link<K> {
    let mut node = link?;
    match key.cmp(&node.key) {
        Ordering::Less => node.left = remove(node.left.take(), key),
        Ordering::Greater => node.right = remove(node.right.take(), key),
        Ordering::Equal => return join(node.left.take(), node.right.take()),
    }
    Some(balance(node))
}

/// Makes one tree of two that were siblings.
fn join<K: Ord>(left: Link<K>, right: Link<K>) -> Link<K> {
    let Some(right) = right else { return left };
    let (mut first, rest) = take_first(right);
    (first.left, first.right) = (left, rest);
    Some(balance(first))
}

/// Takes the first node out of a tree. Returns it and the rest.
fn take_first<K: Ord>(mut node: Box<Node<K>>) -> (Box<Node<K>>, Link<K>) {
    match node.left.take() {
        None => {
            let rest = node.right.take();
            (node, rest)
        }
        Some(left) => {
            let (first, rest) = take_first(left);
            node.left = rest;
            (first, Some(balance(node)))
        }
    }
}

/// Rotates a node if one of its subtrees has become too heavy, and sums it up anew.
fn balance<K>(mut node: Box<Node<K>>) -> Box<Node<K>> {
    let [left, right] = [weight(node.left.as_deref()), weight(node.right.as_deref())];
    if right > BALANCE * left
        && let Some(mut heavy) = node.right.take()
    {
        if weight(heavy.left.as_deref()) >= SINGLE * weight(heavy.right.as_deref())
            && let Some(inner) = heavy.left.take()
        {
            heavy = rotate_right(heavy, inner);
        }
        return rotate_left(node, heavy);
    }
    if left > BALANCE * right
        && let Some(mut heavy) = node.left.take()
    {
        if weight(heavy.right.as_deref()) >= SINGLE * weight(heavy.left.as_deref())
            && let Some(inner) = heavy.right.take()
        {
            heavy = rotate_left(heavy, inner);
        }
        return rotate_right(node, heavy);
    }
    sum_up(node)
}

/// Makes `child`, which was the right subtree of a node, its parent.
fn rotate_left<K>(mut node: Box<Node<K>>, mut child: Box<Node<K>>) -> Box<Node<K>> {
    node.right = child.left.take();
    child.left = Some(sum_up(node));
    sum_up(child)
}

/// Makes `child`, which was the left subtree of a node, its parent.
fn rotate_right<K>(mut node: Box<Node<K>>, mut child: Box<Node<K>>) -> Box<Node<K>> {
    node.left = child.right.take();
    child.right = Some(sum_up(node));
    sum_up(child)
}

fn sum_up<K>(mut node: Box<Node<K>>) -> Box<Node<K>> {
    node.size = weight(node.left.as_deref()) + weight(node.right.as_deref()) - 1;
    node.sum = sum_of(node.left.as_deref()).then(Sum::of(&node.entry)).then(sum_of(node.right.as_deref()));
    node
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::time::{Span, Time};

    fn entry(cost: u64, most: u64, hungry: bool) -> Entry {
        let until = hungry.then(|| Time::EPOCH.plus(Span::from_millis(cost * 7 % 5)));
        Entry { tenant: [].into(), caller: 0, cost, most, until }
    }

    fn check<K>(node: Option<&Node<K>>) {
        let Some(node) = node else { return };
        let [left, right] = [weight(node.left.as_deref()), weight(node.right.as_deref())];
        assert!(left <= BALANCE * right && right <= BALANCE * left);
        check(node.left.as_deref());
        check(node.right.as_deref());
    }

    /// The sum of some entries, from its meaning.
    fn plain<'e>(entries: impl Iterator<Item = &'e Entry> + Clone) -> [Option<u64>; 5] {
        let joint = |entries: &mut dyn Iterator<Item = &'e Entry>| {
            let mut cost = 0;
            entries.map(|entry| (cost += entry.cost, entry.most.saturating_sub(cost)).1).min()
        };
        let alone = |entries: &mut dyn Iterator<Item = &'e Entry>| {
            entries.map(|entry| entry.most.saturating_sub(entry.cost)).min()
        };
        let waiting = entries.clone().filter(|entry| entry.waits());
        [
            joint(&mut entries.clone()),
            alone(&mut entries.clone()),
            joint(&mut waiting.clone()),
            alone(&mut waiting.clone()),
            entries.filter_map(|entry| entry.until).min().map(Time::as_micros),
        ]
    }

    proptest! {
        #[test]
        fn the_tree_agrees_with_a_plain_map(
            steps in prop::collection::vec((0u32..60, 1u64..9, 5u64..99, any::<bool>(), 0u8..5, 0u32..61), 1..300),
        ) {
            let mut tree = Tree::default();
            let mut map: BTreeMap<u32, Entry> = BTreeMap::new();
            for (key, cost, most, hungry, what, end) in steps {
                if what < 2 {
                    tree.remove(&key);
                    map.remove(&key);
                } else {
                    let entry = entry(cost, most, hungry);
                    tree.insert(key, entry.clone());
                    map.insert(key, entry);
                }
                check(tree.root.as_deref());
                for (skip, end) in [(None, Unbounded), (Some(&key), Included(&end)), (Some(&end), Excluded(&key)), (None, Excluded(&end))] {
                    let entries = map.range((Unbounded, end)).filter(|(key, _)| Some(*key) != skip).map(|(_, entry)| entry);
                    let Sum { waiting, of_waiting, of_all, end } = tree.sum(end, skip);
                    prop_assert_eq!(waiting, entries.clone().filter(|entry| entry.waits()).count());
                    let some = |room: u64| (room < u64::MAX).then_some(room);
                    let sum = [some(of_all.joint), some(of_all.alone), some(of_waiting.joint), some(of_waiting.alone), end.map(Time::as_micros)];
                    prop_assert_eq!(sum, plain(entries));
                }
                prop_assert_eq!(tree.has(&end), map.contains_key(&end));
                let first = map.iter().find(|(_, entry)| entry.waits());
                prop_assert_eq!(tree.first_waiting(), first);
                let mut waiting = Vec::new();
                tree.each_waiting(&end, &mut |key, _| waiting.push(*key));
                let before = map.range(..end).filter(|(_, entry)| entry.waits()).map(|(key, _)| *key);
                prop_assert!(before.eq(waiting));
            }
            prop_assert_eq!(tree.is_empty(), map.is_empty());
        }
    }
}
