//! Loading: what the server must have, the options, the type, the settings, the commands.

use std::ffi::{c_int, c_uint};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;

use redis_module::configuration::{
    ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};
use redis_module::logging::log_warning;
use redis_module::raw::{
    REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS,
    REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD, RedisModule_AddACLCategory, register_info_function,
};
use redis_module::{Context, RedisString, Status};

use super::api::{OK, api, missing};
use super::guard::guarded;
use super::info::info_outside_crashes;
use super::native_type::TYPE;
use super::register::{Entry, OURS, register};
use super::stats::{DEFAULT_MOST, EVENTS, MAX_LEASES, MAX_LOG_ENTRIES};

static HELP: OnceLock<Vec<String>> = OnceLock::new();

/// What `RL.HELP` tells: for each command its syntax, and below what it does.
pub fn help() -> &'static [String] {
    HELP.get().map_or(&[], Vec::as_slice)
}

/// Sets the module up. Refuses, with a line in the log, on a server that lacks something needed.
pub fn load(context: &Context, arguments: &[RedisString], commands: &[&[Entry]]) -> Status {
    match guarded(Err("internal error".into()), || try_load(context, arguments, commands)) {
        Ok(()) => Status::Ok,
        Err(why) => {
            context.log_warning(&format!("ratelimit not loaded: {why}"));
            Status::Err
        }
    }
}

fn try_load(context: &Context, arguments: &[RedisString], commands: &[&[Entry]]) -> Result<(), String> {
    if let Some(function) = missing(pretended(arguments)?) {
        return Err(format!("the server has no {function}; Redis 7.0 or Valkey 7.2 at least is needed"));
    }
    let ctx = context.get_raw();
    TYPE.create_data_type(ctx)?;
    // One call sets all options: each call overwrites the one before.
    let options = REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
        | REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | HANDLE_ATOMIC_SLOT_MIGRATION;
    // SAFETY: `ctx` is the context of the load.
    unsafe { api!(RedisModule_SetModuleOptions(ctx, options.cast_signed())) };
    register_bool_configuration(context, "events", &EVENTS, false, ConfigurationFlags::DEFAULT, None);
    for (name, setting) in [("max-leases", &MAX_LEASES), ("max-log-entries", &MAX_LOG_ENTRIES)] {
        let flags = ConfigurationFlags::DEFAULT;
        register_i64_configuration(context, name, setting, DEFAULT_MOST, 1, 100_000_000, flags, None);
    }
    // SAFETY: `ctx` is the context of the load.
    if unsafe { api!(RedisModule_LoadConfigs(ctx)) } != OK {
        return Err("a ratelimit.* setting is not what it may be".into());
    }
    register_info_function(ctx, Some(info_outside_crashes));
    std::panic::set_hook(Box::new(log_panic));
    // SAFETY: `ctx` is the context of the load; a server that knows no categories of modules has no such function.
    let own_category = unsafe {
        RedisModule_AddACLCategory.is_some_and(|add| add(ctx, c"ratelimit".as_ptr()) == c_int::from(false))
    };
    let lines = commands.iter().copied().flatten().flat_map(Entry::help);
    // A second load in one process is of another copy of the library.
    _ = HELP.set(lines.collect());
    #[cfg(feature = "fault-injection")]
    for command in commands.iter().copied().flatten().filter(|command| command.prefix != OURS) {
        // SAFETY: `ctx` is the context of the load.
        arguments.first().and_then(|_| unsafe { register(ctx, command, own_category) });
    }
    commands.iter().copied().flatten().try_for_each(|command| {
        // SAFETY: `ctx` is the context of the load.
        let registered = unsafe { register(ctx, command, own_category) };
        match registered {
            Some(()) => Ok(()),
            None if command.prefix == OURS => Err(format!("cannot register {}", command.full_name())),
            None => {
                context.log_notice(&format!("ratelimit: {} is another module's", command.full_name()));
                Ok(())
            }
        }
    })
}

/// Without a stack trace: taking one frees memory of the C library's with the server's allocator, or the other way
/// round, where the server brings an allocator that it hides from modules.
fn log_panic(panic: &PanicHookInfo<'_>) {
    // The crate hands the text on as a format, and panics at a NUL.
    log_warning(format!("ratelimit: {panic}").replace('%', "%%").replace('\0', "?"));
}

/// Valkey 9: the module's keys may be moved by atomic slot migration, which uses the AOF rewrite. Redis ignores it.
const HANDLE_ATOMIC_SLOT_MIGRATION: c_uint = 1 << 5;

/// The module takes no arguments, but for those by which a test takes a function or a name away.
fn pretended(arguments: &[RedisString]) -> Result<Option<&'static str>, String> {
    match arguments.iter().map(RedisString::as_slice).collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        #[cfg(feature = "fault-injection")]
        [b"WITHOUT", b"RedisModule_Replicate"] => Ok(Some("RedisModule_Replicate")),
        #[cfg(feature = "fault-injection")]
        [b"TAKEN"] => Ok(None),
        _ => Err("it takes no arguments; its settings are ratelimit.* in redis.conf".into()),
    }
}
