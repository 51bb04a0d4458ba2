//! The demo of `make demo` and `make page`: its figures, its charts, and the memory that stands in for a server.

mod charts;
mod examples;
mod lessons;
mod memory;
mod scenes;
mod time_series;

use ratelimit_demo_drive::{record, told, trials};

/// A reply of the page's memory, as a client of a server reads it.
fn as_read(reply: &serde_json::Value) -> redis::Value {
    match reply {
        serde_json::Value::Array(elements) => redis::Value::Array(elements.iter().map(as_read).collect()),
        number => match number.as_i64() {
            Some(integer) => redis::Value::Int(integer),
            None => redis::Value::BulkString(number.as_f64().unwrap().to_string().into()),
        },
    }
}
