//! Callers that wait take no time of the server's.

use std::thread::sleep;
use std::time::Duration;

use super::{PATIENT, Waiting, try_in_vain};
use crate::support::{Server, main_thread_seconds, text};

/// How long is looked, in seconds, and how much of that the server may work. It has its own work ten times a second.
const WHILE: f64 = 1.0;
const MOST: f64 = 0.1;

/// Checks that the server does nothing while a caller waits.
fn expect_idle(line: &str) {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1d");
    text(con, "RL.MULTI 2 k l LIMIT CONCURRENT 1 1d a");
    let mut caller = Waiting::enter(&server, line);
    try_in_vain(&server);
    let before = main_thread_seconds(con);
    sleep(Duration::from_secs_f64(WHILE));
    let worked = main_thread_seconds(con) - before;
    assert!(caller.waits());
    assert!(worked < MOST * WHILE, "{line}: the server worked for {worked} s of {WHILE} s");
}

#[test]
fn a_caller_that_waits_for_a_minute() {
    for line in [
        "RL.CONCURRENT k 1 1d b BLOCK 1m",
        "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1d b",
        "RL.MULTI 2 k l BLOCK 1m LIMIT CONCURRENT 1 1d b",
        "RL.ASK k p ID b BLOCK 1m",
    ] {
        expect_idle(line);
    }
}

#[test]
fn a_caller_that_waits_for_an_hour() {
    // Redis 7.0 counts the microseconds until its next timer in 32 bits.
    for line in ["RL.CONCURRENT k 1 1d b BLOCK 1h", "RL.CONCURRENT k 1 1d b BLOCK 36m"] {
        expect_idle(line);
    }
}
