//! An adaptive limit of leases, in rational numbers and with a clock that does not wrap.

use std::collections::BTreeMap;

use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

use ratelimit_core::adapt::{Ending, Rule, Settings};

use crate::ratio;

/// The limit, as the prose of its page has it.
#[derive(Clone)]
pub struct FoundLimit {
    pub settings: Settings,
    pub limit: BigRational,
    pub credit: u64,
    pub lowered: Option<u64>,
    /// In microseconds.
    pub long: BigRational,
    pub windows: u64,
    most: BigRational,
    short: BigRational,
    /// Durations, and when the first of them ended; the most that was held.
    window: Vec<u64>,
    began: u64,
    held: u64,
    drains: Option<u64>,
    measures: Option<u64>,
}

impl FoundLimit {
    pub fn new(settings: Settings, start: u32) -> FoundLimit {
        let mut limit = FoundLimit {
            settings,
            limit: ratio(start.into()),
            credit: 0,
            lowered: None,
            long: Zero::zero(),
            windows: 0,
            most: Zero::zero(),
            short: Zero::zero(),
            window: Vec::new(),
            began: 0,
            held: 0,
            drains: None,
            measures: None,
        };
        limit.clamp();
        limit
    }

    /// Takes the parameters of another call.
    pub fn adopt(&mut self, settings: Settings) {
        let old = std::mem::replace(self, FoundLimit::new(settings, 0));
        if settings.rule == Rule::Latency {
            *self = FoundLimit { settings, ..old };
            self.clamp();
        } else {
            (self.limit, self.credit, self.lowered) = (old.limit, old.credit, old.lowered);
            self.clamp();
            self.limit = self.limit.floor();
        }
    }

    /// The limit that counts now.
    pub fn counts(&self) -> u64 {
        let limit = whole(&self.limit);
        if self.drains.or(self.measures).is_some() {
            limit.div_ceil(2).max(self.settings.floor.into())
        } else {
            limit
        }
    }

    /// When the phase of a probe ends by time.
    fn probe_ends(&self) -> Option<u64> {
        let ten = (self.short.floor() * ratio(10)).to_integer().to_u64()?;
        self.drains.or(self.measures).map(|since| since + 30_000_000 + ten)
    }

    /// A probe that has taken too long is over.
    pub fn pass(&mut self, now: u64) {
        if self.probe_ends().is_some_and(|end| end <= now) {
            (self.drains, self.measures) = (None, None);
            self.window.clear();
            self.most = self.limit.clone();
        }
    }

    /// A lease of this cost ends, which was taken at `taken`. `held` is the cost of all, before.
    pub fn ends(&mut self, taken: u64, now: u64, cost: u64, held: u64, ending: Ending) {
        let lasted = now - taken;
        let slow = self.settings.slow > 0 && lasted > self.settings.slow;
        if ending == Ending::Failed || ending == Ending::Well && slow {
            if self.lowered.is_none_or(|lowered| taken > lowered) {
                let kept = ratio(100 - u64::from(self.settings.backoff)) / ratio(100);
                self.limit = (&self.limit * kept).floor();
                self.clamp();
                (self.credit, self.lowered) = (0, Some(now));
            }
        } else if ending == Ending::Well && self.settings.rule == Rule::Latency {
            self.sample(lasted, now, held);
        } else if ending == Ending::Well && self.is_half_used(held) {
            self.credit += cost;
            if ratio(self.credit) >= self.limit {
                self.credit = 0;
                self.limit += BigRational::one();
                self.clamp();
            }
        }
        if self.drains.is_some() && held - cost <= self.counts() {
            (self.drains, self.measures) = (None, Some(now));
        }
    }

    fn sample(&mut self, lasted: u64, now: u64, held: u64) {
        let too_early = self.measures.is_some_and(|since| ratio(now - since) < self.short.floor());
        if lasted <= 100 || self.drains.is_some() || too_early {
            return;
        }
        if self.window.is_empty() {
            (self.began, self.held) = (now, 0);
        }
        self.window.push(lasted);
        self.held = self.held.max(held);
        if self.window.len() < 10 || now - self.began < 1_000_000 {
            return;
        }
        let durations = std::mem::take(&mut self.window);
        self.short = ratio(durations.iter().sum()) / ratio(durations.len() as u64);
        self.windows += 1;
        if self.measures.take().is_some() {
            self.long = self.short.clone();
            self.most = self.limit.clone();
            return;
        }
        if self.windows <= 10 {
            self.long = (&self.long * ratio(self.windows - 1) + &self.short) / ratio(self.windows);
        }
        if self.is_half_used(self.held) {
            let gradient = ratio(11) / ratio(10) * &self.long / &self.short;
            let gradient = gradient.clamp(ratio(1) / ratio(2), ratio(1));
            let queue = (&self.limit / ratio(25)).max(ratio(4));
            self.limit = (ratio(4) * &self.limit + gradient * &self.limit + queue) / ratio(5);
            // Else its digits would grow with each window.
            let digits = BigRational::from_integer(num_traits::pow(10.into(), 40));
            self.limit = (&self.limit * &digits).floor() / digits;
            self.clamp();
        }
        self.most = self.most.clone().max(self.limit.clone());
        let wrong = &self.limit * ratio(2) <= self.most || &self.short * ratio(2) < self.long;
        let due = self.windows == 10 || self.windows % 60 == 59 || wrong;
        self.drains = due.then_some(now);
    }

    fn is_half_used(&self, held: u64) -> bool {
        ratio(2 * held) >= &self.limit - ratio(self.settings.reserved.into())
    }

    fn clamp(&mut self) {
        let Settings { floor, ceiling, .. } = self.settings;
        self.limit = self.limit.clone().clamp(ratio(floor.into()), ratio(ceiling.into()));
    }
}

fn whole(limit: &BigRational) -> u64 {
    limit.floor().to_integer().to_u64().unwrap_or(u64::MAX)
}

/// A table of leases whose limit adapts. Its own clock does not go back.
#[derive(Default)]
pub struct FoundTable {
    /// The instant of the last change, and the time of the table's clock then. Both in microseconds.
    last: u64,
    clock: u64,
    leases: BTreeMap<u64, FoundLease>,
    pub limit: Option<FoundLimit>,
}

struct FoundLease {
    deadline: u64,
    taken: Option<u64>,
    cost: u64,
}

/// What a table answers: whether the call is admitted, or else after which time, if ever; its limit, and what remains.
pub type FoundAnswer = (Result<(), Option<u64>>, u64, u64);

/// How long a table remembers its limit.
const MEMORY: u64 = 3_600_000_000;

impl FoundTable {
    /// A call for a lease. `capacity` is for this caller. `adapt` are the parameters, and the limit of a new table.
    pub fn take(
        &mut self,
        at: u64,
        (id, cost, ttl): (u64, u64, u64),
        capacity: u64,
        adapt: Option<(Settings, u32)>,
    ) -> FoundAnswer {
        let (at, now) = self.read(at);
        let adapted =
            adapt.map(|(settings, start)| match self.limit.take().filter(|_| !self.forgets(at, now)) {
                None => FoundLimit::new(settings, start),
                Some(mut limit) => {
                    self.limit = Some(limit.clone());
                    limit.adopt(settings);
                    limit.pass(now);
                    limit
                }
            });
        let kept = adapt.map_or(0, |(settings, _)| u64::from(settings.ceiling) - capacity);
        let limit = adapted.as_ref().map_or(capacity, |limit| limit.counts().saturating_sub(kept));
        let held = self.held(now);
        let has = self.leases.get(&id).is_some_and(|lease| lease.deadline > now);
        if !has && held + cost > limit && (cost > capacity || held > 0) {
            let free = |limit: u64| match (held + cost).saturating_sub(limit).min(held) {
                0 => 0,
                excess => self.until_free(excess, now),
            };
            let after_probe = adapted.as_ref().and_then(|adapted| {
                let end = adapted.probe_ends()?;
                let mut after = adapted.clone();
                after.pass(end);
                Some(free(after.counts().saturating_sub(kept)).max(end - now))
            });
            let retry = (cost <= capacity).then(|| after_probe.unwrap_or(u64::MAX).min(free(limit)));
            return (Err(retry), limit, limit.saturating_sub(held));
        }
        self.move_to(at, now);
        self.limit = adapted.or(self.limit.take());
        if has {
            self.leases.entry(id).and_modify(|lease| lease.deadline = now + ttl);
        } else {
            let taken = adapt.map(|_| now);
            self.leases.insert(id, FoundLease { deadline: now + ttl, taken, cost });
        }
        (Ok(()), limit, limit.saturating_sub(self.held(now)))
    }

    /// A lease ends. Returns whether it was held.
    pub fn release(&mut self, at: u64, id: u64, ending: Ending) -> bool {
        let (at, now) = self.read(at);
        let held = self.held(now);
        // An expired one stays, since the clock may go back.
        if self.leases.get(&id).is_none_or(|lease| lease.deadline <= now) {
            return false;
        }
        let Some(FoundLease { taken, cost, .. }) = self.leases.remove(&id) else { return false };
        let forgets = self.forgets(at, now);
        if let Some((limit, taken)) = self.limit.as_mut().zip(taken).filter(|_| !forgets) {
            limit.pass(now);
            limit.ends(taken, now, cost, held, ending);
        }
        self.move_to(at, now);
        true
    }

    /// The instant at which a call is decided, and the time of the table's clock then.
    fn read(&mut self, at: u64) -> (u64, u64) {
        if at >= self.last {
            return (at, self.clock + (at - self.last));
        }
        let latest = self.leases.values().map(|lease| lease.deadline).max().unwrap_or(0);
        if self.last - at > latest.saturating_sub(self.clock) {
            self.last = at;
        }
        (self.last, self.clock)
    }

    /// Whether the limit is forgotten.
    fn forgets(&self, at: u64, now: u64) -> bool {
        at - self.last >= MEMORY && self.held(now) == 0
    }

    fn move_to(&mut self, at: u64, now: u64) {
        if self.forgets(at, now) {
            self.limit = None;
        }
        (self.last, self.clock) = (at, now);
        self.leases.retain(|_, lease| lease.deadline > now);
    }

    fn held(&self, now: u64) -> u64 {
        self.leases.values().filter(|lease| lease.deadline > now).map(|lease| lease.cost).sum()
    }

    /// The time until leases of this cost will have expired.
    fn until_free(&self, mut cost: u64, now: u64) -> u64 {
        let held = self.leases.values().filter(|lease| lease.deadline > now);
        let mut ends: Vec<(u64, u64)> = held.map(|lease| (lease.deadline, lease.cost)).collect();
        ends.sort_unstable();
        let last = ends.into_iter().find(|(_, freed)| {
            cost = cost.saturating_sub(*freed);
            cost == 0
        });
        last.map_or(0, |(deadline, _)| deadline - now)
    }
}
