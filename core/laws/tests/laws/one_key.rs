//! Several limits on one key: each decides as it would on a separate key. A limit in the shadow changes nothing for the
//! others.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use ratelimit_core::limiter::Limiter;
use ratelimit_core::{
    Answer, Ask, Joint, LimitSet, Limits, Manner, Name, Part, Place, Span, Time, Verdict, with_limiter,
};
use ratelimit_language::{Arguments, Bounds, FORMS, MultiCall, Purpose, multi};
use ratelimit_laws::{copy, encoded};

use super::T0;

const BOUNDS: Bounds = Bounds { leases: 100, log_entries: 100, ..Bounds::DEFAULT };

/// The limits that calls may name: every form that `RL.MULTI` accepts, with three lengths of time, and each of them in
/// the shadow.
fn limits() -> Vec<String> {
    let forms = FORMS.iter().filter(|form| !form.template().contains("COUNTREFUSED"));
    let lengths = [(2, 1000), (5, 10_000), (20, 600_000)];
    let all = forms.flat_map(|form| lengths.map(|(limit, period)| form.words(limit, period, "holder")));
    all.flat_map(|limit| [limit.clone(), format!("{limit} SHADOW")]).collect()
}

#[derive(Clone, Debug)]
struct Call {
    /// The microseconds since the call before; negative if the clock was set back.
    wait: i64,
    /// The named limits, as indices of `limits()`.
    named: Vec<usize>,
    cost: u64,
    command: Command,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Command {
    Take,
    Force,
    Refund,
    Peek,
    /// The limiter's own command, for the first of the named limits.
    Own,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let wait = prop_oneof![
        3 => Just(0),
        4 => 0..2_000_000i64,
        2 => 0..700_000_000i64,
        1 => -2_000_000..0i64,
        1 => -2_000_000_000..0i64,
    ];
    let command = prop_oneof![
        6 => Just(Command::Take),
        1 => Just(Command::Force),
        1 => Just(Command::Refund),
        1 => Just(Command::Peek),
        3 => Just(Command::Own),
    ];
    let named = prop::collection::btree_set(0..limits().len(), 1..6);
    let call = (wait, named, 0..4u64, command).prop_map(|(wait, named, cost, command)| Call {
        wait,
        named: named.into_iter().collect(),
        cost,
        command,
    });
    prop::collection::vec(call, 1..60)
}

/// The combined answer, and those of a call's limits; `None` if the call is an error.
type Outcome = Option<(Answer, Vec<Answer>)>;

fn parse<'a>(words: &[&'a [u8]], purpose: Purpose) -> Option<MultiCall<'a>> {
    multi(&mut Arguments::new(words, BOUNDS), 1, purpose).ok()
}

/// Runs a call on these keys.
fn ask<K: Limits>(call: &MultiCall<'_>, keys: &mut [K], command: Command, at: Time) -> Outcome {
    let mut joint = Joint::new(&call.parts, keys.len(), at, call.manner).ok()?;
    match command {
        Command::Refund => joint.refund(keys).ok()?,
        Command::Peek => keys.iter().enumerate().for_each(|(key, limits)| joint.peek(key, limits)),
        _ => _ = joint.take(keys).ok()?,
    }
    let (combined, answers) = (joint.combined()?, joint.answers().collect::<Vec<_>>());
    if let [_] = keys {
        binds(&joint, combined, &answers);
        let refuses = |i: &usize| !call.parts[*i].is_shadow() && !answers[*i].verdict.admits();
        assert!(joint.refusing().eq((0..answers.len()).filter(refuses)));
    }
    Some((combined, answers))
}

/// The limit that binds has the retry of the call, or its remaining. If none binds, all are shadows or admit for penalties.
fn binds(joint: &Joint<'_, '_>, combined: Answer, answers: &[Answer]) {
    let Some(binding) = usize::try_from(joint.binding()).expect("a small number").checked_sub(1) else {
        assert_eq!(combined.verdict, Verdict::ADMIT);
        return;
    };
    let ([refused, _, remaining, retry, _], bound) = (answers[binding].integers(), combined.integers());
    assert_eq!(refused, bound[0]);
    assert!(if combined.verdict.admits() { remaining == bound[2] } else { retry == bound[3] });
}

fn own_command<L: Limiter>(
    set: &mut LimitSet,
    place: Place,
    limiter: &L,
    at: Time,
    cost: u64,
) -> Option<Answer> {
    let mut ask = Ask::new(place, at, cost, Manner::Strict);
    if cost == 0 {
        Some(ask.peek(set, limiter))
    } else {
        ask.take(set, limiter).ok().map(|taken| taken.answer())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The states of other limits do not matter, and neither does whether they were dropped.
    #[test]
    fn each_limit_decides_as_it_would_on_a_separate_key(calls in calls()) {
        let limits = limits();
        let mut shared = [LimitSet::default()];
        let mut alone: BTreeMap<Name, LimitSet> = BTreeMap::new();
        let mut now = T0;
        for call in calls {
            let command = call.command;
            now = if call.wait < 0 {
                now.minus(Span::from_micros(call.wait.unsigned_abs()))
            } else {
                now.plus(Span::from_micros(call.wait.unsigned_abs()))
            };
            let named = if command == Command::Own { &call.named[..1] } else { &call.named[..] };
            let mut line = format!("COST {}", call.cost);
            if command == Command::Force {
                line.push_str(" FORCE");
            }
            for limit in named {
                write!(line, " LIMIT {} COST {}", limits[*limit], call.cost).expect("a string is always writable");
            }
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let purpose = match command {
                Command::Refund => Purpose::Refund,
                Command::Peek => Purpose::Peek,
                _ => Purpose::Charge,
            };
            // `parse` fails if a limiter lacks `FORCE` or refunds, and `Joint::new` if two limits are leases.
            let Some(multi) = parse(&words, purpose) else { continue };
            if Joint::new(&multi.parts, 1, now, multi.manner).is_err() {
                continue;
            }
            if command == Command::Own {
                let part = &multi.parts[0];
                // A limiter's own command names no limit in the shadow.
                if part.is_shadow() {
                    continue;
                }
                let length = part.name.length;
                let place = shared[0].find(part.name).unwrap_or(Place::of(length));
                let stored = Name { length: place.stored, ..part.name };
                let mut own = alone.remove(&stored).unwrap_or_default();
                // A strike is recorded even if it bans.
                let strikes = part.is_penalty()
                    && with_limiter!(&part.limiter, limiter => own_command(&mut own, Place::of(stored.length), limiter, now, 0))
                        .is_some_and(|look| look.verdict.admits());
                let answers = with_limiter!(&part.limiter, limiter => (
                    own_command(&mut shared[0], place, limiter, now, call.cost),
                    own_command(&mut own, place, limiter, now, call.cost),
                ));
                prop_assert_eq!(answers.0, answers.1);
                // A change gives the limit the new length of time, here and there.
                let after = own.stored().first().map_or(stored, |limit| limit.name);
                prop_assert_eq!(shared[0].find(after).map(|place| place.stored), own.stored().first().map(|limit| limit.name.length));
                alone.insert(after, own);
                if call.cost > 0 && (strikes || answers.0.is_some_and(|answer| answer.verdict.admits())) {
                    expire(&mut alone, now, &[stored]);
                }
                continue;
            }
            let named: Vec<Name> = multi.parts.iter().map(|part| part.name).collect();
            // The answers of copies of the limits on separate keys.
            let judged: Vec<Outcome> = multi.parts.iter().map(|part| {
                let mut copy = [copy(alone.get(&part.name).unwrap_or(&LimitSet::default()))];
                ask(&only(&words, part.name, purpose), &mut copy, command, now)
            }).collect();
            let before = encoded(&copy(&shared[0]));
            let together = ask(&multi, &mut shared, command, now);
            if judged.iter().any(Option::is_none) {
                prop_assert_eq!(&together, &None, "an error of one limit is an error of the call");
                prop_assert_eq!(encoded(&shared[0]), before, "an error changes nothing");
                continue;
            }
            let mut judged: Vec<Answer> = judged.into_iter().flatten().flat_map(|(_, answers)| answers).collect();
            let refuses = |(part, answer): (&Part<'_>, &Answer)| !part.is_shadow() && !answer.verdict.admits();
            let mut strict = multi.parts.iter().zip(&judged).filter(|(part, _)| !part.is_penalty());
            let struck = command == Command::Take && strict.any(refuses);
            if struck && call.cost > 0 {
                let penalties = || multi.parts.iter().zip(&judged).filter(|(part, look)| part.is_penalty() && look.verdict.admits());
                if penalties().next().is_some() {
                    expire(&mut alone, now, &named);
                }
                let names: Vec<Name> = penalties().map(|(part, _)| part.name).collect();
                for (part, judged) in multi.parts.iter().zip(&mut judged).filter(|(part, _)| names.contains(&part.name)) {
                    let own = alone.entry(part.name).or_default();
                    let strike = with_limiter!(&part.limiter, limiter => own_command(own, Place::of(part.name.length), limiter, now, call.cost));
                    *judged = strike.expect("a strike is no error");
                }
            }
            let (combined, together) = together.expect("no limit is an error");
            let verdicts = |answers: &[Answer]| answers.iter().map(|answer| answer.verdict).collect::<Vec<_>>();
            prop_assert_eq!(verdicts(&together), verdicts(&judged));
            // Shadows, and penalties that do not refuse, do not enter the combined answer, unless there are no others.
            let enters = |(part, answer): &(&Part<'_>, &Answer)| {
                !(part.is_shadow() || part.is_penalty() && answer.verdict.admits())
            };
            let entering = multi.parts.iter().zip(&together).filter(enters).map(|(_, answer)| *answer);
            let without_others = Answer::all(together.iter().copied()).map(|answer| Answer { verdict: Verdict::ADMIT, ..answer });
            prop_assert_eq!(Some(combined), Answer::all(entering).or(without_others));
            let admitted = combined.verdict.admits();
            let changes = command != Command::Peek;
            // A call whose limits are all shadows that refuse charges none, and so drops none.
            let mut strict = multi.parts.iter().zip(&judged).filter(|(part, _)| !part.is_penalty());
            let charged = strict.any(|(_, answer)| answer.verdict.admits());
            if admitted && charged && call.cost > 0 && matches!(command, Command::Take | Command::Force) {
                expire(&mut alone, now, &named);
            }
            for (part, (joint, judged)) in multi.parts.iter().zip(together.iter().zip(&judged)) {
                if admitted && changes {
                    // The call changed the shared key, so the separate key is changed too.
                    let own = alone.entry(part.name).or_default();
                    let mut keys = [std::mem::take(own)];
                    ask(&only(&words, part.name, purpose), &mut keys, command, now);
                    [*own] = keys;
                    prop_assert_eq!(joint, judged);
                } else if part.is_penalty() {
                    prop_assert_eq!(joint, judged);
                    // A clock that was set back moves the ban, but not by a look.
                    if changes && call.cost > 0 {
                        let own = alone.entry(part.name).or_default();
                        with_limiter!(&part.limiter, limiter => {
                            let mut look = Ask::new(Place::of(part.name.length), now, 0, Manner::Strict);
                            look.judge(own, limiter).expect("no error");
                        });
                    }
                } else if changes && call.cost > 0 {
                    // The call was refused. It returned the gauges, and changed a state only if the clock was set back.
                    let own = alone.entry(part.name).or_default();
                    with_limiter!(&part.limiter, limiter => {
                        let mut ask = Ask::new(Place::of(part.name.length), now, call.cost, Manner::Strict);
                        ask.judge(own, limiter).expect("no error");
                        prop_assert_eq!(joint.gauge, ask.gauge(own, limiter).delayed(ask.lag()));
                    });
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_limits_in_a_call_does_not_change_the_bytes(calls in calls()) {
        let limits = limits();
        let mut keys = [[LimitSet::default()], [LimitSet::default()]];
        let mut now = T0;
        for call in calls.iter().filter(|call| call.command == Command::Take) {
            now = now.plus(Span::from_micros(call.wait.unsigned_abs()));
            let mut lines = call.named.iter().map(|limit| format!("LIMIT {}", limits[*limit])).collect::<Vec<_>>();
            for key in &mut keys {
                let line = lines.join(" ");
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                if let Some(multi) = parse(&words, Purpose::Charge) {
                    ask(&multi, key, Command::Take, now);
                }
                lines.reverse();
            }
            prop_assert_eq!(encoded(&copy(&keys[0][0])), encoded(&keys[1][0]));
        }
    }
}

/// Removes the separate keys whose limits are fully reset and not named: a charge drops them from the shared key.
fn expire(alone: &mut BTreeMap<Name, LimitSet>, now: Time, named: &[Name]) {
    let is_plain = |name: &Name| !name.length.is_shadow();
    let stays = |name: &Name, set: &LimitSet| named.contains(name) || set.until() > now;
    let staying = alone.iter().filter(|(name, set)| stays(name, set)).map(|(name, _)| *name);
    let plain: Vec<Name> = staying.chain(named.iter().copied()).filter(is_plain).collect();
    alone.retain(|name, set| {
        stays(name, set) || is_plain(name) && plain.iter().any(|other| other.kind == name.kind)
    });
}

/// The call, but with the limit of this name only.
fn only<'a>(words: &[&'a [u8]], name: Name, purpose: Purpose) -> MultiCall<'a> {
    let mut call = parse(words, purpose).expect("a call that was parsed before");
    call.parts.retain(|part| part.name == name);
    call
}
