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
//! Source: Josiah Carlson's sliding windows (seed 003), without their traps: no keys made up on the way, no clock
//! of the caller's, and a refusal leaves no trace. Over any interval of length `window - p` at most `limit` pass.
//! When not to use it: where each request must count for exactly one window (use the log), or where a few bytes
//! per key matter (use two counters; a bucket takes 16 bytes, and there are at most 1,024).

use std::collections::VecDeque;

use super::codec::{Reader, put};
use super::{Figure, Gauge, Kind, Limiter, MOST_COUNT, State, Verdict};
use crate::time::{Span, Time};

/// The most sub-buckets of a window: what bounds the memory of a key and the time of a call.
pub const MAX_BUCKETS: u64 = 1024;

/// Whether a window is made of equal parts of this length, and not of too many.
pub fn tile(window: Span, precision: Span) -> bool {
    let (window, precision) = (window.as_micros(), precision.as_micros());
    window.is_multiple_of(precision) && window / precision <= MAX_BUCKETS
}

#[derive(Clone, Copy, Debug)]
pub struct SlidingBuckets {
    pub limit: u64,
    pub window: Span,
    /// The length of a sub-bucket; divides `window`.
    pub precision: Span,
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
    window: Span,
    precision: Span,
    last: Time,
    buckets: VecDeque<Bucket>,
}

/// "Buckets before `first` are gone, `newest` is the last one and has this count": absolute, so that saying it
/// twice is saying it once.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    window: Span,
    precision: Span,
    last: Time,
    first: u64,
    newest: Bucket,
}

impl SlidingBuckets {
    fn number(&self, at: Time) -> u64 {
        at.as_micros() / self.precision.as_micros()
    }

    /// The oldest bucket that counts at `now`.
    fn first(&self, now: Time) -> u64 {
        (self.number(now) + 1).saturating_sub(self.window.as_micros() / self.precision.as_micros())
    }

    /// What counts at `now`, oldest first.
    fn live<'s>(&self, buckets: &'s Buckets, now: Time) -> impl Iterator<Item = Bucket> + use<'s> {
        let first = self.first(now);
        // Another window or precision: all that was counted moves to the newest instant.
        let collapsed = (buckets.window != self.window || buckets.precision != self.precision)
            .then(|| Bucket { number: self.number(buckets.last), count: buckets.total() });
        let stored = if collapsed.is_some() { None } else { Some(buckets.buckets.iter().copied()) };
        let all = collapsed.into_iter().chain(stored.into_iter().flatten());
        all.filter(move |bucket| bucket.number >= first && bucket.count > 0)
    }

    fn count(&self, buckets: &Buckets, now: Time) -> u64 {
        self.live(buckets, now).fold(0u64, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// How long until a bucket leaves.
    fn leaves(&self, bucket: Bucket, now: Time) -> Span {
        let start = Time::from_micros(bucket.number.saturating_mul(self.precision.as_micros()));
        start.plus(self.window).since(now)
    }

    fn change(&self, now: Time, first: u64, newest: Bucket) -> Change {
        let newest = Bucket { count: newest.count.min(MOST_COUNT), ..newest };
        Change { window: self.window, precision: self.precision, last: now, first, newest }
    }
}

impl Limiter for SlidingBuckets {
    type State = Buckets;

    fn span(&self) -> Span {
        self.window
    }

    fn fresh(&self, now: Time) -> Buckets {
        Buckets { window: self.window, precision: self.precision, last: now, buckets: VecDeque::new() }
    }

    fn judge(&self, buckets: &Buckets, now: Time, cost: u64) -> Verdict {
        let after = self.count(buckets, now).saturating_add(cost);
        if after <= self.limit {
            return Verdict::ADMIT;
        }
        if cost > self.limit {
            return Verdict::NEVER;
        }
        let mut excess = after - self.limit;
        for bucket in self.live(buckets, now) {
            excess = excess.saturating_sub(bucket.count);
            if excess == 0 {
                return Verdict::refuse(self.leaves(bucket, now));
            }
        }
        // Not reached: cost <= limit, so the buckets hold at least the excess.
        Verdict::NEVER
    }

    fn charge(&self, buckets: &Buckets, now: Time, cost: u64) -> Change {
        let number = self.number(now);
        let already = self.live(buckets, now).filter(|bucket| bucket.number == number).map(|b| b.count);
        let count = already.sum::<u64>().saturating_add(cost);
        self.change(now, self.first(now), Bucket { number, count })
    }

    /// From the newest bucket, then from the older ones.
    fn refund<'a>(&'a self, buckets: &'a Buckets, now: Time, cost: u64) -> Option<Change> {
        let mut newest = Bucket { number: self.number(now), count: 0 };
        let mut kept = self.count(buckets, now).saturating_sub(cost);
        for bucket in self.live(buckets, now) {
            newest = Bucket { count: bucket.count.min(kept), ..bucket };
            kept -= newest.count;
            if kept == 0 {
                break;
            }
        }
        Some(self.change(now, self.first(now), newest))
    }

    fn gauge(&self, buckets: &Buckets, now: Time) -> Gauge {
        let newest = self.live(buckets, now).last();
        Gauge {
            limit: self.limit,
            remaining: self.limit.saturating_sub(self.count(buckets, now)),
            reset: newest.map_or(Span::ZERO, |bucket| self.leaves(bucket, now)),
        }
    }

    /// Buckets lie on the clock, so what was counted moves into the bucket of `now`.
    fn rebase<'a>(&'a self, buckets: &'a Buckets, now: Time) -> Change {
        let newest = Bucket { number: self.number(now), count: self.count(buckets, buckets.last) };
        self.change(now, newest.number, newest)
    }
}

impl Buckets {
    fn total(&self) -> u64 {
        self.buckets.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.count)).min(MOST_COUNT)
    }
}

impl State for Buckets {
    const KIND: Kind = Kind::Buckets;
    type Change<'a> = Change;

    fn last(&self) -> Time {
        self.last
    }

    fn span(&self) -> Option<Span> {
        Some(self.window)
    }

    fn blank() -> Buckets {
        let (window, precision, last) = (Span::ZERO, Span::ZERO, Time::default());
        Buckets { window, precision, last, buckets: VecDeque::new() }
    }

    fn apply(&mut self, change: Change) {
        if (self.window, self.precision) != (change.window, change.precision) {
            // As in `live`: all moves to the newest instant.
            let number = self.last.as_micros() / change.precision.as_micros().max(1);
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
        (self.window, self.precision, self.last) = (change.window, change.precision, change.last);
    }

    fn encode_change(change: &Change, out: &mut Vec<u8>) {
        put(out, change.window.as_micros());
        put(out, change.precision.as_micros());
        put(out, change.last.as_micros());
        put(out, change.first);
        put(out, change.newest.number);
        put(out, change.newest.count);
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<Change> {
        let (window, precision, last) = frame(reader)?;
        let first = reader.word()?;
        let newest = Bucket::decode(reader)?;
        let current = last.as_micros() / precision.as_micros();
        (first <= newest.number && newest.number <= current).then_some(Change {
            window,
            precision,
            last,
            first,
            newest,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.window.as_micros());
        put(out, self.precision.as_micros());
        put(out, self.last.as_micros());
        put(out, self.buckets.len() as u64);
        for bucket in &self.buckets {
            put(out, bucket.number);
            put(out, bucket.count);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Buckets> {
        let (window, precision, last) = frame(reader)?;
        let mut buckets = VecDeque::new();
        let current = last.as_micros() / precision.as_micros();
        for _ in 0..reader.word_up_to(MAX_BUCKETS)? {
            let bucket = Bucket::decode(reader)?;
            let after = buckets.back().is_none_or(|previous: &Bucket| previous.number < bucket.number);
            if !after || bucket.number > current || bucket.count == 0 {
                return None;
            }
            buckets.push_back(bucket);
        }
        Some(Buckets { window, precision, last, buckets })
    }

    fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("window_ms", Figure::Length(self.window));
        figure("precision_ms", Figure::Length(self.precision));
        figure("buckets", Figure::Count(self.buckets.len() as u64));
        figure("count", Figure::Count(self.total()));
    }
}

impl Bucket {
    fn decode(reader: &mut Reader<'_>) -> Option<Bucket> {
        let number = reader.word_up_to(super::HORIZON.as_micros())?;
        Some(Bucket { number, count: reader.word_up_to(MOST_COUNT)? })
    }
}

/// What states and changes begin with: window, precision and the instant of the last charge.
fn frame(reader: &mut Reader<'_>) -> Option<(Span, Span, Time)> {
    let (window, precision) = (super::duration(reader)?, super::duration(reader)?);
    tile(window, precision).then_some((window, precision, super::instant(reader)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    const HOUR: SlidingBuckets = SlidingBuckets {
        limit: 240,
        window: Span::from_millis(3_600_000),
        precision: Span::from_millis(60_000),
    };

    /// Minutes and milliseconds after 18:00.
    fn at(minutes: u64, millis: u64) -> Time {
        assert_eq!(T0.as_micros() % HOUR.window.as_micros(), 0);
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
        let coarse = SlidingBuckets { precision: Span::from_millis(600_000), ..HOUR };
        assert_eq!(coarse.gauge(&buckets, at(89, 0)).remaining, 210);
        assert_eq!(coarse.gauge(&buckets, at(90, 0)).remaining, 240);
        let buckets = charged(&coarse, Some(buckets), at(31, 0), 1);
        assert_eq!(coarse.gauge(&buckets, at(31, 0)).remaining, 209);
    }
}
