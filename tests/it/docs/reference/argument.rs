//! An argument of a command, as a row of a page. `syntax` is that of the command, as it is shown.

use ratelimit_core::MAX_COUNT;
use ratelimit_language::vocabulary::{Argument, Values};

pub fn row(argument: &Argument, syntax: &str) -> String {
    let value = value_name(argument, syntax);
    let (meaning, default) = stated_default(argument.meaning)
        .unwrap_or_else(|| (argument.meaning.into(), without_value(argument, syntax).into()));
    let (unit, range) = unit_and_range(argument, value.is_some());
    let shown = [Some(argument.name), value].into_iter().flatten().collect::<Vec<_>>().join(" ");
    format!("| `{shown}` | {meaning} | {unit} | {range} | {default} |\n")
}

/// The name of an option's value, as the syntax has it.
fn value_name<'s>(argument: &Argument, syntax: &'s str) -> Option<&'s str> {
    let bare = |word: &'s str| word.trim_matches(['[', ']']);
    let mut words = syntax.split(' ').skip_while(|word| bare(word) != argument.name);
    let (own, next) = (words.next()?, words.next()?);
    let has_value = argument.is_option() && !own.ends_with(']') && next.starts_with(char::is_lowercase);
    has_value.then(|| bare(next))
}

/// Takes `…, 1 by default` or `UTC (the default)` out of a meaning.
pub fn stated_default(meaning: &str) -> Option<(String, String)> {
    if let Some((before, after)) = meaning.split_once(" by default") {
        let at = before.rfind([',', ';']).expect("a default is a clause of its own");
        return Some((format!("{}{after}", &before[..at]), before[at + 1..].trim().into()));
    }
    let (before, after) = meaning.split_once(" (the default)")?;
    Some((format!("{before}{after}"), before.rsplit(' ').next().unwrap_or_default().into()))
}

/// What the column of defaults has for an argument without a default value.
fn without_value(argument: &Argument, syntax: &str) -> &'static str {
    let has_alternatives = parts(syntax).iter().any(|part| part.starts_with('|'));
    match (is_optional(argument.name, syntax), argument.is_option()) {
        (true, true) if value_name(argument, syntax).is_none() => "off",
        (true, true) => "none",
        (true, false) => "",
        (false, _) if has_alternatives => "",
        (false, _) => "required",
    }
}

fn unit_and_range(argument: &Argument, has_value: bool) -> (&'static str, String) {
    match argument.values {
        Values::Duration { min: 0 } => ("duration", "0 to 100 years".into()),
        Values::Duration { min } => ("duration", format!("{min} ms to 100 years")),
        Values::DurationFrom(least) => ("duration", format!("`{least}` to 100 years")),
        Values::Seconds => ("s", "1 s to 100 years".into()),
        Values::Instant => ("µs of Unix time", "the years 2001 to 9999".into()),
        Values::Real { min, max } => ("decimal number", format!("{min} to {max}")),
        Values::Number { min, max: MAX_COUNT } => ("integer", format!("{min} to 2^53−1")),
        Values::Number { min, max } => ("integer", format!("{min} to {max}")),
        Values::Setting(most) => ("integer", format!("1 to `{most}`")),
        Values::UpTo { min, argument } => ("integer", format!("{min} to `{argument}`")),
        Values::Id => ("bytes", argument.values.to_string().replace(" bytes", "")),
        Values::Word if argument.name == "key" => ("key", String::new()),
        Values::Word if has_value || !argument.is_option() => ("string", String::new()),
        Values::Word | Values::Flag => ("flag", String::new()),
    }
}

/// Whether the argument stands in brackets where the syntax has it first.
fn is_optional(name: &str, syntax: &str) -> bool {
    let mut depth = 0;
    for word in syntax.split(' ') {
        depth += word.matches('[').count();
        if word.trim_matches(['[', ']']) == name {
            return depth > 0;
        }
        depth -= word.matches(']').count();
    }
    false
}

/// The parts of a syntax between which a line may end.
pub fn parts(syntax: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut depth = 0;
    for word in syntax.split(' ') {
        let is_start = word.starts_with(['[', '|']) || word == "LIMIT";
        match parts.last_mut() {
            Some(part) if depth > 0 || !is_start => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.into()),
        }
        depth += word.matches('[').count();
        depth -= word.matches(']').count();
    }
    parts
}
