//! What each limiter should admit, decided slowly from everything that ever happened, in rational numbers.

use num_rational::BigRational;
use num_traits::{One, Zero};

use ratelimit_core::limiter::{AlignedWindow, FixedWindow, Limiter, Rate, SlidingLog, SlidingWindow};
use ratelimit_core::{Period, Span};

/// Decides as a limiter should, from everything that was ever admitted.
pub trait Model {
    /// Whether the request is admitted; if so, it counts from then on.
    fn ask(&mut self, now: u64, cost: u64) -> bool;
}

pub fn ratio(number: u64) -> BigRational {
    BigRational::from_integer(number.into())
}

fn micros(period: Period) -> BigRational {
    ratio(period.micros().get())
}

/// A bucket of any rational number of tokens.
struct RationalBucket {
    rate: Rate,
    tokens: BigRational,
    last: u64,
}

impl Model for RationalBucket {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let rate = ratio(self.rate.count.get()) / micros(self.rate.period);
        let tokens = &self.tokens + ratio(now - self.last) * rate;
        self.tokens = tokens.min(ratio(self.rate.limit.get()));
        self.last = now;
        let enough = self.tokens >= ratio(cost);
        if enough {
            self.tokens -= ratio(cost);
        }
        enough
    }
}

/// The arrival time as a rational number of microseconds.
struct RationalArrival {
    rate: Rate,
    due: BigRational,
}

impl Model for RationalArrival {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let interval = micros(self.rate.period) / ratio(self.rate.count.get());
        let after = self.due.clone().max(ratio(now)) + ratio(cost) * &interval;
        let on_time = after <= ratio(now) + ratio(self.rate.limit.get()) * interval;
        if on_time {
            self.due = after;
        }
        on_time
    }
}

/// Watches every period go by.
struct CountedPeriods {
    rate: Rate,
    tokens: u64,
    /// When the next batch comes; none while the bucket is full.
    next: Option<u64>,
}

impl Model for CountedPeriods {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        while let Some(next) = self.next.filter(|next| *next <= now) {
            self.tokens = (self.tokens + self.rate.count.get()).min(self.rate.limit.get());
            let full = self.tokens == self.rate.limit.get();
            self.next = if full { None } else { Some(next + self.rate.period.micros().get()) };
        }
        let enough = self.tokens >= cost;
        if enough {
            self.tokens -= cost;
            self.next.get_or_insert(now + self.rate.period.micros().get());
        }
        enough
    }
}

/// Water that stands at any rational height.
struct RationalWater {
    rate: Rate,
    level: BigRational,
    last: u64,
}

impl Model for RationalWater {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let rate = ratio(self.rate.count.get()) / micros(self.rate.period);
        let level = &self.level - ratio(now - self.last) * rate;
        self.level = level.max(BigRational::zero());
        self.last = now;
        let fits = &self.level + ratio(cost) <= ratio(self.rate.limit.get());
        if fits {
            self.level += ratio(cost);
        }
        fits
    }
}

/// A window that opens when a request is admitted outside of any.
struct OpenedWindow {
    window: FixedWindow,
    ends: u64,
    count: u64,
}

impl Model for OpenedWindow {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let open = now < self.ends;
        let count = if open { self.count + cost } else { cost };
        if count <= self.window.limit.get() {
            self.ends = if open { self.ends } else { now + self.window.window.micros().get() };
            self.count = count;
        }
        count <= self.window.limit.get()
    }
}

/// Remembers every request that was admitted, and weighs each.
struct Remembered<W: Fn(u64, u64) -> BigRational> {
    limit: u64,
    /// What a request of one instant weighs at another.
    weight: W,
    admitted: Vec<(u64, u64)>,
}

impl<W: Fn(u64, u64) -> BigRational> Model for Remembered<W> {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let weights = self.admitted.iter().map(|(then, cost)| ratio(*cost) * (self.weight)(*then, now));
        let fits = weights.sum::<BigRational>() + ratio(cost) <= ratio(self.limit);
        if fits {
            self.admitted.push((now, cost));
        }
        fits
    }
}

/// A token bucket: the rate's limit is its capacity.
pub fn continuous(rate: Rate) -> impl Model {
    RationalBucket { tokens: ratio(rate.limit.get()), rate, last: 0 }
}

/// A token bucket that is refilled all at once.
pub fn batches(rate: Rate) -> impl Model {
    CountedPeriods { tokens: rate.limit.get(), rate, next: None }
}

/// GCRA.
pub fn arrivals(rate: Rate) -> impl Model {
    RationalArrival { rate, due: BigRational::zero() }
}

/// A leaky bucket.
pub fn water(rate: Rate) -> impl Model {
    RationalWater { rate, level: BigRational::zero(), last: 0 }
}

pub fn opened(window: FixedWindow) -> impl Model {
    OpenedWindow { window, ends: 0, count: 0 }
}

fn remembered(limit: u64, weight: impl Fn(u64, u64) -> BigRational) -> impl Model {
    Remembered { limit, weight, admitted: Vec::new() }
}

/// One if it counts.
fn one_if(counts: bool) -> BigRational {
    if counts { BigRational::one() } else { BigRational::zero() }
}

/// A gate, a log, leases: a request counts for one window.
pub fn recent(limit: u64, window: Span) -> impl Model {
    remembered(limit, move |then, now| one_if(now < then + window.as_micros()))
}

pub fn same_window(window: AlignedWindow) -> impl Model {
    let width = window.window.micros().get();
    remembered(window.limit.get(), move |then, now| one_if(then / width == now / width))
}

pub fn overlapping(window: SlidingWindow) -> impl Model {
    let width = window.window.micros().get();
    remembered(window.limit.get(), move |then, now| match now / width - then / width {
        0 => BigRational::one(),
        1 => ratio(width - now % width) / ratio(width),
        _ => BigRational::zero(),
    })
}

/// Sub-buckets: a request counts from the start of its part.
pub fn recent_parts(limit: u64, window: Span, part: Span) -> impl Model {
    let (width, part) = (window.as_micros(), part.as_micros());
    remembered(limit, move |then, now| one_if(then / part * part + width > now))
}

/// A log with a gap, or one that counts refusals.
struct Entries {
    log: SlidingLog,
    entries: Vec<(u64, u64)>,
}

pub fn entries(log: SlidingLog) -> impl Model {
    Entries { log, entries: Vec::new() }
}

impl Model for Entries {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let live = self.entries.iter().filter(|(at, _)| now < at + self.log.window.micros().get());
        let room = live.map(|(_, cost)| cost).sum::<u64>() + cost <= self.log.limit.get();
        let apart = self.entries.last().is_none_or(|(at, _)| now >= at + self.log.gap.as_micros());
        let admitted = room && apart;
        if admitted || self.log.capabilities().counts_refused && cost <= self.log.limit.get() {
            self.entries.push((now, cost));
        }
        admitted
    }
}
