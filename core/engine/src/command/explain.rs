//! `RL.EXPLAIN command key ...`: says in sentences what a call would return, and why. `RL.EXPLAIN key` describes a key.
//!
//! It plans what the command would do (`plan/`), and renders the plan and what the limits hold. It changes nothing. The sentences are
//! in `ratelimit-language`.

use std::iter::once;
use std::ops::Range;

use ratelimit_core::hold::{charged, has_room};
use ratelimit_core::{Answer, Ask, Joint, Limiter, Manner, Period, Place, Span, Time, Verdict, with_limiter};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{
    Decision, Error, Line, Purpose, Request, Row, Seen, SketchCall, Wait, explains, find, option_of,
    own_words, shown, sketch, sketch_words, words_of_limits,
};

use super::ask::{policy, with_limits};
use super::entry::Command;
use super::holding::{holding, nothing};
use super::multi::{FIRST, parse};
use super::sketch::cells;
use super::{Ask as AskCommand, Multi};
use crate::host::Host;
use crate::key::Key;
use crate::plan::own::{Plan, Stands, Wish, plan};
use crate::plan::several::{Plan as AllPlan, Prepared, Several, ToRead};
use crate::reply::Reply;
use crate::slot::{Access, Slot};
use crate::waiting::{Turns, Waits};

pub struct Explain;

impl Command for Explain {
    const DOCUMENTATION: Documentation = docs::EXPLAIN;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let call = &call.inner();
        match Explained::of(call)? {
            Explained::Key => holding(call, 0),
            Explained::Limiter(row) => own(call, row),
            Explained::Sketch => item(call),
            Explained::Multi => multi(call),
            Explained::Ask => ask(call),
        }
        .map(Reply::Lines)
    }

    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        let inner = &call.inner();
        let keys = match Explained::of(inner) {
            Ok(Explained::Key) => [0..1, 0..0],
            Ok(Explained::Limiter(_) | Explained::Sketch) => [1..2, 0..0],
            Ok(Explained::Multi) => Multi::keys(inner),
            Ok(Explained::Ask) => AskCommand::keys(inner),
            Err(_) => [0..0, 0..0],
        };
        keys.map(|places| places.start + 1..places.end + 1)
    }
}

/// What is explained: a call of a command, or what a key holds.
enum Explained {
    Key,
    Limiter(&'static Row),
    Sketch,
    Multi,
    Ask,
}

impl Explained {
    /// What the inner call is.
    fn of(call: &impl Host) -> Result<Explained, Error> {
        let Some(command) = call.parse(0.., explains)? else { return Ok(Explained::Key) };
        Ok(match find(command.name.as_bytes()) {
            Some(row) => Explained::Limiter(row),
            None if command.name == SketchCall::NAME => Explained::Sketch,
            None if command.name == docs::MULTI.name => Explained::Multi,
            None => Explained::Ask,
        })
    }
}

/// Explains a call of a limiter's own command.
fn own(call: &impl Host, row: &Row) -> Result<Vec<String>, Error> {
    let mut request = Request::default();
    let limiter = call.parse(2.., |arguments| (row.parse)(arguments, &mut request))?;
    let words = call.parse(2.., |arguments| Ok(own_words(row, arguments)))?;
    let at = request.at.unwrap_or_else(|| call.clock());
    with_limiter!(&limiter, own => {
        request.check(own.capabilities())?;
        let mut key = Key::open(call, 1, Access::Read)?;
        let (answer, decision, place) = decide(call, &mut key, own, &request, at)?;
        let seen = Seen::of(&key, place, &limiter, at, &charged(&key, at));
        let line = Line {
            number: 1,
            words: &words,
            key: key_at(call, 1),
            cost: request.cost(),
            is_shadow: false,
            has_at: request.at.is_some(),
            admitted_by: if decision.admits() { option_of(request.manner()) } else { "" },
            answer,
            seen: &seen,
            waiting: call.waiting_for(1, own.name()),
            strike: None,
        };
        let crowd = crowd(call, &decision, request.block(), once(1));
        Ok(vec![verdict(decision, &crowd, missing(call, &key, 1)), line.to_string()])
    })
}

/// The answer to a plain request of a limiter's own command, the decision on the call, and where the limit is.
fn decide<S: Slot, L: Limiter>(
    call: &impl Host,
    key: &mut Key<S>,
    limiter: &L,
    request: &Request<'_>,
    at: Time,
) -> Result<(Answer, Decision, Place), Error> {
    let (cost, manner) = (request.cost(), request.manner());
    let place = key.own_place(limiter)?;
    let plain = |cost| Ask::new(place, at, cost, Manner::Strict);
    let answer = plain(cost).peek(key, limiter);
    let refused = |key: &Key<S>| {
        let look = plain(0).peek(key, limiter).verdict;
        refusal((1, limiter.most(answer.gauge)), cost, answer, look, limiter.capabilities().bans)
    };
    if cost == 0 {
        let decision = admission(answer.verdict).unwrap_or_else(|| refused(key));
        return Ok((answer, decision, place));
    }
    let longest = request.block().map(|block| call.longest_wait(block));
    let wish = Wish::of(request, call);
    match plan(call, key, limiter, &wish, at, || longest)? {
        Plan::Held { .. } => return Ok((plain(0).peek(key, limiter), Decision::Held, place)),
        Plan::Renews(_) => return Ok((answer, Decision::Renews, place)),
        Plan::Stands(mut stands) => {
            // A refusal is counted although others come before the call.
            if limiter.capabilities().counts_refused && !stands.answer.verdict.admits() {
                stands.answer.verdict = plain(cost).foresee(key, limiter)?.0;
            }
            if let Some(decision) = standing(call, limiter, &stands, longest) {
                return Ok((answer, decision, place));
            }
        }
        Plan::Proceeds { .. } => {}
    }
    if wish.hold.is_some_and(|hold| !has_room(key, &hold, at, 1)) {
        return Err(Error::TooManyHolds);
    }
    let (verdict, granted) = Ask::new(place, at, cost, manner).foresee(key, limiter)?;
    let decision = match (verdict, manner) {
        (_, Manner::Force) if !answer.verdict.admits() => Decision::Forced,
        (Verdict::Admit { wait }, Manner::Partial) if granted < cost => {
            Decision::InPart { granted, cost, wait }
        }
        (Verdict::Refuse { retry: Some(retry) }, _) if !limiter.capabilities().bans => {
            Decision::Refused { limit: 1, retry }
        }
        (verdict, _) => admission(verdict).unwrap_or_else(|| refused(key)),
    };
    Ok((answer, decision, place))
}

/// The decision on a request that others come before, or that waits. `None` if the limit refuses it for good, however many wait.
fn standing<L: Limiter>(
    call: &impl Host,
    limiter: &L,
    stands: &Stands<'_>,
    longest: Option<Span>,
) -> Option<Decision> {
    let retry = stands.retry()?;
    let callers = call.before(1, limiter.name(), &stands.claim);
    if let (Some(_), Some(longest)) = (&stands.wait, longest) {
        let first = retry.max(stands.ahead.unwrap_or_default());
        let expected = Wait::default().and(first, limiter.capabilities().early);
        return Some(Decision::Waits { behind: callers, expected, longest });
    }
    stands.ahead.map(|first| behind(1, callers, first, stands.answer))
}

/// The decision on a request that others come before. `answer` is that of the limit itself.
fn behind(limit: u64, callers: usize, first: Span, answer: Answer) -> Decision {
    let if_it_had_room = Answer { verdict: Verdict::ADMIT, ..answer }.behind(first).verdict;
    let verdict = answer.behind(first).verdict;
    let later = match verdict {
        Verdict::Refuse { retry } if verdict != if_it_had_room => retry,
        _ => None,
    };
    if callers == 0 {
        return Decision::Kept { limit, left: first, later };
    }
    Decision::Behind { limit, callers, first, later }
}

/// The decision on an admitted request; `None` if it is refused.
fn admission(verdict: Verdict) -> Option<Decision> {
    match verdict {
        Verdict::Admit { wait } => Some(Decision::Admitted { wait }),
        Verdict::Refuse { .. } => None,
    }
}

/// The decision on a request that a limit refuses, which can admit a cost of at most `most`. `look` is its verdict on a cost of
/// 0.
fn refusal((limit, most): (u64, u64), cost: u64, answer: Answer, look: Verdict, bans: bool) -> Decision {
    match answer.verdict {
        Verdict::Refuse { retry: Some(left) } if bans && !look.admits() => Decision::Banned { limit, left },
        Verdict::Refuse { retry: Some(ban) } if bans => Decision::Bans { limit, ban },
        Verdict::Refuse { retry: Some(retry) } => Decision::Refused { limit, retry },
        _ => Decision::Never { limit, cost, most },
    }
}

/// Explains `RL.SKETCH`.
fn item(call: &impl Host) -> Result<Vec<String>, Error> {
    let sketching = call.parse(2.., sketch)?;
    let words = call.parse(2.., |arguments| Ok(sketch_words(arguments)))?;
    let key = Key::open(call, 1, Access::Read)?;
    let SketchCall { item, sketch, cost, at, .. } = &sketching;
    let now = at.unwrap_or_else(|| call.clock());
    let cells = cells(&key, &sketching)?;
    let answer = sketch.peek(cells, item, *cost, now);
    let line = Line {
        number: 1,
        words: &words,
        key: key_at(call, 1),
        cost: *cost,
        is_shadow: false,
        has_at: at.is_some(),
        admitted_by: "",
        answer,
        seen: &Seen::alone(cells, now),
        waiting: 0,
        strike: None,
    };
    let refused = || refusal((1, answer.gauge.limit), *cost, answer, Verdict::ADMIT, false);
    let decision = admission(answer.verdict).unwrap_or_else(refused);
    Ok(vec![verdict(decision, "", missing(call, &key, 1)), line.to_string()])
}

/// Explains `RL.MULTI`.
fn multi(call: &impl Host) -> Result<Vec<String>, Error> {
    let (keys, arguments) = parse(call, Purpose::Charge)?;
    let words = call.parse(FIRST + keys.count().., |arguments| Ok(words_of_limits(arguments)))?;
    let several = Several::of(keys, &arguments);
    let (decision, mut lines) = decide_all(&several, arguments.hold, arguments.block, &words)?;
    lines.insert(0, decision);
    Ok(lines)
}

/// Explains `RL.ASK`.
fn ask(call: &impl Host) -> Result<Vec<String>, Error> {
    let (name, stored) = policy(call)?;
    with_limits(call, Purpose::Charge, name, &stored, |several, asked| {
        let words = stored.policy.each_words();
        let (decision, mut lines) = decide_all(several, asked.hold(), asked.block(), &words)?;
        let version = stored.version;
        lines.insert(0, format!("policy {}, version {version} on this node: {decision}", shown(name)));
        Ok(lines)
    })
}

/// What a call with several limits would do, and the line of each pair.
fn decide_all<H: Host>(
    several: &Several<'_, '_, H>,
    hold: Option<(&[u8], Span)>,
    block: Option<Period>,
    words: &[String],
) -> Result<(String, Vec<String>), Error> {
    let call = several.keys.call;
    let at = several.at.unwrap_or_else(|| call.clock());
    let hold = hold.map(|hold| call.hold(hold));
    let longest = block.map(|block| call.longest_wait(block));
    let mut keys = ToRead::of(several, at);
    let plan = several.plan(several.joint(at)?, &mut keys, hold.as_ref(), block.is_some(), || longest)?;
    let strikes = plan.strikes();
    let AllPlan { mut joint, is_held, is_admitted, wait } = plan;
    let mut seen: Vec<Option<Seen>> = joint.pairs().map(|_| None).collect();
    let mut callers = vec![0; seen.len()];
    let mut nowhere = Vec::new();
    for place in 0..several.keys.count() {
        keys.with(place, |key| {
            nowhere.extend(missing(call, key, several.keys.place(place)));
            joint.peek(place, key);
            let charged = charged(key, at);
            let pairs = joint.pairs().enumerate().zip(seen.iter_mut().zip(&mut callers));
            for ((pair, (part, ..)), (seen, callers)) in pairs.filter(|((_, (.., of)), _)| *of == place) {
                *seen = Some(Seen::of(key, Place::of(part.name.length), &part.limiter, at, &charged));
                if let Some(claim) = joint.ahead(pair).and_then(|_| joint.claim(pair, key)) {
                    *callers = call.before(several.keys.place(place), part.name, &claim);
                }
            }
        })?;
    }
    let before: Vec<Answer> = joint.answers().collect();
    let waits = wait.and(longest).map(|longest| {
        let refusing = joint.waits_for().into_iter().flatten();
        let expected = refusing.fold(Wait::default(), |wait, (pair, _, part, retry)| {
            wait.and(joint.ahead(pair).unwrap_or_default().max(retry), part.has_room_early())
        });
        Decision::Waits { behind: callers.iter().copied().max().unwrap_or(0), expected, longest }
    });
    if strikes {
        for place in 0..several.keys.count() {
            keys.with(place, |key| joint.peek_strikes(place, key))?;
        }
    }
    let struck: Vec<Answer> = joint.answers().collect();
    let mut lines = Vec::new();
    for ((((part, limit, key), answer), after), (seen, number)) in
        joint.pairs().zip(&before).zip(&struck).zip(seen.iter().zip(1..))
    {
        let (Some(words), Some(seen)) = (words.get(limit), seen) else { return Err(Error::Internal) };
        let is_struck = strikes && part.is_penalty() && part.cost > 0 && answer.verdict.admits();
        let place = several.keys.place(key);
        let line = Line {
            number,
            words,
            key: key_at(call, place),
            cost: part.cost,
            is_shadow: part.is_shadow(),
            has_at: several.at.is_some(),
            admitted_by: if is_held { "" } else { option_of(several.manner) },
            answer: *answer,
            seen,
            waiting: call.waiting_for(place, part.name),
            strike: is_struck.then_some(after.verdict),
        };
        lines.push(line.to_string());
    }
    let decided = || decision_of(several, &mut joint, &before, &callers, (is_held, is_admitted));
    let decision = waits.or_else(decided).ok_or(Error::Internal)?;
    let places = (0..several.keys.count()).map(|key| several.keys.place(key));
    let crowd = crowd(call, &decision, block, places);
    Ok((verdict(decision, &crowd, nowhere), lines))
}

/// The setting because of which a refused call cannot wait, if it is one.
fn crowd(
    call: &impl Host,
    decision: &Decision,
    block: Option<Period>,
    places: impl Iterator<Item = usize>,
) -> String {
    let might_wait = match decision {
        Decision::Refused { .. } | Decision::Behind { .. } | Decision::Kept { .. } => block.is_some(),
        _ => false,
    };
    let full = might_wait.then(|| call.full(places.map(|place| key_at(call, place)))).flatten();
    full.map_or(String::new(), |setting| format!("; ratelimit.{setting} lets no more callers wait"))
}

/// The decision on a request whose pairs were looked at, and `before` any strike. `callers` come before each pair. `None` never
/// happens: each of them has an answer.
fn decision_of(
    several: &Several<'_, '_, impl Host>,
    joint: &mut Joint<'_, '_>,
    before: &[Answer],
    callers: &[usize],
    (is_held, is_admitted): (bool, bool),
) -> Option<Decision> {
    match joint.combined()?.verdict {
        Verdict::Admit { .. } if is_held => return Some(Decision::Held),
        Verdict::Refuse { .. } if is_admitted && !is_held => return Some(Decision::Forced),
        Verdict::Admit { .. } if several.manner == Manner::Force => {
            return Some(Decision::Admitted { wait: Span::ZERO });
        }
        Verdict::Admit { wait } if is_admitted => return Some(Decision::Admitted { wait }),
        _ => {}
    }
    joint.fall_behind();
    let limit = joint.binding();
    let pair = usize::try_from(limit).ok()?.checked_sub(1)?;
    let ((part, ..), before) = joint.pairs().zip(before).nth(pair)?;
    let answer = joint.answers().nth(pair)?;
    Some(match joint.ahead(pair) {
        Some(first) if before.verdict != Verdict::NEVER => {
            behind(limit, callers.get(pair).copied().unwrap_or(0), first, *before)
        }
        _ => {
            let most = with_limiter!(&part.limiter, limiter => limiter.most(answer.gauge));
            refusal((limit, most), part.cost, answer, before.verdict, part.is_penalty())
        }
    })
}

/// The first text: the decision, and the keys that store nothing, whose names may be wrong.
fn verdict<'k>(decision: Decision, crowd: &str, missing: impl IntoIterator<Item = &'k [u8]>) -> String {
    let decision = format!("{decision}{crowd}");
    match &missing.into_iter().collect::<Vec<_>>()[..] {
        [] => decision,
        [only] => format!("{decision}; {}", nothing(only)),
        [first, others @ ..] => {
            let (first, others) = (shown(first), others.len());
            let keys = if others == 1 { "1 other key" } else { &format!("{others} other keys") };
            format!("{decision}; nothing is stored at {first} and {keys}: are the names right?")
        }
    }
}

/// The name of this key, if it stores nothing.
fn missing<'c>(call: &'c impl Host, key: &Key<impl Slot>, place: usize) -> Option<&'c [u8]> {
    key.is_missing().then(|| key_at(call, place))
}

/// The key at this place.
fn key_at(call: &impl Host, place: usize) -> &[u8] {
    call.word(place).unwrap_or_default()
}
