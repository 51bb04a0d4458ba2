//! The worker-utilization load shedder: the longer workers are overloaded, the more requests it sheds, the least
//! important first.
//!
//! Callers report the workers' utilization, from 0 to 1. While it is above `bad`, the shed amount `s` rises by at most
//! 1 per `ramp`. While it is below `good`, `s` falls by at most 1 per `ramp`. In between, `s` stays.
//!
//! At rest `s` is `-delay/ramp`, below zero. So nothing is shed in the first `delay` of an overload. Of `n` tiers, tier
//! `i` is shed with probability `clamp(n*s - (i - 1), 0, 1)`, and tier 1 is the least important.
//!
//! ```text
//! utilization 1.0, delay 28 s, ramp 120 s
//!
//!   1 |                         ________   everything is shed after 148 s
//!   s |                    .
//!   0 |          .                         nothing is shed for 28 s
//!     | .   28 s
//! ```
//!
//! Source: <https://stripe.com/blog/rate-limiters> (worker utilization load shedder). Its constants are the defaults.
//!
//! When not to use it: to limit one caller. It protects workers from the load of all callers.
//!
//! The amount is an `f64`. Each report adds to it, with an error of at most 2^-53 of its range from `-delay/ramp` to 1,
//! and clamps it. So the error of a million reports is below a billionth of that range.

#![allow(
    clippy::cast_precision_loss,
    reason = "counts and durations are below 2^53, which an f64 holds exactly"
)]

use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::count::MAX_COUNT;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, Small};
use crate::time::{Period, Span, Time};

/// The load shedder's parameters, and the tier of the request.
#[derive(Clone, Copy, Debug)]
pub struct Shed {
    /// The utilization below which the shed amount falls.
    good: f64,
    /// The utilization above which the shed amount rises.
    bad: f64,
    /// How long an overload lasts before anything is shed.
    delay: Period,
    /// The time in which the shed amount rises from 0 to 1.
    ramp: Period,
    tier: Tier,
}

/// Tier number `tier` of `of`. Tier 1 is the least important.
#[derive(Clone, Copy, Debug)]
pub struct Tier {
    tier: NonZeroU64,
    of: NonZeroU64,
}

/// The shed amount as of the last report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Amount {
    amount: f64,
    last: Time,
}

impl Tier {
    pub const ONLY: Tier = Tier { tier: NonZeroU64::MIN, of: NonZeroU64::MIN };

    /// `None` if `tier` is greater than `of`.
    pub fn new(tier: NonZeroU64, of: NonZeroU64) -> Option<Tier> {
        (tier <= of).then_some(Tier { tier, of })
    }
}

impl Shed {
    /// `None` unless 0 <= `good` <= `bad` < 1.
    pub fn new(good: f64, bad: f64, delay: Period, ramp: Period, tier: Tier) -> Option<Shed> {
        let ordered = 0.0 <= good && good <= bad && bad < 1.0;
        ordered.then_some(Shed { good, bad, delay, ramp, tier })
    }

    /// The amount of a missing key.
    pub fn fresh(&self, now: Time) -> Amount {
        Amount { amount: self.rest(), last: now }
    }

    /// The amount after a report of this utilization, from 0 to 1.
    ///
    /// If `now` is before the last report, no time has passed. If it is before it by more than
    /// [`silence`](Self::silence), the clock was set back, and time continues from `now`.
    pub fn report(&self, amount: &Amount, now: Time, utilization: f64) -> Amount {
        if now < amount.last {
            let set_back = amount.last.since(now) > self.silence();
            return Amount { last: if set_back { now } else { amount.last }, ..*amount };
        }
        let quiet = now.since(amount.last);
        if quiet >= self.silence() {
            return self.fresh(now);
        }
        let step = ratio(quiet.min(self.delay.span()), self.ramp) * self.slope(utilization);
        Amount { amount: (amount.amount + step).clamp(self.rest(), 1.0), last: now }
    }

    /// The probability with which a request of this tier is shed.
    pub fn chance(&self, amount: &Amount) -> f64 {
        let Tier { tier, of } = self.tier;
        (of.get() as f64 * amount.amount - (tier.get() - 1) as f64).clamp(0.0, 1.0)
    }

    /// The time without a report after which the shedder is at rest.
    pub fn silence(&self) -> Span {
        self.delay.span().plus(self.ramp.span())
    }

    /// The amount at rest.
    fn rest(&self) -> f64 {
        -ratio(self.delay.span(), self.ramp)
    }

    /// How fast the amount changes per `ramp`, from -1 to 1.
    fn slope(&self, utilization: f64) -> f64 {
        if utilization < self.good {
            utilization / self.good - 1.0
        } else if utilization > self.bad {
            (utilization - self.bad) / (1.0 - self.bad)
        } else {
            0.0
        }
    }
}

fn ratio(part: Span, whole: Period) -> f64 {
    part.as_micros() as f64 / whole.micros().get() as f64
}

impl Small for Amount {
    const KIND: Kind = Kind::Amount;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.amount.to_bits(), self.last.as_micros()]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Amount> {
        let amount =
            Some(f64::from_bits(reader.word()?)).filter(|amount| amount.abs() <= MAX_COUNT as f64)?;
        Some(Amount { amount, last: reader.instant()? })
    }

    fn zero() -> Amount {
        Amount { amount: 0.0, last: Time::EPOCH }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("shed_amount", Figure::Real(self.amount));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, millis, n};

    fn shed(tier: Tier) -> Shed {
        Shed::new(0.7, 0.8, millis(28_000), millis(120_000), tier).unwrap()
    }

    /// The probability after reports every 4 s from second `from` to second `to`.
    fn hold(shed: &Shed, amount: &mut Amount, from: u64, to: u64, utilization: f64) -> f64 {
        for second in (from..=to).step_by(4) {
            *amount = shed.report(amount, T0.plus(Span::from_millis(second * 1000)), utilization);
        }
        shed.chance(amount)
    }

    #[test]
    fn nothing_is_shed_for_28_s_everything_after_148_s_and_shedding_ends_as_slowly() {
        let shed = shed(Tier::ONLY);
        let mut amount = shed.fresh(T0);
        assert!(hold(&shed, &mut amount, 0, 28, 1.0) < 1e-9);
        assert!((hold(&shed, &mut amount, 32, 88, 1.0) - 0.5).abs() < 1e-9);
        assert!((hold(&shed, &mut amount, 92, 148, 1.0) - 1.0).abs() < 1e-9);
        // Between the thresholds the amount stays. At 0.35 it falls at half the speed.
        assert!((hold(&shed, &mut amount, 152, 400, 0.75) - 1.0).abs() < 1e-9);
        assert!((hold(&shed, &mut amount, 404, 520, 0.35) - 0.5).abs() < 1e-9);
        assert!(hold(&shed, &mut amount, 524, 640, 0.35) < 1e-9);
    }

    #[test]
    fn the_least_important_tier_is_shed_first() {
        let half = Amount { amount: 0.5, last: T0 };
        let chances = [1, 2, 3, 4].map(|tier| shed(Tier::new(n(tier), n(4)).unwrap()).chance(&half));
        assert_eq!(chances.map(|chance| chance > 0.5), [true, true, false, false]);
    }

    #[test]
    fn silence_resets_the_amount_and_a_step_back_of_the_clock_does_not_change_it() {
        let shed = shed(Tier::ONLY);
        let full = Amount { amount: 1.0, last: T0 };
        let at = |seconds: u64| T0.plus(Span::from_millis(seconds * 1000));
        assert_eq!(shed.report(&full, at(148), 1.0), shed.fresh(at(148)));
        // A report counts for at most the delay.
        assert!((shed.report(&full, at(100), 0.0).amount - (1.0 - 28.0 / 120.0)).abs() < 1e-9);
        // Two callers, one of which lags, do not make time pass twice.
        assert_eq!(shed.report(&full, T0.minus(Span::from_millis(5000)), 0.0), full);
        assert_eq!(shed.report(&full, T0.minus(Span::from_millis(148_000)), 0.0), full);
        let back = T0.minus(Span::from_millis(148_001));
        assert_eq!(shed.report(&full, back, 0.0), Amount { amount: 1.0, last: back });
    }

    #[test]
    fn thresholds_that_are_out_of_order_are_rejected() {
        for (good, bad) in [(0.9, 0.8), (0.7, 1.0), (-0.1, 0.8), (f64::NAN, 0.8)] {
            assert!(Shed::new(good, bad, millis(1), millis(1), Tier::ONLY).is_none(), "{good} {bad}");
        }
        assert!(Tier::new(n(3), n(2)).is_none());
    }
}
