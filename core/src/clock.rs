//! How the clock is read: callers' clocks differ, and a clock can be set back.

use crate::time::{Span, Time};

/// The instant at which a request is decided.
///
/// Clocks of several callers differ, and a clock can be set back. Say that a limit was charged at 12:00:00, and its
/// reset is 10 s. Then a call at 11:59:55 is decided at 12:00:00. A call at 11:00:00 moves the state to 11:00:00.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Decide at this instant: now, or the last charge if now is before it. No time has passed then, so a caller whose
    /// clock lags gains nothing.
    At(Time),
    /// Now is before the last charge by more than the reset, so the clock was set back. The state must be moved to now.
    /// Otherwise callers would wait until the clock reaches the last charge again.
    SetBack,
}

/// The reading of the clock for a state with this last charge, and with this reset at its last charge.
#[inline(always)]
pub fn read_clock(last: Time, now: Time, reset: impl FnOnce() -> Span) -> Reading {
    if now >= last {
        Reading::At(now)
    } else if last.since(now) > reset() {
        Reading::SetBack
    } else {
        Reading::At(last)
    }
}
