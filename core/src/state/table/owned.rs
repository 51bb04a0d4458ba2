//! The leases of a table that have an owner: what each owner holds at any instant.
//!
//! The leases of an owner are in a tree by deadline, with sums of their costs. All leases with an owner are in another tree
//! by deadline. It also counts owners: an owner holds something as long as its *last* lease is held, the one that expires
//! last, so in each node it adds up how many leases below it are the last of their owners.
//!
//! ```text
//! leases      a:9 of ann   b:4 of bob   c:6 of ann   d:7 without an owner
//! of ann      c a          of bob  b
//! of all      b c a        last of their owners: b, a
//! at 5        ann holds a and c, bob nothing: one owner
//! ```
//!
//! So nothing is done when a lease expires, and a lease without an owner takes no byte in here.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

#[cfg(test)]
use super::balance::audit;
use super::balance::{Forest, in_order};
use super::lease::Lease;
use super::node::{ByDeadline, LEAF, Links, NONE, Total, Tree};
use super::slots::{Slots, size_class};
use super::{Table, number};
use crate::state::timeline::Tick;

#[derive(Clone, Debug)]
pub(in crate::state) struct Owned {
    /// Those that have a lease in the table.
    owners: BTreeMap<Arc<[u8]>, Owner>,
    /// The bytes that are allocated for their names.
    name_bytes: usize,
    items: Slots<Item>,
    nodes: Slots<Node>,
    /// The root of the tree of all leases with an owner.
    root: u32,
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    weight: u32,
    /// The root of the tree of its leases.
    root: u32,
}

/// A lease with an owner.
#[derive(Clone, Debug)]
struct Item {
    /// Its slot in the table.
    slot: u32,
    /// Whether no lease of its owner expires later.
    is_last: bool,
    owner: Arc<[u8]>,
}

#[derive(Clone, Debug)]
struct Node {
    of_owner: Links,
    of_all: Links,
    /// The sum over the tree of the owner.
    cost: u64,
    /// The sums over the tree of all: the cost, and the number of leases that are the last of their owners.
    cost_of_all: u64,
    owners: u32,
}

const NEW: Node = Node { of_owner: LEAF, of_all: LEAF, cost: 0, cost_of_all: 0, owners: 0 };

/// What leases with owners add up to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::state) struct HeldByOwners {
    pub(in crate::state) cost: u64,
    pub(in crate::state) owners: u32,
}

impl Total for HeldByOwners {
    fn plus(self, HeldByOwners { cost, owners }: HeldByOwners) -> HeldByOwners {
        HeldByOwners { cost: self.cost.plus(cost), owners: self.owners.wrapping_add(owners) }
    }

    fn minus(self, HeldByOwners { cost, owners }: HeldByOwners) -> HeldByOwners {
        HeldByOwners { cost: self.cost.minus(cost), owners: self.owners.wrapping_sub(owners) }
    }
}

/// What is in the slots of these trees.
struct Items<'t> {
    leases: &'t Slots<Lease>,
    items: &'t Slots<Item>,
}

impl<'t> Items<'t> {
    fn lease(&self, item: u32) -> Option<&'t Lease> {
        self.leases.get(self.items.get(item)?.slot)
    }

    fn cost(&self, item: u32) -> u64 {
        self.lease(item).map_or(0, |lease| lease.cost.into())
    }
}

/// The tree of an owner.
struct OfOwner;

/// The tree of all leases with owners.
struct OfAll;

impl<'t> Tree<Items<'t>> for OfOwner {
    type Node = Node;
    type Total = u64;
    type Key<'l>
        = (Tick, &'l [u8])
    where
        Items<'t>: 'l;

    fn key<'l>(items: &'l Items<'t>, item: u32) -> Option<(Tick, &'l [u8])> {
        items.lease(item).map(|lease| ByDeadline::order(lease.key()))
    }

    fn links(node: &Node) -> Links {
        node.of_owner
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.of_owner
    }

    fn own(items: &Items<'t>, item: u32) -> u64 {
        items.cost(item)
    }

    fn total(node: &Node) -> u64 {
        node.cost
    }

    fn set_total(node: &mut Node, total: u64) {
        node.cost = total;
    }
}

impl<'t> Tree<Items<'t>> for OfAll {
    type Node = Node;
    type Total = HeldByOwners;
    type Key<'l>
        = (Tick, &'l [u8])
    where
        Items<'t>: 'l;

    fn key<'l>(items: &'l Items<'t>, item: u32) -> Option<(Tick, &'l [u8])> {
        OfOwner::key(items, item)
    }

    fn links(node: &Node) -> Links {
        node.of_all
    }

    fn links_mut(node: &mut Node) -> &mut Links {
        &mut node.of_all
    }

    fn own(items: &Items<'t>, item: u32) -> HeldByOwners {
        let is_last = items.items.get(item).is_some_and(|item| item.is_last);
        HeldByOwners { cost: items.cost(item), owners: is_last.into() }
    }

    fn total(node: &Node) -> HeldByOwners {
        HeldByOwners { cost: node.cost_of_all, owners: node.owners }
    }

    fn set_total(node: &mut Node, HeldByOwners { cost, owners }: HeldByOwners) {
        (node.cost_of_all, node.owners) = (cost, owners);
    }
}

impl Default for Owned {
    fn default() -> Owned {
        Owned {
            owners: BTreeMap::new(),
            name_bytes: 0,
            items: Slots::default(),
            nodes: Slots::default(),
            root: NONE,
        }
    }
}

/// Searches.
impl Owned {
    /// The number of leases with an owner.
    pub(in crate::state) fn len(&self) -> usize {
        self.items.len()
    }

    /// Those that have a lease in the table, also one that has expired, each with its weight, in the order of their names.
    pub(in crate::state) fn names(&self) -> impl Iterator<Item = (&Arc<[u8]>, u32)> {
        self.owners.iter().map(|(name, owner)| (name, owner.weight))
    }

    /// What an owner holds at `now`, and its weight; `None` if it holds nothing.
    pub(in crate::state) fn share(&self, table: &Table, owner: &[u8], now: Tick) -> Option<(u64, u32)> {
        let Owner { weight, root } = *self.owners.get(owner)?;
        // Before any lease of the table expires, the sum needs no search.
        let all = || self.nodes.get(root).map_or(0, |node| node.cost);
        let held = if now < table.soonest { all() } else { self.after::<OfOwner>(table, root, now) };
        (held > 0).then_some((held, weight))
    }

    /// What all owners hold at `now`.
    pub(in crate::state) fn held(&self, table: &Table, now: Tick) -> HeldByOwners {
        self.after::<OfAll>(table, self.root, now)
    }

    /// The sum over the leases of a tree that are held at `now`.
    fn after<'t, T: Tree<Items<'t>, Node = Node>>(
        &'t self,
        table: &'t Table,
        root: u32,
        now: Tick,
    ) -> T::Total {
        let items = self.items(table);
        let mut sum = T::Total::default();
        let mut at = root;
        while let Some((lease, node)) = items.lease(at).zip(self.nodes.get(at)) {
            let Links { left, right, .. } = T::links(node);
            if lease.deadline() > now {
                let later = self.nodes.get(right).map(T::total).unwrap_or_default();
                sum = sum.plus(T::own(&items, at)).plus(later);
                at = left;
            } else {
                at = right;
            }
        }
        sum
    }

    /// When the next lease of an owner expires that is held at `now`.
    pub(in crate::state) fn next_end(&self, table: &Table, owner: &[u8], now: Tick) -> Option<Tick> {
        let mut at = self.owners.get(owner)?.root;
        let (items, mut next) = (self.items(table), None);
        while let Some((lease, node)) = items.lease(at).zip(self.nodes.get(at)) {
            let is_held = lease.deadline() > now;
            next = if is_held { Some(lease.deadline()) } else { next };
            at = if is_held { node.of_owner.left } else { node.of_owner.right };
        }
        next
    }

    /// The owners that hold something at `now`, in no order.
    pub(in crate::state) fn holders(&self, table: &Table, now: Tick) -> Vec<&[u8]> {
        let mut holders = Vec::new();
        self.collect_holders(&self.items(table), self.root, now, &mut holders);
        holders
    }

    fn collect_holders<'s>(&'s self, items: &Items<'_>, at: u32, now: Tick, holders: &mut Vec<&'s [u8]>) {
        let node = self.nodes.get(at).filter(|node| node.owners > 0);
        let Some(((lease, node), item)) = items.lease(at).zip(node).zip(self.items.get(at)) else { return };
        let Links { left, right, .. } = node.of_all;
        if lease.deadline() > now {
            self.collect_holders(items, left, now, holders);
            holders.extend(item.is_last.then_some(&*item.owner));
        }
        self.collect_holders(items, right, now, holders);
    }

    /// The slots of all leases with an owner in the order of their deadlines, each with the owner.
    pub(in crate::state) fn in_order(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let items = in_order::<_, Items<'_>, OfAll>(&self.nodes, self.root);
        items.into_iter().filter_map(|item| self.items.get(item).map(|item| (item.slot, &*item.owner)))
    }

    /// The item of the lease in a slot.
    pub(in crate::state) fn find(&self, table: &Table, slot: u32) -> Option<u32> {
        let key = ByDeadline::order(table.leases.get(slot)?.key());
        let items = self.items(table);
        let mut at = self.root;
        loop {
            let order = key.cmp(&OfAll::key(&items, at)?);
            let Links { left, right, .. } = self.nodes.get(at)?.of_all;
            at = match order {
                Ordering::Less => left,
                Ordering::Equal => return Some(at),
                Ordering::Greater => right,
            };
        }
    }

    /// The item of a tree that expires last.
    fn last_of(&self, root: u32) -> u32 {
        let mut at = root;
        while let Some(node) = self.nodes.get(at) {
            match node.of_owner.right {
                NONE => break,
                right => at = right,
            }
        }
        at
    }

    fn items<'t>(&'t self, table: &'t Table) -> Items<'t> {
        Items { leases: &table.leases, items: &self.items }
    }

    /// The bytes that are allocated, roughly.
    pub(in crate::state) fn allocated(&self) -> usize {
        // A node of a tree has room for a third more entries than it holds.
        let owners = self.owners.len() * (size_of::<Arc<[u8]>>() + size_of::<Owner>()) * 4 / 3;
        self.name_bytes + size_class(owners) + self.items.allocated() + self.nodes.allocated()
    }
}

/// Changes.
impl Owned {
    /// Gives the lease in a slot an owner, which has this weight from now on. The lease must have none.
    pub(in crate::state) fn add(
        &mut self,
        table: &Table,
        slot: u32,
        (name, weight): (&[u8], u32),
    ) -> Arc<[u8]> {
        let known = self.owners.get_key_value(name).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| self.push_owner(name, weight));
        self.owners.get_mut(&name).into_iter().for_each(|owner| owner.weight = weight);
        let item = self.items.push(Item { slot, is_last: false, owner: name.clone() });
        self.nodes.push(NEW);
        self.link(table, item);
        name
    }

    /// Takes the lease in a slot from its owner, and returns the owner.
    pub(in crate::state) fn remove(&mut self, table: &Table, slot: u32) -> Option<Arc<[u8]>> {
        let item = self.find(table, slot)?;
        let owner = self.unlink(table, item)?;
        if self.owners.get(&owner).is_some_and(|owner| owner.root == NONE) {
            self.owners.remove(&owner);
            self.name_bytes -= name_bytes(&owner);
        }
        let last = number(self.items.len()).saturating_sub(1);
        if item != last
            && let Some(of_last) = self.items.get(last).and_then(|last| self.owners.get_mut(&last.owner))
        {
            let items = Items { leases: &table.leases, items: &self.items };
            let mut forest = Forest { nodes: &mut self.nodes, leases: &items };
            of_last.root = forest.rename::<OfOwner>(of_last.root, last, item);
            self.root = forest.rename::<OfAll>(self.root, last, item);
        }
        self.nodes.swap_remove(item);
        self.items.swap_remove(item);
        Some(owner)
    }

    /// The lease of an item moved to another slot.
    pub(in crate::state) fn move_to(&mut self, item: u32, slot: u32) {
        self.items.get_mut(item).into_iter().for_each(|item| item.slot = slot);
    }

    /// Adds an item to both trees.
    pub(in crate::state) fn link(&mut self, table: &Table, item: u32) {
        let Some(root) = self.root_of(item) else { return };
        let before = self.last_of(root);
        let root = self.change(table, |forest| forest.link::<OfOwner>(root, item));
        self.set_root_of(item, root);
        let is_last = self.last_of(root) == item;
        if is_last && before != NONE {
            self.set_last(table, before, false);
        }
        self.items.get_mut(item).into_iter().for_each(|item| item.is_last = is_last);
        let all = self.root;
        self.root = self.change(table, |forest| forest.link::<OfAll>(all, item));
    }

    /// Takes an item out of both trees, before its deadline changes. Returns its owner.
    pub(in crate::state) fn unlink(&mut self, table: &Table, item: u32) -> Option<Arc<[u8]>> {
        let (all, root) = (self.root, self.root_of(item)?);
        self.root = self.change(table, |forest| forest.unlink::<OfAll>(all, item));
        let root = self.change(table, |forest| forest.unlink::<OfOwner>(root, item));
        self.set_root_of(item, root);
        let Item { is_last, owner, .. } = self.items.get(item)?.clone();
        if is_last && root != NONE {
            self.set_last(table, self.last_of(root), true);
        }
        Some(owner)
    }

    /// Notes whether an item of the tree of all is the last of its owner.
    fn set_last(&mut self, table: &Table, item: u32, is_last: bool) {
        self.items.get_mut(item).into_iter().for_each(|item| item.is_last = is_last);
        let one = HeldByOwners { cost: 0, owners: 1 };
        let add = |held: HeldByOwners| if is_last { held.plus(one) } else { held.minus(one) };
        let all = self.root;
        self.change(table, |forest| forest.add::<OfAll>(all, item, add));
    }

    /// Changes trees of a table.
    #[inline(always)]
    fn change<T>(&mut self, table: &Table, change: impl FnOnce(&mut Forest<'_, Node, Items<'_>>) -> T) -> T {
        let items = Items { leases: &table.leases, items: &self.items };
        change(&mut Forest { nodes: &mut self.nodes, leases: &items })
    }

    /// The root of the tree of an item's owner.
    fn root_of(&self, item: u32) -> Option<u32> {
        self.owners.get(&self.items.get(item)?.owner).map(|owner| owner.root)
    }

    fn set_root_of(&mut self, item: u32, root: u32) {
        let owner = self.items.get(item).and_then(|item| self.owners.get_mut(&item.owner));
        if let Some(owner) = owner {
            owner.root = root;
        }
    }

    /// Notes an owner, which will have a lease.
    pub(in crate::state) fn push_owner(&mut self, name: &[u8], weight: u32) -> Arc<[u8]> {
        let name: Arc<[u8]> = Arc::from(name);
        self.name_bytes += name_bytes(&name);
        self.owners.insert(name.clone(), Owner { weight, root: NONE });
        name
    }

    /// Gives the lease in a slot of a table that is read an owner that was noted.
    pub(in crate::state) fn push(&mut self, slot: u32, owner: Arc<[u8]>) {
        self.items.push(Item { slot, is_last: false, owner });
        self.nodes.push(NEW);
    }

    /// Makes the trees of a table that was read. Returns whether each owner has a lease.
    pub(in crate::state) fn grow(&mut self, table: &Table) -> bool {
        let mut in_order: Vec<u32> = (0..number(self.items.len())).collect();
        let items = Items { leases: &table.leases, items: &self.items };
        in_order.sort_unstable_by_key(|item| OfAll::key(&items, *item));
        let mut by_owner: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        for item in &in_order {
            if let Some(Item { owner, .. }) = self.items.get(*item) {
                by_owner.entry(owner).or_default().push(*item);
            }
        }
        let mut forest = Forest { nodes: &mut self.nodes, leases: &items };
        for (name, of_owner) in &by_owner {
            if let Some(owner) = self.owners.get_mut(*name) {
                owner.root = forest.grow::<OfOwner>(of_owner);
            }
        }
        let lasts: Vec<u32> = by_owner.values().filter_map(|of_owner| of_owner.last()).copied().collect();
        for last in lasts {
            self.items.get_mut(last).into_iter().for_each(|item| item.is_last = true);
        }
        let items = Items { leases: &table.leases, items: &self.items };
        self.root = Forest { nodes: &mut self.nodes, leases: &items }.grow::<OfAll>(&in_order);
        self.owners.values().all(|owner| owner.root != NONE)
    }
}

/// The bytes that are allocated for a name.
fn name_bytes(name: &[u8]) -> usize {
    size_class(name.len() + 2 * size_of::<usize>())
}

#[cfg(test)]
impl Owned {
    /// Checks the trees and the sums.
    pub(in crate::state) fn audit(&self, table: &Table) {
        let items = self.items(table);
        let all = audit::<_, _, OfAll>(&self.nodes, &items, self.root);
        assert_eq!((all.len(), self.nodes.len()), (self.items.len(), self.items.len()));
        let mut count = 0;
        for (name, owner) in &self.owners {
            let slots = audit::<_, _, OfOwner>(&self.nodes, &items, owner.root);
            let of_owner = slots.iter().map(|slot| self.items.get(*slot).unwrap());
            assert!(of_owner.clone().all(|item| item.owner == *name));
            let lasts: Vec<bool> = of_owner.map(|item| item.is_last).collect();
            assert!(lasts.iter().rev().enumerate().all(|(place, is_last)| *is_last == (place == 0)));
            assert!(!slots.is_empty());
            count += slots.len();
        }
        assert_eq!(count, self.items.len());
        assert_eq!(self.name_bytes, self.owners.keys().map(|name| name_bytes(name)).sum());
    }
}
