//! The models of the core's own tests: what a limiter should admit, in rational numbers.

#[allow(clippy::wildcard_imports, reason = "the models name all limiters by `super::*`")]
use crate::limit::*;
use crate::time::Span;

mod histories {
    pub type Step = (u64, u64);
}

#[allow(dead_code, clippy::pedantic, clippy::duplicate_mod, reason = "the core has it in its tests only")]
#[path = "../../src/limit/models.rs"]
mod models;

pub use models::Model;

/// The model of a limiter, as long as its parameters stay and no lease is renewed or ended; `None` if it has none.
pub fn model(limiter: &AnyLimiter<'_>) -> Option<Box<dyn Model>> {
    Some(match *limiter {
        AnyLimiter::TokenBucket(bucket) => Box::new(models::continuous(bucket)),
        AnyLimiter::BatchBucket(bucket) => Box::new(models::batches(bucket)),
        AnyLimiter::Gcra(gcra) => Box::new(models::arrivals(gcra)),
        AnyLimiter::SlidingWindow(window) => Box::new(models::overlapping(window)),
        AnyLimiter::SlidingBuckets(window) => Box::new(models::recent_parts(window)),
        AnyLimiter::Concurrent(leases) => Box::new(models::recent(leases.limit, leases.ttl)),
        AnyLimiter::LeakyBucket(bucket) => Box::new(models::water(bucket)),
        AnyLimiter::FixedWindow(window) => Box::new(models::opened(window)),
        AnyLimiter::AlignedWindow(window) => Box::new(models::same_window(window)),
        AnyLimiter::Uniform(uniform) => Box::new(models::recent(1, uniform.interval)),
        AnyLimiter::SlidingLog(log) => Box::new(models::entries(log)),
        AnyLimiter::Bursty(_) | AnyLimiter::Warming(_) => return None,
    })
}
