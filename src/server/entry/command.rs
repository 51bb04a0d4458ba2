//! What a command is: its documentation, and the function that runs it.

use std::ops::Range;

use ratelimit_engine::reply::Reply;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, KeyUse};
use redis_module::raw::{
    REDISMODULE_CMD_KEY_ACCESS, REDISMODULE_CMD_KEY_DELETE, REDISMODULE_CMD_KEY_INSERT,
    REDISMODULE_CMD_KEY_RO, REDISMODULE_CMD_KEY_RW, REDISMODULE_CMD_KEY_UPDATE,
};

use super::call::Call;

/// A command on the server. Those of the engine are some.
pub trait Command {
    const DOCUMENTATION: Documentation;

    fn run(call: &Call<'_>) -> Result<Reply, Error>;

    /// The places of the keys, if a call must be parsed to find them.
    fn keys(_: &Call<'_>) -> [Range<usize>; 2] {
        [0..0, 0..0]
    }
}

impl<C: ratelimit_engine::command::Command> Command for C {
    const DOCUMENTATION: Documentation = C::DOCUMENTATION;

    #[inline(always)]
    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        C::run(call)
    }

    fn keys(call: &Call<'_>) -> [Range<usize>; 2] {
        C::keys(call)
    }
}

/// The flags that the server has for this use.
pub(super) const fn key_flags(key_use: KeyUse) -> u32 {
    match key_use {
        KeyUse::Read => REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS,
        KeyUse::Update => REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE,
        KeyUse::Delete => REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_DELETE,
        KeyUse::Insert => REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT,
    }
}
