//! How the policies of this node reach its copies, and how they come from the RDB, the primary and the file.
//!
//! - A primary sends each change as an effect, and the whole table to a replica that comes online. So a replica has the policies of its
//!   primary, also if it missed changes.
//! - The RDB has all policies. What a replica loads from its primary replaces its policies only when the whole load has succeeded.
//! - An AOF that is rewritten without policies in an RDB gets the whole table behind the rewritten keys.
//! - The file's policies are there from the start. What is loaded replaces them, and on a primary the file's then replace that.
//!   On a replica they come in only if the data have none.
//!
//! The whole table is sent at the next cron event, not at the event that asks for it. That one may come amid a command of the server,
//! such as `PSYNC`, which the server would send to replicas, as a command that has changed something. So a server that dies meanwhile, or while a pause of writes lasts, leaves a rewritten AOF of keys alone without them.

use std::ptr::copy_nonoverlapping;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ratelimit_engine::policies::{Decoded, Effect, Policies, Sending, To, decode};
use ratelimit_language::Error;
use redis_module::logging::log_notice;
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_CLUSTER, REDISMODULE_CTX_FLAGS_MASTER, REDISMODULE_EVENT_FORK_CHILD,
    REDISMODULE_EVENT_LOADING, REDISMODULE_EVENT_REPLICA_CHANGE, REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
    REDISMODULE_NODE_SLAVE, REDISMODULE_SUBEVENT_FORK_CHILD_BORN, REDISMODULE_SUBEVENT_LOADING_ENDED,
    REDISMODULE_SUBEVENT_LOADING_REPL_START, REDISMODULE_SUBEVENT_REPLICA_CHANGE_ONLINE, RedisModuleCtx,
};

use super::settings::policies_in_rdb;
use super::{NODE, ask};
use crate::server::api::{OK, api};

static STATE: Mutex<State> =
    Mutex::new(State { file: None, loads_from_primary: false, loaded: None, sending: Sending::NOTHING });

struct State {
    /// The policies of the file, until the server has started.
    file: Option<Policies>,
    /// Whether the load that runs is a copy of the primary.
    loads_from_primary: bool,
    /// What such a load has brought so far.
    loaded: Option<Decoded>,
    /// What is to be sent of the whole table.
    sending: Sending,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a change of the policies.
///
/// # Safety
///
/// `ctx` is the context of a command that writes, or of an event while replicas may get writes.
pub unsafe fn send(ctx: *mut RedisModuleCtx, Effect { word, argument }: &Effect, to: To) {
    // A C string, and two buffers with their lengths.
    let format = match to {
        To::Both => c"cbb",
        To::Replicas => c"cbbA",
        To::Aof => c"cbbR",
    };
    // SAFETY: the caller keeps the contract, and the server copies the words.
    unsafe {
        api!(RedisModule_Replicate(
            ctx,
            c"RL.POLICY".as_ptr(),
            format.as_ptr(),
            c"APPLY".as_ptr(),
            word.as_ptr(),
            word.len(),
            argument.as_ptr(),
            argument.len()
        ));
    }
}

/// Sends the whole table to replicas and the AOF: now if it is one piece, else soon.
///
/// # Safety
///
/// As for [`send`].
pub unsafe fn send_all(ctx: *mut RedisModuleCtx) {
    let whole = state().sending.replace(&NODE);
    if let Some(whole) = whole {
        // SAFETY: the caller keeps the contract.
        unsafe { send(ctx, &whole, To::Both) };
    }
}

/// The server runs, so what it loads from now on is not what it starts with. Sends what is owed, unless replicas must not get writes
/// now.
///
/// # Safety
///
/// `ctx` is the context of the event.
pub unsafe fn on_cron(ctx: *mut RedisModuleCtx) {
    {
        let mut state = state();
        state.file = None;
        if !state.sending.is_owed() {
            return;
        }
    }
    // SAFETY: the caller keeps the contract. A paused server must not replicate anything.
    unsafe {
        if api!(RedisModule_AvoidReplicaTraffic()) != 0 {
            return;
        }
        let is_primary = is_primary(ctx);
        let next = state().sending.next(&NODE, is_primary);
        if let Some((effects, to)) = next {
            for effect in &effects {
                send(ctx, effect, to);
            }
        }
    }
}

/// Notes the policies of the file, which are those of the node until data are loaded.
pub fn begin_with(file: Policies) {
    *NODE.policies() = file.clone();
    let mut state = state();
    state.file = Some(file);
    state.sending = Sending::ALL;
}

/// Replaces the policies by those of an RDB that is loaded.
pub fn load(bytes: &[u8]) -> Result<(), Error> {
    let decoded = decode(bytes, &NODE.policies())?;
    let mut state = state();
    if state.loads_from_primary {
        state.loaded = Some(decoded);
    } else {
        replace(decoded);
    }
    Ok(())
}

fn replace((policies, next): Decoded) {
    *NODE.policies() = policies;
    *NODE.next_policies() = next;
}

/// An event of the server.
///
/// # Safety
///
/// `ctx` is the context of the event.
pub unsafe fn on_event(ctx: *mut RedisModuleCtx, event: u64, part: u64) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match (event, part) {
            (REDISMODULE_EVENT_REPLICA_CHANGE, REDISMODULE_SUBEVENT_REPLICA_CHANGE_ONLINE) => {
                state().sending.replica_came();
            }
            (REDISMODULE_EVENT_FORK_CHILD, REDISMODULE_SUBEVENT_FORK_CHILD_BORN) => {
                // An AOF that gets keys alone, because it has no RDB in it or one without policies. What is sent from now on stands
                // behind them. Without policies nothing is, so that a server without the module can load it.
                let gets_keys = ask::fields_are(ctx, c"persistence", &[c"aof_rewrite_in_progress"], c"1")
                    && !(policies_in_rdb() && ask::setting_is(ctx, c"aof-use-rdb-preamble", c"yes"));
                if gets_keys && !NODE.policies().is_empty() {
                    state().sending.aof_lacks_policies();
                }
            }
            (REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, _) => *NODE.next_policies() = None,
            (REDISMODULE_EVENT_LOADING, REDISMODULE_SUBEVENT_LOADING_ENDED) => {
                let mut state = state();
                let file = state.file.take();
                if let Some(loaded) = state.loaded.take() {
                    replace(loaded);
                }
                state.loads_from_primary = false;
                drop(state);
                if let Some(file) = file {
                    apply_file(file, is_primary(ctx));
                }
            }
            (REDISMODULE_EVENT_LOADING, part) => {
                let mut state = state();
                state.loads_from_primary = part == REDISMODULE_SUBEVENT_LOADING_REPL_START;
                state.loaded = None;
                *NODE.next_policies() = None;
                if state.file.is_some() && !state.loads_from_primary {
                    // What is loaded is to be known apart from the file.
                    *NODE.policies() = Policies::NONE;
                }
            }
            _ => {}
        }
    }
}

/// Lets the policies of the file replace those of the data that were loaded at the start. A replica keeps those of the data, if there
/// are any.
fn apply_file(file: Policies, is_primary: bool) {
    let loaded = NODE.policies().clone();
    state().sending = Sending::NOTHING;
    if !is_primary && !loaded.is_empty() {
        return;
    }
    *NODE.policies() = file;
    let differences = NODE.policies().differences(&loaded);
    if is_primary && differences > 0 {
        state().sending = Sending::ALL;
        log_notice(format!(
            "ratelimit: {differences} policies of the data differ from those of the file, which replace them"
        ));
    }
}

/// Whether this node is a primary.
///
/// # Safety
///
/// `ctx` is a valid context.
unsafe fn is_primary(ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: the caller keeps the contract.
    let flags = unsafe { api!(RedisModule_GetContextFlags(ctx)) }.cast_unsigned();
    flags & REDISMODULE_CTX_FLAGS_MASTER != 0
        // SAFETY: the caller keeps the contract.
        && (flags & REDISMODULE_CTX_FLAGS_CLUSTER == 0 || unsafe { is_primary_of_cluster(ctx) })
}

/// What the configuration of the cluster says of this node, which a replica that has just started knows before it follows its primary.
///
/// # Safety
///
/// `ctx` is a valid context.
unsafe fn is_primary_of_cluster(ctx: *mut RedisModuleCtx) -> bool {
    let (mut flags, mut port, mut ip, mut primary) = (0, 0, [0; ADDRESS], [0; ID]);
    // The server looks for a C string, but passes an id without an end.
    let mut id = [0; ID + 1];
    // SAFETY: the caller keeps the contract. The id has as many bytes, and so have the places for what is asked.
    unsafe {
        copy_nonoverlapping(api!(RedisModule_GetMyClusterID()), id.as_mut_ptr(), ID);
        let known = api!(RedisModule_GetClusterNodeInfo(
            ctx,
            id.as_ptr(),
            ip.as_mut_ptr(),
            primary.as_mut_ptr(),
            &raw mut port,
            &raw mut flags
        ));
        known == OK && flags.cast_unsigned() & REDISMODULE_NODE_SLAVE == 0
    }
}

/// The bytes of a node's address, and of its id.
const ADDRESS: usize = 46;
const ID: usize = 40;
