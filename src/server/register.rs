//! The table of commands, and what the server is told of each.

use std::ffi::{CString, c_int};
use std::mem::zeroed;
use std::ptr::null_mut;

use redis_module::raw::{
    REDISMODULE_CMD_KEY_ACCESS, REDISMODULE_CMD_KEY_DELETE, REDISMODULE_CMD_KEY_INSERT,
    REDISMODULE_CMD_KEY_OW, REDISMODULE_CMD_KEY_RO, REDISMODULE_CMD_KEY_RW, REDISMODULE_CMD_KEY_UPDATE,
    RedisModule_SetCommandACLCategories, RedisModuleCommandArg, RedisModuleCommandHistoryEntry,
    RedisModuleCommandInfo, RedisModuleCommandInfoVersion, RedisModuleCommandKeySpec, RedisModuleCtx,
    RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX as BY_INDEX,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM as BY_NUMBER,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE as BY_RANGE, RedisModuleString,
};

use super::api::{OK, api};
use super::call::{Call, enter};
use super::docs::{self, Docs};
use super::reply::Reply;
use ratelimit_language::Error;

/// What the names of our commands begin with.
pub(super) const OURS: &str = "RL.";

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
    /// As many as the first argument says; they are read and changed.
    Numbered,
    /// As many as the first argument says; they are read.
    NumberedRead,
    /// As many as the first argument says; they may be deleted.
    NumberedDelete,
    /// The first and every second one after it, which are overwritten.
    Pairs,
    None,
}

/// A line of the table of commands.
pub struct Entry {
    pub(super) prefix: &'static str,
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

    pub(super) fn full_name(&self) -> String {
        format!("{}{}", self.prefix, self.name)
    }

    pub(super) fn help(&self) -> [String; 2] {
        let syntax = docs::shown(self.syntax);
        [format!("{} {syntax}", self.full_name()).trim_end().into(), format!("    {}.", self.summary)]
    }
}

/// Registers a command; `None` if the server does not take it.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub(super) unsafe fn register(ctx: *mut RedisModuleCtx, command: &Entry, own_category: bool) -> Option<()> {
    let name = CString::new(command.full_name().to_ascii_lowercase()).ok()?;
    let flags = CString::new(command.flags).ok()?;
    let summary = CString::new(command.summary).ok()?;
    let complexity = CString::new(command.complexity).ok()?;
    let mut docs = Docs::of(command.syntax);
    let mut keys = key_specs(command.keys);
    let (first, last, step) = match command.keys {
        Keys::Pairs => (1, -1, 2),
        // The server finds them by what `key_specs` says.
        Keys::None | Keys::Numbered | Keys::NumberedRead | Keys::NumberedDelete => (0, 0, 0),
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
        Keys::NumberedDelete => Some(DELETED),
        _ => None,
    }
}

const READ: u32 = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS;
const DELETED: u32 = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_DELETE;
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
        Keys::Delete | Keys::NumberedDelete => (DELETED, 0, 1),
        Keys::Pairs => (REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE, -1, 2),
        // The end of the list comes first.
        Keys::None => return specs,
    };
    spec.flags = u64::from(flags);
    spec.begin_search_type = BY_INDEX;
    spec.bs.index.pos = 1;
    if numbered(keys).is_some() {
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
