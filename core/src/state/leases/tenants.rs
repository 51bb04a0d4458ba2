//! The tenants of a table of leases: how much each of them holds, and its weight.
//!
//! Only leases with a tenant are in here, by their slots in the table. So a lease without a tenant takes no byte more, and
//! the first lease with one costs no pass over the others. What no tenant holds is held by the tenant of the empty name.
//!
//! The sums are those of the table's last change. Leases that have expired since then are still in them. A reader at a
//! later instant subtracts these.
//!
//! A fair line repeats what its tenants hold. So the names of the last tenants that changed are kept: the line reads only
//! these anew.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::mem::size_of;

use crate::state::table::size_class;

/// The longest name, in bytes.
pub const MAX_TENANT: usize = 256;
/// The largest weight.
pub const MAX_WEIGHT: u32 = 1000;

/// The most changes that a line can have missed without reading everything anew.
const RECENT: usize = 32;

/// The tenant of a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenant<'a> {
    pub name: &'a [u8],
    /// The weight that the call gives the tenant. Without one, the tenant keeps its own.
    pub weight: Option<u32>,
}

/// What a tenant holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    pub held: u64,
    /// 1 for a tenant that holds nothing.
    pub weight: u32,
}

impl Share {
    pub const NOTHING: Share = Share { held: 0, weight: 1 };
}

/// What a claim of leases depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The most that may be held with the claim.
    pub most: u64,
    /// What the tenant holds now.
    pub share: Share,
    /// The id of the lease, as a hash.
    pub id: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tenants {
    /// Those that hold something.
    by_name: BTreeMap<Arc<[u8]>, Holder>,
    /// The tenants of leases, by their slots. Also of those that have expired and are not freed.
    of_lease: BTreeMap<u32, Arc<[u8]>>,
    /// The cost of all leases that have a tenant and have not expired.
    cost: u64,
    /// The number of changes, and the tenants of the last ones; `None` for the tenant of the empty name.
    changes: u64,
    recent: VecDeque<Option<Arc<[u8]>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) weight: u32,
    leases: u32,
    pub(super) cost: u64,
}

impl Tenants {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The tenants that hold something, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<[u8]>, &Holder)> {
        self.by_name.iter()
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Holder> {
        self.by_name.get(name)
    }

    /// The cost of all leases with a tenant.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// The tenant of the lease in a slot; empty if it has none.
    pub(super) fn of_lease(&self, slot: u32) -> &[u8] {
        self.of_lease.get(&slot).map_or(&[], |name| name)
    }

    /// A lease was taken. `tenant` is its tenant's name and weight.
    pub(super) fn take(&mut self, slot: u32, tenant: Option<(&[u8], u32)>, cost: u32) {
        // The tenant of a lease that had expired in this slot.
        self.of_lease.remove(&slot);
        let Some((name, weight)) = tenant else { return self.note(None) };
        let name = self.by_name.get_key_value(name).map_or_else(|| Arc::from(name), |(name, _)| name.clone());
        let blank = Holder { weight, leases: 0, cost: 0 };
        let tenant = self.by_name.entry(name.clone()).or_insert(blank);
        tenant.weight = weight;
        tenant.leases += 1;
        tenant.cost += u64::from(cost);
        self.cost += u64::from(cost);
        self.of_lease.insert(slot, name.clone());
        self.note(Some(name));
    }

    /// The lease in a slot lasts to another deadline.
    pub(super) fn keep(&mut self, slot: u32) {
        self.note(self.of_lease.get(&slot).cloned());
    }

    /// The lease in a slot ends.
    pub(super) fn end(&mut self, slot: u32, cost: u32) {
        let name = self.of_lease.get(&slot).cloned();
        if let Some(name) = &name
            && let Some(tenant) = self.by_name.get_mut(name)
        {
            tenant.leases = tenant.leases.saturating_sub(1);
            tenant.cost = tenant.cost.saturating_sub(cost.into());
            self.cost = self.cost.saturating_sub(cost.into());
            if tenant.leases == 0 {
                self.by_name.remove(name);
            }
        }
        self.note(name);
    }

    /// A slot was freed, and the lease in the slot `last` moved into it.
    pub(super) fn free(&mut self, slot: u32, last: u32) {
        self.of_lease.remove(&slot);
        if let Some(name) = self.of_lease.remove(&last) {
            self.of_lease.insert(slot, name);
        }
    }

    fn note(&mut self, name: Option<Arc<[u8]>>) {
        self.changes += 1;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(name);
    }

    /// The number of changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The tenants that changed after this number of changes, some of them more than once; `None` if that is too long ago.
    pub(super) fn changed(&self, since: u64) -> Option<impl Iterator<Item = &[u8]>> {
        let missed = usize::try_from(self.changes.checked_sub(since)?).ok()?;
        let before = self.recent.len().checked_sub(missed)?;
        Some(self.recent.iter().skip(before).map(|name| name.as_deref().unwrap_or_default()))
    }

    /// The bytes that are allocated, roughly.
    pub(super) fn allocated(&self) -> usize {
        let names: usize =
            self.by_name.keys().map(|name| size_class(name.len() + 2 * size_of::<usize>())).sum();
        // A node of a tree has room for a third more entries than it holds.
        let tree = |count: usize, entry: usize| size_class(count * entry * 4 / 3);
        let by_name = tree(self.by_name.len(), size_of::<Arc<[u8]>>() + size_of::<Holder>());
        let of_lease = tree(self.of_lease.len(), size_of::<u32>() + size_of::<Arc<[u8]>>());
        let recent = size_class(self.recent.capacity() * size_of::<Option<Arc<[u8]>>>());
        size_class(size_of::<Tenants>()) + names + by_name + of_lease + recent
    }
}

#[cfg(test)]
impl Tenants {
    /// Checks the sums against the leases that have not expired: their slots and costs.
    pub(super) fn audit(&self, leases: impl Iterator<Item = (u32, u32)>) {
        let mut sums: BTreeMap<&[u8], (u32, u64)> = BTreeMap::new();
        for (slot, cost) in leases.filter(|(slot, _)| self.of_lease.contains_key(slot)) {
            let (leases, sum) = sums.entry(self.of_lease(slot)).or_default();
            (*leases, *sum) = (*leases + 1, *sum + u64::from(cost));
        }
        let ours = self.by_name.iter().map(|(name, tenant)| (&**name, (tenant.leases, tenant.cost)));
        assert!(ours.eq(sums.iter().map(|(name, sums)| (*name, *sums))));
        assert_eq!(self.cost, sums.values().map(|(_, cost)| cost).sum());
    }
}
