//! A limit, with what it holds and what its line remembers.

use std::collections::BTreeMap;

use super::call::{Tenant, Wish};

/// A tenant that was refused without waiting.
#[derive(Clone, Debug)]
pub struct Hunger {
    /// Its place by arrival.
    pub began: u64,
    /// The number of its last call.
    pub asked: u64,
    /// When it ends, in microseconds of a clock that is never set back.
    pub ends: u64,
    /// The id of its last call.
    pub id: u64,
    pub wish: Wish,
}

#[derive(Clone, Debug)]
pub struct Lease {
    pub id: u64,
    pub tenant: Tenant,
    pub cost: u64,
    /// In microseconds of a clock that can be set back.
    pub ends: u64,
}

/// How a limit admits.
#[derive(Clone, Debug)]
pub enum Kind {
    /// At most the capacity is held at once.
    Leases { leases: Vec<Lease>, last: u64 },
    /// Pays off a cost of 1 in each interval. At `full`, nothing is owed.
    Bucket { interval: u64, full: u64, last: u64 },
}

/// A limit and its line.
#[derive(Clone, Debug)]
pub struct Limit {
    pub kind: Kind,
    /// V, the virtual time.
    pub virtual_time: u128,
    /// S of each tenant that waits or is hungry.
    pub starts: BTreeMap<Tenant, u128>,
    /// F of each tenant that waited or was granted something.
    pub finishes: BTreeMap<Tenant, u128>,
    /// Of a bucket: how far settlements can still move each tenant back.
    pub open: BTreeMap<Tenant, u128>,
    /// Of a bucket: the weight of the last grant to each tenant.
    pub granted: BTreeMap<Tenant, u64>,
    pub hungry: BTreeMap<Tenant, Hunger>,
    /// The weight of each tenant that holds leases.
    pub weights: BTreeMap<Tenant, u64>,
    /// The last weight of each tenant that waits, of a bucket.
    pub known: BTreeMap<Tenant, u64>,
}

impl Limit {
    pub fn leases() -> Limit {
        Limit::of(Kind::Leases { leases: Vec::new(), last: 0 })
    }

    pub fn bucket(interval: u64) -> Limit {
        Limit::of(Kind::Bucket { interval, full: 0, last: 0 })
    }

    fn of(kind: Kind) -> Limit {
        Limit {
            kind,
            virtual_time: 0,
            starts: BTreeMap::new(),
            finishes: BTreeMap::new(),
            open: BTreeMap::new(),
            granted: BTreeMap::new(),
            hungry: BTreeMap::new(),
            weights: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// The leases that are held when the wall clock shows `wall`.
    pub(super) fn held_leases(&self, wall: u64) -> impl Iterator<Item = &Lease> {
        let (leases, last): (&[Lease], u64) = match &self.kind {
            Kind::Leases { leases, last } => (leases, *last),
            Kind::Bucket { .. } => (&[], 0),
        };
        leases.iter().filter(move |lease| lease.ends > wall.max(last))
    }

    /// If the wall clock was set back by more than what is held or owed lasts, that lasts as long from now on.
    pub(super) fn move_to(&mut self, wall: u64) {
        match &mut self.kind {
            Kind::Leases { leases, last } => {
                leases.retain(|lease| lease.ends > *last);
                let longest = leases.iter().map(|lease| lease.ends - *last).max().unwrap_or(0);
                if *last > wall && *last - wall > longest {
                    for lease in leases.iter_mut() {
                        lease.ends -= *last - wall;
                    }
                    *last = wall;
                }
            }
            Kind::Bucket { full, last, .. } => {
                let owed = full.saturating_sub(*last);
                if *last > wall && *last - wall > owed {
                    *full = wall + owed;
                    *last = wall;
                }
            }
        }
    }

    /// Notes a change when the wall clock shows `wall`, and returns the instant of the change. Leases that have expired do not come
    /// back.
    pub(super) fn change_at(&mut self, wall: u64) -> u64 {
        self.move_to(wall);
        let (Kind::Leases { last, .. } | Kind::Bucket { last, .. }) = &mut self.kind;
        *last = wall.max(*last);
        let now = *last;
        if let Kind::Leases { leases, .. } = &mut self.kind {
            leases.retain(|lease| lease.ends > now);
        }
        now
    }

    /// What the leases of a tenant cost together.
    pub fn held(&self, tenant: Tenant, wall: u64) -> u64 {
        self.held_leases(wall).filter(|lease| lease.tenant == tenant).map(|lease| lease.cost).sum()
    }

    /// The weight of a tenant that holds something.
    pub(super) fn weight(&self, tenant: Tenant, wall: u64) -> Option<u64> {
        self.weights.get(&tenant).copied().filter(|_| self.held(tenant, wall) > 0)
    }

    /// What all leases cost together.
    pub fn used(&self, wall: u64) -> u64 {
        self.held_leases(wall).map(|lease| lease.cost).sum()
    }

    /// Whether the limit itself has room.
    pub fn has_room(&self, wish: &Wish, wall: u64) -> bool {
        match &self.kind {
            Kind::Leases { .. } => self.used(wall) + wish.cost <= wish.most,
            Kind::Bucket { interval, full, last } => {
                let now = wall.max(*last);
                now.max(*full) + interval * wish.cost <= now + interval * wish.most
            }
        }
    }

    fn finish(&self, tenant: Tenant) -> u128 {
        self.finishes.get(&tenant).copied().unwrap_or(0)
    }

    /// A tenant begins to wait: what it may still be moved back is at most what it is ahead of the others.
    pub(super) fn close(&mut self, tenant: Tenant) {
        let ahead = self.finish(tenant).saturating_sub(self.virtual_time);
        let open = self.open.entry(tenant).or_default();
        *open = ahead.min(*open);
        self.finishes.entry(tenant).or_default();
    }

    /// S of a tenant: what it began with, or what it would begin with now.
    pub(super) fn start(&self, tenant: Tenant) -> u128 {
        let begins = self.virtual_time.max(self.finish(tenant));
        self.starts.get(&tenant).copied().unwrap_or(begins)
    }
}

/// The cost by the weight, in units of 2^-32, rounded up.
pub fn units(cost: u64, weight: u64) -> u128 {
    (u128::from(cost) << 32).div_ceil(u128::from(weight))
}

/// The same, rounded down.
pub fn whole_units(cost: u64, weight: u64) -> u128 {
    (u128::from(cost) << 32) / u128::from(weight)
}
