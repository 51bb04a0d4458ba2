//! `COMMAND DOCS` from a command's syntax, as people write it.
//!
//! ```text
//! key capacity ttl id [RESERVED reserved] [CRITICAL] [COST cost] [AT at]
//! ```
//!
//! A small word is an argument; square brackets are around what may be left out; a word in capitals is a token,
//! alone or before its argument; `...` is behind what may come again.

use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};

use redis_module::raw::{
    REDISMODULE_CMD_ARG_MULTIPLE, REDISMODULE_CMD_ARG_NONE, REDISMODULE_CMD_ARG_OPTIONAL,
    RedisModuleCommandArg, RedisModuleCommandArgType,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE as DOUBLE,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER as INTEGER,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY as KEY,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN as PURE_TOKEN,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING as STRING,
};

/// The arguments of a command, in the server's form.
pub struct Docs {
    /// The strings that the arguments point to.
    strings: Vec<CString>,
    arguments: Vec<RedisModuleCommandArg>,
    mandatory: c_int,
}

impl Docs {
    pub fn of(syntax: &str) -> Docs {
        let mut docs = Docs { strings: Vec::new(), arguments: Vec::new(), mandatory: 0 };
        let mut words = syntax.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let again = words.next_if_eq(&"...").is_some();
            match word.strip_prefix('[') {
                None => {
                    docs.mandatory += 1;
                    docs.add(
                        None,
                        Some(word),
                        if again { REDISMODULE_CMD_ARG_MULTIPLE } else { REDISMODULE_CMD_ARG_NONE },
                    );
                }
                Some(token) => {
                    let alone = token.strip_suffix(']');
                    let argument = if alone.is_some() { None } else { words.next() };
                    let argument = argument.map(|word| word.trim_end_matches(']'));
                    docs.add(Some(alone.unwrap_or(token)), argument, REDISMODULE_CMD_ARG_OPTIONAL);
                }
            }
        }
        // The end of the list.
        docs.arguments.push(argument(null(), STRING, null(), 0));
        docs
    }

    /// The arity in the server's sense, which counts the command's name: so many, or if negative at least so many.
    pub fn arity(&self) -> c_int {
        let least = 1 + self.mandatory;
        if self.arguments.iter().all(|argument| argument.flags == 0) { least } else { -least }
    }

    /// The list, closed by an argument without a name; lives as long as this does.
    pub fn arguments(&mut self) -> *mut RedisModuleCommandArg {
        if self.arguments.len() > 1 { self.arguments.as_mut_ptr() } else { null_mut() }
    }

    fn add(&mut self, token: Option<&str>, name: Option<&str>, flags: u32) {
        let kind = match name {
            None => PURE_TOKEN,
            Some("key") => KEY,
            Some("id" | "limiter" | "parameter" | "payload") => STRING,
            Some("utilization" | "good" | "bad" | "factor") => DOUBLE,
            Some(_) => INTEGER,
        };
        let token_name = token.unwrap_or_default().to_ascii_lowercase();
        let name = self.keep(name.unwrap_or(&token_name));
        let token = token.map_or(null(), |token| self.keep(token));
        self.arguments.push(argument(name, kind, token, flags));
    }

    fn keep(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text).unwrap_or_default();
        let start = text.as_ptr();
        // Moving a CString does not move its bytes.
        self.strings.push(text);
        start
    }
}

fn argument(
    name: *const c_char,
    kind: RedisModuleCommandArgType,
    token: *const c_char,
    flags: u32,
) -> RedisModuleCommandArg {
    RedisModuleCommandArg {
        name,
        type_: kind,
        key_spec_index: if kind == KEY { 0 } else { -1 },
        token,
        summary: null(),
        since: null(),
        flags: flags.cast_signed(),
        deprecated_since: null(),
        subargs: null_mut(),
        display_text: null(),
    }
}
