//! Random histories of callers of one limit or two. Two limits are leases in whose lines tenants take turns, one is a quota, and
//! one is a bucket.

use ratelimit_laws::fair::{Call, Kind, Limit, Outcome, Rule, Tenant, Wish};

use super::dice::Dice;
use super::pair::Pair;

const LIMITS: usize = 4;
/// The limits before it are leases.
const QUOTA: usize = 2;
const BUCKET: usize = 3;
/// All times are whole milliseconds, since a line wakes at most once in each.
const TICK: u64 = 1000;

/// The events of each history.
const EVENTS: u64 = 300;

/// How the callers of a history come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Come {
    /// Most wait. No one is hungry.
    Waiting,
    /// All ask again and again.
    Asking,
    /// Some wait, and others ask again and again.
    Both,
}

struct World {
    come: Come,
    dice: Dice,
    pair: Pair,
    capacities: [u64; LIMITS],
    tenants: u64,
    /// Whether calls give weights.
    weights: bool,
    ids: u64,
    /// The last calls that were refused, which ask again by their ids.
    refused: Vec<Call>,
    /// The most ticks that pass at once.
    step: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    events: u64,
    admitted: usize,
    refused: usize,
    granted: usize,
    timed_out: usize,
    kept: usize,
    tries: usize,
    settled: usize,
}

impl World {
    fn new(seed: u64, come: Come) -> World {
        let mut dice = Dice::new(seed);
        let interval = TICK * (1 + dice.below(500));
        let limits = vec![Limit::leases(), Limit::leases(), Limit::leases(), Limit::bucket(interval)];
        let mut pair = Pair::new(limits, Rule::Fair);
        let hunger = TICK * 400 * (1 + dice.below(3));
        pair.model.hunger = if come == Come::Waiting { 0 } else { hunger };
        let capacities = [0; LIMITS].map(|_| 1 + dice.below(6));
        let (tenants, step) = (1 + dice.below(6), 1 + dice.below(1000));
        let weights = dice.happens(2, 3);
        let counts = Counts::default();
        World { come, dice, pair, capacities, tenants, weights, ids: 0, refused: Vec::new(), step, counts }
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.dice.below(end as u64)).expect("an index")
    }

    fn wish(&mut self, limit: usize, tenant: Tenant) -> Wish {
        let capacity = self.capacities[limit];
        let critical = limit != BUCKET && self.dice.happens(1, 12);
        // One lease is reserved for critical callers, if there are a few.
        let most = if critical || limit == BUCKET || capacity < 3 { capacity } else { capacity - 1 };
        let cost = if self.dice.happens(1, 2) { 1 } else { 1 + self.dice.below(most) };
        // A tenant changes its weight now and then.
        let weight = 1 + (u64::from(tenant) + u64::from(self.dice.happens(1, 10))) % 5;
        let weight = Some(weight).filter(|_| tenant > 0 && self.weights && self.dice.happens(2, 3));
        Wish { limit, tenant, weight, cost, most, critical }
    }

    /// A call of one limit or two, of which one has a tenant.
    fn call(&mut self) -> Call {
        let [first, second] = [0; 2].map(|_| self.index(LIMITS));
        let tenant = Tenant::try_from(self.dice.below(self.tenants + 1)).expect("a few");
        let mut wishes = vec![self.wish(first, if first == QUOTA { 0 } else { tenant })];
        if second != first && self.dice.happens(1, 2) {
            wishes.push(self.wish(second, 0));
        }
        self.ids += 1;
        let (ttl, estimated) = (TICK * (1 + self.dice.below(3000)), self.dice.happens(1, 2));
        Call { wishes, id: self.ids, ttl, estimated }
    }

    /// A call that was refused, again, now and then with another tenant. Not if its id is held or waits.
    fn again(&mut self) -> Option<Call> {
        let nth = self.index(self.refused.len().max(1));
        let mut call = self.refused.get(nth)?.clone();
        if self.dice.happens(1, 8) {
            let tenant = Tenant::try_from(self.dice.below(self.tenants + 1)).expect("a few");
            let fair = call.wishes.iter_mut().filter(|wish| wish.tenant > 0);
            fair.for_each(|wish| (wish.tenant, wish.weight) = (tenant, None));
        }
        let model = &self.pair.model;
        let is_held = |limit: &Limit| match &limit.kind {
            Kind::Leases { leases, .. } => leases.iter().any(|lease| lease.id == call.id),
            Kind::Bucket { .. } => false,
        };
        let is_taken = model.limits.iter().any(is_held)
            || model.waiting.iter().any(|waiting| waiting.call.id == call.id);
        (!is_taken).then_some(call)
    }

    fn happen(&mut self) {
        self.counts.events += 1;
        match self.dice.below(14) {
            0..5 => self.arrive(),
            5..8 => {
                let limit = self.index(BUCKET);
                if let Some(id) = self.some_lease(limit) {
                    for limit in 0..BUCKET {
                        self.pair.act(limit, id, None);
                    }
                }
            }
            8 => {
                let limit = self.index(BUCKET);
                let ttl = TICK * (1 + self.dice.below(3000));
                if let Some(id) = self.some_lease(limit) {
                    self.pair.act(limit, id, Some(ttl));
                }
            }
            9 if self.dice.happens(1, 4) => {
                let nth = self.index(self.pair.model.waiting.len().max(1));
                if let Some(caller) = self.pair.model.waiting.get(nth).map(|waiting| waiting.caller) {
                    self.pair.leave(caller);
                }
            }
            // Who asked for a lease releases it, whether it holds it or not.
            9 => {
                if let Some(call) = self.refused.first().cloned() {
                    call.wishes.iter().filter(|wish| wish.limit < BUCKET).for_each(|wish| {
                        self.pair.act(wish.limit, call.id, None);
                    });
                }
            }
            12 | 13 => self.settle(),
            10 if self.dice.happens(1, 20) => {
                let step = TICK * self.dice.below(20_000);
                let wall = self.pair.model.wall;
                self.pair.set_wall(if self.dice.happens(1, 2) { wall + step } else { wall - step });
            }
            _ => {
                let ticks = self.dice.below(self.step);
                self.pair.pass(TICK * ticks);
            }
        }
    }

    /// A settlement of something that was granted, or of anything.
    fn settle(&mut self) {
        let tenant = Tenant::try_from(self.dice.below(self.tenants + 1)).expect("a few");
        let [granted, used] = [0; 2].map(|_| self.dice.below(9));
        self.pair.settle(BUCKET, tenant, granted.max(1), used);
        self.counts.settled += usize::from(!self.pair.model.limits[BUCKET].finishes.is_empty());
    }

    fn arrive(&mut self) {
        let again = if self.dice.happens(1, 2) { self.again() } else { None };
        let call = again.unwrap_or_else(|| self.call());
        let blocks = match self.come {
            // A call for a bucket has a tenant only if it waits.
            Come::Waiting | Come::Both => {
                self.dice.happens(1, 2) || call.wishes.iter().any(|wish| wish.limit == BUCKET)
            }
            Come::Asking => false,
        };
        let timeout = if self.dice.happens(1, 3) { TICK * self.dice.below(5000) } else { u64::MAX / 4 };
        match self.pair.arrive(&call, blocks, timeout) {
            Outcome::Admitted => self.counts.admitted += 1,
            Outcome::Refused(_) => {
                self.counts.refused += 1;
                self.refused.insert(0, call);
                self.refused.truncate(6);
            }
            Outcome::Waits(_) => (),
        }
    }

    fn some_lease(&mut self, limit: usize) -> Option<u64> {
        let Kind::Leases { leases, .. } = &self.pair.model.limits[limit].kind else { return None };
        let nth = self.dice.below(leases.len().max(1) as u64);
        leases.get(usize::try_from(nth).expect("an index")).map(|lease| lease.id)
    }

    fn serve(&mut self) {
        self.counts.granted += self.pair.serve().len();
    }

    /// All leases end again and again, until no one waits.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            if self.pair.model.waiting.is_empty() {
                return;
            }
            for limit in 0..BUCKET {
                let Kind::Leases { leases, .. } = &self.pair.model.limits[limit].kind else { continue };
                for id in leases.iter().map(|lease| lease.id).collect::<Vec<_>>() {
                    self.pair.act(limit, id, None);
                }
            }
            self.pair.pass(100 * TICK);
            self.serve();
        }
        panic!("forgotten: {:?}", self.pair.model.waiting);
    }
}

/// Runs the history of a seed.
fn run(seed: u64, come: Come) -> Counts {
    let mut world = World::new(seed, come);
    for _ in 0..EVENTS {
        world.happen();
        if world.dice.happens(2, 3) {
            world.serve();
        }
    }
    world.finish();
    let Pair { timed_out, kept, tries, .. } = world.pair;
    Counts { timed_out, kept, tries, ..world.counts }
}

/// Runs histories, and sums what happened in them. `RATELIMIT_EVENTS` is the number of events.
fn run_all(come: Come) -> Counts {
    let events: Option<u64> = std::env::var("RATELIMIT_EVENTS").ok().and_then(|events| events.parse().ok());
    let mut all = Counts::default();
    for seed in 0..events.unwrap_or(30_000) / EVENTS {
        let counts = std::panic::catch_unwind(|| run(seed, come));
        let counts = counts.unwrap_or_else(|_| panic!("the history of seed {seed}, {come:?}"));
        all.events += counts.events;
        all.admitted += counts.admitted;
        all.refused += counts.refused;
        all.granted += counts.granted;
        all.timed_out += counts.timed_out;
        all.kept += counts.kept;
        all.tries += counts.tries;
        all.settled += counts.settled;
    }
    all
}

/// Whether each of these happened often enough in that many events.
fn often(events: u64, counts: &[usize]) -> bool {
    counts.iter().all(|count| *count as u64 > events / 200)
}

#[test]
fn callers_that_wait_are_served_as_in_the_model() {
    let all = run_all(Come::Waiting);
    let Counts { events, admitted, refused, granted, timed_out, settled, .. } = all;
    assert!(often(events, &[admitted, refused, granted, timed_out, settled]), "{all:?}");
    assert!(all.tries > 2 * granted, "{all:?}");
}

#[test]
fn callers_that_ask_again_and_again_are_served_as_in_the_model() {
    let all = run_all(Come::Asking);
    assert!(often(all.events, &[all.admitted, all.refused]), "{all:?}");
}

#[test]
fn callers_of_both_kinds_are_served_as_in_the_model() {
    let all = run_all(Come::Both);
    let Counts { events, admitted, refused, granted, timed_out, kept, settled, .. } = all;
    assert!(often(events, &[admitted, refused, granted, timed_out, kept, settled]), "{all:?}");
}

#[test]
fn three_callers_in_two_fair_lines_do_not_send_one_another_from_line_to_line_for_ever() {
    // Limits of both lines have room, and each of the three is first in one line and not in the other.
    run(8421, Come::Both);
}
