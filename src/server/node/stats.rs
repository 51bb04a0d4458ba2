//! The counters of the module since it was loaded, and the keyspace events of its decisions.

use ratelimit_language::{CATALOG, Row};
use redis_module::raw::REDISMODULE_NOTIFY_MODULE;

use super::{settings, top};
use crate::count::{Count, Outcome};
use crate::server::api::api;
use crate::server::entry::call::Call;

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

static ADMITTED: [Count; COUNTERS] = [const { Count::new() }; COUNTERS];
static REFUSED: [Count; COUNTERS] = [const { Count::new() }; COUNTERS];
/// Calls that replied an error of the module. Errors of forwarded commands are in the server's own statistics.
static ERRORS: Count = Count::new();

/// Admitted calls that a shadow would have refused.
static REFUSED_IN_SHADOW: Count = Count::new();

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
            counter.add_one();
        }
    }

    /// Counts a refusal for the key that is the argument at `place`, if the settings ask for it.
    #[inline(always)]
    pub fn count_refusal(&self, place: usize) {
        if settings::counts_refusals() {
            self.count_in_top(place);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_in_top(&self, place: usize) {
        if let Ok(key) = self.word(place) {
            let (most, window) = settings::top();
            top::count(self.database(), key, most, window);
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
    let names = CATALOG.iter().map(Row::name).chain(OTHERS);
    names
        .zip(ADMITTED.iter().zip(&REFUSED))
        .map(|(name, (admitted, refused))| (name, admitted.get(), refused.get()))
}

/// Counts an admitted call that a shadow would have refused.
pub fn count_refused_in_shadow() {
    REFUSED_IN_SHADOW.add_one();
}

/// Returns the number of admitted calls that a shadow would have refused.
pub fn refused_in_shadow() -> u64 {
    REFUSED_IN_SHADOW.get()
}

/// Returns the number of calls that replied an error.
pub fn errors() -> u64 {
    ERRORS.get()
}

pub fn count_error() {
    ERRORS.add_one();
}
