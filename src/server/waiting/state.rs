//! The callers that wait, their lines and the alarm: the one state of this folder.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use ratelimit_core::Time;
use ratelimit_core::line::{Caller, Lines};
use redis_module::raw::RedisModuleTimerID;

use super::wait::WaitedKey;
use super::waiter::Waiter;

/// Whether any caller waits.
static ANYBODY: AtomicBool = AtomicBool::new(false);
/// It is never locked while the server is called, because the server may call back.
static STATE: Mutex<State> = Mutex::new(State {
    lines: Lines::new(),
    waiters: BTreeMap::new(),
    alarm: Alarm::NONE,
    granted: 0,
    timed_out: 0,
});

pub(super) struct State {
    pub(super) lines: Lines<WaitedKey>,
    /// The callers that wait, and those for which the server has not called `forget` yet.
    pub(super) waiters: BTreeMap<Caller, Waiter>,
    pub(super) alarm: Alarm,
    /// The number of callers that were granted what they waited for.
    pub(super) granted: u64,
    /// The number of callers whose time passed, or that were unblocked.
    pub(super) timed_out: u64,
}

/// Runs `body` with the lines. It must not call the server.
pub(super) fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let result = body(&mut state);
    ANYBODY.store(!state.lines.is_empty(), Relaxed);
    result
}

/// The module's timer.
pub(super) struct Alarm {
    /// When it rings.
    pub(super) set: Option<(RedisModuleTimerID, Time)>,
    /// Whether no caller could be tried when it last rang.
    pub(super) held_up: bool,
}

impl Alarm {
    const NONE: Alarm = Alarm { set: None, held_up: false };
}

/// Returns whether any caller waits for a limit.
#[inline(always)]
pub fn somebody_waits() -> bool {
    ANYBODY.load(Relaxed)
}

/// Returns the numbers of callers that wait, that were granted what they waited for, and whose time passed.
pub fn counts() -> [u64; 3] {
    with_state(|state| [state.lines.len() as u64, state.granted, state.timed_out])
}

/// The instant on a clock that is never set back.
pub(super) fn now() -> Time {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that only this function uses.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let [secs, nanos] = [now.tv_sec, now.tv_nsec].map(|number| u64::try_from(number).unwrap_or(0));
    // Never the epoch, which stands for due now.
    Time::from_micros(1 + secs.saturating_mul(1_000_000).saturating_add(nanos / 1000))
}
