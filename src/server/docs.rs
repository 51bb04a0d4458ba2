//! A command's syntax, as people write it: for `COMMAND DOCS` and for `RL.HELP`.
//!
//! ```text
//! key utilization [DELAY delay] [TIER tier OF of]
//! key interval [COST cost] [AT at] [FORCE | RESERVE [MAXWAIT maxwait]]
//! key maxlen id {field value} ...
//! ```
//!
//! A small word is an argument; a word in capitals is a token, alone or before its argument. Square brackets are
//! around what may be left out, curly ones only around what belongs together; a bar is between alternatives, and
//! `...` behind what may come again.

use std::ffi::{CString, c_char, c_int};
use std::iter::Peekable;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::vec::IntoIter;

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

/// The syntax as core shows it: what may come again stands there twice.
pub fn shown(syntax: &str) -> String {
    join(&parsed(syntax), " ")
}

/// An argument and what it is made of.
struct Part<'s> {
    token: Option<&'s str>,
    name: Option<&'s str>,
    flags: u32,
    kind: RedisModuleCommandArgType,
    parts: Vec<Part<'s>>,
}

type Words<'s> = Peekable<IntoIter<&'s str>>;

fn parsed(syntax: &str) -> Vec<Part<'_>> {
    let mut rest = syntax;
    let mut words = Vec::new();
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let word = rest.get(start..).unwrap_or_default();
        // A bracket or a bar is a word, wherever it stands.
        let end = match word.find(|c: char| c.is_whitespace() || BRACKETS.contains(&c)) {
            Some(0) => 1,
            end => end.unwrap_or(word.len()),
        };
        let (word, after) = word.split_at(end);
        words.push(word);
        rest = after;
    }
    sequence(&mut words.into_iter().peekable())
}

const BRACKETS: [char; 5] = ['[', ']', '{', '}', '|'];

/// The parts up to the end, a closing bracket or a bar.
fn sequence<'s>(words: &mut Words<'s>) -> Vec<Part<'s>> {
    let mut parts = Vec::new();
    while let Some(word) = words.next_if(|word| !["]", "}", "|"].contains(word)) {
        let mut part = match word {
            "[" => Part { flags: REDISMODULE_CMD_ARG_OPTIONAL, ..alternatives(words) },
            "{" => alternatives(words),
            token if is_token(token) => {
                let name = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
                plain(Some(token), name)
            }
            name => plain(None, Some(name)),
        };
        if words.next_if_eq(&"...").is_some() {
            part.flags |= REDISMODULE_CMD_ARG_MULTIPLE;
        }
        parts.push(part);
    }
    parts
}

fn is_token(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// What stands in brackets, up to the closing one.
fn alternatives<'s>(words: &mut Words<'s>) -> Part<'s> {
    let mut branches = vec![one(BLOCK, sequence(words))];
    while words.next_if_eq(&"|").is_some() {
        branches.push(one(BLOCK, sequence(words)));
    }
    words.next();
    one(ONEOF, branches)
}

/// These parts as one.
fn one(kind: RedisModuleCommandArgType, mut parts: Vec<Part<'_>>) -> Part<'_> {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            Part { token: None, name: None, flags: 0, kind, parts }
        }
    }
}

fn plain<'s>(token: Option<&'s str>, name: Option<&'s str>) -> Part<'s> {
    let kind = match name {
        None => PURE_TOKEN,
        Some("key") => KEY,
        Some("id" | "limiter" | "parameter" | "payload" | "field" | "value" | "element") => STRING,
        Some("utilization" | "good" | "bad" | "factor") => DOUBLE,
        Some(_) => INTEGER,
    };
    Part { token, name, flags: 0, kind, parts: Vec::new() }
}

fn join(parts: &[Part<'_>], between: &str) -> String {
    parts.iter().map(Part::shown).collect::<Vec<_>>().join(between)
}

impl Part<'_> {
    fn shown(&self) -> String {
        let once = match self.kind {
            BLOCK => join(&self.parts, " "),
            ONEOF => join(&self.parts, " | "),
            _ => [self.token, self.name].into_iter().flatten().collect::<Vec<_>>().join(" "),
        };
        let may = |flag| self.flags & flag != 0;
        match (may(REDISMODULE_CMD_ARG_OPTIONAL), may(REDISMODULE_CMD_ARG_MULTIPLE)) {
            (false, false) => once,
            (true, false) => format!("[{once}]"),
            (false, true) => format!("{once} [{once} ...]"),
            (true, true) => format!("[{once} ...]"),
        }
    }

    /// The least number of words.
    fn least(&self) -> c_int {
        let words = self.parts.iter().map(Part::least);
        match self.kind {
            _ if self.flags & REDISMODULE_CMD_ARG_OPTIONAL != 0 => 0,
            BLOCK => words.sum(),
            ONEOF => words.min().unwrap_or(0),
            _ => c_int::from(self.token.is_some()) + c_int::from(self.name.is_some()),
        }
    }

    /// A part of several has the name of its first.
    fn name(&self) -> String {
        match (self.name, self.token, self.parts.first()) {
            (Some(name), _, _) => name.into(),
            (None, Some(token), _) => token.to_ascii_lowercase(),
            (None, None, first) => first.map(Part::name).unwrap_or_default(),
        }
    }
}

/// The arguments of a command, in the server's form.
pub struct Docs {
    /// The strings and lists that the arguments point to.
    strings: Vec<CString>,
    lists: Vec<Vec<RedisModuleCommandArg>>,
    arguments: *mut RedisModuleCommandArg,
    arity: c_int,
}

impl Docs {
    pub fn of(syntax: &str) -> Docs {
        let parts = parsed(syntax);
        let least = 1 + parts.iter().map(Part::least).sum::<c_int>();
        let arity = if parts.iter().all(|part| part.flags == 0) { least } else { -least };
        let mut docs = Docs { strings: Vec::new(), lists: Vec::new(), arguments: null_mut(), arity };
        docs.arguments = docs.list(&parts);
        docs
    }

    /// The arity in the server's sense, which counts the command's name: so many, or if negative at least so many.
    pub fn arity(&self) -> c_int {
        self.arity
    }

    /// The list, closed by an argument without a name; lives as long as this does. Null if there are none.
    pub fn arguments(&mut self) -> *mut RedisModuleCommandArg {
        self.arguments
    }

    fn list(&mut self, parts: &[Part<'_>]) -> *mut RedisModuleCommandArg {
        if parts.is_empty() {
            return null_mut();
        }
        let mut list: Vec<_> = parts.iter().map(|part| self.argument(part)).collect();
        // SAFETY: all fields are numbers and pointers, for which zero is a value; one without a name ends the list.
        list.push(unsafe { zeroed() });
        let start = list.as_mut_ptr();
        // Moving a list or a string does not move what it holds.
        self.lists.push(list);
        start
    }

    fn argument(&mut self, part: &Part<'_>) -> RedisModuleCommandArg {
        RedisModuleCommandArg {
            name: self.keep(&part.name()),
            type_: part.kind,
            key_spec_index: if part.kind == KEY { 0 } else { -1 },
            token: part.token.map_or(null(), |token| self.keep(token)),
            summary: null(),
            since: null(),
            flags: part.flags.cast_signed(),
            deprecated_since: null(),
            subargs: self.list(&part.parts),
            display_text: null(),
        }
    }

    fn keep(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text).unwrap_or_default();
        let start = text.as_ptr();
        self.strings.push(text);
        start
    }
}
