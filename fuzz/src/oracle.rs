//! The models of `core/laws`: what a limiter should admit, in rational numbers.

use std::num::NonZeroU64;

use ratelimit_core::limiter::Rate;
use ratelimit_core::{AnyLimiter, Period, Span};
pub use ratelimit_laws::Model;
use ratelimit_laws::{
    Offender, arrivals, batches, continuous, entries, opened, overlapping, recent, recent_parts, same_dates,
    same_window, water,
};

/// The most batches that fill a bucket with a model: the model counts each.
const MAX_BATCHES: u64 = 100_000;

/// The model of the limiter that `words` name, as long as its parameters stay and no lease is renewed or ended; `None`
/// if it has none.
pub fn model(limiter: &AnyLimiter<'_>, words: &str) -> Option<Box<dyn Model>> {
    Some(match *limiter {
        AnyLimiter::TokenBucket(bucket) => Box::new(continuous(*bucket.rate())),
        AnyLimiter::BatchBucket(_) => {
            let [capacity, refill, period] = numbers(words)?;
            if capacity.div_ceil(refill) > MAX_BATCHES {
                return None;
            }
            let [limit, count, period] = [capacity, refill, period].map(NonZeroU64::new);
            Box::new(batches(Rate { limit: limit?, count: count?, period: Period::from_millis(period?) }))
        }
        AnyLimiter::Gcra(gcra) => Box::new(arrivals(*gcra.rate())),
        AnyLimiter::SlidingWindow(window) => Box::new(overlapping(window)),
        AnyLimiter::SlidingBuckets(_) => {
            let [limit, window, precision] = numbers(words)?;
            Box::new(recent_parts(limit, Span::from_millis(window), Span::from_millis(precision)))
        }
        AnyLimiter::Concurrent(leases) => Box::new(recent(leases.limit, leases.ttl.span())),
        AnyLimiter::LeakyBucket(bucket) => Box::new(water(*bucket.rate())),
        AnyLimiter::FixedWindow(window) => Box::new(opened(window)),
        AnyLimiter::AlignedWindow(window) => Box::new(same_window(window)),
        AnyLimiter::Uniform(uniform) => Box::new(recent(1, uniform.interval.span())),
        AnyLimiter::SlidingLog(log) => Box::new(entries(log)),
        // The model knows fixed offsets and no anchors.
        AnyLimiter::Calendar(calendar) if words.ends_with("+05:45") => {
            Box::new(same_dates(calendar.limit.get(), calendar.unit, 5 * 60 + 45))
        }
        // The model counts down each level, and sums what a window's strikes cost.
        AnyLimiter::Penalty(penalty) => Box::new(Offender::new(penalty)),
        AnyLimiter::Calendar(_) | AnyLimiter::Bursty(_) | AnyLimiter::Warming(_) => return None,
    })
}

/// The first three numbers of a call: these limiters do not say what they were made of.
fn numbers(words: &str) -> Option<[u64; 3]> {
    let mut numbers = words.split(' ').filter_map(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}
