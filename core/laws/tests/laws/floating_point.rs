//! `SMOOTH` and `SHED` on histories that are the same in each run.
//!
//! These limiters compute in floating point, and their models in rational numbers. A wait of `SMOOTH` may differ by a
//! microsecond from the model's, and a probability of `SHED` by a billionth.

use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use proptest::prelude::*;

use ratelimit_core::limiter::{Amount, Limiter};
use ratelimit_core::{AnyLimiter, Span, State, Verdict};
use ratelimit_language::{Arguments, Bounds, Request, find, shed};
use ratelimit_laws::{charge, ratio};

use super::T0;
use super::differential::each;
use super::histories::Step;

/// Guava's two limiters. Times are in microseconds.
struct Guava {
    interval: BigRational,
    /// How much the time for a permit grows with each permit that is stored above the threshold.
    slope: BigRational,
    threshold: BigRational,
    max: BigRational,
    cool_down: BigRational,
    warm: bool,
    stored: BigRational,
    next_free: BigRational,
}

impl Guava {
    /// Takes the permits, and returns the wait.
    fn acquire(&mut self, now: u64, permits: u64) -> BigRational {
        let now = ratio(now);
        if now > self.next_free {
            let since = &now - &self.next_free;
            self.stored = (&self.stored + since / &self.cool_down).min(self.max.clone());
            self.next_free = now.clone();
        }
        let wait = &self.next_free - now;
        let taken = self.stored.clone().min(ratio(permits));
        let price = if self.warm {
            self.price(&self.stored) - self.price(&(&self.stored - &taken))
        } else {
            Zero::zero()
        };
        self.next_free += price + (ratio(permits) - &taken) * &self.interval;
        self.stored -= taken;
        wait
    }

    /// The time that the lowest `permits` stored permits cost.
    fn price(&self, permits: &BigRational) -> BigRational {
        let above = (permits - &self.threshold).max(BigRational::zero());
        permits * &self.interval + &above * &above * &self.slope / ratio(2)
    }
}

#[test]
fn a_hundred_thousand_calls_of_the_smooth_limiter() {
    let parameters = (1..2000u64, 1..5000u64, 0..5000u64, prop_oneof![Just(None), (1..50u64).prop_map(Some)]);
    let histories = prop::collection::vec((0..3_000_000u64, 1..30u64), 1..80);
    each((parameters, histories), |((permits, period, length, factor), steps)| {
        let (interval, length_us) = (ratio(period * 1000) / ratio(permits), ratio(length * 1000));
        let mut line = format!("{permits} {period}ms BURST {length}ms");
        let mut guava = Guava {
            max: &length_us / &interval,
            cool_down: interval.clone(),
            slope: Zero::zero(),
            threshold: Zero::zero(),
            interval,
            warm: false,
            stored: Zero::zero(),
            next_free: ratio(T0.as_micros()),
        };
        if let Some(factor) = factor.filter(|_| length > 0) {
            line = format!("{permits} {period}ms WARMUP {length}ms COLDFACTOR {factor}");
            let interval = &guava.interval;
            guava.threshold = &length_us / interval / ratio(2);
            let width = ratio(2) * &length_us / (interval * ratio(1 + factor));
            guava.slope = interval * ratio(factor - 1) / &width;
            guava.max = &guava.threshold + width;
            guava.cool_down = length_us / &guava.max;
            guava.warm = true;
        }
        guava.stored = guava.max.clone();
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut words = Arguments::new(&words, Bounds { leases: 1, log_entries: 1, ..Bounds::DEFAULT });
        let row = find(b"SMOOTH").expect("a limiter");
        match (row.parse)(&mut words, &mut Request::default()).expect("good parameters") {
            AnyLimiter::Bursty(smooth) => same_waits(&smooth, &mut guava, &steps),
            AnyLimiter::Warming(smooth) => same_waits(&smooth, &mut guava, &steps),
            _ => panic!("not SMOOTH"),
        }
        steps.len()
    });
}

/// Checks that the limiter's waits are the model's, rounded up.
fn same_waits<L: Limiter>(smooth: &L, guava: &mut Guava, steps: &[Step]) {
    let mut now = T0;
    let mut state = smooth.fresh(now);
    for (wait, cost) in steps {
        now = now.plus(Span::from_micros(*wait));
        let Verdict::Admit { wait } = smooth.judge(&state, now, *cost) else { panic!("nothing is refused") };
        let exact = guava.acquire(now.as_micros(), *cost).to_f64().expect("a number");
        let rounded = wait.as_micros().to_f64().expect("a number");
        // The limiter ignores a fraction of a microsecond that a rounding error could explain.
        assert!((-0.01..1.0).contains(&(rounded - exact)), "{rounded} instead of {exact}");
        charge(smooth, &mut state, now, *cost);
    }
}

#[test]
fn a_hundred_thousand_reports_to_the_shedder() {
    let reports = prop::collection::vec((0..40_000_000u64, 0..=100u64), 1..80);
    each(
        (1..60_000u64, 1..200_000u64, 1..=70u64, 70..100u64, reports),
        |(delay, ramp, good, bad, reports)| {
            let part = |hundredths: u64| ratio(hundredths) / ratio(100);
            let rest = -ratio(delay) / ratio(ramp);
            let mut amount = rest.clone();
            let mut now = T0;
            let mut state = None;
            for (wait, busy) in &reports {
                now = now.plus(Span::from_micros(*wait));
                let line = format!(
                    "{:.2} GOOD {:.2} BAD {:.2} DELAY {delay}ms RAMP {ramp}ms TIER 2 OF 3",
                    part(*busy).to_f64().expect("a number"),
                    part(good).to_f64().expect("a number"),
                    part(bad).to_f64().expect("a number"),
                );
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let mut words =
                    Arguments::new(&words, Bounds { leases: 1, log_entries: 1, ..Bounds::DEFAULT });
                let report = shed(&mut words).expect("good parameters");
                let before = state.unwrap_or_else(|| report.shed.fresh(now));
                let after = report.shed.report(&before, now, report.utilization);
                state = Some(after);

                let quiet = now.since(Amount::last(&before)).as_micros();
                let slope = if *busy < good {
                    part(*busy) / part(good) - BigRational::one()
                } else if *busy > bad {
                    (part(*busy) - part(bad)) / (BigRational::one() - part(bad))
                } else {
                    Zero::zero()
                };
                if quiet >= (delay + ramp) * 1000 {
                    amount = rest.clone();
                } else {
                    let moved = &amount + slope * ratio(quiet.min(delay * 1000)) / ratio(ramp * 1000);
                    amount = moved.clamp(rest.clone(), BigRational::one());
                }
                let chance = (ratio(3) * &amount - ratio(1)).clamp(Zero::zero(), One::one());
                let chance = chance.to_f64().expect("a number");
                assert!(
                    (report.shed.chance(&after) - chance).abs() < 1e-9,
                    "{} instead of {chance}",
                    report.shed.chance(&after)
                );
            }
            reports.len()
        },
    );
}
