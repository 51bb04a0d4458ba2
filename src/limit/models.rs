//! What each limiter should admit, decided slowly from everything that ever happened, in rational numbers.

use num_rational::BigRational;
use num_traits::{FromPrimitive, One, Zero};

use super::histories::Step;
use super::*;

/// Decides as a limiter should, from everything that was ever admitted.
pub trait Model {
    /// Whether the request is admitted; if so, it counts from then on.
    fn ask(&mut self, now: u64, cost: u64) -> bool;
}

pub fn ratio(number: u64) -> BigRational {
    BigRational::from_u64(number).expect("a whole number")
}

fn micros(span: Span) -> BigRational {
    ratio(span.as_micros())
}

/// A bucket of any rational number of tokens.
struct RationalBucket {
    bucket: TokenBucket,
    tokens: BigRational,
    last: u64,
}

impl Model for RationalBucket {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let rate = ratio(self.bucket.refill) / micros(self.bucket.period);
        let tokens = &self.tokens + ratio(now - self.last) * rate;
        self.tokens = tokens.min(ratio(self.bucket.capacity));
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
    gcra: Gcra,
    due: BigRational,
}

impl Model for RationalArrival {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let interval = micros(self.gcra.period) / ratio(self.gcra.count);
        let after = self.due.clone().max(ratio(now)) + ratio(cost) * &interval;
        let on_time = after <= ratio(now) + ratio(self.gcra.limit) * interval;
        if on_time {
            self.due = after;
        }
        on_time
    }
}

/// Watches every period go by.
struct CountedPeriods {
    bucket: BatchBucket,
    tokens: u64,
    /// When the next batch comes; none while the bucket is full.
    next: Option<u64>,
}

impl Model for CountedPeriods {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        while let Some(next) = self.next.filter(|next| *next <= now) {
            self.tokens = (self.tokens + self.bucket.refill).min(self.bucket.capacity);
            let full = self.tokens == self.bucket.capacity;
            self.next = if full { None } else { Some(next + self.bucket.period.as_micros()) };
        }
        let enough = self.tokens >= cost;
        if enough {
            self.tokens -= cost;
            self.next.get_or_insert(now + self.bucket.period.as_micros());
        }
        enough
    }
}

/// Water that stands at any rational height.
struct RationalWater {
    bucket: LeakyBucket,
    level: BigRational,
    last: u64,
}

impl Model for RationalWater {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let rate = ratio(self.bucket.leak) / micros(self.bucket.period);
        let level = &self.level - ratio(now - self.last) * rate;
        self.level = level.max(BigRational::zero());
        self.last = now;
        let fits = &self.level + ratio(cost) <= ratio(self.bucket.capacity);
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
        if count <= self.window.limit {
            self.ends = if open { self.ends } else { now + self.window.window.as_micros() };
            self.count = count;
        }
        count <= self.window.limit
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

pub fn continuous(bucket: TokenBucket) -> impl Model {
    RationalBucket { bucket, tokens: ratio(bucket.capacity), last: 0 }
}

pub fn batches(bucket: BatchBucket) -> impl Model {
    CountedPeriods { bucket, tokens: bucket.capacity, next: None }
}

pub fn arrivals(gcra: Gcra) -> impl Model {
    RationalArrival { gcra, due: BigRational::zero() }
}

pub fn water(bucket: LeakyBucket) -> impl Model {
    RationalWater { bucket, level: BigRational::zero(), last: 0 }
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

/// A gate, a log, leases: what came less than so long ago counts.
pub fn recent(limit: u64, window: Span) -> impl Model {
    remembered(limit, move |then, now| one_if(now < then + window.as_micros()))
}

pub fn same_window(window: AlignedWindow) -> impl Model {
    let width = window.window.as_micros();
    remembered(window.limit, move |then, now| one_if(then / width == now / width))
}

pub fn overlapping(window: SlidingWindow) -> impl Model {
    let width = window.window.as_micros();
    remembered(window.limit, move |then, now| match now / width - then / width {
        0 => BigRational::one(),
        1 => ratio(width - now % width) / ratio(width),
        _ => BigRational::zero(),
    })
}

pub fn recent_parts(window: SlidingBuckets) -> impl Model {
    let (width, part) = (window.window.as_micros(), window.precision.as_micros());
    remembered(window.limit, move |then, now| one_if(then / part * part + width > now))
}

/// A log with a gap, or one that counts refusals.
struct Entries {
    log: SlidingLog,
    entries: Vec<Step>,
}

pub fn entries(log: SlidingLog) -> impl Model {
    Entries { log, entries: Vec::new() }
}

impl Model for Entries {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let live = self.entries.iter().filter(|(at, _)| now < at + self.log.window.as_micros());
        let room = live.map(|(_, cost)| cost).sum::<u64>() + cost <= self.log.limit;
        let apart = self.entries.last().is_none_or(|(at, _)| now >= at + self.log.gap.as_micros());
        let admitted = room && apart;
        if admitted || self.log.counts_refused() && cost <= self.log.limit {
            self.entries.push((now, cost));
        }
        admitted
    }
}
