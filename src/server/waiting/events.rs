//! The server's events after which a limit may have room: a value leaves its key, a database is flushed or swapped, or time
//! passes (the cron event). They mark lines as due, and try no caller, because they may come amid any command. What a call of this
//! module changes is marked in `call.rs`.

use std::ffi::{c_int, c_void};

use redis_module::raw::{
    REDISMODULE_EVENT_FLUSHDB, REDISMODULE_EVENT_SWAPDB, RedisModuleCtx, RedisModuleEvent,
    RedisModuleKeyOptCtx,
};

use ratelimit_core::Time;

use super::alarm::set_alarm;
use super::state::{now, somebody_waits, with_state};
use super::wait::OfDatabase;
use crate::server::api::{api, bytes, subscribe as subscribe_to};
use crate::server::guard::guarded;

/// The most lines that are marked at each cron event, of which the server sends `hz` a second.
///
/// It finds changes without an event: an expiry that another command set, and a clock that was set back.
const AT_ONCE: usize = 32;

/// Marks the next lines.
pub fn nudge() {
    if somebody_waits() {
        with_state(|state| {
            state.alarm.held_up = false; // Callers may be tried again.
            state.lines.end_hungers(now());
            state.lines.nudge(AT_ONCE);
        });
        set_alarm();
    }
}

/// The server calls this when a value leaves a key: the key is deleted, expires, is evicted, renamed or overwritten.
pub unsafe extern "C" fn unlinked(ctx: *mut RedisModuleKeyOptCtx, _: *const c_void) {
    if somebody_waits() {
        guarded((), || {
            // SAFETY: the server passes a context of the callback, with the key and its database.
            unsafe {
                let name = api!(RedisModule_GetKeyNameFromOptCtx(ctx)).cast_mut();
                if !name.is_null() {
                    let key: (c_int, &[u8]) = (api!(RedisModule_GetDbIdFromOptCtx(ctx)), bytes(name));
                    with_state(|state| state.lines.replace::<dyn OfDatabase>(&key));
                    set_alarm();
                }
            }
        });
    }
}

/// Subscribes to the events of whole databases.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn subscribe(ctx: *mut RedisModuleCtx) {
    for event in [REDISMODULE_EVENT_FLUSHDB, REDISMODULE_EVENT_SWAPDB] {
        // SAFETY: the caller keeps the contract.
        unsafe { subscribe_to(ctx, event, mark_all) };
    }
}

/// Callers that wait are tried again. Of those that poll nothing is known any more: an empty database owes them nothing.
unsafe extern "C" fn mark_all(_: *mut RedisModuleCtx, _: RedisModuleEvent, _: u64, _: *mut c_void) {
    if somebody_waits() {
        guarded((), || {
            with_state(|state| {
                state.lines.end_hungers(Time::LATEST);
                state.lines.replace_all();
            });
            set_alarm();
        });
    }
}
