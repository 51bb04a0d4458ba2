//! The fencing tokens of leases: a later lease of a key has a greater one.

use std::collections::{BTreeMap, BTreeSet};

use ratelimit_engine::reply::Reply;

use super::told::Told;

#[derive(Default)]
pub(super) struct Tokens {
    /// The greatest of each key.
    greatest: BTreeMap<String, u64>,
    /// All that were replied, each with the id of its lease: a node that goes on may still have that lease.
    replied: BTreeSet<(String, u64)>,
    /// The last token of each key and id. Forgotten at a failover, and of keys that are renamed or copied, after which a lease may have
    /// an older one.
    last: BTreeMap<(String, String), u64>,
    /// The greatest that this primary has given.
    own: u64,
}

impl Tokens {
    /// Checks the reply to a call of `RL.CONCURRENT`. Returns whether it has a token.
    pub(super) fn check(&mut self, told: &Told<'_>, reply: &Reply) -> Result<bool, String> {
        let is_fenced = told.name == "RL.CONCURRENT" && told.names("FENCE");
        let (Reply::Six(answer, token), Some(id)) = (reply, told.words.get(4)) else {
            return if is_fenced { Err("no token is replied".into()) } else { Ok(false) };
        };
        if !is_fenced {
            return Ok(false);
        }
        if !answer.verdict.admits() || told.cost == 0 {
            return if *token == 0 { Ok(false) } else { Err(format!("{token} without a lease")) };
        }
        let greatest = self.greatest.entry(told.key().into()).or_default();
        let last = self.last.insert((told.key().into(), (*id).into()), *token);
        let is_new = self.replied.insert(((*id).into(), *token));
        if last.map_or(is_new, |last| last != *token) && *token <= *greatest {
            return Err(format!("the token {token} of {id} is new, and not above {greatest}"));
        }
        *greatest = (*greatest).max(*token);
        self.own = self.own.max(*token);
        Ok(true)
    }

    /// A key of the call has the leases of another one.
    pub(super) fn rename(&mut self, told: &Told<'_>) {
        self.last.retain(|(key, _), _| !told.names(key));
    }

    /// Another node goes on, or this one after a restart, at this instant of its clock.
    pub(super) fn go_on(&mut self, clock: u64) {
        self.own = 0;
        self.last.clear();
        self.set_clock(clock);
    }

    /// The clock of the primary shows another time. If it is behind, the primary knows nothing of tokens that another has given and
    /// that were lost.
    pub(super) fn set_clock(&mut self, clock: u64) {
        self.greatest.retain(|_, greatest| *greatest < clock || *greatest <= self.own);
    }
}
