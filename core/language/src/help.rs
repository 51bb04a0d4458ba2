//! What a command says of itself, and the text of `RL.HELP` made of it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::keys::Keys;
use crate::syntax;
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
}

/// For each command its syntax, and its summary below it.
pub fn list<'c>(commands: impl Iterator<Item = &'c Documentation>) -> Vec<String> {
    commands.flat_map(heading).collect()
}

/// Explains a command: its arguments, its reply and an example. `name` is its name, with or without its prefix, in
/// upper or lower case. `None` if there is no such command.
pub fn explain<'c>(
    mut commands: impl Iterator<Item = &'c Documentation> + Clone,
    name: &[u8],
) -> Option<Vec<String>> {
    let named = |command: &&Documentation| command.full_name().as_bytes().eq_ignore_ascii_case(name);
    let own_named =
        |command: &&Documentation| command.is_own() && command.name.as_bytes().eq_ignore_ascii_case(name);
    let command = commands.clone().find(named).or_else(|| commands.find(own_named))?;
    let mut lines = heading(command).to_vec();
    if !command.arguments.is_empty() {
        lines.push("Arguments:".into());
        let width = command.arguments.iter().map(|argument| argument.name.len()).max().unwrap_or(0);
        lines.extend(command.arguments.iter().map(|argument| line(argument, width)));
        if command.arguments.iter().any(|argument| argument.values.is_duration()) {
            lines.push(format!("{INDENT}A duration has a unit: ms, s, m, h, d or w, as in 90s and 1d."));
        }
    }
    lines.push("Reply:".into());
    lines.extend(command.reply.iter().map(|sentence| format!("{INDENT}{sentence}")));
    if !command.example.is_empty() {
        lines.extend(["Example:".into(), format!("{INDENT}{}", command.example)]);
    }
    Some(lines)
}

/// The syntax, and the summary below it.
fn heading(command: &Documentation) -> [String; 2] {
    let syntax = syntax::shown(command.syntax);
    [format!("{} {syntax}", command.full_name()).trim_end().into(), format!("{INDENT}{}.", command.summary)]
}

fn line(argument: &Argument, width: usize) -> String {
    let Argument { name, values, meaning, .. } = argument;
    match values {
        Values::Flag | Values::Word => format!("{INDENT}{name:width$}  {meaning}"),
        _ => format!("{INDENT}{name:width$}  {meaning} ({values})"),
    }
}
