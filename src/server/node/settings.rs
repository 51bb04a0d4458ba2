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
use ratelimit_language::vocabulary::MOST_TOP;
use redis_module::Context;
use redis_module::configuration::{
    ConfigurationContext, ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};
use redis_module::raw::{REDISMODULE_CONFIG_DEFAULT, RedisModuleString, Status};

use super::top::forget_top;
use crate::server::api::{OK, api};

/// `ratelimit.events`.
static EVENTS: AtomicBool = AtomicBool::new(false);

/// A setting that is a number, with its range and its default.
struct Number {
    name: &'static str,
    value: AtomicI64,
    default: i64,
    least: i64,
    most: i64,
}

impl Number {
    const fn new(name: &'static str, default: u64, least: u64, most: u64) -> Number {
        let [default, least, most] = [default.cast_signed(), least.cast_signed(), most.cast_signed()];
        Number { name, value: AtomicI64::new(default), default, least, most }
    }

    /// The server keeps every setting at 0 at least.
    fn get(&self) -> u64 {
        self.value.load(Relaxed).cast_unsigned()
    }

    fn count(&self) -> usize {
        usize::try_from(self.get()).unwrap_or(0)
    }

    /// Registers the setting with the server, which calls `changed` after each change.
    fn register(&'static self, context: &Context, flags: ConfigurationFlags, changed: fn()) {
        let Number { name, value, default, least, most } = self;
        let changed = Box::new(move |_: &ConfigurationContext, _: &str, _| changed());
        register_i64_configuration(context, name, value, *default, *least, *most, flags, Some(changed));
    }
}

const LARGEST_BOUND: u64 = 100_000_000;
const LARGEST_WAITERS: u64 = 100_000;
const DAY: u64 = 86_400_000;

static MAX_LEASES: Number = Number::new("max-leases", Bounds::DEFAULT.leases, 1, LARGEST_BOUND);
static MAX_LOG_ENTRIES: Number =
    Number::new("max-log-entries", Bounds::DEFAULT.log_entries, 1, LARGEST_BOUND);
static MAX_HOLDS: Number = Number::new("max-holds", 10_000, 1, 100_000);
static MAX_SKETCH_BYTES: Number =
    Number::new("max-sketch-bytes", Bounds::DEFAULT.sketch_bytes, Shape::DEFAULT.bytes(), Shape::MOST_BYTES);
/// In milliseconds.
static MAX_BLOCK: Number = Number::new("max-block", 60_000, 1, DAY);
static MAX_WAITERS: Number = Number::new("max-waiters", 10_000, 0, LARGEST_WAITERS);
static MAX_WAITERS_PER_KEY: Number = Number::new("max-waiters-per-key", 1000, 0, LARGEST_WAITERS);
/// The entries of a window of `RL.TOP`; 0 if it is off.
static TOP: Number = Number::new("top", 0, 0, MOST_TOP);
/// In milliseconds.
static TOP_WINDOW: Number = Number::new("top-window", 60_000, 1000, DAY);

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
    for number in [&MAX_LEASES, &MAX_LOG_ENTRIES, &MAX_HOLDS, &MAX_BLOCK, &MAX_WAITERS, &MAX_WAITERS_PER_KEY]
    {
        number.register(context, flags(), || ());
    }
    MAX_SKETCH_BYTES.register(context, ConfigurationFlags::MEMORY, || ());
    for number in [&TOP, &TOP_WINDOW] {
        number.register(context, flags(), forget_top);
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
    Span::from_millis(MAX_BLOCK.get())
}

/// Returns the maximum number of callers that wait.
pub fn most_waiters() -> usize {
    MAX_WAITERS.count()
}

/// Returns the maximum number of callers that wait for the limits of a key.
pub fn most_waiters_of_key() -> usize {
    MAX_WAITERS_PER_KEY.count()
}

/// Returns whether refusals are counted for `RL.TOP`.
#[inline(always)]
pub fn counts_refusals() -> bool {
    TOP.get() > 0
}

/// Returns the entries and the length of a window of `RL.TOP`.
pub fn top() -> (usize, Period) {
    let millis = NonZeroU64::new(TOP_WINDOW.get()).unwrap_or(NonZeroU64::MIN);
    (TOP.count(), Period::from_millis(millis))
}

/// Returns the maximum number of holds of a key.
pub fn most_holds() -> u64 {
    MAX_HOLDS.get()
}

/// Returns the bounds that the parser of arguments needs.
#[inline(always)]
pub fn bounds() -> Bounds {
    Bounds {
        leases: MAX_LEASES.get(),
        log_entries: MAX_LOG_ENTRIES.get(),
        sketch_bytes: MAX_SKETCH_BYTES.get(),
    }
}
