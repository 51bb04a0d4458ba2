//! The sliding log: at most `limit` in any window, to the microsecond.
//!
//! It stores the time of every admitted request. A request at `t` counts in `[t, t + window)`. So at most `limit` pass
//! in every interval that is shorter than the window, wherever it starts.
//!
//! ```text
//! RL.SLIDINGLOG key 3 10000
//!
//! at 0 s, 3 s, 5 s     admitted; 2, 1, 0 remaining
//! at 7 s               refused, retry in 3 s: the first request counts until 10 s
//! at 10 s              admitted
//! ```
//!
//! With `GAP g`, requests are also at least `g` apart. With `COUNTREFUSED`, refused requests are recorded as well. A
//! caller that keeps retrying then stays refused until it pauses. Such a log keeps only its newest `limit` entries.
//!
//! Source: <https://engineering.classdojo.com/blog/2015/02/06/rolling-rate-limiter>.
//!
//! When not to use it: with a limit of thousands per key and millions of keys. Every admitted request is an entry of
//! three to seven bytes, more if it costs more than 1. `RL.SLIDINGWINDOW` stores two counts.

use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::count::MAX_DEBT;
use crate::decide::{Gauge, Verdict};
use crate::state::log::Position;
use crate::state::log_change::Change;
use crate::state::{Entry, Log, State};
use crate::time::{Period, Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct SlidingLog {
    pub limit: NonZeroU64,
    pub window: Period,
    /// The least time between two admitted requests.
    pub gap: Span,
    pub refused: Refused,
    /// The most entries that a key may hold, even in debt.
    pub most: NonZeroU64,
}

/// Whether refused requests count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Forgotten,
    Recorded,
}

impl SlidingLog {
    /// Whether an entry has left the window.
    fn left(&self, at: Time, now: Time) -> bool {
        at.plus(self.window.span()) <= now
    }

    /// The position before the oldest entry that counts.
    fn live(&self, log: &Log, now: Time) -> Position {
        log.position(|at| self.left(at, now))
    }

    /// The first instant that is a gap after the last entry, which was made at `entered`.
    fn opens(&self, entered: Time) -> Time {
        if entered == Time::EPOCH { Time::EPOCH } else { entered.plus(self.gap) }
    }

    fn counts_refused(&self) -> bool {
        self.refused == Refused::Recorded
    }

    /// When a log with this newest entry is fully reset. `entered` is when the last entry was made, refunded or not.
    fn until(&self, newest: Option<Time>, entered: Time) -> Time {
        let left = newest.map_or(Time::EPOCH, |newest| newest.plus(self.window.span()));
        left.max(self.opens(entered))
    }

    /// When a request of this cost fits into the window; `None` if never.
    fn fits(&self, log: &Log, now: Time, cost: u64) -> Option<Time> {
        let room = self.limit.get().checked_sub(cost)?;
        let live = self.live(log, now);
        match log.weight(live).saturating_sub(room) {
            0 => Some(now),
            excess => log.reach_weight(live, excess).map(|(entry, _)| entry.at.plus(self.window.span())),
        }
    }

    /// The position up to which a charge drops entries, and the weight of those that must still count.
    ///
    /// A charge drops the entries that have left the window, and the oldest if there are too many. A log that counts
    /// refusals keeps its newest `limit` entries, because any retry follows from these. A log in debt keeps its newest
    /// `most` entries. The weight of the others moves to the newest entry.
    fn drops(&self, log: &Log, now: Time) -> (Position, u64) {
        let live = self.live(log, now);
        let kept = if self.counts_refused() { self.limit } else { self.most.max(self.limit) };
        let entries = log.entries(live) + u64::from(log.newest() != Some(now));
        let surplus = entries.saturating_sub(kept.get());
        let end = if surplus == 0 { None } else { log.reach_entries(live, surplus) };
        let end = log.within_one_charge(end.unwrap_or(live));
        let weightless = self.counts_refused() || log.entries(end) >= log.entries(live);
        (end, if weightless { 0 } else { live.weight_to(end) })
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
        match self.fits(log, now, cost).map(|fits| fits.max(self.opens(log.entered))) {
            None => Verdict::NEVER,
            Some(then) if then <= now => Verdict::ADMIT,
            Some(then) => Verdict::refuse(then.since(now)),
        }
    }

    fn charge(&self, log: &Log, now: Time, cost: u64) -> Change {
        let (end, moved) = self.drops(log, now);
        let already = if log.newest() == Some(now) { log.weight(log.position(|at| at < now)) } else { 0 };
        let weight = already.saturating_add(cost).saturating_add(moved).min(MAX_DEBT);
        Change {
            last: now,
            entered: now,
            dropped: log.newest_before(end),
            newest: Some(Entry { at: now, weight }),
            until: self.until(Some(now), now),
            ..Change::default()
        }
    }

    /// The window bounds the reset, so only a debt that is too large to store counts.
    fn reset_after(&self, log: &Log, _now: Time, cost: u64) -> Span {
        let debt = log.weight(log.start()).saturating_add(cost);
        if debt > MAX_DEBT / 2 { Span::FOREVER } else { Span::ZERO }
    }

    /// Takes the cost from the newest entry, and the rest from older ones.
    fn refund<'a>(&'a self, log: &'a Log, now: Time, cost: u64) -> Option<Change> {
        let live = self.live(log, now);
        let kept = log.weight(live).saturating_sub(cost);
        let newest = match log.reach_weight(live, kept).filter(|_| kept > 0) {
            Some((entry, before)) => Entry { at: entry.at, weight: kept - live.weight_to(before) },
            None => Entry { at: Time::EPOCH, weight: 0 },
        };
        let dropped = log.newest_before(log.within_one_charge(live));
        let until = self.until((newest.weight > 0).then_some(newest.at), log.entered);
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
        let room = self.limit.get().saturating_sub(log.weight(self.live(log, now)));
        Gauge {
            limit: self.limit.get(),
            remaining: if self.opens(log.entered) <= now { room } else { 0 },
            reset: self.until(log.newest(), log.entered).since(now),
        }
    }

    fn rebase<'a>(&'a self, log: &'a Log, now: Time) -> Change {
        let back = log.last.since(now);
        // The epoch stands for never, so any other instant stays after it.
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

    /// The log after a charge at each of these seconds.
    fn log(limiter: &SlidingLog, seconds: &[u64]) -> Log {
        let charges = seconds.iter().map(|second| at(second * 1000));
        charges.fold(limiter.fresh(T0), |log, now| charged(limiter, Some(log), now, 1))
    }

    #[test]
    fn at_most_three_pass_in_any_ten_seconds() {
        let log = log(&THREE, &[0, 3, 5]);
        assert_eq!(THREE.judge(&log, at(7000), 1), Verdict::refuse(secs(3)));
        assert_eq!(THREE.judge(&log, at(7000), 2), Verdict::refuse(secs(6)));
        assert_eq!(THREE.judge(&log, at(9999), 1), Verdict::refuse(Span::from_millis(1)));
        assert_eq!(THREE.judge(&log, at(10_000), 1), Verdict::ADMIT);
        assert_eq!(THREE.judge(&log, at(10_000), 4), Verdict::NEVER);
        assert_eq!(THREE.gauge(&log, at(10_000)), Gauge { limit: 3, remaining: 1, reset: secs(5) });
    }

    #[test]
    fn a_gap_also_follows_an_entry_that_was_refunded() {
        let spaced = SlidingLog { gap: secs(2), ..THREE };
        let log = log(&spaced, &[0]);
        assert_eq!(spaced.judge(&log, at(500), 1), Verdict::refuse(Span::from_millis(1500)));
        assert_eq!(spaced.gauge(&log, at(1999)).remaining, 0);
        assert_eq!(spaced.gauge(&log, at(2000)).remaining, 2);
        let mut refunded = log;
        refunded.apply(spaced.refund(&refunded, at(1000), 1).unwrap());
        assert_eq!(refunded.newest(), None);
        assert_eq!(spaced.gauge(&refunded, at(1000)), Gauge { limit: 3, remaining: 0, reset: secs(1) });
        assert_eq!(refunded.until, at(2000));
        assert_eq!(spaced.gauge(&refunded, at(2000)), Gauge { limit: 3, remaining: 3, reset: Span::ZERO });
    }

    #[test]
    fn a_gap_longer_than_the_time_since_the_epoch_admits_the_first_request() {
        let century = SlidingLog { gap: Span::CENTURY, ..THREE };
        assert_eq!(century.judge(&century.fresh(T0), T0, 1), Verdict::ADMIT);
    }

    #[test]
    fn a_log_that_counts_refusals_keeps_its_newest_entries_up_to_the_limit() {
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
    fn a_log_in_debt_holds_at_most_its_entries_and_loses_no_weight() {
        let small = SlidingLog { most: n(4), ..THREE };
        let log = log(&small, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(log.entries(log.start()), 4);
        assert_eq!(log.weight(log.start()), 6);
        // The weights of the two oldest moved to the entries at 4 s and 5 s.
        assert_eq!(small.judge(&log, at(5000), 1), Verdict::refuse(secs(9)));
        assert_eq!(small.gauge(&log, at(13_999)).remaining, 0);
    }

    #[test]
    fn entries_that_left_do_not_count_and_each_charge_drops_a_few_blocks_of_them() {
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
