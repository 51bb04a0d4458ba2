//! The fixed window: a counter that starts anew with each window.
//!
//! A window opens at the first admitted request and lasts `window`; with `ALIGNED` windows lie on the clock's
//! multiples instead, the same for every key.
//!
//! ```text
//! RL.FIXEDWINDOW key 100 60000
//!
//! 10:00:17            first request   the window is 10:00:17 to 10:01:17
//! 10:01:16.9    the hundred and first   refused, retry in 0.1 s
//! 10:01:17                            a new window
//! ```
//!
//! Source: the survey's fixed window (seed 001), Josiah Carlson's first counters (seed 003). Up to twice the limit
//! passes around the edge of two windows, and aligned windows invite the stampede at the full hour: everybody's
//! count is reset at once. When not to use it: where either matters; the sliding window has neither.

use super::codec::Reader;
use super::error::Error;
use super::words::{Request, Words, is, once};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, MOST_COUNT, Small, Verdict};
use crate::time::{Span, Time};

/// Windows that open at the first admitted request.
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow {
    pub limit: u64,
    pub window: Span,
}

/// Windows on the clock's multiples of their length.
#[derive(Clone, Copy, Debug)]
pub struct AlignedWindow {
    pub limit: u64,
    pub window: Span,
}

/// What was counted since the window opened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Opened {
    count: u64,
    start: Time,
    last: Time,
}

/// What was counted in the window that `last` lies in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tally {
    count: u64,
    last: Time,
}

/// Reads `limit window [ALIGNED]` and the options.
pub fn parse<'a>(words: &mut Words<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let limit = words.count("limit")?;
    let window = words.duration("window")?;
    let mut aligned = None;
    words.options(request, |word, _| {
        let own = is(word, "ALIGNED");
        if own {
            once(&mut aligned, Ok(()))?;
        }
        Ok(own)
    })?;
    Ok(match aligned {
        None => AnyLimiter::FixedWindow(FixedWindow { limit, window }),
        Some(()) => AnyLimiter::AlignedWindow(AlignedWindow { limit, window }),
    })
}

/// The verdict on a window that holds `count` and ends after `rest`.
fn judge(limit: u64, count: u64, rest: Span, cost: u64) -> Verdict {
    if count.saturating_add(cost) <= limit {
        Verdict::ADMIT
    } else if cost > limit {
        Verdict::NEVER
    } else {
        Verdict::refuse(rest)
    }
}

fn gauge(limit: u64, count: u64, rest: Span) -> Gauge {
    let reset = if count > 0 { rest } else { Span::ZERO };
    Gauge { limit, remaining: limit.saturating_sub(count), reset }
}

impl FixedWindow {
    /// The window as it is at `now`: a new one, not yet opened, once it has ended.
    fn settled(&self, opened: &Opened, now: Time) -> Opened {
        let ended = opened.count == 0 || now >= opened.start.plus(self.window);
        if ended { self.fresh(now) } else { Opened { last: now, ..*opened } }
    }

    fn rest(&self, opened: &Opened, now: Time) -> Span {
        opened.start.plus(self.window).since(now)
    }
}

impl Limiter for FixedWindow {
    type State = Opened;

    fn span(&self) -> Span {
        self.window
    }

    fn fresh(&self, now: Time) -> Opened {
        Opened { count: 0, start: now, last: now }
    }

    fn judge(&self, opened: &Opened, now: Time, cost: u64) -> Verdict {
        let opened = self.settled(opened, now);
        judge(self.limit, opened.count, self.rest(&opened, now), cost)
    }

    fn charge(&self, opened: &Opened, now: Time, cost: u64) -> Opened {
        let opened = self.settled(opened, now);
        Opened { count: opened.count.saturating_add(cost).min(MOST_COUNT), ..opened }
    }

    /// A window that is refunded to nothing is closed: the next request opens one.
    fn refund<'a>(&'a self, opened: &'a Opened, now: Time, cost: u64) -> Option<Opened> {
        let opened = self.settled(opened, now);
        Some(Opened { count: opened.count.saturating_sub(cost), ..opened })
    }

    fn gauge(&self, opened: &Opened, now: Time) -> Gauge {
        let opened = self.settled(opened, now);
        gauge(self.limit, opened.count, self.rest(&opened, now))
    }

    fn rebase<'a>(&'a self, opened: &'a Opened, now: Time) -> Opened {
        Opened { start: now.minus(opened.last.since(opened.start)), last: now, ..*opened }
    }
}

impl AlignedWindow {
    fn count(&self, tally: &Tally, now: Time) -> u64 {
        let width = self.window.as_micros();
        let same = tally.last.as_micros() / width == now.as_micros() / width;
        if same { tally.count } else { 0 }
    }

    fn rest(&self, now: Time) -> Span {
        Span::from_micros(self.window.as_micros() - now.as_micros() % self.window.as_micros())
    }
}

impl Limiter for AlignedWindow {
    type State = Tally;

    fn span(&self) -> Span {
        self.window
    }

    fn fresh(&self, now: Time) -> Tally {
        Tally { count: 0, last: now }
    }

    fn judge(&self, tally: &Tally, now: Time, cost: u64) -> Verdict {
        judge(self.limit, self.count(tally, now), self.rest(now), cost)
    }

    fn charge(&self, tally: &Tally, now: Time, cost: u64) -> Tally {
        Tally { count: self.count(tally, now).saturating_add(cost).min(MOST_COUNT), last: now }
    }

    fn refund<'a>(&'a self, tally: &'a Tally, now: Time, cost: u64) -> Option<Tally> {
        Some(Tally { count: self.count(tally, now).saturating_sub(cost), last: now })
    }

    fn gauge(&self, tally: &Tally, now: Time) -> Gauge {
        gauge(self.limit, self.count(tally, now), self.rest(now))
    }

    /// Windows lie on the clock, so what was counted moves into the window of `now`.
    fn rebase<'a>(&'a self, tally: &'a Tally, now: Time) -> Tally {
        Tally { last: now, ..*tally }
    }
}

impl Small for Opened {
    const KIND: Kind = Kind::Opened;
    const WORDS: usize = 3;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.count, self.start.as_micros(), self.last.as_micros(), 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Opened> {
        let count = reader.word_up_to(MOST_COUNT)?;
        let (start, last) = (super::instant(reader)?, super::instant(reader)?);
        (start <= last).then_some(Opened { count, start, last })
    }

    fn zero() -> Opened {
        Opened { count: 0, start: Time::default(), last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("count", Figure::Count(self.count));
        figure("window_start_us", Figure::At(self.start));
    }
}

impl Small for Tally {
    const KIND: Kind = Kind::Tally;
    const WORDS: usize = 2;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.count, self.last.as_micros(), 0, 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Tally> {
        Some(Tally { count: reader.word_up_to(MOST_COUNT)?, last: super::instant(reader)? })
    }

    fn zero() -> Tally {
        Tally { count: 0, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("count", Figure::Count(self.count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    const MINUTE: Span = Span::from_millis(60_000);

    fn at(millis: u64) -> Time {
        T0.plus(Span::from_millis(millis))
    }

    #[test]
    fn a_window_opens_at_the_first_request_and_ends_as_a_whole() {
        let window = FixedWindow { limit: 3, window: MINUTE };
        let opened = charged(&window, None, at(17_000), 2);
        let opened = charged(&window, Some(opened), at(70_000), 1);
        assert_eq!(window.judge(&opened, at(76_999), 1), Verdict::refuse(Span::from_millis(1)));
        assert_eq!(window.gauge(&opened, at(77_000)), window.gauge(&window.fresh(at(77_000)), at(77_000)));
        // The next one opens when it is asked again, not where the last one ended.
        let opened = charged(&window, Some(opened), at(90_000), 3);
        assert_eq!(window.judge(&opened, at(90_000), 1), Verdict::refuse(MINUTE));
    }

    #[test]
    fn an_aligned_window_ends_on_the_clock() {
        let window = AlignedWindow { limit: 3, window: MINUTE };
        let tally = charged(&window, None, at(17_000), 3);
        assert_eq!(window.judge(&tally, at(17_000), 1), Verdict::refuse(Span::from_millis(43_000)));
        assert_eq!(window.gauge(&tally, at(60_000)).remaining, 3);
    }

    #[test]
    fn the_count_and_the_opening_stay_when_the_parameters_change() {
        let window = FixedWindow { limit: 3, window: MINUTE };
        let opened = charged(&window, None, at(0), 3);
        let longer = FixedWindow { limit: 5, window: Span::from_millis(90_000) };
        assert_eq!(longer.gauge(&opened, at(60_000)).remaining, 2);
        assert_eq!(longer.gauge(&opened, at(60_000)).reset, Span::from_millis(30_000));
        let lower = FixedWindow { limit: 2, window: MINUTE };
        assert_eq!(lower.gauge(&opened, at(0)).remaining, 0);
    }
}
