//! The sliding window, estimated from two counters: the current window's count, and part of the previous one's.
//!
//! Windows start at the clock's multiples of `window`. The previous count is weighted by the part of the previous
//! window that a window ending now still covers. A quarter into the current window, that is three quarters:
//!
//! ```text
//! RL.SLIDINGWINDOW key 100 1m
//!
//!   previous: 80           current: 30
//! |----------------------|-----.----------------|
//!                               ^ now, 15 s into the window
//!
//! count = 80 * 45/60 + 30 = 90        10 remaining
//! ```
//!
//! Admitted if `previous * (window - elapsed) + (current + cost) * window <= limit * window`. Nothing is rounded.
//!
//! The estimate never exceeds the limit. It assumes that the previous window's requests were spread evenly. If they
//! were not, up to twice the limit can pass in an interval of one window.
//!
//! Source: <https://blog.cloudflare.com/counting-things-a-lot-of-different-things>.
//!
//! When not to use it: where the count must be exact. Use `PRECISION`, or the sliding log.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_STORED;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Move, Small};
use crate::time::{Period, Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct SlidingWindow {
    pub limit: NonZeroU64,
    pub window: Period,
}

/// The counts of the window that contains `last`, and of the one before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counts {
    current: u64,
    previous: u64,
    /// The length of the counted windows.
    window: Span,
    last: Time,
}

impl SlidingWindow {
    /// The counts of the window that contains `now`, and of the one before.
    fn settled(&self, counts: &Counts, now: Time) -> Counts {
        let (current, previous) = if counts.window == self.window.span() {
            (counts.current, counts.previous)
        } else {
            // The length of the window changed: everything counts as if charged at `last`.
            (counts.total(), 0)
        };
        let windows_since = self.window.number(now) - self.window.number(counts.last.min(now));
        let (current, previous) = match windows_since {
            0 => (current, previous),
            1 => (0, current),
            _ => (0, 0),
        };
        Counts { current, previous, window: self.window.span(), last: now }
    }

    /// The microseconds since the current window began.
    fn elapsed(&self, now: Time) -> u64 {
        self.window.elapsed(now).as_micros()
    }

    /// The weight of a full count, `count * window`. A weight is a count in units of 1 / `window`.
    fn weigh(&self, count: u64) -> u128 {
        u128::from(count) * u128::from(self.window.micros().get())
    }

    /// The weight at `now` of settled counts.
    fn weight(&self, counts: &Counts, now: Time) -> u128 {
        let covered = self.window.micros().get() - self.elapsed(now);
        self.weigh(counts.current) + u128::from(counts.previous) * u128::from(covered)
    }

    /// The microseconds from a window's start until the window before it, with count `previous`, weighs at most `room`.
    fn fades_to(&self, previous: u64, room: u64) -> u64 {
        let width = self.window.micros().get();
        let may_cover = self.weigh(room).checked_div(u128::from(previous)).unwrap_or(u128::MAX);
        width - u64::try_from(may_cover).unwrap_or(u64::MAX).min(width)
    }
}

impl Limiter for SlidingWindow {
    type State = Counts;

    fn capabilities(&self) -> Capabilities {
        Capabilities::DEBT
    }

    fn length(&self) -> Span {
        self.window.span()
    }

    fn fresh(&self, now: Time) -> Counts {
        Counts { current: 0, previous: 0, window: self.window.span(), last: now }
    }

    #[inline(always)]
    fn judge(&self, counts: &Counts, now: Time, cost: u64) -> Verdict {
        let counts = self.settled(counts, now);
        if self.weight(&counts, now) + self.weigh(cost) <= self.weigh(self.limit.get()) {
            return Verdict::ADMIT;
        }
        let Some(room) = self.limit.get().checked_sub(cost) else {
            return Verdict::NEVER;
        };
        let at = match room.checked_sub(counts.current) {
            // Within this window, the previous one fades far enough.
            Some(room) => self.fades_to(counts.previous, room),
            // This window alone is too full. It must fade in the next one.
            None => self.window.micros().get() + self.fades_to(counts.current, room),
        };
        Verdict::refuse(Span::from_micros(at.saturating_sub(self.elapsed(now))))
    }

    #[inline(always)]
    fn charge(&self, counts: &Counts, now: Time, cost: u64) -> Counts {
        let counts = self.settled(counts, now);
        Counts { current: counts.current.saturating_add(cost).min(MAX_STORED), ..counts }
    }

    /// Takes the cost from the current count, and the rest from the previous one.
    fn refund<'a>(&'a self, counts: &'a Counts, now: Time, cost: u64) -> Option<Counts> {
        let counts = self.settled(counts, now);
        let rest = cost.saturating_sub(counts.current);
        Some(Counts {
            current: counts.current.saturating_sub(cost),
            previous: counts.previous.saturating_sub(rest),
            ..counts
        })
    }

    fn give_back<'a>(&'a self, counts: &'a Counts, now: Time, at: Time, cost: u64) -> Option<Counts> {
        let counts = self.settled(counts, now);
        match self.window.number(now).checked_sub(self.window.number(at)) {
            Some(0) => Some(Counts { current: counts.current.saturating_sub(cost), ..counts }),
            Some(1) => Some(Counts { previous: counts.previous.saturating_sub(cost), ..counts }),
            _ => None,
        }
    }

    fn moves_charges(&self, counts: &Counts, _: Span) -> bool {
        counts.window != self.window.span()
    }

    /// Both counts move.
    fn moved_charges(&self, counts: &Counts, _: Span, now: Time) -> Option<Move> {
        let elapsed = Period::of(counts.window).map_or(Span::ZERO, |window| window.elapsed(counts.last));
        let since = counts.last.minus(elapsed).minus(counts.window);
        Some(Move::all_since(since, counts.last, now))
    }

    #[inline(always)]
    fn gauge(&self, counts: &Counts, now: Time) -> Gauge {
        let counts = self.settled(counts, now);
        let room = self.weigh(self.limit.get()).saturating_sub(self.weight(&counts, now)) / self.weigh(1);
        let rest = self.window.micros().get() - self.elapsed(now);
        let reset = match (counts.current, counts.previous) {
            (0, 0) => 0,
            (0, _) => rest,
            (_, _) => rest + self.window.micros().get(),
        };
        Gauge {
            limit: self.limit.get(),
            remaining: u64::try_from(room).unwrap_or(self.limit.get()),
            reset: Span::from_micros(reset),
        }
    }

    /// Windows follow the clock, so both counts move to the window that contains `now`.
    fn rebase<'a>(&'a self, counts: &'a Counts, now: Time) -> Counts {
        Counts { current: counts.total(), previous: 0, window: self.window.span(), last: now }
    }
}

impl Counts {
    /// The sum of both counts, at most [`MAX_STORED`].
    fn total(&self) -> u64 {
        self.current.saturating_add(self.previous).min(MAX_STORED)
    }
}

impl LimitState for Counts {
    fn until(&self, _: Span) -> Time {
        let Some(window) = Period::of(self.window) else { return Time::EPOCH };
        let end = self.last.minus(window.elapsed(self.last)).plus(self.window);
        match (self.current, self.previous) {
            (0, 0) => Time::EPOCH,
            (0, _) => end,
            (_, _) => end.plus(self.window),
        }
    }
}

impl Small for Counts {
    const KIND: Kind = Kind::Counts;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.current, self.previous, self.window.as_micros(), self.last.as_micros()]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Counts> {
        let current = reader.word_up_to(MAX_STORED)?;
        let previous = reader.word_up_to(MAX_STORED)?;
        let window = reader.span()?;
        Some(Counts { current, previous, window, last: reader.instant()? })
    }

    fn zero() -> Counts {
        Counts { current: 0, previous: 0, window: Span::ZERO, last: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("current", Figure::Count(self.current));
        figure("previous", Figure::Count(self.previous));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis, n};

    const MINUTE: SlidingWindow = SlidingWindow { limit: n(100), window: millis(60_000) };

    /// `seconds` after the start of a window.
    fn at(seconds: u64) -> Time {
        assert_eq!(MINUTE.window.elapsed(T0), Span::ZERO);
        T0.plus(Span::from_millis(seconds * 1000))
    }

    #[test]
    fn the_previous_window_counts_by_its_overlap() {
        let counts = charged(&MINUTE, None, at(0), 80);
        let counts = charged(&MINUTE, Some(counts), at(75), 30);
        assert_eq!(MINUTE.gauge(&counts, at(75)).remaining, 10);
        assert_eq!(MINUTE.gauge(&counts, at(75)).reset, Span::from_millis(105_000));
    }

    #[test]
    fn two_thirds_are_not_rounded() {
        // After 20 s, 1 of the previous window weighs 2/3. Another 99 fit, but 100 only when the window has ended.
        let counts = charged(&MINUTE, None, at(0), 1);
        assert_eq!(MINUTE.judge(&counts, at(80), 99), Verdict::ADMIT);
        assert_eq!(MINUTE.judge(&counts, at(80), 100), Verdict::refuse(Span::from_millis(40_000)));
    }

    #[test]
    fn a_full_window_fades_in_the_next_one() {
        let counts = charged(&MINUTE, None, at(30), 100);
        // A cost of 1 fits when the 100 weigh 99, which is 0.6 s into the next window.
        assert_eq!(MINUTE.judge(&counts, at(30), 1), Verdict::refuse(Span::from_millis(30_600)));
        assert_eq!(MINUTE.judge(&counts, at(30), 100), Verdict::refuse(Span::from_millis(90_000)));
        assert_eq!(MINUTE.judge(&counts, at(30), 101), Verdict::NEVER);
    }

    #[test]
    fn when_the_window_changes_everything_counts_as_charged_at_the_last_charge() {
        let counts = charged(&MINUTE, None, at(0), 20);
        let counts = charged(&MINUTE, Some(counts), at(70), 10);
        let hour = SlidingWindow { window: millis(3_600_000), ..MINUTE };
        assert_eq!(hour.gauge(&counts, at(70)).remaining, 70);
    }
}
