//! Tries callers that wait.
//!
//! Grants are made only in the callback of the module's timer: the server sends what was changed there to replicas and the
//! AOF when the callback returns. No client can be served twice in one event, and a transaction or a script that gave room
//! has ended.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_CLUSTER, REDISMODULE_CTX_FLAGS_LOADING, REDISMODULE_CTX_FLAGS_MASTER,
    RedisModule_EventLoopAddOneShot, RedisModule_GetServerVersion, RedisModuleCtx, RedisModuleString,
    RedisModuleTimerID, ReplyType,
};

use super::client::{Again, Waiter, reply};
use super::{Turn, with_state};
use crate::server::api::api;
use crate::server::entry::reply::Reply;
use crate::server::guard::guarded;

/// The most callers that are tried before clients are served again.
const AT_ONCE: usize = 64;

/// A context that lives as long as the module, for making timers.
static CONTEXT: AtomicPtr<RedisModuleCtx> = AtomicPtr::new(null_mut());

/// Whether the server may wait for the next event before it notices a timer that is due now: Redis 7.0, if a command runs
/// just before (from a pipeline, or read by another thread). Any event wakes it.
static WAKES_LATE: AtomicBool = AtomicBool::new(false);
/// The first version that always notices such a timer in time.
const WAKES_IN_TIME: c_int = 0x0007_0200;

/// The longest time for which a timer is set. Redis 7.0 computes the pause until the next timer in 32 bits, and does not
/// pause if that overflows. A timer that rings too early is set again.
const LONGEST: Span = Span::from_millis(60_000);

/// A timer that is overdue by this much is set again.
const OVERDUE: Span = Span::from_millis(20);

/// The module's timer.
pub(super) struct Alarm {
    /// When it rings.
    set: Option<(RedisModuleTimerID, Time)>,
    /// Whether no caller could be tried when it last rang.
    held_up: bool,
}

impl Alarm {
    pub(super) const NONE: Alarm = Alarm { set: None, held_up: false };

    /// Callers may be tried again.
    pub(super) fn go_on(&mut self) {
        self.held_up = false;
    }
}

/// Makes the context for timers.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn prepare(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        CONTEXT.store(api!(RedisModule_GetDetachedThreadSafeContext(ctx)), Relaxed);
        let version = RedisModule_GetServerVersion.map_or(0, |version| version());
        WAKES_LATE.store(version < WAKES_IN_TIME, Relaxed);
    }
}

/// Sets the timer to the next instant at which a caller is to be tried.
pub(super) fn set_alarm() {
    let wanted = with_state(|state| {
        let due = state.lines.next_due().filter(|_| !state.alarm.held_up);
        let now = super::now();
        let wanted = due.into_iter().chain(state.lines.next_deadline()).min()?.clamp(now, now.plus(LONGEST));
        // An alarm that rings too early is set again when it rings. One that is overdue has been delayed: the server's
        // timers depend on a clock that can be set back.
        let is_set = state.alarm.set.is_some_and(|(_, set)| set <= wanted && now.since(set) < OVERDUE);
        (!is_set).then(|| (state.alarm.set.take(), wanted, now))
    });
    let Some((old, wanted, now)) = wanted else { return };
    let ctx = CONTEXT.load(Relaxed);
    let millis = wanted.since(now).as_millis_up();
    // SAFETY: the context lives as long as the module. A timer that has rung is not in the state any more.
    let timer = unsafe {
        if let Some((timer, _)) = old {
            api!(RedisModule_StopTimer(ctx, timer, null_mut()));
        }
        api!(RedisModule_CreateTimer(ctx, millis.cast_signed(), Some(ring), null_mut()))
    };
    with_state(|state| state.alarm.set = Some((timer, wanted)));
    if millis == 0 && WAKES_LATE.load(Relaxed) {
        // SAFETY: the function does nothing with its argument.
        unsafe { RedisModule_EventLoopAddOneShot.map(|add| add(Some(nothing), null_mut())) };
    }
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn ring(ctx: *mut RedisModuleCtx, _: *mut c_void) {
    guarded((), || {
        // SAFETY: the server passes a context, which sends effects when the callback returns.
        unsafe { serve(ctx) };
    });
    guarded((), set_alarm);
}

/// Tries the callers whose turn it is, at most [`AT_ONCE`].
///
/// # Safety
///
/// `ctx` is the context of a timer.
unsafe fn serve(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        // A timer that has rung must not be stopped.
        with_state(|state| state.alarm.set = None);
        let may_write = may_write(ctx);
        with_state(|state| state.alarm.held_up = !may_write);
        for _ in 0..AT_ONCE {
            match next(may_write) {
                Some((caller, turn)) => try_again(ctx, caller, turn),
                None => return,
            }
        }
    }
}

fn next(may_write: bool) -> Option<(Caller, Turn)> {
    with_state(|state| {
        let now = super::now();
        if let Some(caller) = state.lines.timed_out(now) {
            return Some((caller, if may_write { Turn::Leaves } else { Turn::Looks }));
        }
        let due = if may_write { state.lines.due(now) } else { None };
        due.map(|caller| (caller, Turn::IsTried))
    })
}

/// # Safety
///
/// `ctx` is the context of a timer.
unsafe fn try_again(ctx: *mut RedisModuleCtx, caller: Caller, mut turn: Turn) {
    let Some(again) = with_state(|state| state.waiters.get(&caller).map(Waiter::again)) else {
        with_state(|state| state.lines.leave(caller));
        return;
    };
    // SAFETY: the caller keeps the contract, and the database is that of the call.
    let replied = unsafe {
        api!(RedisModule_SelectDb(ctx, again.database()));
        if turn != Turn::Looks && !are_here(ctx, &again) {
            if turn == Turn::IsTried {
                // The server sends the client to another node if the slot has moved. Else the caller is tried at a cron event.
                return;
            }
            turn = Turn::Looks;
        }
        again.run(ctx, caller, turn)
    };
    match replied {
        Reply::Wait(wait) => with_state(|state| state.lines.stay(caller, super::now(), wait.stands)),
        replied => {
            let is_granted = replied.is_admission();
            let is_refused = !is_granted && !matches!(replied, Reply::Error(_));
            with_state(|state| {
                state.granted += u64::from(is_granted);
                state.timed_out += u64::from(is_refused);
            });
            reply(caller, &replied);
        }
    }
}

/// Returns whether the server may write: it is a primary, and has not stopped its writes.
///
/// # Safety
///
/// `ctx` is a valid context.
unsafe fn may_write(ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let flags = api!(RedisModule_GetContextFlags(ctx)).cast_unsigned();
        let is_ready = flags & (REDISMODULE_CTX_FLAGS_MASTER | REDISMODULE_CTX_FLAGS_LOADING);
        // A write while writes are paused aborts the server.
        is_ready == REDISMODULE_CTX_FLAGS_MASTER && api!(RedisModule_AvoidReplicaTraffic()) == 0
    }
}

/// Returns whether this node serves the keys of a call. A key that was migrated is missing here, but not fresh.
///
/// # Safety
///
/// `ctx` is the context of a timer.
unsafe fn are_here(ctx: *mut RedisModuleCtx, again: &Again) -> bool {
    let is_here = |key: *mut RedisModuleString| {
        // SAFETY: the caller keeps the contract, and the key is an argument of the call. The format `Es` takes a string object,
        // and returns errors as replies.
        unsafe {
            let reply = api!(RedisModule_Call(ctx, c"EXISTS".as_ptr(), c"Es".as_ptr(), key));
            let is_here =
                !reply.is_null() && api!(RedisModule_CallReplyType(reply)) != ReplyType::Error as i32;
            api!(RedisModule_FreeCallReply(reply));
            is_here
        }
    };
    // SAFETY: the caller keeps the contract.
    let flags = unsafe { api!(RedisModule_GetContextFlags(ctx)) }.cast_unsigned();
    flags & REDISMODULE_CTX_FLAGS_CLUSTER == 0 || again.keys().all(is_here)
}
