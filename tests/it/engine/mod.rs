//! The engine in memory answers every command as a server does. So what sessions, pages, the laws and the fuzzer find of it holds for
//! the module.

mod histories;
mod worlds;

use ratelimit_engine::memory::{Called, Element, Memory};
use ratelimit_engine::reply::Reply;
use redis::{Connection, Value};

use crate::support::{call, error_line};

/// A reply; `Err` is its error.
pub type Replied = Result<Value, String>;

fn on_memory(memory: &Memory, line: &str) -> Called {
    memory.call(&line.split_whitespace().map(str::as_bytes).collect::<Vec<_>>())
}

fn on_server(con: &mut Connection, line: &str) -> Replied {
    call(con, &line.split(' ').collect::<Vec<_>>()).map_err(|error| without_arguments(&error_line(&error)))
}

/// The error of an unknown command. Redis 7 announces the arguments in it also if there are none.
fn without_arguments(error: &str) -> String {
    error.strip_suffix(", with args beginning with: ").unwrap_or(error).into()
}

/// A reply of memory, as a client of a server reads it.
pub fn as_read(reply: &Reply) -> Replied {
    match Element::from(reply) {
        Element::Error(error) => Err(without_arguments(&error.to_string())),
        element => Ok(value(element)),
    }
}

fn value(element: Element) -> Value {
    match element {
        Element::Array(elements) => Value::Array(elements.into_iter().map(value).collect()),
        Element::Integer(integer) => Value::Int(integer),
        Element::Real(number) => Value::BulkString(number.to_string().into()),
        Element::Bytes(bytes) => Value::BulkString(bytes),
        Element::Null => Value::Nil,
        Element::Ok => Value::Okay,
        Element::Error(error) => panic!("an error within a reply: {error}"),
    }
}

/// A reply in which a duration that the server's own clock has shortened by less than a hundredth is `whole` again.
fn restored(reply: Value, whole: i64) -> Value {
    match reply {
        Value::Int(integer) if (whole - whole / 100..whole).contains(&integer) => Value::Int(whole),
        Value::Array(elements) => {
            Value::Array(elements.into_iter().map(|element| restored(element, whole)).collect())
        }
        other => other,
    }
}
