//! What every limiter must obey, and a model of each: slow and simple, in rational numbers, and most remember every request.
//!
//! `case.rs` has the laws of an instant; tests and fuzzers bring about the states. `states.rs` changes states as nodes do.

// A law that is broken panics.
#![allow(clippy::expect_used, clippy::missing_panics_doc)]

mod case;
pub mod every_order;
pub mod fair;
mod filling;
pub mod fleet;
mod found;
mod ledger;
pub mod session;
mod states;
pub mod world;

pub use case::{Case, knows_its_end, reads_clock};
pub use filling::{Want, fill};
pub use found::{FoundAnswer, FoundLimit, FoundTable};
pub use ledger::{Action, Book, Ledger, Seen, charges, missing_batches, opened_windows, owed};
pub use session::set;
pub use states::{apply, charge, charged, copy, decoded, encoded, rebased, refunded};

use num_rational::BigRational;
use num_traits::{One, Zero};

use chrono::{DateTime, Datelike, TimeDelta};

use ratelimit_core::limiter::{
    AlignedWindow, FixedWindow, Limiter, Penalty, Rate, SlidingLog, SlidingWindow, Unit,
};
use ratelimit_core::{Period, Span, Time};

/// The start of an hour in 2023.
pub const T0: Time = Time::from_micros(1_700_002_800_000_000);

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
    remembered(limit, in_window(window))
}

/// The weight of a request that counts for one window.
pub fn in_window(window: Span) -> impl Fn(u64, u64) -> BigRational {
    move |then, now| one_if(now < then + window.as_micros())
}

/// An aligned fixed window.
pub fn same_window(window: AlignedWindow) -> impl Model {
    remembered(window.limit.get(), in_same_window(window.window))
}

/// The weight of a request in an aligned fixed window.
pub fn in_same_window(window: Period) -> impl Fn(u64, u64) -> BigRational {
    let width = window.micros().get();
    move |then, now| one_if(then / width == now / width)
}

/// A calendar window at a fixed offset from UTC. Days begin at their hour, weeks on Mondays, and months on their first day.
pub fn same_dates(limit: u64, unit: Unit, offset_minutes: i64) -> impl Model {
    remembered(limit, on_same_dates(unit, offset_minutes))
}

/// The weight of a request in a calendar window.
pub fn on_same_dates(unit: Unit, offset_minutes: i64) -> impl Fn(u64, u64) -> BigRational {
    let number = move |at: u64| {
        let utc = DateTime::from_timestamp_micros(at.cast_signed()).unwrap_or_default().naive_utc();
        let local = utc + TimeDelta::minutes(offset_minutes);
        let months = i64::from(local.year()) * 12 + i64::from(local.month0());
        match unit {
            Unit::Hour => local.and_utc().timestamp().div_euclid(3600),
            Unit::Day(hour) => i64::from((local - TimeDelta::hours(hour.into())).num_days_from_ce()),
            // The first day of the year 1 was a Monday.
            Unit::Week(_) => i64::from(local.num_days_from_ce() - 1).div_euclid(7),
            Unit::Month(_) => months,
            Unit::Quarter => months.div_euclid(3),
            Unit::Year => i64::from(local.year()),
        }
    };
    move |then, now| one_if(number(then) == number(now))
}

/// A caller that is banned for repeated offences. It remembers every strike and every ban.
pub struct Offender {
    penalty: Penalty,
    /// The strikes since the last ban: instants and costs.
    strikes: Vec<(u64, u64)>,
    /// The first strike of the window.
    opened: u64,
    /// The ends of all bans, and the level of the next one.
    bans: Vec<(u64, u32)>,
}

impl Offender {
    pub fn new(penalty: Penalty) -> Offender {
        Offender { penalty, strikes: Vec::new(), opened: 0, bans: Vec::new() }
    }

    /// When the ban ends, if there is one.
    pub fn banned(&self, now: u64) -> Option<u64> {
        self.bans.iter().map(|(end, _)| *end).find(|end| *end > now)
    }

    /// The strikes that count at `now`.
    pub fn counted(&self, now: u64) -> u64 {
        let open = now < self.opened + self.penalty.window.micros().get();
        self.strikes.iter().filter(|_| open).map(|(_, cost)| cost).sum()
    }

    /// The ban at a level.
    fn ban(&self, level: u32) -> u64 {
        let longest = u128::from(self.penalty.longest.as_micros());
        let mut ban = u128::from(self.penalty.ban.micros().get());
        (0..level).for_each(|_| ban = (ban * u128::from(self.penalty.grow.get())).min(longest));
        u64::try_from(ban.min(longest)).unwrap_or(u64::MAX)
    }

    /// The level at `now`: that after the last ban, one less for each whole time of forgiveness since its end.
    fn level(&self, now: u64) -> u32 {
        let Some((end, mut level)) = self.bans.last().copied() else { return 0 };
        let mut forgiven = end + self.penalty.forgive.micros().get();
        while level > 0 && forgiven <= now {
            level -= 1;
            forgiven += self.penalty.forgive.micros().get();
        }
        level
    }

    /// When there is neither ban nor strike nor level.
    pub fn reset(&self, now: u64) -> u64 {
        let counted = self.counted(now) > 0;
        let window = if counted { self.opened + self.penalty.window.micros().get() } else { now };
        let forgive =
            |(end, level): &(u64, u32)| end + u64::from(*level) * self.penalty.forgive.micros().get();
        self.bans.last().map_or(0, forgive).max(window).max(now)
    }
}

impl Model for Offender {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        if self.banned(now).is_some() {
            return false;
        }
        if self.counted(now) == 0 {
            self.strikes.clear();
            self.opened = now;
        }
        self.strikes.push((now, cost));
        if self.counted(now) < self.penalty.strikes.get() {
            return true;
        }
        let level = self.level(now);
        let grows = self.penalty.grow.get() > 1 && self.ban(level) < self.penalty.longest.as_micros();
        let end = (now + self.ban(level)).min(Time::LATEST.as_micros() + 1);
        self.bans.push((end, if grows { level + 1 } else { level }));
        self.strikes.clear();
        false
    }
}

/// A sliding window that is estimated from two counts.
pub fn overlapping(window: SlidingWindow) -> impl Model {
    remembered(window.limit.get(), overlap(window.window))
}

/// The weight of a request in a sliding window that is estimated from two counts.
pub fn overlap(window: Period) -> impl Fn(u64, u64) -> BigRational {
    let width = window.micros().get();
    move |then, now| match now / width - then / width {
        0 => BigRational::one(),
        1 => ratio(width - now % width) / ratio(width),
        _ => BigRational::zero(),
    }
}

/// A sliding window of sub-buckets of length `part`: a request counts from the start of its sub-bucket.
pub fn recent_parts(limit: u64, window: Span, part: Span) -> impl Model {
    remembered(limit, in_recent_parts(window, part))
}

/// The weight of a request in a sliding window of sub-buckets.
pub fn in_recent_parts(window: Span, part: Span) -> impl Fn(u64, u64) -> BigRational {
    let (width, part) = (window.as_micros(), part.as_micros());
    move |then, now| one_if(then / part * part + width > now)
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
