//! The sliding log: at most `limit` in any window, to the microsecond.
//!
//! The time of every admitted request is kept. A request at `t` counts in `[t, t + window)` and is gone at
//! `t + window`, so over every interval that is shorter than the window no more than `limit` pass, wherever it begins.
//!
//! ```text
//! RL.SLIDINGLOG key 3 10000
//!
//! at 0 s, 3 s, 5 s     admitted, 2, 1, 0 remaining
//! at 7 s               refused, retry in 3 s: at 10 s the first one is gone
//! at 10 s              admitted
//! ```
//!
//! `GAP g` also spaces requests out: no two are closer than `g`. With `COUNTREFUSED` refused requests are recorded
//! as well, so that whoever keeps hammering stays out until there was quiet; of those, only the newest `limit` entries
//! matter, and are kept.
//!
//! Source: <https://engineering.classdojo.com/blog/2015/02/06/rolling-rate-limiter>. When not to use it: where a limit of thousands per key meets millions of keys. An
//! entry takes three to seven bytes, more if it weighs more than 1, but every admitted request is one; `RL.SLIDINGWINDOW` needs two numbers.

use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::count::MAX_DEBT;
use crate::decide::{Gauge, Verdict};
use crate::state::log::Place;
use crate::state::log_change::Change;
use crate::state::{Entry, Log, State};
use crate::time::{Period, Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct SlidingLog {
    pub limit: NonZeroU64,
    pub window: Period,
    /// The least time between two entries; none if zero.
    pub gap: Span,
    pub refused: Refused,
    /// The most entries that a key may hold, in debt too.
    pub most: NonZeroU64,
}

/// What becomes of refused requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Forgotten,
    Recorded,
}

impl SlidingLog {
    /// Whether an entry of that instant has left the window.
    fn left(&self, at: Time, now: Time) -> bool {
        at.plus(self.window.span()) <= now
    }

    /// Before the oldest entry that counts.
    fn live(&self, log: &Log, now: Time) -> Place {
        log.place(|at| self.left(at, now))
    }

    /// When the last entry is far enough away.
    fn opens(&self, log: &Log) -> Time {
        if log.entered == Time::EPOCH { Time::EPOCH } else { log.entered.plus(self.gap) }
    }

    fn counts_refused(&self) -> bool {
        self.refused == Refused::Recorded
    }

    /// When a log is fully reset whose newest entry is of one instant and whose last charge, given back or not, was at
    /// another.
    fn until(&self, newest: Option<Time>, entered: Time) -> Time {
        let gone = newest.map_or(Time::EPOCH, |newest| newest.plus(self.window.span()));
        let opens = if entered == Time::EPOCH { Time::EPOCH } else { entered.plus(self.gap) };
        gone.max(opens)
    }

    /// When a request of this cost fits into the window; `None` is never.
    fn fits(&self, log: &Log, now: Time, cost: u64) -> Option<Time> {
        let room = self.limit.get().checked_sub(cost)?;
        let live = self.live(log, now);
        match log.weight(live).saturating_sub(room) {
            0 => Some(now),
            excess => log.reach_weight(live, excess).map(|(entry, _)| entry.at.plus(self.window.span())),
        }
    }

    /// The place up to which a charge drops the entries, and the weight that must not be lost with them.
    ///
    /// What has left the window goes, and what is more than may be kept: of a log that counts refusals all but the
    /// newest `limit`, which alone can tell how long to wait; of one in debt the oldest, whose weight then counts as
    /// long as the newest does.
    fn drops(&self, log: &Log, now: Time) -> (Place, u64) {
        let live = self.live(log, now);
        let kept = if self.counts_refused() { self.limit } else { self.most.max(self.limit) };
        let entries = log.entries(live) + u64::from(log.newest() != Some(now));
        let surplus = entries.saturating_sub(kept.get());
        let end = if surplus == 0 { None } else { log.reach_entries(live, surplus) };
        let place = log.nearer(end.unwrap_or(live));
        let forgets = self.counts_refused() || log.entries(place) >= log.entries(live);
        (place, if forgets { 0 } else { live.weight_to(place) })
    }
}

impl Limiter for SlidingLog {
    type State = Log;

    fn capabilities(&self) -> Capabilities {
        match self.refused {
            Refused::Forgotten => Capabilities::DEBT,
            Refused::Recorded => Capabilities { counts_refused: true, ..Capabilities::NONE },
        }
    }

    fn length(&self) -> Span {
        self.window.span()
    }

    fn fresh(&self, now: Time) -> Log {
        let mut log = Log::blank();
        log.last = now;
        log
    }

    fn judge(&self, log: &Log, now: Time, cost: u64) -> Verdict {
        match self.fits(log, now, cost).map(|fits| fits.max(self.opens(log))) {
            None => Verdict::NEVER,
            Some(then) if then <= now => Verdict::ADMIT,
            Some(then) => Verdict::refuse(then.since(now)),
        }
    }

    fn charge(&self, log: &Log, now: Time, cost: u64) -> Change {
        let (place, moved) = self.drops(log, now);
        let already = if log.newest() == Some(now) { log.weight(log.place(|at| at < now)) } else { 0 };
        let weight = already.saturating_add(cost).saturating_add(moved).min(MAX_DEBT);
        Change {
            last: now,
            entered: now,
            dropped: log.up_to(place),
            newest: Some(Entry { at: now, weight }),
            until: self.until(Some(now), now),
            ..Change::default()
        }
    }

    /// A window forgets in its own time, but a debt that could not be added up any more is an error.
    fn reset_after(&self, log: &Log, _now: Time, cost: u64) -> Span {
        let debt = log.weight(log.start()).saturating_add(cost);
        if debt > MAX_DEBT / 2 { Span::FOREVER } else { Span::ZERO }
    }

    /// From the newest entry, then from the older ones.
    fn refund<'a>(&'a self, log: &'a Log, now: Time, cost: u64) -> Option<Change> {
        let live = self.live(log, now);
        let kept = log.weight(live).saturating_sub(cost);
        let newest = match log.reach_weight(live, kept).filter(|_| kept > 0) {
            Some((entry, before)) => Entry { at: entry.at, weight: kept - live.weight_to(before) },
            None => Entry { at: Time::EPOCH, weight: 0 },
        };
        let dropped = log.up_to(log.nearer(live));
        let left = (newest.weight > 0).then_some(newest.at);
        let until = self.until(left, log.entered);
        let until = if until > now { until } else { Time::EPOCH };
        Some(Change {
            last: now,
            entered: log.entered,
            dropped,
            newest: Some(newest),
            until,
            ..Change::default()
        })
    }

    fn gauge(&self, log: &Log, now: Time) -> Gauge {
        let opens = self.opens(log);
        let room = self.limit.get().saturating_sub(log.weight(self.live(log, now)));
        let gone = log.newest().map_or(now, |newest| newest.plus(self.window.span()));
        Gauge {
            limit: self.limit.get(),
            remaining: if opens <= now { room } else { 0 },
            reset: gone.max(opens).since(now),
        }
    }

    fn rebase<'a>(&'a self, log: &'a Log, now: Time) -> Change {
        let back = log.last.since(now);
        // The epoch stands for never.
        let entered = log.entered.minus(back).max(Time::from_micros(1)).min(log.entered);
        let until = log.until.minus(back);
        Change { last: now, entered, until, moved: Some((log.last, now)), ..Change::default() }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testing::{T0, charged, millis, n};

    const THREE: SlidingLog = SlidingLog {
        limit: n(3),
        window: millis(10_000),
        gap: Span::ZERO,
        refused: Refused::Forgotten,
        most: n(1000),
    };

    fn at(millis: u64) -> Time {
        T0.plus(Span::from_millis(millis))
    }

    fn secs(seconds: u64) -> Span {
        Span::from_millis(seconds * 1000)
    }

    /// The log after charges at these seconds.
    fn log(limiter: &SlidingLog, seconds: &[u64]) -> Log {
        let charges = seconds.iter().map(|second| at(second * 1000));
        charges.fold(limiter.fresh(T0), |log, now| charged(limiter, Some(log), now, 1))
    }

    #[test]
    fn three_in_any_ten_seconds() {
        let log = log(&THREE, &[0, 3, 5]);
        assert_eq!(THREE.judge(&log, at(7000), 1), Verdict::refuse(secs(3)));
        assert_eq!(THREE.judge(&log, at(7000), 2), Verdict::refuse(secs(6)));
        assert_eq!(THREE.judge(&log, at(9999), 1), Verdict::refuse(Span::from_millis(1)));
        assert_eq!(THREE.judge(&log, at(10_000), 1), Verdict::ADMIT);
        assert_eq!(THREE.judge(&log, at(10_000), 4), Verdict::NEVER);
        assert_eq!(THREE.gauge(&log, at(10_000)), Gauge { limit: 3, remaining: 1, reset: secs(5) });
    }

    #[test]
    fn a_gap_is_kept_after_the_entry_was_given_back_too() {
        let spaced = SlidingLog { gap: secs(2), ..THREE };
        let log = log(&spaced, &[0]);
        assert_eq!(spaced.judge(&log, at(500), 1), Verdict::refuse(Span::from_millis(1500)));
        assert_eq!(spaced.gauge(&log, at(1999)).remaining, 0);
        assert_eq!(spaced.gauge(&log, at(2000)).remaining, 2);
        let mut given_back = log;
        given_back.apply(spaced.refund(&given_back, at(1000), 1).unwrap());
        assert_eq!(given_back.newest(), None);
        assert_eq!(spaced.gauge(&given_back, at(1000)), Gauge { limit: 3, remaining: 0, reset: secs(1) });
        assert_eq!(spaced.gauge(&given_back, at(2000)), Gauge { limit: 3, remaining: 3, reset: Span::ZERO });
        // A gap longer than since the epoch does not shut a fresh key.
        let ages = SlidingLog { gap: Span::CENTURY, ..THREE };
        assert_eq!(ages.judge(&ages.fresh(T0), T0, 1), Verdict::ADMIT);
    }

    #[test]
    fn of_a_log_that_counts_refusals_the_newest_limit_entries_are_kept() {
        let counting = SlidingLog { refused: Refused::Recorded, ..THREE };
        let log = log(&counting, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(log.iter().map(|entry| entry.at).collect::<Vec<_>>(), [at(3000), at(4000), at(5000)]);
        assert_eq!(counting.judge(&log, at(5000), 1), Verdict::refuse(secs(8)));
    }

    #[test]
    fn a_refund_takes_the_newest_entries_first() {
        let mut log = log(&THREE, &[0, 3, 5]);
        log.apply(THREE.refund(&log, at(6000), 2).unwrap());
        assert_eq!(log.iter().collect::<Vec<_>>(), [Entry { at: at(0), weight: 1 }]);
        assert_eq!(THREE.gauge(&log, at(6000)), Gauge { limit: 3, remaining: 2, reset: secs(4) });
    }

    #[test]
    fn a_log_in_debt_holds_no_more_than_it_may_and_forgets_nothing() {
        let small = SlidingLog { most: n(4), ..THREE };
        let log = log(&small, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(log.entries(log.start()), 4);
        assert_eq!(log.weight(log.start()), 6);
        // The weight of the two oldest counts as long as those do that were forced when they went.
        assert_eq!(small.judge(&log, at(5000), 1), Verdict::refuse(secs(9)));
        assert_eq!(small.gauge(&log, at(13_999)).remaining, 0);
    }

    #[test]
    fn a_crowd_that_left_is_not_dropped_by_one_charge_and_does_not_count() {
        let wide = SlidingLog { limit: n(100_000), most: n(100_000), ..THREE };
        let mut log = wide.fresh(T0);
        for i in 0..100_000 {
            log.apply(wide.charge(&log, T0.plus(Span::from_micros(i)), 1));
        }
        assert_eq!(wide.gauge(&log, at(10_099)).remaining, 99_001);
        assert_eq!(
            wide.gauge(&log, at(20_000)),
            Gauge { limit: 100_000, remaining: 100_000, reset: Span::ZERO }
        );
        let mut charges = 0;
        while log.entries(log.start()) > 1 + charges {
            let before = log.blocks();
            log.apply(wide.charge(&log, at(20_000 + charges), 1));
            charges += 1;
            assert!(before <= log.blocks() + 17, "{before} blocks became {}", log.blocks());
            assert_eq!(wide.gauge(&log, at(20_000 + charges)).remaining, 100_000 - charges);
        }
        assert!(charges < 110);
    }
}
