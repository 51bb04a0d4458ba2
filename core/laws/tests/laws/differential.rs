//! Over a million calls from a fixed seed: every limiter decides as its model does.
//!
//! The laws check many properties on a few histories, which are new in each run. These tests check one property on many
//! histories, which are the same in each run. Parameters do not change within a history.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use ratelimit_core::limiter::{Concurrent, Limiter};
use ratelimit_core::{Span, Verdict};
use ratelimit_laws::*;

use super::T0;
use super::histories::*;

/// The calls of each limiter and mode.
const CALLS: usize = 100_000;

/// Runs `calls` on generated values, the same in each run, until it has made enough calls. `calls` returns how many it
/// made.
pub fn each<T>(values: impl Strategy<Value = T>, mut calls: impl FnMut(T) -> usize) {
    let mut runner = TestRunner::deterministic();
    let mut called = 0;
    while called < CALLS {
        called += calls(values.new_tree(&mut runner).expect("values").current());
    }
}

/// Checks that a limiter and its model decide the same on generated histories. `limiter(p, i)` is the limiter of the
/// i-th request.
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
fn a_hundred_thousand_calls_of_the_calendar() {
    agree(
        calendars(),
        |(calendar, _), _| *calendar,
        |(calendar, offset)| same_dates(calendar.limit.get(), calendar.unit, offset),
    );
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
        |(limit, ttl), i| Concurrent::plain(*limit, *ttl, &ids[i]),
        |(limit, ttl)| recent(limit, ttl.span()),
    );
}
