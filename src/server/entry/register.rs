//! The table of commands, and how they are registered with the server.

use std::ffi::{CStr, CString, c_int};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use ratelimit_language::Keys;
use ratelimit_language::help::{Documentation, Subcommand};
use ratelimit_language::syntax::Part;
use redis_module::raw::{
    REDISMODULE_CMD_KEY_INCOMPLETE, REDISMODULE_CMD_KEY_OW, REDISMODULE_CMD_KEY_UPDATE,
    RedisModule_SetCommandACLCategories, RedisModuleCommand, RedisModuleCommandArg,
    RedisModuleCommandHistoryEntry, RedisModuleCommandInfo, RedisModuleCommandInfoVersion,
    RedisModuleCommandKeySpec, RedisModuleCtx,
    RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX as BY_INDEX,
    RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_KEYWORD as BY_KEYWORD,
    RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_UNKNOWN as NOWHERE,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM as BY_NUMBER,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE as BY_RANGE,
    RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_UNKNOWN as UNKNOWN, RedisModuleString,
};

use super::command::{Command, key_flags};
use super::docs::Docs;
use super::enter::enter;
use crate::server::api::{OK, api};

/// A row of the table of commands.
pub struct Entry {
    pub documentation: Documentation,
    enter: extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int,
}

impl Entry {
    pub const fn of<C: Command>() -> Entry {
        Entry { documentation: C::DOCUMENTATION, enter: enter::<C> }
    }
}

/// Registers a command; `None` if the server refuses it.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn register(ctx: *mut RedisModuleCtx, command: &Entry, own_category: bool) -> Option<()> {
    let Entry { documentation, enter } = command;
    let name = lower(&documentation.full_name())?;
    // A command with a function of its own can have no subcommands.
    let is_container = documentation.subcommands().next().is_some();
    let own = Some(*enter as Enter).filter(|_| !is_container);
    let categories = categories(documentation, own_category);
    // SAFETY: the caller keeps the contract. `create` returns the command that the other calls take, and the server copies the
    // strings.
    unsafe {
        let created = create(ctx, &name, own, documentation)?;
        let arity = if is_container { -2 } else { documentation.arity() };
        let parts = if is_container { Vec::new() } else { documentation.parts() };
        document(created, documentation, arity, &parts, &categories)?;
        for sub in documentation.subcommands() {
            let (name, flags) = (lower(sub.name)?, CString::new(sub.flags).ok()?);
            let (name, flags) = (name.as_ptr(), flags.as_ptr());
            succeeded(api!(RedisModule_CreateSubcommand(created, name, Some(*enter), flags, 0, 0, 0)))?;
            let full = lower(&format!("{}|{}", documentation.full_name(), sub.name))?;
            let created = api!(RedisModule_GetCommand(ctx, full.as_ptr()));
            let parts = sub.parts.as_deref().unwrap_or_default();
            document(created, documentation, Subcommand::ARITY, parts, &categories)?;
        }
    }
    Some(())
}

type Enter = unsafe extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

fn lower(name: &str) -> Option<CString> {
    CString::new(name.to_ascii_lowercase()).ok()
}

fn succeeded(status: c_int) -> Option<()> {
    (status == OK).then_some(())
}

/// Creates a command and returns it.
///
/// # Safety
///
/// `ctx` is the context of the load.
unsafe fn create(
    ctx: *mut RedisModuleCtx,
    name: &CStr,
    enter: Option<Enter>,
    documentation: &Documentation,
) -> Option<*mut RedisModuleCommand> {
    let flags = CString::new(documentation.flags).ok()?;
    let [first, last, step] = documentation.keys.places();
    // SAFETY: the caller keeps the contract, and the server copies the strings.
    unsafe {
        succeeded(api!(RedisModule_CreateCommand(
            ctx,
            name.as_ptr(),
            enter,
            flags.as_ptr(),
            first,
            last,
            step
        )))?;
        Some(api!(RedisModule_GetCommand(ctx, name.as_ptr())))
    }
}

/// Adds documentation, arity, key specifications and categories to a command, or to a subcommand of the command `of`.
///
/// # Safety
///
/// `created` is a command that the module created during the load.
unsafe fn document(
    created: *mut RedisModuleCommand,
    of: &Documentation,
    arity: c_int,
    parts: &[Part],
    categories: &CStr,
) -> Option<()> {
    let (summary, complexity) = (CString::new(of.summary).ok()?, CString::new(of.complexity).ok()?);
    let mut docs = Docs::of(parts);
    let mut keys = key_specs(of.keys);
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
        tips: if of.varies { c"nondeterministic_output".as_ptr() } else { null() },
        arity,
        key_specs: keys.as_mut_ptr(),
        args: docs.arguments(),
    };
    // SAFETY: the caller keeps the contract. All that the pointers lead to lives until the call returns, and the server
    // copies it.
    unsafe {
        succeeded(api!(RedisModule_SetCommandInfo(created, &raw const info)))?;
        if let Some(set_categories) = RedisModule_SetCommandACLCategories {
            succeeded(set_categories(created, categories.as_ptr()))?;
        }
    }
    Some(())
}

/// The ACL categories of a command, for servers that accept them from modules.
fn categories(command: &Documentation, own_category: bool) -> CString {
    let own = own_category.then_some("ratelimit");
    let categories: Vec<_> = command.categories().into_iter().chain(own).collect();
    CString::new(categories.join(" ")).unwrap_or_default()
}

/// The most key specifications of a command.
const MOST_SPECS: usize = 2;

/// Makes the list of key specifications, and a zero that ends it.
fn key_specs(keys: Keys) -> [RedisModuleCommandKeySpec; MOST_SPECS + 1] {
    // SAFETY: all fields are numbers, pointers and unions of them, for which zero is a valid value.
    let none: RedisModuleCommandKeySpec = unsafe { zeroed() };
    let mut first = RedisModuleCommandKeySpec { begin_search_type: BY_INDEX, ..none };
    first.bs.index.pos = 1;
    let range = |spec: RedisModuleCommandKeySpec, flags: u32, last, step| {
        let mut spec = RedisModuleCommandKeySpec { flags: flags.into(), find_keys_type: BY_RANGE, ..spec };
        spec.fk.range.lastkey = last;
        spec.fk.range.keystep = step;
        spec
    };
    match keys {
        Keys::None => [none, none, none],
        Keys::First(key_use) => [range(first, key_flags(key_use), 0, 1), none, none],
        Keys::Pairs => [range(first, REDISMODULE_CMD_KEY_OW | REDISMODULE_CMD_KEY_UPDATE, -1, 2), none, none],
        Keys::Counted(key_use) => {
            first.flags = key_flags(key_use).into();
            first.find_keys_type = BY_NUMBER;
            first.fk.keynum.keynumidx = 0;
            first.fk.keynum.firstkey = 1;
            first.fk.keynum.keystep = 1;
            [first, none, none]
        }
        Keys::OfInner(key_use) => {
            // No specification can find the keys, so the server asks the command itself.
            first.begin_search_type = NOWHERE;
            first.find_keys_type = UNKNOWN;
            first.flags = (key_flags(key_use) | REDISMODULE_CMD_KEY_INCOMPLETE).into();
            [first, none, none]
        }
        Keys::FirstAndBehind(key_use) => {
            let mut behind = RedisModuleCommandKeySpec { begin_search_type: BY_KEYWORD, ..none };
            behind.bs.keyword.keyword = c"KEYS".as_ptr();
            behind.bs.keyword.startfrom = 3;
            // An id may be the word `KEYS`, so the specification can be wrong. The server asks the command itself for its
            // keys if they are marked as incomplete.
            let flags = key_flags(key_use) | REDISMODULE_CMD_KEY_INCOMPLETE;
            [range(first, key_flags(key_use), 0, 1), range(behind, flags, -1, 1), none]
        }
    }
}
