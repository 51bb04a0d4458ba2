//! The laws on a history.

use ratelimit_core::limiter::{Limiter, Rate};
use ratelimit_core::{Span, State, Time};
use ratelimit_laws::{Case, Model, charged, copy, knows_its_end, reads_clock};

use super::T0;
use super::histories::Step;

/// Checks all laws on a history. `limiter(i)` is the limiter of the i-th request. `promise(t)` is the most that may be
/// admitted in an interval of `t` microseconds.
pub fn obey<L: Limiter>(
    limiter: impl Fn(usize) -> L,
    mut model: impl Model,
    steps: &[Step],
    promise: impl Fn(u64) -> u128,
) {
    let mut now = T0;
    let mut state = limiter(usize::MAX).fresh(now);
    let mut admitted: Vec<(u64, u64)> = Vec::new();
    for (i, (wait, cost)) in steps.iter().copied().enumerate() {
        now = now.plus(Span::from_micros(wait));
        let limiter = limiter(i);
        let before = limiter.gauge(&state, now);
        let verdict = limiter.judge(&state, now, cost);

        Case::of(&limiter, &state, now).obeys(cost);
        clock_steps_back(&limiter, &state);
        copy(&state);
        assert_eq!(model.ask(now.as_micros(), cost), verdict.admits(), "request {i} at {now:?}");

        if verdict.admits() {
            state = charged(&limiter, &state, now, cost);
            assert_eq!(state.last(), now);
            assert_eq!(limiter.gauge(&state, now).remaining, before.remaining - cost);
            knows_its_end(&limiter, &state, now);
            admitted.push((now.as_micros(), cost));
        }
    }
    for (i, (from, _)) in admitted.iter().enumerate() {
        let mut sum = 0u128;
        for (to, cost) in &admitted[i..] {
            sum += u128::from(*cost);
            assert!(sum <= promise(to - from), "{sum} in {} us", to - from);
        }
    }
}

/// The most that a bucket of this rate admits in an interval.
pub fn steady(rate: &Rate, micros: u64) -> u128 {
    u128::from(rate.limit.get())
        + u128::from(micros) * u128::from(rate.count.get()) / u128::from(rate.period.micros().get())
}

/// The laws of a caller whose clock lags as far as it can, and of one whose clock was set back further.
pub fn clock_steps_back<L: Limiter>(limiter: &L, state: &L::State) {
    let last = state.last();
    let then = limiter.gauge(state, last);
    let earliest = last.minus(then.reset);
    let (now, moved) = reads_clock(limiter, state, earliest, then.remaining + 1);
    assert!(now == last && moved.is_none());
    let back = earliest.minus(Span::from_micros(1 + last.as_micros() % 10_000_000));
    // The state was never charged, or its reset is longer than the time since the epoch.
    if back > Time::EPOCH {
        assert!(reads_clock(limiter, state, back, 1).1.is_some());
    }
}
