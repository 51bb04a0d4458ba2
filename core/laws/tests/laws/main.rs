//! Laws that every limiter obeys on random histories, and a test that it decides as its model does.
//!
//! `Case` has those of an instant, which the fuzzers check too, and `laws.rs` those of a history.
//!
//! | law | exceptions |
//! |---|---|
//! | a cost of `remaining` fits, and one more does not | |
//! | a charge lowers `remaining` by its cost | logs with a gap: 0 remain |
//! | the request is admitted after the retry, and not a microsecond earlier | |
//! | the state answers like a fresh one at the reset, and not a microsecond earlier | |
//! | a charge of 0 in between changes no later answer | leases: such a charge would be a lease; logs with a gap, or that count refusals |
//! | a step back of the clock grants nothing, and no caller waits longer than twice the reset | |
//! | a state that is encoded and decoded is the same; no bytes make decoding or a decoded state panic | |
//! | a state can compute without parameters when it is fully reset | |
//! | `PARTIAL`, `FORCE`, `RESERVE` and refunds agree with verdict and gauge | |
//! | a refund returns what the caller's next look returns, however far its clock lags | |
//! | over every interval, at most what the limiter promises is admitted | |
//! | the limiter admits the same requests as its model | |
//!
//! A penalty does not admit what remains of its strikes, so `penalty.rs` has its laws. `lines.rs` and `fair.rs` have those of
//! callers that wait, and `sketch.rs` those of sketches and of counters of frequent keys. `tables.rs` sends tables of policies to copies, and
//! `tries.rs` replays what a node has recorded. `trees.rs` shares a budget in a tree of agents.
//!
//! `SMOOTH` and `SHED` are not tested here. `SMOOTH` refuses nothing, and its limit and remaining have another meaning.
//! `SHED` decides at random. Their own files test traces of their sources, and `floating_point.rs` compares them with
//! models.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use proptest::prelude::*;

mod adapt;
mod differential;
mod every_form;
mod every_order;
mod fair;
mod floating_point;
mod guesses;
mod histories;
mod holds;
mod laws;
mod lines;
mod one_key;
mod penalty;
mod refunds;
mod sessions;
mod sketch;
mod tables;
mod top;
mod trees;
mod tries;
mod world;

use ratelimit_core::decide::{peek, reading};
use ratelimit_core::limiter::{Concurrent, Limiter};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Kind, MAX_COUNT, Reading, Span, State, Time, with_limiter, with_state};
use ratelimit_language::{Arguments, Bounds, CATALOG, Request};
use ratelimit_laws::*;

use histories::*;
use laws::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_bucket((bucket, steps) in with_history(token_buckets())) {
        obey(|_| bucket, continuous(*bucket.rate()), &steps, |micros| steady(bucket.rate(), micros));
    }

    #[test]
    fn large_token_bucket((bucket, steps) in with_history(large_token_buckets())) {
        obey(|_| bucket, continuous(*bucket.rate()), &steps, |_| u128::MAX);
    }

    #[test]
    fn batch_bucket(((bucket, rate), steps) in with_history(batch_buckets())) {
        obey(|_| bucket, batches(rate), &steps, |micros| {
            // The periods that end in the interval, and one more.
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
    fn calendar(((calendar, offset), steps) in with_history(calendars())) {
        let limit = calendar.limit.get();
        obey(|_| calendar, same_dates(limit, calendar.unit, offset), &steps, |micros| {
            // No month, quarter or year is shorter than 28 days.
            let shortest = calendar.length().as_micros().min(28 * 86_400_000_000);
            u128::from(limit) * u128::from(micros / shortest + 2)
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
            // The windows within the interval, and parts of two others.
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
            let verdict = log.judge(&state, now, cost);
            assert_eq!(model.ask(now.as_micros(), cost), verdict.admits());
            Case { gap: log.gap > Span::ZERO, ..Case::of(&log, &state, now) }.obeys(cost);
            clock_steps_back(&log, &state);
            if verdict.admits() || log.capabilities().counts_refused && cost <= log.limit.get() {
                state = charged(&log, &state, now, cost);
                let most = if log.capabilities().counts_refused { log.limit } else { log.most };
                assert!(state.entries(state.start()) <= most.get());
                knows_its_end(&log, &state, now);
            }
        }
    }

    #[test]
    fn concurrent(((limit, ttl), steps) in with_history(leases())) {
        let ids: Vec<_> = (0..=steps.len()).map(usize::to_be_bytes).collect();
        let limiter = |i: usize| Concurrent::plain(limit, ttl, &ids[i.min(steps.len())]);
        obey(limiter, recent(limit, ttl.span()), &steps, |micros| {
            if micros < ttl.micros().get() { u128::from(limit) } else { u128::MAX }
        });
    }

    /// Any bytes can come in a `RESTORE` or in an `RL.APPLY`.
    #[test]
    fn no_bytes_make_decoding_or_a_decoded_state_panic(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..120),
        small in prop::collection::vec(0..4u64, 0..12),
        words in r"[1-9][0-9]{0,15} [1-9][0-9]{0,11} [1-9][0-9]{0,6}",
        now in any::<u64>(),
    ) {
        // Bytes with many small words pass more checks than random bytes.
        let last = T0.as_micros().to_le_bytes();
        let small: Vec<u8> = small.iter().flat_map(|word| word.to_le_bytes()).chain(last).collect();
        for kind in Kind::ALL.iter().copied() {
            with_state!(kind, S => for bytes in [&bytes, &small] {
                if let Some(state) = S::decode(&mut Reader::new(bytes)) {
                    ask_all_limiters(&state, &words, now);
                }
                let mut state = None;
                let mut reader = Reader::new(bytes);
                while let Some(change) = S::decode_change(&mut reader) {
                    state.get_or_insert_with(S::blank).apply(change);
                }
                if let Some(state) = state {
                    ask_all_limiters(&state, &words, now);
                }
            });
        }
    }
}

/// Calls all methods of a state, with every limiter of its kind that takes these parameters.
fn ask_all_limiters<S: State>(state: &S, words: &str, now: u64) {
    let now = Time::from_micros(now % (Time::LATEST.as_micros() + 1));
    copy(state);
    state.describe(&mut |_, _| {});
    for row in &CATALOG {
        let mut request = Request::default();
        let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
        let calendar: [&[u8]; 6] = [b"9", b"MONTH", b"TZ", b"Europe/Lisbon", b"ANCHOR", b"31"];
        let Ok(limiter) = (row.parse)(
            &mut Arguments::new(
                if row.name() == "CALENDAR" { &calendar } else { &words },
                Bounds { leases: 1 << 50, log_entries: 1 << 50, ..Bounds::DEFAULT },
            ),
            &mut request,
        ) else {
            continue;
        };
        with_limiter!(limiter, limiter => ask(&limiter, &encoded(state), S::KIND, now));
    }
}

/// Peeks, and charges or moves the state, if it is of the limiter's kind.
fn ask<L: Limiter>(limiter: &L, bytes: &[u8], kind: Kind, now: Time) {
    if kind != L::State::KIND {
        return;
    }
    let state: L::State = decoded(bytes).expect("a state that was just encoded");
    for cost in [0, 1, MAX_COUNT] {
        peek(limiter, &state, now, cost);
    }
    match reading(limiter, &state, now) {
        Reading::At(now) => charged(limiter, &state, now, 1),
        Reading::SetBack => rebased(limiter, &state, now),
    };
}
