//! The tenants of a table of leases: how much each of them holds, and its weight.
//!
//! Only leases with a tenant are in here (`table/owned.rs`), so the first lease with one costs no pass over the others. What
//! no tenant holds is held by the tenant of the empty name.
//!
//! A fair line repeats what its tenants hold. So the names of the last tenants that changed are kept: the line reads these
//! anew, and those of which a lease has expired meanwhile.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::state::table::{Owned, Table, size_class};

/// The longest name, in bytes.
pub const MAX_TENANT: usize = 256;
/// The largest weight.
pub const MAX_WEIGHT: u32 = 1000;

/// The most changes that a line can have missed without reading all of its tenants anew.
const RECENT: usize = 32;
/// The same for a table of many leases with tenants: one for this many, up to a bound.
const LEASES_PER_RECENT: usize = 16;
const MOST_RECENT: usize = 256;

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

    /// Compares what two tenants hold, each for its weight.
    pub fn cmp_load(&self, other: &Share) -> Ordering {
        let product = |held: u64, weight: u32| u128::from(held) * u128::from(weight);
        product(self.held, other.weight).cmp(&product(other.held, self.weight))
    }
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
    owned: Owned,
    /// The number of changes, and the tenants of the last ones.
    changes: u64,
    recent: VecDeque<Arc<[u8]>>,
}

impl Tenants {
    /// The tenants of the leases of a table that is read: each slot with the number of its tenant. `None` if one has no lease.
    pub(super) fn read(names: &[(&[u8], u32)], slots: &[(u32, u64)], table: &Table) -> Option<Tenants> {
        let mut tenants = Tenants::default();
        let names: Vec<_> =
            names.iter().map(|(name, weight)| tenants.owned.push_owner(name, *weight)).collect();
        for (slot, number) in slots {
            tenants.owned.push(*slot, names.get(usize::try_from(*number).ok()?)?.clone());
        }
        tenants.owned.grow(table).then_some(tenants)
    }

    pub(super) fn owned(&self) -> &Owned {
        &self.owned
    }

    /// The lease in a slot was taken. `tenant` is its tenant's name and weight.
    pub(super) fn take(&mut self, table: &Table, slot: u32, tenant: Option<(&[u8], u32)>) {
        let name = tenant.map(|tenant| self.owned.add(table, slot, tenant));
        self.note(name);
    }

    /// The lease in a slot will end at another deadline. Returns its item.
    pub(super) fn lift(&mut self, table: &Table, slot: u32) -> Option<u32> {
        let item = self.owned.find(table, slot);
        let name = item.and_then(|item| self.owned.unlink(table, item));
        self.note(name);
        item
    }

    /// The lease of this item has its new deadline.
    pub(super) fn put_back(&mut self, table: &Table, item: u32) {
        self.owned.link(table, item);
    }

    /// The lease in a slot will be removed. If it is not held, its tenant does not change.
    pub(super) fn remove(&mut self, table: &Table, slot: u32, is_held: bool) {
        let name = self.owned.remove(table, slot);
        if is_held {
            self.note(name);
        }
    }

    /// The item of the lease in a slot.
    pub(super) fn item(&self, table: &Table, slot: u32) -> Option<u32> {
        self.owned.find(table, slot)
    }

    /// The lease of an item moved to another slot.
    pub(super) fn move_to(&mut self, item: u32, slot: u32) {
        self.owned.move_to(item, slot);
    }

    /// What a tenant with a name holds has changed.
    fn note(&mut self, name: Option<Arc<[u8]>>) {
        let Some(name) = name else { return };
        self.changes += 1;
        let most = RECENT.max((self.owned.len() / LEASES_PER_RECENT).min(MOST_RECENT));
        while self.recent.len() >= most {
            self.recent.pop_front();
        }
        if self.recent.capacity() > 2 * most {
            self.recent.shrink_to(most);
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
        Some(self.recent.iter().skip(before).map(|name| &**name))
    }

    /// The bytes that are allocated, roughly.
    pub(super) fn allocated(&self) -> usize {
        let recent = size_class(self.recent.capacity() * size_of::<Arc<[u8]>>());
        size_class(size_of::<Tenants>()) + self.owned.allocated() + recent
    }
}
