//! The sliding log: at most `limit` in any window, to the microsecond.
//!
//! It stores the time of every admitted request. A request at `t` counts in `[t, t + window)`. So at most `limit` pass
//! in every interval that is shorter than the window, wherever it starts.
//!
//! ```text
//! RL.SLIDINGLOG key 3 10s
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
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_DEBT;
use crate::state::log::{Change, Position};
use crate::state::{Entry, Log, Move, State};
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
    /// The position before the oldest entry that counts `elapsed` after the last charge.
    fn live(&self, log: &Log, elapsed: Span) -> Position {
        log.position(|age| age.plus(elapsed) >= self.window.span())
    }

    /// The time until the gap after the last entry ends. `entered` is the time since that entry.
    fn closed(&self, entered: Option<Span>) -> Span {
        entered.map_or(Span::ZERO, |entered| self.gap.minus(entered))
    }

    fn counts_refused(&self) -> bool {
        self.refused == Refused::Recorded
    }

    /// The reset of a log whose newest entry is this old. `entered` is the time since the last entry, refunded or not.
    fn reset(&self, newest: Option<Span>, entered: Option<Span>) -> Span {
        let left = newest.map_or(Span::ZERO, |age| self.window.span().minus(age));
        left.max(self.closed(entered))
    }

    /// The time until a request of this cost fits into the window, with a weight that is recorded now; `None` if it never does.
    fn fits(&self, log: &Log, elapsed: Span, cost: u64, recorded: u64) -> Option<Span> {
        let room = self.limit.get().checked_sub(cost)?;
        let live = self.live(log, elapsed);
        match (log.weight(live) + recorded).saturating_sub(room) {
            0 => Some(Span::ZERO),
            excess => {
                let age = log.reach_weight(live, excess).map(|(entry, _)| entry.age.plus(elapsed));
                Some(self.window.span().minus(age.unwrap_or_default()))
            }
        }
    }

    /// The verdict on a request, with a weight that is recorded now.
    #[inline(always)]
    fn judge_with(&self, log: &Log, now: Time, cost: u64, recorded: u64) -> Verdict {
        let elapsed = now.since(log.last());
        let entered =
            log.entered().map(|entered| if recorded > 0 { Span::ZERO } else { entered.plus(elapsed) });
        match self.fits(log, elapsed, cost, recorded).map(|retry| retry.max(self.closed(entered))) {
            None => Verdict::NEVER,
            Some(Span::ZERO) => Verdict::ADMIT,
            Some(retry) => Verdict::refuse(retry),
        }
    }

    /// The position up to which a charge drops entries, and the weight of those that must still count.
    ///
    /// A charge drops the entries that have left the window, and the oldest if there are too many. A log that counts
    /// refusals keeps its newest `limit` entries, because any retry follows from these. A log in debt keeps its newest
    /// `most` entries. The weight of the others moves to the newest entry.
    fn drops(&self, log: &Log, elapsed: Span) -> (Position, u64) {
        let live = self.live(log, elapsed);
        let kept = if self.counts_refused() { self.limit } else { self.most.max(self.limit) };
        let new = u64::from(log.newest().map(|age| age.plus(elapsed)) != Some(Span::ZERO));
        match (log.entries(live) + new).checked_sub(kept.get()) {
            None | Some(0) => (live, 0),
            Some(surplus) => {
                let end = log.reach_entries(live, surplus).unwrap_or(live);
                (end, if self.counts_refused() { 0 } else { live.weight_to(end) })
            }
        }
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
        Log::new(now)
    }

    #[inline(always)]
    fn judge(&self, log: &Log, now: Time, cost: u64) -> Verdict {
        self.judge_with(log, now, cost, 0)
    }

    fn judge_counted(&self, log: &Log, now: Time, cost: u64) -> Verdict {
        self.judge_with(log, now, cost, cost)
    }

    #[inline(always)]
    fn charge(&self, log: &Log, now: Time, cost: u64) -> Change {
        let elapsed = now.since(log.last());
        let (end, moved) = self.drops(log, elapsed);
        let same_instant = elapsed == Span::ZERO && log.newest() == Some(Span::ZERO);
        let already = if same_instant { log.weight(log.position(|age| age > Span::ZERO)) } else { 0 };
        let weight = already.saturating_add(cost).saturating_add(moved).min(MAX_DEBT);
        Change {
            last: now,
            entered: Span::ZERO,
            reset: self.reset(Some(Span::ZERO), Some(Span::ZERO)),
            dropped: log.age_before(end).map(|age| age.plus(elapsed)),
            newest: Some(Entry { age: Span::ZERO, weight }),
            corrected: None,
        }
    }

    /// The window bounds the reset, so only a debt that is too large to store counts.
    fn reset_after(&self, log: &Log, _now: Time, cost: u64) -> Span {
        let debt = log.weight(log.start()).saturating_add(cost);
        if debt > MAX_DEBT / 2 { Span::FOREVER } else { Span::ZERO }
    }

    /// Takes the cost from the newest entry, and the rest from older ones.
    fn refund<'a>(&'a self, log: &'a Log, now: Time, cost: u64) -> Option<Change> {
        let elapsed = now.since(log.last());
        let live = self.live(log, elapsed);
        let kept = log.weight(live).saturating_sub(cost);
        let newest = match log.reach_weight(live, kept).filter(|_| kept > 0) {
            Some((Entry { age, .. }, before)) => {
                Entry { age: age.plus(elapsed), weight: kept - live.weight_to(before) }
            }
            None => Entry { age: Span::FOREVER, weight: 0 },
        };
        let entered = log.entered().map(|entered| entered.plus(elapsed));
        Some(Change {
            last: now,
            entered: entered.unwrap_or(Span::FOREVER),
            reset: self.reset(Some(newest.age), entered),
            dropped: log.age_before(live).map(|age| age.plus(elapsed)),
            newest: Some(newest),
            corrected: None,
        })
    }

    /// Takes the cost from the entry of that instant.
    fn give_back<'a>(&'a self, log: &'a Log, now: Time, at: Time, cost: u64) -> Option<Change> {
        let elapsed = now.since(log.last());
        let age = log.last().since(at);
        let weight = log.weight_at(age).filter(|_| age.plus(elapsed) < self.window.span())?;
        if log.newest() == Some(age) {
            return self.refund(log, now, cost.min(weight));
        }
        let since = |age: Span| age.plus(elapsed);
        let entered = log.entered().map(since);
        Some(Change {
            last: now,
            entered: entered.unwrap_or(Span::FOREVER),
            reset: self.reset(log.newest().map(since), entered),
            dropped: log.age_before(self.live(log, elapsed)).map(since),
            newest: None,
            corrected: Some(Entry { age: since(age), weight: weight.saturating_sub(cost) }),
        })
    }

    fn overflows(&self, log: &Log, now: Time) -> bool {
        self.drops(log, now.since(log.last())).1 > 0
    }

    /// If there are too many entries, the weight of the oldest moves to the newest.
    fn moved_charges(&self, log: &Log, _: Span, now: Time) -> Option<Move> {
        let last = log.last();
        if now < last {
            return Some(Move::Step { from: last, to: now });
        }
        let elapsed = now.since(last);
        let until = last.minus(log.age_before(self.drops(log, elapsed).0)?);
        // What was charged before the oldest entry may be in this window, but a call with a shorter one dropped it.
        let oldest = log.reach_entries(self.live(log, elapsed), 1)?;
        let since = last.minus(log.age_before(oldest)?);
        Some(Move::Gather { since, until, to: now, keeps_others: true })
    }

    #[inline(always)]
    fn gauge(&self, log: &Log, now: Time) -> Gauge {
        let elapsed = now.since(log.last());
        let room = self.limit.get().saturating_sub(log.weight(self.live(log, elapsed)));
        let since = |age: Span| age.plus(elapsed);
        let entered = log.entered().map(since);
        Gauge {
            limit: self.limit.get(),
            remaining: if self.closed(entered) == Span::ZERO { room } else { 0 },
            reset: self.reset(log.newest().map(since), entered),
        }
    }

    /// The entries keep their ages.
    fn rebase<'a>(&'a self, log: &'a Log, now: Time) -> Change {
        Change {
            last: now,
            entered: log.entered().unwrap_or(Span::FOREVER),
            reset: log.reset(),
            dropped: None,
            newest: None,
            corrected: None,
        }
    }

    /// The answer depends on ages only.
    fn if_moved<T>(&self, log: &Log, _now: Time, answer: impl FnOnce(&Log, Time) -> T) -> T {
        answer(log, log.last())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::state::codec::Reader;
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
        assert_eq!(refunded.reset(), secs(1));
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
        assert_eq!(log.iter().map(|entry| entry.age).collect::<Vec<_>>(), [secs(2), secs(1), secs(0)]);
        assert_eq!(counting.judge(&log, at(5000), 1), Verdict::refuse(secs(8)));
    }

    #[test]
    fn a_refund_takes_the_newest_entries_first() {
        let mut log = log(&THREE, &[0, 3, 5]);
        log.apply(THREE.refund(&log, at(6000), 2).unwrap());
        assert_eq!(log.iter().collect::<Vec<_>>(), [Entry { age: secs(6), weight: 1 }]);
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
    fn a_charge_drops_all_entries_that_left() {
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
        log.apply(wide.charge(&log, at(20_000), 1));
        assert_eq!(log.entries(log.start()), 1);
    }

    #[test]
    fn entries_keep_their_ages_however_often_the_log_is_moved_by_millennia() {
        let mut log = log(&THREE, &[0, 3]);
        for _ in 0..100 {
            log.apply(THREE.charge(&log, Time::LATEST, 1));
            log.apply(THREE.rebase(&log, T0));
            log.apply(THREE.charge(&log, at(1000), 1));
            assert_eq!(log.iter().map(|entry| entry.age).collect::<Vec<_>>(), [secs(1), secs(0)]);
        }
    }

    #[test]
    fn a_refund_drops_the_entries_that_left_and_no_others() {
        let five = SlidingLog { limit: n(5), ..THREE };
        let mut log = log(&five, &[0, 3, 5, 6, 9]);
        log.apply(five.refund(&log, at(14_000), 1).unwrap());
        assert_eq!(log.iter().map(|entry| entry.age).collect::<Vec<_>>(), [secs(9), secs(8)]);
    }

    #[test]
    fn a_forged_change_leaves_no_entry_that_cannot_be_read_back() {
        for dropped in [None, Some(Span::FOREVER)] {
            let mut log = log(&THREE, &[0]);
            let last = T0.plus(Span::CENTURY);
            log.apply(Change { last, dropped, ..THREE.rebase(&log, last) });
            let mut bytes = Vec::new();
            log.encode(&mut bytes);
            assert!(Log::decode(&mut Reader::new(&bytes)).is_some());
            assert_eq!(log.newest(), None);
        }
    }
}
