//! Whether a call must be refused because the server's memory is full.
//!
//! Commands that use memory have the flag `deny-oom`, by which the server refuses them. `RL.APPLY` cannot have it: if
//! `replica-ignore-maxmemory` is `no`, the server refuses such a command also when it comes from the primary, and the
//! replica loses the effect (`processCommand` of Redis 7.0 to 7.4, Valkey 8 and 9). So the command itself checks the memory.

use std::ffi::c_int;

use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_LOADING, REDISMODULE_CTX_FLAGS_MAXMEMORY, REDISMODULE_CTX_FLAGS_OOM,
    REDISMODULE_CTX_FLAGS_REPLICATED,
};

use crate::server::api::api;
use crate::server::entry::call::Call;

/// Both are set if the memory is full. A replica that ignores `maxmemory` lacks the second one.
const FULL: c_int = (REDISMODULE_CTX_FLAGS_OOM | REDISMODULE_CTX_FLAGS_MAXMEMORY).cast_signed();
/// One is set if the command comes from the primary, from another node that moves slots to this one, or from the AOF.
/// The servers that move slots by replication flag the importing client as they flag the primary (Valkey 9, Redis 8.4).
const OBEYED: c_int = (REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING).cast_signed();

/// Returns whether the memory is full, and a command that uses more may be refused without losing an effect.
pub fn is_full(call: &Call<'_>) -> bool {
    // SAFETY: `ctx` is the context of the running command.
    let flags = unsafe { api!(RedisModule_GetContextFlags(call.ctx)) };
    flags & FULL == FULL && flags & OBEYED == 0
}
