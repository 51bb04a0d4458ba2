//! Several limits on one key: each decides as it would alone, on a key of its own.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use ratelimit_core::limiter::Limiter;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{
    Answer, Ask, Joint, LimitSet, Limits, Manner, Name, Place, Span, State, Time, with_limiter,
};
use ratelimit_language::{Arguments, Bounds, FORMS, Multi, Purpose, multi};

use super::T0;

const BOUNDS: Bounds = Bounds { leases: 100, log_entries: 100 };

/// The limits that calls may name: every form that several limits can have, at three lengths of time.
fn limits() -> Vec<String> {
    let forms = FORMS.iter().filter(|form| !form.template().contains("COUNTREFUSED"));
    let lengths = [(2, 1000), (5, 10_000), (20, 600_000)];
    let all = forms.flat_map(|form| lengths.map(|(limit, period)| form.words(limit, period, "holder")));
    all.collect()
}

/// A call: how long after the one before, which limits it names, at what cost, in what way.
#[derive(Clone, Debug)]
struct Call {
    wait: i64,
    named: Vec<usize>,
    cost: u64,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Take,
    Force,
    Refund,
    Peek,
    /// The limiter's own command, for the first limit named.
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
    let way = prop_oneof![
        6 => Just(Way::Take),
        1 => Just(Way::Force),
        1 => Just(Way::Refund),
        1 => Just(Way::Peek),
        3 => Just(Way::Own),
    ];
    let named = prop::collection::btree_set(0..limits().len(), 1..6);
    let call = (wait, named, 0..4u64, way).prop_map(|(wait, named, cost, way)| Call {
        wait,
        named: named.into_iter().collect(),
        cost,
        way,
    });
    prop::collection::vec(call, 1..60)
}

/// What a limit answers, and whether the call would be an error.
type Outcome = Option<Vec<Answer>>;

fn parse<'a>(words: &[&'a [u8]], purpose: Purpose) -> Option<Multi<'a>> {
    multi(&mut Arguments::new(words, BOUNDS), 1, purpose).ok()
}

/// Asks `keys` for each limit: all on the one key, or each on a key of its own.
fn ask<K: Limits>(call: &Multi<'_>, keys: &mut [K], way: Way, at: Time) -> Outcome {
    let mut joint = Joint::new(&call.parts, keys.len(), at, call.manner).ok()?;
    match way {
        Way::Refund => joint.refund(keys).ok()?,
        Way::Peek => joint.peek(keys),
        _ => _ = joint.take(keys).ok()?,
    }
    Some(joint.answers().collect())
}

fn encoded(set: &LimitSet) -> Vec<u8> {
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    let copy = LimitSet::decode(&mut Reader::new(&bytes)).expect("a set that was just encoded");
    let mut again = Vec::new();
    copy.encode(&mut again);
    assert_eq!(again, bytes);
    bytes
}

fn own_command<L: Limiter>(set: &mut LimitSet, limiter: &L, at: Time, cost: u64) -> Option<Answer> {
    let place = Place::of(limiter.length());
    let mut ask = Ask::new(place, at, cost, Manner::Strict);
    if cost == 0 {
        Some(ask.peek(set, limiter))
    } else {
        ask.take(set, limiter).ok().map(|taken| taken.answer())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A call that names any of the limits decides as each named limit alone would. What the others hold, and whether
    /// they were dropped since, changes nothing.
    #[test]
    fn each_limit_decides_as_it_would_alone(calls in calls()) {
        let limits = limits();
        let mut shared = [LimitSet::default()];
        let mut alone: BTreeMap<Name, LimitSet> = BTreeMap::new();
        let mut now = T0;
        for call in calls {
            now = if call.wait < 0 {
                now.minus(Span::from_micros(call.wait.unsigned_abs()))
            } else {
                now.plus(Span::from_micros(call.wait.unsigned_abs()))
            };
            let named = if call.way == Way::Own { &call.named[..1] } else { &call.named[..] };
            let mut line = format!("COST {}", call.cost);
            if call.way == Way::Force {
                line.push_str(" FORCE");
            }
            for limit in named {
                write!(line, " LIMIT {} COST {}", limits[*limit], call.cost).expect("a string takes it");
            }
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let purpose = match call.way {
                Way::Refund => Purpose::Refund,
                Way::Peek => Purpose::Peek,
                _ => Purpose::Charge,
            };
            // Leases have one table a key, so two of them in a call are an error; so is a debt of what cannot owe.
            let Some(multi) = parse(&words, purpose) else { continue };
            if Joint::new(&multi.parts, 1, now, multi.manner).is_err() {
                continue;
            }
            if call.way == Way::Own {
                let part = &multi.parts[0];
                let own = alone.entry(part.name).or_default();
                let answers = with_limiter!(&part.limiter, limiter => (
                    own_command(&mut shared[0], limiter, now, call.cost),
                    own_command(own, limiter, now, call.cost),
                ));
                prop_assert_eq!(answers.0, answers.1);
                if call.cost > 0 && answers.0.is_some_and(|answer| answer.verdict.admits()) {
                    expire(&mut alone, now, |name| name == part.name);
                }
                continue;
            }
            // First what each would answer alone, without changing it.
            let judged: Vec<Outcome> = multi.parts.iter().map(|part| {
                let mut copy = [copy_of(alone.get(&part.name))];
                ask(&only(&words, part.name, purpose), &mut copy, call.way, now)
            }).collect();
            let before = encoded(&shared[0]);
            let together = ask(&multi, &mut shared, call.way, now);
            if judged.iter().any(Option::is_none) {
                prop_assert_eq!(&together, &None, "an error of one is an error of all");
                prop_assert_eq!(encoded(&shared[0]), before, "and changes nothing");
                continue;
            }
            let judged: Vec<Answer> = judged.into_iter().flatten().flatten().collect();
            let together = together.expect("no limit is an error");
            let verdicts = |answers: &[Answer]| answers.iter().map(|answer| answer.verdict).collect::<Vec<_>>();
            prop_assert_eq!(verdicts(&together), verdicts(&judged));
            let admitted = judged.iter().all(|answer| answer.verdict.admits());
            let changes = call.way != Way::Peek;
            if admitted && call.cost > 0 && matches!(call.way, Way::Take | Way::Force) {
                expire(&mut alone, now, |name| multi.parts.iter().any(|part| part.name == name));
            }
            for (part, (joint, judged)) in multi.parts.iter().zip(together.iter().zip(&judged)) {
                if admitted && changes {
                    // Now it is charged, alone too.
                    let own = alone.entry(part.name).or_default();
                    let mut keys = [std::mem::take(own)];
                    ask(&only(&words, part.name, purpose), &mut keys, call.way, now);
                    [*own] = keys;
                    prop_assert_eq!(joint, judged);
                } else if changes && call.cost > 0 {
                    // All are refused: each tells how it stands, and only a clock that was set back has moved it.
                    let own = alone.entry(part.name).or_default();
                    with_limiter!(&part.limiter, limiter => {
                        let mut ask = Ask::new(Place::of(limiter.length()), now, call.cost, Manner::Strict);
                        ask.judge(own, limiter).expect("no error");
                        prop_assert_eq!(joint.gauge, ask.gauge(own, limiter).delayed(ask.lag()));
                    });
                }
            }
        }
    }

    /// Applied twice or once, by way of bytes: equal histories leave equal bytes, whatever the order of the limits.
    #[test]
    fn the_order_of_the_limits_in_a_call_leaves_the_same_bytes(calls in calls()) {
        let limits = limits();
        let mut keys = [[LimitSet::default()], [LimitSet::default()]];
        let mut now = T0;
        for call in calls.iter().filter(|call| call.way == Way::Take) {
            now = now.plus(Span::from_micros(call.wait.unsigned_abs()));
            let mut lines = call.named.iter().map(|limit| format!("LIMIT {}", limits[*limit])).collect::<Vec<_>>();
            for key in &mut keys {
                let line = lines.join(" ");
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                if let Some(multi) = parse(&words, Purpose::Charge) {
                    ask(&multi, key, Way::Take, now);
                }
                lines.reverse();
            }
            prop_assert_eq!(encoded(&keys[0][0]), encoded(&keys[1][0]));
        }
    }
}

/// A charge of the one key drops what is fully reset and not named; on a key of its own that would have expired.
fn expire(alone: &mut BTreeMap<Name, LimitSet>, now: Time, named: impl Fn(Name) -> bool) {
    alone.retain(|name, set| named(*name) || set.until() > now);
}

/// The call with only the limit of this name.
fn only<'a>(words: &[&'a [u8]], name: Name, purpose: Purpose) -> Multi<'a> {
    let mut call = parse(words, purpose).expect("a call that was parsed before");
    call.parts.retain(|part| part.name == name);
    call
}

fn copy_of(set: Option<&LimitSet>) -> LimitSet {
    let bytes = encoded(set.unwrap_or(&LimitSet::default()));
    LimitSet::decode(&mut Reader::new(&bytes)).expect("a set that was just encoded")
}
