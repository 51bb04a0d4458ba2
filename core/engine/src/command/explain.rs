//! `RL.EXPLAIN command key ...`: says in sentences what a call would return, and why.
//!
//! It takes the steps of `RL.PEEK`, `RL.MULTIPEEK` and `RL.ASKPEEK`. It also reports what they leave out: the manner of the
//! request, strikes, who waits, and what is held. It decides on the keys as the command would, and changes nothing. The
//! sentences are in `ratelimit-language`.

use std::ops::Range;

use ratelimit_core::hold::{charged, has_room, held};
use ratelimit_core::line::Claim;
use ratelimit_core::{
    Answer, Ask, Hold, Joint, Limiter, Manner, Part, Period, Place, Span, Time, Verdict, with_limiter,
};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{
    CATALOG, Decision, Error, Line, Purpose, Request, Row, Seen, SketchCall, Wait, find, option_of,
    own_words, shown, sketch, sketch_words, without_prefix, words_of_limits,
};

use super::ask::{policy, with_limits};
use super::entry::Command;
use super::multi::{FIRST, Several, parse, prepare};
use super::sketch::cells;
use super::wait::{answer_in_line, in_manner, wait_within};
use super::{Ask as AskCommand, Multi};
use crate::host::Host;
use crate::key::Key;
use crate::reply::Reply;
use crate::slot::{Access, Slot};
use crate::waiting::{Turns, Waits, Wanted};

pub struct Explain;

impl Command for Explain {
    const DOCUMENTATION: Documentation = docs::EXPLAIN;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let call = &call.inner();
        let (explained, name) = Explained::of(call)?;
        let lines = match explained {
            Explained::Limiter(row) => own(call, row),
            Explained::Sketch => item(call),
            Explained::Multi => multi(call),
            Explained::Ask => ask(call),
        };
        lines.map(Reply::Lines).map_err(|error| match error {
            Error::Arity => {
                let name = name.to_ascii_lowercase();
                Error::invalid(format_args!("wrong number of arguments for 'rl.{name}' command"))
            }
            error => error.of_command("RL.", name),
        })
    }

    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        let inner = &call.inner();
        let keys = match Explained::of(inner) {
            Ok((Explained::Limiter(_) | Explained::Sketch, _)) => [1..2, 0..0],
            Ok((Explained::Multi, _)) => Multi::keys(inner),
            Ok((Explained::Ask, _)) => AskCommand::keys(inner),
            Err(_) => [0..0, 0..0],
        };
        keys.map(|places| places.start + 1..places.end + 1)
    }
}

/// A command that is explained.
enum Explained {
    Limiter(&'static Row),
    Sketch,
    Multi,
    Ask,
}

impl Explained {
    /// The command of the inner call, and its name without the prefix.
    fn of(call: &impl Host) -> Result<(Explained, &'static str), Error> {
        let word = call.arguments(0).next().ok_or(Error::Arity)?;
        let name = without_prefix(word).unwrap_or(word);
        let is = |command: &str| name.eq_ignore_ascii_case(command.as_bytes());
        if let Some(row) = find(name) {
            Ok((Explained::Limiter(row), row.name()))
        } else if is(SketchCall::NAME) {
            Ok((Explained::Sketch, SketchCall::NAME))
        } else if is(docs::MULTI.name) {
            Ok((Explained::Multi, docs::MULTI.name))
        } else if is(docs::ASK.name) {
            Ok((Explained::Ask, docs::ASK.name))
        } else {
            let names = CATALOG.iter().map(Row::name).collect::<Vec<_>>().join(", ");
            let why = format!("RL.EXPLAIN explains RL.MULTI, RL.ASK, RL.SKETCH and the limiters: {names}");
            Err(Error::near_because(word, &why))
        }
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
            is_shadow: false,
            has_at: request.at.is_some(),
            admitted_by: if decision.admits() { option_of(request.manner()) } else { "" },
            answer,
            seen: &seen,
            waiting: call.waiting_for(1, own.name()),
            strike: None,
        };
        Ok(vec![decision.to_string(), line.to_string()])
    })
}

/// What a limiter's own command would do, in the order of [`Limit`](super::Limit): the answer to a plain request, the
/// decision, and where the limit is.
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
    if request.hold().is_some_and(|(id, _)| held(key, id, at).is_some()) {
        return Ok((plain(0).peek(key, limiter), Decision::Held, place));
    }
    if plain(cost).is_held(key, limiter) {
        return Ok((answer, Decision::Renews, place));
    }
    key.place_to_charge(limiter, at)?;
    if manner != Manner::Force
        && let Some(decision) = in_line(call, key, limiter, request, plain(cost))
    {
        return Ok((answer, decision, place));
    }
    if let Some((id, ttl)) = request.hold()
        && !has_room(key, &Hold { id, ttl, most: call.node().settings.most_holds() }, at, 1)
    {
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

/// The decision on a request whose limit others wait for, or which can wait. `None` if it is decided as if no caller
/// waited.
fn in_line<L: Limiter>(
    call: &impl Host,
    key: &Key<impl Slot>,
    limiter: &L,
    request: &Request<'_>,
    plain: Ask,
) -> Option<Decision> {
    let (name, manner) = (limiter.name(), request.manner());
    let claim = plain.claim(key, limiter, request.tenant(), |claim, leases| {
        if call.somebody_waits() {
            call.follow(1, name, leases);
        }
        claim
    });
    let ahead =
        if call.somebody_waits() { call.ahead(1, name, &claim, request.block().is_some()) } else { None };
    if ahead.is_none() && request.block().is_none() {
        return None;
    }
    let answer = answer_in_line(&in_manner(plain, manner), manner, key, limiter);
    let retry = match answer.verdict {
        Verdict::Admit { .. } if ahead.is_none() => return None,
        Verdict::Admit { .. } => Span::ZERO,
        Verdict::Refuse { retry: Some(retry) } => retry,
        // Then it is refused for good, however many wait.
        Verdict::Refuse { retry: None } => return None,
    };
    let callers = call.before(1, name, &claim);
    if let Some(longest) = request.block().map(|block| call.longest_wait(block))
        && (retry <= longest || limiter.capabilities().early)
        && call.wait(longest, vec![1], [Wanted { key: 1, name, claim, retry }].into_iter()).is_some()
    {
        let early = limiter.capabilities().early;
        let expected = Wait::default().and(retry.max(ahead.unwrap_or_default()), early);
        return Some(Decision::Waits { behind: callers, expected, longest });
    }
    ahead.map(|first| behind(1, callers, first, answer))
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
    Ok(vec![decision.to_string(), line.to_string()])
}

/// Explains `RL.MULTI`.
fn multi(call: &impl Host) -> Result<Vec<String>, Error> {
    let (keys, arguments) = parse(call, Purpose::Charge)?;
    let words = call.parse(FIRST + keys.count().., |arguments| Ok(words_of_limits(arguments)))?;
    let several = Several::of(keys, &arguments);
    let (decision, mut lines) = decide_all(call, &several, arguments.hold, arguments.block, &words)?;
    lines.insert(0, decision.to_string());
    Ok(lines)
}

/// Explains `RL.ASK`.
fn ask(call: &impl Host) -> Result<Vec<String>, Error> {
    let (name, stored) = policy(call)?;
    with_limits(call, Purpose::Charge, name, &stored, |several, asked| {
        let words = stored.policy.each_words();
        let (decision, mut lines) = decide_all(call, several, asked.hold(), asked.block(), &words)?;
        let version = stored.version;
        lines.insert(0, format!("policy {}, version {version} on this node: {decision}", shown(name)));
        Ok(lines)
    })
}

/// What a call with several limits would do, in the order of [`Several::take`], and the line of each pair.
fn decide_all<H: Host>(
    call: &H,
    several: &Several<'_, '_, H>,
    hold: Option<(&[u8], Span)>,
    block: Option<Period>,
    words: &[String],
) -> Result<(Decision, Vec<String>), Error> {
    let at = several.at.unwrap_or_else(|| call.clock());
    let mut joint = several.joint(at)?;
    let is_held = hold.map_or(Ok(false), |(id, ttl)| {
        is_held(several, &joint, &Hold { id, ttl, most: call.node().settings.most_holds() }, at)
    })?;
    if is_held {
        joint.look();
    }
    let mut seen: Vec<Option<Seen>> = joint.pairs().map(|_| None).collect();
    let mut claims: Vec<Option<Claim<&[u8]>>> = joint.pairs().map(|_| None).collect();
    for place in 0..several.keys.count() {
        let mut key = several.keys.peek(place)?;
        prepare(&joint, place, &mut key, at)?;
        if !is_held {
            joint.check_key(place, &key)?;
            if call.somebody_waits() {
                several.line_up(call, &mut joint, place, &key, block.is_some());
            }
        }
        joint.peek(place, &key);
        let charged = charged(&key, at);
        let of_key = joint.pairs().enumerate().filter(|(_, (.., of))| *of == place);
        for (pair, claim) in of_key.map(|(pair, _)| (pair, joint.claim(pair, &key))).collect::<Vec<_>>() {
            claims.get_mut(pair).into_iter().for_each(|place| *place = claim);
        }
        let pairs = joint.pairs().zip(&mut seen).filter(|((_, _, of), _)| *of == place);
        for ((part, ..), seen) in pairs {
            *seen = Some(Seen::of(&key, Place::of(part.name.length), &part.limiter, at, &charged));
        }
    }
    let before: Vec<Answer> = joint.answers().collect();
    let waits = wait_of(call, several, &joint, block, is_held, &claims);
    let strikes = !is_held && waits.is_none() && joint.strikes();
    if strikes {
        for place in 0..several.keys.count() {
            let mut key = several.keys.peek(place)?;
            prepare(&joint, place, &mut key, at)?;
            joint.peek_strikes(place, &key);
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
    let decision =
        decision_of(call, several, &mut joint, &before, waits, is_held, &claims).ok_or(Error::Internal)?;
    Ok((decision, lines))
}

/// Whether a key holds the id already. A key without room for another hold is an error.
fn is_held(
    several: &Several<'_, '_, impl Host>,
    joint: &Joint<'_, '_>,
    hold: &Hold<'_>,
    at: Time,
) -> Result<bool, Error> {
    let mut has_room_everywhere = true;
    for place in 0..several.keys.count() {
        let key = several.keys.peek(place)?;
        if held(&key, hold.id, at).is_some() {
            return Ok(true);
        }
        let charges = joint.named(place).filter(|part| part.can_be_held()).count();
        has_room_everywhere &= charges == 0 || has_room(&key, hold, at, charges);
    }
    if has_room_everywhere { Ok(false) } else { Err(Error::TooManyHolds) }
}

/// How long a call is expected to wait, and how long at most; `None` if it is decided at once.
fn wait_of<H: Host>(
    call: &H,
    several: &Several<'_, '_, H>,
    joint: &Joint<'_, '_>,
    block: Option<Period>,
    is_held: bool,
    claims: &[Option<Claim<&[u8]>>],
) -> Option<(Wait, Span)> {
    let longest = block.map(|block| call.longest_wait(block))?;
    let is_behind = || (0..joint.pairs().count()).any(|pair| joint.ahead(pair).is_some());
    let can_wait = !is_held && several.manner != Manner::Force;
    let refused = can_wait && (!joint.combined()?.verdict.admits() || is_behind());
    if !refused {
        return None;
    }
    wait_within(call, longest, &several.keys, joint, |pair, _| claims.get(pair).copied().flatten())?;
    let refusing = joint.waits_for()?.into_iter();
    let expected = refusing.fold(Wait::default(), |wait, (pair, _, part, retry)| {
        let first = joint.ahead(pair).unwrap_or_default();
        wait.and(first.max(retry), part.has_room_early())
    });
    Some((expected, longest))
}

/// The decision on a call whose pairs were looked at, and `before` that. `None` never happens: each of them has an answer.
fn decision_of<H: Host>(
    call: &H,
    several: &Several<'_, '_, H>,
    joint: &mut Joint<'_, '_>,
    before: &[Answer],
    waits: Option<(Wait, Span)>,
    is_held: bool,
    claims: &[Option<Claim<&[u8]>>],
) -> Option<Decision> {
    let pairs: Vec<(&Part<'_>, usize)> = joint.pairs().map(|(part, _, key)| (part, key)).collect();
    let callers = |pair: usize| {
        let claim = claims.get(pair).copied().flatten();
        let found = pairs.get(pair).zip(claim);
        found.map_or(0, |((part, key), claim)| call.before(several.keys.place(*key), part.name, &claim))
    };
    let ahead: Vec<usize> = (0..pairs.len()).filter(|pair| joint.ahead(*pair).is_some()).collect();
    if let Some((expected, longest)) = waits {
        let behind = ahead.iter().map(|pair| callers(*pair)).max().unwrap_or(0);
        return Some(Decision::Waits { behind, expected, longest });
    }
    match joint.combined()?.verdict {
        Verdict::Admit { .. } if is_held => return Some(Decision::Held),
        Verdict::Refuse { .. } if several.manner == Manner::Force && !is_held => {
            return Some(Decision::Forced);
        }
        Verdict::Admit { .. } if several.manner == Manner::Force => {
            return Some(Decision::Admitted { wait: Span::ZERO });
        }
        Verdict::Admit { wait } if ahead.is_empty() => return Some(Decision::Admitted { wait }),
        _ => {}
    }
    joint.fall_behind();
    let limit = joint.binding();
    let pair = usize::try_from(limit).ok()?.checked_sub(1)?;
    let ((part, _), before) = pairs.get(pair).zip(before.get(pair))?;
    let answer = joint.answers().nth(pair)?;
    Some(match joint.ahead(pair) {
        Some(first) if before.verdict != Verdict::NEVER => behind(limit, callers(pair), first, *before),
        _ => {
            let most = with_limiter!(&part.limiter, limiter => limiter.most(answer.gauge));
            refusal((limit, most), part.cost, answer, before.verdict, part.is_penalty())
        }
    })
}

/// The key at this place.
fn key_at(call: &impl Host, place: usize) -> &[u8] {
    call.word(place).unwrap_or_default()
}
