//! The server's events that concern the whole node. A module has one callback for each event, so here each is passed on to all that
//! need it: lines of waiting callers, policies, and whether copies may exist.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis_module::raw::{
    REDISMODULE_EVENT_CRON_LOOP, RedisModuleCronLoopInfo, RedisModuleCtx, RedisModuleEvent,
};

use super::{NODE, copies, policies};
use crate::server::guard::guarded;
use crate::server::{api, waiting};

/// The events since copies were last checked.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// Subscribes to the events.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn subscribe(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        copies::set_subscribed(copies::ENABLING.iter().all(|id| api::subscribe(ctx, *id, pass_on)));
        api::subscribe(ctx, REDISMODULE_EVENT_CRON_LOOP, run);
    }
}

/// A load, a fork, a replica or another role.
unsafe extern "C" fn pass_on(ctx: *mut RedisModuleCtx, event: RedisModuleEvent, part: u64, _: *mut c_void) {
    copies::enable();
    // SAFETY: the server passes a context.
    guarded((), || unsafe { policies::on_event(ctx, event.id, part) });
}

/// The cron event, of which the server sends `hz` a second. It nudges the lines of waiting callers, frees
/// some of the calls that are no longer recorded, and once a second checks whether
/// anything can receive effects.
unsafe extern "C" fn run(ctx: *mut RedisModuleCtx, _: RedisModuleEvent, _: u64, cron: *mut c_void) {
    guarded((), waiting::nudge);
    guarded((), || NODE.record().keep(NODE.settings.most_recorded()));
    // SAFETY: the server passes a context.
    guarded((), || unsafe { policies::on_cron(ctx) });
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
