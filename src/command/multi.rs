//! `RL.MULTI numkeys key [key ...] [COST cost] [AT at] [FORCE] LIMIT limiter parameter ... [ON i] [COST cost]
//! [LIMIT ...]`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys.
//!
//! All limits are judged first. If all of them admit, all are charged; else none is. The changes of all keys are
//! replicated in one command.

use ratelimit_core::{Joint, MAX_PAIRS, Part, Time};
use ratelimit_language::{Error, Multi as Arguments, Purpose, multi};

use crate::server::{Access, Call, Command, Counter, Key, KeyUse, Keys, Outcome, Reply, clock, publish};

pub struct Multi;
pub struct MultiPeek;
pub struct MultiRefund;

const SYNTAX: &str =
    "numkeys key ... [COST cost] [AT at] [FORCE] {LIMIT limiter parameter ... [ON on] [COST cost]} ...";
const WITHOUT_FORCE: &str =
    "numkeys key ... [COST cost] [AT at] {LIMIT limiter parameter ... [ON on] [COST cost]} ...";

/// The places of the number of keys, and of the first key.
const NUMBER: usize = 1;
pub(super) const FIRST: usize = 2;

impl Command for Multi {
    const NAME: &'static str = "MULTI";
    const SYNTAX: &'static str = SYNTAX;
    const SUMMARY: &'static str = "Asks several limits on several keys at once, and charges all or none";
    const COMPLEXITY: &'static str = "The sum of the limiters' commands, for each key";
    const FLAGS: &'static str = "write deny-oom getkeys-api";
    const KEYS: Keys = Keys::Counted(KeyUse::Update);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (count, arguments) = parse(call, Purpose::Charge)?;
        let clock = clock();
        let at = arguments.at.unwrap_or(clock);
        let mut joint = Joint::new(&arguments.parts, count, at, arguments.manner)?;
        let mut keys = open(call, Access::Write, count, at, |key| joint.named(key))?;
        let admitted = joint.take(&mut keys)?;
        commit(call, &joint, &mut keys, clock, at);
        drop(keys);
        if arguments.parts.iter().any(|part| part.cost > 0) {
            let outcome = if admitted { Outcome::Admitted } else { Outcome::Refused };
            call.count(Counter::Multi, outcome);
            for key in (0..count).filter(|key| joint.charges(*key)) {
                call.notify(FIRST + key, outcome);
            }
        }
        Ok(reply(&joint))
    }
}

impl Command for MultiPeek {
    const NAME: &'static str = "MULTIPEEK";
    const SYNTAX: &'static str = WITHOUT_FORCE;
    const SUMMARY: &'static str = "Replies what RL.MULTI would reply, and charges nothing";
    const COMPLEXITY: &'static str = Multi::COMPLEXITY;
    const FLAGS: &'static str = "readonly getkeys-api";
    const KEYS: Keys = Keys::Counted(KeyUse::Read);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (count, arguments) = parse(call, Purpose::Peek)?;
        let at = arguments.at.unwrap_or_else(clock);
        let mut joint = Joint::new(&arguments.parts, count, at, arguments.manner)?;
        let keys = open(call, Access::Read, count, at, |_| std::iter::empty())?;
        joint.peek(&keys);
        Ok(reply(&joint))
    }
}

impl Command for MultiRefund {
    const NAME: &'static str = "MULTIREFUND";
    const SYNTAX: &'static str = WITHOUT_FORCE;
    const SUMMARY: &'static str = "Gives back to several limits what was charged and not used";
    const COMPLEXITY: &'static str = Multi::COMPLEXITY;
    const FLAGS: &'static str = "write fast getkeys-api";
    const KEYS: Keys = Keys::Counted(KeyUse::Update);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (count, arguments) = parse(call, Purpose::Refund)?;
        let clock = clock();
        let at = arguments.at.unwrap_or(clock);
        let mut joint = Joint::new(&arguments.parts, count, at, arguments.manner)?;
        let mut keys = open(call, Access::Write, count, at, |_| std::iter::empty())?;
        joint.refund(&mut keys)?;
        commit(call, &joint, &mut keys, clock, at);
        Ok(reply(&joint))
    }
}

/// Parses the number of keys, and the arguments after the keys.
fn parse<'a>(call: &Call<'a>, purpose: Purpose) -> Result<(usize, Arguments<'a>), Error> {
    let count = keys(call)?;
    let arguments = call.parse(FIRST + count.., |arguments| multi(arguments, count as u64, purpose))?;
    Ok((count, arguments))
}

/// Returns the number of keys, after two checks: all keys differ, and an argument follows the last one.
pub(super) fn keys(call: &Call<'_>) -> Result<usize, Error> {
    let count = call.parse(NUMBER..FIRST, |arguments| arguments.number("numkeys", 1, MAX_PAIRS as u64))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if call.len() <= FIRST + count {
        return Err(Error::Arity);
    }
    let names = || call.arguments(FIRST).take(count).enumerate();
    if names().any(|(place, name)| names().take(place).any(|(_, other)| other == name)) {
        return Err(Error::SameKeys);
    }
    Ok(count)
}

/// Opens the keys. `named` returns the limits that the call may charge on a key, and that it names there.
fn open<'c, 'p, 'a: 'p, P>(
    call: &'c Call<'a>,
    access: Access,
    count: usize,
    at: Time,
    named: impl Fn(usize) -> P,
) -> Result<Vec<Key<'c, 'a>>, Error>
where
    P: Iterator<Item = &'p Part<'a>> + Clone,
{
    let open = |key| {
        let parts = named(key);
        let charged = parts.clone().filter(|part| part.cost > 0).map(|part| part.name);
        let mut opened = Key::open(call, FIRST + key, access)?;
        opened.prepare(at, charged, |name| parts.clone().any(|part| part.name == name))?;
        Ok(opened)
    };
    (0..count).map(open).collect()
}

/// Commits the changes of all keys and publishes them. A key that is fully reset after a refund is deleted.
fn commit(call: &Call<'_>, joint: &Joint<'_, '_>, keys: &mut [Key<'_, '_>], clock: Time, at: Time) {
    for (place, key) in keys.iter_mut().enumerate() {
        let (latest, reset) = joint.reset(place);
        key.settle(joint.refunded(place).then_some(at), clock, latest, reset);
    }
    publish(call, keys);
}

fn reply(joint: &Joint<'_, '_>) -> Reply {
    Reply::Answers(joint.answers().collect())
}
