//! The clients of callers that wait, and the alarm: the one state of this folder. Their lines are the engine's.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ratelimit_core::Time;
use ratelimit_core::line::Caller;
use ratelimit_engine::waiting::State as Waiting;
use redis_module::raw::RedisModuleTimerID;

use super::waiter::Waiter;
use crate::server::node::NODE;

/// It is never locked while the server is called, because the server may call back.
static STATE: Mutex<State> = Mutex::new(State { waiters: BTreeMap::new(), alarm: Alarm::NONE });

pub(super) struct State {
    /// The callers that wait, and those for which the server has not called `forget` yet.
    pub(super) waiters: BTreeMap<Caller, Waiter>,
    pub(super) alarm: Alarm,
}

/// Runs `body` with the clients and the alarm. It must not call the server.
pub(super) fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    body(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `body` with the lines. It must not call the server.
pub(super) fn with_lines<T>(body: impl FnOnce(&mut Waiting) -> T) -> T {
    NODE.waiting.with(body)
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
    NODE.waiting.is_anybody()
}

/// The instant on a clock that is never set back.
pub fn now() -> Time {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that only this function uses.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let [secs, nanos] = [now.tv_sec, now.tv_nsec].map(|number| u64::try_from(number).unwrap_or(0));
    // Never the epoch, which stands for due now.
    Time::from_micros(1 + secs.saturating_mul(1_000_000).saturating_add(nanos / 1000))
}
