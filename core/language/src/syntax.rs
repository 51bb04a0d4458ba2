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

use alloc::string::{String, ToString};
use alloc::vec::{IntoIter, Vec};
use alloc::{format, vec};
use core::iter::Peekable;

/// An argument, or a group of them.
pub struct Part<'s> {
    pub token: Option<&'s str>,
    name: Option<&'s str>,
    pub is_optional: bool,
    pub is_repeated: bool,
    pub kind: Kind,
    /// The parts of a group.
    pub parts: Vec<Part<'s>>,
}

/// What a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A token without an argument.
    Token,
    Key,
    /// Any other argument.
    Value,
    /// All parts of the group.
    All,
    /// One part of the group.
    OneOf,
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
            "[" => Part { is_optional: true, ..alternatives(words) },
            "{" => alternatives(words),
            token if token.starts_with(|c: char| c.is_ascii_uppercase()) => {
                let name = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
                Part::argument(Some(token), name)
            }
            name => Part::argument(None, Some(name)),
        };
        if words.next_if_eq(&"...").is_some() {
            part.is_repeated = true;
        }
        parts.push(part);
    }
    parts
}

/// Parses the content of brackets, and the closing bracket.
fn alternatives<'s>(words: &mut Words<'s>) -> Part<'s> {
    let mut branches = vec![Part::group(Kind::All, sequence(words))];
    while words.next_if_eq(&"|").is_some() {
        branches.push(Part::group(Kind::All, sequence(words)));
    }
    words.next();
    Part::group(Kind::OneOf, branches)
}

fn join(parts: &[Part<'_>], separator: &str) -> String {
    parts.iter().map(Part::shown).collect::<Vec<_>>().join(separator)
}

impl<'s> Part<'s> {
    fn argument(token: Option<&'s str>, name: Option<&'s str>) -> Part<'s> {
        let kind = match name {
            None => Kind::Token,
            Some("key") => Kind::Key,
            Some(_) => Kind::Value,
        };
        Part { token, name, is_optional: false, is_repeated: false, kind, parts: Vec::new() }
    }

    /// Groups parts. A single part needs no group.
    fn group(kind: Kind, mut parts: Vec<Part<'s>>) -> Part<'s> {
        match parts.pop() {
            Some(single) if parts.is_empty() => single,
            last => {
                parts.extend(last);
                Part { token: None, name: None, is_optional: false, is_repeated: false, kind, parts }
            }
        }
    }

    fn shown(&self) -> String {
        let once = match self.kind {
            Kind::All => join(&self.parts, " "),
            Kind::OneOf => join(&self.parts, " | "),
            _ => [self.token, self.name].into_iter().flatten().collect::<Vec<_>>().join(" "),
        };
        match (self.is_optional, self.is_repeated) {
            (false, false) => once,
            (true, false) => format!("[{once}]"),
            (false, true) => format!("{once} [{once} ...]"),
            (true, true) => format!("[{once} ...]"),
        }
    }

    /// The least number of words that a call has for this part.
    pub fn least_words(&self) -> usize {
        let words = self.parts.iter().map(Part::least_words);
        match self.kind {
            _ if self.is_optional => 0,
            Kind::All => words.sum(),
            Kind::OneOf => words.min().unwrap_or(0),
            _ => usize::from(self.token.is_some()) + usize::from(self.name.is_some()),
        }
    }

    /// Whether every call has the same number of words for this part.
    pub fn is_fixed(&self) -> bool {
        let branch_differs = || self.parts.iter().any(|part| part.least_words() != self.least_words());
        let is_once = !self.is_optional && !self.is_repeated;
        is_once && self.parts.iter().all(Part::is_fixed) && !(self.kind == Kind::OneOf && branch_differs())
    }

    /// The name that the server shows. A group has the name of its first part.
    pub fn name(&self) -> String {
        match (self.name, self.token, self.parts.first()) {
            (Some(name), _, _) => name.to_string(),
            (None, Some(token), _) => token.to_ascii_lowercase(),
            (None, None, first) => first.map(Part::name).unwrap_or_default(),
        }
    }

    /// The name that errors use: the token of an option, or the name of another argument.
    pub fn argument_name(&self) -> Option<&'s str> {
        self.token.or(self.name)
    }

    pub fn is_key(&self) -> bool {
        self.kind == Kind::Key
    }
}
