//! A million calls from a fixed seed: every limiter decides as its model does.
//!
//! The laws ask much of few histories, other ones each time; this asks one thing of many, the same ones each time. A
//! history's parameters stay. `SMOOTH` and `SHED` reckon in floating point: they must be within a microsecond, and a
//! billionth, of what their models say in rational numbers.

use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use ratelimit_core::limiter::{Amount, Concurrent, Limiter};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{AnyLimiter, Span, State, Time, Verdict};
use ratelimit_language::{Arguments, Bounds, Request, find, shed};
use ratelimit_laws::*;

use super::T0;
use super::histories::*;

/// Of each limiter and mode; thirteen of them.
const CALLS: usize = 100_000;

/// The same values each time.
fn each<T>(values: impl Strategy<Value = T>, mut calls: impl FnMut(T) -> usize) {
    let mut runner = TestRunner::deterministic();
    let mut called = 0;
    while called < CALLS {
        called += calls(values.new_tree(&mut runner).expect("values").current());
    }
}

/// Charges, by way of the bytes that replicas get.
fn charge<L: Limiter>(limiter: &L, state: &mut L::State, now: Time, cost: u64) {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.charge(state, now, cost), &mut change);
    state.apply(L::State::decode_change(&mut Reader::new(&change)).expect("a change"));
}

/// Runs histories through a limiter and its model. `limiter(p, i)` is the one that the i-th request names.
fn agree<P: Clone + std::fmt::Debug, L: Limiter, M: Model>(
    parameters: impl Strategy<Value = (P, Span, u64)>,
    limiter: impl Fn(&P, usize) -> L,
    model: impl Fn(P) -> M,
) {
    let mut admitted = 0;
    each(with_history(parameters), |(parameters, steps)| {
        let mut model = model(parameters.clone());
        let mut now = T0;
        let mut state = limiter(&parameters, 0).fresh(now);
        for (i, (wait, cost)) in steps.iter().enumerate() {
            now = now.plus(Span::from_micros(*wait));
            let limiter = limiter(&parameters, i);
            let verdict = limiter.judge(&state, now, *cost);
            let expected = model.ask(now.as_micros(), *cost);
            assert_eq!(verdict.admits(), expected, "request {i} of {steps:?} under {parameters:?}");
            let counts = limiter.capabilities().counts_refused && verdict != Verdict::NEVER;
            if verdict.admits() || counts {
                charge(&limiter, &mut state, now, *cost);
            }
            admitted += usize::from(verdict.admits());
        }
        steps.len()
    });
    assert!(admitted > CALLS / 10, "{admitted} were admitted");
}

#[test]
fn a_hundred_thousand_calls_of_the_token_bucket() {
    agree(token_buckets(), |bucket, _| *bucket, |bucket| continuous(*bucket.rate()));
}

#[test]
fn a_hundred_thousand_calls_of_the_batch_bucket() {
    agree(batch_buckets(), |(bucket, _), _| *bucket, |(_, rate)| batches(rate));
}

#[test]
fn a_hundred_thousand_calls_of_the_leaky_bucket() {
    agree(leaky_buckets(), |bucket, _| *bucket, |bucket| water(*bucket.rate()));
}

#[test]
fn a_hundred_thousand_calls_of_gcra() {
    agree(gcras(), |gcra, _| *gcra, |gcra| arrivals(*gcra.rate()));
}

#[test]
fn a_hundred_thousand_calls_of_the_fixed_window() {
    agree(fixed_windows(), |window, _| *window, opened);
    agree(aligned_windows(), |window, _| *window, same_window);
}

#[test]
fn a_hundred_thousand_calls_of_the_sliding_window() {
    agree(sliding_windows(), |window, _| *window, overlapping);
    agree(
        windows_of_buckets(),
        |(buckets, _), _| *buckets,
        |(_, (limit, window, part))| recent_parts(limit, window, part),
    );
}

#[test]
fn a_hundred_thousand_calls_of_the_log() {
    agree(logs_of_any_kind(), |log, _| *log, entries);
}

#[test]
fn a_hundred_thousand_calls_of_the_gate() {
    agree(uniforms(), |uniform, _| *uniform, |uniform| recent(1, uniform.interval.span()));
}

#[test]
fn a_hundred_thousand_calls_of_leases() {
    let ids: Vec<_> = (0..100usize).map(usize::to_be_bytes).collect();
    agree(
        leases(),
        |(limit, ttl), i| Concurrent { limit: *limit, ttl: *ttl, id: &ids[i] },
        |(limit, ttl)| recent(limit, ttl.span()),
    );
}

/// Guava's two limiters: stored permits that cost nothing, or more the more there are.
struct Guava {
    interval: BigRational,
    /// What a stored permit costs more, for each that is stored above the threshold.
    slope: BigRational,
    threshold: BigRational,
    max: BigRational,
    cool_down: BigRational,
    warm: bool,
    stored: BigRational,
    next_free: BigRational,
}

impl Guava {
    /// The wait in microseconds.
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
            self.sum(&self.stored) - self.sum(&(&self.stored - &taken))
        } else {
            Zero::zero()
        };
        self.next_free += price + (ratio(permits) - &taken) * &self.interval;
        self.stored -= taken;
        wait
    }

    /// What so many stored permits cost in all, the cheapest first.
    fn sum(&self, permits: &BigRational) -> BigRational {
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
        let mut line = format!("{permits} {period} BURST {length}");
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
            line = format!("{permits} {period} WARMUP {length} COLDFACTOR {factor}");
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
        let mut words = Arguments::new(&words, Bounds { leases: 1, log_entries: 1 });
        let row = find(b"SMOOTH").expect("a limiter");
        match (row.parse)(&mut words, &mut Request::default()).expect("good parameters") {
            AnyLimiter::Bursty(smooth) => same_waits(&smooth, &mut guava, &steps),
            AnyLimiter::Warming(smooth) => same_waits(&smooth, &mut guava, &steps),
            _ => panic!("not SMOOTH"),
        }
        steps.len()
    });
}

fn same_waits<L: Limiter>(smooth: &L, guava: &mut Guava, steps: &[Step]) {
    let mut now = T0;
    let mut state = smooth.fresh(now);
    for (wait, cost) in steps {
        now = now.plus(Span::from_micros(*wait));
        let Verdict::Admit { wait } = smooth.judge(&state, now, *cost) else { panic!("nothing is refused") };
        let exact = guava.acquire(now.as_micros(), *cost).to_f64().expect("a number");
        let told = wait.as_micros().to_f64().expect("a number");
        // Rounded up, and what is smaller than the error of the sums is nothing.
        assert!((-0.01..1.0).contains(&(told - exact)), "{told} instead of {exact}");
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
                    "{:.2} GOOD {:.2} BAD {:.2} DELAY {delay} RAMP {ramp} TIER 2 OF 3",
                    part(*busy).to_f64().expect("a number"),
                    part(good).to_f64().expect("a number"),
                    part(bad).to_f64().expect("a number"),
                );
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let mut words = Arguments::new(&words, Bounds { leases: 1, log_entries: 1 });
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
