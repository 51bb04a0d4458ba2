//! Calls with several limits, for some of which others wait.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use ratelimit_core::state::Leases;
use ratelimit_core::{
    Act, Answer, Gauge, Hold, Joint, JointError, Length, LimitSet, Manner, Part, Span, Time, Verdict,
};
use ratelimit_language::{Arguments, Bounds, MultiCall, Purpose, multi};
use ratelimit_laws::{copy, encoded};

use super::super::T0;

/// `{id}` is the lease's id.
const LIMITS: [&str; 7] = [
    "TOKENBUCKET 3 3 1s",
    "GCRA 2 3 500ms",
    "FIXEDWINDOW 3 2s",
    "SLIDINGLOG 3 1500ms",
    "CONCURRENT 3 3s {id}",
    "PENALTY 2 3s 1500ms",
    "GCRA 0 1 2s SHADOW",
];

/// The index of the leases. Those before can be held.
const LEASES: usize = 4;

const BOUNDS: Bounds = Bounds { leases: 9, log_entries: 9, ..Bounds::DEFAULT };

#[derive(Clone, Debug)]
struct Call {
    /// Microseconds since the call before.
    wait: u64,
    /// Each limit, its only key, and the milliseconds until its first waiting caller is tried.
    limits: BTreeMap<usize, (Option<usize>, Option<u64>)>,
    cost: u64,
    /// The id of the lease, and of the hold.
    id: u8,
    holds: bool,
    forced: bool,
    /// Whether the caller waits if it is refused.
    waits: bool,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let wait = prop_oneof![Just(0), 0..900_000u64];
    let limit = (prop::option::of(0..2usize), prop::option::weighted(0.15, 0..3000u64));
    let limits = prop::collection::btree_map(0..LIMITS.len(), limit, 1..5);
    let cost = prop_oneof![1 => Just(0), 6 => Just(1), 3 => 2..5u64];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.1), any::<bool>());
    let call =
        (wait, limits, cost, 0..5u8, flags).prop_map(|(wait, limits, cost, id, (holds, forced, waits))| {
            // Neither leases nor penalties alone can be held, and leases cannot be forced.
            let holds = holds && cost > 0 && limits.keys().any(|limit| *limit < LEASES);
            let forced = forced && !limits.contains_key(&LEASES);
            Call { wait, limits, cost, id, holds, forced, waits }
        });
    prop::collection::vec(call, 1..60)
}

impl Call {
    fn words(&self) -> String {
        let mut line = format!("COST {}{}", self.cost, if self.forced { " FORCE" } else { "" });
        for (limit, (on, _)) in &self.limits {
            write!(line, " LIMIT {}", LIMITS[*limit].replace("{id}", &self.id.to_string()))
                .expect("a string");
            if let Some(on) = on {
                write!(line, " ON {}", on + 1).expect("a string");
            }
        }
        line
    }

    fn manner(&self) -> Manner {
        if self.forced { Manner::Force } else { Manner::Strict }
    }

    /// Makes the call. Returns whether it was admitted; `None` if what it asks for is held.
    fn take<'p, 'a>(
        &self,
        joint: &mut Joint<'p, 'a>,
        keys: &mut [LimitSet],
        waits: impl FnOnce(&Joint<'p, 'a>) -> bool,
    ) -> Option<bool> {
        let id = [self.id];
        let hold = Hold { id: &id, ttl: Span::from_millis(2000), most: 99 };
        if self.holds && keys.iter().any(|key| joint.is_held(key, &hold)) {
            joint.look();
            keys.iter().enumerate().for_each(|(place, key)| joint.peek(place, key));
            return None;
        }
        let admitted = planned(joint, keys, waits);
        if self.holds && admitted {
            joint.hold(keys, &hold).expect("room");
        }
        Some(admitted)
    }

    /// If others wait for the limit ahead of the call, the time until the first of them is tried.
    fn behind(
        &self,
        part: &Part<'_>,
        (limit, ahead): (usize, Option<u64>),
        key: &LimitSet,
        now: Time,
    ) -> Option<Span> {
        let id = self.id.to_string();
        let leases = key.get::<Leases>(Length::NONE);
        let is_held =
            limit == LEASES && leases.is_some_and(|leases| leases.held(id.as_bytes(), now).is_some());
        let can_be = part.is_strict() && part.cost > 0 && !self.forced && !is_held;
        ahead.filter(|_| can_be).map(Span::from_millis)
    }
}

/// A limit of a call on a key, and the time until the first caller ahead of the call is tried.
struct Pair<'p> {
    part: &'p Part<'p>,
    key: usize,
    behind: Option<Span>,
}

fn parse<'a>(words: &[&'a [u8]], keys: u64) -> MultiCall<'a> {
    multi(&mut Arguments::new(words, BOUNDS), keys, Purpose::Charge).expect("a good call")
}

/// The answer to a call that others come before.
fn refused(look: Answer, behind: Span) -> Answer {
    let least = behind.max(Span::from_millis(1));
    let retry = match look.verdict {
        Verdict::Admit { .. } => Some(least),
        Verdict::Refuse { retry } => retry.map(|retry| retry.max(least)),
    };
    Answer { verdict: Verdict::Refuse { retry }, gauge: Gauge { remaining: 0, ..look.gauge } }
}

/// Makes a call on two keys, and checks all that it returns and changes. Returns whether it was admitted.
fn check(call: &Call, keys: &mut [LimitSet; 2], now: Time) -> Option<bool> {
    let line = call.words();
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let parts = parse(&words, 2).parts;
    let joint = || Joint::new(&parts, 2, now, call.manner()).expect("limits that differ");
    let limits: Vec<(usize, Option<u64>)> =
        call.limits.iter().map(|(limit, (_, ahead))| (*limit, *ahead)).collect();
    let before = [0, 1].map(|key| encoded(&keys[key]));
    let pairs: Vec<Pair<'_>> = (0..parts.len())
        .flat_map(|i| [(i, 0), (i, 1)])
        .filter(|(i, key)| parts[*i].is_for(*key))
        .map(|(i, key)| Pair {
            part: &parts[i],
            key,
            behind: call.behind(&parts[i], limits[i], &keys[key], now),
        })
        .collect();
    let is_behind = pairs.iter().any(|pair| pair.behind.is_some());

    let mut looks = joint();
    for (key, set) in keys.iter().enumerate() {
        looks.peek(key, set);
    }
    let looks: Vec<Answer> = looks.answers().collect();
    // The call if no caller waits.
    let mut alone = joint();
    let mut alone_keys = [0, 1].map(|key| copy(&keys[key]));
    let fits = call.take(&mut alone, &mut alone_keys, |_| false);
    let alone_keys = alone_keys.map(|key| encoded(&key));
    let alone: Vec<Answer> = alone.answers().collect();

    let mut tested = joint();
    for (key, set) in keys.iter().enumerate() {
        tested.line_up(key, set, |part, _, _| {
            let place = parts.iter().position(|other| std::ptr::eq(other, part))?;
            limits[place].1.map(Span::from_millis)
        });
    }
    let mut waits_for = None;
    let admitted = call.take(&mut tested, keys, |joint| {
        let stand = |(_, key, part, retry): (usize, usize, &Part<'_>, Span)| (key, part.name, retry);
        waits_for = Some(joint.waits_for().map(|stands| stands.into_iter().map(stand).collect::<Vec<_>>()));
        call.waits
    });
    let after = [0, 1].map(|key| encoded(&keys[key]));
    let answers: Vec<Answer> = tested.answers().collect();

    let Some(fits) = fits else {
        assert_eq!((admitted, answers, after), (None, alone, before), "what is held is held");
        return None;
    };
    assert_eq!(admitted, Some(fits && !is_behind), "{line}");
    if admitted == Some(true) {
        assert_eq!((answers, after, waits_for), (alone, alone_keys, None), "as if nobody waited");
        return admitted;
    }
    // Only a limit without room strikes penalties, and only if the caller does not wait.
    let strikes = !fits && !call.waits;
    assert_eq!(after, if strikes { alone_keys } else { before }, "{line}");
    let mut stands = Some(Vec::new());
    for (i, Pair { part, key, behind }) in pairs.iter().enumerate() {
        let look = if strikes && part.is_penalty() { alone[i] } else { looks[i] };
        assert_eq!(answers[i], behind.map_or(look, |behind| refused(look, behind)), "{i} of {line}");
        let retry = match looks[i].verdict {
            _ if part.is_shadow() => continue,
            Verdict::Admit { .. } if behind.is_none() => continue,
            Verdict::Admit { .. } => Some(Span::ZERO),
            Verdict::Refuse { retry } => retry.filter(|_| !part.is_penalty()),
        };
        let stand = retry.map(|retry| (*key, part.name, retry));
        stands = stands.zip(stand).map(|(stands, stand)| [stands, vec![stand]].concat());
    }
    assert_eq!(waits_for, Some(stands), "{line}");
    let combined = tested.combined().expect("an answer");
    assert!(!combined.verdict.admits() && (!is_behind || combined.gauge.remaining == 0));
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_call_for_which_nobody_waits_is_decided_as_ever_and_others_change_nothing(calls in calls()) {
        let mut keys = [LimitSet::default(), LimitSet::default()];
        let mut now = T0;
        for call in &calls {
            now = now.plus(Span::from_micros(call.wait));
            check(call, &mut keys, now);
        }
    }
}

#[test]
fn calls_are_admitted_wait_and_are_held_in_the_histories() {
    let (mut admitted, mut refused, mut held) = (0, 0, 0);
    super::super::differential::each(calls(), |calls| {
        let mut keys = [LimitSet::default(), LimitSet::default()];
        let mut now = T0;
        for call in &calls {
            now = now.plus(Span::from_micros(call.wait));
            match check(call, &mut keys, now) {
                Some(true) => admitted += 1,
                Some(false) => refused += 1,
                None => held += 1,
            }
        }
        10 * calls.len()
    });
    let all = admitted + refused + held;
    assert!(admitted > all / 10 && refused > all / 10 && held > all / 100, "{admitted}, {refused}, {held}");
}

/// Plans a call and does what was planned. `waits` is asked if it is refused. Returns whether it was admitted.
fn planned<'p, 'a>(
    joint: &mut Joint<'p, 'a>,
    keys: &mut [LimitSet],
    waits: impl FnOnce(&Joint<'p, 'a>) -> bool,
) -> bool {
    for (key, limits) in keys.iter().enumerate() {
        joint.plan(key, limits);
    }
    let admitted = joint.admits().expect("a small debt");
    let act = if admitted {
        Act::Charge
    } else if waits(joint) {
        Act::Nothing
    } else {
        Act::Strike
    };
    joint.act(keys, act).expect("what was planned");
    admitted
}

/// Makes a call on one key, whose limits named `GCRA` have a line. Returns whether it was admitted, for how many
/// limits it would wait, and its integers.
fn call(key: &mut LimitSet, line: &str, ahead: Option<u64>) -> (bool, Option<usize>, Vec<[i64; 5]>) {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let call = parse(&words, 1);
    let mut joint = Joint::new(&call.parts, 1, T0, Manner::Strict).expect("one key");
    let gcra = |part: &Part<'_>| matches!(part.limiter, ratelimit_core::AnyLimiter::Gcra(_));
    joint.line_up(0, key, |part, _, _| ahead.filter(|_| gcra(part)).map(Span::from_millis));
    let mut waits_for = None;
    let admitted = planned(&mut joint, std::slice::from_mut(key), |joint| {
        waits_for = joint.waits_for().map(|stands| stands.len());
        false
    });
    (admitted, waits_for, joint.answers().map(|answer| answer.integers()).collect())
}

#[test]
fn a_call_behind_others_is_refused_and_charges_and_strikes_nothing() {
    let mut key = LimitSet::default();
    let line = "LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 3 5s LIMIT PENALTY 1 9s 9s";
    let refused = [1, 10, 0, 250, 0];
    assert_eq!(
        call(&mut key, line, Some(250)),
        (false, Some(1), vec![refused, [0, 3, 3, 0, 0], [0, 1, 1, 0, 0]])
    );
    // The first of them is tried now: the caller comes back no earlier than in a millisecond.
    assert_eq!(call(&mut key, line, Some(0)).2[0], [1, 10, 0, 1, 0]);
    assert!(key.is_empty());
    assert_eq!(call(&mut key, line, None).2[..2], [[0, 10, 9, 0, 100], [0, 3, 2, 0, 5000]]);
}

#[test]
fn nobody_waits_for_what_never_fits_or_during_a_ban() {
    let mut key = LimitSet::default();
    assert_eq!(call(&mut key, "COST 11 LIMIT GCRA 9 10 1s", None).1, None);
    assert_eq!(call(&mut key, "COST 11 LIMIT GCRA 9 10 1s", Some(5)), (false, None, vec![[1, 10, 0, -1, 0]]));
    let line = "LIMIT GCRA 0 1 1s LIMIT PENALTY 1 9s 9s";
    assert!(call(&mut key, line, None).0);
    // The refusal by the first limit can be waited for, and bans if it is not.
    assert_eq!(
        call(&mut key, line, None),
        (false, Some(1), vec![[1, 1, 0, 1000, 1000], [1, 1, 0, 9000, 9000]])
    );
    assert_eq!(call(&mut key, line, None).1, None);
    assert_eq!(call(&mut key, line, Some(5)).1, None);
}

#[test]
fn a_lease_that_is_held_is_asked_for_again_before_those_who_wait() {
    let mut key = LimitSet::default();
    let mut ask = |id: &str, ahead: Option<u64>| -> Result<bool, JointError> {
        let line = format!("LIMIT CONCURRENT 2 1m {id}");
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let call = parse(&words, 1);
        let mut joint = Joint::new(&call.parts, 1, T0, Manner::Strict)?;
        joint.line_up(0, &key, |_, _, _| ahead.map(Span::from_millis));
        joint.take(std::slice::from_mut(&mut key))
    };
    assert_eq!(ask("a", None), Ok(true));
    assert_eq!([ask("a", Some(9)), ask("b", Some(9))], [Ok(true), Ok(false)]);
    assert_eq!([ask("b", None), ask("c", None)], [Ok(true), Ok(false)]);
}
