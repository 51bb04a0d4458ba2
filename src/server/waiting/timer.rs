//! Lets the engine try callers that wait.
//!
//! Grants are made only in the callback of the module's timer: the server sends what was changed there to replicas and the
//! AOF when the callback returns. No client can be served twice in one event, and a transaction or a script that gave room
//! has ended.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use ratelimit_core::Time;
use ratelimit_core::line::Caller;
use ratelimit_engine::node::Node;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::{Clients, Turn, WaitedKey, try_callers};
use ratelimit_value::Value;
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_CLUSTER, REDISMODULE_CTX_FLAGS_LOADING, REDISMODULE_CTX_FLAGS_MASTER,
    REDISMODULE_OPEN_KEY_NONOTIFY, REDISMODULE_OPEN_KEY_NOSTATS, REDISMODULE_OPEN_KEY_NOTOUCH,
    REDISMODULE_READ, RedisModuleCtx, RedisModuleString, ReplyType,
};

use super::alarm::{self, set_alarm};
use super::client;
use super::state::{now, with_lines, with_state};
use super::waiter::Again;
use crate::server::api::api;
use crate::server::guard::guarded;
use crate::server::node::NODE;
use crate::server::node::clock::clock;
use crate::server::store::native_type::of_module;

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
        unsafe { ring_in(ctx) };
    });
    guarded((), set_alarm);
}

/// # Safety
///
/// `ctx` is the context of a timer.
unsafe fn ring_in(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    let may_write = unsafe { may_write(ctx) };
    with_state(|state| {
        // A timer that has rung must not be stopped.
        state.alarm.set = None;
        state.alarm.held_up = !may_write;
    });
    try_callers(&InTimer { ctx, may_write });
}

/// The server, when the timer has rung.
struct InTimer {
    /// The context of the timer.
    ctx: *mut RedisModuleCtx,
    may_write: bool,
}

impl Clients for InTimer {
    fn node(&self) -> &Node {
        &NODE
    }

    fn clock(&self) -> Time {
        clock()
    }

    fn now(&self) -> Time {
        now()
    }

    fn may_write(&self) -> bool {
        self.may_write
    }

    fn run(&self, caller: Caller, mut turn: Turn) -> Option<Reply> {
        let again = with_state(|state| state.waiters.get(&caller).map(|waiter| waiter.again.clone()));
        let Some(again) = again else {
            with_lines(|state| state.lines.leave(caller));
            return None;
        };
        // SAFETY: `ctx` is the context of a timer, and the database is that of the call.
        unsafe {
            api!(RedisModule_SelectDb(self.ctx, again.database));
            if turn != Turn::Looks && !are_here(self.ctx, &again) {
                if turn == Turn::IsTried {
                    // The server sends the client to another node if the slot has moved. Else the caller is tried at a cron event.
                    return None;
                }
                turn = Turn::Looks;
            }
            Some(again.run(self.ctx, caller, turn))
        }
    }

    fn end(&self, caller: Caller, reply: Reply) {
        client::end(caller, &reply);
    }

    fn value_of<T>(&self, key: &WaitedKey, look: impl FnOnce(Option<&mut Value>) -> T) -> T {
        // SAFETY: `ctx` is the context of a timer. The server owns the value, and nothing else uses it in a timer's callback.
        unsafe {
            api!(RedisModule_SelectDb(self.ctx, key.database));
            let string = api!(RedisModule_CreateString(null_mut(), key.name.as_ptr().cast(), key.name.len()));
            let open = api!(RedisModule_OpenKey(self.ctx, string, LOOKS));
            let is_ours = api!(RedisModule_ModuleTypeGetType(open)) == of_module();
            let mut value =
                is_ours.then(|| Value::from_raw(api!(RedisModule_ModuleTypeGetValue(open)))).flatten();
            let looked = look(value.as_deref_mut());
            api!(RedisModule_CloseKey(open));
            api!(RedisModule_FreeString(null_mut(), string));
            looked
        }
    }
}

/// The key is not used. A server that does not know a flag ignores it.
const LOOKS: c_int = (REDISMODULE_READ
    | REDISMODULE_OPEN_KEY_NOTOUCH
    | REDISMODULE_OPEN_KEY_NONOTIFY
    | REDISMODULE_OPEN_KEY_NOSTATS)
    .cast_signed();

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
