//! The sliding window with `PRECISION`: a count per sub-bucket of the window, each leaving as one.
//!
//! Sub-buckets lie on the clock's multiples of the precision `p`. The bucket [b*p, b*p + p) leaves at
//! b*p + window, so a request counts for between `window - p` and `window`.
//!
//! ```text
//! RL.SLIDINGWINDOW key 240 3600000 PRECISION 60000
//!
//! 18:05:30   20 requests   admitted, 220 left, and so until 19:04:59.999
//! 19:05:00                 the 20 are back
//! ```
//!
//! Source: <https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with_26.html>. Over any interval of length `window - p` at most `limit` pass.
//! When not to use it: where each request must count for exactly one window (use the log), or where a few bytes
//! per key matter (use two counters; a bucket takes 16 bytes, and there are at most 1,024).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::count::MAX_STORED;
use crate::decide::{Gauge, Verdict};
use crate::kind::Kind;
use crate::state::codec::{Reader, put, put_words};
use crate::state::{Figure, LimitState, State};
use crate::time::{Period, Span, Time};

/// The most sub-buckets of a window: what bounds the memory of a key and the time of a call.
pub const MAX_BUCKETS: u64 = 1024;

#[derive(Clone, Copy, Debug)]
pub struct SlidingBuckets {
    limit: NonZeroU64,
    tiles: Tiles,
}

/// A window cut into sub-buckets of equal length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tiles {
    window: Period,
    /// The length of a sub-bucket.
    precision: Period,
}

/// The number of a sub-bucket (its start divided by the precision) and what was admitted in it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bucket {
    number: u64,
    count: u64,
}

/// The sub-buckets that were charged, oldest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Buckets {
    /// `None` in a blank state.
    tiles: Option<Tiles>,
    last: Time,
    buckets: VecDeque<Bucket>,
}

/// "Buckets before `first` are gone, `newest` is the last one and has this count": absolute, so that saying it
/// twice is saying it once.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    tiles: Tiles,
    last: Time,
    first: u64,
    newest: Bucket,
}

impl Tiles {
    /// `None` if the precision does not divide the window into at most [`MAX_BUCKETS`] parts.
    fn new(window: Period, precision: Period) -> Option<Tiles> {
        let (whole, part) = (window.micros().get(), precision.micros());
        let tiles = whole.is_multiple_of(part.get()) && whole / part <= MAX_BUCKETS;
        tiles.then_some(Tiles { window, precision })
    }

    fn number(self, at: Time) -> u64 {
        self.precision.number(at)
    }

    /// The oldest bucket that counts at `now`.
    fn first(self, now: Time) -> u64 {
        (self.number(now) + 1).saturating_sub(self.window.micros().get() / self.precision.micros())
    }

    /// When a bucket leaves.
    fn leaves(self, bucket: Bucket) -> Time {
        let start = bucket.number.saturating_mul(self.precision.micros().get());
        Time::from_micros(start).plus(self.window.span())
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Tiles> {
        Tiles::new(Period::of(reader.span()?)?, Period::of(reader.span()?)?)
    }
}

impl SlidingBuckets {
    /// `None` if the precision does not divide the window into at most [`MAX_BUCKETS`] parts.
    pub fn new(limit: NonZeroU64, window: Period, precision: Period) -> Option<SlidingBuckets> {
        Some(SlidingBuckets { limit, tiles: Tiles::new(window, precision)? })
    }

    /// What counts at `now`, oldest first.
    fn live<'s>(&self, buckets: &'s Buckets, now: Time) -> impl Iterator<Item = Bucket> + use<'s> {
        let first = self.tiles.first(now);
        // Another window or precision: all that was counted moves to the newest instant.
        let collapsed = (buckets.tiles != Some(self.tiles))
            .then(|| Bucket { number: self.tiles.number(buckets.last), count: buckets.total() });
        let stored = if collapsed.is_some() { None } else { Some(buckets.buckets.iter().copied()) };
        let all = collapsed.into_iter().chain(stored.into_iter().flatten());
        all.filter(move |bucket| bucket.number >= first && bucket.count > 0)
    }

    fn count(&self, buckets: &Buckets, now: Time) -> u64 {
        self.live(buckets, now).fold(0u64, |sum, bucket| sum.saturating_add(bucket.count))
    }

    fn change(&self, now: Time, first: u64, newest: Bucket) -> Change {
        let newest = Bucket { count: newest.count.min(MAX_STORED), ..newest };
        Change { tiles: self.tiles, last: now, first, newest }
    }
}

impl Limiter for SlidingBuckets {
    type State = Buckets;

    fn capabilities(&self) -> Capabilities {
        Capabilities::DEBT
    }

    fn length(&self) -> Span {
        self.tiles.window.span()
    }

    fn fresh(&self, now: Time) -> Buckets {
        Buckets { tiles: Some(self.tiles), last: now, buckets: VecDeque::new() }
    }

    fn judge(&self, buckets: &Buckets, now: Time, cost: u64) -> Verdict {
        let after = self.count(buckets, now).saturating_add(cost);
        if after <= self.limit.get() {
            return Verdict::ADMIT;
        }
        if cost > self.limit.get() {
            return Verdict::NEVER;
        }
        let mut excess = after - self.limit.get();
        for bucket in self.live(buckets, now) {
            excess = excess.saturating_sub(bucket.count);
            if excess == 0 {
                return Verdict::refuse(self.tiles.leaves(bucket).since(now));
            }
        }
        // Not reached: cost <= limit, so the buckets hold at least the excess.
        Verdict::NEVER
    }

    fn charge(&self, buckets: &Buckets, now: Time, cost: u64) -> Change {
        let number = self.tiles.number(now);
        let already = self.live(buckets, now).filter(|bucket| bucket.number == number).map(|b| b.count);
        let count = already.sum::<u64>().saturating_add(cost);
        self.change(now, self.tiles.first(now), Bucket { number, count })
    }

    /// From the newest bucket, then from the older ones.
    fn refund<'a>(&'a self, buckets: &'a Buckets, now: Time, cost: u64) -> Option<Change> {
        let mut newest = Bucket { number: self.tiles.number(now), count: 0 };
        let mut kept = self.count(buckets, now).saturating_sub(cost);
        for bucket in self.live(buckets, now) {
            newest = Bucket { count: bucket.count.min(kept), ..bucket };
            kept -= newest.count;
            if kept == 0 {
                break;
            }
        }
        Some(self.change(now, self.tiles.first(now), newest))
    }

    fn gauge(&self, buckets: &Buckets, now: Time) -> Gauge {
        let newest = self.live(buckets, now).last();
        Gauge {
            limit: self.limit.get(),
            remaining: self.limit.get().saturating_sub(self.count(buckets, now)),
            reset: newest.map_or(Span::ZERO, |bucket| self.tiles.leaves(bucket).since(now)),
        }
    }

    /// Buckets lie on the clock, so what was counted moves into the bucket of `now`.
    fn rebase<'a>(&'a self, buckets: &'a Buckets, now: Time) -> Change {
        let newest = Bucket { number: self.tiles.number(now), count: self.count(buckets, buckets.last) };
        self.change(now, newest.number, newest)
    }
}

impl LimitState for Buckets {
    fn until(&self, _: Span) -> Time {
        let leaves = |tiles: Tiles| self.buckets.back().map(|newest| tiles.leaves(*newest));
        self.tiles.and_then(leaves).unwrap_or(Time::EPOCH)
    }
}

impl Buckets {
    /// Window and precision; zero in a blank state.
    fn lengths(&self) -> [Span; 2] {
        self.tiles.map_or([Span::ZERO; 2], |Tiles { window, precision }| [window.span(), precision.span()])
    }

    fn total(&self) -> u64 {
        self.buckets.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.count)).min(MAX_STORED)
    }
}

impl State for Buckets {
    const KIND: Kind = Kind::Buckets;
    type Change<'a> = Change;

    fn last(&self) -> Time {
        self.last
    }

    fn blank() -> Buckets {
        Buckets { tiles: None, last: Time::EPOCH, buckets: VecDeque::new() }
    }

    fn apply(&mut self, change: Change) {
        if self.tiles != Some(change.tiles) {
            // As in `live`: all moves to the newest instant.
            let number = change.tiles.number(self.last);
            let count = self.total();
            self.buckets.clear();
            self.buckets.extend((count > 0).then_some(Bucket { number, count }));
        }
        while self.buckets.front().is_some_and(|bucket| bucket.number < change.first) {
            self.buckets.pop_front();
        }
        while self.buckets.back().is_some_and(|bucket| bucket.number >= change.newest.number) {
            self.buckets.pop_back();
        }
        if change.newest.count > 0 {
            self.buckets.push_back(change.newest);
        }
        // A sender of changes of its own could skip the drops; the bound on memory holds all the same.
        while self.buckets.len() as u64 > MAX_BUCKETS {
            self.buckets.pop_front();
        }
        (self.tiles, self.last) = (Some(change.tiles), change.last);
    }

    fn encode_change(change: &Change, out: &mut Vec<u8>) {
        let Tiles { window, precision } = change.tiles;
        let [window, precision] = [window, precision].map(|period| period.micros().get());
        let Bucket { number, count } = change.newest;
        put_words(out, [window, precision, change.last.as_micros(), change.first, number, count]);
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<Change> {
        let (tiles, last) = (Tiles::decode(reader)?, reader.instant()?);
        let first = reader.word()?;
        let newest = Bucket::decode(reader)?;
        let sound = first <= newest.number && newest.number <= tiles.number(last);
        sound.then_some(Change { tiles, last, first, newest })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [window, precision] = self.lengths().map(Span::as_micros);
        put_words(out, [window, precision, self.last.as_micros(), self.buckets.len() as u64]);
        for bucket in &self.buckets {
            put(out, bucket.number);
            put(out, bucket.count);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Buckets> {
        let (tiles, last) = (Tiles::decode(reader)?, reader.instant()?);
        let mut buckets = VecDeque::new();
        let current = tiles.number(last);
        for _ in 0..reader.word_up_to(MAX_BUCKETS)? {
            let bucket = Bucket::decode(reader)?;
            let after = buckets.back().is_none_or(|previous: &Bucket| previous.number < bucket.number);
            if !after || bucket.number > current || bucket.count == 0 {
                return None;
            }
            buckets.push_back(bucket);
        }
        Some(Buckets { tiles: Some(tiles), last, buckets })
    }

    fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        let [_, precision] = self.lengths();
        figure("precision_ms", Figure::Length(precision));
        figure("buckets", Figure::Count(self.buckets.len() as u64));
        figure("count", Figure::Count(self.total()));
    }
}

impl Bucket {
    fn decode(reader: &mut Reader<'_>) -> Option<Bucket> {
        let number = reader.word_up_to(Time::HORIZON.as_micros())?;
        Some(Bucket { number, count: reader.word_up_to(MAX_STORED)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis, n};

    const HOUR: SlidingBuckets = SlidingBuckets {
        limit: n(240),
        tiles: Tiles { window: millis(3_600_000), precision: millis(60_000) },
    };

    /// Minutes and milliseconds after 18:00.
    fn at(minutes: u64, millis: u64) -> Time {
        assert_eq!(HOUR.tiles.window.elapsed(T0), Span::ZERO);
        T0.plus(Span::from_millis(minutes * 60_000 + millis))
    }

    #[test]
    fn what_was_spent_at_1805_comes_back_at_1905() {
        let buckets = charged(&HOUR, None, at(5, 30_000), 20);
        assert_eq!(HOUR.gauge(&buckets, at(64, 59_999)).remaining, 220);
        assert_eq!(HOUR.gauge(&buckets, at(65, 0)).remaining, 240);
    }

    #[test]
    fn a_refusal_names_the_moment_when_enough_buckets_have_left() {
        let buckets = charged(&HOUR, None, at(0, 0), 100);
        let buckets = charged(&HOUR, Some(buckets), at(10, 0), 140);
        let retry = |cost| HOUR.judge(&buckets, at(20, 0), cost);
        assert_eq!(retry(100), Verdict::refuse(Span::from_millis(40 * 60_000)));
        assert_eq!(retry(101), Verdict::refuse(Span::from_millis(50 * 60_000)));
        assert_eq!(retry(241), Verdict::NEVER);
    }

    #[test]
    fn buckets_that_left_are_dropped_by_the_next_charge() {
        let mut buckets = charged(&HOUR, None, at(0, 0), 1);
        for minute in 1..600 {
            buckets = charged(&HOUR, Some(buckets), at(minute, 0), 1);
            assert!(buckets.buckets.len() <= 60);
        }
        assert_eq!(HOUR.gauge(&buckets, at(599, 0)).remaining, 180);
    }

    #[test]
    fn under_another_precision_the_counts_move_to_the_newest_instant() {
        let buckets = charged(&HOUR, None, at(0, 0), 20);
        let buckets = charged(&HOUR, Some(buckets), at(30, 0), 10);
        let coarse = SlidingBuckets::new(n(240), millis(3_600_000), millis(600_000)).unwrap();
        assert_eq!(coarse.gauge(&buckets, at(89, 0)).remaining, 210);
        assert_eq!(coarse.gauge(&buckets, at(90, 0)).remaining, 240);
        let buckets = charged(&coarse, Some(buckets), at(31, 0), 1);
        assert_eq!(coarse.gauge(&buckets, at(31, 0)).remaining, 209);
    }
}
