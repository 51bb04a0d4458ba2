//! The fixed window: a counter that each window starts from zero.
//!
//! A window opens at the first admitted request and lasts `window`. With `ALIGNED`, windows start at the clock's
//! multiples of `window` instead, the same for every key.
//!
//! ```text
//! RL.FIXEDWINDOW key 100 1m
//!
//! 10:00:17      the first request         admitted; the window lasts until 10:01:17
//! 10:01:16.9    the hundred and first     refused, retry in 0.1 s
//! 10:01:17      the hundred and first     admitted; a new window opens
//! ```
//!
//! Source: <https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with.html>.
//!
//! When not to use it: up to twice the limit can pass around the edge between two windows. Aligned windows also reset
//! all keys at the same instant, and callers may all return at once. The sliding window avoids both.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_STORED;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Move, Small};
use crate::time::{Period, Span, Time};

/// Windows that open at the first admitted request.
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow {
    pub limit: NonZeroU64,
    pub window: Period,
}

/// Windows that start at the clock's multiples of their length.
#[derive(Clone, Copy, Debug)]
pub struct AlignedWindow {
    pub limit: NonZeroU64,
    pub window: Period,
}

/// The count since the window opened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Opened {
    count: u64,
    start: Time,
    last: Time,
}

/// The count of the window that contains `last`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tally {
    count: u64,
    last: Time,
}

/// The verdict for a window that has counted `count` and ends after `rest`.
#[inline(always)]
pub(super) fn judge(limit: NonZeroU64, count: u64, rest: Span, cost: u64) -> Verdict {
    if count.saturating_add(cost) <= limit.get() {
        Verdict::ADMIT
    } else if cost > limit.get() {
        Verdict::NEVER
    } else {
        Verdict::refuse(rest)
    }
}

/// The gauge of such a window. A window without a count is fully reset.
#[inline(always)]
pub(super) fn gauge(limit: NonZeroU64, count: u64, rest: Span) -> Gauge {
    let reset = if count > 0 { rest } else { Span::ZERO };
    Gauge { limit: limit.get(), remaining: limit.get().saturating_sub(count), reset }
}

impl FixedWindow {
    /// The window at `now`: a new one, not yet opened, if the old one has ended.
    fn settled(&self, opened: &Opened, now: Time) -> Opened {
        let ended = opened.count == 0 || now >= opened.start.plus(self.window.span());
        if ended { self.fresh(now) } else { Opened { last: now, ..*opened } }
    }

    /// The time until the window ends.
    fn rest(&self, opened: &Opened, now: Time) -> Span {
        opened.start.plus(self.window.span()).since(now)
    }
}

impl Limiter for FixedWindow {
    type State = Opened;

    fn capabilities(&self) -> Capabilities {
        Capabilities::DEBT
    }

    fn length(&self) -> Span {
        self.window.span()
    }

    fn fresh(&self, now: Time) -> Opened {
        Opened { count: 0, start: now, last: now }
    }

    #[inline(always)]
    fn judge(&self, opened: &Opened, now: Time, cost: u64) -> Verdict {
        let opened = self.settled(opened, now);
        judge(self.limit, opened.count, self.rest(&opened, now), cost)
    }

    #[inline(always)]
    fn charge(&self, opened: &Opened, now: Time, cost: u64) -> Opened {
        let opened = self.settled(opened, now);
        Opened { count: opened.count.saturating_add(cost).min(MAX_STORED), ..opened }
    }

    /// A window whose count is refunded to zero is closed. The next request opens a new one.
    fn refund<'a>(&'a self, opened: &'a Opened, now: Time, cost: u64) -> Option<Opened> {
        let opened = self.settled(opened, now);
        Some(Opened { count: opened.count.saturating_sub(cost), ..opened })
    }

    /// The start of the window.
    fn charged_at(&self, opened: &Opened, _now: Time) -> Time {
        opened.start
    }

    fn give_back<'a>(&'a self, opened: &'a Opened, now: Time, at: Time, cost: u64) -> Option<Opened> {
        let counts = opened.count > 0 && opened.start == at && now < at.plus(self.window.span());
        if counts { self.refund(opened, now, cost) } else { None }
    }

    #[inline(always)]
    fn gauge(&self, opened: &Opened, now: Time) -> Gauge {
        let opened = self.settled(opened, now);
        gauge(self.limit, opened.count, self.rest(&opened, now))
    }

    fn rebase<'a>(&'a self, opened: &'a Opened, now: Time) -> Opened {
        Opened { start: now.minus(opened.last.since(opened.start)), last: now, ..*opened }
    }
}

impl AlignedWindow {
    /// The count of the window that contains `now`.
    fn count(&self, tally: &Tally, now: Time) -> u64 {
        let same = self.window.number(tally.last) == self.window.number(now);
        if same { tally.count } else { 0 }
    }

    /// The time until the window that contains `now` ends.
    fn rest(&self, now: Time) -> Span {
        self.window.span().minus(self.window.elapsed(now))
    }
}

impl Limiter for AlignedWindow {
    type State = Tally;

    fn capabilities(&self) -> Capabilities {
        Capabilities::DEBT
    }

    fn length(&self) -> Span {
        self.window.span()
    }

    fn fresh(&self, now: Time) -> Tally {
        Tally { count: 0, last: now }
    }

    fn judge(&self, tally: &Tally, now: Time, cost: u64) -> Verdict {
        judge(self.limit, self.count(tally, now), self.rest(now), cost)
    }

    fn charge(&self, tally: &Tally, now: Time, cost: u64) -> Tally {
        Tally { count: self.count(tally, now).saturating_add(cost).min(MAX_STORED), last: now }
    }

    fn refund<'a>(&'a self, tally: &'a Tally, now: Time, cost: u64) -> Option<Tally> {
        Some(Tally { count: self.count(tally, now).saturating_sub(cost), last: now })
    }

    fn give_back<'a>(&'a self, tally: &'a Tally, now: Time, at: Time, cost: u64) -> Option<Tally> {
        let same = self.window.number(at) == self.window.number(now);
        if same { self.refund(tally, now, cost) } else { None }
    }

    fn moves_charges(&self, _: &Tally, stored: Span) -> bool {
        stored != self.window.span()
    }

    /// The whole count of the window moves.
    fn moved_charges(&self, tally: &Tally, stored: Span, now: Time) -> Option<Move> {
        let elapsed = Period::of(stored).map_or(Span::ZERO, |window| window.elapsed(tally.last));
        Some(Move::all_since(tally.last.minus(elapsed), tally.last, now))
    }

    fn gauge(&self, tally: &Tally, now: Time) -> Gauge {
        gauge(self.limit, self.count(tally, now), self.rest(now))
    }

    /// Windows follow the clock, so the count moves to the window that contains `now`.
    fn rebase<'a>(&'a self, tally: &'a Tally, now: Time) -> Tally {
        Tally { last: now, ..*tally }
    }
}

impl LimitState for Opened {
    fn until(&self, window: Span) -> Time {
        if self.count > 0 { self.start.plus(window) } else { Time::EPOCH }
    }
}

impl Small for Opened {
    const KIND: Kind = Kind::Opened;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.count, self.start.as_micros(), self.last.as_micros()]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Opened> {
        let count = reader.word_up_to(MAX_STORED)?;
        let (start, last) = (reader.instant()?, reader.instant()?);
        (start <= last).then_some(Opened { count, start, last })
    }

    fn zero() -> Opened {
        Opened { count: 0, start: Time::EPOCH, last: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("count", Figure::Count(self.count));
        figure("window_start_us", Figure::At(self.start));
    }
}

impl LimitState for Tally {
    fn until(&self, window: Span) -> Time {
        let Some(window) = Period::of(window).filter(|_| self.count > 0) else { return Time::EPOCH };
        self.last.minus(window.elapsed(self.last)).plus(window.span())
    }
}

impl Small for Tally {
    const KIND: Kind = Kind::Tally;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.count, self.last.as_micros()]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Tally> {
        Some(Tally { count: reader.word_up_to(MAX_STORED)?, last: reader.instant()? })
    }

    fn zero() -> Tally {
        Tally { count: 0, last: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("count", Figure::Count(self.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis, n};

    const MINUTE: Period = millis(60_000);

    fn at(millis: u64) -> Time {
        T0.plus(Span::from_millis(millis))
    }

    #[test]
    fn a_window_opens_at_the_first_request_and_resets_the_whole_count_at_its_end() {
        let window = FixedWindow { limit: n(3), window: MINUTE };
        let opened = charged(&window, None, at(17_000), 2);
        let opened = charged(&window, Some(opened), at(70_000), 1);
        assert_eq!(window.judge(&opened, at(76_999), 1), Verdict::refuse(Span::from_millis(1)));
        assert_eq!(window.gauge(&opened, at(77_000)), window.gauge(&window.fresh(at(77_000)), at(77_000)));
        // The next window opens at the next request, not where the last one ended.
        let opened = charged(&window, Some(opened), at(90_000), 3);
        assert_eq!(window.judge(&opened, at(90_000), 1), Verdict::refuse(MINUTE.span()));
    }

    #[test]
    fn an_aligned_window_ends_at_a_multiple_of_its_length() {
        let window = AlignedWindow { limit: n(3), window: MINUTE };
        let tally = charged(&window, None, at(17_000), 3);
        assert_eq!(window.judge(&tally, at(17_000), 1), Verdict::refuse(Span::from_millis(43_000)));
        assert_eq!(window.gauge(&tally, at(60_000)).remaining, 3);
    }

    #[test]
    fn the_count_and_the_windows_start_stay_when_the_parameters_change() {
        let window = FixedWindow { limit: n(3), window: MINUTE };
        let opened = charged(&window, None, at(0), 3);
        let longer = FixedWindow { limit: n(5), window: millis(90_000) };
        assert_eq!(longer.gauge(&opened, at(60_000)).remaining, 2);
        assert_eq!(longer.gauge(&opened, at(60_000)).reset, Span::from_millis(30_000));
        let lower = FixedWindow { limit: n(2), window: MINUTE };
        assert_eq!(lower.gauge(&opened, at(0)).remaining, 0);
    }
}
