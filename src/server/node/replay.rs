//! `RL.POLICY TRY` on the server: a replay runs in a thread of its own, of low priority, while its client is blocked. It takes nothing of
//! the node, so it holds up no command and no save.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use std::thread::Builder;

use ratelimit_engine::record::Wanted;
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use redis_module::raw::{RedisModuleBlockedClient, RedisModuleCtx, RedisModuleString};

use crate::server::api::{OK, api};
use crate::server::entry::reply;
use crate::server::guard::guarded;

/// Whether a replay runs. There is one at a time.
static RUNS: AtomicBool = AtomicBool::new(false);
/// The client that has gone while its replay ran.
static GONE: AtomicPtr<RedisModuleBlockedClient> = AtomicPtr::new(null_mut());

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
    GONE.store(null_mut(), Relaxed);
    // SAFETY: the caller keeps the contract. The functions have the types that the server calls.
    let client = unsafe { api!(RedisModule_BlockClient(ctx, Some(send), None, Some(free), 0)) };
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
    let replied =
        guarded(Some(Err(Error::Internal)), move || replay.replay(|| GONE.load(Relaxed) == *client));
    let reply = replied.map_or(Reply::Null, |fields| fields.map_or_else(Reply::Error, Reply::Map));
    let reply = Box::into_raw(Box::new(reply));
    RUNS.store(false, Relaxed);
    // SAFETY: the client is blocked until it is unblocked here, also if it has gone. The server passes the reply to `free` in the end.
    unsafe { api!(RedisModule_UnblockClient(*client, reply.cast())) };
}

/// The server calls this in its own thread, if the client is still there. A thread that replied by itself would read the client's
/// protocol while the server may free the client.
unsafe extern "C" fn send(ctx: *mut RedisModuleCtx, _: *mut *mut RedisModuleString, _: c_int) -> c_int {
    guarded((), || {
        // SAFETY: the server passes the context of the client, and what `run` gave it.
        let reply = unsafe { api!(RedisModule_GetBlockedClientPrivateData(ctx)).cast::<Reply>().as_ref() };
        // SAFETY: as above. The server expects a reply.
        unsafe { reply::send(ctx, reply.unwrap_or(&Reply::INTERNAL)) };
    });
    OK
}

/// The server calls this once for each client, after its reply.
unsafe extern "C" fn free(_: *mut RedisModuleCtx, reply: *mut c_void) {
    if !reply.is_null() {
        // SAFETY: `run` made it, and gave it to the server once.
        drop(unsafe { Box::from_raw(reply.cast::<Reply>()) });
    }
}

/// The server calls this when the client disconnects.
unsafe extern "C" fn disconnected(_: *mut RedisModuleCtx, client: *mut RedisModuleBlockedClient) {
    GONE.store(client, Relaxed);
}
