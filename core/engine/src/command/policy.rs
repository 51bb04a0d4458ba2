//! `RL.POLICY SET | GET | DEL | LIST | STATS | TRY | LOAD | SAVE | HELP`: policies. `RL.POLICY APPLY` brings the changes of another node.
//!
//! The host checks the names of the subcommands.

use std::borrow::Cow;
use std::sync::Arc;

use ratelimit_core::state::hash_of_id;
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, TryCall, policy_name};

use super::entry::Command;
use crate::host::Host;
use crate::policies::{CountedPolicy, Effect, LimitCounts, Named};
use crate::record::Wanted;
use crate::reply::{FieldValue, Fields, Reply};

pub struct Policy;

impl Command for Policy {
    const DOCUMENTATION: Documentation = docs::POLICY;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let word = call.arguments(1).next().ok_or(Error::Arity)?;
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let words = if ["GET", "DEL", "STATS"].into_iter().any(is) {
            3
        } else if ["LIST", "LOAD", "SAVE", "HELP"].into_iter().any(is) {
            2
        } else {
            usize::MAX
        };
        if let Some(word) = call.arguments(words).next() {
            return Err(Error::near(word));
        }
        if is("SET") {
            store(call)
        } else if is("GET") {
            Ok(call.node().policies().get(call.word(2)?).map_or(Reply::Null, |stored| {
                let limits = FieldValue::Text(stored.policy.words().to_owned().into());
                Reply::Map(vec![version(&stored), ("limits".into(), limits)])
            }))
        } else if is("DEL") {
            let name = call.word(2)?;
            let deleted = call.node().policies().delete(name);
            if deleted {
                call.send_policy(&Effect::deletion(name));
            }
            Ok(Reply::Integer(deleted.into()))
        } else if is("STATS") {
            Ok(call.node().policies().get(call.word(2)?).map_or(Reply::Null, |stored| {
                let limits = FieldValue::Maps(stored.limits().map(limit_and_counts).collect());
                let fields = [version(&stored)].into_iter().chain(counts(stored.counts.by_name()));
                Reply::Map(fields.chain([("limits".into(), limits)]).collect())
            }))
        } else if is("LIST") {
            let versions = |(name, stored): Named| (String::from(name).into(), version(&stored).1);
            Ok(Reply::Map(call.node().policies().first(usize::MAX).into_iter().map(versions).collect()))
        } else if is("TRY") {
            try_limits(call)
        } else if is("LOAD") {
            let count = call.load_policies()?;
            call.send_all_policies();
            Ok(Reply::Integer(count as u64))
        } else if is("SAVE") {
            call.save_policies().map(|count| Reply::Integer(count as u64))
        } else if is("HELP") {
            Ok(Reply::Lines(docs::POLICY.explained()))
        } else if is("APPLY") {
            apply(call)
        } else {
            Err(Error::unknown_subcommand(word))
        }
    }
}

/// Stores a policy, and replies its version.
fn store(call: &impl Host) -> Result<Reply, Error> {
    let (name, (version, policy)) = call.parse(2.., |arguments| {
        Ok((policy_name(arguments)?, ratelimit_language::Policy::parse(arguments)?))
    })?;
    let mut policies = call.node().policies();
    let version = policies.set(name, version, policy)?;
    let effect = policies.effect(name);
    drop(policies);
    if let Some(effect) = effect {
        call.send_policy(&effect);
    }
    Ok(Reply::Integer(version))
}

/// Replays what is recorded of a policy by the policy and by other limits.
fn try_limits(call: &impl Host) -> Result<Reply, Error> {
    let TryCall { name, last, key, policy: then } = call.parse(2.., TryCall::parse)?;
    let (name, node) = (name.as_bytes(), call.node());
    let (bounds, most_holds) = (node.settings.bounds(), node.settings.most_holds());
    let now = node.policies().get_within(name, b"", bounds)?.policy.clone();
    if !node.settings.records() {
        return Err(Error::Invalid("no call is recorded: the setting ratelimit.record is 0".into()));
    }
    if now.has_leases() {
        return Err(Error::policy(name, format_args!("has leases, whose ends are not recorded")));
    }
    if then.has_leases() {
        return Err(Error::Invalid("CONCURRENT cannot be tried: ends of leases are not recorded".into()));
    }
    let key = key.map(|key| (call.database(), key.into()));
    let chunks = node.record().share();
    call.replay(Wanted { name: hash_of_id(name), chunks, now, then, last, key, bounds, most_holds })
}

/// Applies a change of another node, and sends it on.
fn apply(call: &impl Host) -> Result<Reply, Error> {
    if !call.is_obeyed() {
        return Err(Error::Invalid("RL.POLICY APPLY is for replicas and the AOF".into()));
    }
    let effect = Effect::of(call.word(2)?, call.word(3)?).ok_or(Error::Payload)?;
    effect.apply(call.node())?;
    call.send_policy(&effect);
    Ok(Reply::Ok)
}

/// The words of a limit, and its counts.
pub(crate) fn limit_and_counts((words, limit): (&str, &Arc<LimitCounts>)) -> Fields {
    let words = FieldValue::Text(words.to_owned().into());
    [("limit".into(), words)].into_iter().chain(counts(limit.by_name())).collect()
}

fn counts<const N: usize>(counts: [(&'static str, u64); N]) -> [(Cow<'static, str>, FieldValue); N] {
    counts.map(|(name, count)| (name.into(), count.into()))
}

fn version(stored: &CountedPolicy) -> (Cow<'static, str>, FieldValue) {
    ("version".into(), stored.version.into())
}
