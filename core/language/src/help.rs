//! What a command says of itself, and the text of `RL.HELP` made of it.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::keys::Keys;
use crate::syntax::{self, Part};
use crate::vocabulary::{Argument, Values};

/// The prefix of the module's own commands.
pub const OWN_PREFIX: &str = "RL.";
const INDENT: &str = "    ";

/// The documentation of a command.
#[derive(Clone, Copy)]
pub struct Documentation {
    /// Another module may hold a name with another prefix; this module then leaves the command out.
    pub prefix: &'static str,
    /// The name without the prefix.
    pub name: &'static str,
    /// In the notation of `syntax.rs`.
    pub syntax: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    /// The arguments and options, in the order of the syntax.
    pub arguments: &'static [Argument],
    /// The sentences that explain the reply.
    pub reply: &'static [&'static str],
    /// A complete call that runs as it is; empty if there is none.
    pub example: &'static str,
    /// As `RedisModule_CreateCommand` takes them. A command is `fast` if every call is O(1), with any options.
    pub flags: &'static str,
    pub keys: Keys,
    /// Whether equal calls on equal keys can get different replies: those that read the clock or random numbers.
    pub varies: bool,
}

impl Documentation {
    /// Whether the name has the module's own prefix, which no other module may hold.
    pub fn is_own(&self) -> bool {
        self.prefix == OWN_PREFIX
    }

    pub fn full_name(&self) -> String {
        format!("{}{}", self.prefix, self.name)
    }

    /// Whether it is the command of this full name, in upper or lower case.
    pub fn is_named(&self, name: &[u8]) -> bool {
        name.split_at_checked(self.prefix.len()).is_some_and(|(prefix, rest)| {
            prefix.eq_ignore_ascii_case(self.prefix.as_bytes())
                && rest.eq_ignore_ascii_case(self.name.as_bytes())
        })
    }

    /// The arguments and options, and how they stand together.
    pub fn parts(&self) -> Vec<Part> {
        syntax::parse(self.syntax, self.arguments)
    }

    /// The arity as the server defines it: minus the least number of words that it asks for. If the call has any, the command itself
    /// says which is missing.
    pub fn arity(&self) -> i32 {
        if self.parts().iter().all(|part| part.is_optional) { -1 } else { -2 }
    }

    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|word| word == flag)
    }

    /// The ACL categories of the server that the command belongs to.
    pub fn categories(&self) -> Vec<&'static str> {
        let is_admin = self.has_flag("admin");
        let mut categories = if is_admin {
            vec!["admin"]
        } else if self.has_flag("readonly") {
            vec!["read"]
        } else {
            vec!["write"]
        };
        categories.extend(["fast", "blocking"].into_iter().filter(|flag| self.has_flag(flag)));
        // `RL.APPLY` can write any value, as RESTORE can.
        if is_admin || self.keys == Keys::Pairs {
            categories.push("dangerous");
        }
        categories
    }

    /// The name and the arguments, as `redis-cli` shows them.
    pub fn usage(&self) -> String {
        format!("{} {}", self.full_name(), syntax::shown(&self.parts())).trim_end().into()
    }

    /// The usage, and the summary below it.
    pub fn heading(&self) -> [String; 2] {
        [self.usage(), format!("{INDENT}{}.", self.summary)]
    }

    /// Explains the command: its arguments, its reply and an example.
    pub fn explained(&self) -> Vec<String> {
        let mut lines = self.heading().to_vec();
        if !self.arguments.is_empty() {
            lines.push("Arguments:".into());
            let width = self.arguments.iter().map(|argument| argument.name.len()).max().unwrap_or(0);
            lines.extend(self.arguments.iter().map(|argument| line(argument, width)));
            if self.arguments.iter().any(|argument| argument.values.is_duration()) {
                lines.push(format!("{INDENT}A duration has a unit: ms, s, m, h, d or w, as in 90s and 1d."));
            }
        }
        lines.push("Reply:".into());
        lines.extend(self.reply.iter().map(|sentence| format!("{INDENT}{sentence}")));
        if !self.example.is_empty() {
            lines.extend(["Example:".into(), format!("{INDENT}{}", self.example)]);
        }
        lines
    }
}

/// A subcommand of a command.
pub struct Subcommand {
    pub name: &'static str,
    /// As those of a command.
    pub flags: &'static str,
    /// `None` if it is not documented.
    pub parts: Option<Vec<Part>>,
}

impl Subcommand {
    /// As that of a command.
    pub const ARITY: i32 = -2;
}

fn line(argument: &Argument, width: usize) -> String {
    let Argument { name, values, meaning, .. } = argument;
    match values {
        Values::Flag | Values::Word => format!("{INDENT}{name:width$}  {meaning}"),
        _ => format!("{INDENT}{name:width$}  {meaning} ({values})"),
    }
}
