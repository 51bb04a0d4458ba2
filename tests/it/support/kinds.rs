//! A key of every kind of state, in any number.

use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, ConnectionLike, Value};

use crate::support::{Server, simple, used_memory};

/// Every kind of state, by a limiter whose name and parameters stand around the key. `#` is a number. One has a hold.
pub const KINDS: [(&str, &str); 20] = [
    ("TOKENBUCKET", "9 1 1h"),
    ("TOKENBUCKET", "9 1 1h BATCH"),
    ("LEAKYBUCKET", "9 1 1h"),
    ("GCRA", "9 1 1h"),
    ("FIXEDWINDOW", "9 1h"),
    ("FIXEDWINDOW", "9 1d ALIGNED"),
    ("SLIDINGWINDOW", "9 1h"),
    ("SLIDINGWINDOW", "9 1h PRECISION 1m"),
    ("SLIDINGLOG", "9 1h"),
    ("SLIDINGLOG", "2 1h COUNTREFUSED"),
    ("UNIFORM", "1h"),
    ("SMOOTH", "9 1h MAXWAIT 1s"),
    ("SMOOTH", "9 1h WARMUP 30m MAXWAIT 1s"),
    ("CONCURRENT", "9 1h lease:#"),
    ("SHED", "0.9 DELAY 1h"),
    ("MULTI", "LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 9 1 1h LIMIT SLIDINGLOG 9 1h"),
    ("CALENDAR", "9 YEAR TZ Europe/Lisbon"),
    ("PENALTY", "9 1h 1h"),
    ("FIXEDWINDOW", "9 1h HOLD hold:# 1h"),
    ("SKETCH", "item:# 9 1 1h WIDTH 8 DEPTH 2"),
];

/// The call that creates or charges a key.
pub fn charge(kind: usize, key: &str, number: usize) -> String {
    let (limiter, parameters) = KINDS[kind];
    let parameters = parameters.replace('#', &format!("{number:08}"));
    let keys = if limiter == "MULTI" { "1 " } else { "" };
    format!("RL.{limiter} {keys}{key} {parameters}")
}

/// Sends lines in batches; none may end in an error.
pub fn flood(con: &mut Connection, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    while lines.peek().is_some() {
        let batch: Vec<String> = lines.by_ref().take(500).collect();
        let mut packed = Vec::new();
        for line in &batch {
            let mut words = line.split_ascii_whitespace();
            let mut cmd = redis::cmd(words.next().unwrap());
            words.for_each(|word| _ = cmd.arg(word));
            packed.extend(cmd.get_packed_command());
        }
        let replies = con.req_packed_commands(&packed, 0, batch.len()).unwrap();
        for (line, reply) in batch.iter().zip(replies) {
            assert!(!matches!(reply, Value::ServerError(_)), "{line}: {}", simple(&reply));
        }
    }
}

/// What is used when nothing is under way: the least of some looks, each on a connection of its own.
pub fn settled(server: &Server) -> i64 {
    let look = |_| {
        sleep(Duration::from_millis(100));
        used_memory(&mut server.connection())
    };
    (0..5).map(look).min().unwrap()
}
