//! What strikes the penalties of callers that wait, and of those that are refused because others wait.

use redis::Connection;

use super::{PATIENT, Waiting, count, try_in_vain, waiting};
use crate::support::{Server, ints, multi, text};

const PENALTY: &str = "LIMIT PENALTY 9 1h 1h";

/// A server with a limit of 1 that is used up, and the lines that wait for it.
fn used_up() -> (Server, Connection, [String; 2]) {
    let server = Server::start(&PATIENT);
    let mut con = server.connection();
    text(&mut con, &format!("RL.POLICY SET p LIMIT FIXEDWINDOW 1 1h {PENALTY}"));
    multi(&mut con, &format!("RL.MULTI 1 k LIMIT FIXEDWINDOW 1 1h {PENALTY}"));
    let lines =
        [format!("RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 1 1h {PENALTY}"), "RL.ASK k p BLOCK 1d".into()];
    (server, con, lines)
}

/// The number of strikes that the key `k` has.
fn strikes(con: &mut Connection) -> i64 {
    9 - multi(con, &format!("RL.MULTIPEEK 1 k {PENALTY}")).0[2]
}

#[test]
fn neither_entering_a_line_nor_a_try_nor_a_grant_strikes() {
    let (server, mut con, lines) = used_up();
    let con = &mut con;
    for line in lines {
        let mut caller = Waiting::enter(&server, &line);
        assert_eq!(strikes(con), 0, "{line}");
        try_in_vain(&server);
        assert!(caller.waits(), "{line}");
        assert_eq!(strikes(con), 0, "{line}");
        ints(con, "RL.REFUND k FIXEDWINDOW 1 1h");
        caller.text();
        assert_eq!(strikes(con), 0, "{line}");
    }
}

#[test]
fn an_immediate_refusal_strikes_once() {
    let (_server, mut con, [multi, ask]) = used_up();
    let con = &mut con;
    let lines = [multi.replace("1d", "1s"), multi.replace("1d", "1d COST 2"), ask.replace("1d", "1s")];
    for (line, strike) in lines.iter().zip(1..) {
        text(con, line);
        assert_eq!(strikes(con), strike, "{line}");
    }
    assert_eq!((waiting(con), count(con, "waited_timeout")), (0, 0));
    text(con, "CONFIG SET ratelimit.max-waiters 0");
    text(con, &multi);
    assert_eq!(strikes(con), 4, "nobody may wait");
}

#[test]
fn a_timeout_strikes_once() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h ON 1 LIMIT PENALTY 9 1h 1h ON 2");
    ints(con, "RL.CONCURRENT lease 1 1h a");
    let limits = "LIMIT CONCURRENT 1 1h b ON 1 LIMIT PENALTY 9 1h 1h ON 2";
    let lines =
        [format!("RL.MULTI 2 lease k BLOCK 200ms {limits}"), "RL.ASK lease p ID b BLOCK 200ms KEYS k".into()];
    for (line, strike) in lines.iter().zip(1i64..) {
        let caller = Waiting::start(&server, line).text();
        assert!(caller.trim_start_matches('[').starts_with("1, "), "{line}: {caller}");
        assert_eq!((strikes(con), count(con, "waited_timeout")), (strike, strike.unsigned_abs()), "{line}");
    }
}

#[test]
fn a_refusal_by_a_line_does_not_strike() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, &format!("RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h {PENALTY}"));
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 3");
    let _caller = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d");
    for line in [&format!("RL.MULTI 1 k LIMIT FIXEDWINDOW 5 1h {PENALTY}"), "RL.ASK k p"] {
        let reply = text(con, line);
        assert!(reply.trim_start_matches('[').starts_with("1, 5, 0, "), "{line}: {reply}");
        assert_eq!(strikes(con), 0, "{line}");
    }
    // A refusal of the limit itself does, though others wait for it.
    for (line, strike) in
        [(&*format!("RL.MULTI 1 k COST 3 LIMIT FIXEDWINDOW 5 1h {PENALTY}"), 1), ("RL.ASK k p COST 3", 2)]
    {
        text(con, line);
        assert_eq!(strikes(con), strike, "{line}");
    }
}
