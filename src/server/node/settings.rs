//! The settings of the module: `ratelimit.*` in the server's configuration.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use ratelimit_engine::settings::{DAY, Length, Number, Settings};
use ratelimit_language::{Duration, duration, integer, shown};
use redis_module::Context;
use redis_module::configuration::{
    ConfigurationContext, ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};
use redis_module::raw::{REDISMODULE_CONFIG_DEFAULT, RedisModuleString, Status};

use super::NODE;
use crate::server::api::{OK, api, bytes};

/// Registers a number with the server, which calls `changed` after each change.
fn register_number(context: &Context, number: &'static Number, flags: ConfigurationFlags, changed: fn()) {
    let Number { name, value, default, least, most } = number;
    let changed = Box::new(move |_: &ConfigurationContext, _: &str, _| changed());
    register_i64_configuration(context, name, value, *default, *least, *most, flags, Some(changed));
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

/// A setting that is a duration. A value without a unit is in milliseconds, and so it is shown.
struct DurationSetting {
    of: &'static Length,
    shown: Kept,
    changed: fn(),
}

impl DurationSetting {
    const fn new(of: &'static Length, changed: fn()) -> DurationSetting {
        DurationSetting { of, shown: Kept::new(), changed }
    }

    /// Registers the setting with the server, which sets it to its default or to the value of its configuration.
    fn register(&'static self, context: &Context) {
        let default = CString::new(self.of.default.to_string()).unwrap_or_default();
        // SAFETY: `context` is the context of the load. The functions have the types that the server calls, and get a pointer
        // to this setting.
        unsafe {
            api!(RedisModule_RegisterStringConfig(
                context.get_raw(),
                self.of.name.as_ptr(),
                default.as_ptr(),
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
        let Some(millis) = millis.filter(|millis| (self.of.least..=DAY).contains(millis)) else {
            let range = format!("{} to {}", Duration(self.of.least), Duration(DAY));
            let got = shown(word);
            return Err(format!("argument must be a duration from {range}, such as 90s; got '{got}'"));
        };
        self.shown.set(millis.to_string().as_bytes());
        // The server calls this for any other word, also for one of the same length.
        if self.of.millis.swap(millis, Relaxed) != millis {
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

static MAX_BLOCK: DurationSetting = DurationSetting::new(&NODE.settings.max_block, || ());
static HUNGER: DurationSetting = DurationSetting::new(&NODE.settings.hunger, hunger_changed);
static TOP_WINDOW: DurationSetting = DurationSetting::new(&NODE.settings.top_window, forget_top);

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
    let settings = &NODE.settings;
    register_bool_configuration(context, "events", &settings.events, false, flags(), None);
    let Settings { max_leases, max_log_entries, max_holds, max_waiters, max_waiters_per_key, .. } = settings;
    for number in [max_leases, max_log_entries, max_holds, max_waiters, max_waiters_per_key] {
        register_number(context, number, flags(), || ());
    }
    register_number(context, &settings.max_tenants, flags(), hunger_changed);
    register_number(context, &settings.max_sketch_bytes, ConfigurationFlags::MEMORY, || ());
    register_number(context, &settings.top, flags(), forget_top);
    register_number(context, &settings.record, flags(), || ());
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
        api!(RedisModule_RegisterBoolConfig(
            context.get_raw(),
            c"policies-in-rdb".as_ptr(),
            1,
            REDISMODULE_CONFIG_DEFAULT,
            Some(get_policies_in_rdb),
            Some(set_policies_in_rdb),
            None,
            null_mut()
        ));
    }
}

/// `ratelimit.policies-in-rdb`.
static POLICIES_IN_RDB: AtomicBool = AtomicBool::new(true);

/// Whether an RDB gets the policies.
pub fn policies_in_rdb() -> bool {
    POLICIES_IN_RDB.load(Relaxed)
}

unsafe extern "C" fn get_policies_in_rdb(_: *const c_char, _: *mut c_void) -> c_int {
    policies_in_rdb().into()
}

/// Stores the setting. The server calls this for another value than that of the setting.
unsafe extern "C" fn set_policies_in_rdb(
    _: *const c_char,
    value: c_int,
    _: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    if LOADED.load(Relaxed) {
        return refuse(FIXED, error);
    }
    POLICIES_IN_RDB.store(value != 0, Relaxed);
    OK
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

/// What ends all hungers.
static END_HUNGERS: OnceLock<fn()> = OnceLock::new();

/// Has this called when the settings allow no hunger any more.
pub fn on_end_of_hungers(end: fn()) {
    _ = END_HUNGERS.set(end);
}

fn hunger_changed() {
    if !NODE.settings.allows_hunger() {
        END_HUNGERS.get().into_iter().for_each(|end| end());
    }
}

fn forget_top() {
    NODE.top().forget();
}
