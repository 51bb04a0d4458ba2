//! The leaky bucket as a queue: it fills with requests and drains at a steady rate.
//!
//! The bucket holds `capacity`, and `leak` drain evenly per `period`. A request is admitted if it fits on top of the
//! bucket's level. It should then wait until that level has drained; the reply contains this wait.
//!
//! ```text
//! RL.LEAKYBUCKET key 3 1 1s        one per second, at most three in the bucket
//!
//! t = 0   admitted, wait 0
//! t = 0   admitted, wait 1 s
//! t = 0   admitted, wait 2 s
//! t = 0   refused, retry in 1 s
//! ```
//!
//! `level(now) = max(0, level - (now - last) * leak / period)`, admitted if `level + cost <= capacity`.
//!
//! Callers that act after their waits produce an evenly spaced stream.
//!
//! Source: J. S. Turner, "New directions in communications (or which way to the information age?)", IEEE Communications
//! Magazine 24(10), 1986.
//!
//! When not to use it: where callers cannot wait. The token bucket admits the same requests without a wait.

use alloc::vec::Vec;

use super::Capabilities;
use super::debt::{Debt, Debtor, Rate};
use super::fraction::{Fraction, divide};
use crate::count::MAX_DEBT;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Small};
use crate::time::{Span, Time};

/// `limit` is the capacity, `count` the leak.
pub type LeakyBucket = Debt<Water>;

/// How full the bucket is. A change of parameters keeps the level.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Water {
    /// The level, rounded down.
    level: u64,
    /// The part of the level that was rounded off.
    fraction: Fraction,
    last: Time,
    /// When the bucket is empty.
    until: Time,
}

impl Debtor for Water {
    const CAPABILITIES: Capabilities = Capabilities::DEBT;

    /// The level at `now`.
    fn debt(&self, rate: &Rate, now: Time) -> u128 {
        let before = rate.price(self.level) + u128::from(self.fraction.parts(rate.period.micros()));
        before.saturating_sub(rate.paid_in(now.since(self.last)))
    }

    fn owing(debt: u128, rate: &Rate, now: Time) -> Water {
        let (level, rest) = divide(debt, rate.period.micros());
        let level = u64::try_from(level).unwrap_or(u64::MAX);
        let fraction = Fraction::of(rest, rate.period.micros());
        Water { level, fraction, last: now, until: rate.paid_off(debt, now) }
    }

    fn moved(&self, now: Time) -> Water {
        Water { last: now, until: self.until.minus(self.last.since(now)), ..*self }
    }

    /// The time until everything ahead of the request has drained.
    fn wait(debt: u128, rate: &Rate) -> Span {
        rate.time_for(debt)
    }
}

impl LimitState for Water {
    fn until(&self, _: Span) -> Time {
        self.until
    }
}

impl Small for Water {
    const KIND: Kind = Kind::Water;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [last, until] = [self.last, self.until].map(Time::as_micros);
        put_words(out, [self.level, self.fraction.to_bits(), last, until]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Water> {
        let level = reader.word_up_to(MAX_DEBT)?;
        let fraction = Fraction::from_bits(reader.word()?);
        Some(Water { level, fraction, last: reader.instant()?, until: reader.horizon()? })
    }

    fn zero() -> Water {
        Water { level: 0, fraction: Fraction::ZERO, last: Time::EPOCH, until: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("level", Figure::Count(self.level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Verdict;
    use crate::limiter::Limiter;
    use crate::testing::{T0, charged, debt, millis};

    #[test]
    fn each_request_waits_for_those_ahead_of_it_and_the_fourth_is_refused() {
        let bucket: LeakyBucket = debt(3, 1, millis(1000));
        let mut water = bucket.fresh(T0);
        for wait in [0, 1000, 2000] {
            let admit = Verdict::Admit { wait: Span::from_millis(wait) };
            assert_eq!(bucket.judge(&water, T0, 1), admit);
            water = charged(&bucket, Some(water), T0, 1);
        }
        assert_eq!(bucket.judge(&water, T0, 1), Verdict::refuse(Span::from_millis(1000)));
        assert_eq!(bucket.gauge(&water, T0).reset, Span::from_millis(3000));
    }

    #[test]
    fn the_level_stays_when_the_capacity_or_the_rate_changes() {
        let bucket = |capacity, leak| -> LeakyBucket { debt(capacity, leak, millis(1000)) };
        let water = charged(&bucket(10, 1), None, T0, 8);
        assert_eq!(bucket(20, 1).gauge(&water, T0).remaining, 12);
        // A level above a lowered capacity is kept as debt.
        let small = bucket(5, 1);
        assert_eq!(small.gauge(&water, T0).remaining, 0);
        assert_eq!(small.judge(&water, T0, 1), Verdict::refuse(Span::from_millis(4000)));
        assert_eq!(bucket(10, 4).gauge(&water, T0).reset, Span::from_millis(2000));
    }
}
