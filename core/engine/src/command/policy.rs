//! `RL.POLICY SET | GET | DEL | LIST | STATS | LOAD | SAVE | HELP`: the policies of this node.

use std::borrow::Cow;
use std::sync::Arc;

use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, policy_name};

use super::entry::Command;
use crate::host::Host;
use crate::policies::{CountedPolicy, LimitCounts, Named};
use crate::reply::{FieldValue, Fields, Reply};

pub struct Policy;

impl Command for Policy {
    const DOCUMENTATION: Documentation = docs::POLICY;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let word = call.arguments(1).next().ok_or(Error::Arity)?;
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("SET") {
            store(call)
        } else if is("GET") {
            Ok(call.node().policies().get(only(call)?).map_or(Reply::Null, |stored| {
                let limits = FieldValue::Text(stored.policy.words().to_owned().into());
                Reply::Map(vec![version(&stored), ("limits".into(), limits)])
            }))
        } else if is("DEL") {
            Ok(Reply::Integer(call.node().policies().delete(only(call)?).into()))
        } else if is("STATS") {
            Ok(call.node().policies().get(only(call)?).map_or(Reply::Null, |stored| {
                let limits = FieldValue::Maps(stored.limits().map(limit).collect());
                let fields = [version(&stored)].into_iter().chain(counts(stored.counts.by_name()));
                Reply::Map(fields.chain([("limits".into(), limits)]).collect())
            }))
        } else if is("LIST") {
            none(call)?;
            let versions = |(name, stored): Named| (String::from(name).into(), version(&stored).1);
            Ok(Reply::Map(call.node().policies().first(usize::MAX).into_iter().map(versions).collect()))
        } else if is("LOAD") {
            none(call)?;
            call.load_policies().map(|count| Reply::Integer(count as u64))
        } else if is("SAVE") {
            none(call)?;
            call.save_policies().map(|count| Reply::Integer(count as u64))
        } else if is("HELP") {
            none(call)?;
            Ok(Reply::Lines(docs::POLICY.explained()))
        } else {
            Err(Error::near_because(word, "RL.POLICY HELP lists the subcommands"))
        }
    }
}

/// Stores a policy, and replies its version.
fn store(call: &impl Host) -> Result<Reply, Error> {
    let (name, (version, policy)) = call.parse(2.., |arguments| {
        Ok((policy_name(arguments)?, ratelimit_language::Policy::parse(arguments)?))
    })?;
    call.node().policies().set(name, version, policy).map(Reply::Integer)
}

/// The only argument after the subcommand: a policy's name.
fn only(call: &impl Host) -> Result<&[u8], Error> {
    match call.arguments(2).next() {
        Some(name) if call.len() == 3 => Ok(name),
        _ => Err(Error::Arity),
    }
}

/// Checks that no argument follows the subcommand.
fn none(call: &impl Host) -> Result<(), Error> {
    if call.len() == 2 { Ok(()) } else { Err(Error::Arity) }
}

/// The words of a limit, and its counts.
fn limit((words, limit): (&str, &Arc<LimitCounts>)) -> Fields {
    let words = FieldValue::Text(words.to_owned().into());
    [("limit".into(), words)].into_iter().chain(counts(limit.by_name())).collect()
}

fn counts<const N: usize>(counts: [(&'static str, u64); N]) -> [(Cow<'static, str>, FieldValue); N] {
    counts.map(|(name, count)| (name.into(), number(count)))
}

fn version(stored: &CountedPolicy) -> (Cow<'static, str>, FieldValue) {
    ("version".into(), number(stored.version))
}

fn number(number: u64) -> FieldValue {
    FieldValue::Integer(number.cast_signed())
}
