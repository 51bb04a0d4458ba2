//! A key of every kind of state, in any number.

use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, ConnectionLike, Value};

use crate::support::{Server, simple, used_memory};

/// Every kind of state, by a limiter whose name and parameters stand around the key. `#` is a number. One has a hold.
pub const KINDS: [(&str, &str); 20] = [
    ("TOKENBUCKET", "9 1 3600000"),
    ("TOKENBUCKET", "9 1 3600000 BATCH"),
    ("LEAKYBUCKET", "9 1 3600000"),
    ("GCRA", "9 1 3600000"),
    ("FIXEDWINDOW", "9 3600000"),
    ("FIXEDWINDOW", "9 86400000 ALIGNED"),
    ("SLIDINGWINDOW", "9 3600000"),
    ("SLIDINGWINDOW", "9 3600000 PRECISION 60000"),
    ("SLIDINGLOG", "9 3600000"),
    ("SLIDINGLOG", "2 3600000 COUNTREFUSED"),
    ("UNIFORM", "3600000"),
    ("SMOOTH", "9 3600000 MAXWAIT 1000"),
    ("SMOOTH", "9 3600000 WARMUP 1800000 MAXWAIT 1000"),
    ("CONCURRENT", "9 3600000 lease:#"),
    ("SHED", "0.9 DELAY 3600000"),
    ("MULTI", "LIMIT FIXEDWINDOW 9 3600000 LIMIT GCRA 9 1 3600000 LIMIT SLIDINGLOG 9 3600000"),
    ("CALENDAR", "9 YEAR TZ Europe/Lisbon"),
    ("PENALTY", "9 3600000 3600000"),
    ("FIXEDWINDOW", "9 3600000 HOLD hold:# 3600000"),
    ("SKETCH", "item:# 9 1 3600000 WIDTH 8 DEPTH 2"),
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
