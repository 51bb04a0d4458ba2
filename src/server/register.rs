//! Loading: what the server must have, the options, the type, the commands.

use std::ffi::{CString, c_int, c_uint};
use std::mem::zeroed;
use std::panic::PanicHookInfo;
use std::ptr::null_mut;
use std::sync::OnceLock;

use redis_module::configuration::{
    ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};
use redis_module::logging::log_warning;
use redis_module::raw::{
    REDISMODULE_CMD_KEY_ACCESS, REDISMODULE_CMD_KEY_DELETE, REDISMODULE_CMD_KEY_INSERT,
    REDISMODULE_CMD_KEY_OW, REDISMODULE_CMD_KEY_RO, REDISMODULE_CMD_KEY_RW, REDISMODULE_CMD_KEY_UPDATE,
    REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS,
    REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD, RedisModule_AddACLCategory,
    RedisModule_SetCommandACLCategories, RedisModuleCommandArg, RedisModuleCommandHistoryEntry,
    RedisModuleCommandInfo, RedisModuleCommandInfoVersion, RedisModuleCommandKeySpec, RedisModuleCtx,
    RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX as BY_INDEX,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM as BY_NUMBER,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE as BY_RANGE, RedisModuleString,
    register_info_function,
};
use redis_module::{Context, RedisString, Status};

use super::api::{OK, api, missing};
use super::call::{Call, enter};
use super::docs::{self, Docs};
use super::guard::guarded;
use super::info::info_outside_crashes;
use super::reply::Reply;
use super::stats::{DEFAULT_MOST, EVENTS, MAX_LEASES, MAX_LOG_ENTRIES};
use super::value::TYPE;
use crate::limit::Error;

/// What the names of our commands begin with.
const OURS: &str = "RL.";

/// A command: what it is called, what the server is told of it, and its story.
pub trait Command {
    /// Only a name of our own must be free; others are left to whoever was first.
    const PREFIX: &'static str = OURS;
    /// Without the prefix.
    const NAME: &'static str;
    const SYNTAX: &'static str;
    const SUMMARY: &'static str;
    const COMPLEXITY: &'static str;
    /// As `RedisModule_CreateCommand` takes them.
    const FLAGS: &'static str;
    const KEYS: Keys;

    fn run(call: &Call<'_>) -> Result<Reply, Error>;
}

/// Which arguments are keys, and what is done with them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// The first, which is read.
    Read,
    /// The first, which is read and changed.
    Update,
    /// The first, which may be deleted.
    Delete,
    /// The first, which is added to.
    Insert,
    /// So many as the first argument says, which are read and changed.
    Numbered,
    /// The same, which are read.
    NumberedRead,
    /// The first and every second one after it, which are overwritten.
    Pairs,
    None,
}

/// A line of the table of commands.
pub struct Entry {
    prefix: &'static str,
    name: &'static str,
    syntax: &'static str,
    summary: &'static str,
    complexity: &'static str,
    flags: &'static str,
    keys: Keys,
    enter: extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int,
}

impl Entry {
    pub const fn of<C: Command>() -> Entry {
        Entry {
            prefix: C::PREFIX,
            name: C::NAME,
            syntax: C::SYNTAX,
            summary: C::SUMMARY,
            complexity: C::COMPLEXITY,
            flags: C::FLAGS,
            keys: C::KEYS,
            enter: enter::<C>,
        }
    }

    fn full_name(&self) -> String {
        format!("{}{}", self.prefix, self.name)
    }

    fn help(&self) -> [String; 2] {
        let syntax = docs::shown(self.syntax);
        [format!("{} {syntax}", self.full_name()).trim_end().into(), format!("    {}.", self.summary)]
    }
}

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

/// # Safety
///
/// `ctx` is the context of the load.
unsafe fn register(ctx: *mut RedisModuleCtx, command: &Entry, own_category: bool) -> Option<()> {
    let name = CString::new(command.full_name().to_ascii_lowercase()).ok()?;
    let flags = CString::new(command.flags).ok()?;
    let summary = CString::new(command.summary).ok()?;
    let complexity = CString::new(command.complexity).ok()?;
    let mut docs = Docs::of(command.syntax);
    let mut keys = key_specs(command.keys);
    let (first, last, step) = match command.keys {
        Keys::Pairs => (1, -1, 2),
        // The server finds them by what `key_specs` says.
        Keys::None | Keys::Numbered | Keys::NumberedRead => (0, 0, 0),
        _ => (1, 1, 1),
    };
    let version = RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<RedisModuleCommandArg>(),
    };
    let info = RedisModuleCommandInfo {
        version: &raw const version,
        summary: summary.as_ptr(),
        complexity: complexity.as_ptr(),
        since: c"0.1.0".as_ptr(),
        history: null_mut(),
        tips: std::ptr::null(),
        arity: docs.arity(),
        key_specs: keys.as_mut_ptr(),
        args: docs.arguments(),
    };
    // SAFETY: by the contract; the server copies all that the pointers lead to.
    unsafe {
        let enter = Some(command.enter as unsafe extern "C" fn(_, _, _) -> _);
        let done = |status: c_int| (status == OK).then_some(());
        done(api!(RedisModule_CreateCommand(ctx, name.as_ptr(), enter, flags.as_ptr(), first, last, step)))?;
        let registered = api!(RedisModule_GetCommand(ctx, name.as_ptr()));
        done(api!(RedisModule_SetCommandInfo(registered, &raw const info)))?;
        if let Some(set_categories) = RedisModule_SetCommandACLCategories {
            done(set_categories(registered, categories(command, own_category).as_ptr()))?;
        }
    }
    Some(())
}

/// The ACL categories of a command, where the server takes them.
fn categories(command: &Entry, own_category: bool) -> CString {
    let mut categories = vec![if command.flags.contains("readonly") { "read" } else { "write" }];
    if command.flags.contains("fast") {
        categories.push("fast");
    }
    if command.keys == Keys::Pairs {
        // As powerful as RESTORE.
        categories.push("dangerous");
    }
    if own_category {
        categories.push("ratelimit");
    }
    CString::new(categories.join(" ")).unwrap_or_default()
}

/// What is done with the keys of a command that says how many it has.
pub(super) const fn numbered(keys: Keys) -> Option<u32> {
    match keys {
        Keys::Numbered => Some(READ_AND_CHANGED),
        Keys::NumberedRead => Some(READ),
        _ => None,
    }
}

const READ: u32 = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS;
const READ_AND_CHANGED: u32 =
    REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE;

/// One key specification, and the end of the list.
fn key_specs(keys: Keys) -> [RedisModuleCommandKeySpec; 2] {
    // SAFETY: all fields are numbers, pointers and unions of them, for which zero is a value; it also ends a list.
    let mut specs: [RedisModuleCommandKeySpec; 2] = unsafe { [zeroed(), zeroed()] };
    let [spec, _] = &mut specs;
    let (flags, last, step) = match keys {
        Keys::Read | Keys::NumberedRead => (READ, 0, 1),
        Keys::Update | Keys::Numbered => (READ_AND_CHANGED, 0, 1),
        Keys::Insert => (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT, 0, 1),
        Keys::Delete => (REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_DELETE, 0, 1),
        Keys::Pairs => (REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE, -1, 2),
        // The end of the list comes first.
        Keys::None => return specs,
    };
    spec.flags = u64::from(flags);
    spec.begin_search_type = BY_INDEX;
    spec.bs.index.pos = 1;
    if matches!(keys, Keys::Numbered | Keys::NumberedRead) {
        spec.find_keys_type = BY_NUMBER;
        spec.fk.keynum.keynumidx = 0;
        spec.fk.keynum.firstkey = 1;
        spec.fk.keynum.keystep = 1;
        return specs;
    }
    spec.find_keys_type = BY_RANGE;
    spec.fk.range.lastkey = last;
    spec.fk.range.keystep = step;
    specs
}
