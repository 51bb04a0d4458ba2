//! The arguments of a command, as the server takes them for `COMMAND DOCS`.

use std::ffi::{CString, c_char, c_int};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use ratelimit_language::syntax::{Kind, Part};
use redis_module::raw::{
    REDISMODULE_CMD_ARG_MULTIPLE, REDISMODULE_CMD_ARG_OPTIONAL, RedisModuleCommandArg,
    RedisModuleCommandArgType, RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK as BLOCK,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE as DOUBLE,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER as INTEGER,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY as KEY,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF as ONEOF,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN as PURE_TOKEN,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING as STRING,
};

/// The arguments, and all that their pointers lead to.
pub struct Docs {
    strings: Vec<CString>,
    lists: Vec<Vec<RedisModuleCommandArg>>,
    arguments: *mut RedisModuleCommandArg,
    /// The number of arguments so far that are keys. Each has a key specification of its own.
    keys: c_int,
}

impl Docs {
    pub fn of(parts: &[Part]) -> Docs {
        let mut docs = Docs { strings: Vec::new(), lists: Vec::new(), arguments: null_mut(), keys: 0 };
        docs.arguments = docs.list(parts);
        docs
    }

    /// The list of arguments, which lives as long as `self`; null if there are none.
    pub fn arguments(&mut self) -> *mut RedisModuleCommandArg {
        self.arguments
    }

    fn list(&mut self, parts: &[Part]) -> *mut RedisModuleCommandArg {
        if parts.is_empty() {
            return null_mut();
        }
        let mut list: Vec<_> = parts.iter().map(|part| self.argument(part)).collect();
        // An argument without a name ends the list.
        // SAFETY: all fields are numbers and pointers, for which zero is a valid value.
        list.push(unsafe { zeroed() });
        let start = list.as_mut_ptr();
        // Moving the vector does not move its elements, so `start` stays valid.
        self.lists.push(list);
        start
    }

    fn argument(&mut self, part: &Part) -> RedisModuleCommandArg {
        let is_key = part.kind == Kind::Key;
        let key_spec_index = if is_key { self.keys } else { -1 };
        self.keys += c_int::from(is_key);
        RedisModuleCommandArg {
            name: self.string(&part.name()),
            type_: type_of(part.kind),
            key_spec_index,
            token: part.token.map_or(null(), |token| self.string(token)),
            summary: part.meaning().map_or(null(), |meaning| self.string(meaning)),
            since: null(),
            flags: flags(part),
            deprecated_since: null(),
            subargs: self.list(&part.parts),
            display_text: null(),
        }
    }

    fn string(&mut self, text: &str) -> *const c_char {
        let string = CString::new(text).unwrap_or_default();
        let start = string.as_ptr();
        self.strings.push(string);
        start
    }
}

fn type_of(kind: Kind) -> RedisModuleCommandArgType {
    match kind {
        Kind::Token => PURE_TOKEN,
        Kind::Key => KEY,
        Kind::Integer => INTEGER,
        Kind::Real => DOUBLE,
        Kind::Text => STRING,
        Kind::All => BLOCK,
        Kind::OneOf => ONEOF,
    }
}

fn flags(part: &Part) -> c_int {
    let flag = |is_set, flag: u32| if is_set { flag } else { 0 };
    let optional = flag(part.is_optional, REDISMODULE_CMD_ARG_OPTIONAL);
    (optional | flag(part.is_repeated, REDISMODULE_CMD_ARG_MULTIPLE)).cast_signed()
}
