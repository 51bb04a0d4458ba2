//! Calls on keys of one slot, which is the slot of the tag `{t}`.

use redis::{Connection, Value};

use crate::support::{call, ints, text};

/// Charges that are made once and then left alone. Every key of them expires.
pub const LEFT_ALONE: [&str; 15] = [
    "RL.TOKENBUCKET {t}:kept:bucket 9 1 1h COST 4",
    "RL.TOKENBUCKET {t}:kept:batch 9 1 1h BATCH COST 4",
    "RL.LEAKYBUCKET {t}:kept:water 9 1 1h COST 4",
    "RL.GCRA {t}:kept:gcra 9 1 1h COST 4",
    "RL.FIXEDWINDOW {t}:kept:window 9 1h COST 4",
    "RL.SLIDINGWINDOW {t}:kept:sliding 9 1000d COST 4",
    "RL.SLIDINGWINDOW {t}:kept:precise 9 1h PRECISION 1m COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 1h COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 1h COST 3",
    "RL.SLIDINGLOG {t}:kept:hammered 9 1h COUNTREFUSED COST 4",
    "RL.UNIFORM {t}:kept:gate 1h",
    "RL.SMOOTH {t}:kept:warm 9 1h WARMUP 1h",
    "RL.CONCURRENT {t}:kept:lease 9 1h one",
    "RL.CONCURRENT {t}:kept:lease 9 2h two COST 3",
    "RL.SHED {t}:kept:shed 0.95",
];

/// More charges that are made once; some of their keys do not expire.
pub const LEFT_ALONE_TOO: [&str; 6] = [
    "RL.FIXEDWINDOW {t}:kept:aligned 9 1000d ALIGNED COST 4",
    "RL.SMOOTH {t}:kept:smooth 9 1h",
    "RL.MULTI 2 {t}:kept:both {t}:kept:one LIMIT GCRA 9 1 1h LIMIT SLIDINGLOG 9 1h ON 1 \
     LIMIT CONCURRENT 9 1h one ON 1",
    "RL.XADD {t}:kept:stream 9 * field value",
    "RL.RPUSH {t}:kept:list 9 one two three",
    "CL.THROTTLE {t}:kept:cell 9 1 3600 4",
];

/// What is called without end, each line by a thread of its own; `#` is the number of the call. None of it refills
/// within the test.
pub const CALLED: [(&str, usize); 12] = [
    ("RL.TOKENBUCKET {t}:bucket 1000 1 1h", 1000),
    ("RL.LEAKYBUCKET {t}:water 1000 1 1h", 1000),
    ("RL.GCRA {t}:gcra 999 1 1h", 1000),
    ("RL.FIXEDWINDOW {t}:window 1000 1h", 1000),
    ("RL.SLIDINGWINDOW {t}:precise 1000 1h PRECISION 1m", 1000),
    ("RL.SLIDINGLOG {t}:log 1000 1h", 1000),
    ("RL.UNIFORM {t}:gate 1h", 1),
    ("RL.CONCURRENT {t}:lease 1000 1h id#", 1000),
    (
        "RL.MULTI 2 {t}:both {t}:one LIMIT SLIDINGLOG 1200 1h LIMIT GCRA 999 1 1h ON 2 \
         LIMIT CONCURRENT 1100 1h id# ON 1",
        1000,
    ),
    ("RL.XADD {t}:stream 1000 1-# call id#", 1000),
    ("RL.RPUSH {t}:list 1000 id#", 1000),
    ("RL.ASK {t}:asked called", 1000),
];

/// The keys of a slot in order, with their dumps and expiry times.
pub fn contents(con: &mut Connection, slot: usize) -> Vec<(String, Value, i64)> {
    text(con, "READONLY");
    let keys = text(con, &format!("CLUSTER GETKEYSINSLOT {slot} 1000"));
    let mut keys: Vec<&str> =
        keys.trim_matches(['[', ']']).split(", ").filter(|key| !key.is_empty()).collect();
    keys.sort_unstable();
    keys.into_iter()
        .map(|key| {
            (key.to_string(), call(con, &["DUMP", key]).unwrap(), ints(con, &format!("PEXPIRETIME {key}"))[0])
        })
        .collect()
}
