//! One state of the world: the shipped lines and tables, who waits and who works, and the model beside them.

use std::num::NonZeroU64;

use ratelimit_core::limiter::{Concurrent, Level, Limiter, TokenBucket};
use ratelimit_core::line::Caller;
use ratelimit_core::state::{Leases, Tenant};
use ratelimit_core::{Length, Lines, Name, Period, Span, Time};

use super::size::{Ask, POOL, Size};
use crate::fair::{Call, Fair, Limit, Wish};
use crate::states::charge;

/// The time between two events at which time passes.
pub const TICK: Span = Span::from_millis(1000);
/// How long a lease lasts, and a hold.
pub const TTL: Span = TICK.times(2);
/// How long a tenant is hungry.
pub const HUNGER: Span = TICK;

/// A caller that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// In the lines.
    pub caller: Caller,
    /// In the model.
    pub number: u64,
    pub call: Asked,
}

/// A call that was made.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The number of the call among those of the size.
    pub ask: u8,
    pub tenant: u8,
    pub id: u64,
}

/// A caller that was served.
#[derive(Clone, Copy, Debug)]
pub struct Works {
    pub tenant: u8,
    pub lease: Option<Lease>,
    pub hold: Option<Hold>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lease {
    pub id: u64,
    pub cost: u64,
    pub ends: Time,
}

/// What was charged to the rate, and is not settled yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hold {
    pub granted: u64,
    pub ends: Time,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub size: Size,
    pub now: Time,
    pub lines: Lines<u8>,
    /// `None` if the key does not exist.
    pub pool: Option<Leases>,
    pub rate: Option<Level>,
    /// By arrival.
    pub waiting: Vec<Waits>,
    pub works: Vec<Works>,
    /// What the rate may still admit, counted by itself.
    pub tokens: u64,
    pub settlements: u8,
    pub ids: u64,
    pub model: Fair,
}

impl Node {
    /// The world before anything has happened.
    pub fn new(size: Size) -> Node {
        let now = Time::EARLIEST;
        let interval = TICK.as_micros();
        let mut model = Fair::new(vec![Limit::leases(), Limit::bucket(interval)]);
        (model.steady, model.wall) = (now.as_micros(), now.as_micros());
        model.hunger = HUNGER.as_micros();
        Node {
            size,
            now,
            lines: Lines::new(),
            pool: None,
            rate: None,
            waiting: Vec::new(),
            works: Vec::new(),
            tokens: size.capacities[1],
            settlements: size.settlements,
            ids: 0,
            model,
        }
    }

    pub fn ask(&self, call: Asked) -> &'static Ask {
        &self.size.asks[usize::from(call.ask)]
    }

    /// The limits that a call asks.
    pub fn asked(&self, call: Asked) -> impl Iterator<Item = usize> + use<> {
        let costs = self.ask(call).costs;
        (0..2).filter(move |limit| costs[*limit] > 0)
    }

    pub fn name(limit: usize) -> Name {
        if limit == POOL { Name::of::<Leases>(Length::NONE) } else { Name::of::<Level>(Length::of(TICK)) }
    }

    /// The name of the tenant of a call at a limit.
    pub fn tenant(&self, call: Asked, limit: usize) -> &'static [u8] {
        if self.ask(call).fair == limit { name_of(call.tenant) } else { &[] }
    }

    pub fn bucket(&self) -> TokenBucket {
        let number = |number| NonZeroU64::new(number).expect("a number");
        let period = Period::of(TICK).expect("a tick");
        TokenBucket::new(number(self.size.capacities[1]), number(1), period).expect("a short debt")
    }

    /// Runs a part of a trial with the pool's limiter.
    pub fn with_pool<R>(&self, call: Asked, run: impl FnOnce(&Concurrent<'_>) -> R) -> R {
        let name = self.tenant(call, POOL);
        let tenant = (!name.is_empty()).then_some(Tenant { name, weight: self.ask(call).weight });
        let (limit, ttl) = (self.size.capacities[POOL], Period::of(TTL).expect("a ttl"));
        let id = call.id.to_be_bytes();
        run(&Concurrent { critical: self.ask(call).critical, tenant, ..Concurrent::plain(limit, ttl, &id) })
    }

    /// The call as the model has it.
    pub fn of_model(&self, call: Asked) -> Call {
        let ask = self.ask(call);
        let wish = |limit: usize| Wish {
            limit,
            tenant: if ask.fair == limit { 1 + u32::from(call.tenant) } else { 0 },
            weight: ask.weight.filter(|_| ask.fair == limit).map(u64::from),
            cost: ask.costs[limit],
            most: self.size.capacities[limit],
            critical: ask.critical,
        };
        let wishes = self.asked(call).map(wish).collect();
        Call { wishes, id: call.id, ttl: TTL.as_micros(), estimated: ask.holds }
    }

    /// The callers that neither wait nor work.
    pub fn idle(&self) -> usize {
        self.size.callers.saturating_sub(self.waiting.len() + self.works.len())
    }

    /// Charges a limit, by the bytes of the change.
    pub fn charge(&mut self, call: Asked, limit: usize) {
        let cost = self.ask(call).costs[limit];
        if limit == POOL {
            let mut table = self.pool.take().unwrap_or_default();
            self.with_pool(call, |pool| charge(pool, &mut table, self.now, cost));
            self.pool = Some(table);
        } else {
            let bucket = self.bucket();
            let level = self.rate.get_or_insert_with(|| bucket.fresh(self.now));
            charge(&bucket, level, self.now, cost);
        }
    }
}

/// The key of a limit.
pub fn key_of(limit: usize) -> u8 {
    u8::from(limit != POOL)
}

/// The names of tenants.
pub fn name_of(tenant: u8) -> &'static [u8] {
    match tenant {
        0 => b"ann",
        1 => b"bob",
        2 => b"cid",
        _ => b"dan",
    }
}
