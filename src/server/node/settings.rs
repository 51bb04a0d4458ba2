//! The settings of the module: `ratelimit.*` in the server's configuration.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering::Relaxed};

use ratelimit_core::state::Shape;
use ratelimit_core::{Period, Span};
use ratelimit_language::Bounds;
use redis_module::Context;
use redis_module::configuration::{
    ConfigurationContext, ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};
use redis_module::raw::{REDISMODULE_CONFIG_DEFAULT, RedisModuleString, Status};

use super::top::{MOST_TOP, forget_top};
use crate::server::api::{OK, api};

/// `ratelimit.events`.
static EVENTS: AtomicBool = AtomicBool::new(false);
/// `ratelimit.max-leases`.
static MAX_LEASES: AtomicI64 = AtomicI64::new(DEFAULT_BOUND);
/// `ratelimit.max-log-entries`.
static MAX_LOG_ENTRIES: AtomicI64 = AtomicI64::new(DEFAULT_BOUND);
/// `ratelimit.max-holds`.
static MAX_HOLDS: AtomicI64 = AtomicI64::new(DEFAULT_HOLDS);
/// The default of the first two.
const DEFAULT_BOUND: i64 = Bounds::DEFAULT.leases.cast_signed();
const LARGEST_BOUND: i64 = 100_000_000;
const DEFAULT_HOLDS: i64 = 10_000;
const LARGEST_HOLDS: i64 = 100_000;

/// `ratelimit.max-sketch-bytes`.
static MAX_SKETCH_BYTES: AtomicI64 = AtomicI64::new(DEFAULT_SKETCH);
const DEFAULT_SKETCH: i64 = Bounds::DEFAULT.sketch_bytes.cast_signed();
const LEAST_SKETCH: i64 = Shape::DEFAULT.bytes().cast_signed();
const LARGEST_SKETCH: i64 = Shape::MOST_BYTES.cast_signed();

/// `ratelimit.top`: the entries of a window of `RL.TOP`; 0 if it is off.
static TOP: AtomicI64 = AtomicI64::new(0);
/// `ratelimit.top-window`, in milliseconds.
static TOP_WINDOW: AtomicI64 = AtomicI64::new(DEFAULT_TOP_WINDOW);
const DEFAULT_TOP_WINDOW: i64 = 60_000;
const LONGEST_TOP_WINDOW: i64 = 86_400_000;

/// `ratelimit.max-block`, in milliseconds.
static MAX_BLOCK: AtomicI64 = AtomicI64::new(DEFAULT_BLOCK);
/// `ratelimit.max-waiters`.
static MAX_WAITERS: AtomicI64 = AtomicI64::new(DEFAULT_WAITERS);
/// `ratelimit.max-waiters-per-key`.
static MAX_WAITERS_PER_KEY: AtomicI64 = AtomicI64::new(DEFAULT_WAITERS_PER_KEY);
const DEFAULT_BLOCK: i64 = 60_000;
const LONGEST_BLOCK: i64 = 86_400_000;
const DEFAULT_WAITERS: i64 = 10_000;
const DEFAULT_WAITERS_PER_KEY: i64 = 1000;
const LARGEST_WAITERS: i64 = 100_000;

/// `ratelimit.policy-file`, as a string of the server; null before it is set.
static POLICY_FILE: AtomicPtr<RedisModuleString> = AtomicPtr::new(null_mut());
/// Whether the module is loaded, so that the file stays the same.
static LOADED: AtomicBool = AtomicBool::new(false);
const FIXED: &[u8] = b"it cannot be changed while the server runs";

/// Registers the settings with the server, and sets them to the values of its configuration. Returns whether all are valid.
pub fn load(context: &Context) -> bool {
    LOADED.store(false, Relaxed);
    register(context);
    // SAFETY: `context` is the context of the load.
    let valid = unsafe { api!(RedisModule_LoadConfigs(context.get_raw())) } == OK;
    LOADED.store(true, Relaxed);
    valid
}

fn register(context: &Context) {
    let flags = || ConfigurationFlags::DEFAULT;
    register_bool_configuration(context, "events", &EVENTS, false, flags(), None);
    for (name, bound) in [("max-leases", &MAX_LEASES), ("max-log-entries", &MAX_LOG_ENTRIES)] {
        register_i64_configuration(context, name, bound, DEFAULT_BOUND, 1, LARGEST_BOUND, flags(), None);
    }
    let (name, bound) = ("max-holds", &MAX_HOLDS);
    register_i64_configuration(context, name, bound, DEFAULT_HOLDS, 1, LARGEST_HOLDS, flags(), None);
    let (name, bound) = ("max-block", &MAX_BLOCK);
    register_i64_configuration(context, name, bound, DEFAULT_BLOCK, 1, LONGEST_BLOCK, flags(), None);
    for (name, bound, default) in [
        ("max-waiters", &MAX_WAITERS, DEFAULT_WAITERS),
        ("max-waiters-per-key", &MAX_WAITERS_PER_KEY, DEFAULT_WAITERS_PER_KEY),
    ] {
        register_i64_configuration(context, name, bound, default, 0, LARGEST_WAITERS, flags(), None);
    }
    let (name, bound) = ("max-sketch-bytes", &MAX_SKETCH_BYTES);
    let memory = ConfigurationFlags::MEMORY;
    register_i64_configuration(
        context,
        name,
        bound,
        DEFAULT_SKETCH,
        LEAST_SKETCH,
        LARGEST_SKETCH,
        memory,
        None,
    );
    for (name, setting, default, least, most) in [
        ("top", &TOP, 0, 0, MOST_TOP.cast_signed()),
        ("top-window", &TOP_WINDOW, DEFAULT_TOP_WINDOW, 1000, LONGEST_TOP_WINDOW),
    ] {
        let forget = Box::new(|_: &ConfigurationContext, _: &str, _: &'static AtomicI64| forget_top());
        register_i64_configuration(context, name, setting, default, least, most, flags(), Some(forget));
    }
    // The function of the crate `redis_module` leaks a string whenever the setting is read. The server refuses to set an
    // immutable setting even to its own value, as a `CONFIG SET` of all settings does.
    // SAFETY: `context` is the context of the load. The functions have the types that the server calls.
    unsafe {
        api!(RedisModule_RegisterStringConfig(
            context.get_raw(),
            c"policy-file".as_ptr(),
            c"".as_ptr(),
            REDISMODULE_CONFIG_DEFAULT,
            Some(get_policy_file),
            Some(set_policy_file),
            None,
            null_mut()
        ));
    }
}

unsafe extern "C" fn get_policy_file(_: *const c_char, _: *mut c_void) -> *mut RedisModuleString {
    POLICY_FILE.load(Relaxed)
}

/// Stores a copy of the setting. The server calls this for another value than that of the setting.
unsafe extern "C" fn set_policy_file(
    _: *const c_char,
    value: *mut RedisModuleString,
    _: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    if LOADED.load(Relaxed) {
        // SAFETY: the server passes a place for the error, and frees the string.
        unsafe { *error = api!(RedisModule_CreateString(null_mut(), FIXED.as_ptr().cast(), FIXED.len())) };
        return Status::Err as c_int;
    }
    // SAFETY: the server passes a string. Nothing else refers to the old copy, which may be null only at first.
    unsafe {
        let mut length = 0;
        let start = api!(RedisModule_StringPtrLen(value, &raw mut length));
        let old = POLICY_FILE.swap(api!(RedisModule_CreateString(null_mut(), start, length)), Relaxed);
        if !old.is_null() {
            api!(RedisModule_FreeString(null_mut(), old));
        }
    }
    OK
}

/// Returns the file of policies; empty if there is none.
pub fn policy_file() -> PathBuf {
    let value = POLICY_FILE.load(Relaxed);
    if value.is_null() {
        return PathBuf::new();
    }
    // SAFETY: the string is freed only when the setting is set, which happens on this thread.
    unsafe {
        let mut length = 0;
        let start = api!(RedisModule_StringPtrLen(value, &raw mut length));
        OsStr::from_bytes(slice::from_raw_parts(start.cast(), length)).into()
    }
}

/// Returns whether decisions are sent as keyspace events.
pub fn sends_events() -> bool {
    EVENTS.load(Relaxed)
}

/// Returns the longest time that a caller waits in the server.
pub fn longest_block() -> Span {
    Span::from_millis(MAX_BLOCK.load(Relaxed).cast_unsigned())
}

/// Returns the maximum number of callers that wait.
pub fn most_waiters() -> usize {
    usize::try_from(MAX_WAITERS.load(Relaxed)).unwrap_or(0)
}

/// Returns the maximum number of callers that wait for the limits of a key.
pub fn most_waiters_of_key() -> usize {
    usize::try_from(MAX_WAITERS_PER_KEY.load(Relaxed)).unwrap_or(0)
}

/// Returns whether refusals are counted for `RL.TOP`.
#[inline(always)]
pub fn counts_refusals() -> bool {
    TOP.load(Relaxed) > 0
}

/// Returns the entries and the length of a window of `RL.TOP`.
pub fn top() -> (usize, Period) {
    let millis = NonZeroU64::new(TOP_WINDOW.load(Relaxed).cast_unsigned()).unwrap_or(NonZeroU64::MIN);
    (usize::try_from(TOP.load(Relaxed)).unwrap_or(0), Period::from_millis(millis))
}

/// Returns the maximum number of holds of a key.
pub fn most_holds() -> u64 {
    MAX_HOLDS.load(Relaxed).cast_unsigned()
}

/// Returns the bounds that the parser of arguments needs.
#[inline(always)]
pub fn bounds() -> Bounds {
    Bounds {
        leases: MAX_LEASES.load(Relaxed).cast_unsigned(),
        log_entries: MAX_LOG_ENTRIES.load(Relaxed).cast_unsigned(),
        sketch_bytes: MAX_SKETCH_BYTES.load(Relaxed).cast_unsigned(),
    }
}
