//! Callers that wait for a limit whose state is ahead of the clock, which was set back.

use super::{AHEAD, PATIENT, Waiting, pipeline, until_waiting};
use crate::support::wall_clock::WallClock;
use crate::support::{Server, dump, ints, sync, text};

#[test]
fn a_caller_that_begins_to_wait_moves_the_limit_and_its_expiry_on_all_copies() {
    let server = Server::start(&PATIENT);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for line in ["RL.FIXEDWINDOW k 1 1h", "RL.SLIDINGLOG k 1 1h", "RL.CONCURRENT k 1 1h a"] {
        ints(con, &format!("{line} AT {AHEAD}"));
        let before = dump(con, "k");
        let caller = Waiting::enter(&server, &format!("{} BLOCK 1d", line.replace(" a", " b")));
        assert_ne!(dump(con, "k"), before);
        sync(&server, &replica);
        let copy = &mut replica.connection();
        assert_eq!(dump(copy, "k"), dump(con, "k"), "{line}");
        assert_eq!(text(copy, "PEXPIRETIME k"), text(con, "PEXPIRETIME k"), "{line}");
        drop(caller);
        until_waiting(con, 0);
        text(con, "DEL k");
    }
}

#[test]
fn nothing_moves_while_writes_are_paused() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.FIXEDWINDOW k 1 1h");
    let callers = ["RL.FIXEDWINDOW k 1 1h BLOCK 1d", "RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 1 1h"]
        .map(|line| Waiting::enter(&server, line));
    pipeline(con, &[&format!("RL.FIXEDWINDOW k 1 1h FORCE AT {AHEAD}"), "CLIENT PAUSE 3600000 WRITE"]);
    let before = dump(con, "k");
    for caller in callers {
        ints(con, &format!("CLIENT UNBLOCK {}", caller.id));
        assert!(caller.text().trim_start_matches('[').starts_with("1, 1, 0, "));
    }
    assert_eq!(dump(con, "k"), before);
    text(con, "CLIENT UNPAUSE");
    // The same call without the pause.
    ints(con, "RL.FIXEDWINDOW k 1 1h");
    assert_ne!(dump(con, "k"), before);
}

#[test]
fn a_clock_that_steps_back_by_an_hour_keeps_no_caller_waiting_for_an_hour() {
    let clock = WallClock::start(3600, &PATIENT);
    let con = &mut clock.server.connection();
    let mut callers = Vec::new();
    for line in [
        "RL.GCRA k 0 1 700ms",
        "RL.FIXEDWINDOW l 1 700ms",
        "RL.SLIDINGLOG m 1 700ms",
        "RL.CONCURRENT n 1 700ms #",
    ] {
        ints(con, line);
        // The last one of a line is still waiting when the clock steps, also on a slow machine.
        for id in ["a", "b"] {
            callers.push(Waiting::start(&clock.server, &format!("{} BLOCK 1d", line.replace('#', id))));
        }
    }
    clock.set(0);
    for caller in callers {
        assert_eq!(caller.ints()[0], 0);
    }
}
