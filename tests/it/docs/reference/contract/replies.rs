//! The kinds of replies. They stand in a table; a limiter's own command that does not replies a decision.

use ratelimit_language::find;
use redis::Value;

use crate::support::simple;

/// The kind of each reply, and the calls that have it.
const KINDS: [(&str, &[&str]); 18] = [
    ("decision", &["RL.PEEK", "RL.REFUND", "RL.SKETCH"]),
    // With FENCE a sixth integer is its token.
    ("lease", &["RL.CONCURRENT"]),
    ("multi", &["RL.MULTI", "RL.MULTIPEEK", "RL.MULTIREFUND", "RL.MULTISETTLE"]),
    ("ask", &["RL.ASK", "RL.ASKPEEK", "RL.ASKREFUND"]),
    ("settled", &["RL.SETTLE"]),
    ("asksettled", &["RL.ASKSETTLE"]),
    ("throttle", &["RL.THROTTLE", "CL.THROTTLE"]),
    ("bool", &["RL.RELEASE", "RL.RENEW", "RL.POLICY DEL"]),
    ("int", &["RL.MULTIRELEASE", "RL.POLICY SET", "RL.POLICY LOAD", "RL.POLICY SAVE"]),
    ("length", &["RL.LPUSH", "RL.RPUSH"]),
    ("id", &["RL.XADD"]),
    ("shed", &["RL.SHED"]),
    ("top", &["RL.TOP"]),
    ("info", &["RL.INFO"]),
    ("map", &["RL.POLICY GET", "RL.POLICY STATS", "RL.POLICY TRY"]),
    ("policies", &["RL.POLICY LIST"]),
    ("help", &["RL.EXPLAIN", "RL.HELP", "RL.POLICY HELP"]),
    ("ok", &["RL.APPLY", "RL.TOP RESET"]),
];

/// The kind of reply of a command, or of a command and a subcommand.
pub fn kind(words: &str) -> &'static str {
    let row = KINDS.iter().find(|(_, calls)| calls.contains(&words));
    let is_limiter = || words.strip_prefix("RL.").is_some_and(|name| find(name.as_bytes()).is_some());
    match row {
        Some((kind, _)) => kind,
        None if is_limiter() => "decision",
        None => panic!("{words} has no kind of reply: add it to {}", file!()),
    }
}

/// What a reply of this kind is in RESP2 and in RESP3. The first words are its type.
pub fn types(kind: &str) -> [&'static str; 2] {
    const FIELDS: [&str; 2] = ["array of names and values", "map of names to values"];
    match kind {
        "decision" | "lease" | "throttle" => ["array of five integers"; 2],
        "settled" | "ask" | "asksettled" => ["array of six integers"; 2],
        "multi" => ["array: one of five integers, then an array of such arrays"; 2],
        "bool" | "int" | "length" => ["integer"; 2],
        "id" => ["bulk string"; 2],
        "shed" => ["array of an integer and a bulk string", "array of an integer and a double"],
        "top" => ["array of arrays: a bulk string and three integers"; 2],
        "info" | "map" | "policies" => FIELDS,
        "help" => ["array of bulk strings"; 2],
        "ok" => ["simple string"; 2],
        _ => panic!("{kind} has no types: add them to {}", file!()),
    }
}

/// The first words of `types`, of a reply that came.
pub fn outer_type(reply: &Value) -> &'static str {
    match reply {
        Value::Array(_) => "array",
        Value::Map(_) => "map",
        Value::Int(_) => "integer",
        Value::BulkString(_) => "bulk string",
        Value::Okay | Value::SimpleString(_) => "simple string",
        _ => panic!("a reply of a new type: {reply:?}"),
    }
}

pub fn has_shape(kind: &str, reply: &Value) -> bool {
    let elements = if let Value::Array(elements) = reply { &elements[..] } else { &[] };
    let are_ints = |reply: &Value, number: usize| match reply {
        Value::Array(ints) => ints.len() == number && ints.iter().all(|int| matches!(int, Value::Int(_))),
        _ => false,
    };
    let is_text = |value: &Value| matches!(value, Value::BulkString(_) | Value::SimpleString(_));
    let is_named = |field: &[Value]| field.len() == 2 && is_text(&field[0]);
    match kind {
        "decision" | "lease" | "throttle" => are_ints(reply, 5),
        "settled" | "ask" | "asksettled" => are_ints(reply, 6),
        "multi" => match elements {
            [all, Value::Array(each)] | [all, Value::Array(each), Value::Int(_)] => {
                are_ints(all, 5) && !each.is_empty() && each.iter().all(|each| are_ints(each, 5))
            }
            _ => false,
        },
        "bool" => matches!(reply, Value::Int(0 | 1)),
        "int" | "length" => matches!(reply, Value::Int(_)),
        "id" => is_text(reply),
        "shed" => matches!(elements, [Value::Int(0 | 1), chance] if simple(chance).parse::<f64>().is_ok()),
        "top" => {
            let is_entry = |entry: &Value| {
                matches!(entry, Value::Array(entry) if matches!(&entry[..],
                    [key, Value::Int(_), Value::Int(_), Value::Int(_)] if is_text(key)))
            };
            !elements.is_empty() && elements.iter().all(is_entry)
        }
        "info" | "map" => !elements.is_empty() && elements.chunks(2).all(is_named),
        "policies" => elements.chunks(2).all(|field| is_named(field) && matches!(field[1], Value::Int(_))),
        "help" => !elements.is_empty() && elements.iter().all(is_text),
        "ok" => *reply == Value::Okay,
        _ => false,
    }
}
