//! Calls on keys of one slot, which is the slot of the tag `{t}`.

use redis::{Connection, Value};

use crate::support::{call, ints, text};

/// Charges that are made once and then left alone. Every key of them expires.
pub const LEFT_ALONE: [&str; 15] = [
    "RL.TOKENBUCKET {t}:kept:bucket 9 1 3600000 COST 4",
    "RL.TOKENBUCKET {t}:kept:batch 9 1 3600000 BATCH COST 4",
    "RL.LEAKYBUCKET {t}:kept:water 9 1 3600000 COST 4",
    "RL.GCRA {t}:kept:gcra 9 1 3600000 COST 4",
    "RL.FIXEDWINDOW {t}:kept:window 9 3600000 COST 4",
    "RL.SLIDINGWINDOW {t}:kept:sliding 9 86400000000 COST 4",
    "RL.SLIDINGWINDOW {t}:kept:precise 9 3600000 PRECISION 60000 COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 3600000 COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 3600000 COST 3",
    "RL.SLIDINGLOG {t}:kept:hammered 9 3600000 COUNTREFUSED COST 4",
    "RL.UNIFORM {t}:kept:gate 3600000",
    "RL.SMOOTH {t}:kept:warm 9 3600000 WARMUP 3600000",
    "RL.CONCURRENT {t}:kept:lease 9 3600000 one",
    "RL.CONCURRENT {t}:kept:lease 9 7200000 two COST 3",
    "RL.SHED {t}:kept:shed 0.95",
];

/// More charges that are made once; some of their keys do not expire.
pub const LEFT_ALONE_TOO: [&str; 6] = [
    "RL.FIXEDWINDOW {t}:kept:aligned 9 86400000000 ALIGNED COST 4",
    "RL.SMOOTH {t}:kept:smooth 9 3600000",
    "RL.MULTI 2 {t}:kept:both {t}:kept:one LIMIT GCRA 9 1 3600000 LIMIT SLIDINGLOG 9 3600000 ON 1 \
     LIMIT CONCURRENT 9 3600000 one ON 1",
    "RL.XADD {t}:kept:stream 9 * field value",
    "RL.RPUSH {t}:kept:list 9 one two three",
    "CL.THROTTLE {t}:kept:cell 9 1 3600 4",
];

/// What is called without end, each line by a thread of its own; `#` is the number of the call. None of it refills
/// within the test.
pub const CALLED: [(&str, usize); 11] = [
    ("RL.TOKENBUCKET {t}:bucket 1000 1 3600000", 1000),
    ("RL.LEAKYBUCKET {t}:water 1000 1 3600000", 1000),
    ("RL.GCRA {t}:gcra 999 1 3600000", 1000),
    ("RL.FIXEDWINDOW {t}:window 1000 3600000", 1000),
    ("RL.SLIDINGWINDOW {t}:precise 1000 3600000 PRECISION 60000", 1000),
    ("RL.SLIDINGLOG {t}:log 1000 3600000", 1000),
    ("RL.UNIFORM {t}:gate 3600000", 1),
    ("RL.CONCURRENT {t}:lease 1000 3600000 id#", 1000),
    (
        "RL.MULTI 2 {t}:both {t}:one LIMIT SLIDINGLOG 1200 3600000 LIMIT GCRA 999 1 3600000 ON 2 \
         LIMIT CONCURRENT 1100 3600000 id# ON 1",
        1000,
    ),
    ("RL.XADD {t}:stream 1000 1-# call id#", 1000),
    ("RL.RPUSH {t}:list 1000 id#", 1000),
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
