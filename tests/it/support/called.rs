//! Calls of every kind of state, so that what was admitted can be counted and found again.

use redis::Connection;

use crate::support::{Server, ints, multi, text};

/// What is called; `#` is the name of the call. None of it refills within the test.
pub const CALLED: [&str; 9] = [
    "RL.GCRA gcra 999999 1 30m",
    "RL.TOKENBUCKET bucket 1000000 1 30m",
    "RL.LEAKYBUCKET water 1000000 1 30m",
    "RL.FIXEDWINDOW window 1000000 1h",
    "RL.SLIDINGWINDOW precise 1000000 1h PRECISION 3600ms",
    "RL.SLIDINGLOG log 1000000 1h",
    "RL.CONCURRENT lease 1000000 1h #",
    "RL.MULTI 1 all LIMIT GCRA 999999 1 30m LIMIT SLIDINGLOG 1000000 1h \
     LIMIT CONCURRENT 1000000 1h #",
    "RL.ASK asked called",
];

/// Stores the policy that is asked for.
pub fn set_policy(server: &Server) {
    let policy = "RL.POLICY SET called LIMIT FIXEDWINDOW 1000000 1h LIMIT SLIDINGLOG 1000000 1h";
    text(&mut server.connection(), policy);
}

/// The limit of each of them, which no test reaches.
pub const LIMIT: i64 = 1_000_000;
/// How many threads call each line.
pub const CALLERS: usize = 2;

/// The remaining of each limit that the line names, which must be the same for all.
pub fn remaining(con: &mut Connection, line: &str) -> i64 {
    // The id stays `#`, which no caller has.
    if let Some(rest) = line.strip_prefix("RL.MULTI") {
        let (_, pairs) = multi(con, &format!("RL.MULTIPEEK{rest}"));
        assert!(pairs.iter().all(|pair| pair[2] == pairs[0][2]), "{line}: {pairs:?}");
        return pairs[0][2];
    }
    if let Some(rest) = line.strip_prefix("RL.ASK") {
        return ints(con, &format!("RL.ASKPEEK{rest}"))[2];
    }
    let words = words(line);
    let limiter = words[0].trim_start_matches("RL.");
    ints(con, &format!("RL.PEEK {} {limiter} {}", words[1], words[2..].join(" ")))[2]
}

pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
