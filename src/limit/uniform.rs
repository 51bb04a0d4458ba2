//! The gate: one request per interval, whatever came before.
//!
//! ```text
//! RL.UNIFORM bob:tickets 10000
//!
//! 11:48.791   admitted; the gate opens again at 11:58.791
//! 11:55.574   refused, retry in 3.217 s
//! 12:05.094   admitted
//! ```
//!
//! Source: the uniform rate limiter of Redis' strategies (seed 004). When not to use it: where callers should be able
//! to save up and burst; that is a bucket.

use super::codec::Reader;
use super::error::Error;
use super::words::{Request, Words};
use super::{AnyLimiter, Figure, Gauge, Kind, Limiter, Small, Verdict};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    pub interval: Span,
}

/// When the gate was last passed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gate {
    /// The epoch, before which nobody asks, if never; ahead of `last` if passages are booked.
    passed: Time,
    last: Time,
}

/// Reads `interval` and the options.
pub fn parse<'a>(words: &mut Words<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let interval = words.duration("interval")?;
    words.options(request, |_, _| Ok(false))?;
    Ok(AnyLimiter::Uniform(Uniform { interval }))
}

impl Uniform {
    /// When the gate opens.
    fn opens(self, gate: &Gate) -> Time {
        if gate.passed == NEVER { NEVER } else { gate.passed.plus(self.interval) }
    }
}

impl Limiter for Uniform {
    type State = Gate;

    fn span(&self) -> Span {
        self.interval
    }

    fn fresh(&self, now: Time) -> Gate {
        Gate { passed: NEVER, last: now }
    }

    fn judge(&self, gate: &Gate, now: Time, cost: u64) -> Verdict {
        let opens = self.opens(gate);
        if cost > 1 {
            Verdict::NEVER
        } else if now >= opens {
            Verdict::ADMIT
        } else {
            Verdict::refuse(opens.since(now))
        }
    }

    /// A cost of n passes n times, each an interval after the one before.
    fn charge(&self, gate: &Gate, now: Time, cost: u64) -> Gate {
        let Some(more) = cost.checked_sub(1) else {
            return Gate { last: now, ..*gate };
        };
        let booked = Span::from_wide(u128::from(more) * u128::from(self.interval.as_micros()));
        Gate { passed: self.opens(gate).max(now).plus(booked), last: now }
    }

    fn reset_after(&self, gate: &Gate, now: Time, cost: u64) -> Span {
        let wait = u128::from(self.opens(gate).since(now).as_micros());
        Span::from_wide(wait + u128::from(cost) * u128::from(self.interval.as_micros()))
    }

    /// Each passage that is given back brings the opening an interval nearer.
    fn refund<'a>(&'a self, gate: &'a Gate, now: Time, cost: u64) -> Option<Gate> {
        let nearer = Span::from_wide(u128::from(cost) * u128::from(self.interval.as_micros()));
        Some(Gate { passed: gate.passed.minus(nearer), last: now })
    }

    fn gauge(&self, gate: &Gate, now: Time) -> Gauge {
        let reset = self.opens(gate).since(now);
        Gauge { limit: 1, remaining: u64::from(reset == Span::ZERO), reset }
    }

    fn rebase<'a>(&'a self, gate: &'a Gate, now: Time) -> Gate {
        let passed = match gate.passed {
            NEVER => NEVER,
            passed if passed >= gate.last => now.plus(passed.since(gate.last)),
            // A passage before the epoch is still one.
            passed => now.minus(gate.last.since(passed)).max(Time::from_micros(1)),
        };
        Gate { passed, last: now }
    }
}

/// A passage that never was.
const NEVER: Time = Time::from_micros(0);

impl Small for Gate {
    const KIND: Kind = Kind::Gate;
    const WORDS: usize = 2;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.passed.as_micros(), self.last.as_micros(), 0, 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Gate> {
        let passed = Time::from_micros(reader.word_up_to(super::HORIZON.as_micros())?);
        Some(Gate { passed, last: super::instant(reader)? })
    }

    fn zero() -> Gate {
        Gate { passed: NEVER, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("passed_us", Figure::At(self.passed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::laws::{T0, charged};

    #[test]
    fn the_gate_opens_at_exactly_last_and_interval() {
        let uniform = Uniform { interval: Span::from_millis(10_000) };
        let gate = charged(&uniform, None, T0, 1);
        let early = T0.plus(Span::from_micros(9_999_999));
        assert_eq!(uniform.judge(&gate, early, 1), Verdict::refuse(Span::from_micros(1)));
        assert_eq!(uniform.judge(&gate, T0.plus(uniform.interval), 1), Verdict::ADMIT);
        assert_eq!(uniform.judge(&gate, T0, 2), Verdict::NEVER);
    }

    #[test]
    fn a_century_is_an_interval_like_any_other() {
        let uniform = Uniform { interval: Span::CENTURY };
        assert_eq!(uniform.judge(&uniform.fresh(T0), T0, 1), Verdict::ADMIT);
        let gate = charged(&uniform, None, T0, 1);
        assert_eq!(uniform.judge(&gate, T0, 1), Verdict::refuse(Span::CENTURY));
    }

    #[test]
    fn another_interval_counts_from_the_same_passage() {
        let gate = charged(&Uniform { interval: Span::from_millis(10_000) }, None, T0, 1);
        let shorter = Uniform { interval: Span::from_millis(2000) };
        assert_eq!(shorter.gauge(&gate, T0.plus(Span::from_millis(500))).reset, Span::from_millis(1500));
    }
}
