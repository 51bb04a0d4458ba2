//! The leaky bucket as a queue: requests pour in, a steady rate drains out, and each is told when its turn comes.
//!
//! The bucket holds `capacity`; `leak` of it drain per `period`, evenly. A request is admitted if it fits on top of
//! what stands in the bucket, and waits until that has drained.
//!
//! ```text
//! RL.LEAKYBUCKET key 3 1 1000        one per second, three in the bucket
//!
//! t = 0   admitted, wait 0
//! t = 0   admitted, wait 1 s
//! t = 0   admitted, wait 2 s
//! t = 0   refused, retry in 1 s
//! ```
//!
//! `level(now) = max(0, level - (now - last) * leak / period)`, admitted if `level + cost <= capacity`.
//!
//! Source: the survey's leaky bucket (seed 001), without its drip process, and the wait of seed 002. Whoever acts
//! after the wait puts out an evenly spaced stream. When not to use it: where callers cannot wait; take a token
//! bucket, which admits the same requests and says no instead.

use super::codec::Reader;
use super::error::Error;
use super::fraction::{Fraction, divide, divide_up};
use super::words::{Request, Words};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, MOST_DEBT, Small, Verdict};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct LeakyBucket {
    /// The most that stands in the bucket.
    pub capacity: u64,
    /// What drains per period.
    pub leak: u64,
    pub period: Span,
}

/// How high the water stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Water {
    level: u64,
    /// What stands above the whole level.
    fraction: Fraction,
    last: Time,
}

/// Reads `capacity leak period` and the options.
pub fn parse<'a>(words: &mut Words<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let capacity = words.count("capacity")?;
    let leak = words.count("leak")?;
    let period = words.duration("period")?;
    words.options(request, |_, _| Ok(false))?;
    let bucket = LeakyBucket { capacity, leak, period };
    // A full bucket drains in over a century; multiplied out, so that nothing is rounded.
    if bucket.drops(capacity) > u128::from(Span::CENTURY.as_micros()) * u128::from(leak) {
        return Err(Error::TooLong);
    }
    Ok(AnyLimiter::LeakyBucket(bucket))
}

impl LeakyBucket {
    /// What stands in the bucket at `now`, in drops: `period`-ths of a request, of which `leak` drain per microsecond.
    fn standing(&self, water: &Water, now: Time) -> u128 {
        let drained = u128::from(now.since(water.last).as_micros()) * u128::from(self.leak);
        let stood = self.drops(water.level) + u128::from(water.fraction.parts(self.period.as_micros()));
        stood.saturating_sub(drained)
    }

    fn drops(&self, cost: u64) -> u128 {
        u128::from(cost) * u128::from(self.period.as_micros())
    }

    /// How long so many drops take to drain.
    fn time_for(&self, drops: u128) -> Span {
        Span::from_wide(divide_up(drops, self.leak))
    }

    fn water(&self, drops: u128, now: Time) -> Water {
        let (level, rest) = divide(drops, self.period.as_micros());
        let level = u64::try_from(level).unwrap_or(u64::MAX);
        Water { level, fraction: Fraction::of(rest, self.period.as_micros()), last: now }
    }
}

impl Limiter for LeakyBucket {
    type State = Water;

    fn span(&self) -> Span {
        self.period
    }

    fn fresh(&self, now: Time) -> Water {
        Water { level: 0, fraction: Fraction::ZERO, last: now }
    }

    fn judge(&self, water: &Water, now: Time, cost: u64) -> Verdict {
        let before = self.standing(water, now);
        let (after, most) = (before + self.drops(cost), self.drops(self.capacity));
        if after <= most {
            Verdict::Admit { wait: self.time_for(before) }
        } else if cost > self.capacity {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.time_for(after - most))
        }
    }

    fn charge(&self, water: &Water, now: Time, cost: u64) -> Water {
        self.water(self.standing(water, now) + self.drops(cost), now)
    }

    fn reset_after(&self, water: &Water, now: Time, cost: u64) -> Span {
        let standing = self.standing(water, now) + self.drops(cost);
        if standing > self.drops(MOST_DEBT) { Span::FOREVER } else { self.time_for(standing) }
    }

    fn refund<'a>(&'a self, water: &'a Water, now: Time, cost: u64) -> Option<Water> {
        Some(self.water(self.standing(water, now).saturating_sub(self.drops(cost)), now))
    }

    fn gauge(&self, water: &Water, now: Time) -> Gauge {
        let standing = self.standing(water, now);
        let (room, _) = divide(self.drops(self.capacity).saturating_sub(standing), self.period.as_micros());
        Gauge {
            limit: self.capacity,
            remaining: u64::try_from(room).unwrap_or(self.capacity),
            reset: self.time_for(standing),
        }
    }

    fn rebase<'a>(&'a self, water: &'a Water, now: Time) -> Water {
        Water { last: now, ..*water }
    }
}

impl Small for Water {
    const KIND: Kind = Kind::Water;
    const WORDS: usize = 3;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.level, self.fraction.to_bits(), self.last.as_micros(), 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Water> {
        let level = reader.word_up_to(MOST_DEBT)?;
        let fraction = Fraction::from_bits(reader.word()?);
        Some(Water { level, fraction, last: super::instant(reader)? })
    }

    fn zero() -> Water {
        Water { level: 0, fraction: Fraction::ZERO, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("level", Figure::Count(self.level));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    #[test]
    fn each_waits_for_what_stands_before_it_and_the_fourth_is_refused() {
        let bucket = LeakyBucket { capacity: 3, leak: 1, period: Span::from_millis(1000) };
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
    fn a_level_stays_a_level_when_the_capacity_or_the_rate_changes() {
        let bucket = LeakyBucket { capacity: 10, leak: 1, period: Span::from_millis(1000) };
        let water = charged(&bucket, None, T0, 8);
        assert_eq!(LeakyBucket { capacity: 20, ..bucket }.gauge(&water, T0).remaining, 12);
        // Above a lowered capacity it is debt, not cut.
        let small = LeakyBucket { capacity: 5, ..bucket };
        assert_eq!(small.gauge(&water, T0).remaining, 0);
        assert_eq!(small.judge(&water, T0, 1), Verdict::refuse(Span::from_millis(4000)));
        let fast = LeakyBucket { leak: 4, ..bucket };
        assert_eq!(fast.gauge(&water, T0).reset, Span::from_millis(2000));
    }
}
