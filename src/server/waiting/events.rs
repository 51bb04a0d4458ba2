//! The server's events after which a limit may have room: a value leaves its key, a database is flushed or swapped, or time
//! passes (the cron event). They mark lines as due, and try no caller, because they may come amid any command. What a call of this
//! module changes is marked by [`mark`].

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ratelimit_engine::host::Host;
use ratelimit_engine::waiting::OfDatabase;
use redis_module::raw::{
    REDISMODULE_EVENT_FLUSHDB, REDISMODULE_EVENT_SWAPDB, RedisModuleCtx, RedisModuleEvent,
    RedisModuleKeyOptCtx, RedisModuleString,
};

use super::alarm::set_alarm;
use super::state::{now, somebody_waits, with_lines, with_state};
use crate::server::api::{api, bytes, subscribe as subscribe_to};
use crate::server::entry::call::Call;
use crate::server::guard::guarded;

/// The most lines that are marked at each cron event, of which the server sends `hz` a second.
///
/// It finds changes without an event: an expiry that another command set, and a clock that was set back.
const AT_ONCE: usize = 32;

/// Whether this module removes a value from its key, and no other call or the server.
static OURS: AtomicBool = AtomicBool::new(false);

/// Removes a value from its key, by which no hunger ends: a lease that ends is what the hungry ask for.
pub fn by_this_module<T>(remove: impl FnOnce() -> T) -> T {
    OURS.store(true, Relaxed);
    let removed = remove();
    OURS.store(false, Relaxed);
    removed
}

/// Ends all hungers: none may begin any more.
pub fn end_hungers() {
    if somebody_waits() {
        with_lines(|state| state.lines.end_all_hungers(now()));
        set_alarm();
    }
}

/// Marks the next lines.
pub fn nudge() {
    if somebody_waits() {
        with_state(|state| state.alarm.held_up = false); // Callers may be tried again.
        with_lines(|state| {
            state.lines.end_hungers(now());
            state.lines.nudge(AT_ONCE);
        });
        set_alarm();
    }
}

/// A value has left its key: the key was deleted, has expired, or was evicted, renamed or overwritten. Unless it expired or this
/// module removed it, the hungers for its limits end. `has_expired` is only called if somebody waits or is hungry.
///
/// # Safety
///
/// `ctx` is the context of the callback.
pub unsafe fn left(ctx: *mut RedisModuleKeyOptCtx, has_expired: impl FnOnce() -> bool) {
    if somebody_waits() {
        guarded((), || {
            // SAFETY: the server passes a context of the callback, with the key and its database.
            unsafe {
                let name = api!(RedisModule_GetKeyNameFromOptCtx(ctx)).cast_mut();
                if !name.is_null() {
                    let key: (c_int, &[u8]) = (api!(RedisModule_GetDbIdFromOptCtx(ctx)), bytes(name));
                    let ends_hungers = !OURS.load(Relaxed) && !has_expired();
                    with_lines(|state| {
                        if ends_hungers {
                            state.lines.end_hungers_of::<dyn OfDatabase>(&key, now());
                        }
                        state.lines.replace::<dyn OfDatabase>(&key);
                    });
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
            with_lines(|state| {
                state.lines.end_all_hungers(now());
                state.lines.replace_all();
            });
            set_alarm();
        });
    }
}

/// Marks a key of a running call, which has changed.
#[cold]
pub fn mark(call: &Call<'_>, name: *mut RedisModuleString) {
    let key: (c_int, &[u8]) = (call.database(), bytes(name));
    with_lines(|state| state.lines.mark::<dyn OfDatabase>(&key));
    call.set_alarm();
}
