//! The gate: one request per interval, without bursts.
//!
//! ```text
//! RL.UNIFORM bob:tickets 10s
//!
//! 11:48.791   admitted; the gate opens again at 11:58.791
//! 11:55.574   refused, retry in 3.217 s
//! 12:05.094   admitted
//! ```
//!
//! Source: <https://redis.io/glossary/rate-limiting/>.
//!
//! When not to use it: where callers should be able to save requests for a burst. Use a bucket.

use alloc::vec::Vec;

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Small};
use crate::time::{Period, Span, Time};

/// The gate's parameter.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    /// The time between two requests.
    pub interval: Period,
}

/// When a request last passed the gate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gate {
    /// [`NEVER`] if no request has passed. Later than `last` if requests are booked.
    passed: Time,
    last: Time,
}

impl Uniform {
    /// When the gate opens for the next request.
    fn opens(self, gate: &Gate) -> Time {
        if gate.passed == NEVER { NEVER } else { gate.passed.plus(self.interval.span()) }
    }
}

impl Limiter for Uniform {
    type State = Gate;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            force: true,
            reserve: true,
            refund: true,
            block: true,
            one_each: true,
            ..Capabilities::NONE
        }
    }

    fn length(&self) -> Span {
        self.interval.span()
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

    /// A cost of n passes n times, one interval apart.
    fn charge(&self, gate: &Gate, now: Time, cost: u64) -> Gate {
        let Some(further) = cost.checked_sub(1) else {
            return Gate { last: now, ..*gate };
        };
        let booked = Span::from_wide(u128::from(further) * u128::from(self.interval.micros().get()));
        Gate { passed: self.opens(gate).max(now).plus(booked), last: now }
    }

    fn reset_after(&self, gate: &Gate, now: Time, cost: u64) -> Span {
        let wait = u128::from(self.opens(gate).since(now).as_micros());
        Span::from_wide(wait + u128::from(cost) * u128::from(self.interval.micros().get()))
    }

    /// Each refunded passage lets the gate open one interval earlier.
    fn refund<'a>(&'a self, gate: &'a Gate, now: Time, cost: u64) -> Option<Gate> {
        let earlier = Span::from_wide(u128::from(cost) * u128::from(self.interval.micros().get()));
        Some(Gate { passed: gate.passed.minus(earlier), last: now })
    }

    fn gauge(&self, gate: &Gate, now: Time) -> Gauge {
        let reset = self.opens(gate).since(now);
        Gauge { limit: 1, remaining: u64::from(reset == Span::ZERO), reset }
    }

    fn rebase<'a>(&'a self, gate: &'a Gate, now: Time) -> Gate {
        let passed = match gate.passed {
            NEVER => NEVER,
            passed if passed >= gate.last => now.plus(passed.since(gate.last)),
            // The epoch stands for never, so a passage at or before it moves to just after it.
            passed => now.minus(gate.last.since(passed)).max(Time::from_micros(1)),
        };
        Gate { passed, last: now }
    }
}

/// The passage of a gate that no request has passed.
const NEVER: Time = Time::EPOCH;

impl LimitState for Gate {
    fn until(&self, interval: Span) -> Time {
        let opens = if self.passed == NEVER { NEVER } else { self.passed.plus(interval) };
        if opens > self.last { opens } else { Time::EPOCH }
    }
}

impl Small for Gate {
    const KIND: Kind = Kind::Gate;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.passed.as_micros(), self.last.as_micros()]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Gate> {
        Some(Gate { passed: reader.horizon()?, last: reader.instant()? })
    }

    fn zero() -> Gate {
        Gate { passed: NEVER, last: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("passed_us", Figure::At(self.passed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis};

    #[test]
    fn the_gate_opens_exactly_one_interval_after_the_last_passage() {
        let uniform = Uniform { interval: millis(10_000) };
        let gate = charged(&uniform, None, T0, 1);
        let early = T0.plus(Span::from_micros(9_999_999));
        assert_eq!(uniform.judge(&gate, early, 1), Verdict::refuse(Span::from_micros(1)));
        assert_eq!(uniform.judge(&gate, T0.plus(uniform.interval.span()), 1), Verdict::ADMIT);
        assert_eq!(uniform.judge(&gate, T0, 2), Verdict::NEVER);
    }

    #[test]
    fn a_charge_of_nothing_only_passes_the_time() {
        let uniform = Uniform { interval: millis(10_000) };
        let (gate, later) = (charged(&uniform, None, T0, 1), T0.plus(Span::from_millis(1)));
        assert_eq!(charged(&uniform, Some(gate), later, 0), Gate { last: later, ..gate });
    }

    #[test]
    fn an_interval_may_last_a_century() {
        let uniform = Uniform { interval: Period::of(Span::CENTURY).unwrap() };
        assert_eq!(uniform.judge(&uniform.fresh(T0), T0, 1), Verdict::ADMIT);
        let gate = charged(&uniform, None, T0, 1);
        assert_eq!(uniform.judge(&gate, T0, 1), Verdict::refuse(Span::CENTURY));
    }

    #[test]
    fn a_changed_interval_counts_from_the_same_passage() {
        let gate = charged(&Uniform { interval: millis(10_000) }, None, T0, 1);
        let shorter = Uniform { interval: millis(2000) };
        assert_eq!(shorter.gauge(&gate, T0.plus(Span::from_millis(500))).reset, Span::from_millis(1500));
    }
}
