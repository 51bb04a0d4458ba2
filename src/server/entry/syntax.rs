//! A command's syntax, parsed from the notation of its `SYNTAX`, and shown as `redis-cli` shows it.
//!
//! ```text
//! key utilization [DELAY delay] [TIER tier OF tiers]
//! key interval [COST cost] [AT at] [FORCE | RESERVE [MAXWAIT maxwait]]
//! key maxlen id {field value} ...
//! ```
//!
//! A word in lower case is an argument. A word in upper case is a token, alone or before its argument. Square brackets
//! enclose an optional part, and curly brackets group a part. A bar separates alternatives, and `...` follows a part
//! that may be repeated. Shown, a repeated part is written twice: `key maxlen id field value [field value ...]`.

use std::ffi::c_int;
use std::iter::Peekable;
use std::vec::IntoIter;

use redis_module::raw::{
    REDISMODULE_CMD_ARG_MULTIPLE as REPEATED, REDISMODULE_CMD_ARG_OPTIONAL as OPTIONAL,
    RedisModuleCommandArgType, RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK as BLOCK,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER as INTEGER,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY as KEY,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF as ONEOF,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN as PURE_TOKEN,
};

/// An argument, or a group of them.
pub struct Part<'s> {
    pub token: Option<&'s str>,
    name: Option<&'s str>,
    pub flags: u32,
    pub kind: RedisModuleCommandArgType,
    /// The parts of a group: all of them for a `BLOCK`, one of them for a `ONEOF`.
    pub parts: Vec<Part<'s>>,
}

type Words<'s> = Peekable<IntoIter<&'s str>>;

const BRACKETS: [char; 5] = ['[', ']', '{', '}', '|'];

/// Shows a syntax.
pub fn shown(syntax: &str) -> String {
    join(&parse(syntax), " ")
}

pub fn parse(syntax: &str) -> Vec<Part<'_>> {
    let mut rest = syntax;
    let mut words = Vec::new();
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let word = rest.get(start..).unwrap_or_default();
        // A bracket or a bar is a word of its own, even without spaces around it.
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

/// Parses parts up to the end, a closing bracket or a bar.
fn sequence<'s>(words: &mut Words<'s>) -> Vec<Part<'s>> {
    let mut parts = Vec::new();
    while let Some(word) = words.next_if(|word| !["]", "}", "|"].contains(word)) {
        let mut part = match word {
            "[" => Part { flags: OPTIONAL, ..alternatives(words) },
            "{" => alternatives(words),
            token if token.starts_with(|c: char| c.is_ascii_uppercase()) => {
                let name = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
                Part::argument(Some(token), name)
            }
            name => Part::argument(None, Some(name)),
        };
        if words.next_if_eq(&"...").is_some() {
            part.flags |= REPEATED;
        }
        parts.push(part);
    }
    parts
}

/// Parses the content of brackets, and the closing bracket.
fn alternatives<'s>(words: &mut Words<'s>) -> Part<'s> {
    let mut branches = vec![Part::group(BLOCK, sequence(words))];
    while words.next_if_eq(&"|").is_some() {
        branches.push(Part::group(BLOCK, sequence(words)));
    }
    words.next();
    Part::group(ONEOF, branches)
}

fn join(parts: &[Part<'_>], separator: &str) -> String {
    parts.iter().map(Part::shown).collect::<Vec<_>>().join(separator)
}

impl<'s> Part<'s> {
    fn argument(token: Option<&'s str>, name: Option<&'s str>) -> Part<'s> {
        let kind = match name {
            None => PURE_TOKEN,
            Some("key") => KEY,
            // `docs.rs` knows the types of the others.
            Some(_) => INTEGER,
        };
        Part { token, name, flags: 0, kind, parts: Vec::new() }
    }

    /// Groups parts. A single part needs no group.
    fn group(kind: RedisModuleCommandArgType, mut parts: Vec<Part<'s>>) -> Part<'s> {
        match parts.pop() {
            Some(single) if parts.is_empty() => single,
            last => {
                parts.extend(last);
                Part { token: None, name: None, flags: 0, kind, parts }
            }
        }
    }

    fn shown(&self) -> String {
        let once = match self.kind {
            BLOCK => join(&self.parts, " "),
            ONEOF => join(&self.parts, " | "),
            _ => [self.token, self.name].into_iter().flatten().collect::<Vec<_>>().join(" "),
        };
        match (self.flags & OPTIONAL != 0, self.flags & REPEATED != 0) {
            (false, false) => once,
            (true, false) => format!("[{once}]"),
            (false, true) => format!("{once} [{once} ...]"),
            (true, true) => format!("[{once} ...]"),
        }
    }

    /// The least number of words that a call has for this part.
    pub fn least_words(&self) -> c_int {
        let words = self.parts.iter().map(Part::least_words);
        match self.kind {
            _ if self.flags & OPTIONAL != 0 => 0,
            BLOCK => words.sum(),
            ONEOF => words.min().unwrap_or(0),
            _ => c_int::from(self.token.is_some()) + c_int::from(self.name.is_some()),
        }
    }

    /// Whether every call has the same number of words for this part.
    pub fn is_fixed(&self) -> bool {
        let branch_differs = || self.parts.iter().any(|part| part.least_words() != self.least_words());
        self.flags == 0 && self.parts.iter().all(Part::is_fixed) && !(self.kind == ONEOF && branch_differs())
    }

    /// The name that the server shows. A group has the name of its first part.
    pub fn name(&self) -> String {
        match (self.name, self.token, self.parts.first()) {
            (Some(name), _, _) => name.into(),
            (None, Some(token), _) => token.to_ascii_lowercase(),
            (None, None, first) => first.map(Part::name).unwrap_or_default(),
        }
    }

    /// The name that errors use: the token of an option, or the name of another argument.
    pub fn argument_name(&self) -> Option<&'s str> {
        self.token.or(self.name)
    }

    pub fn is_key(&self) -> bool {
        self.kind == KEY
    }
}
