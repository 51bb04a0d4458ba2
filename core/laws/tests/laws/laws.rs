//! The laws, each as a function that checks it.

use ratelimit_core::decide::{peek, reading, rule};
use ratelimit_core::limiter::{Limiter, Rate};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Gauge, Kind, LimitState, MAX_DEBT, Manner, Reading, Span, State, Time, Verdict};
use ratelimit_laws::Model;

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

        remaining_fits(&limiter, &state, now, before);
        retry_is_exact(&limiter, &state, now, cost, verdict, before.limit);
        reset_is_exact(&limiter, &state, now, before);
        charge_of_zero_changes_nothing(&limiter, &state, now, before);
        clock_steps_back(&limiter, &state);
        assert_eq!(encoded(&decoded::<L::State>(&encoded(&state))), encoded(&state));
        assert_eq!(model.ask(now.as_micros(), cost), verdict.admits(), "request {i} at {now:?}");

        manners(&limiter, &state, now, cost, before);
        if verdict.admits() {
            state = charged(&limiter, Some(state), now, cost);
            assert_eq!(state.last(), now);
            assert_eq!(limiter.gauge(&state, now).remaining, before.remaining - cost);
            knows_when_it_is_reset(&limiter, &state, now);
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

/// After a charge or a refund at `now`, the state computes without its limiter's parameters when it is fully reset.
pub fn knows_when_it_is_reset<L: Limiter>(limiter: &L, state: &L::State, now: Time) {
    let reset = limiter.gauge(state, now).reset;
    let until = state.until(limiter.length());
    if reset == Span::ZERO { assert!(until <= now) } else { assert_eq!(until, now.plus(reset)) }
}

pub fn remaining_fits<L: Limiter>(limiter: &L, state: &L::State, now: Time, gauge: Gauge) {
    assert!(gauge.remaining <= gauge.limit);
    if gauge.remaining > 0 {
        assert!(limiter.judge(state, now, gauge.remaining).admits());
    }
    assert!(!limiter.judge(state, now, gauge.remaining + 1).admits());
}

/// The request is admitted after the retry, and not a microsecond earlier.
pub fn retry_is_exact<L: Limiter>(
    limiter: &L,
    state: &L::State,
    now: Time,
    cost: u64,
    verdict: Verdict,
    limit: u64,
) {
    match verdict {
        Verdict::Admit { .. } => {}
        Verdict::Refuse { retry: None } => assert!(cost > limit),
        Verdict::Refuse { retry: Some(retry) } => {
            assert!(retry > Span::ZERO && cost <= limit);
            let early = Span::from_micros(retry.as_micros() - 1);
            assert!(limiter.judge(state, now.plus(retry), cost).admits());
            assert_eq!(limiter.judge(state, now.plus(early), cost), Verdict::refuse(Span::from_micros(1)));
        }
    }
}

pub fn manners<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64, before: Gauge) {
    part_is_the_remaining(limiter, state, now, cost, before);
    booking_waits_as_long_as_a_retry(limiter, state, now, cost);
    if L::State::KIND != Kind::Leases && limiter.reset_after(state, now, cost) <= Span::CENTURY {
        forced_cost_is_charged_and_refunded(limiter, state, now, cost, before);
    }
}

fn part_is_the_remaining<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64, before: Gauge) {
    let partial = rule(limiter, state, now, Span::ZERO, cost, Manner::Partial);
    let (part, granted) = partial.expect("a part is never debt");
    assert_eq!(granted, cost.min(before.remaining));
    assert_eq!(part.admits(), granted > 0);
}

fn booking_waits_as_long_as_a_retry<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) {
    let strict = limiter.judge(state, now, cost);
    for longest in [Span::ZERO, Span::from_millis(7), Span::FOREVER] {
        let manner = Manner::Reserve { longest };
        let Ok((booked, _)) = rule(limiter, state, now, Span::ZERO, cost, manner) else { continue };
        match (strict, booked) {
            (Verdict::Refuse { retry: Some(retry) }, Verdict::Admit { wait }) => {
                assert_eq!(wait, retry);
                assert!(wait <= longest);
            }
            (Verdict::Refuse { retry: Some(retry) }, Verdict::Refuse { retry: Some(sooner) }) => {
                assert_eq!(sooner, retry.minus(longest));
            }
            (strict, booked) => assert_eq!(strict, booked),
        }
    }
}

fn forced_cost_is_charged_and_refunded<L: Limiter>(
    limiter: &L,
    state: &L::State,
    now: Time,
    cost: u64,
    before: Gauge,
) {
    let forced = charged(limiter, Some(decoded(&encoded(state))), now, cost);
    let debt = limiter.gauge(&forced, now);
    knows_when_it_is_reset(limiter, &forced, now);
    assert_eq!(debt.remaining, before.remaining.saturating_sub(cost));
    assert!(debt.reset >= before.reset);
    let owed = limiter.reset_after(state, now, cost);
    assert!(owed == Span::ZERO || owed == debt.reset);
    let back = refunded(limiter, &forced, now, cost);
    knows_when_it_is_reset(limiter, &back, now);
    assert_eq!(limiter.gauge(&back, now).remaining, before.remaining, "the refund gives the cost back");
    assert!(limiter.gauge(&back, now).reset <= debt.reset);
    let full = refunded(limiter, &forced, now, MAX_DEBT);
    assert_eq!(limiter.gauge(&full, now).remaining, before.limit, "a refund fills to the limit at most");
    assert_eq!(limiter.gauge(&full, now).reset, Span::ZERO);
}

fn refunded<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> L::State {
    let mut bytes = Vec::new();
    let change = limiter.refund(state, now, cost).expect(
        "`obey` forces and refunds; the block of a limiter without refunds is as that of the log with a gap",
    );
    L::State::encode_change(&change, &mut bytes);
    applied(decoded(&encoded(state)), &bytes)
}

/// A charge of 0 brings the state up to its instant. It changes no gauge from then on.
fn charge_of_zero_changes_nothing<L: Limiter>(limiter: &L, state: &L::State, now: Time, gauge: Gauge) {
    if L::State::KIND == Kind::Leases {
        return;
    }
    let full = now.plus(gauge.reset);
    let between = now.plus(Span::from_micros(gauge.reset.as_micros() / 3));
    let settled = charged(limiter, Some(decoded(&encoded(state))), between, 0);
    for later in [between, full, full.plus(gauge.reset)] {
        assert_eq!(limiter.gauge(&settled, later), limiter.gauge(state, later));
    }
}

/// The state answers like a fresh one at the reset, and not a microsecond earlier.
pub fn reset_is_exact<L: Limiter>(limiter: &L, state: &L::State, now: Time, gauge: Gauge) {
    let then = now.plus(gauge.reset);
    let fresh = limiter.gauge(&limiter.fresh(then), then);
    assert_eq!(limiter.gauge(state, then), fresh);
    assert_eq!(fresh.remaining, gauge.limit);
    if gauge.reset > Span::ZERO {
        let early = now.plus(Span::from_micros(gauge.reset.as_micros() - 1));
        assert_eq!(limiter.gauge(state, early).reset, Span::from_micros(1));
    }
}

pub fn clock_steps_back<L: Limiter>(limiter: &L, state: &L::State) {
    let last = state.last();
    let then = limiter.gauge(state, last);
    let earliest = last.minus(then.reset);
    lagging_caller_waits_for_its_lag_too(limiter, state, earliest, then);
    let back = earliest.minus(Span::from_micros(1 + last.as_micros() % 10_000_000));
    // The state was never charged, or its reset is longer than the time since the epoch.
    if back > Time::EPOCH {
        set_back_clock_grants_nothing(limiter, state, back, then);
    }
}

/// For a caller whose clock shows `lagging`, no time passes, and its wait grows by its lag. `then` is the gauge at the
/// last charge.
fn lagging_caller_waits_for_its_lag_too<L: Limiter>(
    limiter: &L,
    state: &L::State,
    lagging: Time,
    then: Gauge,
) {
    let peek_at = |now| peek(limiter, state, now, then.remaining + 1);
    let answer = peek_at(lagging);
    assert_eq!(answer.gauge.remaining, then.remaining);
    let lag = if then.reset > Span::ZERO { state.last().since(lagging) } else { Span::ZERO };
    assert_eq!(answer.gauge.reset, then.reset.plus(lag));
    if let Verdict::Refuse { retry: Some(retry) } = answer.verdict {
        let early = Span::from_micros(retry.as_micros() - 1);
        assert!(peek_at(lagging.plus(retry)).verdict.admits());
        assert!(!peek_at(lagging.plus(early)).verdict.admits());
    }
}

/// A clock that was set back to `back` moves the state there. `then` is the gauge at the last charge.
fn set_back_clock_grants_nothing<L: Limiter>(limiter: &L, state: &L::State, back: Time, then: Gauge) {
    assert_eq!(reading(limiter, state, back), Reading::SetBack);
    let moved = rebased(limiter, state, back);
    assert_eq!(moved.last(), back);
    knows_when_it_is_reset(limiter, &moved, back);
    let gauge = limiter.gauge(&moved, back);
    assert!(gauge.remaining <= then.remaining, "a step back grants nothing");
    // A window or sub-bucket that was about to end may start again at `back`.
    let restarted = limiter.gauge(&charged(limiter, None, back, 1), back).reset;
    let longest = then.reset.plus(then.reset).max(restarted);
    assert!(gauge.reset <= longest, "a step back does not make callers wait longer");
    for cost in [0, 1, then.limit, then.limit + 1] {
        assert_eq!(
            peek(limiter, state, back, cost),
            peek(limiter, &moved, back, cost),
            "a peek answers as the moved state would"
        );
    }
}

/// The state after a charge, which is encoded and decoded as on a replica.
pub fn charged<L: Limiter>(limiter: &L, state: Option<L::State>, now: Time, cost: u64) -> L::State {
    let state = state.unwrap_or_else(|| limiter.fresh(now));
    let mut bytes = Vec::new();
    L::State::encode_change(&limiter.charge(&state, now, cost), &mut bytes);
    applied(state, &bytes)
}

/// The state that is moved to `now`, after the clock was set back.
pub fn rebased<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> L::State {
    let mut bytes = Vec::new();
    L::State::encode_change(&limiter.rebase(state, now), &mut bytes);
    applied(decoded(&encoded(state)), &bytes)
}

/// Applies an encoded change, and checks that applying it twice has the same effect.
fn applied<S: State>(mut state: S, change: &[u8]) -> S {
    let mut reader = Reader::new(change);
    let decoded = S::decode_change(&mut reader).expect("a change that was just encoded");
    assert!(reader.is_empty());
    state.apply(decoded);
    let once = encoded(&state);
    state.apply(S::decode_change(&mut Reader::new(change)).expect("the same change"));
    assert_eq!(encoded(&state), once);
    state
}

pub fn encoded<S: State>(state: &S) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

pub fn decoded<S: State>(bytes: &[u8]) -> S {
    let mut reader = Reader::new(bytes);
    let state = S::decode(&mut reader).expect("a state that was just encoded");
    assert!(reader.is_empty());
    state
}
