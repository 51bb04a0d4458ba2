//! What a node counts: decisions, errors, and calls that a shadow would have refused.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ratelimit_core::Verdict;
use ratelimit_language::{CATALOG, Row};

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

/// The name under which a decision is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// A limiter, by its row in the catalog.
    Row(usize),
    Shed,
    Throttle,
    Multi,
    Ask,
    XAdd,
    LPush,
    RPush,
    Sketch,
}

/// The names of the other counters, in order.
const OTHERS: [&str; 8] = ["SHED", "THROTTLE", "MULTI", "ASK", "XADD", "LPUSH", "RPUSH", "SKETCH"];
const COUNTERS: usize = CATALOG.len() + OTHERS.len();

impl Counter {
    fn place(self) -> usize {
        match self {
            Counter::Row(row) => row,
            Counter::Shed => CATALOG.len(),
            Counter::Throttle => CATALOG.len() + 1,
            Counter::Multi => CATALOG.len() + 2,
            Counter::Ask => CATALOG.len() + 3,
            Counter::XAdd => CATALOG.len() + 4,
            Counter::LPush => CATALOG.len() + 5,
            Counter::RPush => CATALOG.len() + 6,
            Counter::Sketch => CATALOG.len() + 7,
        }
    }
}

/// The counts of a node since it began.
pub struct Counts {
    admitted: [Count; COUNTERS],
    refused: [Count; COUNTERS],
    /// Calls that replied an error of the module. Errors of forwarded commands are in the server's own statistics.
    pub errors: Count,
    /// Admitted calls that a shadow would have refused.
    pub refused_in_shadow: Count,
}

impl Counts {
    pub(crate) const fn new() -> Counts {
        Counts {
            admitted: [const { Count::new() }; COUNTERS],
            refused: [const { Count::new() }; COUNTERS],
            errors: Count::new(),
            refused_in_shadow: Count::new(),
        }
    }

    /// Counts a decision.
    #[inline(always)]
    pub fn add(&self, counter: Counter, outcome: Outcome) {
        let counts = match outcome {
            Outcome::Admitted => &self.admitted,
            Outcome::Refused => &self.refused,
        };
        if let Some(count) = counts.get(counter.place()) {
            count.add_one();
        }
    }

    /// The name of each counter, and the numbers admitted and refused.
    pub fn decisions(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let names = CATALOG.iter().map(Row::name).chain(OTHERS);
        let counts = self.admitted.iter().zip(&self.refused);
        names.zip(counts).map(|(name, (admitted, refused))| (name, admitted.get(), refused.get()))
    }
}
