//! The token bucket that is refilled all at once: `refill` tokens at each period's end.
//!
//! The periods are counted from the first charge of a full bucket, so they differ from key to key and nothing
//! stampedes on the clock's round numbers.
//!
//! ```text
//! RL.TOKENBUCKET key 5 5 60000 BATCH
//!
//! t = 0      3 requests   admitted, 2 left; the periods end at 60 s, 120 s, ...
//! t = 59 s   3 requests   refused, retry in 1 s
//! t = 60 s                5 tokens again, which is full: the next charge starts the periods anew
//! ```
//!
//! Source: the survey's "a token is added every t" (seed 001), with more than one token a tick. When not to use
//! it: the continuous bucket is kinder to callers, who then wait for a token and not for a batch.

use super::codec::Reader;
use super::{Figure, Gauge, Kind, Limiter, MOST_DEBT, Small, Verdict};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct BatchBucket {
    pub capacity: u64,
    /// Tokens that come in at each period's end.
    pub refill: u64,
    pub period: Span,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Batch {
    /// Negative in debt.
    tokens: i64,
    /// When the period that `last` lies in began.
    start: Time,
    last: Time,
}

impl BatchBucket {
    fn settled(&self, batch: &Batch, now: Time) -> Batch {
        // Under a shorter period than before, at most one batch is due for the time before the last charge.
        let start = batch.start.max(batch.last.minus(self.period));
        let periods = now.since(start).as_micros() / self.period.as_micros();
        let tokens = i128::from(batch.tokens) + i128::from(periods) * i128::from(self.refill);
        if tokens >= i128::from(self.capacity) {
            return self.fresh(now);
        }
        Batch {
            // Below the capacity, and not below what was stored.
            tokens: i64::try_from(tokens).unwrap_or(batch.tokens),
            start: start.plus(Span::from_micros(periods.saturating_mul(self.period.as_micros()))),
            last: now,
        }
    }

    /// When a settled bucket will have `tokens`.
    fn time_until(&self, batch: &Batch, tokens: u64, now: Time) -> Span {
        let missing = u64::try_from(i128::from(tokens) - i128::from(batch.tokens)).unwrap_or(0);
        let batches = u128::from(missing.div_ceil(self.refill));
        let due = batches * u128::from(self.period.as_micros());
        Span::from_wide(due.saturating_sub(u128::from(now.since(batch.start).as_micros())))
    }
}

impl Limiter for BatchBucket {
    type State = Batch;

    fn span(&self) -> Span {
        self.period
    }

    fn fresh(&self, now: Time) -> Batch {
        Batch { tokens: self.capacity.cast_signed(), start: now, last: now }
    }

    fn judge(&self, batch: &Batch, now: Time, cost: u64) -> Verdict {
        let batch = self.settled(batch, now);
        if i128::from(cost) <= i128::from(batch.tokens) {
            Verdict::ADMIT
        } else if cost > self.capacity {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.time_until(&batch, cost, now))
        }
    }

    fn charge(&self, batch: &Batch, now: Time, cost: u64) -> Batch {
        let batch = self.settled(batch, now);
        Batch { tokens: batch.tokens.saturating_sub_unsigned(cost), ..batch }
    }

    fn reset_after(&self, batch: &Batch, now: Time, cost: u64) -> Span {
        let charged = self.charge(batch, now, cost);
        let deep = charged.tokens.unsigned_abs() > MOST_DEBT;
        if deep { Span::FOREVER } else { self.time_until(&charged, self.capacity, now) }
    }

    fn refund<'a>(&'a self, batch: &'a Batch, now: Time, cost: u64) -> Option<Batch> {
        let batch = self.settled(batch, now);
        let tokens = batch.tokens.saturating_add_unsigned(cost);
        let full = tokens >= self.capacity.cast_signed();
        Some(if full { self.fresh(now) } else { Batch { tokens, ..batch } })
    }

    fn gauge(&self, batch: &Batch, now: Time) -> Gauge {
        let batch = self.settled(batch, now);
        Gauge {
            limit: self.capacity,
            remaining: u64::try_from(batch.tokens).unwrap_or(0),
            reset: self.time_until(&batch, self.capacity, now),
        }
    }

    fn rebase<'a>(&'a self, batch: &'a Batch, now: Time) -> Batch {
        Batch { start: now.minus(batch.last.since(batch.start)), last: now, ..*batch }
    }
}

impl Small for Batch {
    const KIND: Kind = Kind::Batch;
    const WORDS: usize = 3;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.tokens.cast_unsigned(), self.start.as_micros(), self.last.as_micros(), 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Batch> {
        let tokens = reader.word()?.cast_signed();
        let start = super::instant(reader)?;
        let last = super::instant(reader)?;
        (tokens.unsigned_abs() <= MOST_DEBT && start <= last).then_some(Batch { tokens, start, last })
    }

    fn zero() -> Batch {
        Batch { tokens: 0, start: Time::default(), last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("tokens", Figure::Signed(self.tokens));
        figure("period_start_us", Figure::At(self.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    const FIVE: BatchBucket = BatchBucket { capacity: 5, refill: 5, period: Span::from_millis(60_000) };

    #[test]
    fn a_batch_comes_at_each_periods_end_counted_from_the_first_charge() {
        let batch = charged(&FIVE, None, T0, 3);
        let early = T0.plus(Span::from_millis(59_000));
        assert_eq!(FIVE.judge(&batch, early, 3), Verdict::refuse(Span::from_millis(1000)));
        assert_eq!(FIVE.gauge(&batch, T0.plus(FIVE.period)).remaining, 5);
        // Charged later in the period, the batch still comes at its end.
        let batch = charged(&FIVE, Some(batch), early, 2);
        assert_eq!(FIVE.judge(&batch, early, 1), Verdict::refuse(Span::from_millis(1000)));
    }

    #[test]
    fn a_full_bucket_starts_its_periods_anew() {
        let batch = charged(&FIVE, None, T0, 1);
        let idle = T0.plus(Span::from_millis(90_000));
        let batch = charged(&FIVE, Some(batch), idle, 5);
        assert_eq!(FIVE.judge(&batch, idle, 1), Verdict::refuse(FIVE.period));
    }

    #[test]
    fn a_small_batch_takes_several_periods_to_fill() {
        let two = BatchBucket { refill: 2, ..FIVE };
        let batch = charged(&two, None, T0, 5);
        assert_eq!(two.gauge(&batch, T0).reset, Span::from_millis(180_000));
        assert_eq!(two.judge(&batch, T0, 3), Verdict::refuse(Span::from_millis(120_000)));
    }

    #[test]
    fn a_shorter_period_grants_at_most_one_batch_for_the_time_before_the_last_charge() {
        let one = BatchBucket { capacity: 10, refill: 1, period: Span::from_millis(60_000) };
        let batch = charged(&one, None, T0, 9);
        let last = T0.plus(Span::from_millis(50_000));
        let batch = charged(&one, Some(batch), last, 1);
        let shorter = BatchBucket { period: Span::from_millis(10_000), ..one };
        assert_eq!(shorter.gauge(&batch, last).remaining, 1);
        assert_eq!(shorter.gauge(&batch, last.plus(Span::from_millis(9_999))).remaining, 1);
        assert_eq!(shorter.gauge(&batch, last.plus(Span::from_millis(10_000))).remaining, 2);
    }
}
