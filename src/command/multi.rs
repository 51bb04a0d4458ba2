//! `RL.MULTI numkeys key [key ...] [COST cost] [AT at] [FORCE] [HOLD id ttl] LIMIT limiter parameter ... [ON index] [COST cost]
//! [SHADOW] [LIMIT ...]`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys.
//!
//! All limits are judged first. If all of them admit, all are charged; else none is, and penalties are struck. The changes
//! of all keys are replicated in one command.

use std::iter::empty;

use ratelimit_core::{Answer, Held, Hold, Joint, MAX_PAIRS, Part, Time};
use ratelimit_language::vocabulary::{
    AT, Argument, COST, FORCE, HOLD, HOLD_TTL, KEY, LIMIT, NUMKEYS, ON, PARAMETER, REFUNDED, SHADOW,
};
use ratelimit_language::{Error, Multi as Arguments, Purpose, multi};

use crate::server::{
    Call, Command, Counter, Key, KeyUse, Keys, Outcome, Reply, SeveralKeys, clock, count_refused_in_shadow,
    most_holds, publish,
};

pub struct Multi;
pub struct MultiPeek;
pub struct MultiRefund;

const SYNTAX: &str = "numkeys key ... [COST cost] [AT at] [FORCE] [HOLD id ttl] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW]} ...";
const WITHOUT_FORCE: &str =
    "numkeys key ... [COST cost] [AT at] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW]} ...";

/// The places of the number of keys, and of the first key.
const NUMBER: usize = 1;
pub(super) const FIRST: usize = 2;

impl Command for Multi {
    const NAME: &'static str = "MULTI";
    const SYNTAX: &'static str = SYNTAX;
    const SUMMARY: &'static str =
        "Asks several limits on several keys at once, and charges them if all admit";
    const COMPLEXITY: &'static str = "The sum of the limiters' commands, for each key";
    const ARGUMENTS: &'static [Argument] =
        &[NUMKEYS, KEY, COST, AT, FORCE, HOLD, HOLD_TTL, LIMIT, PARAMETER, ON, SHADOW];
    const REPLY: &'static [&'static str] = &[
        "Two elements: the combined five integers, and an array with the five integers of each limit on each key.",
    ];
    const EXAMPLE: &'static str = "RL.MULTI 2 ip:1 user:7 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2";
    const FLAGS: &'static str = "write deny-oom getkeys-api";
    const KEYS: Keys = Keys::Counted(KeyUse::Update);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (several, arguments) = parse(call, Purpose::Charge)?;
        let clock = clock();
        let at = arguments.at.unwrap_or(clock);
        let mut joint = Joint::new(&arguments.parts, several.count(), at, arguments.manner)?;
        let mut keys = several.open()?;
        for (place, key) in keys.iter_mut().enumerate() {
            let named = joint.named(place);
            let charged = named.clone().filter(|part| part.cost > 0);
            let at_once = charged.clone().filter(|part| !part.is_penalty()).map(|part| part.name);
            let charged = charged.map(|part| part.name);
            key.prepare(at, at_once, charged, |name| named.clone().any(|part| part.name == name))?;
        }
        let admitted = match arguments.hold {
            None => joint.take(&mut keys)?,
            Some((id, ttl)) => {
                make_room_for_holds(&joint, &mut keys);
                match joint.take_and_hold(&mut keys, &Hold { id, ttl, most: most_holds() })? {
                    Held::Admitted => true,
                    Held::Refused => false,
                    Held::Already => return reply(&joint),
                }
            }
        };
        commit(call, &joint, &mut keys, clock, at);
        drop(keys);
        if arguments.parts.iter().any(|part| part.cost > 0) {
            let outcome = if admitted { Outcome::Admitted } else { Outcome::Refused };
            call.count(Counter::Multi, outcome);
            if admitted && joint.refuses_in_shadow() {
                count_refused_in_shadow();
            }
            for key in (0..several.count()).filter(|key| joint.charges(*key)) {
                call.notify(FIRST + key, outcome);
            }
        }
        reply(&joint)
    }
}

impl Command for MultiPeek {
    const NAME: &'static str = "MULTIPEEK";
    const SYNTAX: &'static str = WITHOUT_FORCE;
    const SUMMARY: &'static str = "Replies what RL.MULTI would reply, and charges nothing";
    const COMPLEXITY: &'static str = Multi::COMPLEXITY;
    const ARGUMENTS: &'static [Argument] = &[NUMKEYS, KEY, COST, AT, LIMIT, PARAMETER, ON, SHADOW];
    const REPLY: &'static [&'static str] = Multi::REPLY;
    const EXAMPLE: &'static str =
        "RL.MULTIPEEK 2 ip:1 user:7 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2";
    const FLAGS: &'static str = "readonly getkeys-api";
    const KEYS: Keys = Keys::Counted(KeyUse::Read);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (several, arguments) = parse(call, Purpose::Peek)?;
        let at = arguments.at.unwrap_or_else(clock);
        let mut joint = Joint::new(&arguments.parts, several.count(), at, arguments.manner)?;
        for place in 0..several.count() {
            let mut key = several.peek(place)?;
            key.prepare(at, empty(), empty(), |_| false)?;
            joint.peek(place, &key);
        }
        reply(&joint)
    }
}

impl Command for MultiRefund {
    const NAME: &'static str = "MULTIREFUND";
    const SYNTAX: &'static str = WITHOUT_FORCE;
    const SUMMARY: &'static str = "Gives back to several limits what was charged and not used";
    const COMPLEXITY: &'static str = Multi::COMPLEXITY;
    const ARGUMENTS: &'static [Argument] = &[NUMKEYS, KEY, REFUNDED, AT, LIMIT, PARAMETER, ON, SHADOW];
    const REPLY: &'static [&'static str] = Multi::REPLY;
    const EXAMPLE: &'static str =
        "RL.MULTIREFUND 2 ip:1 user:7 COST 3 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2";
    const FLAGS: &'static str = "write fast getkeys-api";
    const KEYS: Keys = Keys::Counted(KeyUse::Update);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (several, arguments) = parse(call, Purpose::Refund)?;
        let clock = clock();
        let at = arguments.at.unwrap_or(clock);
        let mut joint = Joint::new(&arguments.parts, several.count(), at, arguments.manner)?;
        let mut keys = several.open()?;
        for key in &mut *keys {
            key.prepare(at, empty(), empty(), |_| false)?;
        }
        joint.refund(&mut keys)?;
        commit(call, &joint, &mut keys, clock, at);
        reply(&joint)
    }
}

/// Prepares the keys in which the call holds something.
fn make_room_for_holds(joint: &Joint<'_, '_>, keys: &mut [Key<'_, '_>]) {
    for (place, key) in keys.iter_mut().enumerate() {
        if joint.named(place).any(Part::can_be_held) {
            key.make_room_for_holds();
        }
    }
}

/// Parses the keys, and the arguments after them.
fn parse<'c, 'a>(
    call: &'c Call<'a>,
    purpose: Purpose,
) -> Result<(SeveralKeys<'c, 'a>, Arguments<'a>), Error> {
    let keys = keys(call)?;
    let count = keys.count();
    let arguments = call.parse(FIRST + count.., |arguments| multi(arguments, count as u64, purpose))?;
    Ok((keys, arguments))
}

/// Returns the keys, after two checks: all differ, and an argument follows the last one.
pub(super) fn keys<'c, 'a>(call: &'c Call<'a>) -> Result<SeveralKeys<'c, 'a>, Error> {
    let count = call.parse(NUMBER..FIRST, |arguments| arguments.number("numkeys", 1, MAX_PAIRS as u64))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if call.len() <= FIRST + count {
        return Err(Error::Arity);
    }
    SeveralKeys::new(call, FIRST, count)
}

/// Commits the changes of all keys and publishes them. A key that is fully reset after a refund or a settlement is deleted.
pub(super) fn commit(
    call: &Call<'_>,
    joint: &Joint<'_, '_>,
    keys: &mut [Key<'_, '_>],
    clock: Time,
    at: Time,
) {
    for (place, key) in keys.iter_mut().enumerate() {
        let (latest, reset) = joint.reset(place);
        key.settle(joint.gave_back(place).then_some(at), clock, latest, reset);
    }
    publish(call, keys);
}

fn reply(joint: &Joint<'_, '_>) -> Result<Reply, Error> {
    answers(joint).map(|(combined, answers)| Reply::Answers(combined, answers))
}

/// The combined answer, and that of each limit on each key.
#[inline(always)]
pub(super) fn answers(joint: &Joint<'_, '_>) -> Result<(Answer, Vec<Answer>), Error> {
    let answers: Vec<_> = joint.answers().collect();
    let combined = joint.combined(&answers).ok_or(Error::Internal)?;
    Ok((combined, answers))
}
