//! The server as the engine's host.

use std::ops::RangeBounds;

use ratelimit_core::Time;
use ratelimit_core::line::Caller;
use ratelimit_engine::count::Outcome;
use ratelimit_engine::host::Host;
use ratelimit_engine::node::Node;
use ratelimit_engine::policies::{Effect, To};
use ratelimit_engine::record::Wanted;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::slot::{Access, OfSlot};
use ratelimit_engine::waiting::Turn;
use ratelimit_language::{Arguments, Error};
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_DENY_BLOCKING, REDISMODULE_CTX_FLAGS_LUA, REDISMODULE_CTX_FLAGS_MASTER,
    REDISMODULE_CTX_FLAGS_MULTI, REDISMODULE_CTX_FLAGS_REPLICATED, REDISMODULE_NOTIFY_MODULE,
};

use super::api::api;
use super::entry::call::Call;
use super::node::clock::clock;
use super::node::dice::random_word;
use super::node::{NODE, memory, policies, replay};
use super::store::several::open_several;
use super::store::slot::OpenKey;
use super::waiting;
use crate::policy_file;

/// Flags of calls that cannot wait. Some servers abort if they do.
const UNBLOCKABLE: u32 = REDISMODULE_CTX_FLAGS_DENY_BLOCKING
    | REDISMODULE_CTX_FLAGS_MULTI
    | REDISMODULE_CTX_FLAGS_LUA
    | REDISMODULE_CTX_FLAGS_REPLICATED;

/// The id of the client by which the server reads its AOF.
const CLIENT_OF_AOF: u64 = u64::MAX;

impl<'a> Host for Call<'a> {
    type Slot<'c>
        = OpenKey<'c, 'a>
    where
        Self: 'c;

    #[inline(always)]
    fn node(&self) -> &Node {
        &NODE
    }

    fn len(&self) -> usize {
        self.strings(0).len()
    }

    #[inline(always)]
    fn word(&self, place: usize) -> Result<&[u8], Error> {
        Call::word(self, place)
    }

    #[inline(always)]
    fn parse<'c, T>(
        &'c self,
        places: impl RangeBounds<usize>,
        parse: impl FnOnce(&mut Arguments<'_, 'c>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        Call::parse(self, places, parse)
    }

    fn inner(&self) -> Self {
        Call::inner(self)
    }

    #[inline(always)]
    fn open(&self, place: usize, access: Access) -> Result<OpenKey<'_, 'a>, Error> {
        OpenKey::open(self, place, access)
    }

    fn open_all<'c, K: OfSlot<OpenKey<'c, 'a>>>(
        &'c self,
        places: impl ExactSizeIterator<Item = usize> + Clone,
    ) -> Result<Vec<K>, Error> {
        open_several(self, places)
    }

    #[inline(always)]
    fn clock(&self) -> Time {
        clock()
    }

    fn now(&self) -> Time {
        waiting::now()
    }

    fn random(&self) -> u64 {
        random_word()
    }

    fn database(&self) -> i32 {
        // SAFETY: `ctx` is the context of the running command.
        unsafe { api!(RedisModule_GetSelectedDb(self.ctx)) }
    }

    #[inline(always)]
    fn again(&self) -> Option<(Caller, Turn)> {
        self.again.map(|trial| (trial.caller, trial.turn))
    }

    fn can_wait(&self) -> bool {
        // SAFETY: `ctx` is the context of the running command.
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) }.cast_unsigned();
        flags & UNBLOCKABLE == 0 && flags & REDISMODULE_CTX_FLAGS_MASTER != 0
    }

    fn set_alarm(&self) {
        // After the trials, the alarm is set in any case.
        if self.again.is_none() {
            waiting::set_alarm();
        }
    }

    #[cold]
    #[inline(never)]
    fn send_event(&self, place: usize, outcome: Outcome) {
        let event = match outcome {
            Outcome::Admitted => c"rl.admit",
            Outcome::Refused => c"rl.refuse",
        };
        if let Ok(key) = self.argument(place) {
            let class = REDISMODULE_NOTIFY_MODULE;
            // SAFETY: context and key are those of the running command, and the event is a C string.
            unsafe { api!(RedisModule_NotifyKeyspaceEvent(self.ctx, class, event.as_ptr(), key)) };
        }
    }

    fn is_out_of_memory(&self) -> bool {
        memory::is_full(self)
    }

    fn send_on(&self) {
        // SAFETY: `ctx` is the context of the running command.
        unsafe { api!(RedisModule_ReplicateVerbatim(self.ctx)) };
    }

    fn is_obeyed(&self) -> bool {
        // SAFETY: `ctx` is the context of the running command.
        unsafe {
            let flags = api!(RedisModule_GetContextFlags(self.ctx)).cast_unsigned();
            flags & REDISMODULE_CTX_FLAGS_REPLICATED != 0
                || api!(RedisModule_GetClientId(self.ctx)) == CLIENT_OF_AOF
        }
    }

    fn send_policy(&self, effect: &Effect) {
        // SAFETY: `ctx` is the context of the running command, which writes.
        unsafe { policies::send(self.ctx, effect, To::Both) };
    }

    fn send_all_policies(&self) {
        // SAFETY: `ctx` is the context of the running command, which writes.
        unsafe { policies::send_all(self.ctx) };
    }

    fn load_policies(&self) -> Result<usize, Error> {
        policy_file::load(NODE.settings.bounds())
    }

    fn save_policies(&self) -> Result<usize, Error> {
        policy_file::save()
    }

    fn replay(&self, replay: Wanted) -> Result<Reply, Error> {
        // SAFETY: `ctx` is the context of the running command.
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) }.cast_unsigned();
        if flags & UNBLOCKABLE != 0 {
            return Err(Error::Invalid(
                "RL.POLICY TRY takes time, so it is not for transactions and scripts".into(),
            ));
        }
        // SAFETY: `ctx` is that of a client that can be blocked.
        unsafe { replay::begin(self.ctx, replay) }
    }
}
