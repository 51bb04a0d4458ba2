//! Callers that wait in the server until their requests are admitted.
//!
//! A command replies [`Reply::Wait`] if its caller is to wait. The client is then blocked, and the command runs
//! again whenever one of its limits may have room. `ratelimit_core::line` has the order in which callers are tried.
//!
//! ```text
//! call --refused--> blocked: stands in lines --granted, refused at last, or an error--> replied
//!                      |  ^
//!                      +--+ tried: still refused
//! ```
//!
//! - `mod.rs` has the lines, and what a running command asks of them.
//! - `client.rs` blocks and unblocks clients.
//! - `serve.rs` tries callers, in the callback of a timer and nowhere else.
//! - `wake.rs` notices that a limit may have room. It only marks lines.
//! - `slot.rs` finds a name in the slot of a cluster's key.

mod client;
mod serve;
mod slot;
mod wake;

use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use ratelimit_core::line::{Caller, Lines, Stand};
use ratelimit_core::{Name, Period, Span, Time};
use redis_module::raw::{
    REDISMODULE_CTX_FLAGS_DENY_BLOCKING, REDISMODULE_CTX_FLAGS_LUA, REDISMODULE_CTX_FLAGS_MASTER,
    REDISMODULE_CTX_FLAGS_MULTI, REDISMODULE_CTX_FLAGS_REPLICATED, RedisModuleString,
};

use crate::server::api::api;
use crate::server::entry::call::{Call, bytes};
use crate::server::entry::reply::Reply;
use crate::server::node::settings;

use client::Waiter;
use serve::Alarm;

pub(super) use client::enter;
pub(super) use serve::prepare;
pub(super) use wake::{nudge, subscribe, unlinked};

/// Whether any caller waits.
static ANYBODY: AtomicBool = AtomicBool::new(false);
/// It is never locked while the server is called, because the server may call back.
static STATE: Mutex<State> = Mutex::new(State {
    lines: Lines::new(),
    waiters: BTreeMap::new(),
    alarm: Alarm::NONE,
    granted: 0,
    timed_out: 0,
});

struct State {
    lines: Lines<WaitedKey>,
    /// The callers that wait, and those for which the server has not called `forget` yet.
    waiters: BTreeMap<Caller, Waiter>,
    alarm: Alarm,
    /// The number of callers that were granted what they waited for.
    granted: u64,
    /// The number of callers whose time passed, or that were unblocked.
    timed_out: u64,
}

/// Runs `body` with the lines. It must not call the server.
fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let result = body(&mut state);
    ANYBODY.store(!state.lines.is_empty(), Relaxed);
    result
}

/// Returns whether any caller waits for a limit.
#[inline(always)]
pub fn somebody_waits() -> bool {
    ANYBODY.load(Relaxed)
}

/// Returns the numbers of callers that wait, that were granted what they waited for, and whose time passed.
pub(super) fn counts() -> [u64; 3] {
    with_state(|state| [state.lines.len() as u64, state.granted, state.timed_out])
}

/// The instant on a clock that is never set back.
fn now() -> Time {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that only this function uses.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let [secs, nanos] = [now.tv_sec, now.tv_nsec].map(|number| u64::try_from(number).unwrap_or(0));
    // Never the epoch, which stands for due now.
    Time::from_micros(1 + secs.saturating_mul(1_000_000).saturating_add(nanos / 1000))
}

/// A key of a database.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct WaitedKey {
    database: c_int,
    name: Arc<[u8]>,
}

/// A key of a database, whose name may be borrowed. So a search allocates nothing.
trait OfDatabase {
    fn parts(&self) -> (c_int, &[u8]);
}

impl OfDatabase for WaitedKey {
    fn parts(&self) -> (c_int, &[u8]) {
        (self.database, &self.name)
    }
}

impl OfDatabase for (c_int, &[u8]) {
    fn parts(&self) -> (c_int, &[u8]) {
        *self
    }
}

impl<'k> Borrow<dyn OfDatabase + 'k> for WaitedKey {
    fn borrow(&self) -> &(dyn OfDatabase + 'k) {
        self
    }
}

impl PartialEq for dyn OfDatabase + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn OfDatabase + '_ {}

impl PartialOrd for dyn OfDatabase + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn OfDatabase + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// Flags of calls that cannot wait. Some servers abort if they do.
const UNBLOCKABLE: u32 = REDISMODULE_CTX_FLAGS_DENY_BLOCKING
    | REDISMODULE_CTX_FLAGS_MULTI
    | REDISMODULE_CTX_FLAGS_LUA
    | REDISMODULE_CTX_FLAGS_REPLICATED;

/// Why a command runs again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// A caller is tried. It goes on waiting if it is refused.
    IsTried,
    /// A caller is tried for the last time, because its time has passed.
    Leaves,
    /// A caller leaves, and nothing may be written: the command only looks.
    Looks,
}

/// A command that runs again while its caller waits.
pub(in crate::server) struct Trial {
    caller: Caller,
    turn: Turn,
    reply: Cell<Option<Reply>>,
}

/// The trial that begins next.
static NEXT: AtomicPtr<Trial> = AtomicPtr::new(null_mut());

impl Trial {
    /// The number of arguments of a trial that begins, and the trial. `argc` is minus that number.
    #[cold]
    #[inline(never)]
    pub(super) fn take<'a>(argc: c_int) -> (usize, Option<&'a Trial>) {
        // SAFETY: `Again::run` set it, and keeps it until the command has ended.
        let trial = unsafe { NEXT.swap(null_mut(), Relaxed).as_ref() };
        (usize::try_from(argc.unsigned_abs()).unwrap_or(0), trial)
    }

    /// Notes the reply.
    #[cold]
    #[inline(never)]
    pub(super) fn end(&self, reply: Reply) {
        self.reply.set(Some(reply));
    }
}

/// A wait that begins or goes on: how long at most, and for which limits.
pub struct Wait {
    left: Span,
    stands: Vec<Stand<WaitedKey>>,
    /// The places of the call's keys.
    keys: Vec<usize>,
}

/// A limit for which a call waits.
pub struct Wanted {
    /// The place of the key.
    pub key: usize,
    pub name: Name,
    pub critical: bool,
    /// The time after which the limit has room if no other caller comes.
    pub retry: Span,
}

impl Call<'_> {
    /// If others wait for a limit ahead of the call, returns the time until the first of them is tried.
    pub fn ahead(&self, key: usize, name: Name, critical: bool) -> Option<Span> {
        let key: (c_int, &[u8]) = (self.database(), self.word(key).ok()?);
        with_state(|state| {
            let lines = &state.lines;
            let caller = self.again.map(|trial| trial.caller);
            let ahead = lines.ahead::<dyn OfDatabase>(&key, name, critical, caller, now());
            // A caller that leaves without being tried is refused, even by a limit that has room by now.
            ahead.or(self.only_looks().then_some(Span::ZERO))
        })
    }

    /// Returns how long the call can wait: at most `block`, and at most as long as the setting allows. `None` if it cannot
    /// wait.
    pub fn time_to_wait(&self, block: Option<Period>) -> Option<Span> {
        let block = block?.span();
        match self.again {
            None => self.can_block().then(|| block.min(settings::longest_block())),
            Some(Trial { turn: Turn::IsTried, caller, .. }) => {
                with_state(|state| state.lines.time_left(*caller, now()))
            }
            Some(_) => None,
        }
    }

    /// The wait for these limits, for at most `left`. `keys` are the places of all keys of the call. `None` if the settings
    /// allow no further waiting caller.
    pub fn wait(
        &self,
        left: Span,
        keys: Vec<usize>,
        wanted: impl Iterator<Item = Wanted>,
    ) -> Option<Box<Wait>> {
        let database = self.database();
        let stands = wanted.map(|wanted| {
            let name = self.word(wanted.key).ok()?.into();
            let key = WaitedKey { database, name };
            Some(Stand { key, name: wanted.name, critical: wanted.critical, retry: Some(wanted.retry) })
        });
        let stands: Vec<_> = stands.collect::<Option<_>>()?;
        let is_full = self.again.is_none()
            && with_state(|state| {
                let lines = &state.lines;
                let most = settings::most_waiters_of_key();
                lines.len() >= settings::most_waiters()
                    || stands.iter().any(|stand| lines.at_key::<WaitedKey>(&stand.key) >= most)
            });
        (!is_full).then(|| Box::new(Wait { left, stands, keys }))
    }

    /// The number of callers that wait for limits of the key at this place.
    pub fn waiting(&self, key: usize) -> usize {
        let Ok(name) = self.word(key) else { return 0 };
        let key: (c_int, &[u8]) = (self.database(), name);
        with_state(|state| state.lines.at_key::<dyn OfDatabase>(&key))
    }

    /// Marks a key of the call that has changed.
    #[cold]
    pub(super) fn mark(&self, name: *mut RedisModuleString) {
        let key: (c_int, &[u8]) = (self.database(), bytes(name));
        with_state(|state| state.lines.mark::<dyn OfDatabase>(&key));
        // After the trials, the alarm is set in any case.
        if self.again.is_none() {
            serve::set_alarm();
        }
    }

    /// Whether the command only looks, because nothing may be written.
    pub fn only_looks(&self) -> bool {
        self.again.is_some_and(|trial| trial.turn == Turn::Looks)
    }

    /// The number of the selected database.
    pub fn database(&self) -> c_int {
        // SAFETY: `ctx` is the context of the running command.
        unsafe { api!(RedisModule_GetSelectedDb(self.ctx)) }
    }

    /// Whether the client can be blocked. It cannot in a transaction or a script, nor on a replica.
    fn can_block(&self) -> bool {
        // SAFETY: `ctx` is the context of the running command.
        let flags = unsafe { api!(RedisModule_GetContextFlags(self.ctx)) }.cast_unsigned();
        flags & UNBLOCKABLE == 0 && flags & REDISMODULE_CTX_FLAGS_MASTER != 0
    }
}
