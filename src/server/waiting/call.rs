//! How a running command waits. `turns.rs` has what it asks of the lines.

use std::ffi::c_int;

use ratelimit_core::line::Stand;
use ratelimit_core::{Period, Span};
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_DENY_BLOCKING, REDISMODULE_CTX_FLAGS_LUA, REDISMODULE_CTX_FLAGS_MASTER,
    REDISMODULE_CTX_FLAGS_MULTI, REDISMODULE_CTX_FLAGS_REPLICATED, RedisModuleString,
};

use super::alarm::set_alarm;
use super::state::{now, with_state};
use super::trial::{Trial, Turn};
use super::wait::{OfDatabase, Wait, WaitedKey, Wanted};
use crate::server::api::{api, bytes};
use crate::server::entry::call::Call;
use crate::server::node::settings;

/// Flags of calls that cannot wait. Some servers abort if they do.
const UNBLOCKABLE: u32 = REDISMODULE_CTX_FLAGS_DENY_BLOCKING
    | REDISMODULE_CTX_FLAGS_MULTI
    | REDISMODULE_CTX_FLAGS_LUA
    | REDISMODULE_CTX_FLAGS_REPLICATED;

impl Call<'_> {
    /// Returns how long the call can wait: at most `block`, and at most as long as the setting allows. `None` if it cannot
    /// wait.
    pub fn time_to_wait(&self, block: Option<Period>) -> Option<Span> {
        let block = block?.span();
        match self.again {
            None => self.can_block().then(|| block.min(settings::longest_block())),
            Some(Trial { turn: Turn::IsTried, caller, .. }) => {
                with_state(|state| state.lines.time_left(*caller, now()))
            }
            Some(_) => None,
        }
    }

    /// Returns how long a client's call with this `BLOCK` waits at most, here or on the primary.
    pub fn longest_wait(block: Period) -> Span {
        block.span().min(settings::longest_block())
    }

    /// The wait for these limits, for at most `left`. `keys` are the places of all keys of the call. `None` if the settings
    /// allow no further waiting caller.
    pub fn wait<'w>(
        &self,
        left: Span,
        keys: Vec<usize>,
        wanted: impl Iterator<Item = Wanted<'w>>,
    ) -> Option<Box<Wait>> {
        let database = self.database();
        let stands = wanted.map(|wanted| {
            let name = self.word(wanted.key).ok()?.into();
            let key = WaitedKey { database, name };
            Some(Stand {
                key,
                name: wanted.name,
                claim: wanted.claim.into_owned(),
                retry: Some(wanted.retry),
            })
        });
        let stands: Vec<_> = stands.collect::<Option<_>>()?;
        let is_full = self.again.is_none()
            && with_state(|state| {
                let lines = &state.lines;
                let most = settings::most_waiters_of_key();
                lines.len() >= settings::most_waiters()
                    || stands.iter().any(|stand| lines.at_key::<WaitedKey>(&stand.key) >= most)
            });
        (!is_full).then(|| Box::new(Wait { left, stands, keys }))
    }

    /// The number of callers that wait for limits of the key at this place.
    pub fn waiting(&self, key: usize) -> usize {
        let Ok(name) = self.word(key) else { return 0 };
        let key: (c_int, &[u8]) = (self.database(), name);
        with_state(|state| state.lines.at_key::<dyn OfDatabase>(&key))
    }

    /// Marks a key of the call that has changed.
    #[cold]
    pub(in crate::server) fn mark(&self, name: *mut RedisModuleString) {
        let key: (c_int, &[u8]) = (self.database(), bytes(name));
        with_state(|state| state.lines.mark::<dyn OfDatabase>(&key));
        // After the trials, the alarm is set in any case.
        if self.again.is_none() {
            set_alarm();
        }
    }

    /// Whether the command only looks, because nothing may be written.
    pub fn only_looks(&self) -> bool {
        self.again.is_some_and(|trial| trial.turn == Turn::Looks)
    }

    /// Whether the client can be blocked. It cannot in a transaction or a script, nor on a replica.
    fn can_block(&self) -> bool {
        // SAFETY: `ctx` is the context of the running command.
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) }.cast_unsigned();
        flags & UNBLOCKABLE == 0 && flags & REDISMODULE_CTX_FLAGS_MASTER != 0
    }
}
