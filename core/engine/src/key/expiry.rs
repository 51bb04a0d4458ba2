//! When a key expires: some slack after its limits are fully reset.
//!
//! A charge that moves the expiry costs the server time, and every replica eight bytes. With slack, few charges move it.
//! And a key that is used every few seconds does not expire between two calls, to be made again by the second.

use ratelimit_core::{Span, Time};

/// The slack is half as long as the reset, within these bounds.
///
/// A longer one would move the expiry less often, and would keep unused keys longer. With this one, a reset that grows with
/// each charge moves the expiry each time that it has grown by half.
const LEAST_SLACK: Span = Span::from_millis(10_000);
const MOST_SLACK: Span = Span::from_millis(86_400_000);
/// The expiry moves if less slack than this remains. So a key that is used every two seconds does not expire in between.
const LEFT_SLACK: Span = Span::from_millis(2500);

/// Returns the new expiry of a key that is fully reset `reset` after `now`, in ms since the epoch; `None` if the old
/// one stands.
///
/// The expiry moves if little slack remains. It also moves if more than the longest slack remains, because the reset has
/// become shorter.
#[inline(always)]
pub fn moved(expiry: u64, now: Time, reset: Span) -> Option<u64> {
    let full = now.plus(reset);
    let expiry = Time::from_millis(expiry);
    let earliest = full.plus(LEFT_SLACK);
    // An expiry is a whole millisecond, rounded up.
    let latest = full.plus(MOST_SLACK).plus(Span::from_millis(1));
    let stands = earliest <= expiry && expiry <= latest;
    (!stands).then(|| full.plus(reset.half().clamp(LEAST_SLACK, MOST_SLACK)).as_millis_up())
}
