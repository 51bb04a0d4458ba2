//! The arguments of a command, as the server takes them for `COMMAND DOCS`.

use std::ffi::{CString, c_char, c_int};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use ratelimit_language::syntax::{self, Kind, Part};
use ratelimit_language::vocabulary::{Argument, Values};
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
    explained: &'static [Argument],
    strings: Vec<CString>,
    lists: Vec<Vec<RedisModuleCommandArg>>,
    arguments: *mut RedisModuleCommandArg,
    arity: c_int,
    /// The number of arguments so far that are keys. Each has a key specification of its own.
    keys: c_int,
}

impl Docs {
    pub fn of(syntax: &str, explained: &'static [Argument]) -> Docs {
        let parts = syntax::parse(syntax);
        let least = parts.iter().map(Part::least_words).sum::<usize>();
        let least = 1 + c_int::try_from(least).unwrap_or(c_int::MAX - 1);
        let arity = if parts.iter().all(Part::is_fixed) { least } else { -least };
        let mut docs =
            Docs { explained, strings: Vec::new(), lists: Vec::new(), arguments: null_mut(), arity, keys: 0 };
        docs.arguments = docs.list(&parts);
        docs
    }

    /// The arity as the server defines it: the number of words with the command's name, or minus the least number.
    pub fn arity(&self) -> c_int {
        self.arity
    }

    /// The list of arguments, which lives as long as `self`; null if there are none.
    pub fn arguments(&mut self) -> *mut RedisModuleCommandArg {
        self.arguments
    }

    fn list(&mut self, parts: &[Part<'_>]) -> *mut RedisModuleCommandArg {
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

    fn argument(&mut self, part: &Part<'_>) -> RedisModuleCommandArg {
        let key_spec_index = if part.is_key() { self.keys } else { -1 };
        self.keys += c_int::from(part.is_key());
        RedisModuleCommandArg {
            name: self.string(&part.name()),
            type_: self.kind(part),
            key_spec_index,
            token: part.token.map_or(null(), |token| self.string(token)),
            summary: self.meaning(part),
            since: null(),
            flags: flags(part),
            deprecated_since: null(),
            subargs: self.list(&part.parts),
            display_text: null(),
        }
    }

    /// What explains an argument; `None` for a group of arguments.
    fn explanation(&self, part: &Part<'_>) -> Option<&'static Argument> {
        let name = part.argument_name();
        self.explained.iter().find(|argument| Some(argument.name) == name)
    }

    fn kind(&self, part: &Part<'_>) -> RedisModuleCommandArgType {
        match part.kind {
            Kind::Token => return PURE_TOKEN,
            Kind::Key => return KEY,
            Kind::All => return BLOCK,
            Kind::OneOf => return ONEOF,
            Kind::Value => {}
        }
        match self.explanation(part).map(|argument| argument.values) {
            Some(Values::Id | Values::Word) => STRING,
            Some(values) if values.is_duration() => STRING,
            Some(Values::Real { .. }) => DOUBLE,
            _ => INTEGER,
        }
    }

    /// What an argument means; null for a group of arguments.
    fn meaning(&mut self, part: &Part<'_>) -> *const c_char {
        self.explanation(part).map_or(null(), |argument| self.string(argument.meaning))
    }

    fn string(&mut self, text: &str) -> *const c_char {
        let string = CString::new(text).unwrap_or_default();
        let start = string.as_ptr();
        self.strings.push(string);
        start
    }
}

fn flags(part: &Part<'_>) -> c_int {
    let flag = |is_set, flag: u32| if is_set { flag } else { 0 };
    let optional = flag(part.is_optional, REDISMODULE_CMD_ARG_OPTIONAL);
    (optional | flag(part.is_repeated, REDISMODULE_CMD_ARG_MULTIPLE)).cast_signed()
}
