//! Callers that wait until their requests are admitted. `ratelimit_core::line` has the order in which they are tried.
//!
//! A command replies [`Reply::Wait`](crate::reply::Reply::Wait) if its caller is to wait. The host runs the command again whenever
//! one of its limits may have room.
//!
//! ```text
//! call --refused--> stands in lines --granted, refused at last, or an error--> replied
//!                      |  ^
//!                      +--+ tried: still refused
//! ```
//!
//! - `turns.rs` is what a running command asks of the lines and notes in them, `waits.rs` how it waits.
//! - `tries.rs` tries callers, over the trait in `clients.rs`; `look.rs` frees leases that have ended, and lets lines read what tenants hold then.
//! - `wait.rs` has the limits for which a call waits.

mod clients;
mod look;
mod tries;
mod turns;
mod wait;
mod waits;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use ratelimit_core::line::Lines;
use ratelimit_core::state::Leases;
use ratelimit_core::{Length, LimitSet, Time};
use ratelimit_value::Value;

pub use clients::Clients;
pub use tries::try_callers;
pub use turns::{Turns, WaitingTenant};
pub use wait::{OfDatabase, Wait, WaitedKey, Wanted};
pub use waits::Waits;

/// The callers that wait on a node.
pub struct Waiting {
    state: Mutex<State>,
    /// Whether any caller waits.
    anybody: AtomicBool,
}

pub struct State {
    pub lines: Lines<WaitedKey>,
    /// The number of callers that were granted what they waited for.
    pub granted: u64,
    /// The number of callers whose time passed, or that were unblocked.
    pub timed_out: u64,
}

impl Waiting {
    pub(crate) const fn new() -> Waiting {
        let state = State { lines: Lines::new(), granted: 0, timed_out: 0 };
        Waiting { state: Mutex::new(state), anybody: AtomicBool::new(false) }
    }

    /// Runs `body` with the lines. It must not call the server, which may call back.
    pub fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = body(&mut state);
        self.anybody.store(!state.lines.is_empty(), Relaxed);
        result
    }

    /// Whether any caller waits for a limit.
    #[inline(always)]
    pub fn is_anybody(&self) -> bool {
        self.anybody.load(Relaxed)
    }

    /// A value has left its key: the key was deleted, has expired, or was evicted, renamed or overwritten, and this module did not
    /// do it. Unless the key expired, the hungers for its limits end.
    pub fn left(&self, key: &dyn OfDatabase, value: &Value, clock: Time, now: Time) {
        if self.is_anybody() {
            let has_expired = has_expired(value, clock);
            self.with(|state| {
                if !has_expired {
                    state.lines.end_hungers_of::<dyn OfDatabase>(key, now);
                }
                state.lines.replace::<dyn OfDatabase>(key);
            });
        }
    }

    /// This module has replaced or removed the value of a key, by which no hunger ends.
    pub fn replaced(&self, key: &dyn OfDatabase) {
        if self.is_anybody() {
            self.with(|state| state.lines.replace::<dyn OfDatabase>(key));
        }
    }

    /// A call has changed a key.
    pub fn changed(&self, key: &dyn OfDatabase) {
        if self.is_anybody() {
            self.with(|state| state.lines.mark::<dyn OfDatabase>(key));
        }
    }

    /// All keys may have left. Callers that wait are tried again. Of those that poll nothing is known any more: an empty database
    /// owes them nothing.
    pub fn all_left(&self, now: Time) {
        if self.is_anybody() {
            self.with(|state| {
                state.lines.end_all_hungers(now);
                state.lines.replace_all();
            });
        }
    }

    /// When a caller is to be tried or a table looked at, and when the wait of a caller ends.
    pub fn next(&self) -> (Option<Time>, Option<Time>) {
        self.with(|State { lines, .. }| {
            let tries = [lines.next_due(), lines.next_look()].into_iter().flatten().min();
            (tries, lines.next_deadline())
        })
    }

    /// The numbers of callers that wait, that were granted what they waited for, and whose time passed.
    pub fn counts(&self) -> [u64; 3] {
        self.with(|state| [state.lines.len() as u64, state.granted, state.timed_out])
    }
}

/// Whether the key of a value has expired by now, or would if its expiry were known: no lease is held.
fn has_expired(value: &Value, now: Time) -> bool {
    if value.expiry() > 0 {
        return Time::from_millis(value.expiry()) <= now;
    }
    let of_set = || value.state::<LimitSet>().and_then(|set| set.get::<Leases>(Length::NONE));
    value.state::<Leases>().or_else(of_set).is_none_or(|leases| leases.count(now) == 0)
}

/// Why a command runs again while its caller waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A caller is tried. It goes on waiting if it is refused.
    IsTried,
    /// A caller is tried for the last time, because its time has passed.
    Leaves,
    /// A caller leaves, and nothing may be written: the command only looks.
    Looks,
}
