//! Tries callers that wait: runs their commands again, which judge anew. `ratelimit_core::line` says whose turn it is.
//!
//! Grants are made only in the callback of the module's timer: the server sends what was changed there to replicas and the
//! AOF when the callback returns. No client can be served twice in one event, and a transaction or a script that gave room
//! has ended.

use std::ffi::c_void;

use ratelimit_core::Span;
use ratelimit_core::line::Caller;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::Turn;
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_CLUSTER, REDISMODULE_CTX_FLAGS_LOADING, REDISMODULE_CTX_FLAGS_MASTER,
    RedisModuleCtx, RedisModuleString, ReplyType,
};

use super::alarm::{self, set_alarm};
use super::client::reply;
use super::look::look;
use super::state::{now, with_lines, with_state};
use super::waiter::Again;
use crate::server::api::api;
use crate::server::guard::guarded;

/// The most callers that are tried before clients are served again, and for how long.
const AT_ONCE: usize = 24;
const LONGEST: Span = Span::from_micros(200);

/// Prepares the module's timer.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn prepare(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    unsafe { alarm::prepare(ctx, ring) };
}

unsafe extern "C" fn ring(ctx: *mut RedisModuleCtx, _: *mut c_void) {
    guarded((), || {
        // SAFETY: the server passes a context, which sends effects when the callback returns.
        unsafe { serve(ctx) };
    });
    guarded((), set_alarm);
}

/// Tries the callers whose turn it is, at most [`AT_ONCE`], and looks at a table.
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
        let began = now();
        for _ in 0..AT_ONCE {
            match next(may_write) {
                Some((caller, turn)) => try_again(ctx, caller, turn),
                None => break,
            }
            if now().since(began) >= LONGEST {
                break;
            }
        }
        if may_write {
            look(ctx, began.plus(LONGEST));
        }
    }
}

fn next(may_write: bool) -> Option<(Caller, Turn)> {
    with_lines(|state| {
        let now = now();
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
    let Some(again) = with_state(|state| state.waiters.get(&caller).map(|waiter| waiter.again.clone()))
    else {
        with_lines(|state| state.lines.leave(caller));
        return;
    };
    // SAFETY: the caller keeps the contract, and the database is that of the call.
    let replied = unsafe {
        api!(RedisModule_SelectDb(ctx, again.database));
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
        Reply::Wait(wait) => with_lines(|state| state.lines.stay(caller, now(), wait.stands)),
        replied => {
            let is_granted = replied.is_admission();
            let is_refused = !is_granted && !matches!(replied, Reply::Error(_));
            with_lines(|state| {
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
