//! The sliding window with `PRECISION`: the window is divided into sub-buckets, and each has its own count.
//!
//! Sub-buckets start at the clock's multiples of the precision `p`. The bucket `[b*p, b*p + p)` leaves the window as a
//! whole at `b*p + window`. So a request counts for more than `window - p`, and at most `window`.
//!
//! ```text
//! RL.SLIDINGWINDOW key 240 1h PRECISION 1m
//!
//! 18:05:30   20 requests   admitted; 220 remaining until 19:04:59.999
//! 19:05:00                 the bucket of 18:05 leaves; 240 remaining
//! ```
//!
//! Over any interval of length `window - p`, at most `limit` pass.
//!
//! Source: <https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with_26.html>.
//!
//! When not to use it:
//!
//! - Where each request must count for exactly one window: use the sliding log.
//! - Where keys must be small: use the sliding window without `PRECISION`, which stores two counts. Here each bucket in
//!   use takes 16 bytes, and there are at most 1,024 of them.

use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_STORED;
use crate::state::Move;
use crate::state::sub_buckets::{Bucket, Buckets, Change, Tiles};
use crate::time::{Period, Span, Time};

/// A limit over a window of sub-buckets.
#[derive(Clone, Copy, Debug)]
pub struct SlidingBuckets {
    limit: NonZeroU64,
    tiles: Tiles,
}

impl SlidingBuckets {
    /// `None` if the precision does not divide the window into at most [`MAX_BUCKETS`](crate::state::MAX_BUCKETS) parts.
    pub fn new(limit: NonZeroU64, window: Period, precision: Period) -> Option<SlidingBuckets> {
        Some(SlidingBuckets { limit, tiles: Tiles::new(window, precision)? })
    }

    /// The buckets that count at `now`, oldest first.
    fn live<'s>(&self, buckets: &'s Buckets, now: Time) -> impl Iterator<Item = Bucket> + use<'s> {
        let first = self.tiles.first(now);
        // If the window or the precision changed, everything counts as if charged at `last`.
        let merged = (buckets.tiles != Some(self.tiles)).then(|| buckets.merged(self.tiles));
        let stored = if merged.is_some() { None } else { Some(buckets.buckets.iter().copied()) };
        let all = merged.into_iter().chain(stored.into_iter().flatten());
        all.filter(move |bucket| bucket.number >= first && bucket.count > 0)
    }

    /// The newest bucket that counts at `now`.
    fn newest(&self, buckets: &Buckets, now: Time) -> Option<Bucket> {
        let newest = if buckets.tiles == Some(self.tiles) {
            buckets.buckets.back().copied()?
        } else {
            buckets.merged(self.tiles)
        };
        (newest.number >= self.tiles.first(now) && newest.count > 0).then_some(newest)
    }

    /// The count at `now`. It takes longer only if many buckets have left since the last charge.
    fn count(&self, buckets: &Buckets, now: Time) -> u64 {
        if buckets.tiles != Some(self.tiles) {
            return self.newest(buckets, now).map_or(0, |merged| merged.count);
        }
        let first = self.tiles.first(now);
        let left = buckets.buckets.iter().take_while(|bucket| bucket.number < first);
        buckets.total.saturating_sub(left.map(|bucket| bucket.count).sum())
    }

    /// The change that drops the buckets before `first`, and makes `newest` the last one.
    fn change(&self, now: Time, first: u64, newest: Bucket) -> Change {
        let newest = Bucket { count: newest.count.min(MAX_STORED), ..newest };
        Change { tiles: self.tiles, last: now, first, newest, keeps_later: false }
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
        Buckets::new(self.tiles, now)
    }

    #[inline(always)]
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
        // Not reached: as cost <= limit, the buckets count at least the excess.
        Verdict::NEVER
    }

    #[inline(always)]
    fn charge(&self, buckets: &Buckets, now: Time, cost: u64) -> Change {
        let number = self.tiles.number(now);
        let current = self.newest(buckets, now).filter(|newest| newest.number == number);
        let count = current.map_or(0, |current| current.count).saturating_add(cost);
        self.change(now, self.tiles.first(now), Bucket { number, count })
    }

    /// Takes the cost from the newest bucket, and the rest from older ones.
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

    fn give_back<'a>(&'a self, buckets: &'a Buckets, now: Time, at: Time, cost: u64) -> Option<Change> {
        let number = self.tiles.number(at);
        let bucket = self.live(buckets, now).find(|bucket| bucket.number == number)?;
        let rest = Bucket { count: bucket.count.saturating_sub(cost), ..bucket };
        Some(Change { keeps_later: true, ..self.change(now, self.tiles.first(now), rest) })
    }

    fn moves_charges(&self, buckets: &Buckets, _: Span) -> bool {
        buckets.tiles != Some(self.tiles)
    }

    /// The counts of all buckets move.
    fn moved_charges(&self, buckets: &Buckets, _: Span, now: Time) -> Option<Move> {
        let since = buckets.tiles.map_or(buckets.last, |tiles| tiles.start(tiles.first(buckets.last)));
        Some(Move::all_since(since, buckets.last, now))
    }

    #[inline(always)]
    fn gauge(&self, buckets: &Buckets, now: Time) -> Gauge {
        let reset = |newest| self.tiles.leaves(newest).since(now);
        Gauge {
            limit: self.limit.get(),
            remaining: self.limit.get().saturating_sub(self.count(buckets, now)),
            reset: self.newest(buckets, now).map_or(Span::ZERO, reset),
        }
    }

    /// Buckets follow the clock, so the count moves to the bucket that contains `now`.
    fn rebase<'a>(&'a self, buckets: &'a Buckets, now: Time) -> Change {
        let newest = Bucket { number: self.tiles.number(now), count: self.count(buckets, buckets.last) };
        self.change(now, newest.number, newest)
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
    fn requests_at_1805_count_until_1905() {
        let buckets = charged(&HOUR, None, at(5, 30_000), 20);
        assert_eq!(HOUR.gauge(&buckets, at(64, 59_999)).remaining, 220);
        assert_eq!(HOUR.gauge(&buckets, at(65, 0)).remaining, 240);
    }

    #[test]
    fn the_retry_of_a_refusal_ends_when_enough_buckets_have_left() {
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
    fn when_the_precision_changes_everything_counts_as_charged_at_the_last_charge() {
        let buckets = charged(&HOUR, None, at(0, 0), 20);
        let buckets = charged(&HOUR, Some(buckets), at(30, 0), 10);
        let coarse = SlidingBuckets::new(n(240), millis(3_600_000), millis(600_000)).unwrap();
        assert_eq!(coarse.gauge(&buckets, at(89, 0)).remaining, 210);
        assert_eq!(coarse.gauge(&buckets, at(90, 0)).remaining, 240);
        let buckets = charged(&coarse, Some(buckets), at(31, 0), 1);
        assert_eq!(coarse.gauge(&buckets, at(31, 0)).remaining, 209);
    }
}
