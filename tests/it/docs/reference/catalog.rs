//! What a command says of itself, as the part of its page.

use ratelimit_language::help::Documentation;
use ratelimit_language::vocabulary::Argument;

use super::argument::{self, parts};
use crate::support::fuzz::grammar::{Command, commands};

/// The widest line of a syntax.
const WIDTH: usize = 88;

/// The widest line of prose.
const PROSE: usize = 120;

/// Links to what the pages share.
const FIVE_EXPLAINED: &str = ", which [the reply](README.md#the-reply) explains";
const UNITS: &str = "[durations and numbers](README.md#durations-and-numbers)";
const OPTIONS: &str = "[options that commands share](README.md#options)";

/// The limiter whose options are explained in the index, and not on the pages of the commands that take them too.
const WITH_SHARED_OPTIONS: &str = "TOKENBUCKET";
const FIRST_SHARED_OPTION: &str = "COST";

/// Where the part stands.
pub enum Place<'p> {
    /// It is the only one of its page.
    Alone,
    /// It has a heading, and does not repeat the arguments of these commands above it.
    Below(&'p [Command]),
}

/// The part of the page between the markers. `types` are the forms of the command, and the reply in either protocol.
pub fn page_part(
    command: &'static Documentation,
    types: &[(String, [&str; 2])],
    place: &Place<'_>,
) -> String {
    let usage = command.usage();
    let subcommands = subcommands(command);
    let syntax = format!("```text\n{}\n```\n\n{}\n{subcommands}", wrapped(&usage), properties(command));
    let reply = command.reply.iter().map(|sentence| format!("- {sentence}\n")).collect::<Vec<_>>().concat();
    let is_five = command.reply[0].starts_with("Five integers");
    let reply = format!("{reply}{}", protocols(types, if is_five { FIVE_EXPLAINED } else { "" }));
    let above: &[Command] = if let Place::Below(above) = place { above } else { &[] };
    let arguments = arguments(command, above);
    match place {
        Place::Alone => {
            format!("## Syntax\n\n{syntax}\n## Arguments\n\n{arguments}\n## Reply\n\n{reply}")
        }
        Place::Below(_) => format!(
            "## {}\n\n{}.\n\n{syntax}\n{arguments}\n**Reply**\n\n{reply}",
            command.full_name(),
            command.summary
        ),
    }
}

/// The table of the options that many commands share.
pub fn shared_options() -> String {
    format!("{HEAD}{}", shared_rows().concat())
}

const HEAD: &str = "| argument | meaning | unit | range | default |\n|---|---|---|---|---|\n";

fn shared_rows() -> Vec<String> {
    let is_it = |command: &Command| command.documentation.name == WITH_SHARED_OPTIONS;
    let all = rows(commands().into_iter().find(is_it).expect("the limiter").documentation);
    let first = format!("| `{FIRST_SHARED_OPTION} ");
    all.into_iter().map(|(_, row)| row).skip_while(|row| !row.starts_with(&first)).collect()
}

/// The arguments of a command, each with its row.
fn rows(command: &'static Documentation) -> Vec<(&'static Argument, String)> {
    let usage = command.usage();
    command.arguments.iter().map(|argument| (argument, argument::row(argument, &usage))).collect()
}

/// A table of the command's own arguments, and a paragraph on those that stand elsewhere.
fn arguments(command: &'static Documentation, above: &[Command]) -> String {
    let shared = shared_rows();
    let (shared, own): (Vec<_>, Vec<_>) =
        rows(command).into_iter().partition(|(_, row)| shared.contains(row));
    let stands_above = |row: &String| {
        above.iter().any(|command| rows(command.documentation).iter().any(|(_, other)| other == row))
    };
    let (repeated, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, row)| stands_above(row));
    let table: String = own.iter().map(|(_, row)| row.as_str()).collect();
    let has_units = ["| duration |", "| integer |"].iter().any(|unit| table.contains(unit));
    let table = (!table.is_empty()).then(|| format!("{HEAD}{table}"));
    let names = |arguments: &[(&'static Argument, String)]| {
        let names = arguments.iter().map(|(argument, _)| format!("`{}`", argument.name));
        listed(&names.collect::<Vec<_>>())
    };
    let options: Vec<_> = shared.into_iter().filter(|(argument, _)| argument.is_option()).collect();
    let verb = |count: usize| if count == 1 { "is" } else { "are" };
    let is_first = above.is_empty();
    let repeated = (!repeated.is_empty())
        .then(|| format!("{} {} explained above", names(&repeated), verb(repeated.len())));
    let shared = (!options.is_empty()).then(|| match options.len() {
        1 => format!("{} is one of the {OPTIONS}", names(&options)),
        _ => format!("{} are {OPTIONS}", names(&options)),
    });
    let units = (is_first && has_units).then(|| format!("{UNITS} has the units"));
    let clauses: Vec<_> = [repeated, shared, units].into_iter().flatten().collect();
    let elsewhere = (!clauses.is_empty()).then(|| filled(&(clauses.join(", and ") + ".")) + "\n");
    [table, elsewhere].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Words with commas, and an "and" before the last one.
fn listed(words: &[String]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        words => words.concat(),
    }
}

/// Complexity, flags and ACL categories, without those of each command of the module.
fn properties(command: &Documentation) -> String {
    let flags: Vec<_> = flags(command.flags).into_iter().filter(|flag| *flag != "module").collect();
    let categories: Vec<_> = command.categories().into_iter().map(|name| format!("@{name}")).collect();
    let complexity =
        ["The ", "As "].into_iter().find(|word| command.complexity.starts_with(word)).map_or_else(
            || command.complexity.to_owned(),
            |word| command.complexity.replacen(word, &word.to_lowercase(), 1),
        );
    // A complexity with cases of its own is a sentence of its own.
    let flags_begin = if complexity.contains(';') { ". Flags" } else { "; flags" };
    filled(&format!(
        "Complexity: {complexity}{flags_begin}: {}; ACL categories: {}.",
        flags.join(", "),
        categories.join(", ")
    ))
}

/// What the protocols have: a sentence for one form, a table for several.
fn protocols(types: &[(String, [&str; 2])], explained: &str) -> String {
    match types {
        [(_, [two, three])] if two == three => {
            format!("- In RESP2 and RESP3 it is {}{explained}.\n", with_article(two))
        }
        [(_, [two, three])] => {
            format!("- In RESP2 it is {}, and in RESP3 {}.\n", with_article(two), with_article(three))
        }
        forms => {
            let rows = forms.iter().map(|(words, [two, three])| format!("| `{words}` | {two} | {three} |\n"));
            format!("\n| call | RESP2 | RESP3 |\n|---|---|---|\n{}", rows.collect::<Vec<_>>().concat())
        }
    }
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Prose in lines of the width of a page.
fn filled(prose: &str) -> String {
    let mut lines = vec![String::new()];
    for word in prose.split(' ') {
        let line = lines.last_mut().expect("one at least");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= PROSE {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines.join("\n")
}

/// The flags of the subcommands, for a command that has some.
fn subcommands(command: &Documentation) -> String {
    let documented = command.subcommands().filter(|sub| sub.parts.is_some());
    let rows = documented.map(|sub| format!("| `{}` | {} |\n", sub.name, flags(sub.flags).join(", ")));
    let rows = rows.collect::<Vec<_>>().concat();
    if rows.is_empty() { rows } else { format!("\n| subcommand | flags |\n|---|---|\n{rows}") }
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
