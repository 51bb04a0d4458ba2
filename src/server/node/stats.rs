//! The counters of the module since it was loaded, and the keyspace events of its decisions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ratelimit_core::Verdict;
use ratelimit_language::CATALOG;
use redis_module::raw::REDISMODULE_NOTIFY_MODULE;

use super::settings;
use crate::server::api::api;
use crate::server::entry::call::Call;

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

static ADMITTED: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];
static REFUSED: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];
/// Calls that replied an error of the module. Errors of forwarded commands are in the server's own statistics.
static ERRORS: AtomicU64 = AtomicU64::new(0);

/// Admitted calls that a shadow would have refused.
static REFUSED_IN_SHADOW: AtomicU64 = AtomicU64::new(0);

impl Call<'_> {
    /// Counts a decision on the key that is the argument at `place`, and sends its keyspace event.
    #[inline(always)]
    pub fn record(&self, place: usize, counter: Counter, outcome: Outcome) {
        self.count(counter, outcome);
        if outcome == Outcome::Refused {
            self.count_refusal(place);
        }
        self.notify(place, outcome);
    }

    #[allow(clippy::unused_self, reason = "it counts calls")]
    pub fn count(&self, counter: Counter, outcome: Outcome) {
        let counters = match outcome {
            Outcome::Admitted => &ADMITTED,
            Outcome::Refused => &REFUSED,
        };
        if let Some(counter) = counters.get(counter.place()) {
            add_one(counter);
        }
    }

    /// Sends the keyspace event of a decision, if the settings ask for events.
    ///
    /// The key must be closed: a module that receives the event may change it.
    #[inline(always)]
    pub fn notify(&self, place: usize, outcome: Outcome) {
        if settings::sends_events() {
            self.send_event(place, outcome);
        }
    }

    #[cold]
    #[inline(never)]
    fn send_event(&self, place: usize, outcome: Outcome) {
        let event = match outcome {
            Outcome::Admitted => c"rl.admit",
            Outcome::Refused => c"rl.refuse",
        };
        if let Ok(key) = self.argument(place) {
            let class = REDISMODULE_NOTIFY_MODULE;
            // SAFETY: context and key are those of the running command, and the event is a C string.
            unsafe { api!(RedisModule_NotifyKeyspaceEvent(self.ctx, class, event.as_ptr(), key)) };
        }
    }
}

/// Returns the name of each counter, and the numbers admitted and refused.
pub fn counts() -> impl Iterator<Item = (&'static str, u64, u64)> {
    let names = CATALOG.iter().map(|row| row.name).chain(OTHERS);
    names
        .zip(ADMITTED.iter().zip(&REFUSED))
        .map(|(name, (admitted, refused))| (name, admitted.load(Relaxed), refused.load(Relaxed)))
}

/// Counts an admitted call that a shadow would have refused.
pub fn count_refused_in_shadow() {
    add_one(&REFUSED_IN_SHADOW);
}

/// Returns the number of admitted calls that a shadow would have refused.
pub fn refused_in_shadow() -> u64 {
    REFUSED_IN_SHADOW.load(Relaxed)
}

/// Returns the number of calls that replied an error.
pub fn errors() -> u64 {
    ERRORS.load(Relaxed)
}

pub fn count_error() {
    add_one(&ERRORS);
}

/// Commands run one at a time, so a load and a store lose no count. They are cheaper than an atomic addition.
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}
