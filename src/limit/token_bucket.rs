//! The token bucket: tokens drip in at a steady rate, each request takes some, and what is not used is saved up.
//!
//! A full bucket holds `capacity` tokens; `refill` tokens come in per `period`, evenly: with 100 per second one
//! every 10 ms, with 3 per second one every 333.3 ms, exactly. A request that finds `cost` tokens takes them, any
//! other is refused and takes nothing.
//!
//! ```text
//! RL.TOKENBUCKET key 500 100 1000     500 at once, then 100 per second
//!
//! t = 0        500 requests   admitted, 0 left
//! t = 0        1 request      refused, retry in 10 ms
//! t = 10 ms    1 request      admitted, 0 left
//! t = 5010 ms                 full again
//! ```
//!
//! `tokens(now) = min(capacity, tokens + (now - last) * refill / period)`
//!
//! Source: Stripe's request rate limiter (seed 000), the algorithm survey (seed 001). Over any interval of length
//! t at most `capacity + t * refill / period` are admitted.
//!
//! When not to use it: where nobody may ever see more than the limit in any window of one period (a full bucket
//! gives `capacity` at once and `refill` more during the period: use a sliding window), or where requests must be
//! spaced evenly (use the leaky bucket or GCRA with a small burst).

use super::batch_bucket::BatchBucket;
use super::codec::Reader;
use super::error::Error;
use super::fraction::{Fraction, divide, divide_up};
use super::words::{Request, Words, is, once};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, MOST_DEBT, Small, Verdict};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// The most tokens the bucket holds.
    pub capacity: u64,
    /// Tokens that come in per period.
    pub refill: u64,
    pub period: Span,
}

/// How full a bucket is. Tokens are what is kept when the parameters change, so tokens are what is stored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Level {
    /// Whole tokens; negative in debt.
    tokens: i64,
    /// What has dripped in towards the next token.
    fraction: Fraction,
    last: Time,
}

/// Reads `capacity refill period [BATCH]` and the options.
pub fn parse<'a>(words: &mut Words<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let capacity = words.count("capacity")?;
    let refill = words.count("refill")?;
    let period = words.duration("period")?;
    let mut batch = None;
    words.options(request, |word, _| {
        let own = is(word, "BATCH");
        if own {
            once(&mut batch, Ok(()))?;
        }
        Ok(own)
    })?;
    // A full bucket is so many periods, of which a batch takes whole ones; multiplied out, so that nothing is rounded.
    let (full, refilled) = match batch {
        None => (capacity, refill),
        Some(()) => (capacity.div_ceil(refill), 1),
    };
    let century = u128::from(Span::CENTURY.as_micros());
    if u128::from(full) * u128::from(period.as_micros()) > century * u128::from(refilled) {
        return Err(Error::TooLong);
    }
    Ok(match batch {
        None => AnyLimiter::TokenBucket(TokenBucket { capacity, refill, period }),
        Some(()) => AnyLimiter::BatchBucket(BatchBucket { capacity, refill, period }),
    })
}

impl TokenBucket {
    /// What is missing at `now` from a full bucket, in drops: `period`-ths of a token, of which `refill` drip in per
    /// microsecond. A token is `period` of them, so everything is a whole number.
    fn missing(&self, level: &Level, now: Time) -> u128 {
        let dripped = u128::from(now.since(level.last).as_micros()) * u128::from(self.refill);
        let saved = u128::from(level.fraction.parts(self.period.as_micros()));
        // Tokens above the capacity, which was lowered, are cut; in debt there are fewer than none.
        let tokens = u64::try_from(self.capacity.cast_signed().saturating_sub(level.tokens)).unwrap_or(0);
        self.drops(tokens).saturating_sub(saved + dripped)
    }

    fn drops(&self, tokens: u64) -> u128 {
        u128::from(tokens) * u128::from(self.period.as_micros())
    }

    /// The level from which so many drops are missing.
    fn level(&self, missing: u128, now: Time) -> Level {
        let period = self.period.as_micros();
        let (tokens, rest) = divide(missing, period);
        let tokens =
            self.capacity.cast_signed().saturating_sub_unsigned(u64::try_from(tokens).unwrap_or(u64::MAX));
        match rest {
            0 => Level { tokens, fraction: Fraction::ZERO, last: now },
            // Of one more token so much is missing, and the rest of it there.
            rest => Level {
                tokens: tokens.saturating_sub(1),
                fraction: Fraction::of(period - rest, period),
                last: now,
            },
        }
    }

    /// How long so many drops take to come in.
    fn time_for(&self, drops: u128) -> Span {
        Span::from_wide(divide_up(drops, self.refill))
    }
}

impl Limiter for TokenBucket {
    type State = Level;

    fn span(&self) -> Span {
        self.period
    }

    fn fresh(&self, now: Time) -> Level {
        Level { tokens: self.capacity.cast_signed(), fraction: Fraction::ZERO, last: now }
    }

    fn judge(&self, level: &Level, now: Time, cost: u64) -> Verdict {
        let (after, most) = (self.missing(level, now) + self.drops(cost), self.drops(self.capacity));
        if after <= most {
            Verdict::ADMIT
        } else if cost > self.capacity {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.time_for(after - most))
        }
    }

    fn charge(&self, level: &Level, now: Time, cost: u64) -> Level {
        self.level(self.missing(level, now) + self.drops(cost), now)
    }

    fn reset_after(&self, level: &Level, now: Time, cost: u64) -> Span {
        let missing = self.missing(level, now) + self.drops(cost);
        if missing > self.drops(MOST_DEBT) { Span::FOREVER } else { self.time_for(missing) }
    }

    fn refund<'a>(&'a self, level: &'a Level, now: Time, cost: u64) -> Option<Level> {
        Some(self.level(self.missing(level, now).saturating_sub(self.drops(cost)), now))
    }

    fn gauge(&self, level: &Level, now: Time) -> Gauge {
        let missing = self.missing(level, now);
        let (tokens, _) = divide(self.drops(self.capacity).saturating_sub(missing), self.period.as_micros());
        Gauge {
            limit: self.capacity,
            remaining: u64::try_from(tokens).unwrap_or(self.capacity),
            reset: self.time_for(missing),
        }
    }

    fn rebase<'a>(&'a self, level: &'a Level, now: Time) -> Level {
        Level { last: now, ..*level }
    }
}

impl Small for Level {
    const KIND: Kind = Kind::Level;
    const WORDS: usize = 3;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.tokens.cast_unsigned(), self.fraction.to_bits(), self.last.as_micros(), 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Level> {
        let tokens = reader.word()?.cast_signed();
        if tokens.unsigned_abs() > MOST_DEBT {
            return None;
        }
        let fraction = Fraction::from_bits(reader.word()?);
        Some(Level { tokens, fraction, last: super::instant(reader)? })
    }

    fn zero() -> Level {
        Level { tokens: 0, fraction: Fraction::ZERO, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("tokens", Figure::Signed(self.tokens));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    const STRIPE: TokenBucket = TokenBucket { capacity: 500, refill: 100, period: Span::from_millis(1000) };

    #[test]
    fn a_burst_of_capacity_then_one_per_drip() {
        let mut level = charged(&STRIPE, None, T0, 500);
        assert_eq!(STRIPE.judge(&level, T0, 1), Verdict::refuse(Span::from_millis(10)));
        let later = T0.plus(Span::from_millis(10));
        assert_eq!(STRIPE.judge(&level, later, 1), Verdict::ADMIT);
        level = charged(&STRIPE, Some(level), later, 1);
        assert_eq!(STRIPE.gauge(&level, later).reset, Span::from_millis(5000));
    }

    #[test]
    fn three_per_second_loses_nothing_in_a_day() {
        let thirds = TokenBucket { capacity: 2, refill: 3, period: Span::from_millis(1000) };
        let mut level = charged(&thirds, None, T0, 2);
        let mut now = T0;
        for token in 1..=3 * 86_400u64 {
            // A token is there at exactly token / 3 seconds, rounded up to a microsecond.
            let due = T0.plus(Span::from_micros((token * 1_000_000).div_ceil(3)));
            assert_eq!(thirds.judge(&level, now, 1), Verdict::refuse(due.since(now)));
            now = due;
            level = charged(&thirds, Some(level), now, 1);
        }
        assert_eq!(now, T0.plus(Span::from_millis(86_400_000)));
    }

    #[test]
    fn ten_billion_bytes_per_second_count_every_byte() {
        let link =
            TokenBucket { capacity: 10_000_000_000, refill: 10_000_000_000, period: Span::from_millis(1000) };
        let level = charged(&link, None, T0, 10_000_000_000);
        let later = T0.plus(Span::from_micros(1));
        assert_eq!(link.gauge(&level, later).remaining, 10_000);
        assert_eq!(link.judge(&level, later, 10_001), Verdict::refuse(Span::from_micros(1)));
    }

    #[test]
    fn five_tokens_stay_five_when_the_capacity_grows_and_are_cut_when_it_shrinks() {
        let ten = TokenBucket { capacity: 10, refill: 1, period: Span::from_millis(1000) };
        let level = charged(&ten, None, T0, 5);
        assert_eq!(TokenBucket { capacity: 20, ..ten }.gauge(&level, T0).remaining, 5);
        assert_eq!(TokenBucket { capacity: 3, ..ten }.gauge(&level, T0).remaining, 3);
    }

    #[test]
    fn a_fraction_rounds_down_when_the_period_changes() {
        // After 2.5 s there are 2 tokens and a half; a half is 500 of 1000 parts, and 1 of 3.
        let second = TokenBucket { capacity: 10, refill: 1, period: Span::from_micros(1000) };
        let empty = charged(&second, None, T0, 10);
        let half = charged(&second, Some(empty), T0.plus(Span::from_micros(2500)), 0);
        let third = TokenBucket { period: Span::from_micros(3), ..second };
        assert_eq!(third.missing(&half, half.last), 10 * 3 - (2 * 3 + 1));
    }
}
