//! The laws of penalties, on random histories and against a model. In a call with several limits, another limit's
//! refusal is a strike.

use proptest::prelude::*;
use ratelimit_core::limiter::{Limiter, Penalty};
use ratelimit_core::{
    Answer, AnyState, Ask, Joint, LimitSet, Limits, Manner, Name, Place, Span, State, Time, Verdict,
};
use ratelimit_laws::{Case, Model, Offender, charged, copy, encoded, knows_its_end, reads_clock};

use super::T0;
use super::differential::each;
use super::histories::*;

/// Makes the calls of a history, and checks each reply against the model. Returns how many were admitted.
fn follow(penalty: Penalty, steps: &[Step]) -> usize {
    let mut offender = Offender::new(penalty);
    let mut key = LimitSet::default();
    let place = Place::of(penalty.name().length);
    let (mut now, mut admitted) = (T0, 0);
    for (i, (wait, cost)) in steps.iter().enumerate() {
        now = now.plus(Span::from_micros(*wait));
        let micros = now.as_micros();
        let ask = |cost| Ask::new(place, now, cost, Manner::Strict);

        // A look finds the ban, and changes nothing.
        let before = encoded(&key);
        let look = ask(0).peek(&key, &penalty);
        let rest = offender.banned(micros).map(|end| Span::from_micros(end - micros));
        assert_eq!(look.verdict, rest.map_or(Verdict::ADMIT, Verdict::refuse), "look {i} at {now:?}");
        let peek = ask(*cost).peek_strike(&key, &penalty);
        assert_eq!(encoded(&key), before);

        let taken = ask(*cost).take(&mut key, &penalty).expect("no error").answer();
        let fits = offender.ask(micros, *cost);
        assert_eq!(taken.verdict.admits(), fits, "call {i} of {steps:?} under {penalty:?}");
        assert_eq!(taken.verdict, peek.verdict, "a peek tells the ban that the call brings");
        if !taken.verdict.admits() {
            assert_eq!(taken, peek, "a peek has the other numbers of the ban, too");
        }
        let retry = offender.banned(micros).map_or(0, |end| end - micros);
        if let Verdict::Refuse { retry: told } = taken.verdict {
            assert_eq!(told, Some(Span::from_micros(retry)), "call {i}");
        }
        let left = if retry > 0 { 0 } else { penalty.strikes.get() - offender.counted(micros) };
        assert_eq!((taken.gauge.limit, taken.gauge.remaining), (penalty.strikes.get(), left));
        assert_eq!(taken.gauge.reset.as_micros(), offender.reset(micros) - micros, "reset after call {i}");
        if rest.is_some() {
            assert_eq!(encoded(&key), before, "a call during a ban changes nothing");
        }
        admitted += usize::from(taken.verdict.admits());

        let state = key.state(place.length).expect("a struck limit");
        holds(&penalty, state, now);
    }
    admitted
}

/// What holds for every state.
fn holds(penalty: &Penalty, state: &<Penalty as Limiter>::State, now: Time) {
    let gauge = penalty.gauge(state, now);
    Case::of(penalty, state, now).obeys(gauge.remaining);
    let settled = charged(penalty, state, now, 0);
    knows_its_end(penalty, &settled, now);
    assert_eq!(penalty.gauge(&settled, now), gauge, "a charge of 0 changes nothing");
    if let Verdict::Refuse { retry: Some(retry) } = penalty.judge(state, now, 0) {
        let early = now.plus(Span::from_micros(retry.as_micros() - 1));
        assert!(!penalty.judge(state, early, 0).admits());
        assert!(penalty.judge(state, now.plus(retry), 0).admits(), "the ban ends when it was told");
        assert_eq!(gauge.remaining, 0);
    } else {
        assert!(gauge.remaining > 0);
        assert!(!penalty.judge(state, now, gauge.remaining).admits(), "the last strike bans");
        assert!(gauge.remaining == 1 || penalty.judge(state, now, gauge.remaining - 1).admits());
    }
    let copy = AnyState::of(copy(state)).expect("the state of a limit");
    let mut key = LimitSet::of_one(penalty.name(), copy);
    for (back, expected) in [(1, (gauge.remaining + 1).min(gauge.limit)), (u64::MAX, gauge.limit)] {
        let mut ask = Ask::new(Place::of(penalty.name().length), now, back, Manner::Strict);
        ask.refund(&mut key, penalty).expect("no defect");
        let after = ask.gauge(&key, penalty);
        assert_eq!(after.remaining, if gauge.remaining == 0 { 0 } else { expected }, "a refund ends no ban");
        assert!(after.reset <= gauge.reset);
    }
    // A clock that is set back grants nothing, and keeps no caller longer.
    let (last, then) = (state.last(), penalty.gauge(state, state.last()));
    let back = last.minus(then.reset).minus(Span::from_micros(1 + last.as_micros() % 10_000_000));
    if back > Time::EPOCH {
        let moved = reads_clock(penalty, state, back, 1).1.expect("a clock that was set back");
        assert_eq!(penalty.gauge(&moved, back), then);
        assert_eq!(penalty.judge(&moved, back, 0), penalty.judge(state, last, 0));
    }
}

#[test]
fn a_hundred_thousand_calls_of_the_penalty() {
    let (mut calls, mut admitted) = (0, 0);
    each(with_history(penalties()), |(penalty, steps)| {
        admitted += follow(penalty, &steps);
        calls += steps.len();
        steps.len()
    });
    assert!((calls / 10..calls * 9 / 10).contains(&admitted), "{admitted} of {calls}");
}

/// A call with several limits: its lines, its cost and its manner.
fn joint(key: &mut LimitSet, lines: &str, at: Time, manner: Manner) -> (Answer, Vec<Answer>) {
    use ratelimit_language::{Arguments, Bounds, Purpose, multi};
    let words: Vec<&[u8]> = lines.split(' ').map(str::as_bytes).collect();
    let bounds = Bounds { leases: 9, log_entries: 9, ..Bounds::DEFAULT };
    let call = multi(&mut Arguments::new(&words, bounds), 1, Purpose::Charge).expect("a good call");
    let mut joint = Joint::new(&call.parts, 1, at, manner).expect("limits that differ");
    joint.take(std::slice::from_mut(key)).expect("no error");
    (joint.combined().expect("an answer"), joint.answers().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_penalty_decides_as_its_model((penalty, steps) in with_history(penalties())) {
        follow(penalty, &steps);
    }

    /// Calls to a window and a penalty decide as two keys of which the second is struck when the first refuses.
    #[test]
    fn a_refusal_of_another_limit_is_a_strike(
        strikes in 1..4u64,
        shadow in any::<bool>(),
        calls in prop::collection::vec((0..900_000u64, 0..3u64, 0..3u64, 0..8u8), 1..80),
    ) {
        let word = if shadow { " SHADOW" } else { "" };
        let (mut key, mut window, mut banned) = (LimitSet::default(), LimitSet::default(), LimitSet::default());
        let mut now = T0;
        for (wait, cost, strike, forced) in calls {
            now = now.plus(Span::from_micros(wait));
            let manner = if forced == 0 { Manner::Force } else { Manner::Strict };
            let limit = format!("LIMIT FIXEDWINDOW 3 1s COST {cost}");
            let penalty = format!("LIMIT PENALTY {strikes} 2s 700ms GROW 2 MAX 2s FORGIVE 5s");
            let (all, told) = joint(&mut key, &format!("{limit} {penalty}{word} COST {strike}"), now, manner);

            let look = joint(&mut banned, &format!("{penalty} COST 0"), now, manner).1[0];
            let peek = joint(&mut copy(&window), &limit, now, manner).1[0];
            let bans = !look.verdict.admits();
            let admitted = peek.verdict.admits() && (shadow || !bans);
            if admitted {
                let charged = joint(&mut window, &limit, now, manner).1[0];
                prop_assert_eq!(told[0], charged);
                prop_assert_eq!(told[1], look, "an admitted call does not charge the penalty");
                prop_assert_eq!(all, charged, "a penalty that does not refuse is no part of the answer");
                continue;
            }
            prop_assert_eq!(told[0].verdict, peek.verdict);
            let expected = if peek.verdict.admits() || bans || strike == 0 { look } else { strike_alone(&mut banned, strikes, now, strike) };
            prop_assert_eq!(told[1], expected);
            let enters = !shadow && !told[1].verdict.admits();
            prop_assert_eq!(all, if enters { Answer::all(told.iter().copied()).expect("two") } else { told[0] });
        }
    }
}

fn strike_alone(key: &mut LimitSet, strikes: u64, now: Time, cost: u64) -> Answer {
    let [window, ban] =
        [2000, 700].map(|millis| ratelimit_core::Period::of(Span::from_millis(millis)).expect("above zero"));
    let penalty = Penalty {
        strikes: strikes.try_into().expect("above zero"),
        window,
        ban,
        grow: 2.try_into().expect("above zero"),
        longest: Span::from_millis(2000),
        forgive: ratelimit_core::Period::of(Span::from_millis(5000)).expect("above zero"),
    };
    let place = Place::of(Name::of::<<Penalty as Limiter>::State>(penalty.name().length).length);
    Ask::new(place, now, cost, Manner::Strict).take(key, &penalty).expect("no error").answer()
}
