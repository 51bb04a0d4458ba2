//! `RL.EXPLAIN`: a verdict in words, and a line for each limit; and who holds leases, `RL.INFO key LEASES`.

mod access;
mod holders;
mod lines;
mod questions;

use redis::{Connection, Value};

use crate::support::{call, simple};

/// The texts that `RL.EXPLAIN` replies to a call.
fn explain(con: &mut Connection, line: &str) -> Vec<String> {
    let words: Vec<&str> = ["RL.EXPLAIN"].into_iter().chain(line.split_whitespace()).collect();
    texts(&call(con, &words).unwrap_or_else(|error| panic!("{line}: {error}")))
}

fn texts(reply: &Value) -> Vec<String> {
    let Value::Array(lines) = reply else { panic!("no array: {reply:?}") };
    lines.iter().map(simple).collect()
}
