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
use super::words::{MAX_COUNT, Request, Words, is, once};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, Small, Verdict};
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
    /// The level at `now` in units of one `period`-th of a token, in which `refill` of them drip in per
    /// microsecond and a token is `period` of them: everything is a whole number.
    fn drops(&self, level: &Level, now: Time) -> i128 {
        let dripped = u128::from(now.since(level.last).as_micros()) * u128::from(self.refill);
        let saved = i128::from(level.tokens) * self.drops_per_token()
            + i128::from(level.fraction.parts(self.period.as_micros()));
        saved.saturating_add_unsigned(dripped).min(self.full())
    }

    fn drops_per_token(&self) -> i128 {
        i128::from(self.period.as_micros())
    }

    fn full(&self) -> i128 {
        i128::from(self.capacity) * self.drops_per_token()
    }

    fn price(&self, cost: u64) -> i128 {
        i128::from(cost) * self.drops_per_token()
    }

    /// So many drops in whole tokens, rounded down, and what is left over.
    fn tokens(&self, drops: i128) -> (i64, u64) {
        let period = self.period.as_micros();
        let (tokens, rest) = divide(drops.unsigned_abs(), period);
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        match (drops < 0, rest) {
            (false, rest) => (tokens, rest),
            (true, 0) => (-tokens, 0),
            (true, rest) => (-tokens - 1, period - rest),
        }
    }

    /// How long it takes for `missing` drops to come in.
    fn time_for(&self, missing: i128) -> Span {
        Span::from_wide(divide_up(u128::try_from(missing).unwrap_or(0), self.refill))
    }
}

impl Limiter for TokenBucket {
    type State = Level;

    fn fresh(&self, now: Time) -> Level {
        Level { tokens: self.capacity.cast_signed(), fraction: Fraction::ZERO, last: now }
    }

    fn judge(&self, level: &Level, now: Time, cost: u64) -> Verdict {
        let missing = self.price(cost) - self.drops(level, now);
        if missing <= 0 {
            Verdict::ADMIT
        } else if cost > self.capacity {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.time_for(missing))
        }
    }

    fn charge(&self, level: &Level, now: Time, cost: u64) -> Level {
        let left = self.drops(level, now) - self.price(cost);
        let (tokens, rest) = self.tokens(left);
        Level { tokens, fraction: Fraction::of(rest, self.period.as_micros()), last: now }
    }

    fn gauge(&self, level: &Level, now: Time) -> Gauge {
        let drops = self.drops(level, now);
        Gauge {
            limit: self.capacity,
            remaining: u64::try_from(self.tokens(drops).0).unwrap_or(0),
            reset: self.time_for(self.full() - drops),
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
        if tokens.unsigned_abs() > MAX_COUNT {
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
        assert_eq!(third.drops(&half, half.last), 2 * 3 + 1);
    }
}
