//! Random histories of callers of one limit or two. Two limits are leases in whose lines tenants wait, one is a quota, and
//! one is a bucket.

use ratelimit_laws::fair::{Call, Fair, Kind, Limit, Tenant, Wish};

use super::dice::Dice;

/// The leases, the quota and the bucket.
const LIMITS: usize = 4;
const QUOTA: usize = 2;
const BUCKET: usize = 3;

struct World {
    dice: Dice,
    fair: Fair,
    /// The capacity of each limit, of which the last lease is reserved for critical callers.
    capacities: [u64; LIMITS],
    tenants: u64,
    ids: u64,
    /// The most microseconds that pass at once.
    step: u64,
    events: usize,
    granted: usize,
    waited: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice::new(seed);
        let interval = 1 + dice.below(500);
        let limits = vec![Limit::leases(), Limit::leases(), Limit::leases(), Limit::bucket(interval)];
        let mut fair = Fair::new(limits);
        fair.hunger = dice.below(4) * 400;
        fair.wall = 1_000_000_000;
        let capacities = [0; LIMITS].map(|_| 1 + dice.below(6));
        let (tenants, step) = (1 + dice.below(6), 1 + dice.below(1000));
        World { dice, fair, capacities, tenants, ids: 0, step, events: 0, granted: 0, waited: 0 }
    }

    fn wish(&mut self, limit: usize, tenant: Tenant) -> Wish {
        let capacity = self.capacities[limit];
        let critical = limit != BUCKET && self.dice.happens(1, 12);
        let most =
            if critical || limit == BUCKET { capacity } else { capacity.max(2) - u64::from(capacity > 2) };
        let cost = if self.dice.happens(1, 2) { 1 } else { 1 + self.dice.below(most) };
        let weight = (tenant > 0 && self.dice.happens(1, 3)).then(|| 1 + self.dice.below(4));
        Wish { limit, tenant, weight, cost, most, critical }
    }

    fn call(&mut self) -> Call {
        let first = usize::try_from(self.dice.below(LIMITS as u64)).expect("an index");
        let second = usize::try_from(self.dice.below(LIMITS as u64)).expect("an index");
        let tenant = Tenant::try_from(self.dice.below(self.tenants + 1)).expect("a few");
        let of_first = if first == QUOTA { 0 } else { tenant };
        let mut wishes = vec![self.wish(first, of_first)];
        if second != first && self.dice.happens(1, 2) {
            wishes.push(self.wish(second, if first == QUOTA { tenant } else { 0 }));
        }
        self.ids += 1;
        Call { wishes, id: self.ids, ttl: 1 + self.dice.below(3000) }
    }

    fn is_bucket(wish: &Wish) -> bool {
        wish.limit == BUCKET
    }

    fn happen(&mut self) {
        self.events += 1;
        match self.dice.below(12) {
            0..5 => {
                let call = self.call();
                // A call for a bucket has a tenant only if it waits.
                let blocks = self.dice.happens(1, 2) || call.wishes.iter().any(World::is_bucket);
                self.fair.arrive(&call, blocks);
            }
            5..8 => {
                let limit = usize::try_from(self.dice.below(BUCKET as u64)).expect("an index");
                if let Some(id) = self.some_lease(limit) {
                    for limit in 0..BUCKET {
                        self.fair.release(limit, id);
                    }
                }
            }
            8 => {
                let limit = usize::try_from(self.dice.below(BUCKET as u64)).expect("an index");
                let ttl = 1 + self.dice.below(3000);
                if let Some(id) = self.some_lease(limit) {
                    self.fair.renew(limit, id, ttl);
                }
            }
            9 if self.dice.happens(1, 4) => {
                let nth = self.dice.below(self.fair.waiting.len().max(1) as u64);
                let nth = usize::try_from(nth).expect("an index");
                if let Some(caller) = self.fair.waiting.get(nth).map(|waiting| waiting.caller) {
                    self.fair.leave(caller);
                }
            }
            10 if self.dice.happens(1, 20) => {
                let step = self.dice.below(20_000);
                self.fair.wall =
                    if self.dice.happens(1, 2) { self.fair.wall + step } else { self.fair.wall - step };
                self.fair.tidy();
            }
            _ => {
                let micros = self.dice.below(self.step);
                self.fair.pass(micros);
            }
        }
    }

    fn some_lease(&mut self, limit: usize) -> Option<u64> {
        let Kind::Leases { leases, .. } = &self.fair.limits[limit].kind else { return None };
        let nth = self.dice.below(leases.len().max(1) as u64);
        leases.get(usize::try_from(nth).expect("an index")).map(|lease| lease.id)
    }

    fn serve(&mut self) {
        let before = self.fair.waiting.len();
        self.waited += before;
        self.granted += self.fair.serve().len();
        self.is_at_rest();
    }

    /// No caller is due. The first one of each line has no room, or leaves it for a tenant that is hungry.
    fn is_at_rest(&self) {
        for limit in 0..LIMITS {
            let wall = self.fair.wall;
            let of_limit = &self.fair.limits[limit];
            assert!(limit == BUCKET || of_limit.used(wall) <= self.capacities[limit].max(2));
            let line = self.fair.line(limit);
            let Some(first) = line.iter().position(|standing| standing.caller.is_some()) else { continue };
            let wish = &line[first].wish;
            let after = of_limit.used(wall) + wish.cost;
            let keeps = line[..first].iter().any(|hungry| after + hungry.wish.cost > hungry.wish.most);
            assert!(keeps || !of_limit.has_room(wish, wall), "{:?}", line[first]);
        }
    }

    /// All leases end again and again, until nobody waits.
    fn finish(&mut self) {
        let mut rounds = 0;
        while !self.fair.waiting.is_empty() {
            rounds += 1;
            assert!(rounds < 10_000, "{:?}", self.fair.waiting);
            let before = self.fair.waiting.len();
            for limit in 0..BUCKET {
                while let Some(id) = self.some_lease(limit) {
                    (0..BUCKET).for_each(|limit| _ = self.fair.release(limit, id));
                }
            }
            self.serve();
            if self.fair.waiting.len() == before {
                self.fair.pass(100);
                self.serve();
            }
        }
    }
}

#[test]
fn in_random_histories_nobody_is_forgotten_and_no_room_is_lost() {
    let (mut granted, mut waited, mut events) = (0, 0, 0);
    for seed in 0..100 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.happen();
            if world.dice.happens(2, 3) {
                world.serve();
            }
        }
        world.finish();
        granted += world.granted;
        waited += world.waited;
        events += world.events;
    }
    assert!(granted > events / 20 && waited > events, "{granted} of {waited} in {events}");
}
