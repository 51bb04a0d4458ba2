//! What every limiter must obey, whatever its algorithm, on random histories; and that it admits what a model
//! admits which is slow, keeps everything, and is obviously right.
//!
//! | law | does not apply to |
//! |---|---|
//! | `remaining` fits, one more does not; a charge lowers it by its cost | the latter: a log with a gap |
//! | a refusal's retry is honest, and not a microsecond too long | |
//! | at the reset the state answers like a fresh one, and not before | |
//! | time passing in one step or in two is the same | leases: a charge of nothing would be a lease |
//! | a step back of the clock grants nothing, and nobody waits longer than twice the reset | |
//! | encoding and decoding is identity; decoding never panics, nor does what was decoded | |
//! | a state says without parameters when it is fully reset | |
//! | the manners: part, force, booking, refund | leases, which are renewed and released instead; logs that count refusals |
//! | over every interval no more is admitted than promised | |
//! | admissions equal the rational model's | |
//!
//! `SMOOTH` and `SHED` are under none of them: the one refuses nobody and means something else by limit and remaining,
//! the other decides by chance. Their files have the sources' traces instead.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use proptest::prelude::*;

mod differential;
mod every_form;
mod histories;
mod one_key;
mod simulation;

use ratelimit_core::decide::{peek, reading, rule};
use ratelimit_core::limiter::{Concurrent, Limiter};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{
    Gauge, Kind, LimitState, MAX_COUNT, MAX_DEBT, Manner, Reading, Span, State, Time, Verdict, with_limiter,
    with_state,
};
use ratelimit_language::{Arguments, Bounds, CATALOG, Request};
use ratelimit_laws::*;

use histories::*;

/// The start of an hour, in 2023.
pub const T0: Time = Time::from_micros(1_700_002_800_000_000);

/// The state after a charge, by way of the bytes that replicas get.
pub fn charged<L: Limiter>(limiter: &L, state: Option<L::State>, now: Time, cost: u64) -> L::State {
    let state = state.unwrap_or_else(|| limiter.fresh(now));
    let mut bytes = Vec::new();
    L::State::encode_change(&limiter.charge(&state, now, cost), &mut bytes);
    applied(state, &bytes)
}

fn rebased<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> L::State {
    let mut bytes = Vec::new();
    L::State::encode_change(&limiter.rebase(state, now), &mut bytes);
    applied(decoded(&encoded(state)), &bytes)
}

fn applied<S: State>(mut state: S, change: &[u8]) -> S {
    let mut reader = Reader::new(change);
    let decoded = S::decode_change(&mut reader).expect("a change that was just encoded");
    assert!(reader.is_empty());
    state.apply(decoded);
    // Saying it twice is saying it once.
    let once = encoded(&state);
    state.apply(S::decode_change(&mut Reader::new(change)).expect("the same change"));
    assert_eq!(encoded(&state), once);
    state
}

fn encoded<S: State>(state: &S) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

fn decoded<S: State>(bytes: &[u8]) -> S {
    let mut reader = Reader::new(bytes);
    let state = S::decode(&mut reader).expect("a state that was just encoded");
    assert!(reader.is_empty());
    state
}

/// Runs a history through a limiter and its model. `limiter(i)` is the one that the i-th request names.
fn obey<L: Limiter>(
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

        fits(&limiter, &state, now, before);
        retry_is_honest(&limiter, &state, now, cost, verdict, before.limit);
        settles(&limiter, &state, now, before);
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

/// What a bucket of this rate admits at most in any interval.
fn steady(rate: &ratelimit_core::limiter::Rate, micros: u64) -> u128 {
    u128::from(rate.limit.get())
        + u128::from(micros) * u128::from(rate.count.get()) / u128::from(rate.period.micros().get())
}

/// After a charge or a refund at `now`, the state says without its limiter's parameters when it is fully reset.
fn knows_when_it_is_reset<L: Limiter>(limiter: &L, state: &L::State, now: Time) {
    let reset = limiter.gauge(state, now).reset;
    let until = state.until(limiter.length());
    if reset == Span::ZERO { assert!(until <= now) } else { assert_eq!(until, now.plus(reset)) }
}

fn fits<L: Limiter>(limiter: &L, state: &L::State, now: Time, gauge: Gauge) {
    assert!(gauge.remaining <= gauge.limit);
    if gauge.remaining > 0 {
        assert!(limiter.judge(state, now, gauge.remaining).admits());
    }
    assert!(!limiter.judge(state, now, gauge.remaining + 1).admits());
}

fn retry_is_honest<L: Limiter>(
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

/// A part is what is there; whoever is forced is charged all the same; a booking waits as long as a refusal would
/// have to; and what is given back is there again.
fn manners<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64, before: Gauge) {
    let ruled = |manner| rule(limiter, state, now, Span::ZERO, cost, manner);
    let (part, granted) = ruled(Manner::Partial).expect("a part is no debt");
    assert_eq!(granted, cost.min(before.remaining));
    assert_eq!(part.admits(), granted > 0);
    let strict = limiter.judge(state, now, cost);
    for longest in [Span::ZERO, Span::from_millis(7), Span::FOREVER] {
        let Ok((booked, _)) = ruled(Manner::Reserve { longest }) else { continue };
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
    if L::State::KIND == Kind::Leases || limiter.reset_after(state, now, cost) > Span::CENTURY {
        return;
    }
    let forced = charged(limiter, Some(decoded(&encoded(state))), now, cost);
    let debt = limiter.gauge(&forced, now);
    knows_when_it_is_reset(limiter, &forced, now);
    assert_eq!(debt.remaining, before.remaining.saturating_sub(cost));
    assert!(debt.reset >= before.reset);
    let owed = limiter.reset_after(state, now, cost);
    assert!(owed == Span::ZERO || owed == debt.reset);
    let back = refunded(limiter, &forced, now, cost);
    knows_when_it_is_reset(limiter, &back, now);
    assert_eq!(limiter.gauge(&back, now).remaining, before.remaining, "given back");
    assert!(limiter.gauge(&back, now).reset <= debt.reset);
    let full = refunded(limiter, &forced, now, MAX_DEBT);
    assert_eq!(limiter.gauge(&full, now).remaining, before.limit, "never above full");
    assert_eq!(limiter.gauge(&full, now).reset, Span::ZERO);
}

fn refunded<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> L::State {
    let mut bytes = Vec::new();
    let change = limiter.refund(state, now, cost).expect("what is charged into debt is given back");
    L::State::encode_change(&change, &mut bytes);
    applied(decoded(&encoded(state)), &bytes)
}

fn settles<L: Limiter>(limiter: &L, state: &L::State, now: Time, gauge: Gauge) {
    settles_once(limiter, state, now, gauge);
    if L::State::KIND != Kind::Leases {
        let then = now.plus(gauge.reset);
        let halfway = now.plus(Span::from_micros(gauge.reset.as_micros() / 3));
        let stopped = charged(limiter, Some(decoded(&encoded(state))), halfway, 0);
        for later in [halfway, then, then.plus(gauge.reset)] {
            assert_eq!(limiter.gauge(&stopped, later), limiter.gauge(state, later));
        }
    }
}

fn settles_once<L: Limiter>(limiter: &L, state: &L::State, now: Time, gauge: Gauge) {
    let then = now.plus(gauge.reset);
    let fresh = limiter.gauge(&limiter.fresh(then), then);
    assert_eq!(limiter.gauge(state, then), fresh);
    assert_eq!(fresh.remaining, gauge.limit);
    if gauge.reset > Span::ZERO {
        let early = now.plus(Span::from_micros(gauge.reset.as_micros() - 1));
        assert_eq!(limiter.gauge(state, early).reset, Span::from_micros(1));
    }
}

fn clock_steps_back<L: Limiter>(limiter: &L, state: &L::State) {
    let last = state.last();
    let then = limiter.gauge(state, last);
    let held = last.minus(then.reset);
    // No time passes; what is to come is as far away as it really is.
    let lagging = peek(limiter, state, held, then.remaining + 1);
    assert_eq!(lagging.gauge.remaining, then.remaining);
    let later = if then.reset > Span::ZERO { last.since(held) } else { Span::ZERO };
    assert_eq!(lagging.gauge.reset, then.reset.plus(later));
    if let Verdict::Refuse { retry: Some(retry) } = lagging.verdict {
        assert!(peek(limiter, state, held.plus(retry), then.remaining + 1).verdict.admits());
        assert!(
            !peek(limiter, state, held.plus(Span::from_micros(retry.as_micros() - 1)), then.remaining + 1)
                .verdict
                .admits()
        );
    }
    let back = held.minus(Span::from_micros(1 + last.as_micros() % 10_000_000));
    if back == Time::default() {
        // Never charged, or it resets in more time than there was since the epoch.
        return;
    }
    assert_eq!(reading(limiter, state, back), Reading::SetBack);
    let moved = rebased(limiter, state, back);
    assert_eq!(moved.last(), back);
    knows_when_it_is_reset(limiter, &moved, back);
    let gauge = limiter.gauge(&moved, back);
    assert!(gauge.remaining <= then.remaining, "a step back grants nothing");
    // A window or bucket that was about to end begins anew where the clock stands now.
    let anew = limiter.gauge(&charged(limiter, None, back, 1), back).reset;
    let longest = then.reset.plus(then.reset).max(anew);
    assert!(gauge.reset <= longest, "nor does it make anyone wait");
    for cost in [0, 1, then.limit, then.limit + 1] {
        assert_eq!(peek(limiter, state, back, cost), peek(limiter, &moved, back, cost), "as if moved");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_bucket((bucket, steps) in with_history(token_buckets())) {
        obey(|_| bucket, continuous(*bucket.rate()), &steps, |micros| steady(bucket.rate(), micros));
    }

    /// Up to the largest numbers, as far as the bucket fills within a century; 10 to the tenth bytes per second too.
    #[test]
    fn large_token_bucket((bucket, steps) in with_history(large_token_buckets())) {
        obey(|_| bucket, continuous(*bucket.rate()), &steps, |_| u128::MAX);
    }

    #[test]
    fn batch_bucket(((bucket, rate), steps) in with_history(batch_buckets())) {
        obey(|_| bucket, batches(rate), &steps, |micros| {
            // The periods that end in an interval, and one more.
            let batches = micros / rate.period.micros() + 1;
            u128::from(rate.limit.get()) + u128::from(batches) * u128::from(rate.count.get())
        });
    }

    #[test]
    fn gcra((gcra, steps) in with_history(gcras())) {
        obey(|_| gcra, arrivals(*gcra.rate()), &steps, |micros| steady(gcra.rate(), micros));
    }

    #[test]
    fn leaky_bucket((bucket, steps) in with_history(leaky_buckets())) {
        obey(|_| bucket, water(*bucket.rate()), &steps, |micros| steady(bucket.rate(), micros));
    }

    #[test]
    fn fixed_window((window, steps) in with_history(fixed_windows())) {
        obey(|_| window, opened(window), &steps, |micros| {
            u128::from(window.limit.get()) * u128::from(micros / window.window.micros() + 2)
        });
    }

    #[test]
    fn aligned_window((window, steps) in with_history(aligned_windows())) {
        obey(|_| window, same_window(window), &steps, |micros| {
            u128::from(window.limit.get()) * u128::from(micros / window.window.micros() + 2)
        });
    }

    #[test]
    fn uniform((uniform, steps) in with_history(uniforms())) {
        obey(|_| uniform, recent(1, uniform.interval.span()), &steps, |micros| {
            u128::from(micros / uniform.interval.micros() + 1)
        });
    }

    #[test]
    fn sliding_window((window, steps) in with_history(sliding_windows())) {
        obey(|_| window, overlapping(window), &steps, |micros| {
            // The whole windows, and a part of one at either end.
            u128::from(window.limit.get()) * u128::from(micros / window.window.micros() + 2)
        });
    }

    #[test]
    fn sliding_buckets(((buckets, (limit, window, part)), steps) in with_history(windows_of_buckets())) {
        obey(|_| buckets, recent_parts(limit, window, part), &steps, |micros| {
            if micros <= window.minus(part).as_micros() { u128::from(limit) } else { u128::MAX }
        });
    }

    #[test]
    fn sliding_log((log, steps) in with_history(logs())) {
        obey(|_| log, recent(log.limit.get(), log.window.span()), &steps, |micros| {
            u128::from(log.limit.get()) * u128::from(micros / log.window.micros() + 1)
        });
    }

    #[test]
    fn sliding_log_with_a_gap_that_counts_refusals_or_not((log, steps) in with_history(logs_of_any_kind())) {
        let mut state = log.fresh(T0);
        let mut now = T0;
        let mut model = entries(log);
        for (wait, cost) in steps {
            now = now.plus(Span::from_micros(wait));
            let before = log.gauge(&state, now);
            let verdict = log.judge(&state, now, cost);
            assert_eq!(model.ask(now.as_micros(), cost), verdict.admits());
            fits(&log, &state, now, before);
            retry_is_honest(&log, &state, now, cost, verdict, log.limit.get());
            settles_once(&log, &state, now, before);
            clock_steps_back(&log, &state);
            if verdict.admits() || log.capabilities().counts_refused && cost <= log.limit.get() {
                state = charged(&log, Some(state), now, cost);
                let most = if log.capabilities().counts_refused { log.limit } else { log.most };
                assert!(state.entries(state.start()) <= most.get());
                knows_when_it_is_reset(&log, &state, now);
            }
        }
    }

    #[test]
    fn concurrent(((limit, ttl), steps) in with_history(leases())) {
        let ids: Vec<_> = (0..=steps.len()).map(usize::to_be_bytes).collect();
        let limiter = |i: usize| Concurrent { limit, ttl, id: &ids[i.min(steps.len())] };
        obey(limiter, recent(limit, ttl.span()), &steps, |micros| {
            if micros < ttl.micros().get() { u128::from(limit) } else { u128::MAX }
        });
    }

    /// Whatever a dump or a payload says: no panic, then or later.
    #[test]
    fn nothing_decoded_panics(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..120),
        small in prop::collection::vec(0..4u64, 0..12),
        words in r"[1-9][0-9]{0,15} [1-9][0-9]{0,11} [1-9][0-9]{0,6}",
        now in any::<u64>(),
    ) {
        // Words of which most are small pass more checks than random ones do.
        let last = T0.as_micros().to_le_bytes();
        let small: Vec<u8> = small.iter().flat_map(|word| word.to_le_bytes()).chain(last).collect();
        for kind in Kind::ALL.iter().copied() {
            with_state!(kind, S => for bytes in [&bytes, &small] {
                if let Some(state) = S::decode(&mut Reader::new(bytes)) {
                    survive(&state, &words, now);
                }
                let mut state = None;
                let mut reader = Reader::new(bytes);
                while let Some(change) = S::decode_change(&mut reader) {
                    state.get_or_insert_with(S::blank).apply(change);
                }
                if let Some(state) = state {
                    survive(&state, &words, now);
                }
            });
        }
    }
}

/// Asks a state everything.
fn survive<S: State>(state: &S, words: &str, now: u64) {
    let now = Time::from_micros(now % (Time::LATEST.as_micros() + 1));
    decoded::<S>(&encoded(state));
    state.describe(&mut |_, _| {});
    for row in &CATALOG {
        let mut request = Request::default();
        let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
        let Ok(limiter) = (row.parse)(
            &mut Arguments::new(&words, Bounds { leases: 1 << 50, log_entries: 1 << 50 }),
            &mut request,
        ) else {
            continue;
        };
        with_limiter!(limiter, limiter => ask_everything(&limiter, &encoded(state), S::KIND, now));
    }
}

fn ask_everything<L: Limiter>(limiter: &L, bytes: &[u8], kind: Kind, now: Time) {
    if kind != L::State::KIND {
        return;
    }
    let state: L::State = decoded(bytes);
    for cost in [0, 1, MAX_COUNT] {
        peek(limiter, &state, now, cost);
    }
    match reading(limiter, &state, now) {
        Reading::At(now) => charged(limiter, Some(state), now, 1),
        Reading::SetBack => rebased(limiter, &state, now),
    };
}
