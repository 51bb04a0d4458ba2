//! The worker-utilization load shedder: the longer the machines are overloaded, the more of what is not critical is
//! thrown out, slowly, and as slowly let in again.
//!
//! Callers report how busy the workers are, from 0 to 1. The shed amount s moves in a line: up by at most 1 per
//! `ramp` while utilization is above `bad`, down by at most that while it is below `good`, and in between it holds.
//! It rests at `-delay/ramp`, below zero, so that nothing is shed for the first `delay` of trouble. Of `n` tiers
//! the least important is shed first: tier i with the chance `clamp(n*s - (i - 1), 0, 1)`.
//!
//! ```text
//! utilization 1.0 held, delay 28 s, ramp 120 s
//!
//!   1 |                         ________   everything after 148 s
//!   s |                    .
//!   0 |          .                         nothing for 28 s
//!     | .   28 s
//! ```
//!
//! Source: <https://stripe.com/blog/rate-limiters> (worker utilization load shedder), whose constants are the defaults. When not to use
//! it: to limit one caller; it protects the machines from all of them.
//!
//! The amount is an `f64`. It is added to once a report, with an error of at most 2^-53 of its range of `delay/ramp`
//! to 1, and clamped at both ends: a million reports err by less than a billionth, and it decides by chance anyway.

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

#[derive(Clone, Copy, Debug)]
pub struct Shed {
    /// Below it, shedding recedes.
    good: f64,
    /// Above it, shedding grows.
    bad: f64,
    delay: Period,
    ramp: Period,
    tier: Tier,
}

/// The tier that asks: number `tier` of `of`, the first is the least important.
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

    /// `None` if there is no such tier.
    pub fn new(tier: NonZeroU64, of: NonZeroU64) -> Option<Tier> {
        (tier <= of).then_some(Tier { tier, of })
    }
}

impl Shed {
    /// `None` if the thresholds are not 0 <= `good` <= `bad` < 1.
    pub fn new(good: f64, bad: f64, delay: Period, ramp: Period, tier: Tier) -> Option<Shed> {
        let ordered = 0.0 <= good && good <= bad && bad < 1.0;
        ordered.then_some(Shed { good, bad, delay, ramp, tier })
    }

    /// The amount of a key that nobody has reported to.
    pub fn fresh(&self, now: Time) -> Amount {
        Amount { amount: self.rest(), last: now }
    }

    /// The amount after a report. A clock that stepped back means that no time passed, then and when it has caught up;
    /// one that was set back for good, that time begins anew.
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

    /// The chance with which the asking tier is to be shed.
    pub fn chance(&self, amount: &Amount) -> f64 {
        let Tier { tier, of } = self.tier;
        (of.get() as f64 * amount.amount - (tier.get() - 1) as f64).clamp(0.0, 1.0)
    }

    /// After so long without a report the shedder is at rest again.
    pub fn silence(&self) -> Span {
        self.delay.span().plus(self.ramp.span())
    }

    fn rest(&self) -> f64 {
        -ratio(self.delay.span(), self.ramp)
    }

    /// From -1 to 1: how fast the amount moves, as a part of 1 per `ramp`.
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

    /// The chance after reports every 4 s from `from` to `to` seconds.
    fn hold(shed: &Shed, amount: &mut Amount, from: u64, to: u64, utilization: f64) -> f64 {
        for second in (from..=to).step_by(4) {
            *amount = shed.report(amount, T0.plus(Span::from_millis(second * 1000)), utilization);
        }
        shed.chance(amount)
    }

    #[test]
    fn nothing_is_shed_for_28_s_everything_after_148_s_and_the_way_back_is_as_slow() {
        let shed = shed(Tier::ONLY);
        let mut amount = shed.fresh(T0);
        assert!(hold(&shed, &mut amount, 0, 28, 1.0) < 1e-9);
        assert!((hold(&shed, &mut amount, 32, 88, 1.0) - 0.5).abs() < 1e-9);
        assert!((hold(&shed, &mut amount, 92, 148, 1.0) - 1.0).abs() < 1e-9);
        // In the dead zone it holds; at 0.35 it recedes at half the speed.
        assert!((hold(&shed, &mut amount, 152, 400, 0.75) - 1.0).abs() < 1e-9);
        assert!((hold(&shed, &mut amount, 404, 520, 0.35) - 0.5).abs() < 1e-9);
        assert!(hold(&shed, &mut amount, 524, 640, 0.35) < 1e-9);
    }

    #[test]
    fn the_least_important_tier_goes_first() {
        let half = Amount { amount: 0.5, last: T0 };
        let chances = [1, 2, 3, 4].map(|tier| shed(Tier::new(n(tier), n(4)).unwrap()).chance(&half));
        assert_eq!(chances.map(|chance| chance > 0.5), [true, true, false, false]);
    }

    #[test]
    fn silence_and_steps_back_of_the_clock() {
        let shed = shed(Tier::ONLY);
        let full = Amount { amount: 1.0, last: T0 };
        let at = |seconds: u64| T0.plus(Span::from_millis(seconds * 1000));
        assert_eq!(shed.report(&full, at(148), 1.0), shed.fresh(at(148)));
        // A report's slope holds for the delay at most.
        assert!((shed.report(&full, at(100), 0.0).amount - (1.0 - 28.0 / 120.0)).abs() < 1e-9);
        // No time passes twice for two callers of whom one lags.
        assert_eq!(shed.report(&full, T0.minus(Span::from_millis(5000)), 0.0), full);
        assert_eq!(shed.report(&full, T0.minus(Span::from_millis(148_000)), 0.0), full);
        let back = T0.minus(Span::from_millis(148_001));
        assert_eq!(shed.report(&full, back, 0.0), Amount { amount: 1.0, last: back });
    }

    #[test]
    fn thresholds_out_of_order_make_no_shedder() {
        for (good, bad) in [(0.9, 0.8), (0.7, 1.0), (-0.1, 0.8), (f64::NAN, 0.8)] {
            assert!(Shed::new(good, bad, millis(1), millis(1), Tier::ONLY).is_none(), "{good} {bad}");
        }
        assert!(Tier::new(n(3), n(2)).is_none());
    }
}
