//! How the policies of this node reach its copies, and how they come from the RDB, the primary and the file.
//!
//! - A primary sends each change as an effect, and the whole table to a replica that comes online. So a replica has the policies of its
//!   primary, also if it missed changes.
//! - The RDB has all policies. What a replica loads from its primary replaces its policies only when the whole load has succeeded.
//! - An AOF that is rewritten without policies in an RDB gets the whole table behind the rewritten keys.
//! - The file's policies are there from the start. What is loaded replaces them, and on a primary the file's then replace that.
//!
//! The whole table is sent at the next cron event, not at the event that asks for it. That one may come amid a command of the server,
//! such as `PSYNC`, which the server would send to replicas, as a command that has changed something. Each cron event sends one
//! piece of a large table to replicas: several would be a transaction, of which a full replica may refuse all.

use std::ffi::{CStr, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ratelimit_engine::policies::{Effect, Policies};
use ratelimit_language::Error;
use redis_module::logging::log_notice;
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_CLUSTER, REDISMODULE_CTX_FLAGS_MASTER, REDISMODULE_EVENT_FORK_CHILD,
    REDISMODULE_EVENT_LOADING, REDISMODULE_EVENT_REPLICA_CHANGE, REDISMODULE_NODE_SLAVE,
    REDISMODULE_SUBEVENT_FORK_CHILD_BORN, REDISMODULE_SUBEVENT_LOADING_ENDED,
    REDISMODULE_SUBEVENT_LOADING_FAILED, REDISMODULE_SUBEVENT_LOADING_REPL_START,
    REDISMODULE_SUBEVENT_REPLICA_CHANGE_ONLINE, RedisModuleCtx,
};

use super::settings::policies_in_rdb;
use super::{NODE, ask};
use crate::server::api::{OK, api};

static STATE: Mutex<State> =
    Mutex::new(State { file: None, loads_from_primary: false, loaded: None, owed: [false; 2], sent: None });

struct State {
    /// The policies of the file, until the server has started.
    file: Option<Policies>,
    /// Whether the load that runs is a copy of the primary.
    loads_from_primary: bool,
    /// The table of such a load.
    loaded: Option<Policies>,
    /// Whether the whole table is to be sent to replicas, and to the AOF.
    owed: [bool; 2],
    /// The last policy that replicas got of a table that is being sent.
    sent: Option<Box<str>>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both targets of an effect, replicas alone, and the AOF alone, as formats of `RedisModule_Replicate`. It takes a C string and two
/// buffers with their lengths.
const TO: [&CStr; 3] = [c"cbb", c"cbbA", c"cbbR"];

/// Sends a change of the policies to replicas and the AOF.
///
/// # Safety
///
/// `ctx` is the context of a command that writes, or of an event while replicas may get writes.
pub unsafe fn send(ctx: *mut RedisModuleCtx, effect: &Effect, to: [bool; 2]) {
    let [both, replicas, aof] = TO;
    let format = match to {
        [true, true] => both,
        [true, false] => replicas,
        [false, true] => aof,
        [false, false] => return,
    };
    let Effect { word, argument } = effect;
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
    let (piece, _) = NODE.policies().piece(None);
    if piece.goes_on() {
        owe([true; 2]);
    } else {
        // SAFETY: the caller keeps the contract.
        unsafe { send(ctx, &piece, [true; 2]) };
    }
}

/// The whole table is to be sent to replicas, or to the AOF, or both. If it is being sent, it is sent anew.
fn owe([replicas, aof]: [bool; 2]) {
    let mut state = state();
    state.owed[0] |= replicas;
    state.owed[1] |= aof;
    if replicas {
        state.sent = None;
    }
}

/// The server runs, so what it loads from now on is not what it starts with. Sends what is owed, unless replicas must not get writes
/// now.
///
/// # Safety
///
/// `ctx` is the context of the event.
pub unsafe fn on_cron(ctx: *mut RedisModuleCtx) {
    let (owed, sent) = {
        let mut state = state();
        state.file = None;
        if state.owed == [false; 2] {
            return;
        }
        (state.owed, state.sent.take())
    };
    // SAFETY: the caller keeps the contract. A paused server must not replicate anything.
    unsafe {
        if api!(RedisModule_AvoidReplicaTraffic()) != 0 {
            return;
        }
        let [replicas, aof] = owed;
        let (piece, last) = NODE.policies().piece(sent.as_deref());
        if replicas && is_primary(ctx) {
            send(ctx, &piece, [true, false]);
        }
        if aof {
            let pieces = NODE.policies().pieces();
            for piece in &pieces {
                send(ctx, piece, [false, true]);
            }
        }
        let mut state = state();
        state.owed = [replicas && piece.goes_on(), false];
        state.sent = last.filter(|_| state.owed[0]);
    }
}

/// Notes the policies of the file, which are those of the node until data are loaded.
pub fn begin_with(file: Policies) {
    *NODE.policies() = file.clone();
    state().file = Some(file);
    owe([true; 2]);
}

/// Replaces the policies by those of an RDB that is loaded.
pub fn load(bytes: &[u8]) -> Result<(), Error> {
    let policies = Policies::decode(bytes, &NODE.policies())?;
    let mut state = state();
    if state.loads_from_primary {
        state.loaded = Some(policies);
    } else {
        *NODE.policies() = policies;
    }
    Ok(())
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
                owe([true, false]);
            }
            (REDISMODULE_EVENT_FORK_CHILD, REDISMODULE_SUBEVENT_FORK_CHILD_BORN) => {
                // An AOF that gets keys alone, because it has no RDB in it or one without policies. What is sent from now on stands
                // behind them. Without policies nothing is, so that a server without the module can load it.
                let gets_keys = ask::fields_are(ctx, c"persistence", &[c"aof_rewrite_in_progress"], c"1")
                    && (!policies_in_rdb() || ask::setting_is(ctx, c"aof-use-rdb-preamble", c"no"));
                owe([false, gets_keys && NODE.policies().len() > 0]);
            }
            (REDISMODULE_EVENT_LOADING, REDISMODULE_SUBEVENT_LOADING_ENDED) => {
                let mut state = state();
                if let Some(loaded) = state.loaded.take() {
                    *NODE.policies() = loaded;
                }
                state.loads_from_primary = false;
                let file = state.file.take();
                drop(state);
                if let Some(file) = file {
                    apply_file(file, is_primary(ctx));
                }
            }
            (REDISMODULE_EVENT_LOADING, part) => {
                let mut state = state();
                state.loads_from_primary = part == REDISMODULE_SUBEVENT_LOADING_REPL_START;
                state.loaded = None;
                if part == REDISMODULE_SUBEVENT_LOADING_FAILED {
                    state.file = None;
                }
            }
            _ => {}
        }
    }
}

/// Lets the policies of the file replace those of the data that were loaded at the start. A replica keeps those of the data.
fn apply_file(file: Policies, is_primary: bool) {
    let differences = file.differences(&NODE.policies());
    let differ = differences > 0 && is_primary;
    state().owed = [differ; 2];
    if differ {
        log_notice(format!(
            "ratelimit: {differences} policies of the data differ from those of the file, which replace them"
        ));
        *NODE.policies() = file;
    }
}

/// Whether this node is a primary. A replica of a cluster that has just started knows it before the server follows its primary.
unsafe fn is_primary(ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: the caller passes a valid context. Of another node's address nothing is asked.
    unsafe {
        let flags = api!(RedisModule_GetContextFlags(ctx)).cast_unsigned();
        if flags & REDISMODULE_CTX_FLAGS_CLUSTER == 0 {
            return flags & REDISMODULE_CTX_FLAGS_MASTER != 0;
        }
        let (mut of_node, mut ip, mut primary) = (c_int::default(), [0; ADDRESS], [0; ID]);
        let mut port = 0;
        let known = api!(RedisModule_GetClusterNodeInfo(
            ctx,
            api!(RedisModule_GetMyClusterID()),
            ip.as_mut_ptr(),
            primary.as_mut_ptr(),
            &raw mut port,
            &raw mut of_node
        ));
        flags & REDISMODULE_CTX_FLAGS_MASTER != 0
            && known == OK
            && of_node.cast_unsigned() & REDISMODULE_NODE_SLAVE == 0
    }
}

/// The bytes of a node's address, and of its id.
const ADDRESS: usize = 46;
const ID: usize = 40;
