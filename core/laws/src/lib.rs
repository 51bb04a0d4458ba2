//! A model of each limiter: slow and simple, in rational numbers, and most remember every request.

use num_rational::BigRational;
use num_traits::{One, Zero};

use ratelimit_core::limiter::{AlignedWindow, FixedWindow, Limiter, Rate, SlidingLog, SlidingWindow};
use ratelimit_core::{Period, Span};

/// A model, which decides as the limiter should.
pub trait Model {
    /// Returns whether a request at `now`, in microseconds, is admitted. If so, it counts from then on.
    fn ask(&mut self, now: u64, cost: u64) -> bool;
}

/// The number as a rational.
pub fn ratio(number: u64) -> BigRational {
    BigRational::from_integer(number.into())
}

fn micros(period: Period) -> BigRational {
    ratio(period.micros().get())
}

/// A bucket with a rational number of tokens.
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

/// A theoretical arrival time as a rational number of microseconds.
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

/// A bucket that adds the batch of every period, one by one.
struct CountedPeriods {
    rate: Rate,
    tokens: u64,
    /// When the next batch is added; `None` while the bucket is full.
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

/// A bucket with a rational level.
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

/// A window that opens when a request is admitted while no window is open.
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

/// Remembers all admitted requests, and sums their weights.
struct Remembered<W: Fn(u64, u64) -> BigRational> {
    limit: u64,
    /// The weight that a request at the first instant has at the second.
    weight: W,
    /// Instants and costs.
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

/// A token bucket that is refilled in batches.
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

/// A fixed window that opens at the first request.
pub fn opened(window: FixedWindow) -> impl Model {
    OpenedWindow { window, ends: 0, count: 0 }
}

fn remembered(limit: u64, weight: impl Fn(u64, u64) -> BigRational) -> impl Model {
    Remembered { limit, weight, admitted: Vec::new() }
}

/// The weight of a request that counts fully, or not at all.
fn one_if(counts: bool) -> BigRational {
    if counts { BigRational::one() } else { BigRational::zero() }
}

/// A gate, a log or leases: a request counts for one window.
pub fn recent(limit: u64, window: Span) -> impl Model {
    remembered(limit, move |then, now| one_if(now < then + window.as_micros()))
}

/// An aligned fixed window.
pub fn same_window(window: AlignedWindow) -> impl Model {
    let width = window.window.micros().get();
    remembered(window.limit.get(), move |then, now| one_if(then / width == now / width))
}

/// A sliding window that is estimated from two counts.
pub fn overlapping(window: SlidingWindow) -> impl Model {
    let width = window.window.micros().get();
    remembered(window.limit.get(), move |then, now| match now / width - then / width {
        0 => BigRational::one(),
        1 => ratio(width - now % width) / ratio(width),
        _ => BigRational::zero(),
    })
}

/// A sliding window of sub-buckets of length `part`: a request counts from the start of its sub-bucket.
pub fn recent_parts(limit: u64, window: Span, part: Span) -> impl Model {
    let (width, part) = (window.as_micros(), part.as_micros());
    remembered(limit, move |then, now| one_if(then / part * part + width > now))
}

/// A log that may have a gap, and may count refused requests.
struct Entries {
    log: SlidingLog,
    /// Instants and weights.
    entries: Vec<(u64, u64)>,
}

/// A log that may have a gap, and may count refused requests.
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
