//! The examples of the documentation, as a reader tries them: the commands of a session of redis-cli, each at its instant.

use crate::memory::{Failure, Memory};
use crate::reply::{Full, Reply};
use crate::trial::START;

/// What stands before a command.
const PROMPT: &str = "127.0.0.1:6379> ";
const AT: &str = " AT ";
/// Unix time in microseconds has this number of digits until the year 2286.
const DIGITS: usize = 16;

/// The commands of an example, each without its `AT`, and with the instant of it, in microseconds of Unix time. A command
/// without `AT` has the instant of the one before.
pub fn calls(example: &str) -> Vec<(u64, String)> {
    let mut at = START;
    let commands = example.lines().filter_map(|line| line.strip_prefix(PROMPT));
    let call = |line: &str| {
        let found = line.match_indices(AT).find_map(|(place, _)| {
            let (digits, rest) = line.get(place + AT.len()..)?.split_at_checked(DIGITS)?;
            Some((place, digits.parse().ok()?, rest))
        });
        let Some((place, given, rest)) = found else { return (at, line.to_owned()) };
        at = given;
        (at, format!("{}{rest}", &line[..place]))
    };
    commands.map(call).collect()
}

/// Whether the commands of an example can be tried without a server. An example that begins with an error shows errors, which
/// are not worth trying.
pub fn can_be_tried(example: &str) -> bool {
    let mut memory = Memory::new();
    let replies: Vec<_> = calls(example).iter().map(|(at, line)| memory.reply_at(*at, line)).collect();
    let needs_server = |reply| matches!(reply, &Err(Failure::NeedsServer(_)));
    replies.first().is_some_and(Result::is_ok) && !replies.iter().any(needs_server)
}

/// A page of the documentation. The fences of the examples that can be tried say so: `redis-cli` becomes `redis-cli,tryable`.
pub fn mark(page: &str) -> String {
    const FENCE: &str = "```redis-cli\n";
    let mut parts = page.split(FENCE);
    let mut marked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let example = part.split("```").next().unwrap_or_default();
        marked += if can_be_tried(example) { "```redis-cli,tryable\n" } else { FENCE };
        marked += part;
    }
    marked
}

/// A reply in words, as the pages have them: `refused, 15 of 16 left, retry in 2 s, reset in 2 s`.
pub fn in_words(full: &Full) -> String {
    let [limited, limit, remaining, retry, reset] = match full.reply {
        Reply::Integer(integer) => return format!("(integer) {integer}"),
        Reply::Chance(limited, chance) => {
            return format!("{}, by a chance of {chance:.3}", if limited { "shed" } else { "not shed" });
        }
        Reply::Five(five) | Reply::Granted(five, _) | Reply::Settled(five, _) => five,
    };
    let mut clauses = vec![if limited == 0 { "admitted".to_owned() } else { "refused".to_owned() }];
    if full.each.is_empty() {
        clauses.push(format!("{remaining} of {limit} left"));
    } else {
        let each: Vec<String> = full.each.iter().map(|[_, _, left, ..]| left.to_string()).collect();
        clauses.push(format!("left of each: {}", each.join(" ")));
    }
    match (limited, retry) {
        (0, ..=0) => {}
        (0, wait) => clauses.push(format!("wait for {}", duration(wait))),
        (_, ..0) => clauses.push("retry never".to_owned()),
        (_, retry) => clauses.push(format!("retry in {}", duration(retry))),
    }
    clauses.push(format!("reset in {}", duration(reset)));
    match full.reply {
        Reply::Granted(_, granted) => clauses.push(format!("granted {granted}")),
        Reply::Settled(_, keys) => clauses.push(format!("settled {keys}")),
        _ => {}
    }
    clauses.join(", ")
}

/// Milliseconds, such as `1 min 20 s`.
fn duration(millis: i64) -> String {
    const UNITS: [(i64, &str); 3] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min")];
    let mut parts = Vec::new();
    let mut rest = millis;
    for (unit, name) in UNITS {
        if rest >= unit {
            parts.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    match (rest / 1000, rest % 1000) {
        (0, 0) if !parts.is_empty() => {}
        (0, millis) => parts.push(format!("{millis} ms")),
        (seconds, 0) => parts.push(format!("{seconds} s")),
        (seconds, millis) => {
            let fraction = format!("{millis:03}");
            parts.push(format!("{seconds}.{} s", fraction.trim_end_matches('0')));
        }
    }
    parts.join(" ")
}
