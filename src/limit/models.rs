//! What each limiter should admit, decided slowly from everything that ever happened, in rational numbers; and the
//! parameters and histories on which to ask.

use num_rational::BigRational;
use num_traits::{FromPrimitive, One, Zero};
use proptest::prelude::*;

use super::sliding_log::Refused;
use super::*;

/// A request: how long after the one before, in microseconds, and its cost.
pub type Step = (u64, u64);

/// Decides as a limiter should, from everything that was ever admitted.
pub trait Model {
    /// Whether the request is admitted; if so, it counts from then on.
    fn ask(&mut self, now: u64, cost: u64) -> bool;
}

fn plain_log(limit: u64, window: Span) -> SlidingLog {
    SlidingLog { limit, window, gap: Span::ZERO, refused: Refused::Forgotten, most: 1000 }
}

fn ratio(number: u64) -> BigRational {
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

/// Histories whose waits have the scale of a period: none, a little, some, exactly one.
fn histories(period: Span, most: u64) -> impl Strategy<Value = Vec<Step>> {
    let period = period.as_micros();
    let wait = prop_oneof![
        2 => Just(0),
        2 => 1..100u64,
        4 => 0..=period / 4,
        1 => 0..=period * 3,
        1 => Just(period),
    ];
    prop::collection::vec((wait, 1..=most), 1..80)
}

/// Periods of milliseconds, often ones that their rate does not divide.
fn periods() -> impl Strategy<Value = Span> {
    prop_oneof![Just(1), Just(11), Just(1000), 1..100_000u64].prop_map(Span::from_millis)
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![1..12u64, Just(1_500_000), Just(10_000_000_000), 1..=words::MAX_COUNT / 1_000_000]
}

pub fn with_history<P: Clone + std::fmt::Debug>(
    parameters: impl Strategy<Value = (P, Span, u64)>,
) -> impl Strategy<Value = (P, Vec<Step>)> {
    parameters.prop_flat_map(|(parameters, period, limit)| {
        (Just(parameters), histories(period, limit + 1)).prop_map(|(parameters, steps)| (parameters, steps))
    })
}

// The parameters to try a limiter with, each with the length of time and the limit that histories go by.

pub fn token_buckets() -> impl Strategy<Value = (TokenBucket, Span, u64)> {
    (1..20u64, rates(), periods()).prop_map(|(capacity, refill, period)| {
        (
            TokenBucket { capacity, refill, period },
            Span::from_micros(period.as_micros() / refill + 1),
            capacity,
        )
    })
}

/// Up to the largest numbers, as far as the bucket fills within a century; 10 to the tenth bytes per second too.
pub fn large_token_buckets() -> impl Strategy<Value = (TokenBucket, Span, u64)> {
    (1..=words::MAX_COUNT, rates(), periods()).prop_map(|(capacity, refill, period)| {
        let most =
            u128::from(Span::CENTURY.as_micros()) * u128::from(refill) / u128::from(period.as_micros());
        let capacity = capacity.min(u64::try_from(most).unwrap_or(u64::MAX)).max(1);
        (TokenBucket { capacity, refill, period }, period, capacity)
    })
}

pub fn batch_buckets() -> impl Strategy<Value = (BatchBucket, Span, u64)> {
    (1..20u64, 1..12u64, periods())
        .prop_map(|(capacity, refill, period)| (BatchBucket { capacity, refill, period }, period, capacity))
}

pub fn gcras() -> impl Strategy<Value = (Gcra, Span, u64)> {
    (1..20u64, rates(), periods()).prop_map(|(limit, count, period)| {
        (Gcra { limit, count, period }, Span::from_micros(period.as_micros() / count + 1), limit)
    })
}

pub fn leaky_buckets() -> impl Strategy<Value = (LeakyBucket, Span, u64)> {
    (1..20u64, rates(), periods()).prop_map(|(capacity, leak, period)| {
        (LeakyBucket { capacity, leak, period }, Span::from_micros(period.as_micros() / leak + 1), capacity)
    })
}

pub fn fixed_windows() -> impl Strategy<Value = (FixedWindow, Span, u64)> {
    (1..30u64, periods()).prop_map(|(limit, window)| (FixedWindow { limit, window }, window, limit))
}

pub fn aligned_windows() -> impl Strategy<Value = (AlignedWindow, Span, u64)> {
    (1..30u64, periods()).prop_map(|(limit, window)| (AlignedWindow { limit, window }, window, limit))
}

pub fn uniforms() -> impl Strategy<Value = (Uniform, Span, u64)> {
    periods().prop_map(|interval| (Uniform { interval }, interval, 1))
}

pub fn sliding_windows() -> impl Strategy<Value = (SlidingWindow, Span, u64)> {
    (1..30u64, periods()).prop_map(|(limit, window)| (SlidingWindow { limit, window }, window, limit))
}

pub fn windows_of_buckets() -> impl Strategy<Value = (SlidingBuckets, Span, u64)> {
    (1..30u64, 1..40u64, 1..5000u64).prop_map(|(limit, buckets, precision)| {
        let (precision, window) = (Span::from_millis(precision), Span::from_millis(precision * buckets));
        (SlidingBuckets { limit, window, precision }, window, limit)
    })
}

pub fn logs() -> impl Strategy<Value = (SlidingLog, Span, u64)> {
    (1..200u64, periods()).prop_map(|(limit, window)| (plain_log(limit, window), window, limit))
}

pub fn logs_of_any_kind() -> impl Strategy<Value = (SlidingLog, Span, u64)> {
    (1..20u64, periods(), 0..3u64, any::<bool>()).prop_map(|(limit, window, divisor, counting)| {
        let gap = window.as_micros().checked_div(divisor * 2).map_or(Span::ZERO, Span::from_micros);
        let refused = if counting { Refused::Recorded } else { Refused::Forgotten };
        (SlidingLog { gap, refused, ..plain_log(limit, window) }, window, limit)
    })
}

pub fn leases() -> impl Strategy<Value = ((u64, Span), Span, u64)> {
    (1..30u64, periods()).prop_map(|(limit, ttl)| ((limit, ttl), ttl, limit))
}
