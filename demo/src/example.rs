//! The examples of the documentation, as a reader tries them: the commands of a session of redis-cli, each at its instant.

use std::collections::BTreeSet;

use crate::memory::{Failure, Memory};
use crate::reply::{Full, Reply};
use crate::trial::START;

/// What stands before a command.
const PROMPT: &str = "127.0.0.1:6379> ";
const AT: &str = " AT ";
/// Unix time in microseconds has this number of digits until the year 2286.
const DIGITS: usize = 16;
/// The server's clock, if calls have `AT`.
const CLOCK: u64 = 1_800_000_000_000_000;

/// A command, and its instant in microseconds of Unix time.
pub type Call = (u64, String);

/// The commands of the examples before, and those of an example. Each is without its `AT`, and has the instant of it. A command
/// without `AT` has the instant of the one before. The first is at the server's clock, which is far from any `AT` before.
pub fn calls(before: &[String], example: &str) -> (Vec<Call>, Vec<Call>) {
    let mut clock = START;
    let mut of = |text: &str| -> Vec<Call> {
        let mut at = clock;
        let call = |line: &str| {
            let found = line.match_indices(AT).find_map(|(place, _)| {
                let (digits, rest) = line.get(place + AT.len()..)?.split_at_checked(DIGITS)?;
                Some((place, digits.parse().ok()?, rest))
            });
            let Some((place, given, rest)) = found else { return (at, line.to_owned()) };
            (at, clock) = (given, CLOCK);
            (at, format!("{}{rest}", &line[..place]))
        };
        text.lines().filter_map(|line| line.strip_prefix(PROMPT)).map(call).collect()
    };
    (before.iter().flat_map(|text| of(text)).collect(), of(example))
}

/// What has come of the examples of a page so far.
#[derive(Default)]
pub struct Page {
    /// Those that can be tried.
    before: Vec<String>,
    /// The keys of the others, which only a server knows.
    unknown: BTreeSet<String>,
}

impl Page {
    /// The replies to the commands of the next example. `None` if it cannot be tried without a server, or begins with an error:
    /// errors alone are not worth trying.
    pub fn next(&mut self, example: &str) -> Option<Vec<Result<Full, Failure>>> {
        let mut memory = Memory::new();
        let mut reply = |(at, line): &Call| memory.reply_at(*at, line);
        let (before, calls) = calls(&self.before, example);
        for call in &before {
            _ = reply(call);
        }
        let replies: Vec<_> = calls.iter().map(reply).collect();
        let needs_server = |reply| matches!(reply, &Err(Failure::NeedsServer(_)));
        let mut words = calls.iter().flat_map(|(_, line)| line.split(' '));
        if words.any(|word| self.unknown.contains(word)) || replies.iter().any(needs_server) {
            self.unknown.extend(calls.iter().flat_map(|(_, line)| keys(line)).map(str::to_owned));
            return None;
        }
        replies.first()?.as_ref().ok()?;
        self.before.push(example.to_owned());
        Some(replies)
    }
}

/// The keys of a call: the word after its name, or as many as that word says. No key is a number.
fn keys(line: &str) -> impl Iterator<Item = &str> {
    let mut words = line.split(' ').skip(1).peekable();
    let number = words.next_if(|word| word.parse::<usize>().is_ok());
    let many = line.to_ascii_uppercase().starts_with("RL.MULTI");
    let count = match number.map(str::parse) {
        None => 1,
        Some(Ok(count)) if many => count,
        Some(_) => 0,
    };
    words.take(count)
}

/// A page of the documentation. The fences of the examples that can be tried say so: `redis-cli` becomes `redis-cli,tryable`.
pub fn mark(text: &str) -> String {
    const FENCE: &str = "```redis-cli\n";
    let mut parts = text.split(FENCE);
    let mut marked = parts.next().unwrap_or_default().to_owned();
    let mut page = Page::default();
    for part in parts {
        let example = part.split("```").next().unwrap_or_default();
        marked += if page.next(example).is_some() { "```redis-cli,tryable\n" } else { FENCE };
        marked += part;
    }
    marked
}

/// A reply in words, as the pages have them: `refused, 15 of 16 left, retry in 2 s, reset in 2 s`.
pub fn in_words(full: &Full) -> String {
    let Some([limited, limit, remaining, retry, reset]) = full.reply.five() else {
        return match full.reply {
            Reply::Chance(true, chance) => format!("shed, by a chance of {chance:.3}"),
            Reply::Chance(false, chance) => format!("not shed, by a chance of {chance:.3}"),
            _ => format!("(integer) {}", full.to_json()),
        };
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
pub fn duration(millis: i64) -> String {
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
        (0, millis @ 1..) => parts.push(format!("{millis} ms")),
        (seconds, 0) => parts.push(format!("{seconds} s")),
        (seconds, millis) => {
            let fraction = format!("{millis:03}");
            parts.push(format!("{seconds}.{} s", fraction.trim_end_matches('0')));
        }
    }
    parts.join(" ")
}
