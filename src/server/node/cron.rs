//! The server's cron event, of which it sends `hz` a second. A module has one callback for each
//! event, so both duties are here: lines of waiting callers, and whether copies may exist.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis_module::raw::{
    REDISMODULE_EVENT_CRON_LOOP, RedisModuleCronLoopInfo, RedisModuleCtx, RedisModuleEvent,
};

use super::copies;
use crate::server::guard::guarded;
use crate::server::{api, waiting};

/// The events since copies were last checked.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// Subscribes to the event.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn subscribe(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    unsafe { api::subscribe(ctx, REDISMODULE_EVENT_CRON_LOOP, run) };
}

/// Nudges the lines of waiting callers, and once a second checks whether anything can receive effects.
unsafe extern "C" fn run(ctx: *mut RedisModuleCtx, _: RedisModuleEvent, _: u64, cron: *mut c_void) {
    guarded((), waiting::nudge);
    guarded((), || {
        // SAFETY: the server passes the data of the event.
        let hz = unsafe { cron.cast::<RedisModuleCronLoopInfo>().as_ref() }.map_or(1, |cron| cron.hz);
        let events = EVENTS.load(Relaxed) + 1;
        let due = events >= u64::try_from(hz).unwrap_or(1);
        EVENTS.store(if due { 0 } else { events }, Relaxed);
        if due {
            // SAFETY: the server passes a context.
            unsafe { copies::check(ctx) };
        }
    });
}
