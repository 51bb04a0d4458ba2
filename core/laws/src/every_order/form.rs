//! When two states are equal: they differ in the names of tenants only, and in what no event will ever tell.

use std::array;

use ratelimit_core::limiter::Limiter;
use ratelimit_core::line::View;

use super::node::{Node, name_of};
use super::size::POOL;
use super::trial::ticks;

/// What a state is known by: a hash of 128 bits. That two of ten million states collide has a probability of 10^-25.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form(pub u128);

/// The most tenants.
const TENANTS: usize = 4;

impl Node {
    /// The form of the state, and as bits the tenants of whom nothing is known.
    pub fn form(&self) -> (Form, u8) {
        let mut of_tenants: [Vec<u64>; TENANTS] = array::from_fn(|_| Vec::new());
        let mut of_all: Vec<u64> = Vec::with_capacity(128);
        let view = View {
            now: self.now,
            far: self.far(),
            moved: self.moved(),
            // The id of a hunger is that of the tenant's next poll, whatever it is.
            id: &|_| 0,
            table: &|key| self.pool.as_ref().filter(|_| key == 0),
        };
        let number = |name: &[u8]| (0..4u8).position(|tenant| name_of(tenant) == name);
        self.lines.form(&view, &mut |name, words| match name
            .and_then(number)
            .and_then(|tenant| of_tenants.get_mut(tenant))
        {
            Some(of_tenant) => of_tenant.extend_from_slice(words),
            None => of_all.extend_from_slice(words),
        });
        self.put_callers(&mut of_tenants);
        self.put_limits(&mut of_all);
        let is_blank = |tenant: &usize| of_tenants.get(*tenant).is_some_and(Vec::is_empty);
        let blank = (0..self.size.tenants).filter(is_blank).map(|tenant| 1 << tenant).sum();
        of_tenants.sort_unstable();
        let mut hash = Hash::NEW;
        for words in of_tenants.iter().chain([&of_all]) {
            hash.put(words.len() as u64);
            for word in words {
                hash.put(*word);
            }
        }
        (hash.form(), blank)
    }

    /// What the settlements that are left can move a turn by: a grant of two to three, or to one.
    fn moved(&self) -> u64 {
        self.settlements.into()
    }

    /// Tags differ by at most the largest cost from starts, and settlements move any two of them towards one another.
    fn far(&self) -> u64 {
        let costs = self.size.asks.iter().flat_map(|ask| ask.costs);
        costs.max().unwrap_or(1) + 2 * self.moved()
    }

    fn put_callers(&self, of_tenants: &mut [Vec<u64>; TENANTS]) {
        for (place, waits) in self.waiting.iter().enumerate() {
            if let Some(words) = of_tenants.get_mut(usize::from(waits.call.tenant)) {
                words.extend([9, place as u64, waits.call.ask.into()]);
            }
        }
        let mut works: Vec<(u8, [u64; 4])> = Vec::with_capacity(4);
        for one in &self.works {
            let lease = one.lease.map_or([0; 2], |lease| [lease.cost, ticks(lease.ends, self.now)]);
            let hold = one.hold.map_or([0; 2], |hold| [hold.granted, ticks(hold.ends, self.now)]);
            works.push((one.tenant, [lease[0], lease[1], hold[0], hold[1]]));
        }
        works.sort_unstable();
        for (tenant, words) in works {
            if let Some(of_tenant) = of_tenants.get_mut(usize::from(tenant)) {
                of_tenant.push(8);
                of_tenant.extend(words);
            }
        }
        let Some(pool) = &self.pool else { return };
        for (tenant, words) in (0..).zip(of_tenants) {
            let share = pool.share(name_of(tenant), self.now);
            if share.held > 0 {
                words.extend([7, share.weight.into()]);
            }
        }
    }

    fn put_limits(&self, of_all: &mut Vec<u64>) {
        of_all.push(self.settlements.into());
        if let Some(pool) = &self.pool {
            let flags = [pool.has_tenants(), pool.has_ended(), pool.changes().is_some()].map(u64::from);
            of_all.extend(flags);
            of_all.push(pool.share(&[], self.now).held);
        }
        let bucket = self.bucket();
        if let Some(level) = self.rate {
            let gauge = bucket.gauge(&level, self.now);
            of_all.extend([gauge.remaining, gauge.reset.as_micros()]);
        }
        of_all.push(self.size.capacities[POOL]);
    }
}

/// Two hashes of 64 bits of the same words, by multiplication.
struct Hash([u64; 2]);

impl Hash {
    const NEW: Hash = Hash([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);

    fn put(&mut self, word: u64) {
        let Hash([one, other]) = *self;
        self.0 =
            [mix(one ^ word, 0x9e37_79b9_7f4a_7c15), mix(other.wrapping_add(word), 0xd6e8_feb8_6659_fd93)];
    }

    fn form(&self) -> Form {
        let Hash([one, other]) = *self;
        Form(u128::from(one) << 64 | u128::from(other))
    }
}

/// Both halves of a product, so that each bit of a word changes about half of the bits.
fn mix(word: u64, by: u64) -> u64 {
    let mixed = (word ^ word >> 32).wrapping_mul(by);
    let wide = u128::from(mixed ^ mixed >> 29) * u128::from(by | 1);
    u64::try_from(wide >> 64).unwrap_or(0) ^ u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(0)
}
