//! Generators of parameters and of histories of requests.

use proptest::prelude::*;

use std::num::NonZeroU64;

use ratelimit_core::limiter::{
    AlignedWindow, BatchBucket, Calendar, FixedWindow, Gcra, LeakyBucket, Penalty, Rate, Refused,
    SlidingBuckets, SlidingLog, SlidingWindow, TokenBucket, Uniform, Unit,
};
use ratelimit_core::{Limiter, MAX_COUNT, Period, Span};

/// A request: the time since the request before it, in microseconds, and its cost.
pub type Step = (u64, u64);

/// Histories of requests that cost up to `most`. The times between them are zero, tiny, part of a period, exactly one,
/// or up to three.
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

fn n(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("a number above zero")
}

/// The time in which one request is paid off, rounded up.
fn each(period: Period, count: u64) -> Span {
    Span::from_micros(period.micros().get() / count + 1)
}

/// Periods of whole milliseconds, many of which the count does not divide.
fn periods() -> impl Strategy<Value = Period> {
    prop_oneof![Just(1), Just(11), Just(1000), 1..100_000u64]
        .prop_map(|millis| Period::from_millis(n(millis)))
}

/// Counts per period.
fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![1..12u64, Just(1_500_000), Just(10_000_000_000), 1..=MAX_COUNT / 1_000_000]
}

/// Adds a history to generated parameters, which come with the length of time and the limit that scale the history.
pub fn with_history<P: Clone + std::fmt::Debug>(
    parameters: impl Strategy<Value = (P, Span, u64)>,
) -> impl Strategy<Value = (P, Vec<Step>)> {
    parameters.prop_flat_map(|(parameters, period, limit)| {
        (Just(parameters), histories(period, limit + 1)).prop_map(|(parameters, steps)| (parameters, steps))
    })
}

// Each generator below returns a limiter, and the length of time and the limit that scale its histories.

pub fn token_buckets() -> impl Strategy<Value = (TokenBucket, Span, u64)> {
    (1..20u64, rates(), periods()).prop_map(|(capacity, refill, period)| {
        (TokenBucket::new(n(capacity), n(refill), period).expect("a bucket"), each(period, refill), capacity)
    })
}

/// Capacities up to the largest that is refilled within 100 years, and refills up to ten billion and more.
pub fn large_token_buckets() -> impl Strategy<Value = (TokenBucket, Span, u64)> {
    (1..=MAX_COUNT, rates(), periods()).prop_map(|(capacity, refill, period)| {
        let most =
            u128::from(Span::CENTURY.as_micros()) * u128::from(refill) / u128::from(period.micros().get());
        let capacity = capacity.min(u64::try_from(most).unwrap_or(u64::MAX)).max(1);
        (TokenBucket::new(n(capacity), n(refill), period).expect("a bucket"), period.span(), capacity)
    })
}

pub fn batch_buckets() -> impl Strategy<Value = ((BatchBucket, Rate), Span, u64)> {
    (1..20u64, 1..12u64, periods()).prop_map(|(capacity, refill, period)| {
        let rate = Rate { limit: n(capacity), count: n(refill), period };
        ((BatchBucket::new(rate.limit, rate.count, period).expect("a bucket"), rate), period.span(), capacity)
    })
}

pub fn gcras() -> impl Strategy<Value = (Gcra, Span, u64)> {
    (1..20u64, rates(), periods()).prop_map(|(limit, count, period)| {
        (Gcra::new(n(limit), n(count), period).expect("a rate"), each(period, count), limit)
    })
}

pub fn leaky_buckets() -> impl Strategy<Value = (LeakyBucket, Span, u64)> {
    (1..20u64, rates(), periods()).prop_map(|(capacity, leak, period)| {
        (LeakyBucket::new(n(capacity), n(leak), period).expect("a bucket"), each(period, leak), capacity)
    })
}

pub fn fixed_windows() -> impl Strategy<Value = (FixedWindow, Span, u64)> {
    (1..30u64, periods())
        .prop_map(|(limit, window)| (FixedWindow { limit: n(limit), window }, window.span(), limit))
}

pub fn aligned_windows() -> impl Strategy<Value = (AlignedWindow, Span, u64)> {
    (1..30u64, periods())
        .prop_map(|(limit, window)| (AlignedWindow { limit: n(limit), window }, window.span(), limit))
}

/// Calendars at fixed offsets, with the offset in minutes.
pub fn calendars() -> impl Strategy<Value = ((Calendar, i64), Span, u64)> {
    let days = [0, 4, 23].map(Unit::Day);
    let others = [Unit::Hour, Unit::Week(1), Unit::Month(1), Unit::Quarter, Unit::Year];
    let units = days.into_iter().chain(others).collect::<Vec<_>>();
    (1..30u64, prop::sample::select(units), -840..=840i64).prop_map(|(limit, unit, minutes)| {
        let sign = if minutes < 0 { '-' } else { '+' };
        let zone = format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
        let zone = ratelimit_zones::find(zone.as_bytes()).expect("an offset");
        let calendar = Calendar::new(n(limit), unit, zone);
        ((calendar, minutes), calendar.length(), limit)
    })
}

/// Penalties whose windows, bans and forgiveness are of about the same length.
pub fn penalties() -> impl Strategy<Value = (Penalty, Span, u64)> {
    let growth = prop_oneof![Just(1), Just(2), Just(3), Just(1000)];
    let longest = prop_oneof![Just(1), Just(2), Just(9), Just(u64::MAX)];
    (1..6u64, periods(), periods(), growth, longest, 1..8u64).prop_map(
        |(strikes, window, ban, grow, longest, forgive)| {
            let longest = ban.span().times(longest).min(Span::CENTURY);
            let forgive = Period::of(ban.span().times(forgive)).expect("above zero");
            let penalty = Penalty { strikes: n(strikes), window, ban, grow: n(grow), longest, forgive };
            (penalty, window.span().plus(ban.span()), 2)
        },
    )
}

pub fn uniforms() -> impl Strategy<Value = (Uniform, Span, u64)> {
    periods().prop_map(|interval| (Uniform { interval }, interval.span(), 1))
}

pub fn sliding_windows() -> impl Strategy<Value = (SlidingWindow, Span, u64)> {
    (1..30u64, periods())
        .prop_map(|(limit, window)| (SlidingWindow { limit: n(limit), window }, window.span(), limit))
}

/// Sliding windows of sub-buckets, with limit, window and precision.
pub fn windows_of_buckets() -> impl Strategy<Value = ((SlidingBuckets, (u64, Span, Span)), Span, u64)> {
    (1..30u64, 1..40u64, 1..5000u64).prop_map(|(limit, buckets, precision)| {
        let [window, part] = [precision * buckets, precision].map(|millis| Period::from_millis(n(millis)));
        let sliding = SlidingBuckets::new(n(limit), window, part).expect("a window of whole buckets");
        ((sliding, (limit, window.span(), part.span())), window.span(), limit)
    })
}

/// Logs without a gap that do not count refused requests.
pub fn logs() -> impl Strategy<Value = (SlidingLog, Span, u64)> {
    (1..200u64, periods()).prop_map(|(limit, window)| (plain_log(limit, window), window.span(), limit))
}

pub fn logs_of_any_kind() -> impl Strategy<Value = (SlidingLog, Span, u64)> {
    (1..20u64, periods(), 0..3u64, any::<bool>()).prop_map(|(limit, window, divisor, counting)| {
        let gap = window.micros().get().checked_div(divisor * 2).map_or(Span::ZERO, Span::from_micros);
        let refused = if counting { Refused::Recorded } else { Refused::Forgotten };
        (SlidingLog { gap, refused, ..plain_log(limit, window) }, window.span(), limit)
    })
}

/// The capacity and the ttl of leases.
pub fn leases() -> impl Strategy<Value = ((u64, Period), Span, u64)> {
    (1..30u64, periods()).prop_map(|(limit, ttl)| ((limit, ttl), ttl.span(), limit))
}

fn plain_log(limit: u64, window: Period) -> SlidingLog {
    SlidingLog { limit: n(limit), window, gap: Span::ZERO, refused: Refused::Forgotten, most: n(1000) }
}
