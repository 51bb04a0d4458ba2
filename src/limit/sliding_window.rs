//! The sliding window, estimated from two counters: this window's, and the previous one's by how much of it a
//! window that ends now still covers.
//!
//! Windows lie on the clock's multiples of `window`. A quarter into the present one, three quarters of the
//! previous one still count:
//!
//! ```text
//! RL.SLIDINGWINDOW key 100 60000
//!
//!   previous: 80           current: 30
//! |----------------------|-----.----------------|
//!                               ^ now, 15 s into the window
//!
//! count = 80 * 45/60 + 30 = 90        10 remaining
//! ```
//!
//! Admitted if `previous * (window - elapsed) + (current + cost) * window <= limit * window`: the exact
//! comparison, nothing is rounded.
//!
//! Source: the survey's sliding window (seed 001). It assumes that the previous window's requests were spread
//! evenly: over any interval of one window at most twice the limit can pass when they were not, and the sum of a
//! window and its estimate never exceeds the limit. When not to use it: where the count must be exact (use
//! `PRECISION`, or the log).

use super::codec::Reader;
use super::error::Error;
use super::sliding_buckets::{self, SlidingBuckets};
use super::words::{Request, Words, is, once};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, MOST_COUNT, Small, Verdict};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct SlidingWindow {
    pub limit: u64,
    pub window: Span,
}

/// The counts of the window that `last` lies in, and of the one before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counts {
    current: u64,
    previous: u64,
    /// The length of the windows that were counted.
    window: Span,
    last: Time,
}

/// Reads `limit window [PRECISION p]` and the options.
pub fn parse<'a>(words: &mut Words<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let limit = words.count("limit")?;
    let window = words.duration("window")?;
    let mut precision = None;
    words.options(request, |word, words| {
        let own = is(word, "PRECISION");
        if own {
            once(&mut precision, words.duration("PRECISION"))?;
        }
        Ok(own)
    })?;
    match precision {
        None => Ok(AnyLimiter::SlidingWindow(SlidingWindow { limit, window })),
        Some(precision) if !sliding_buckets::tile(window, precision) => Err(Error::Precision),
        Some(precision) => Ok(AnyLimiter::SlidingBuckets(SlidingBuckets { limit, window, precision })),
    }
}

impl SlidingWindow {
    /// The counts as `now`'s window has them. All instants that are asked about are at or after `last`.
    fn settled(&self, counts: &Counts, now: Time) -> Counts {
        let width = self.window.as_micros();
        let (current, previous) = if counts.window == self.window {
            (counts.current, counts.previous)
        } else {
            // Another length of window: all that was counted moves to the newest instant.
            (counts.total(), 0)
        };
        let windows_since = now.as_micros() / width - counts.last.as_micros().min(now.as_micros()) / width;
        let (current, previous) = match windows_since {
            0 => (current, previous),
            1 => (0, current),
            _ => (0, 0),
        };
        Counts { current, previous, window: self.window, last: now }
    }

    fn elapsed(&self, now: Time) -> u64 {
        now.as_micros() % self.window.as_micros()
    }

    /// `count * window`: counts are weighed in units of one `window`-th.
    fn weigh(&self, count: u64) -> u128 {
        u128::from(count) * u128::from(self.window.as_micros())
    }

    /// The weight at `now` of settled counts.
    fn weight(&self, counts: &Counts, now: Time) -> u128 {
        let covered = self.window.as_micros() - self.elapsed(now);
        self.weigh(counts.current) + u128::from(counts.previous) * u128::from(covered)
    }

    /// The moment of a window, from its start, from which `fading`, the count of the window before, weighs no more
    /// than `room`.
    fn moment(&self, fading: u64, room: u64) -> u64 {
        let width = self.window.as_micros();
        let may_cover = self.weigh(room).checked_div(u128::from(fading)).unwrap_or(u128::MAX);
        width - u64::try_from(may_cover).unwrap_or(u64::MAX).min(width)
    }
}

impl Limiter for SlidingWindow {
    type State = Counts;

    fn span(&self) -> Span {
        self.window
    }

    fn fresh(&self, now: Time) -> Counts {
        Counts { current: 0, previous: 0, window: self.window, last: now }
    }

    fn judge(&self, counts: &Counts, now: Time, cost: u64) -> Verdict {
        let counts = self.settled(counts, now);
        if self.weight(&counts, now) + self.weigh(cost) <= self.weigh(self.limit) {
            return Verdict::ADMIT;
        }
        let Some(room) = self.limit.checked_sub(cost) else {
            return Verdict::NEVER;
        };
        let at = match room.checked_sub(counts.current) {
            // The previous window fades far enough within this one,
            Some(room) => self.moment(counts.previous, room),
            // or this one must, in the next.
            None => self.window.as_micros() + self.moment(counts.current, room),
        };
        Verdict::refuse(Span::from_micros(at.saturating_sub(self.elapsed(now))))
    }

    fn charge(&self, counts: &Counts, now: Time, cost: u64) -> Counts {
        let counts = self.settled(counts, now);
        Counts { current: counts.current.saturating_add(cost).min(MOST_COUNT), ..counts }
    }

    /// From the newest count, then from the older one.
    fn refund<'a>(&'a self, counts: &'a Counts, now: Time, cost: u64) -> Option<Counts> {
        let counts = self.settled(counts, now);
        let left = cost.saturating_sub(counts.current);
        Some(Counts {
            current: counts.current.saturating_sub(cost),
            previous: counts.previous.saturating_sub(left),
            ..counts
        })
    }

    fn gauge(&self, counts: &Counts, now: Time) -> Gauge {
        let counts = self.settled(counts, now);
        let room = self.weigh(self.limit).saturating_sub(self.weight(&counts, now)) / self.weigh(1);
        let rest = self.window.as_micros() - self.elapsed(now);
        let reset = match (counts.current, counts.previous) {
            (0, 0) => 0,
            (0, _) => rest,
            (_, _) => rest + self.window.as_micros(),
        };
        Gauge {
            limit: self.limit,
            remaining: u64::try_from(room).unwrap_or(self.limit),
            reset: Span::from_micros(reset),
        }
    }

    /// Windows lie on the clock, so what was counted moves into the window of `now`.
    fn rebase<'a>(&'a self, counts: &'a Counts, now: Time) -> Counts {
        Counts { current: counts.total(), previous: 0, window: self.window, last: now }
    }
}

impl Counts {
    /// Both counts in one; no more than a state may say.
    fn total(&self) -> u64 {
        self.current.saturating_add(self.previous).min(MOST_COUNT)
    }
}

impl Small for Counts {
    const KIND: Kind = Kind::Counts;
    const WORDS: usize = 4;

    fn last(&self) -> Time {
        self.last
    }

    fn span(&self) -> Option<Span> {
        Some(self.window)
    }

    fn words(&self) -> [u64; 4] {
        [self.current, self.previous, self.window.as_micros(), self.last.as_micros()]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Counts> {
        let current = reader.word_up_to(MOST_COUNT)?;
        let previous = reader.word_up_to(MOST_COUNT)?;
        let window = super::duration(reader)?;
        Some(Counts { current, previous, window, last: super::instant(reader)? })
    }

    fn zero() -> Counts {
        Counts { current: 0, previous: 0, window: Span::ZERO, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("window_ms", Figure::Length(self.window));
        figure("current", Figure::Count(self.current));
        figure("previous", Figure::Count(self.previous));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    const MINUTE: SlidingWindow = SlidingWindow { limit: 100, window: Span::from_millis(60_000) };

    /// `seconds` after the start of a window.
    fn at(seconds: u64) -> Time {
        assert_eq!(T0.as_micros() % MINUTE.window.as_micros(), 0);
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
    fn a_third_is_not_rounded() {
        // 1 of the previous window weighs 2/3 after 20 s: 99 more fit, 100 do not until it is gone.
        let counts = charged(&MINUTE, None, at(0), 1);
        assert_eq!(MINUTE.judge(&counts, at(80), 99), Verdict::ADMIT);
        assert_eq!(MINUTE.judge(&counts, at(80), 100), Verdict::refuse(Span::from_millis(40_000)));
    }

    #[test]
    fn a_full_window_fades_in_the_next_one() {
        let counts = charged(&MINUTE, None, at(30), 100);
        // 1 fits when the 100 weigh 99: 0.6 s into the next window.
        assert_eq!(MINUTE.judge(&counts, at(30), 1), Verdict::refuse(Span::from_millis(30_600)));
        assert_eq!(MINUTE.judge(&counts, at(30), 100), Verdict::refuse(Span::from_millis(90_000)));
        assert_eq!(MINUTE.judge(&counts, at(30), 101), Verdict::NEVER);
    }

    #[test]
    fn under_another_window_the_counts_move_to_the_newest_instant() {
        let counts = charged(&MINUTE, None, at(0), 20);
        let counts = charged(&MINUTE, Some(counts), at(70), 10);
        let hour = SlidingWindow { window: Span::from_millis(3_600_000), ..MINUTE };
        assert_eq!(hour.gauge(&counts, at(70)).remaining, 70);
    }
}
