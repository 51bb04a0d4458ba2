//! The server's events after which a limit may have room: a value leaves its key, a database is flushed or swapped, or time
//! passes (the cron event). They mark lines as due, and try no caller, because they may come amid any command. What a call of this
//! module changes is marked by [`mark`].

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ratelimit_core::Time;
use ratelimit_engine::host::Host;
use ratelimit_value::Value;
use redis_module::raw::{
    REDISMODULE_EVENT_FLUSHDB, REDISMODULE_EVENT_SWAPDB, RedisModuleCtx, RedisModuleEvent,
    RedisModuleKeyOptCtx, RedisModuleString,
};

use super::alarm::set_alarm;
use super::state::{now, somebody_waits, with_lines, with_state};
use crate::server::api::{api, bytes, subscribe as subscribe_to};
use crate::server::entry::call::Call;
use crate::server::guard::guarded;
use crate::server::node::NODE;
use crate::server::node::clock::system_micros;

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

/// A value leaves its key.
///
/// # Safety
///
/// `ctx` is the context of the callback.
pub unsafe fn left(ctx: *mut RedisModuleKeyOptCtx, value: &Value) {
    if somebody_waits() {
        // SAFETY: the server passes a context of the callback, with the key and its database.
        let (name, database) = unsafe {
            (api!(RedisModule_GetKeyNameFromOptCtx(ctx)).cast_mut(), api!(RedisModule_GetDbIdFromOptCtx(ctx)))
        };
        if name.is_null() {
            return;
        }
        let key: (c_int, &[u8]) = (database, bytes(name));
        if OURS.load(Relaxed) {
            NODE.waiting.replaced(&key);
        } else {
            NODE.waiting.left(&key, value, Time::from_micros(system_micros()), now());
        }
        set_alarm();
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

unsafe extern "C" fn mark_all(_: *mut RedisModuleCtx, _: RedisModuleEvent, _: u64, _: *mut c_void) {
    if somebody_waits() {
        guarded((), || {
            NODE.waiting.all_left(now());
            set_alarm();
        });
    }
}

/// Marks a key of a running call, which has changed.
#[cold]
pub fn mark(call: &Call<'_>, name: *mut RedisModuleString) {
    let key: (c_int, &[u8]) = (call.database(), bytes(name));
    NODE.waiting.changed(&key);
    call.set_alarm();
}
