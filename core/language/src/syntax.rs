//! A command's syntax, parsed from the notation of its documentation, and shown as `redis-cli` shows it.
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

use crate::argument::{Argument, Values};

/// An argument, or a group of them.
pub struct Part {
    pub token: Option<&'static str>,
    name: Option<&'static str>,
    /// What explains the argument. A group has none.
    pub argument: Option<&'static Argument>,
    pub is_optional: bool,
    pub is_repeated: bool,
    pub kind: Kind,
    /// The parts of a group.
    pub parts: Vec<Part>,
}

/// What a part is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A token without an argument.
    Token,
    Key,
    Integer,
    /// A decimal number.
    Real,
    /// Any other argument.
    Text,
    /// All parts of the group.
    All,
    /// One part of the group.
    OneOf,
}

const BRACKETS: [char; 5] = ['[', ']', '{', '}', '|'];

/// Shows a syntax.
pub(crate) fn shown(parts: &[Part]) -> String {
    join(parts, " ")
}

/// Shows a syntax without its options: `key max_burst count period [options]`. An only option is shown.
pub(crate) fn brief(parts: &[Part]) -> String {
    let options = parts.iter().filter(|part| part.is_optional).count();
    let mut shown = Vec::new();
    for part in parts {
        match &part.parts[..] {
            _ if part.is_optional && options > 1 => {
                if !shown.iter().any(|shown| shown == "[options]") {
                    shown.push("[options]".into());
                }
            }
            [first, ..] if part.is_repeated && part.kind == Kind::All => {
                let again = first.token.unwrap_or_default();
                let again = if again.is_empty() {
                    format!("{} ...", join(&part.parts, " "))
                } else {
                    format!("{again} ...")
                };
                shown.push(format!("{} [{again}]", brief(&part.parts)));
            }
            _ => shown.push(part.shown()),
        }
    }
    shown.join(" ")
}

/// Parses a syntax. `arguments` explain its arguments.
pub(crate) fn parse(syntax: &'static str, arguments: &'static [Argument]) -> Vec<Part> {
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
    Parser { words: words.into_iter().peekable(), arguments }.sequence()
}

struct Parser {
    words: Peekable<IntoIter<&'static str>>,
    arguments: &'static [Argument],
}

impl Parser {
    /// Parses parts up to the end, a closing bracket or a bar.
    fn sequence(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        while let Some(word) = self.words.next_if(|word| !["]", "}", "|"].contains(word)) {
            let mut part = match word {
                "[" => Part { is_optional: true, ..self.alternatives() },
                "{" => self.alternatives(),
                token if token.starts_with(|c: char| c.is_ascii_uppercase()) => {
                    let name = self.words.next_if(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
                    self.argument(Some(token), name)
                }
                name => self.argument(None, Some(name)),
            };
            if self.words.next_if_eq(&"...").is_some() {
                part.is_repeated = true;
            }
            parts.push(part);
        }
        parts
    }

    /// Parses the content of brackets, and the closing bracket.
    fn alternatives(&mut self) -> Part {
        let mut branches = vec![Part::group(Kind::All, self.sequence())];
        while self.words.next_if_eq(&"|").is_some() {
            branches.push(Part::group(Kind::All, self.sequence()));
        }
        self.words.next();
        Part::group(Kind::OneOf, branches)
    }

    fn argument(&self, token: Option<&'static str>, name: Option<&'static str>) -> Part {
        // An option is explained under its token.
        let argument = self.arguments.iter().find(|argument| Some(argument.name) == token.or(name));
        let kind = match argument.map(|argument| argument.values) {
            _ if name.is_none() => Kind::Token,
            _ if name == Some("key") => Kind::Key,
            Some(
                Values::Number { .. }
                | Values::Setting(_)
                | Values::UpTo { .. }
                | Values::Seconds
                | Values::Instant,
            ) => Kind::Integer,
            Some(Values::Real { .. }) => Kind::Real,
            _ => Kind::Text,
        };
        Part { token, name, argument, is_optional: false, is_repeated: false, kind, parts: Vec::new() }
    }
}

fn join(parts: &[Part], separator: &str) -> String {
    parts.iter().map(Part::shown).collect::<Vec<_>>().join(separator)
}

impl Part {
    /// Groups parts. A single part needs no group.
    fn group(kind: Kind, mut parts: Vec<Part>) -> Part {
        match parts.pop() {
            Some(single) if parts.is_empty() => single,
            last => {
                parts.extend(last);
                Part {
                    token: None,
                    name: None,
                    argument: None,
                    is_optional: false,
                    is_repeated: false,
                    kind,
                    parts,
                }
            }
        }
    }

    /// The parts behind a token with which this one begins; `None` if it begins otherwise.
    pub(crate) fn behind(mut self, token: &str) -> Option<Vec<Part>> {
        match self.kind {
            Kind::All if !self.parts.is_empty() => {
                let rest = self.parts.split_off(1);
                Some(self.parts.pop()?.behind(token)?.into_iter().chain(rest).collect())
            }
            Kind::Token => (self.token == Some(token)).then(Vec::new),
            _ if self.token == Some(token) => Some(vec![Part { token: None, ..self }]),
            _ => None,
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

    /// The name of its argument; `None` for a group and for a token alone.
    pub(crate) fn argument_name(&self) -> Option<&'static str> {
        self.name
    }

    /// The values of its argument.
    pub(crate) fn values(&self) -> Values {
        self.argument.map_or(Values::Word, |argument| argument.values)
    }

    /// The name that the server shows. A group has the name of its first part.
    pub fn name(&self) -> String {
        match (self.name, self.token, self.parts.first()) {
            (Some(name), _, _) => name.to_string(),
            (None, Some(token), _) => token.to_ascii_lowercase(),
            (None, None, first) => first.map(Part::name).unwrap_or_default(),
        }
    }

    /// What the argument means; `None` for a group.
    pub fn meaning(&self) -> Option<&'static str> {
        self.argument.map(|argument| argument.meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts with a group in round brackets, `?` behind what is optional and `*` behind what is repeated.
    fn tree(parts: &[Part], separator: &str) -> String {
        let shown = |part: &Part| {
            let once = match part.kind {
                Kind::All => format!("({})", tree(&part.parts, " ")),
                Kind::OneOf => format!("({})", tree(&part.parts, " | ")),
                _ => [part.token, part.name].into_iter().flatten().collect::<Vec<_>>().join("="),
            };
            let mark = if part.is_optional { "?" } else { "" };
            format!("{once}{mark}{}", if part.is_repeated { "*" } else { "" })
        };
        parts.iter().map(shown).collect::<Vec<_>>().join(separator)
    }

    #[test]
    fn a_syntax_is_a_tree_of_parts() {
        for (syntax, expected) in [
            ("key id ttl [COST cost] [FULL]", "key id ttl COST=cost? FULL?"),
            ("utilization [TIER tier OF tiers]", "utilization (TIER=tier OF=tiers)?"),
            ("[FORCE | RESERVE [MAXWAIT maxwait]]", "(FORCE | (RESERVE MAXWAIT=maxwait?))?"),
            ("numkeys key ... {field value} ...", "numkeys key* (field value)*"),
            ("{SET name | LIST}", "(SET=name | LIST)"),
        ] {
            assert_eq!(tree(&parse(syntax, &[]), " "), expected);
        }
    }

    #[test]
    fn a_key_is_known_by_its_name_and_an_option_by_its_token() {
        let parts = parse("key id [COST cost] {ON | OFF}", &[]);
        let kinds: Vec<Kind> = parts.iter().map(|part| part.kind).collect();
        assert_eq!(kinds, [Kind::Key, Kind::Text, Kind::Text, Kind::OneOf]);
        let behind = |syntax, token| {
            let [part] = &mut parse(syntax, &[])[..] else { panic!("one part") };
            std::mem::replace(part, Part::group(Kind::All, Vec::new()))
                .behind(token)
                .map(|rest| tree(&rest, " "))
        };
        for (syntax, rest) in [("{SET}", ""), ("{SET name}", "name"), ("{SET name id}", "name id")] {
            assert_eq!(behind(syntax, "SET").as_deref(), Some(rest));
            assert_eq!(behind(syntax, "DEL"), None, "{syntax}");
        }
    }
}
