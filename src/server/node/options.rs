//! The options of the module: what the server does for it, and what it leaves out.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use redis_module::raw::{
    REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS,
    REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD, RedisModuleCtx,
};

use crate::server::api::api;

/// Valkey 9 may move the module's keys by atomic slot migration, which uses the AOF rewrite. Redis ignores this option.
const HANDLE_ATOMIC_SLOT_MIGRATION: c_uint = 1 << 5;
/// With this, Valkey 9 does not look up each effect's command by its name, which is a third of what an effect costs. The same bit may
/// come to mean something else on Redis.
const SKIP_COMMAND_VALIDATION: c_uint = 1 << 4;

/// Each call of `RedisModule_SetModuleOptions` overwrites the options of the call before, so all are set at once.
const COMMON: c_uint = REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
    | REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
    | REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
    | HANDLE_ATOMIC_SLOT_MIGRATION;

/// The options of this server.
static OPTIONS: AtomicU32 = AtomicU32::new(COMMON);

/// Sets the options at load.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn set(ctx: *mut RedisModuleCtx, is_valkey: bool) {
    OPTIONS.store(if is_valkey { COMMON | SKIP_COMMAND_VALIDATION } else { COMMON }, Relaxed);
    // SAFETY: the caller keeps the contract.
    unsafe { send(ctx, OPTIONS.load(Relaxed)) };
}

/// Closes a key so that the server signals its change to clients that watch or track it.
///
/// A server signals each key that it closes after it was opened for writing, also that of a refused call, unless an option forbids
/// it. So this lifts the option meanwhile. `RedisModule_SignalModifiedKey` would do the same for any key by its name, for which
/// Redis 8.6 looks the key up once more: a fifteenth of the call.
///
/// # Safety
///
/// `ctx` is the context of the running command.
#[inline(always)]
pub unsafe fn signal_what_closes(ctx: *mut RedisModuleCtx, close: impl FnOnce()) {
    let options = OPTIONS.load(Relaxed);
    // SAFETY: the caller keeps the contract.
    unsafe {
        send(ctx, options & !REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
        close();
        send(ctx, options);
    }
}

/// # Safety
///
/// `ctx` is a context of the module.
#[inline(always)]
unsafe fn send(ctx: *mut RedisModuleCtx, options: c_uint) {
    // SAFETY: the caller keeps the contract.
    unsafe { api!(RedisModule_SetModuleOptions(ctx, options.cast_signed())) };
}
