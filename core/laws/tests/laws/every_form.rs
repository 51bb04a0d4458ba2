//! The laws on every form of the table, without a model: a new form is under them once it has its row.

use proptest::prelude::*;
use ratelimit_core::limiter::Limiter;
use ratelimit_core::{Span, State, Time, with_limiter};
use ratelimit_language::{Arguments, Bounds, FORMS, Request, find};

use super::histories::with_history;
use super::*;

/// A limit, a period in milliseconds that is a multiple of 10, and a history of its scale.
fn cases() -> impl Strategy<Value = ((u64, u64), Vec<Step>)> {
    with_history((1..30u64, 1..6000u64).prop_map(|(limit, tens)| {
        let period = tens * 10;
        ((limit, period), Span::from_millis(period), limit)
    }))
}

/// Asks the limiter once under all laws, and charges it if it admits. The state is kept as bytes, whatever its type.
fn step<L: Limiter>(limiter: &L, kept: &mut Option<Vec<u8>>, now: Time, cost: u64) {
    let state = match kept {
        Some(bytes) => decoded::<L::State>(bytes),
        None => limiter.fresh(now),
    };
    let capabilities = limiter.capabilities();
    let before = limiter.gauge(&state, now);
    let verdict = limiter.judge(&state, now, cost);
    // A limiter that books admits any cost, and means something else by limit and remaining.
    if !capabilities.books {
        fits(limiter, &state, now, before);
        retry_is_honest(limiter, &state, now, cost, verdict, before.limit);
        settles_once(limiter, &state, now, before);
        clock_steps_back(limiter, &state);
    }
    assert_eq!(encoded(&decoded::<L::State>(&encoded(&state))), encoded(&state));
    if verdict.admits() || capabilities.counts_refused && verdict != Verdict::NEVER {
        let state = charged(limiter, Some(state), now, cost);
        assert_eq!(state.last(), now);
        knows_when_it_is_reset(limiter, &state, now);
        *kept = Some(encoded(&state));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_form_obeys_the_laws(((limit, period), steps) in cases()) {
        for form in &FORMS {
            let (mut kept, mut now) = (None, T0);
            for (i, (wait, cost)) in steps.iter().enumerate() {
                now = now.plus(Span::from_micros(*wait));
                let line = form.words(limit, period, &format!("lease{i}"));
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let row = find(words[0]).expect("a limiter");
                let bounds = Bounds { leases: 1000, log_entries: 1000 };
                let mut arguments = Arguments::new(&words[1..], bounds);
                let limiter = (row.parse)(&mut arguments, &mut Request::default()).expect("good parameters");
                with_limiter!(&limiter, limiter => step(limiter, &mut kept, now, *cost));
            }
        }
    }
}
