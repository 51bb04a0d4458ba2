//! Commands about several limits on several keys.

use std::collections::BTreeSet;

use ratelimit_core::answer::clamped;
use ratelimit_core::state::fits;
use ratelimit_core::{Hold, Joint, LimitSet, Time};
use ratelimit_language::vocabulary::{BLOCK, NUMKEYS, TENANT};
use ratelimit_language::{Arguments, Error, MultiCall, Purpose, lease_id, miscounted, multi};

use super::{Answered, BOUNDS, MOST_HOLDS, Memory, forget_if_reset, needs_server};
use crate::reply::{Full, Reply};

impl Memory {
    /// `RL.MULTI numkeys key ... [options] LIMIT ...`.
    pub(super) fn multi(&mut self, words: &[&[u8]]) -> Answered {
        self.joint(words, Purpose::Charge)
    }

    /// `RL.MULTIPEEK numkeys key ... [options] LIMIT ...`.
    pub(super) fn multi_peek(&mut self, words: &[&[u8]]) -> Answered {
        self.joint(words, Purpose::Peek)
    }

    /// `RL.MULTIREFUND numkeys key ... [options] LIMIT ...`.
    pub(super) fn multi_refund(&mut self, words: &[&[u8]]) -> Answered {
        self.joint(words, Purpose::Refund)
    }

    /// `RL.MULTISETTLE numkeys key ... id [options] LIMIT ...`.
    pub(super) fn multi_settle(&mut self, words: &[&[u8]]) -> Answered {
        self.joint(words, Purpose::Settle)
    }

    /// A call with several limits.
    fn joint(&mut self, words: &[&[u8]], purpose: Purpose) -> Answered {
        let parsed = several(words).and_then(|(keys, mut arguments)| {
            let id = if purpose == Purpose::Settle { lease_id(&mut arguments)? } else { &[] };
            Ok((keys, id, multi(&mut arguments, keys.len() as u64, purpose)?))
        });
        let (keys, id, call) = parsed.map_err(|error| {
            let miscounted = miscounted(words.iter().copied()).filter(|_| purpose != Purpose::Settle);
            miscounted.unwrap_or(error)
        })?;
        if call.block.is_some() {
            return Err(needs_server(BLOCK.name));
        }
        // A server remembers which tenants were refused by the other limits of a call.
        if purpose == Purpose::Charge && call.parts.iter().any(|part| part.tenant.is_some()) {
            return Err(needs_server(&format!("RL.MULTI with {}", TENANT.name)));
        }
        let at = self.at(call.at)?;
        let mut joint = Joint::new(&call.parts, keys.len(), at, call.manner)?;
        if let Some(other) =
            keys.iter().find_map(|key| self.keys.get(*key).filter(|value| !value.is_limits()))
        {
            return Err(Error::other_kind(other.kind(), None).into());
        }
        let mut limits = keys.iter().map(|key| self.take(key, None)).collect::<Result<Vec<_>, _>>()?;
        let decided = decide(&mut joint, &mut limits, &call, purpose, id, at);
        for (place, (key, mut limits)) in keys.iter().zip(limits).enumerate() {
            let (_, reset) = joint.reset(place);
            forget_if_reset(&mut limits, joint.gave_back(place).then_some(at), reset);
            self.put(key, limits);
        }
        let settled = decided?;
        let all = joint.combined().ok_or(Error::Internal)?.integers();
        let each = joint.answers().map(|answer| answer.integers()).collect();
        Ok(Full { reply: settled.map_or(Reply::Five(all), |held| Reply::Settled(all, clamped(held))), each })
    }
}

/// The keys, and the arguments after them.
pub(super) fn several<'w, 'a>(words: &'w [&'a [u8]]) -> Result<(&'w [&'a [u8]], Arguments<'w, 'a>), Error> {
    let (number, words) = words.split_at_checked(1).ok_or(Error::Arity)?;
    let count = Arguments::new(number, BOUNDS).read(NUMKEYS)?;
    let (keys, rest) =
        words.split_at_checked(count).filter(|(_, rest)| !rest.is_empty()).ok_or(Error::Arity)?;
    let mut before = BTreeSet::new();
    if keys.iter().all(|key| before.insert(key)) {
        Ok((keys, Arguments::new(rest, BOUNDS)))
    } else {
        Err(Error::SameKeys)
    }
}

/// Decides a call with several limits. Returns how many keys held what it settles, if it settles.
fn decide(
    joint: &mut Joint<'_, '_>,
    limits: &mut [LimitSet],
    call: &MultiCall<'_>,
    purpose: Purpose,
    id: &[u8],
    at: Time,
) -> Result<Option<u64>, Error> {
    match (purpose, call.hold) {
        (Purpose::Peek, _) => {
            limits.iter().enumerate().for_each(|(key, limits)| joint.peek(key, limits));
            Ok(None)
        }
        (Purpose::Refund, _) => Ok(joint.refund(limits).map(|()| None)?),
        (Purpose::Settle, _) => Ok(joint.settle(limits, id).map(Some)?),
        (Purpose::Charge, hold) => {
            for (key, limits) in limits.iter().enumerate() {
                let stored = limits.limits().map(|limit| (limit.name, limit.until()));
                let charged = joint.named(key).filter(|part| part.cost > 0).map(|part| part.name);
                if !fits(&stored, charged, &joint.named(key).map(|part| part.name), at) {
                    return Err(Error::TooManyLimits);
                }
            }
            match hold {
                None => _ = joint.take(limits)?,
                Some((id, ttl)) => _ = joint.take_and_hold(limits, &Hold { id, ttl, most: MOST_HOLDS })?,
            }
            Ok(None)
        }
    }
}
