//! `RL.MULTI numkeys key [key ...] [COST cost] [AT at] [FORCE] [HOLD id ttl] [BLOCK timeout [CRITICAL]] LIMIT limiter parameter ...
//! [ON index] [COST cost] [SHADOW] [TENANT tenant [WEIGHT weight]] [LIMIT ...]`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys.
//!
//! All limits are judged first. If all of them admit, all are charged; else none is, and penalties are struck. The changes
//! of all keys are replicated in one command.

use ratelimit_core::{Answer, Joint};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::vocabulary::{KEY, NUMKEYS};
use ratelimit_language::{Error, MultiCall, Purpose, miscounted, multi};

use super::entry::Command;
use crate::count::Counter;
use crate::host::Host;
use crate::key::SeveralKeys;
use crate::plan::several::{Several, Taken};
use crate::reply::Reply;

pub struct Multi;
pub struct MultiPeek;
pub struct MultiRefund;

/// The places of the number of keys, and of the first key.
const NUMBER: usize = 1;
pub(super) const FIRST: usize = 2;

impl Command for Multi {
    const DOCUMENTATION: Documentation = docs::MULTI;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (keys, arguments) = parse(call, Purpose::Charge)?;
        let several = Several::of(keys, &arguments);
        match several.take(Counter::Multi, arguments.hold, arguments.block)? {
            Taken::Decided(joint, _) => reply(&joint),
            Taken::Waits(wait) => Ok(Reply::Wait(wait)),
        }
    }
}

impl Command for MultiPeek {
    const DOCUMENTATION: Documentation = docs::MULTIPEEK;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (keys, arguments) = parse(call, Purpose::Peek)?;
        reply(&Several::of(keys, &arguments).peek()?)
    }
}

impl Command for MultiRefund {
    const DOCUMENTATION: Documentation = docs::MULTIREFUND;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (keys, arguments) = parse(call, Purpose::Refund)?;
        reply(&Several::of(keys, &arguments).refund()?)
    }
}

/// Parses the keys, and the arguments after them. An error says so if the number of keys is wrong.
pub(super) fn parse<H: Host>(
    call: &H,
    purpose: Purpose,
) -> Result<(SeveralKeys<'_, H>, MultiCall<'_>), Error> {
    parse_counted(call, purpose).map_err(|error| miscounted(call.arguments(NUMBER)).unwrap_or(error))
}

#[inline(always)]
fn parse_counted<H: Host>(call: &H, purpose: Purpose) -> Result<(SeveralKeys<'_, H>, MultiCall<'_>), Error> {
    let keys = keys(call)?;
    let count = keys.count();
    let arguments = call.parse(FIRST + count.., |arguments| multi(arguments, count as u64, purpose))?;
    Ok((keys, arguments))
}

/// Returns the keys, after two checks: all are there, and all differ.
pub(super) fn keys<H: Host>(call: &H) -> Result<SeveralKeys<'_, H>, Error> {
    let count: usize = call.parse(NUMBER..FIRST, |arguments| arguments.read(NUMKEYS))?;
    if call.len() < FIRST + count {
        return Err(Error::absent(KEY.name));
    }
    SeveralKeys::new(call, [FIRST..FIRST + count, 0..0])
}

fn reply(joint: &Joint<'_, '_>) -> Result<Reply, Error> {
    answers(joint).map(|(combined, answers)| Reply::Answers(combined, answers))
}

/// The combined answer, and that of each limit on each key.
#[inline(always)]
pub(super) fn answers(joint: &Joint<'_, '_>) -> Result<(Answer, Vec<Answer>), Error> {
    let combined = joint.combined().ok_or(Error::Internal)?;
    Ok((combined, joint.answers().collect()))
}
