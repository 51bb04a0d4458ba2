//! The generic cell rate algorithm (GCRA), whose state is a single instant.
//!
//! That instant is the *theoretical arrival time* (TAT): when the next request is due if all come exactly at the rate.
//! Each admitted request moves it one interval (`period / count`) into the future. A request may come early, but by at
//! most `max_burst` intervals.
//!
//! ```text
//! RL.GCRA key 2 1 1s            one per second, 2 may come early: limit 3
//!
//!            TAT before    TAT after
//! t = 0      0 (fresh)     1 s          admitted, 2 remaining
//! t = 0      1 s           2 s          admitted, 1 remaining
//! t = 0      2 s           3 s          admitted, 0 remaining
//! t = 0      3 s           3 s          refused: 3 s + 1 s is more than 0 + 3 s; retry in 1 s
//! ```
//!
//! Admitted if `max(TAT, now) + cost * interval <= now + (max_burst + 1) * interval`.
//!
//! Over any interval of length t, at most `max_burst + 1 + t * count / period` are admitted. A token bucket of capacity
//! `max_burst + 1` admits the same requests. The two differ when parameters change: the token bucket keeps its tokens,
//! GCRA keeps the arrival time.
//!
//! Source: ATM Forum Traffic Management 4.0, section 4.4.2 (virtual scheduling algorithm).
//!
//! When not to use it: where at most `count` may pass in any window of one period. Use a sliding window there.

use alloc::vec::Vec;

use super::Capabilities;
use super::debt::{Debt, Debtor, Rate};
use super::fraction::{Fraction, divide};
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Small};
use crate::time::{Span, Time};

/// `limit` is `max_burst` + 1.
pub type Gcra = Debt<Arrival>;

/// The theoretical arrival time, with its fraction of a microsecond. A change of parameters keeps it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    due: Time,
    fraction: Fraction,
    last: Time,
}

impl Arrival {
    /// An arrival time of whole microseconds.
    pub(super) fn due_at(due: Time, last: Time) -> Arrival {
        Arrival { due, fraction: Fraction::ZERO, last }
    }

    /// In whole microseconds.
    pub(super) fn rounded_up(&self) -> Time {
        if self.fraction > Fraction::ZERO { self.due.plus(Span::from_micros(1)) } else { self.due }
    }
}

impl Debtor for Arrival {
    const CAPABILITIES: Capabilities = Capabilities { reserve: true, ..Capabilities::DEBT };

    /// How far the arrival time is ahead of `now`.
    fn debt(&self, rate: &Rate, now: Time) -> u128 {
        if self.due < now {
            return 0;
        }
        rate.paid_in(self.due.since(now)) + u128::from(self.fraction.parts(rate.count))
    }

    fn owing(debt: u128, rate: &Rate, now: Time) -> Arrival {
        let (whole, rest) = divide(debt, rate.count);
        Arrival { due: now.plus(Span::from_wide(whole)), fraction: Fraction::of(rest, rate.count), last: now }
    }

    fn moved(&self, now: Time) -> Arrival {
        Arrival { due: now.plus(self.due.since(self.last)), last: now, ..*self }
    }
}

impl LimitState for Arrival {
    /// The arrival time, rounded up.
    fn until(&self, _: Span) -> Time {
        let due = self.rounded_up();
        if due > self.last { due } else { Time::EPOCH }
    }
}

impl Small for Arrival {
    const KIND: Kind = Kind::Arrival;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.due.as_micros(), self.fraction.to_bits(), self.last.as_micros()]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Arrival> {
        let due = reader.horizon()?;
        let fraction = Fraction::from_bits(reader.word()?);
        Some(Arrival { due, fraction, last: reader.instant()? })
    }

    fn zero() -> Arrival {
        Arrival { due: Time::EPOCH, fraction: Fraction::ZERO, last: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("theoretical_arrival_us", Figure::At(self.due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Verdict;
    use crate::limiter::Limiter;
    use crate::testing::{T0, charged, debt, millis};

    #[test]
    fn a_burst_then_one_per_interval() {
        let gcra: Gcra = debt(3, 1, millis(1000));
        let arrival = charged(&gcra, None, T0, 3);
        assert_eq!(gcra.judge(&arrival, T0, 1), Verdict::refuse(Span::from_millis(1000)));
        assert_eq!(gcra.gauge(&arrival, T0).reset, Span::from_millis(3000));
        assert_eq!(gcra.judge(&arrival, T0.plus(Span::from_millis(1000)), 1), Verdict::ADMIT);
    }

    #[test]
    fn one_and_a_half_million_per_second_come_two_thirds_of_a_microsecond_apart() {
        let admitted = |limit| {
            let gcra: Gcra = debt(limit, 1_500_000, millis(1000));
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
        // With a limit of 1, each microsecond of the clock admits one.
        assert_eq!(admitted(1), 300_000);
        // With a limit of 2, two are admitted at once, then three per two microseconds for 299,999 us.
        assert_eq!(admitted(2), 2 + 299_999 * 3 / 2);
    }

    #[test]
    fn the_arrival_time_stays_when_the_parameters_change() {
        let slow: Gcra = debt(1, 1, millis(1000));
        let arrival = charged(&slow, None, T0, 1);
        let fast: Gcra = debt(1, 10, millis(1000));
        assert_eq!(fast.gauge(&arrival, T0).reset, Span::from_millis(1000));
        assert_eq!(fast.judge(&arrival, T0, 1), Verdict::refuse(Span::from_millis(1000)));
    }
}
