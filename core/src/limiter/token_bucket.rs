//! The token bucket: tokens are added at a steady rate, each request takes some, and unused tokens are saved.
//!
//! A full bucket holds `capacity` tokens, and `refill` tokens are added evenly per `period`. With 100 per second, one
//! is added every 10 ms; with 3 per second, exactly every third of a second. A request takes `cost` tokens if the
//! bucket holds them. Otherwise it is refused and takes nothing.
//!
//! ```text
//! RL.TOKENBUCKET key 500 100 1s     500 at once, then 100 per second
//!
//! t = 0        500 requests   admitted, 0 remaining
//! t = 0        1 request      refused, retry in 10 ms
//! t = 10 ms    1 request      admitted, 0 remaining
//! t = 5010 ms                 full again
//! ```
//!
//! `tokens(now) = min(capacity, tokens + (now - last) * refill / period)`
//!
//! Over any interval of length t, at most `capacity + t * refill / period` are admitted.
//!
//! Source: Stripe's request rate limiter, <https://stripe.com/blog/rate-limiters>.
//!
//! When not to use it:
//!
//! - Where no window of one period may exceed the limit: a full bucket admits `capacity` at once and `refill` more in
//!   the period. Use a sliding window.
//! - Where requests must be spaced evenly: use the leaky bucket, or GCRA with a small burst.

use alloc::vec::Vec;

use super::Capabilities;
use super::debt::{Debt, Debtor, Rate};
use super::fraction::{Fraction, divide};
use crate::count::MAX_DEBT;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Small};
use crate::time::{Span, Time};

/// `limit` is the capacity, `count` the refill.
pub type TokenBucket = Debt<Level>;

/// The tokens in a bucket. A change of parameters keeps them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Level {
    /// Whole tokens; negative in debt.
    tokens: i64,
    /// The part of the next token that was already added.
    fraction: Fraction,
    last: Time,
    /// When the bucket is full.
    until: Time,
}

impl Debtor for Level {
    const CAPABILITIES: Capabilities = Capabilities { reserve: true, ..Capabilities::DEBT };

    /// The tokens that are missing from a full bucket.
    fn debt(&self, rate: &Rate, now: Time) -> u128 {
        let saved = u128::from(self.fraction.parts(rate.period.micros()));
        let missing = rate.limit.get().cast_signed().saturating_sub(self.tokens);
        // If the capacity was lowered below the tokens, none are missing.
        let missing = rate.price(u64::try_from(missing).unwrap_or(0));
        missing.saturating_sub(saved + rate.paid_in(now.since(self.last)))
    }

    fn owing(debt: u128, rate: &Rate, now: Time) -> Level {
        let period = rate.period.micros();
        let (whole, rest) = divide(debt, period);
        let whole = u64::try_from(whole).unwrap_or(u64::MAX);
        let tokens = rate.limit.get().cast_signed().saturating_sub_unsigned(whole);
        let (tokens, fraction) = match rest {
            0 => (tokens, Fraction::ZERO),
            // Of one more token, `rest` is missing, and the other part was already added.
            rest => (tokens.saturating_sub(1), Fraction::of(period.get() - rest, period)),
        };
        Level { tokens, fraction, last: now, until: rate.paid_off(debt, now) }
    }

    fn moved(&self, now: Time) -> Level {
        Level { last: now, until: self.until.minus(self.last.since(now)), ..*self }
    }
}

impl LimitState for Level {
    fn until(&self, _: Span) -> Time {
        self.until
    }
}

impl Small for Level {
    const KIND: Kind = Kind::Level;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [last, until] = [self.last, self.until].map(Time::as_micros);
        put_words(out, [self.tokens.cast_unsigned(), self.fraction.to_bits(), last, until]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Level> {
        let tokens = reader.word()?.cast_signed();
        if tokens.unsigned_abs() > MAX_DEBT {
            return None;
        }
        let fraction = Fraction::from_bits(reader.word()?);
        Some(Level { tokens, fraction, last: reader.instant()?, until: reader.horizon()? })
    }

    fn zero() -> Level {
        Level { tokens: 0, fraction: Fraction::ZERO, last: Time::EPOCH, until: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("tokens", Figure::Signed(self.tokens));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Verdict;
    use crate::limiter::Limiter;
    use crate::testing::{T0, charged, debt, millis};
    use crate::time::Period;

    #[test]
    fn a_burst_of_the_capacity_then_one_request_per_token() {
        let stripe: TokenBucket = debt(500, 100, millis(1000));
        let mut level = charged(&stripe, None, T0, 500);
        assert_eq!(stripe.judge(&level, T0, 1), Verdict::refuse(Span::from_millis(10)));
        let later = T0.plus(Span::from_millis(10));
        assert_eq!(stripe.judge(&level, later, 1), Verdict::ADMIT);
        level = charged(&stripe, Some(level), later, 1);
        assert_eq!(stripe.gauge(&level, later).reset, Span::from_millis(5000));
    }

    #[test]
    fn three_per_second_lose_nothing_to_rounding_in_a_day() {
        let thirds: TokenBucket = debt(2, 3, millis(1000));
        let mut level = charged(&thirds, None, T0, 2);
        let mut now = T0;
        for token in 1..=3 * 86_400u64 {
            // Each token is added at exactly token / 3 seconds, rounded up to a microsecond.
            let due = T0.plus(Span::from_micros((token * 1_000_000).div_ceil(3)));
            assert_eq!(thirds.judge(&level, now, 1), Verdict::refuse(due.since(now)));
            now = due;
            level = charged(&thirds, Some(level), now, 1);
        }
        assert_eq!(now, T0.plus(Span::from_millis(86_400_000)));
    }

    #[test]
    fn ten_billion_bytes_per_second_count_every_byte() {
        let link: TokenBucket = debt(10_000_000_000, 10_000_000_000, millis(1000));
        let level = charged(&link, None, T0, 10_000_000_000);
        let later = T0.plus(Span::from_micros(1));
        assert_eq!(link.gauge(&level, later).remaining, 10_000);
        assert_eq!(link.judge(&level, later, 10_001), Verdict::refuse(Span::from_micros(1)));
    }

    #[test]
    fn five_tokens_stay_five_when_the_capacity_grows_and_are_cut_when_it_shrinks() {
        let bucket = |capacity| -> TokenBucket { debt(capacity, 1, millis(1000)) };
        let level = charged(&bucket(10), None, T0, 5);
        assert_eq!(bucket(20).gauge(&level, T0).remaining, 5);
        assert_eq!(bucket(3).gauge(&level, T0).remaining, 3);
    }

    #[test]
    fn a_fraction_rounds_down_when_the_period_changes() {
        // After 2.5 ms the bucket holds two and a half tokens. A half is 500 of 1000 parts, but only 1 of 3.
        let bucket = |micros| -> TokenBucket { debt(10, 1, Period::of(Span::from_micros(micros)).unwrap()) };
        let empty = charged(&bucket(1000), None, T0, 10);
        let half = charged(&bucket(1000), Some(empty), T0.plus(Span::from_micros(2500)), 0);
        assert_eq!(half.debt(bucket(3).rate(), half.last), 10 * 3 - (2 * 3 + 1));
    }
}
