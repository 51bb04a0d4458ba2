//! The longest single call: a log and a lease table of 100,000 entries, all of which ended at once.
//!
//! The server's own slow log tells how long each call took, without the network. A call that drops what has ended must
//! not take longer the more has ended.

use redis::Value;

use super::load::pipeline;
use super::support::{Server, call, text};
use super::{Result, Selection, grouped};

const ENTRIES: u32 = 100_000;
/// Calls after the end of all: enough to drop everything.
const CALLS: u32 = 10_000;
/// 2023.
const START: u64 = 1_700_002_800_000_000;

struct Row {
    name: &'static str,
    /// `#` is a number of its own, `@` an instant.
    fill: &'static str,
    after: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        name: "RL.SLIDINGLOG",
        fill: "RL.SLIDINGLOG key 200000 10000 AT @",
        after: "RL.SLIDINGLOG key 200000 10000 AT @",
    },
    Row {
        name: "RL.SLIDINGLOG refunded at once",
        fill: "RL.SLIDINGLOG key 200000 10000 AT @",
        after: "RL.REFUND key SLIDINGLOG 200000 10000 COST 100000 AT @",
    },
    Row {
        name: "RL.CONCURRENT",
        fill: "RL.CONCURRENT key 200000 10000 lease:# AT @",
        after: "RL.CONCURRENT key 200000 10000 other:# AT @",
    },
    Row {
        name: "RL.RELEASE",
        fill: "RL.CONCURRENT key 200000 10000 lease:# AT @",
        after: "RL.RELEASE key lease:# AT @",
    },
    Row {
        name: "RL.MULTI of both",
        fill: "RL.MULTI 1 key AT @ LIMIT SLIDINGLOG 200000 10000 LIMIT CONCURRENT 200000 10000 lease:#",
        after: "RL.MULTI 1 key AT @ LIMIT SLIDINGLOG 200000 10000 LIMIT CONCURRENT 200000 10000 other:#",
    },
];

/// Prints the table; returns how many rows failed.
pub fn run(selection: &Selection<'_>) -> usize {
    println!("\nThe longest single call, after 100,000 entries have ended at once");
    println!("{:<36} {:>12}  target", "call", "microseconds");
    let mut failed = 0;
    for row in ROWS.iter().filter(|row| selection.has(row.name)) {
        match longest(row) {
            Ok(micros) => {
                let told = if micros < 1000 { "< 1,000: met" } else { "< 1,000: missed" };
                println!("{:<36} {:>12}  {told}", row.name, grouped(micros));
            }
            Err(error) => {
                failed += 1;
                println!("{:<36} ERROR, not measured: {error}", row.name);
            }
        }
    }
    failed
}

fn longest(row: &Row) -> Result<u64> {
    let server = Server::start(&["--slowlog-max-len", "20000"]);
    let mut con = server.connection();
    let line = |line: &str, i: u32, at: u64| line.replace('@', &at.to_string()).replace('#', &i.to_string());
    pipeline(&mut con, ENTRIES, |i| line(row.fill, i, START + u64::from(i)), |_| Ok(()))?;
    text(&mut con, "CONFIG SET slowlog-log-slower-than 0");
    text(&mut con, "SLOWLOG RESET");
    let later = START + 20_000_000;
    let told = |reply: &Value| match reply {
        Value::ServerError(error) => Err(format!("{error:?}").into()),
        _ => Ok(()),
    };
    pipeline(&mut con, CALLS, |i| line(row.after, i, later + u64::from(i)), told)?;
    let Value::Array(entries) = call(&mut con, &["SLOWLOG", "GET", "-1"])? else {
        return Err("no slow log".into());
    };
    // Each entry: its number, when, how long, and the call.
    let calls = entries.iter().filter_map(|entry| match entry {
        Value::Array(fields) => match (fields.get(2), fields.get(3)) {
            (Some(Value::Int(micros)), Some(Value::Array(words))) => match words.first() {
                Some(Value::BulkString(name)) if name.starts_with(b"RL.") => u64::try_from(*micros).ok(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let micros: Vec<u64> = calls.collect();
    if micros.len() < CALLS as usize {
        return Err(format!("{} calls in the slow log", micros.len()).into());
    }
    micros.into_iter().max().ok_or_else(|| "no call".into())
}
