//! The generic cell rate algorithm: a whole limiter in one instant.
//!
//! The state is the *theoretical arrival time*: when the next request would come if all came exactly at the rate.
//! Each admitted request pushes it one interval (`period / count`) further. A request may come early, but not by
//! more than `max_burst` intervals.
//!
//! ```text
//! RL.GCRA key 2 1 1000            one per second, 2 may come early: limit 3
//!
//!            TAT before    TAT after
//! t = 0      0 (fresh)     1 s          admitted, 2 remaining
//! t = 0      1 s           2 s          admitted, 1 remaining
//! t = 0      2 s           3 s          admitted, 0 remaining
//! t = 0      3 s           3 s          refused: 3 s + 1 s is over 0 + 3 s; retry in 1 s
//! ```
//!
//! Admitted if `max(TAT, now) + cost * interval <= now + (max_burst + 1) * interval`.
//!
//! Source: ATM Forum Traffic Management 4.0, section 4.4.2 (virtual scheduling); seeds 001 and 002. It admits what
//! a token bucket of capacity `max_burst + 1` admits, and like it over any interval of length t at most
//! `max_burst + 1 + t * count / period`. The two differ when parameters change: there tokens are kept, here the
//! arrival time is. When not to use it: where at most `count` may pass in any window of one period.

use super::codec::Reader;
use super::error::Error;
use super::fraction::{Fraction, divide, divide_up};
use super::words::{MAX_COUNT, Request, Words};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, Small, Verdict};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct Gcra {
    /// `max_burst` + 1.
    pub limit: u64,
    /// Requests per period, in the long run.
    pub count: u64,
    pub period: Span,
}

/// The theoretical arrival time, with its fraction of a microsecond.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    due: Time,
    fraction: Fraction,
    last: Time,
}

/// Reads `max_burst count period` and the options.
pub fn parse<'a>(words: &mut Words<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let limit = words.number("max_burst", 0, MAX_COUNT)? + 1;
    let count = words.count("count")?;
    let period = words.duration("period")?;
    words.options(request, |_, _| Ok(false))?;
    Gcra::of(limit, count, period).map(AnyLimiter::Gcra)
}

/// Reads redis-cell's `max_burst count period [quantity] [AT at]`, with the period in seconds: the limiter, what is
/// asked for, and when.
pub fn parse_cell(words: &mut Words<'_, '_>) -> Result<(Gcra, u64, Option<Time>), Error> {
    let limit = words.number("max_burst", 0, MAX_COUNT)? + 1;
    let count = words.count("count")?;
    let seconds = words.number("period", 1, Span::CENTURY.as_micros() / 1_000_000)?;
    let quantity = if words.is_empty() { 1 } else { words.number("quantity", 0, MAX_COUNT)? };
    let at = words.at()?;
    Ok((Gcra::of(limit, count, Span::from_millis(seconds * 1000))?, quantity, at))
}

impl Gcra {
    fn of(limit: u64, count: u64, period: Span) -> Result<Gcra, Error> {
        let gcra = Gcra { limit, count, period };
        // A full debt is worked off in over a century; multiplied out, so that nothing is rounded.
        let too_long = gcra.price(limit) > u128::from(Span::CENTURY.as_micros()) * u128::from(count);
        if too_long { Err(Error::TooLong) } else { Ok(gcra) }
    }

    /// How far the arrival time is ahead of `now`, in units of one `count`-th of a microsecond, in which a request
    /// is `period` of them: everything is a whole number.
    fn debt(&self, arrival: &Arrival, now: Time) -> u128 {
        if arrival.due < now {
            return 0;
        }
        let whole = u128::from(arrival.due.since(now).as_micros()) * u128::from(self.count);
        whole + u128::from(arrival.fraction.parts(self.count))
    }

    fn price(&self, cost: u64) -> u128 {
        u128::from(cost) * u128::from(self.period.as_micros())
    }

    /// The arrival time that is so far ahead of `now`.
    fn arrival(&self, debt: u128, now: Time) -> Arrival {
        let (whole, rest) = divide(debt, self.count);
        Arrival { due: now.plus(Span::from_wide(whole)), fraction: Fraction::of(rest, self.count), last: now }
    }

    /// How long `debt` takes to be worked off.
    fn time_for(&self, debt: u128) -> Span {
        Span::from_wide(divide_up(debt, self.count))
    }
}

impl Limiter for Gcra {
    type State = Arrival;

    fn span(&self) -> Span {
        self.period
    }

    fn fresh(&self, now: Time) -> Arrival {
        Arrival { due: now, fraction: Fraction::ZERO, last: now }
    }

    fn judge(&self, arrival: &Arrival, now: Time, cost: u64) -> Verdict {
        let (after, most) = (self.debt(arrival, now) + self.price(cost), self.price(self.limit));
        if after <= most {
            Verdict::ADMIT
        } else if cost > self.limit {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.time_for(after - most))
        }
    }

    fn charge(&self, arrival: &Arrival, now: Time, cost: u64) -> Arrival {
        self.arrival(self.debt(arrival, now) + self.price(cost), now)
    }

    fn reset_after(&self, arrival: &Arrival, now: Time, cost: u64) -> Span {
        self.time_for(self.debt(arrival, now) + self.price(cost))
    }

    fn refund<'a>(&'a self, arrival: &'a Arrival, now: Time, cost: u64) -> Option<Arrival> {
        Some(self.arrival(self.debt(arrival, now).saturating_sub(self.price(cost)), now))
    }

    fn gauge(&self, arrival: &Arrival, now: Time) -> Gauge {
        let debt = self.debt(arrival, now);
        let (room, _) = divide(self.price(self.limit).saturating_sub(debt), self.period.as_micros());
        Gauge {
            limit: self.limit,
            remaining: u64::try_from(room).unwrap_or(self.limit),
            reset: self.time_for(debt),
        }
    }

    fn rebase<'a>(&'a self, arrival: &'a Arrival, now: Time) -> Arrival {
        Arrival { due: now.plus(arrival.due.since(arrival.last)), last: now, ..*arrival }
    }
}

impl Small for Arrival {
    const KIND: Kind = Kind::Arrival;
    const WORDS: usize = 3;

    fn last(&self) -> Time {
        self.last
    }

    /// At the arrival time, rounded up.
    fn settles(&self) -> Option<Time> {
        let part = if self.fraction == Fraction::ZERO { Span::ZERO } else { Span::from_micros(1) };
        Some(self.due.plus(part))
    }

    fn words(&self) -> [u64; 4] {
        [self.due.as_micros(), self.fraction.to_bits(), self.last.as_micros(), 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Arrival> {
        let due = Time::from_micros(reader.word_up_to(super::HORIZON.as_micros())?);
        let fraction = Fraction::from_bits(reader.word()?);
        Some(Arrival { due, fraction, last: super::instant(reader)? })
    }

    fn zero() -> Arrival {
        Arrival { due: Time::default(), fraction: Fraction::ZERO, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("theoretical_arrival_us", Figure::At(self.due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    #[test]
    fn a_burst_then_one_per_interval() {
        let gcra = Gcra { limit: 3, count: 1, period: Span::from_millis(1000) };
        let arrival = charged(&gcra, None, T0, 3);
        assert_eq!(gcra.judge(&arrival, T0, 1), Verdict::refuse(Span::from_millis(1000)));
        assert_eq!(gcra.gauge(&arrival, T0).reset, Span::from_millis(3000));
        assert_eq!(gcra.judge(&arrival, T0.plus(Span::from_millis(1000)), 1), Verdict::ADMIT);
    }

    #[test]
    fn one_and_a_half_million_per_second_come_two_thirds_of_a_microsecond_apart() {
        let admitted = |limit| {
            let gcra = Gcra { limit, count: 1_500_000, period: Span::from_millis(1000) };
            let mut arrival = gcra.fresh(T0);
            let mut admitted = 0;
            for micros in 0..300_000 {
                let now = T0.plus(Span::from_micros(micros));
                while gcra.judge(&arrival, now, 1) == Verdict::ADMIT {
                    arrival = charged(&gcra, Some(arrival), now, 1);
                    admitted += 1;
                }
            }
            admitted
        };
        // A limit of 1 on a clock of whole microseconds: one each.
        assert_eq!(admitted(1), 300_000);
        // A limit of 2: two at once, then three for every two of the 299,999 us that follow.
        assert_eq!(admitted(2), 2 + 299_999 * 3 / 2);
    }

    #[test]
    fn the_arrival_time_stays_when_the_parameters_change() {
        let slow = Gcra { limit: 1, count: 1, period: Span::from_millis(1000) };
        let arrival = charged(&slow, None, T0, 1);
        let fast = Gcra { limit: 1, count: 10, period: Span::from_millis(1000) };
        assert_eq!(fast.gauge(&arrival, T0).reset, Span::from_millis(1000));
        assert_eq!(fast.judge(&arrival, T0, 1), Verdict::refuse(Span::from_millis(1000)));
    }
}
