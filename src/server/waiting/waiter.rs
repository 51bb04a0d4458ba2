//! A caller that waits, and its call, which runs again.

use std::ffi::c_int;
use std::mem::take;
use std::ptr::null_mut;

use ratelimit_core::line::Caller;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::Turn;
use redis_module::raw::{RedisModuleBlockedClient, RedisModuleCtx, RedisModuleString};

use super::trial::Trial;
use crate::server::api::api;

/// Runs a command with these arguments, again if there is a trial.
pub type Run = fn(*mut RedisModuleCtx, &[*mut RedisModuleString], Option<&Trial>);

/// A caller that waits.
pub(super) struct Waiter {
    pub(super) again: Again,
    pub(super) client: *mut RedisModuleBlockedClient,
}

// SAFETY: only the server's main thread uses the client and the strings.
unsafe impl Send for Waiter {}

/// What a command needs to run again. The strings live as long as the waiter.
#[derive(Clone)]
pub(super) struct Again {
    pub(super) run: Run,
    pub(super) database: c_int,
    /// The places of the keys.
    pub(super) keys: Vec<usize>,
    /// The arguments. The waiter holds a reference to each.
    pub(super) argv: Vec<*mut RedisModuleString>,
}

impl Again {
    /// Runs the command in a context without a client of its own, and returns the reply.
    ///
    /// # Safety
    ///
    /// `ctx` is valid, and has the database of the call.
    pub(super) unsafe fn run(&self, ctx: *mut RedisModuleCtx, caller: Caller, turn: Turn) -> Reply {
        let trial = Trial::new(caller, turn);
        (self.run)(ctx, &self.argv, Some(&trial));
        trial.into_reply().unwrap_or(Reply::INTERNAL)
    }

    /// The keys of the call.
    pub(super) fn keys(&self) -> impl Iterator<Item = *mut RedisModuleString> {
        self.keys.iter().filter_map(|key| self.argv.get(*key)).copied()
    }

    pub(super) fn free(&mut self) {
        for string in take(&mut self.argv) {
            // SAFETY: `enter` took this reference, and nothing uses it afterwards.
            unsafe { api!(RedisModule_FreeString(null_mut(), string)) };
        }
    }
}
