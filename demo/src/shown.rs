//! Replies as a reader of the documentation sees them.

use ratelimit_core::Answer;
use ratelimit_engine::memory::Element;
use ratelimit_engine::reply::Reply;

/// The reply to a call: of a limiter in words, any other as redis-cli prints it.
pub fn shown(line: &str, reply: &Reply) -> String {
    match (five(reply), reply) {
        (Some(five), _) => in_words(line, five, reply),
        (_, Reply::Chance(limited, chance)) => {
            format!("{}, by a chance of {chance:.3}", if *limited { "shed" } else { "not shed" })
        }
        _ => printed(&reply.into()).join("\n"),
    }
}

/// The five integers of a limiter's reply, in milliseconds.
pub fn five(reply: &Reply) -> Option<[i64; 5]> {
    match reply {
        Reply::Answer(answer)
        | Reply::Six(answer, _)
        | Reply::SixAndEach(answer, ..)
        | Reply::Answers(answer, _)
        | Reply::Settled(answer, ..) => Some(answer.integers()),
        Reply::Cell(answer) => {
            let [limited, limit, remaining, retry, reset] = answer.integers_of_cell();
            Some([limited, limit, remaining, if retry < 0 { retry } else { retry * 1000 }, reset * 1000])
        }
        _ => None,
    }
}

/// As the pages have it: `refused, 15 of 16 left, retry in 2 s, reset in 2 s`.
fn in_words(line: &str, [limited, limit, remaining, retry, reset]: [i64; 5], reply: &Reply) -> String {
    let mut clauses = vec![if limited == 0 { "admitted".to_owned() } else { "refused".to_owned() }];
    match reply {
        Reply::SixAndEach(.., each) | Reply::Answers(_, each) | Reply::Settled(_, each, _) => {
            let left = |answer: &Answer| format!(" {}", answer.gauge.remaining);
            clauses.push(format!("left of each:{}", each.iter().map(left).collect::<String>()));
        }
        _ => clauses.push(format!("{remaining} of {limit} left")),
    }
    match (limited, retry) {
        (0, ..=0) => {}
        (0, wait) => clauses.push(format!("wait for {}", duration(wait))),
        (_, ..0) => clauses.push("retry never".to_owned()),
        (_, retry) => clauses.push(format!("retry in {}", duration(retry))),
    }
    clauses.push(format!("reset in {}", duration(reset)));
    if let Reply::Six(_, sixth) | Reply::SixAndEach(_, sixth, _) | Reply::Settled(_, _, sixth) = reply {
        clauses.push(format!("{} {sixth}", sixth_of(line)));
    }
    clauses.join(", ")
}

/// What the sixth integer of a reply is.
fn sixth_of(line: &str) -> &str {
    let name = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
    match &*name {
        "RL.ASK" | "RL.ASKPEEK" | "RL.ASKREFUND" => "by limit",
        "RL.ASKSETTLE" | "RL.MULTISETTLE" | "RL.SETTLE" => "settled",
        _ => "granted",
    }
}

/// A reply as redis-cli prints it.
pub fn printed(element: &Element) -> Vec<String> {
    match element {
        Element::Array(elements) if elements.is_empty() => vec!["(empty array)".into()],
        Element::Array(elements) => {
            let width = elements.len().to_string().len();
            let indented = |(i, element)| {
                let lines = printed(element).into_iter().enumerate();
                lines.map(move |(line, text)| match line {
                    0 => format!("{:>width$}) {text}", i + 1),
                    _ => format!("{:>width$}  {text}", ""),
                })
            };
            elements.iter().enumerate().flat_map(indented).collect()
        }
        Element::Integer(integer) => vec![format!("(integer) {integer}")],
        Element::Real(number) => vec![format!("\"{}\"", real(*number))],
        Element::Bytes(bytes) => vec![format!("\"{}\"", String::from_utf8_lossy(bytes))],
        Element::Null => vec!["(nil)".into()],
        Element::Ok => vec!["OK".into()],
        Element::Error(error) => vec![format!("(error) {error}")],
    }
}

/// A number as the server writes it: very small and very large ones have an exponent.
fn real(number: f64) -> String {
    let text = format!("{number:e}");
    match text.split_once('e').map(|(digits, exponent)| (digits, exponent.parse())) {
        Some((digits, Ok(exponent @ ..-4))) => format!("{digits}e-{:02}", -exponent),
        Some((digits, Ok(exponent @ 17..))) => format!("{digits}e+{exponent}"),
        _ => number.to_string(),
    }
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
