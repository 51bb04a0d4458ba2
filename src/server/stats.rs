//! What the module counts since it was loaded, what it tells of each decision, and what the operator may set.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use redis_module::raw::REDISMODULE_NOTIFY_MODULE;

use super::api::api;
use super::call::Call;
use ratelimit_core::Verdict;
use ratelimit_language::{Bounds, CATALOG};

/// What came of a request.
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

/// Under which name a decision is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// A limiter, by its row in the catalog.
    Row(usize),
    Shed,
    Throttle,
    Multi,
    XAdd,
    LPush,
    RPush,
}

/// Those that are in no catalog, in order.
const OTHERS: [&str; 6] = ["SHED", "THROTTLE", "MULTI", "XADD", "LPUSH", "RPUSH"];
const COUNTERS: usize = CATALOG.len() + OTHERS.len();

impl Counter {
    fn place(self) -> usize {
        match self {
            Counter::Row(row) => row,
            Counter::Shed => CATALOG.len(),
            Counter::Throttle => CATALOG.len() + 1,
            Counter::Multi => CATALOG.len() + 2,
            Counter::XAdd => CATALOG.len() + 3,
            Counter::LPush => CATALOG.len() + 4,
            Counter::RPush => CATALOG.len() + 5,
        }
    }
}

static ADMITTED: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];
static REFUSED: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];
/// Calls of any command that ended in an error of ours; the server counts those of its own.
pub(super) static ERRORS: AtomicU64 = AtomicU64::new(0);

/// `ratelimit.events`.
pub(super) static EVENTS: AtomicBool = AtomicBool::new(false);
/// `ratelimit.max-leases`.
pub(super) static MAX_LEASES: AtomicI64 = AtomicI64::new(DEFAULT_MOST);
/// `ratelimit.max-log-entries`.
pub(super) static MAX_LOG_ENTRIES: AtomicI64 = AtomicI64::new(DEFAULT_MOST);
/// The default of both.
pub(super) const DEFAULT_MOST: i64 = 1_000_000;

impl Call<'_> {
    /// Counts a decision on the key at a place, and tells it.
    pub fn decided(&self, key: usize, counter: Counter, outcome: Outcome) {
        self.count(counter, outcome);
        self.notify(key, outcome);
    }

    #[allow(clippy::unused_self, reason = "what is counted is a call")]
    pub fn count(&self, counter: Counter, outcome: Outcome) {
        let counters = match outcome {
            Outcome::Admitted => &ADMITTED,
            Outcome::Refused => &REFUSED,
        };
        if let Some(counter) = counters.get(counter.place()) {
            add_one(counter);
        }
    }

    /// Tells a decision on the key at a place as a keyspace event, if the operator wants that. The key is closed:
    /// whoever listens may do with it what they like.
    pub fn notify(&self, key: usize, outcome: Outcome) {
        let event = match outcome {
            Outcome::Admitted => c"rl.admit",
            Outcome::Refused => c"rl.refuse",
        };
        if EVENTS.load(Relaxed)
            && let Ok(key) = self.argument(key)
        {
            let class = REDISMODULE_NOTIFY_MODULE;
            // SAFETY: the context and an argument of the running command, and a C string.
            unsafe { api!(RedisModule_NotifyKeyspaceEvent(self.ctx, class, event.as_ptr(), key)) };
        }
    }
}

/// The counters by name: admitted and refused.
pub(super) fn counts() -> impl Iterator<Item = (&'static str, u64, u64)> {
    let names = CATALOG.iter().map(|row| row.name).chain(OTHERS);
    names
        .zip(ADMITTED.iter().zip(&REFUSED))
        .map(|(name, (admitted, refused))| (name, admitted.load(Relaxed), refused.load(Relaxed)))
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
