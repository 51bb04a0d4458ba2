//! What is counted: decisions, errors, and other events.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ratelimit_core::Verdict;

/// The decision on a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Admitted,
    Refused,
}

impl Outcome {
    pub fn of(verdict: Verdict) -> Outcome {
        if verdict.admits() { Outcome::Admitted } else { Outcome::Refused }
    }
}

#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    pub const fn new() -> Count {
        Count(AtomicU64::new(0))
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Commands run one at a time, so a load and a store lose no count. They are cheaper than an atomic addition.
    pub fn add_one(&self) {
        self.0.store(self.get().wrapping_add(1), Relaxed);
    }
}
