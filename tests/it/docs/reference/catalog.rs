//! What a command says of itself, as the part of its page.

use ratelimit_language::help::Documentation;
use ratelimit_language::vocabulary::Argument;

use super::argument::{self, parts};

/// The widest line of a syntax.
const WIDTH: usize = 88;

/// Links to what the pages share.
const FIVE_EXPLAINED: &str = "[The reply](README.md#the-reply) explains each integer.";
const UNITS: &str = "See [durations and numbers](README.md#durations-and-numbers) for units.";
const UNITS_AND_OPTIONS: &str = "See [durations and numbers](README.md#durations-and-numbers) for units, and \
                                 [options](README.md#options) for those that commands share.";

/// The part of the page between the markers. `types` has a row for each form: its reply in either protocol.
pub fn page_part(command: &Documentation, types: &str) -> String {
    let usage = command.usage();
    let (syntax, complexity, flags) = (wrapped(&usage), command.complexity, flags(command.flags).join(", "));
    let categories = command.categories().into_iter().chain(["ratelimit"]).map(|name| format!("@{name}"));
    let categories = categories.collect::<Vec<_>>().join(" ");
    let rows: String = command.arguments.iter().map(|argument| argument::row(argument, &usage)).collect();
    let explained = command.reply[0].starts_with("Five integers").then_some(FIVE_EXPLAINED);
    let sentences = command.reply.iter().copied().chain(explained);
    let reply = sentences.map(|sentence| format!("- {sentence}\n")).collect::<Vec<_>>().concat();
    let subcommands = subcommands(command);
    let units = if command.arguments.iter().any(Argument::is_option) { UNITS_AND_OPTIONS } else { UNITS };
    format!(
        "## Syntax\n\n```text\n{syntax}\n```\n\n\
         | since | complexity | flags | ACL categories |\n|---|---|---|---|\n\
         | 0.1.0 | {complexity} | {flags} | {categories} |\n\n{subcommands}\
         ## Arguments\n\n| argument | meaning | unit | range | default |\n|---|---|---|---|---|\n{rows}\n{units}\n\n\
         ## Reply\n\n{reply}\n| call | RESP2 | RESP3 |\n|---|---|---|\n{types}"
    )
}

/// The flags of the subcommands, for a command that has some.
fn subcommands(command: &Documentation) -> String {
    let documented = command.subcommands().filter(|sub| sub.parts.is_some());
    let rows = documented.map(|sub| format!("| `{}` | {} |\n", sub.name, flags(sub.flags).join(", ")));
    let rows = rows.collect::<Vec<_>>().concat();
    if rows.is_empty() { rows } else { format!("| subcommand | flags |\n|---|---|\n{rows}\n") }
}

/// The flags as `COMMAND INFO` has them: in the server's order and words.
pub fn flags(flags: &str) -> Vec<&'static str> {
    let words = [
        ("write", "write"),
        ("readonly", "readonly"),
        ("deny-oom", "denyoom"),
        ("", "module"),
        ("admin", "admin"),
        ("deny-script", "noscript"),
        ("blocking", "blocking"),
        ("allow-loading", "loading"),
        ("allow-stale", "stale"),
        ("fast", "fast"),
        ("getkeys-api", "movablekeys"),
    ];
    let has =
        words.into_iter().filter(|(own, _)| own.is_empty() || flags.split(' ').any(|flag| flag == *own));
    has.map(|(_, word)| word).collect()
}

/// The syntax in lines that fit a page. A line ends before an option, a limit or an alternative.
fn wrapped(syntax: &str) -> String {
    let mut lines = vec![String::new()];
    for part in parts(syntax) {
        let line = lines.last_mut().expect("one at least");
        let is_alternative = part.starts_with('|');
        if line.is_empty() {
            line.push_str(&part);
        } else if !is_alternative && line.len() + 1 + part.len() <= WIDTH {
            line.push(' ');
            line.push_str(&part);
        } else {
            lines.push(format!("  {part}"));
        }
    }
    lines.join("\n")
}
