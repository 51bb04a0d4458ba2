//! `RL.POLICY TRY` on the server: a replay runs in a thread of its own, of low priority, while its client is blocked. It takes nothing of
//! the node, so it holds up no command and no save.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Builder;

use ratelimit_engine::record::Wanted;
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use redis_module::raw::{RedisModuleBlockedClient, RedisModuleCtx};

use crate::server::api::api;
use crate::server::entry::reply;
use crate::server::guard::guarded;

/// Whether a replay runs. There is one at a time.
static RUNS: AtomicBool = AtomicBool::new(false);
/// Whether no client waits for it any more.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// The nice value of its thread.
const NICE: libc::c_int = 19;

/// The client of a replay, which the server keeps until it is unblocked.
struct Client(*mut RedisModuleBlockedClient);

// SAFETY: the server's functions for blocked clients may be called in any thread.
unsafe impl Send for Client {}

/// Blocks the client, and begins a replay that replies to it.
///
/// # Safety
///
/// `ctx` is the context of the running command, whose client can be blocked.
pub unsafe fn begin(ctx: *mut RedisModuleCtx, replay: Wanted) -> Result<Reply, Error> {
    if RUNS.swap(true, Relaxed) {
        return Err(Error::Invalid("another RL.POLICY TRY runs; one runs at a time".into()));
    }
    CANCELLED.store(false, Relaxed);
    // SAFETY: the caller keeps the contract. Without callbacks the server sends what the thread replies.
    let client = unsafe { api!(RedisModule_BlockClient(ctx, None, None, None, 0)) };
    if client.is_null() {
        RUNS.store(false, Relaxed);
        return Err(Error::Invalid("this client cannot be blocked".into()));
    }
    // SAFETY: the client is blocked.
    unsafe { api!(RedisModule_SetDisconnectCallback(client, Some(disconnected))) };
    let of_thread = Client(client);
    let started = Builder::new().name("ratelimit-try".into()).spawn(move || run(&of_thread, replay));
    if started.is_err() {
        // SAFETY: the client is blocked, and no thread has it.
        unsafe { api!(RedisModule_AbortBlock(client)) };
        RUNS.store(false, Relaxed);
        return Err(Error::Invalid("no thread can be started".into()));
    }
    Ok(Reply::Sent)
}

fn run(Client(client): &Client, replay: Wanted) {
    // SAFETY: it concerns this thread alone. If it fails, the thread has the priority of the server.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    let replied = guarded(Some(Err(Error::Internal)), move || replay.replay(|| CANCELLED.load(Relaxed)));
    let reply = replied.map_or(Reply::Null, |fields| fields.map_or_else(Reply::Error, Reply::Map));
    // SAFETY: the client is blocked until it is unblocked here, also if it has gone. The context only collects the reply.
    unsafe {
        let ctx = api!(RedisModule_GetThreadSafeContext(*client));
        reply::send(ctx, &reply);
        api!(RedisModule_FreeThreadSafeContext(ctx));
        RUNS.store(false, Relaxed);
        api!(RedisModule_UnblockClient(*client, null_mut()));
    }
}

/// The server calls this when the client disconnects.
unsafe extern "C" fn disconnected(_: *mut RedisModuleCtx, _: *mut RedisModuleBlockedClient) {
    CANCELLED.store(true, Relaxed);
}
