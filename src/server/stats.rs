//! What the module counts since it was loaded, and what the operator may set.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::limit::{Bounds, CATALOG};

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Admitted,
    Refused,
}

/// The place of the shedder, behind the limiters of the catalog.
pub const SHED: usize = CATALOG.len();

/// Requests by limiter, in the order of the catalog.
pub(super) static ADMITTED: [AtomicU64; SHED + 1] = [const { AtomicU64::new(0) }; SHED + 1];
pub(super) static REFUSED: [AtomicU64; SHED + 1] = [const { AtomicU64::new(0) }; SHED + 1];
/// Calls of any command that ended in an error of ours; the server counts those of its own.
pub(super) static ERRORS: AtomicU64 = AtomicU64::new(0);

/// `ratelimit.max-leases`.
pub(super) static MAX_LEASES: AtomicI64 = AtomicI64::new(DEFAULT_MOST);
/// `ratelimit.max-log-entries`.
pub(super) static MAX_LOG_ENTRIES: AtomicI64 = AtomicI64::new(DEFAULT_MOST);
/// The default of both.
pub(super) const DEFAULT_MOST: i64 = 1_000_000;

pub fn count(row: usize, outcome: Outcome) {
    let counters = match outcome {
        Outcome::Admitted => &ADMITTED,
        Outcome::Refused => &REFUSED,
    };
    if let Some(counter) = counters.get(row) {
        add_one(counter);
    }
}

pub(super) fn count_error() {
    add_one(&ERRORS);
}

/// Commands run on one thread, so no count is lost without a locked addition.
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

pub fn bounds() -> Bounds {
    Bounds {
        leases: MAX_LEASES.load(Relaxed).unsigned_abs(),
        log_entries: MAX_LOG_ENTRIES.load(Relaxed).unsigned_abs(),
    }
}
