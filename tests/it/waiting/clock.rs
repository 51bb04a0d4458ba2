//! Callers that wait for a limit whose state is ahead of the clock, which was set back.

use redis::Connection;

use super::behind::pipeline;
use super::{PATIENT, Waiting, field, figure, micros, until_waiting};
use crate::support::wall_clock::WallClock;
use crate::support::{Server, dump, ints, simple, sync, text, wait_for};

const DAY: u64 = 86_400_000_000;

/// Limits for an hour or more, used up.
const USED_UP: [&str; 12] = [
    "RL.TOKENBUCKET k 1 1 1h",
    "RL.TOKENBUCKET k 1 1 1h BATCH",
    "RL.LEAKYBUCKET k 1 1 1h",
    "RL.GCRA k 0 1 1h",
    "RL.FIXEDWINDOW k 1 1h",
    "RL.FIXEDWINDOW k 1 1d ALIGNED",
    "RL.CALENDAR k 1 DAY",
    "RL.SLIDINGWINDOW k 1 1h",
    "RL.SLIDINGWINDOW k 1 1h PRECISION 1m",
    "RL.SLIDINGLOG k 1 1h",
    "RL.UNIFORM k 1h",
    "RL.CONCURRENT k 1 1h a",
];

/// The same call for another lease.
fn next(line: &str) -> String {
    line.replace(" a", " b")
}

/// An instant that is further ahead than any reset here.
fn ahead(con: &mut Connection) -> u64 {
    micros(con) + 200 * DAY
}

/// Whether the limit's last charge is in the future.
fn is_ahead(con: &mut Connection) -> bool {
    let last = field(con, "k", "last_charge_us");
    last > micros(con)
}

/// When the key expires, in microseconds.
fn expiry(con: &mut Connection) -> u64 {
    1000 * text(con, "PEXPIRETIME k").parse::<u64>().unwrap()
}

#[test]
fn a_limit_that_is_far_ahead_of_the_clock_admits_who_waits_after_its_own_time() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT GCRA 0 1 300ms");
    for line in
        ["RL.GCRA k 0 1 300ms BLOCK 1d", "RL.MULTI 1 k BLOCK 1d LIMIT GCRA 0 1 300ms", "RL.ASK k p BLOCK 1d"]
    {
        let at = ahead(con);
        ints(con, &format!("RL.GCRA k 0 1 300ms AT {at}"));
        let reply = Waiting::start(&server, line).text();
        assert!(reply.trim_start_matches('[').starts_with("0, 1, 0, 0, 300"), "{line}: {reply}");
        text(con, "DEL k");
    }
}

#[test]
fn whoever_begins_to_wait_moves_the_limit_on_all_copies() {
    let server = Server::start(&PATIENT);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for line in USED_UP {
        let at = ahead(con);
        ints(con, &format!("{line} AT {at}"));
        assert!(is_ahead(con), "{line}");
        let caller = Waiting::enter(&server, &format!("{} BLOCK 1d", next(line)));
        assert!(!is_ahead(con), "{line}");
        // The key's expiry moves with it.
        assert!(expiry(con) < micros(con) + 10 * DAY, "{line}");
        sync(&server, &replica);
        let copy = &mut replica.connection();
        assert_eq!((dump(copy, "k"), expiry(copy)), (dump(con, "k"), expiry(con)), "{line}");
        drop(caller);
        until_waiting(con, 0);
        text(con, "DEL k");
    }
}

#[test]
fn the_first_in_line_moves_the_limit_when_it_is_tried() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for line in ["RL.FIXEDWINDOW k 1 1h", "RL.CONCURRENT k 1 1h a"] {
        ints(con, line);
        let mut caller = Waiting::enter(&server, &format!("{} BLOCK 1d", next(line)));
        let at = ahead(con);
        let ahead = match line.split_once(" a") {
            None => format!("{line} FORCE AT {at}"),
            // A lease that is asked again.
            Some(_) => format!("{line} AT {at}"),
        };
        ints(con, &ahead);
        wait_for("a move", || !is_ahead(con));
        assert!(caller.waits(), "{line}");
        text(con, "DEL k");
        assert_eq!(caller.ints()[0], 0, "{line}");
        text(con, "DEL k");
    }
}

#[test]
fn a_call_that_the_line_refuses_moves_the_limit_and_what_is_held() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for limit in ["FIXEDWINDOW k 5 1h", "SLIDINGLOG k 5 1h", "SLIDINGWINDOW k 5 1h PRECISION 1m"] {
        // One that would fit, one that the limit refuses as well, and one that holds.
        for options in ["", "COST 5", "COST 5 HOLD other 1h"] {
            ints(con, &format!("RL.{limit} COST 4"));
            let caller = Waiting::enter(&server, &format!("RL.{limit} COST 4 BLOCK 1d"));
            let at = ahead(con);
            let (name, parameters) = limit.split_once(" k ").unwrap();
            let replies = pipeline(
                con,
                &[
                    // Charged past the line.
                    &format!("RL.{limit} COST 2 HOLD job 300d FORCE AT {at}"),
                    &format!("RL.{limit} {options}"),
                    "RL.INFO k",
                    &format!("RL.SETTLE k job {name} {parameters} COST 0"),
                ],
            );
            let replies: Vec<String> = replies.iter().map(simple).collect();
            assert!(replies[1].starts_with("[1, 5, 0, "), "{limit} {options}: {replies:?}");
            let last = figure(replies[2].split("limits, ").last().unwrap(), "last_charge_us");
            assert!(last < at - 100 * DAY, "{limit} {options}: {replies:?}");
            assert!(replies[3].starts_with("[0, 5, 5, 0, ") && replies[3].ends_with(", 1]"), "{replies:?}");
            assert_eq!(caller.ints()[..3], [0, 5, 1], "{limit} {options}");
            text(con, "DEL k");
        }
    }
}

#[test]
fn nothing_moves_while_writes_are_paused() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.FIXEDWINDOW k 1 1h");
    let callers = ["RL.FIXEDWINDOW k 1 1h BLOCK 1d", "RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 1 1h"]
        .map(|line| Waiting::enter(&server, line));
    let at = ahead(con);
    pipeline(con, &[&format!("RL.FIXEDWINDOW k 1 1h FORCE AT {at}"), "CLIENT PAUSE 3600000 WRITE"]);
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
fn a_clock_that_steps_back_by_an_hour_keeps_nobody_waiting_for_an_hour() {
    let clock = WallClock::start(3600, &PATIENT);
    let con = &mut clock.server.connection();
    let calls = [
        "RL.TOKENBUCKET KEY 1 1 700ms",
        "RL.TOKENBUCKET KEY 1 1 700ms BATCH",
        "RL.LEAKYBUCKET KEY 1 1 700ms",
        "RL.GCRA KEY 0 1 700ms",
        "RL.FIXEDWINDOW KEY 1 700ms",
        "RL.FIXEDWINDOW KEY 1 700ms ALIGNED",
        "RL.SLIDINGWINDOW KEY 1 350ms",
        "RL.SLIDINGWINDOW KEY 1 700ms PRECISION 100ms",
        "RL.SLIDINGLOG KEY 1 700ms",
        "RL.UNIFORM KEY 700ms",
        "RL.CONCURRENT KEY 1 700ms ID",
    ];
    let on = |key: usize, id: &str| {
        calls[key].replace("KEY", &format!("k{key}")).replace(" ID", &format!(" {id}"))
    };
    let mut callers = Vec::new();
    for key in 0..calls.len() {
        ints(con, &on(key, "first"));
        // The last one of a line is still waiting when the clock steps, also on a slow machine.
        for id in ["a", "b"] {
            callers.push(Waiting::start(&clock.server, &format!("{} BLOCK 1d", on(key, id))));
        }
    }
    clock.set(0);
    for caller in callers {
        assert_eq!(caller.ints()[0], 0);
    }
}

#[test]
fn a_promoted_node_whose_clock_is_behind_admits_who_waits_there() {
    let ahead = WallClock::start(3600, &PATIENT);
    let replica = ahead.server.replica(&PATIENT);
    let con = &mut ahead.server.connection();
    for limit in ["RL.GCRA k 0 1 300ms", "RL.FIXEDWINDOW held 1 300ms HOLD job 1s"] {
        assert_eq!(ints(con, limit)[0], 0);
    }
    sync(&ahead.server, &replica);
    drop(ahead);
    let con = &mut replica.connection();
    assert!(is_ahead(con));
    text(con, "REPLICAOF NO ONE");
    for line in ["RL.GCRA k 0 1 300ms BLOCK 1d", "RL.FIXEDWINDOW held 1 300ms BLOCK 1d"] {
        assert_eq!(Waiting::start(&replica, line).ints()[..2], [0, 1], "{line}");
    }
}
