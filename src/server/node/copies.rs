//! Whether this node may have copies: replicas, or an AOF. Only then does `Call::sends_effects` let
//! `store/` send effects.
//!
//! Sending an effect costs a quarter of an admitted call, even if nothing receives it. So effects are not sent while
//! nothing can receive them. A call still writes its payload, and changes the state from it.
//!
//! # Why no effect is lost
//!
//! An effect leaves the server in three ways: to a connected replica, into the replication backlog, and into the AOF.
//! Without these the server itself discards what a module sends (`shouldPropagate` in its `server.c`). [`MAY_EXIST`] is
//! false while no copy can depend on an effect:
//!
//! - It starts true. A server that loads an RDB with a replication id has a backlog from the start.
//! - It becomes false only in [`check`], which checks all three once a second.
//! - It becomes true before any of the three needs an effect. A replica's first copy and an AOF that is switched on
//!   both begin with a snapshot by a forked process, and with the effects after it. The snapshot holds the effects
//!   before the fork, and the event of the fork sets the flag. This includes a copy that waits for a running save, and
//!   the copies of servers that use two connections for one.
//! - A replica whose copy has not begun has already made the server create a backlog. A `SAVE` then writes a file with
//!   the replication id, and another replica can start from this file and continue from the backlog. `SAVE` does not
//!   fork. The event of persistence sets the flag.
//! - It is true on a replica, whose backlog other replicas continue from after a promotion, without a fork. The event
//!   of the role sets the flag when the server becomes a replica.
//!
//! A replica can also continue from an offset, without a snapshot. It then knows the primary's replication id. A
//! primary takes a new id when its backlog expires and when a replica makes it create one, so no replica continues from a
//! time without a backlog.
//!
//! After a replica attaches, up to a second can pass before its copy begins and before the next check. Then the
//! backlog exists, the flag is false, and the calls themselves go into the backlog. No copy reads them: it begins
//! behind them, and no replica knows the new id before.
//!
//! The proof needs neither the other events nor [`check`] to set the flag. They keep it valid if a server changes.
//!
//! Cluster nodes always send: slots move between them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_ACTIVE_CHILD, REDISMODULE_CTX_FLAGS_AOF, REDISMODULE_CTX_FLAGS_CLUSTER,
    REDISMODULE_CTX_FLAGS_LOADING, REDISMODULE_CTX_FLAGS_MASTER, REDISMODULE_EVENT_CONFIG,
    REDISMODULE_EVENT_FORK_CHILD, REDISMODULE_EVENT_LOADING, REDISMODULE_EVENT_PERSISTENCE,
    REDISMODULE_EVENT_REPLICA_CHANGE, REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, RedisModuleCtx,
};

use super::ask;
use crate::server::api::api;

/// Whether a copy may exist, so that effects are sent.
static MAY_EXIST: AtomicBool = AtomicBool::new(true);
/// Whether the server sends all events that set it.
static SUBSCRIBED: AtomicBool = AtomicBool::new(false);

/// The events that set the flag.
pub const ENABLING: [u64; 6] = [
    REDISMODULE_EVENT_FORK_CHILD,
    REDISMODULE_EVENT_PERSISTENCE,
    REDISMODULE_EVENT_REPLICA_CHANGE,
    REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
    REDISMODULE_EVENT_CONFIG,
    REDISMODULE_EVENT_LOADING,
];

/// Returns whether a copy may exist, so that effects are sent.
#[inline(always)]
pub fn may_exist() -> bool {
    MAY_EXIST.load(Relaxed)
}

/// Whether the server sends all of [`ENABLING`]. If it lacks one of them, effects are always sent.
pub fn set_subscribed(all: bool) {
    SUBSCRIBED.store(all, Relaxed);
}

/// One of the events of [`ENABLING`] has come.
pub fn enable() {
    MAY_EXIST.store(true, Relaxed);
}

/// Checks whether anything can receive effects.
///
/// # Safety
///
/// `ctx` is a valid context.
pub unsafe fn check(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        if somebody_receives(ctx) {
            // A replica may wait for its copy, for which no event has come yet.
            MAY_EXIST.store(true, Relaxed);
        } else if may_exist() && ask::setting_is(ctx, c"appendonly", c"no") && SUBSCRIBED.load(Relaxed) {
            MAY_EXIST.store(false, Relaxed);
        }
    }
}

/// Returns whether there is a replica, a backlog or an AOF, or one of them may be about to begin.
///
/// # Safety
///
/// `ctx` is a valid context.
unsafe fn somebody_receives(ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: the caller keeps the contract.
    unsafe {
        let flags = api!(RedisModule_GetContextFlags(ctx)).cast_unsigned();
        flags & REDISMODULE_CTX_FLAGS_MASTER == 0
            || flags & RECEIVED != 0
            || !ask::fields_are(ctx, c"replication", &[c"connected_slaves", c"repl_backlog_active"], c"0")
    }
}

/// Flags of a server that sends effects. `REDISMODULE_CTX_FLAGS_AOF` is `aof_enabled` of `INFO persistence`.
const RECEIVED: u32 = REDISMODULE_CTX_FLAGS_CLUSTER
    | REDISMODULE_CTX_FLAGS_LOADING
    | REDISMODULE_CTX_FLAGS_AOF
    | REDISMODULE_CTX_FLAGS_ACTIVE_CHILD;
