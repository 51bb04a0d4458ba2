//! Calls and their replies, in the forms that tests compare: integers, text, and the exact line of an error.

use redis::{Connection, ConnectionLike, RedisError, RedisResult, Value};

/// One field of a section of `INFO`, if it is there.
pub fn info(con: &mut Connection, section: &str, field: &str) -> Option<String> {
    let reply = call(con, &["INFO", section]).unwrap_or_else(|error| panic!("INFO {section}: {error}"));
    let start = format!("{field}:");
    simple(&reply).lines().find_map(|line| line.strip_prefix(&start)).map(str::to_string)
}

pub fn call(con: &mut Connection, words: &[&str]) -> RedisResult<Value> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    call_bytes(con, &words)
}

/// Errors inside an array (as `EXEC` replies) stay where they are; only the reply itself becomes `Err`.
pub fn call_bytes(con: &mut Connection, words: &[&[u8]]) -> RedisResult<Value> {
    let mut cmd = redis::Cmd::new();
    for word in words {
        cmd.arg(*word);
    }
    match con.req_command(&cmd)? {
        Value::ServerError(error) => Err(error.into()),
        reply => Ok(reply),
    }
}

/// Calls a line of words, as typed into redis-cli, that replies an integer or an array of integers.
pub fn ints(con: &mut Connection, line: &str) -> Vec<i64> {
    integers(line, &expect_reply(con, line))
}

/// The integers of the reply to a line.
pub fn integers(line: &str, reply: &Value) -> Vec<i64> {
    match reply {
        Value::Int(number) => vec![*number],
        Value::Array(elements) => elements
            .iter()
            .map(|element| match element {
                Value::Int(number) => *number,
                other => panic!("{line}: {} is no integer", simple(other)),
            })
            .collect(),
        other => panic!("{line}: {} is no array of integers", simple(other)),
    }
}

/// The error that the line is answered with, exactly as the server sends it.
pub fn error(con: &mut Connection, line: &str) -> String {
    match call(con, &split(line)) {
        Ok(reply) => panic!("{line}: no error but {}", simple(&reply)),
        Err(error) => error_line(&error),
    }
}

/// Any other reply: `OK`, `(nil)`, `12`, `text`, `[1, 2, text]`.
pub fn text(con: &mut Connection, line: &str) -> String {
    simple(&expect_reply(con, line))
}

fn expect_reply(con: &mut Connection, line: &str) -> Value {
    call(con, &split(line)).unwrap_or_else(|error| panic!("{line}: {}", error_line(&error)))
}

fn split(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The `redis` crate cuts an error at its first space, into code (`ERR`, `WRONGTYPE`) and detail.
pub fn error_line(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_string(),
        (None, _) => panic!("not an error reply: {error}"),
    }
}

pub fn simple(reply: &Value) -> String {
    match reply {
        Value::Nil => "(nil)".to_string(),
        Value::Okay => "OK".to_string(),
        Value::Int(number) => number.to_string(),
        Value::SimpleString(text) => text.clone(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::ServerError(error) => format!("{} {}", error.code(), error.details().unwrap_or_default()),
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(simple).collect();
            format!("[{}]", elements.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// A reply in which the digits of a number with a fraction are as few as it takes.
pub fn shortest(reply: Value) -> Value {
    match reply {
        Value::BulkString(bytes) if bytes.contains(&b'.') => {
            let number = str::from_utf8(&bytes).ok().and_then(|text| text.parse::<f64>().ok());
            Value::BulkString(number.map_or(bytes, |number| number.to_string().into()))
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(shortest).collect()),
        other => other,
    }
}

/// The five integers for all, and those of each pair.
pub fn multi(con: &mut Connection, line: &str) -> (Vec<i64>, Vec<Vec<i64>>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let five = |value: &Value| match value {
        Value::Array(five) => {
            five.iter().map(|n| if let Value::Int(n) = n { *n } else { panic!("{line}: {n:?}") }).collect()
        }
        other => panic!("{line}: {other:?}"),
    };
    match call(con, &words).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Value::Array(reply) => match reply.as_slice() {
            [all, Value::Array(each)] => (five(all), each.iter().map(five).collect()),
            other => panic!("{line}: {other:?}"),
        },
        other => panic!("{line}: {other:?}"),
    }
}

/// Whether a call was not admitted: by the first of all integers, or by nil from a stream or list.
pub fn refused(reply: &Value) -> bool {
    match reply {
        Value::Array(elements) => match elements.as_slice() {
            [Value::Int(limited), ..] => *limited == 1,
            [all, ..] => refused(all),
            [] => false,
        },
        reply => *reply == Value::Nil,
    }
}

/// What `DUMP` tells of a key.
pub fn dump(con: &mut Connection, key: &str) -> Value {
    call(con, &["DUMP", key]).unwrap()
}

/// The bytes of a key as `DUMP` tells them.
pub fn dump_bytes(con: &mut Connection, key: &str) -> Vec<u8> {
    match dump(con, key) {
        Value::BulkString(bytes) => bytes,
        other => panic!("DUMP {key}: {other:?}"),
    }
}

/// The elements of an array that `text` has returned, in order.
pub fn sorted_elements(list: &str) -> Vec<String> {
    let mut elements: Vec<String> = list.trim_matches(['[', ']']).split(", ").map(str::to_string).collect();
    elements.sort_unstable();
    elements
}

/// The names of the module's commands, in order, without subcommands.
pub fn command_names(con: &mut Connection) -> Vec<String> {
    let mut names = sorted_elements(&text(con, "COMMAND LIST FILTERBY MODULE ratelimit"));
    names.retain(|name| !name.contains('|'));
    names
}

/// The server's clock, in whole seconds.
pub fn clock(con: &mut Connection) -> u64 {
    text(con, "TIME").trim_matches(['[', ']']).split(", ").next().unwrap().parse().unwrap()
}
