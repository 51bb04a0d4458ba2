//! The token bucket that is refilled in batches: `refill` tokens are added at each period's end.
//!
//! The first period starts with the first charge of a full bucket. So periods differ from key to key, and keys are not
//! all refilled at the same instant.
//!
//! ```text
//! RL.TOKENBUCKET key 5 5 1m BATCH
//!
//! t = 0      3 requests   admitted, 2 remaining; the periods end at 60 s, 120 s, ...
//! t = 59 s   3 requests   refused, retry in 1 s
//! t = 60 s                full again: the next charge starts a new first period
//! ```
//!
//! When not to use it: where callers should wait for one token only. With the continuous token bucket they do; here
//! they wait for a whole batch.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter, TooLong};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_DEBT;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Move, Small};
use crate::time::{Period, Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct BatchBucket {
    capacity: NonZeroU64,
    /// The tokens that are added at each period's end.
    refill: NonZeroU64,
    period: Period,
}

/// The tokens in a bucket. A change of parameters keeps them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Batch {
    /// Negative in debt.
    tokens: i64,
    /// The start of the period that contains `last`.
    start: Time,
    last: Time,
    /// When the bucket is full.
    until: Time,
}

impl BatchBucket {
    /// # Errors
    ///
    /// If an empty bucket takes over 100 years to fill.
    pub fn new(capacity: NonZeroU64, refill: NonZeroU64, period: Period) -> Result<BatchBucket, TooLong> {
        let periods = u128::from(capacity.get().div_ceil(refill.get()));
        let too_long = periods * u128::from(period.micros().get()) > u128::from(Span::CENTURY.as_micros());
        if too_long { Err(TooLong) } else { Ok(BatchBucket { capacity, refill, period }) }
    }

    /// The bucket at `now`, with the batches of all periods that have ended.
    fn settled(&self, batch: &Batch, now: Time) -> Batch {
        // If the period was shortened, the time before the last charge yields at most one batch.
        let start = batch.start.max(batch.last.minus(self.period.span()));
        let periods = now.since(start).as_micros() / self.period.micros();
        let tokens = i128::from(batch.tokens) + i128::from(periods) * i128::from(self.refill.get());
        if tokens >= i128::from(self.capacity.get()) {
            return self.fresh(now);
        }
        Batch {
            // This never fails: `tokens` is below the capacity and not below `batch.tokens`.
            tokens: i64::try_from(tokens).unwrap_or(batch.tokens),
            start: start.plus(Span::from_micros(periods.saturating_mul(self.period.micros().get()))),
            last: now,
            until: batch.until,
        }
    }

    /// A settled bucket, but with this number of tokens.
    fn with_tokens(&self, batch: &Batch, tokens: i64) -> Batch {
        let batch = Batch { tokens, ..*batch };
        let full = self.time_until(&batch, self.capacity.get(), batch.last);
        Batch { until: batch.last.plus(full).min(Time::HORIZON), ..batch }
    }

    /// The time from `now` until a settled bucket has `tokens`.
    fn time_until(&self, batch: &Batch, tokens: u64, now: Time) -> Span {
        let missing = u64::try_from(i128::from(tokens) - i128::from(batch.tokens)).unwrap_or(0);
        let batches = u128::from(missing.div_ceil(self.refill.get()));
        let due = batches * u128::from(self.period.micros().get());
        Span::from_wide(due.saturating_sub(u128::from(now.since(batch.start).as_micros())))
    }
}

impl Limiter for BatchBucket {
    type State = Batch;

    fn capabilities(&self) -> Capabilities {
        Capabilities { reserve: true, ..Capabilities::DEBT }
    }

    fn length(&self) -> Span {
        self.period.span()
    }

    fn fresh(&self, now: Time) -> Batch {
        Batch { tokens: self.capacity.get().cast_signed(), start: now, last: now, until: Time::EPOCH }
    }

    fn judge(&self, batch: &Batch, now: Time, cost: u64) -> Verdict {
        let batch = self.settled(batch, now);
        if i128::from(cost) <= i128::from(batch.tokens) {
            Verdict::ADMIT
        } else if cost > self.capacity.get() {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.time_until(&batch, cost, now))
        }
    }

    fn charge(&self, batch: &Batch, now: Time, cost: u64) -> Batch {
        let batch = self.settled(batch, now);
        self.with_tokens(&batch, batch.tokens.saturating_sub_unsigned(cost))
    }

    fn reset_after(&self, batch: &Batch, now: Time, cost: u64) -> Span {
        let charged = self.charge(batch, now, cost);
        let too_deep = charged.tokens.unsigned_abs() > MAX_DEBT;
        if too_deep { Span::FOREVER } else { self.time_until(&charged, self.capacity.get(), now) }
    }

    fn refund<'a>(&'a self, batch: &'a Batch, now: Time, cost: u64) -> Option<Batch> {
        let batch = self.settled(batch, now);
        let tokens = batch.tokens.saturating_add_unsigned(cost);
        let full = tokens >= self.capacity.get().cast_signed();
        Some(if full { self.fresh(now) } else { self.with_tokens(&batch, tokens) })
    }

    fn moved_charges(&self, _: &Batch, _: Span, _: Time) -> Option<Move> {
        None
    }

    fn gauge(&self, batch: &Batch, now: Time) -> Gauge {
        let batch = self.settled(batch, now);
        Gauge {
            limit: self.capacity.get(),
            remaining: u64::try_from(batch.tokens).unwrap_or(0),
            reset: self.time_until(&batch, self.capacity.get(), now),
        }
    }

    fn rebase<'a>(&'a self, batch: &'a Batch, now: Time) -> Batch {
        let start = now.minus(batch.last.since(batch.start));
        Batch { start, last: now, until: batch.until.minus(batch.last.since(now)), ..*batch }
    }
}

impl LimitState for Batch {
    fn until(&self, _: Span) -> Time {
        self.until
    }
}

impl Small for Batch {
    const KIND: Kind = Kind::Batch;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [start, last, until] = [self.start, self.last, self.until].map(Time::as_micros);
        put_words(out, [self.tokens.cast_unsigned(), start, last, until]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Batch> {
        let tokens = reader.word()?.cast_signed();
        let (start, last, until) = (reader.instant()?, reader.instant()?, reader.horizon()?);
        (tokens.unsigned_abs() <= MAX_DEBT && start <= last).then_some(Batch { tokens, start, last, until })
    }

    fn zero() -> Batch {
        Batch { tokens: 0, start: Time::EPOCH, last: Time::EPOCH, until: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("tokens", Figure::Signed(self.tokens));
        figure("period_start_us", Figure::At(self.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis, n};

    const FIVE: BatchBucket = BatchBucket { capacity: n(5), refill: n(5), period: millis(60_000) };

    #[test]
    fn a_batch_is_added_at_the_end_of_the_period_that_the_first_charge_started() {
        let batch = charged(&FIVE, None, T0, 3);
        let early = T0.plus(Span::from_millis(59_000));
        assert_eq!(FIVE.judge(&batch, early, 3), Verdict::refuse(Span::from_millis(1000)));
        assert_eq!(FIVE.gauge(&batch, T0.plus(FIVE.period.span())).remaining, 5);
        // A later charge in the same period does not move its end.
        let batch = charged(&FIVE, Some(batch), early, 2);
        assert_eq!(FIVE.judge(&batch, early, 1), Verdict::refuse(Span::from_millis(1000)));
    }

    #[test]
    fn the_first_charge_of_a_full_bucket_starts_a_new_period() {
        let batch = charged(&FIVE, None, T0, 1);
        let idle = T0.plus(Span::from_millis(90_000));
        let batch = charged(&FIVE, Some(batch), idle, 5);
        assert_eq!(FIVE.judge(&batch, idle, 1), Verdict::refuse(FIVE.period.span()));
    }

    #[test]
    fn a_small_batch_takes_several_periods_to_fill() {
        let two = BatchBucket { refill: n(2), ..FIVE };
        let batch = charged(&two, None, T0, 5);
        assert_eq!(two.gauge(&batch, T0).reset, Span::from_millis(180_000));
        assert_eq!(two.judge(&batch, T0, 3), Verdict::refuse(Span::from_millis(120_000)));
    }

    #[test]
    fn a_shortened_period_adds_at_most_one_batch_for_the_time_before_the_last_charge() {
        let one = BatchBucket { capacity: n(10), refill: n(1), period: millis(60_000) };
        let batch = charged(&one, None, T0, 9);
        let last = T0.plus(Span::from_millis(50_000));
        let batch = charged(&one, Some(batch), last, 1);
        let shorter = BatchBucket { period: millis(10_000), ..one };
        assert_eq!(shorter.gauge(&batch, last).remaining, 1);
        assert_eq!(shorter.gauge(&batch, last.plus(Span::from_millis(9_999))).remaining, 1);
        assert_eq!(shorter.gauge(&batch, last.plus(Span::from_millis(10_000))).remaining, 2);
    }
}
