//! How sessions are read.

use std::collections::BTreeMap;

use super::line::{Expected, Line, Session, Step, Words};
use crate::T0;

/// The names of an `each`, and the values that they have together.
struct Each {
    names: Vec<String>,
    values: Vec<Vec<String>>,
}

/// Reads a file.
pub(super) fn file(text: &str) -> Result<Vec<Session>, String> {
    let mut known = BTreeMap::new();
    let mut sessions = Vec::new();
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines().map(str::trim)).collect();
    for passage in lines.chunk_by(|_, (_, next)| !next.starts_with("## ")) {
        let mut each = Vec::new();
        let mut body = Vec::new();
        let mut title = "";
        for (number, line) in passage {
            let of_line = |why: String| format!("line {number}: {why}");
            if let Some(text) = line.strip_prefix("## ") {
                title = text;
            } else if let Some(definition) = line.strip_prefix("let ") {
                let (name, values) = definition.split_once(" = ").ok_or_else(|| of_line("no =".into()))?;
                known.insert(name.to_string(), values.to_string());
            } else if let Some(definition) = line.strip_prefix("each ") {
                each.push(Each::read(definition, &known).map_err(of_line)?);
            } else if !line.is_empty() && !line.starts_with('#') {
                body.push((*number, *line));
            }
        }
        if title.is_empty() && !body.is_empty() {
            return Err("lines before the first title".into());
        }
        for chosen in choices(&each) {
            if !body.is_empty() {
                sessions.push(session(title, &body, &chosen)?);
            }
        }
    }
    Ok(sessions)
}

impl Each {
    fn read(definition: &str, known: &BTreeMap<String, String>) -> Result<Each, String> {
        let (names, values) = definition.split_once(" = ").ok_or("no =")?;
        let names: Vec<String> = names.split(' ').map(str::to_string).collect();
        let values = known.get(values).map_or(values, String::as_str);
        let parts = |value: &str| value.split(" ; ").map(|part| part.trim().to_string()).collect::<Vec<_>>();
        let values: Vec<_> = values.split(" | ").map(parts).collect();
        match values.iter().find(|value| value.len() != names.len()) {
            Some(value) => Err(format!("{} names, but {value:?}", names.len())),
            None => Ok(Each { names, values }),
        }
    }
}

/// Each combination of values, as pairs of a name and its value.
fn choices(each: &[Each]) -> Vec<Vec<(&str, &str)>> {
    let mut all = vec![Vec::new()];
    for Each { names, values } in each {
        let longer = |chosen: &Vec<(_, _)>| {
            let chosen = chosen.clone();
            values.iter().map(move |value| {
                let pairs = names.iter().map(String::as_str).zip(value.iter().map(String::as_str));
                chosen.iter().copied().chain(pairs).collect()
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

fn session(title: &str, body: &[(usize, &str)], chosen: &[(&str, &str)]) -> Result<Session, String> {
    // A value may have names in it, which come after it.
    let filled = |line: &str| {
        chosen
            .iter()
            .fold(line.to_string(), |line, (name, value)| line.replace(&format!("{{{name}}}"), value))
    };
    let read = |(number, line): &(usize, &str)| {
        let line = filled(line);
        let step = step(&line).map_err(|why| format!("line {number}: {line}: {why}"))?;
        Ok::<_, String>(Line { number: *number, step })
    };
    let lines = body.iter().map(read).collect::<Result<_, _>>()?;
    let values: Vec<&str> = chosen.iter().map(|(_, value)| *value).collect();
    let with = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
    Ok(Session { title: format!("{title}{with}"), lines })
}

fn step(line: &str) -> Result<Step, String> {
    if let Some((call, reply)) = line.split_once(" => ") {
        let reply = reply.trim().to_string();
        return Ok(if call.trim().contains(' ') || is_command(call) {
            Step::Call(words(call)?, Expected::Reply(reply))
        } else {
            Step::Ended(call.trim().into(), reply)
        });
    }
    if let Some((call, other)) = line.split_once(" == ") {
        return Ok(Step::Call(words(call)?, Expected::ReplyOf(words(other)?)));
    }
    if let Some((caller, call)) = line.split_once(": ") {
        return Ok(Step::Waits(caller.into(), words(call)?));
    }
    let parts: Vec<&str> = line.split_whitespace().collect();
    Ok(match parts[..] {
        [caller, "hangs", "up"] => Step::HangsUp(caller.into()),
        ["pass", span] => Step::Pass(micros(span)?),
        ["set", name, value] => Step::Set(name.into(), number(value)?),
        ["same", a, b] => Step::Same(a.into(), b.into()),
        ["apart", a, b] => Step::Apart(a.into(), b.into()),
        ["expires", key, "never"] => Step::Expires(key.into(), None),
        ["expires", key, span] => Step::Expires(key.into(), Some(micros(span)?.div_ceil(1000))),
        ["count", name, value] => Step::Count(name.into(), number(value)?),
        _ => return Err("neither a call with its reply nor a known word".into()),
    })
}

fn is_command(call: &str) -> bool {
    call.trim().chars().all(|letter| letter.is_ascii_uppercase() || letter == '.')
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

/// The microseconds of `1.5s`, `20ms`, `7us`, `2m`, `1h` or `3d`.
fn micros(span: &str) -> Result<u64, String> {
    let (sign, span) = span.strip_prefix('-').map_or((1, span), |span| (-1, span));
    let end = span.find(|letter: char| letter.is_ascii_alphabetic()).ok_or("no unit")?;
    let (count, unit) = span.split_at(end);
    let micros: f64 = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        "d" => 86_400e6,
        _ => return Err(format!("{unit:?} is no unit")),
    };
    let count: f64 = count.parse().map_err(|_| format!("{count:?} is no number"))?;
    #[allow(clippy::cast_possible_truncation, reason = "a span of a session has few digits")]
    let whole = (count * micros).round() as i64;
    Ok((sign * whole).cast_unsigned())
}

fn words(call: &str) -> Result<Words, String> {
    call.split_whitespace().map(word).collect::<Result<Vec<_>, _>>().map(|words| words.concat())
}

/// The words for which one stands.
fn word(text: &str) -> Result<Words, String> {
    if text == "\"\"" {
        return Ok(vec![Vec::new()]);
    }
    if let Some(span) = text.strip_prefix('@') {
        let at = T0.as_micros().wrapping_add(micros(span)?);
        return Ok(vec![b"AT".to_vec(), at.to_string().into_bytes()]);
    }
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '{']) {
        let (before, found) = rest.split_at(at);
        bytes.extend(before.as_bytes());
        let (part, after) = special(found)?;
        bytes.extend(part);
        rest = after;
    }
    bytes.extend(rest.as_bytes());
    Ok(vec![bytes])
}

/// A byte `\xff`, a repetition `{x*300}`, or the character itself; and what follows.
fn special(text: &str) -> Result<(Vec<u8>, &str), String> {
    if let Some(digits) = text.strip_prefix("\\x").and_then(|rest| rest.get(..2)) {
        let byte = u8::from_str_radix(digits, 16).map_err(|_| format!("{digits:?} is no byte"))?;
        return Ok((vec![byte], text.split_at(4).1));
    }
    let repeated = text.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    if let Some((inner, after)) = repeated
        && let Some((part, times)) = inner.split_once('*')
        && let Ok(times) = times.parse()
    {
        return Ok((part.repeat(times).into_bytes(), after));
    }
    let (character, after) = text.split_at(1);
    Ok((character.into(), after))
}
