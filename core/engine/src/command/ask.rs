//! `RL.ASK key policy [COST cost] [ID id] [FORCE] [AT at] [HOLD id ttl] [BLOCK timeout [CRITICAL]] [TENANT tenant
//! [WEIGHT weight]] [FULL] [KEYS key ...]`, `RL.ASKPEEK`,
//! `RL.ASKREFUND`, `RL.ASKSETTLE`: the limits of a policy, by its name.
//!
//! They do what `RL.MULTI`, `RL.MULTIPEEK`, `RL.MULTIREFUND` and `RL.MULTISETTLE` do with the limits of the policy. The key
//! comes first, because clients of a cluster that do not know a command take its first argument for its key.

use std::iter::once;
use std::ops::Range;
use std::sync::Arc;

use ratelimit_core::{Joint, JointError, Manner, Part, Place, Span, with_limiter};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, PolicyCall, Purpose, lease_id};

use super::entry::Command;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::SeveralKeys;
use crate::plan::own::take;
use crate::plan::several::{Several, Taken};
use crate::policies::CountedPolicy;
use crate::record::{Called, Deed};
use crate::reply::Reply;
use crate::waiting::Turns;

pub struct Ask;
pub struct AskPeek;
pub struct AskRefund;
pub struct AskSettle;

/// The places of the first key and of the policy's name, and of what follows.
const FIRST: usize = 1;
const NAME: usize = 2;
const REST: usize = 3;

impl Command for Ask {
    const DOCUMENTATION: Documentation = docs::ASK;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        run(call, Purpose::Charge, |policy, several, asked| {
            if !H::IS_SMALL
                && let [part] = several.parts
                && asked.is_plain()
                && !(call.somebody_waits() && call.has_line(FIRST, part.name))
                && part.is_strict()
                && part.cost > 0
            {
                return take_only(call, policy, part, asked);
            }
            let taken = several.take(Counter::Ask, asked.hold(), asked.block())?;
            let (joint, outcome) = match taken {
                Taken::Decided(joint, outcome) => (joint, outcome),
                Taken::Waits(wait) => return Ok(Reply::Wait(wait)),
            };
            if let Some(outcome) = outcome {
                policy.count(outcome, joint.refusing());
                remember(call, asked, asked.hold(), outcome.into());
            }
            if outcome == Some(Outcome::Admitted) && joint.refuses_in_shadow() {
                policy.count_refusal_in_shadow(joint.refusing_in_shadow());
            }
            reply(&joint, asked, None)
        })
    }

    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        keys(call, Purpose::Charge)
    }
}

impl Command for AskPeek {
    const DOCUMENTATION: Documentation = docs::ASKPEEK;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        run(call, Purpose::Peek, |_, several, asked| reply(&several.peek()?, asked, None))
    }

    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        keys(call, Purpose::Peek)
    }
}

impl Command for AskRefund {
    const DOCUMENTATION: Documentation = docs::ASKREFUND;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        run(call, Purpose::Refund, |_, several, asked| {
            let joint = several.refund()?;
            remember(call, asked, None, Deed::Refund);
            reply(&joint, asked, None)
        })
    }

    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        keys(call, Purpose::Refund)
    }
}

impl Command for AskSettle {
    const DOCUMENTATION: Documentation = docs::ASKSETTLE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        run(call, Purpose::Settle, |_, several, asked| {
            let id = call.parse(REST.., lease_id)?;
            let (joint, held) = several.settle(id)?;
            remember(call, asked, Some((id, Span::ZERO)), Deed::Settlement);
            reply(&joint, asked, Some(held))
        })
    }

    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        keys(call, Purpose::Settle)
    }
}

/// Finds the policy, parses the call, and asks the limits. An error is counted for the policy.
#[inline(always)]
fn run<'c, H: Host>(
    call: &'c H,
    purpose: Purpose,
    ask: impl FnOnce(&CountedPolicy, &Several<'_, 'c, H>, &PolicyCall<'c>) -> Result<Reply, Error>,
) -> Result<Reply, Error> {
    let (name, policy) = policy(call)?;
    let replied = with_limits(call, purpose, name, &policy, |several, asked| ask(&policy, several, asked));
    if replied.is_err() {
        policy.counts.errors.add_one();
    }
    replied
}

/// The name of the policy that the call asks, and the policy.
#[inline(always)]
pub(super) fn policy(call: &impl Host) -> Result<(&[u8], Arc<CountedPolicy>), Error> {
    let (key, name) = (call.word(FIRST)?, call.word(NAME)?);
    let node = call.node();
    let policy = node.policies().get_within(name, key, node.settings.bounds())?;
    Ok((name, policy))
}

/// Parses a call of a policy, and asks the limits.
#[inline(always)]
pub(super) fn with_limits<'c, H: Host, T>(
    call: &'c H,
    purpose: Purpose,
    name: &[u8],
    policy: &CountedPolicy,
    ask: impl FnOnce(&Several<'_, 'c, H>, &PolicyCall<'c>) -> Result<T, Error>,
) -> Result<T, Error> {
    let asked = parse(call, purpose)?;
    let parts = policy.policy.parts(name, &asked, purpose)?;
    let keys = SeveralKeys::new(call, places(call, &asked))?;
    ask(&Several { keys, parts: &parts, at: asked.at(), manner: asked.manner() }, &asked)
}

/// Asks the only limit of a policy, for one key. It does what [`Several::take`] does, in fewer steps.
#[inline(always)]
fn take_only<H: Host>(
    call: &H,
    policy: &CountedPolicy,
    part: &Part<'_>,
    asked: &PolicyCall<'_>,
) -> Result<Reply, Error> {
    let name = part.name;
    let taken = with_limiter!(&part.limiter, limiter => {
        take(call, limiter, part.cost, asked.manner(), asked.at(), |key, at| {
            key.prepare(at, once(name), once(name), &once(name))?;
            Ok(Place::of(name.length))
        })
    });
    let taken = match taken {
        Err(Error::TooLong) => return Err(JointError::TooLong { limit: 0 }.into()),
        taken => taken?,
    };
    let outcome = Outcome::of(taken.verdict);
    call.record(FIRST, Counter::Ask, outcome);
    policy.count(outcome, once(0));
    remember(call, asked, None, outcome.into());
    Ok(Reply::Six(taken.answer(), 1))
}

/// Adds a call that has ended to the record, if the settings ask for it.
#[inline(always)]
fn remember<H: Host>(call: &H, asked: &PolicyCall<'_>, hold: Option<(&[u8], Span)>, deed: Deed) {
    if call.node().settings.records() {
        add_to_record(call, asked, hold, deed);
    }
}

#[cold]
#[inline(never)]
fn add_to_record<H: Host>(call: &H, asked: &PolicyCall<'_>, hold: Option<(&[u8], Span)>, deed: Deed) {
    let [first, more] = places(call, asked);
    let keys = first.chain(more).map(|place| call.word(place).unwrap_or_default());
    let called = Called {
        at: asked.at().unwrap_or_else(|| call.clock()),
        policy: call.word(NAME).unwrap_or_default(),
        hold,
        cost: asked.own_cost(),
        database: call.database(),
        is_forced: asked.manner() == Manner::Force,
        deed,
    };
    let node = call.node();
    node.record().add(node.settings.most_recorded(), &called, keys);
}

/// The sixth integer is the number of the pair that binds, if no other is given.
#[inline(always)]
fn reply(joint: &Joint<'_, '_>, asked: &PolicyCall<'_>, sixth: Option<u64>) -> Result<Reply, Error> {
    let combined = joint.combined().ok_or(Error::Internal)?;
    let sixth = sixth.unwrap_or_else(|| joint.binding());
    Ok(if asked.full {
        Reply::SixAndEach(combined, sixth, joint.answers().collect())
    } else {
        Reply::Six(combined, sixth)
    })
}

/// Parses the arguments after the policy's name, and after the id of a settlement.
#[inline(always)]
fn parse(call: &impl Host, purpose: Purpose) -> Result<PolicyCall<'_>, Error> {
    let after = REST + usize::from(purpose == Purpose::Settle);
    if call.len() == REST {
        return Ok(PolicyCall::default());
    }
    call.parse(after.., |arguments| PolicyCall::parse(arguments, purpose))
}

/// The places of the keys: the first one, and those at the end of the call.
#[inline(always)]
fn places(call: &impl Host, asked: &PolicyCall<'_>) -> [Range<usize>; 2] {
    [FIRST..NAME, call.len() - asked.more_keys..call.len()]
}

fn keys(call: &impl Host, purpose: Purpose) -> [Range<usize>; 2] {
    places(call, &parse(call, purpose).unwrap_or_default())
}
