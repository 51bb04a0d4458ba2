//! The client of a caller that waits, and its call.
//!
//! The server blocks the client on a key that no command makes, in the slot of the call's keys. So it redirects the client
//! if the slot moves to another node.
//!
//! # Who ends a wait
//!
//! Either the module or the server, and each does so once.
//!
//! - The module writes the reply and calls `RedisModule_UnblockClient`. The server sends the reply before it waits for the
//!   next event, if the client is still connected. If not, the grant stands: any call's reply can be lost like this.
//! - The server ends it when the client disconnects, is unblocked, or must go to another node. It calls [`disconnected`], or
//!   [`unblocked`] for `CLIENT UNBLOCK`. The module must then not unblock the client.
//!
//! In both cases the server calls [`forget`] in the end.

use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

use ratelimit_core::line::Caller;
use ratelimit_engine::host::Host;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::{Turn, Wait};
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_CLUSTER, RedisModuleBlockedClient, RedisModuleCtx, RedisModuleString, Status,
};

use super::alarm::set_alarm;
use super::slot;
use super::state::{now, with_lines, with_state};
use super::waiter::{Again, Run, Waiter};
use crate::server::api::{OK, api};
use crate::server::entry::call::Call;
use crate::server::entry::reply;
use crate::server::guard::guarded;

/// Blocks the client of a call that is to wait.
#[cold]
#[inline(never)]
#[allow(clippy::boxed_local, reason = "the hot path passes a pointer")]
pub fn block(call: &Call<'_>, run: Run, wait: Box<Wait>) {
    let Wait { left, stands, keys } = *wait;
    let now = now();
    let caller = with_lines(|state| state.lines.enter(now, now.plus(left), stands));
    let name = blocking_name(call, &keys, caller);
    let hold = |string: &*mut RedisModuleString| {
        // SAFETY: it is an argument of the running command. Without a context, the reference is this module's to free.
        unsafe { api!(RedisModule_HoldString(null_mut(), *string)) }
    };
    let argv = call.strings(0).iter().map(hold).collect();
    let mut again = Again { run, database: call.database(), keys, argv };
    // SAFETY: `ctx` is the context of the running command, whose client can be blocked. The server holds a reference of its
    // own to the key.
    unsafe {
        let mut key = api!(RedisModule_CreateString(null_mut(), name.as_ptr().cast(), name.len()));
        let client = api!(RedisModule_BlockClientOnKeys(
            call.ctx,
            Some(signaled),
            Some(unblocked),
            Some(forget),
            0,
            &raw mut key,
            1,
            handle(caller)
        ));
        api!(RedisModule_FreeString(null_mut(), key));
        if client.is_null() {
            // Valkey does not block a client that is subscribed to channels.
            with_lines(|state| state.lines.leave(caller));
            reply::send(call.ctx, &again.run(call.ctx, caller, Turn::Leaves));
            again.free();
            return set_alarm();
        }
        api!(RedisModule_SetDisconnectCallback(client, Some(disconnected)));
        with_state(|state| state.waiters.insert(caller, Waiter { again, client }));
    }
    set_alarm();
}

/// The number of a caller as the server passes it back. It is never null.
fn handle(caller: Caller) -> *mut c_void {
    without_provenance_mut(usize::try_from(caller).unwrap_or(usize::MAX))
}

/// The caller of a blocked client, in a callback of the server.
///
/// # Safety
///
/// `ctx` is the context of a callback for a blocked client.
unsafe fn caller_of(ctx: *mut RedisModuleCtx) -> Caller {
    // SAFETY: the caller keeps the contract.
    unsafe { api!(RedisModule_GetBlockedClientPrivateData(ctx)).addr() as Caller }
}

/// The name of a key that no command makes. Each client gets its own: the server takes longer to remove a client from a key
/// with more clients.
fn blocking_name(call: &Call<'_>, keys: &[usize], caller: Caller) -> Vec<u8> {
    // SAFETY: `ctx` is the context of the running command.
    let flags = unsafe { api!(RedisModule_GetContextFlags(call.ctx)) }.cast_unsigned();
    let mut name = Vec::new();
    if flags & REDISMODULE_CTX_FLAGS_CLUSTER != 0 {
        let key = keys.first().and_then(|key| call.word(*key).ok()).unwrap_or_default();
        name = [b"{", &slot::tag(key)[..], b"}"].concat();
    }
    name.extend(format!("ratelimit:waits:{caller}").bytes());
    name
}

/// Ends the wait of a caller that has left the lines.
pub(super) fn end(caller: Caller, reply: &Reply) {
    let client = with_state(|state| state.waiters.get(&caller).map(|waiter| waiter.client));
    let Some(client) = client else { return };
    // SAFETY: the client waits, so the server has not ended its wait. The context lives until it is freed here, and only
    // collects the reply.
    unsafe {
        let ctx = api!(RedisModule_GetThreadSafeContext(client));
        reply::send(ctx, reply);
        api!(RedisModule_FreeThreadSafeContext(ctx));
        api!(RedisModule_UnblockClient(client, handle(caller)));
    }
}

/// The server calls this when a command makes the key on which a client is blocked. The client goes on waiting.
unsafe extern "C" fn signaled(_: *mut RedisModuleCtx, _: *mut *mut RedisModuleString, _: c_int) -> c_int {
    Status::Err as c_int
}

/// The server calls this for `CLIENT UNBLOCK`. It also calls it for a client that [`end`] unblocks: in that call (Redis 7.0
/// and 7.2, Valkey) or later.
unsafe extern "C" fn unblocked(ctx: *mut RedisModuleCtx, _: *mut *mut RedisModuleString, _: c_int) -> c_int {
    guarded((), || {
        // SAFETY: the server passes the context of a blocked client.
        let caller = unsafe { caller_of(ctx) };
        // `end` has written the reply of a caller that no longer waits.
        if !with_lines(|state| state.lines.waits(caller)) {
            return;
        }
        let again = with_state(|state| state.waiters.get(&caller).map(|waiter| waiter.again.clone()));
        let Some(again) = again else { return };
        // SAFETY: the context has the client's database, and the server expects a reply.
        unsafe { reply::send(ctx, &again.run(ctx, caller, Turn::Looks)) };
        with_lines(|state| {
            state.lines.leave(caller);
            state.timed_out += 1;
        });
        set_alarm();
    });
    OK
}

/// The server calls this when a client that is blocked disconnects, or is unblocked with an error.
unsafe extern "C" fn disconnected(ctx: *mut RedisModuleCtx, _: *mut RedisModuleBlockedClient) {
    guarded((), || {
        // SAFETY: the server passes the context of a blocked client.
        let caller = unsafe { caller_of(ctx) };
        with_lines(|state| state.lines.leave(caller));
        set_alarm();
    });
}

/// The server calls this once for each client, after its wait has ended.
unsafe extern "C" fn forget(_: *mut RedisModuleCtx, caller: *mut c_void) {
    guarded((), || {
        let caller = caller.addr() as Caller;
        with_lines(|state| state.lines.leave(caller));
        let waiter = with_state(|state| state.waiters.remove(&caller));
        if let Some(mut waiter) = waiter {
            waiter.again.free();
        }
    });
}
