//! `RL.SKETCH`: a limit for each of unboundedly many items, in cells that they share.

mod clock;
mod copies;
mod counted;
mod effects;
mod expiry;
mod forged;
mod items;
mod replies;
mod rewritten_aof;
mod same_as_gcra;
mod shapes;

use redis::Connection;

use crate::support::{SECOND, info, ints, text};

/// The year 2100, in microseconds. No key of these tests expires by the server's clock.
const START: u64 = 4_102_444_800 * SECOND;

/// This many milliseconds after `START`, in microseconds.
fn after(millis: u64) -> u64 {
    START + 1000 * millis
}

/// The reply to `RL.SKETCH` with these arguments, at an instant in microseconds.
fn ask_at(con: &mut Connection, arguments: &str, at: u64) -> Vec<i64> {
    ints(con, &format!("RL.SKETCH {arguments} AT {at}"))
}

/// The same, this many milliseconds after `START`.
fn ask(con: &mut Connection, arguments: &str, millis: u64) -> Vec<i64> {
    ask_at(con, arguments, after(millis))
}

/// The reply to `RL.PEEK` with the arguments of `RL.SKETCH`, at an instant in microseconds.
fn peek_at(con: &mut Connection, arguments: &str, at: u64) -> Vec<i64> {
    let (key, rest) = arguments.split_once(' ').unwrap();
    ints(con, &format!("RL.PEEK {key} SKETCH {rest} AT {at}"))
}

/// What a change of any key, of the expiry of `key`, or of what is replicated would change.
fn written(con: &mut Connection) -> (String, String, String) {
    let expires = text(con, "PEXPIRETIME key");
    (text(con, "DEBUG DIGEST"), expires, info(con, "persistence", "rdb_changes_since_last_save").unwrap())
}
