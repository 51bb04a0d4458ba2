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
//! Source: Stripe's worker utilization load shedder (seed 000), whose constants are the defaults. When not to use
//! it: to limit one caller; it protects the machines from all of them.
//!
//! The amount is an `f64`. It is added to once a report, with an error of at most 2^-53 of its range of `delay/ramp`
//! to 1, and clamped at both ends: a million reports err by less than a billionth, and it decides by chance anyway.

#![allow(
    clippy::cast_precision_loss,
    reason = "counts and durations are below 2^53, which an f64 holds exactly"
)]

use super::codec::Reader;
use super::error::Error;
use super::words::{MAX_COUNT, Words, is, once};
use super::{Figure, Kind, Small};
use crate::time::{Span, Time};

#[derive(Clone, Copy, Debug)]
pub struct Shed {
    /// Below it, shedding recedes.
    good: f64,
    /// Above it, shedding grows.
    bad: f64,
    delay: Span,
    ramp: Span,
    /// The tier that asks, from 1, of so many.
    tier: (u64, u64),
}

/// The shed amount as of the last report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Amount {
    amount: f64,
    last: Time,
}

/// Reads `utilization` and the options.
pub fn parse(words: &mut Words<'_, '_>) -> Result<(Shed, f64, Option<Time>), Error> {
    let utilization = words.real()?.clamp(0.0, 1.0);
    let (mut good, mut bad, mut delay, mut ramp, mut tier) = (None, None, None, None, None);
    let at = words.options_and_at(|word, words| {
        if is(word, "GOOD") {
            once(&mut good, words.real())?;
        } else if is(word, "BAD") {
            once(&mut bad, words.real())?;
        } else if is(word, "DELAY") {
            once(&mut delay, words.duration("DELAY"))?;
        } else if is(word, "RAMP") {
            once(&mut ramp, words.duration("RAMP"))?;
        } else if is(word, "TIER") {
            once(&mut tier, parse_tier(words))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    let (good, bad) = (good.unwrap_or(0.7), bad.unwrap_or(0.8));
    if !(0.0 <= good && good <= bad && bad < 1.0) {
        return Err(Error::Utilization);
    }
    let delay = delay.unwrap_or(Span::from_millis(28_000));
    let ramp = ramp.unwrap_or(Span::from_millis(120_000));
    Ok((Shed { good, bad, delay, ramp, tier: tier.unwrap_or((1, 1)) }, utilization, at))
}

/// Reads `i OF n`.
fn parse_tier(words: &mut Words<'_, '_>) -> Result<(u64, u64), Error> {
    let tier = words.count("TIER")?;
    if !is(words.word()?, "OF") {
        return Err(Error::Syntax);
    }
    let of = words.count("OF")?;
    if tier > of { Err(Error::OutOfRange { name: "TIER", min: 1, max: of }) } else { Ok((tier, of)) }
}

impl Shed {
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
        let step = ratio(quiet.min(self.delay), self.ramp) * self.slope(utilization);
        Amount { amount: (amount.amount + step).clamp(self.rest(), 1.0), last: now }
    }

    /// The chance with which the asking tier is to be shed.
    pub fn chance(&self, amount: &Amount) -> f64 {
        let (tier, of) = self.tier;
        (of as f64 * amount.amount - (tier - 1) as f64).clamp(0.0, 1.0)
    }

    /// After so long without a report the shedder is at rest again.
    pub fn silence(&self) -> Span {
        self.delay.plus(self.ramp)
    }

    fn rest(&self) -> f64 {
        -ratio(self.delay, self.ramp)
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

fn ratio(part: Span, whole: Span) -> f64 {
    part.as_micros() as f64 / whole.as_micros() as f64
}

impl Small for Amount {
    const KIND: Kind = Kind::Amount;
    const WORDS: usize = 2;

    fn last(&self) -> Time {
        self.last
    }

    fn words(&self) -> [u64; 4] {
        [self.amount.to_bits(), self.last.as_micros(), 0, 0]
    }

    fn from_reader(reader: &mut Reader<'_>) -> Option<Amount> {
        let amount =
            Some(f64::from_bits(reader.word()?)).filter(|amount| amount.abs() <= MAX_COUNT as f64)?;
        Some(Amount { amount, last: super::instant(reader)? })
    }

    fn zero() -> Amount {
        Amount { amount: 0.0, last: Time::default() }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("shed_amount", Figure::Real(self.amount));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Bounds;
    use crate::limit::laws::T0;

    fn shed(options: &str) -> Shed {
        let line = format!("1 {options}");
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        parse(&mut Words::new(&words, Bounds { leases: 1, log_entries: 1 })).unwrap().0
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
        let shed = shed("");
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
        let chances = [1, 2, 3, 4].map(|tier| shed(&format!("TIER {tier} OF 4")).chance(&half));
        assert_eq!(chances.map(|chance| chance > 0.5), [true, true, false, false]);
    }

    #[test]
    fn silence_and_steps_back_of_the_clock() {
        let shed = shed("");
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
    fn thresholds_out_of_order_are_an_error() {
        for options in ["GOOD 0.9", "BAD 1", "GOOD -0.1", "GOOD nan"] {
            let line = format!("1 {options}");
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert!(
                parse(&mut Words::new(&words, Bounds { leases: 1, log_entries: 1 })).is_err(),
                "{options}"
            );
        }
    }
}
