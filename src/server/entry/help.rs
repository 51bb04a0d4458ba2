//! The text of `RL.HELP`, from the constants of each command.

use std::sync::OnceLock;

use ratelimit_language::vocabulary::{Argument, Values};

use super::register::Entry;
use super::syntax;

/// All commands, in groups.
static COMMANDS: OnceLock<&'static [&'static [Entry]]> = OnceLock::new();
const INDENT: &str = "    ";

pub fn prepare(commands: &'static [&'static [Entry]]) {
    // The cell is empty: a process that loads the module again loads another copy of the library.
    _ = COMMANDS.set(commands);
}

fn commands() -> impl Iterator<Item = &'static Entry> {
    COMMANDS.get().into_iter().copied().flatten().copied().flatten()
}

/// For each command its syntax, and its summary below it.
pub fn list() -> Vec<String> {
    commands().flat_map(heading).collect()
}

/// Explains a command: its arguments, its reply and an example. `name` is its name, with or without its prefix, in
/// upper or lower case. `None` if there is no such command.
pub fn explain(name: &[u8]) -> Option<Vec<String>> {
    let named = |command: &&Entry| command.full_name().as_bytes().eq_ignore_ascii_case(name);
    let command = commands().find(named).or_else(|| {
        commands().find(|command| command.is_own() && command.name.as_bytes().eq_ignore_ascii_case(name))
    })?;
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
fn heading(command: &Entry) -> [String; 2] {
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
