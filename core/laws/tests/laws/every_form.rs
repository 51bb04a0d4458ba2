//! The laws on every form of the table [`FORMS`], without a model. A form with a row there is tested here.

use proptest::prelude::*;
use ratelimit_core::limiter::Limiter;
use ratelimit_core::{Span, State, Time, Verdict, with_limiter};
use ratelimit_language::{Arguments, Bounds, FORMS, Request, find};
use ratelimit_laws::{Case, charged, copy, decoded, encoded, knows_its_end};

use super::T0;
use super::histories::{Step, with_history};
use super::laws::clock_steps_back;

/// A limit, a period in milliseconds that is a multiple of 10, and a history that they scale.
fn cases() -> impl Strategy<Value = ((u64, u64), Vec<Step>)> {
    with_history((1..30u64, 1..6000u64).prop_map(|(limit, tens)| {
        let period = tens * 10;
        ((limit, period), Span::from_millis(period), limit)
    }))
}

/// Checks the laws on a request, and charges it if it is admitted or if refusals count. The state is stored as bytes,
/// because its type depends on the limiter.
fn step<L: Limiter>(limiter: &L, stored: &mut Option<Vec<u8>>, now: Time, cost: u64, gap: bool) {
    let state = match stored {
        Some(bytes) => decoded::<L::State>(bytes).expect("a state that was just encoded"),
        None => limiter.fresh(now),
    };
    let capabilities = limiter.capabilities();
    let before = limiter.gauge(&state, now);
    let verdict = limiter.judge(&state, now, cost);
    Case { gap, ..Case::of(limiter, &state, now) }.obeys(cost);
    clock_steps_back(limiter, &state);
    copy(&state);
    let counts_refused = capabilities.counts_refused && verdict != Verdict::NEVER;
    if verdict.admits() || counts_refused || capabilities.bans && before.remaining > 0 {
        let state = charged(limiter, &state, now, cost);
        assert_eq!(state.last(), now);
        knows_its_end(limiter, &state, now);
        *stored = Some(encoded(&state));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_form_obeys_the_laws(((limit, period), steps) in cases()) {
        for form in &FORMS {
            let gap = form.template().contains("GAP");
            let (mut stored, mut now) = (None, T0);
            for (i, (wait, cost)) in steps.iter().enumerate() {
                now = now.plus(Span::from_micros(*wait));
                let line = form.words(limit, period, &format!("lease{i}"));
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let row = find(words[0]).expect("a limiter");
                let bounds = Bounds { leases: 1000, log_entries: 1000, ..Bounds::DEFAULT };
                let mut arguments = Arguments::new(&words[1..], bounds);
                let limiter = (row.parse)(&mut arguments, &mut Request::default()).expect("good parameters");
                with_limiter!(&limiter, limiter => step(limiter, &mut stored, now, *cost, gap));
            }
        }
    }
}
