//! The settings of the module: `ratelimit.*` in the server's configuration.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering::Relaxed};

use ratelimit_core::state::Shape;
use ratelimit_core::{Period, Span};
use ratelimit_language::vocabulary::MOST_TOP;
use ratelimit_language::{Bounds, Duration, duration, integer, shown};
use redis_module::Context;
use redis_module::configuration::{
    ConfigurationContext, ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};
use redis_module::raw::{REDISMODULE_CONFIG_DEFAULT, RedisModuleString, Status};

use super::top::forget_top;
use crate::server::api::{OK, api, bytes};

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

/// A string of the server that a setting keeps, because the server reads it from there; null before it is set.
struct Kept(AtomicPtr<RedisModuleString>);

impl Kept {
    const fn new() -> Kept {
        Kept(AtomicPtr::new(null_mut()))
    }

    /// Keeps a copy of these bytes, and frees the old ones.
    fn set(&self, bytes: &[u8]) {
        // SAFETY: nothing else refers to the old string, which may be null only at first.
        unsafe {
            let new = api!(RedisModule_CreateString(null_mut(), bytes.as_ptr().cast(), bytes.len()));
            let old = self.0.swap(new, Relaxed);
            if !old.is_null() {
                api!(RedisModule_FreeString(null_mut(), old));
            }
        }
    }

    fn get(&self) -> *mut RedisModuleString {
        self.0.load(Relaxed)
    }
}

/// A setting that is a duration of at most a day. A value without a unit is in milliseconds, and so it is shown.
struct DurationSetting {
    name: &'static CStr,
    millis: AtomicU64,
    shown: Kept,
    default: &'static CStr,
    /// In milliseconds.
    least: u64,
    changed: fn(),
}

impl DurationSetting {
    const fn new(name: &'static CStr, default: &'static CStr, least: u64, changed: fn()) -> DurationSetting {
        DurationSetting { name, millis: AtomicU64::new(0), shown: Kept::new(), default, least, changed }
    }

    fn get(&self) -> u64 {
        self.millis.load(Relaxed)
    }

    /// Registers the setting with the server, which sets it to its default or to the value of its configuration.
    fn register(&'static self, context: &Context) {
        // SAFETY: `context` is the context of the load. The functions have the types that the server calls, and get a pointer
        // to this setting.
        unsafe {
            api!(RedisModule_RegisterStringConfig(
                context.get_raw(),
                self.name.as_ptr(),
                self.default.as_ptr(),
                REDISMODULE_CONFIG_DEFAULT,
                Some(get_duration),
                Some(set_duration),
                None,
                (&raw const *self).cast_mut().cast()
            ));
        }
    }

    /// Sets the setting; the error says which values it takes.
    fn set(&self, word: &[u8]) -> Result<(), String> {
        let millis = integer(word).or_else(|| duration(word));
        let Some(millis) = millis.filter(|millis| (self.least..=DAY).contains(millis)) else {
            let range = format!("{} to {}", Duration(self.least), Duration(DAY));
            let got = shown(word);
            return Err(format!("argument must be a duration from {range}, such as 90s; got '{got}'"));
        };
        self.shown.set(millis.to_string().as_bytes());
        // The server calls this for any other word, also for one of the same length.
        if self.millis.swap(millis, Relaxed) != millis {
            (self.changed)();
        }
        Ok(())
    }
}

unsafe extern "C" fn get_duration(_: *const c_char, setting: *mut c_void) -> *mut RedisModuleString {
    // SAFETY: `register` passed a pointer to a static setting.
    unsafe { setting.cast::<DurationSetting>().as_ref() }.map_or(null_mut(), |setting| setting.shown.get())
}

unsafe extern "C" fn set_duration(
    _: *const c_char,
    value: *mut RedisModuleString,
    setting: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: `register` passed a pointer to a static setting.
    let setting = unsafe { setting.cast::<DurationSetting>().as_ref() };
    match setting.map_or(Ok(()), |setting| setting.set(bytes(value))) {
        Ok(()) => OK,
        Err(why) => refuse(&why, error),
    }
}

/// Gives the server the reason why a value is refused.
fn refuse(why: &str, error: *mut *mut RedisModuleString) -> c_int {
    // SAFETY: the server passes a place for the error, and frees the string.
    unsafe { *error = api!(RedisModule_CreateString(null_mut(), why.as_ptr().cast(), why.len())) };
    Status::Err as c_int
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
static MAX_BLOCK: DurationSetting = DurationSetting::new(c"max-block", c"60000", 1, || ());
static MAX_WAITERS: Number = Number::new("max-waiters", 10_000, 0, LARGEST_WAITERS);
static MAX_WAITERS_PER_KEY: Number = Number::new("max-waiters-per-key", 1000, 0, LARGEST_WAITERS);
/// How long a tenant is hungry after a call that does not wait was refused; 0 if never.
static HUNGER: DurationSetting = DurationSetting::new(c"hunger", c"1000", 0, hunger_changed);
static MAX_TENANTS: Number = Number::new("max-tenants", 10_000, 0, LARGEST_WAITERS);
/// The entries of a window of `RL.TOP`; 0 if it is off.
static TOP: Number = Number::new("top", 0, 0, MOST_TOP);
static TOP_WINDOW: DurationSetting = DurationSetting::new(c"top-window", c"60000", 1000, forget_top);

/// `ratelimit.policy-file`.
static POLICY_FILE: Kept = Kept::new();
/// Whether the module is loaded, so that the file stays the same.
static LOADED: AtomicBool = AtomicBool::new(false);
const FIXED: &str = "it cannot be changed while the server runs";

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
    for number in [&MAX_LEASES, &MAX_LOG_ENTRIES, &MAX_HOLDS, &MAX_WAITERS, &MAX_WAITERS_PER_KEY] {
        number.register(context, flags(), || ());
    }
    MAX_TENANTS.register(context, flags(), hunger_changed);
    MAX_SKETCH_BYTES.register(context, ConfigurationFlags::MEMORY, || ());
    TOP.register(context, flags(), forget_top);
    MAX_BLOCK.register(context);
    HUNGER.register(context);
    TOP_WINDOW.register(context);
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
    POLICY_FILE.get()
}

/// Stores a copy of the setting. The server calls this for another value than that of the setting.
unsafe extern "C" fn set_policy_file(
    _: *const c_char,
    value: *mut RedisModuleString,
    _: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    if LOADED.load(Relaxed) {
        return refuse(FIXED, error);
    }
    POLICY_FILE.set(bytes(value));
    OK
}

/// Returns the file of policies; empty if there is none.
pub fn policy_file() -> PathBuf {
    let value = POLICY_FILE.get();
    if value.is_null() { PathBuf::new() } else { OsStr::from_bytes(bytes(value)).into() }
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

/// What ends all hungers.
static END_HUNGERS: OnceLock<fn()> = OnceLock::new();

/// Has this called when the settings allow no hunger any more.
pub fn on_end_of_hungers(end: fn()) {
    _ = END_HUNGERS.set(end);
}

fn hunger_changed() {
    if HUNGER.get() == 0 || MAX_TENANTS.get() == 0 {
        END_HUNGERS.get().into_iter().for_each(|end| end());
    }
}

/// Returns how long a tenant is hungry after a call that does not wait was refused.
pub fn hunger() -> Span {
    Span::from_millis(HUNGER.get())
}

/// Returns the maximum number of hungry tenants.
pub fn most_hungry() -> usize {
    MAX_TENANTS.count()
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
