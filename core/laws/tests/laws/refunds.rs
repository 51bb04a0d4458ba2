//! A refund returns what the caller's next look returns, on every form that can be refunded.

use proptest::prelude::*;
use ratelimit_core::limiter::Limiter;
use ratelimit_core::{
    Answer, Ask, Joint, Length, LimitSet, Manner, Place, Span, Time, Verdict, with_limiter,
};
use ratelimit_language::{Arguments, Bounds, FORMS, Purpose, multi};
use ratelimit_laws::copy;

use super::T0;
use super::histories::{Step, with_history};

const BOUNDS: Bounds = Bounds { leases: 1000, log_entries: 1000, ..Bounds::DEFAULT };

/// A charge, then a refund: its part of the charge, and its lag as a part of the reset, both in thousandths.
#[derive(Clone, Debug)]
struct Round {
    charge: Step,
    part: u64,
    lag: u64,
}

/// A limit, a period in milliseconds that is a multiple of 10, and a history that they scale.
fn cases() -> impl Strategy<Value = ((u64, u64), Vec<Round>)> {
    let parameters = (1..30u64, 1..6000u64)
        .prop_map(|(limit, tens)| ((limit, tens * 10), Span::from_millis(tens * 10), limit));
    with_history(parameters).prop_flat_map(|(parameters, charges)| {
        let lags = prop_oneof![2 => Just(0), 3 => 0..=1000u64, 1 => 0..=3000u64];
        let refunds = prop::collection::vec((0..=1500u64, lags), charges.len());
        (Just(parameters), refunds).prop_map(move |(parameters, refunds)| {
            let rounds = charges.iter().zip(refunds);
            (parameters, rounds.map(|(charge, (part, lag))| Round { charge: *charge, part, lag }).collect())
        })
    })
}

/// Charges a limit, in debt if need be, and returns its reset.
fn charge<L: Limiter>(key: &mut LimitSet, limiter: &L, now: Time, cost: u64) -> Span {
    let mut ask = Ask::new(Place::of(Length::of(limiter.length())), now, cost, Manner::Force);
    ask.take(key, limiter).map_or(Span::ZERO, |taken| taken.gauge.reset)
}

/// Gives a cost back, and returns the answers to the refund and to the next look. Checks that the look is the same if a
/// limit that is fully reset is deleted.
fn refund<L: Limiter>(key: &mut LimitSet, limiter: &L, at: Time, cost: u64) -> [Answer; 2] {
    let mut ask = Ask::new(Place::of(Length::of(limiter.length())), at, cost, Manner::Strict);
    let look = |key: &LimitSet| {
        Ask::new(Place::of(Length::of(limiter.length())), at, 0, Manner::Strict).peek(key, limiter)
    };
    ask.refund(key, limiter).expect("no defect");
    let next = look(&copy(key));
    if ask.gauge(key, limiter).reset == Span::ZERO {
        assert_eq!(look(&LimitSet::default()), next);
    }
    [ask.refunded(key, limiter), next]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_refund_replies_what_the_next_look_replies(((limit, period), rounds) in cases()) {
        for form in &FORMS {
            let line = format!("LIMIT {}", form.words(limit, period, "holder"));
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let Ok(call) = multi(&mut Arguments::new(&words, BOUNDS), 1, Purpose::Refund) else { continue };
            // A refund returns no ban, but the next look does.
            if call.parts[0].is_penalty() {
                continue;
            }
            let limiter = &call.parts[0].limiter;
            let (mut key, mut now) = (LimitSet::default(), T0);
            for Round { charge: (wait, cost), part, lag } in &rounds {
                now = now.plus(Span::from_micros(*wait));
                let reset = with_limiter!(limiter, limiter => charge(&mut key, limiter, now, *cost));
                let at = now.minus(Span::from_micros(reset.as_micros() / 1000 * lag));
                let back = (cost * part).div_ceil(1000).max(1);

                let line = format!("{line} COST {back}");
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let call = multi(&mut Arguments::new(&words, BOUNDS), 1, Purpose::Refund).expect("as before");
                let mut joint = Joint::new(&call.parts, 1, at, Manner::Strict).expect("one pair");
                joint.refund(&mut [copy(&key)]).expect("no defect");

                let [refunded, next] = with_limiter!(limiter, limiter => refund(&mut key, limiter, at, back));
                prop_assert_eq!(refunded, next, "{}", form.template());
                prop_assert_eq!(refunded.verdict, Verdict::ADMIT);
                prop_assert_eq!(joint.answers().collect::<Vec<_>>(), [next], "{}", form.template());
            }
        }
    }
}
