//! Two limits for which tenants wait, beside the model of fair lines: the leases of the key `pool`, and the bucket of the key `share`.
//! A limit has a model from a moment at which its key is missing and has no line, until something else touches it.

use std::collections::BTreeMap;

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};
use ratelimit_dice::Dice;
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::Reply;

use super::told::{Told, retry_of};
use crate::fair::{Call, Comer, Fair, Kept, Kind, Limit, Outcome, Wish};

pub(super) const POOL: &str = "CONCURRENT pool 4 30s";
pub(super) const SHARE: &str = "TOKENBUCKET share 4 1 5s";
const CAPACITY: u64 = 4;
const TTL: u64 = 30_000_000;
const INTERVAL: u64 = 5_000_000;

/// A limit with a line.
struct Modelled {
    fair: Fair,
    /// The numbers in the model of those that wait.
    callers: BTreeMap<Caller, u64>,
    /// What is held of a bucket, by id: when each hold ends, and its cost.
    holds: BTreeMap<u64, (u64, u64)>,
}

/// The limits that have a model now, by key.
#[derive(Default)]
pub(super) struct FairLines(BTreeMap<&'static str, Modelled>);

const KEYS: [&str; 2] = ["pool", "share"];

/// Ids of the two limits that have a model of their lines.
#[derive(Default)]
pub(super) struct Ids {
    /// Those of leases that are held.
    pub(super) leases: Vec<u64>,
    /// Those of calls that wait.
    pub(super) waiting: Vec<u64>,
    /// What is held of the bucket.
    pub(super) holds: Vec<u64>,
}

impl Ids {
    /// One that does not wait, mostly one of a few: who is refused asks again by the same.
    pub(super) fn of_call(&self, dice: &mut Dice) -> u64 {
        let id = dice.below(30);
        if self.waiting.contains(&id) || dice.one_in(3) { 100 + dice.below(1 << 40) } else { id }
    }

    pub(super) fn held(held: &[u64], dice: &mut Dice) -> u64 {
        if held.is_empty() || dice.one_in(6) { dice.below(30) } else { *dice.pick(held) }
    }
}

fn id_of(word: &str) -> u64 {
    word.trim_start_matches('r').parse().unwrap_or(0)
}

/// The call of words, as the model has it. `None` if it is none that the model knows.
fn call_of(told: &Told<'_>) -> Option<Call> {
    let is_pool = told.key() == "pool";
    let mut words = told.words.iter().skip(5);
    let (mut tenant, mut weight, mut critical, mut reserved) = (0, None, false, 0);
    while let Some(word) = words.next() {
        match *word {
            "TENANT" => tenant = u32::from(*words.next()?.as_bytes().first()?),
            "WEIGHT" => weight = Some(words.next()?.parse().ok()?),
            "RESERVED" => reserved = words.next()?.parse().ok()?,
            "CRITICAL" => critical = true,
            "COST" | "BLOCK" => _ = words.next()?,
            "HOLD" => _ = (words.next()?, words.next()?),
            _ => return None,
        }
    }
    let most = if critical { CAPACITY } else { CAPACITY - reserved };
    let wish = Wish { limit: 0, tenant, weight, cost: told.cost, most, critical };
    // Calls without a hold are as many.
    let id = if is_pool { id_of(told.words.get(4)?) } else { told.id.map_or(u64::MAX, id_of) };
    Some(Call { wishes: vec![wish], id, ttl: TTL, estimated: told.id.is_some() })
}

impl Modelled {
    fn new(key: &str, hunger: u64) -> Modelled {
        let limit = if key == "pool" { Limit::leases() } else { Limit::bucket(INTERVAL) };
        let mut fair = Fair::new(vec![limit]);
        fair.hunger = hunger;
        Modelled { fair, callers: BTreeMap::new(), holds: BTreeMap::new() }
    }

    /// Lets the model's clocks show what those of the node show.
    fn read_clocks(&mut self, memory: &Memory) {
        self.fair.steady = memory.now().as_micros();
        self.fair.wall = memory.clock().as_micros();
        self.fair.tidy();
        let wall = self.fair.wall;
        self.holds.retain(|_, (ends, _)| *ends > wall);
    }

    /// Others have deleted the key: nothing is held, and who polls is hungry no more. The line stays.
    fn lose_key(&mut self) {
        let limit = &mut self.fair.limits[0];
        limit.hungry.clear();
        match &mut limit.kind {
            Kind::Leases { leases, .. } => leases.clear(),
            Kind::Bucket { full, last, .. } => (*full, *last) = (0, 0),
        }
        self.holds.clear();
        self.fair.tidy();
    }

    fn holds_lease(&self, id: u64) -> bool {
        self.leases().any(|lease| lease == id)
    }

    /// The ids of the leases that are held.
    fn leases(&self) -> impl Iterator<Item = u64> {
        let leases = match &self.fair.limits[0].kind {
            Kind::Leases { leases, .. } => leases.as_slice(),
            Kind::Bucket { .. } => &[],
        };
        leases.iter().filter(|lease| lease.ends > self.fair.wall).map(|lease| lease.id)
    }

    /// Something is given back to the bucket, or charged if the use is greater.
    fn settle(&mut self, id: u64, tenant: Option<u32>, used: u64) {
        let Some((_, granted)) = self.holds.remove(&id) else { return };
        if let Kind::Bucket { interval, full, last } = &mut self.fair.limits[0].kind {
            let now = self.fair.wall.max(*last);
            *full = (now.max(*full) + *interval * used).saturating_sub(*interval * granted).max(now);
            *last = now;
        }
        if let Some(tenant) = tenant {
            self.fair.settle(0, tenant, granted, used);
        }
    }
}

impl FairLines {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn forget_key(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// The ids of what is held and of who waits.
    pub(super) fn ids(&self) -> Ids {
        let mut ids = Ids::default();
        for model in self.0.values() {
            ids.leases.extend(model.leases());
            ids.waiting.extend(model.fair.waiting.iter().map(|waiting| waiting.call.id));
            ids.holds.extend(model.holds.keys());
        }
        ids
    }

    /// A call is about to run. Its limit has a model from now on if its key is missing, without a line. `is_usual` is whether all
    /// callers may wait.
    pub(super) fn begin(&mut self, told: &Told<'_>, memory: &Memory, is_usual: bool, has_line: bool) {
        if told.is_look() {
            return;
        }
        for key in KEYS.into_iter().filter(|key| told.names(key)) {
            let acts = told.is_deletion() || told.is_lease_action() || told.is_settlement();
            let is_known = told.key() == key && (acts || self.is_known(told));
            if !is_known || !is_usual {
                self.0.remove(key);
            } else if !self.0.contains_key(key) && !has_line && memory.stored(&(0, key.as_bytes())).is_none()
            {
                let hunger =
                    1000 * memory.node().settings.hunger.millis.load(std::sync::atomic::Ordering::Relaxed);
                self.0.insert(key, Modelled::new(key, hunger));
            }
        }
        if told.name == "FLUSHALL" {
            self.forget();
        }
    }

    /// Whether the model decides a call as the limit does. It knows no caller that waits twice under one id, and a bucket only where a
    /// refused call waits however long it takes.
    fn is_known(&self, told: &Told<'_>) -> bool {
        let limit = if told.key() == "pool" { POOL } else { SHARE };
        let is_of_limit = told.words.iter().zip(limit.split(' ')).skip(1).all(|(word, limit)| *word == limit)
            && told.name.strip_prefix("RL.") == limit.split(' ').next();
        let Some(call) = call_of(told).filter(|_| is_of_limit && !told.is_odd()) else { return false };
        let waits_long = told.block.is_some_and(|block| block >= Span::from_millis(86_400_000));
        let model = self.0.get(told.key());
        let waits =
            model.is_some_and(|model| model.fair.waiting.iter().any(|waiting| waiting.call.id == call.id));
        let is_held_twice =
            told.id.is_some_and(|id| model.is_some_and(|model| model.holds.contains_key(&id_of(id))));
        let waits_twice = waits && (told.key() == "pool" || told.id.is_some());
        !waits_twice && (told.key() == "pool" || waits_long && !is_held_twice)
    }

    /// A call has run. Compares what came of it.
    pub(super) fn check(
        &mut self,
        told: &Told<'_>,
        called: &Called,
        memory: &Memory,
    ) -> Result<bool, String> {
        let Some(model) = self.0.get_mut(told.key()) else { return Ok(false) };
        if told.is_look() || told.cost == 0 && !told.is_settlement() {
            return Ok(false);
        }
        model.read_clocks(memory);
        if told.is_deletion() {
            if matches!(called, Called::Replied(Reply::Integer(1))) {
                model.lose_key();
            }
            return Ok(false);
        }
        let reply = match called {
            Called::Replied(Reply::Error(_)) => return Ok(false),
            Called::Replied(reply) => Some(reply),
            Called::Waits(_) => None,
        };
        let id = told.words.get(if told.name == "RL.RENEW" { 3 } else { 2 }).map_or(0, |word| id_of(word));
        if told.is_settlement() {
            let place = told.words.iter().position(|word| *word == "TENANT");
            let tenant = place.and_then(|place| told.words.get(place + 1)?.as_bytes().first().copied());
            let was_held = model.holds.contains_key(&id);
            model.settle(id, tenant.map(u32::from), told.cost);
            let is_right = matches!(reply, Some(Reply::Six(_, held)) if (*held == 1) == was_held);
            return if is_right { Ok(true) } else { Err(format!("by the model held: {was_held}")) };
        }
        if told.is_lease_action() {
            let ttl = told.duration(2).map_or(0, Span::as_micros);
            let is_held = if told.name == "RL.RENEW" {
                model.fair.renew(0, id, ttl)
            } else {
                model.fair.release(0, id)
            };
            let is_right = matches!(reply, Some(Reply::Integer(held)) if (*held == 1) == is_held);
            return if is_right { Ok(true) } else { Err(format!("by the model held: {is_held}")) };
        }
        let Some(call) = call_of(told) else { return Ok(false) };
        if told.key() == "pool" && model.holds_lease(call.id) {
            model.fair.renew(0, call.id, TTL);
            let is_renewed = reply.is_some_and(Reply::is_admission);
            return if is_renewed { Ok(true) } else { Err("a lease that is held is not renewed".into()) };
        }
        let ends = model.kept_until(&call).filter(|_| told.block.is_none());
        let outcome = model.fair.arrive(&call, told.block.is_some());
        match (&outcome, called) {
            (Outcome::Waits(number), Called::Waits(caller)) => _ = model.callers.insert(*caller, *number),
            (Outcome::Admitted, Called::Replied(reply)) if reply.is_admission() => model.hold(told),
            (Outcome::Refused(_), Called::Replied(reply)) if !reply.is_admission() => {
                let left = ends.map(|ends| ends.saturating_sub(model.fair.steady).max(1000));
                let retry = retry_of(reply).map(Span::as_micros);
                if left.is_some() && left != retry {
                    return Err(format!("until the first hunger ends: {left:?}, and the retry is {retry:?}"));
                }
            }
            _ => return Err(format!("by the model of fair lines: {outcome:?} in {:?}", model.fair)),
        }
        Ok(true)
    }

    /// A caller that waited has its reply. While writes are paused, whose time has passed is refused.
    pub(super) fn end(
        &mut self,
        told: &Told<'_>,
        caller: Caller,
        reply: &Reply,
        memory: &Memory,
    ) -> Result<bool, String> {
        let Some(number) = self.0.get_mut(told.key()).and_then(|model| model.callers.remove(&caller)) else {
            // A call of another limit may have changed the key.
            self.0.retain(|key, _| !told.names(key));
            return Ok(false);
        };
        let Some(model) = self.0.get_mut(told.key()) else { return Ok(false) };
        model.read_clocks(memory);
        let before = model.fair.clone();
        let is_admitted = !memory.is_paused() && model.fair.try_again(number);
        if is_admitted != reply.is_admission() {
            return Err(format!("by the model of fair lines admitted at last: {is_admitted}, in {before:?}"));
        }
        if is_admitted {
            model.hold(told);
        }
        model.fair.leave(number);
        Ok(true)
    }

    /// A caller has left.
    pub(super) fn leave(&mut self, caller: Caller) {
        for model in self.0.values_mut() {
            if let Some(number) = model.callers.remove(&caller) {
                model.fair.leave(number);
            }
        }
    }

    /// All that was due has been done, and so the model admits no one either.
    pub(super) fn is_at_rest(&mut self, memory: &Memory) -> Result<(), String> {
        for model in self.0.values_mut() {
            model.read_clocks(memory);
            let before = model.fair.clone();
            let admitted = model.fair.serve();
            if !admitted.is_empty() {
                return Err(format!(
                    "by the model of fair lines these are admitted now: {admitted:?} in {before:?}"
                ));
            }
        }
        Ok(())
    }
}

impl Modelled {
    /// When the first of the hungers ends that keep a call from its limit, which has room.
    fn kept_until(&self, call: &Call) -> Option<u64> {
        let wish = call.wishes.iter().find(|wish| self.fair.limits[0].has_room(wish, self.fair.wall))?;
        match self.fair.kept(wish, Comer::Passes)? {
            Kept::UntilHungerEnds(ends) => Some(ends),
            Kept::ByCallers => None,
        }
    }

    /// Notes what a call holds of a bucket.
    fn hold(&mut self, told: &Told<'_>) {
        if let (Some(id), Some(ttl)) = (told.id, told.ttl) {
            let ends = Time::from_micros(self.fair.wall).plus(ttl).as_micros();
            self.holds.insert(id_of(id), (ends, told.cost));
        }
    }
}
