//! `RL.TOP`: the keys that are refused most, on one node.

mod access;
mod bound;
mod counted;
mod local;
mod settings;
mod several_keys;
mod waits;
mod windows;

use redis::{Connection, Value};

use crate::support::kinds::flood;
use crate::support::{call, simple};

/// A window of a day, which hardly ever ends within a test.
const ON: [&str; 4] = ["--ratelimit.top", "100", "--ratelimit.top-window", "86400000"];

/// A key, its database, its count, and by how much the count may be too high.
type Entry = (String, i64, i64, i64);

fn entry(key: &str, database: i64, count: i64, error: i64) -> Entry {
    (key.to_string(), database, count, error)
}

/// The reply to `RL.TOP` with these options.
fn top(con: &mut Connection, options: &str) -> Vec<Entry> {
    let words: Vec<&str> = std::iter::once("RL.TOP").chain(options.split_whitespace()).collect();
    entries(&call(con, &words).unwrap())
}

fn entries(reply: &Value) -> Vec<Entry> {
    let Value::Array(entries) = reply else { panic!("{}", simple(reply)) };
    let entry = |entry: &Value| match entry {
        Value::Array(fields) => match fields.as_slice() {
            [Value::BulkString(key), Value::Int(database), Value::Int(count), Value::Int(error)] => {
                (String::from_utf8_lossy(key).into_owned(), *database, *count, *error)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    entries.iter().map(entry).collect()
}

/// The keys and counts in the order of the keys.
fn counts(con: &mut Connection) -> Vec<(String, i64)> {
    let mut counts: Vec<_> =
        top(con, "COUNT 10000").into_iter().map(|(key, _, count, _)| (key, count)).collect();
    counts.sort();
    counts
}

/// Calls that are refused whatever the key holds, and make none: a cost above the limit.
fn refuse(con: &mut Connection, key: &str, times: usize) {
    flood(con, (0..times).map(|_| format!("RL.GCRA {key} 0 1 1h COST 2")));
}
