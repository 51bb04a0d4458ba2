//! Callers that wait take no time of the server's.

use std::thread::sleep;
use std::time::Duration;

use super::{PATIENT, Waiting, try_in_vain};
use crate::support::{Server, main_thread_seconds, text};

/// How long is looked, in seconds, and how much of that the server may work. It has its own work ten times a second.
const WHILE: f64 = 1.0;
const MOST: f64 = 0.1;

#[test]
fn the_server_rests_while_callers_wait() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1d");
    text(con, "RL.MULTI 2 k l LIMIT CONCURRENT 1 1d a");
    // Redis 7.0 counts the microseconds until its next timer in 32 bits, which are 36 minutes.
    for lines in [
        ["RL.CONCURRENT k 1 1d b BLOCK 1h", "RL.CONCURRENT k 1 1d b BLOCK 36m", "RL.ASK k p ID b BLOCK 1h"],
        [
            "RL.CONCURRENT k 1 1d b BLOCK 1m",
            "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1d b",
            "RL.MULTI 2 k l BLOCK 1m LIMIT CONCURRENT 1 1d b",
        ],
    ] {
        let mut callers = lines.map(|line| Waiting::enter(&server, line));
        try_in_vain(&server);
        let before = main_thread_seconds(con);
        sleep(Duration::from_secs_f64(WHILE));
        let worked = main_thread_seconds(con) - before;
        assert!(callers.iter_mut().all(Waiting::waits));
        assert!(worked < MOST * WHILE, "{lines:?}: the server worked for {worked} s of {WHILE} s");
    }
}
