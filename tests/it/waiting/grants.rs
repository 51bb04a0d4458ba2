//! Each limiter makes callers wait, and admits them with its ordinary reply as of then.

use redis::Connection;

use super::{PATIENT, Waiting, count, field, micros, until_waiting, waiting};
use crate::support::{Server, info, ints, text};

/// The limiters that make callers wait, each with a limit of 1. `#` is the id of a lease.
const LIMITS: [(&str, &str); 12] = [
    ("TOKENBUCKET", "1 1 1h"),
    ("TOKENBUCKET", "1 1 1h BATCH"),
    ("LEAKYBUCKET", "1 1 1h"),
    ("GCRA", "0 1 1h"),
    ("FIXEDWINDOW", "1 1h"),
    ("FIXEDWINDOW", "1 1d ALIGNED"),
    ("CALENDAR", "1 DAY TZ Europe/Lisbon"),
    ("SLIDINGWINDOW", "1 1h"),
    ("SLIDINGWINDOW", "1 1h PRECISION 1m"),
    ("SLIDINGLOG", "1 1h"),
    ("UNIFORM", "1h"),
    ("CONCURRENT", "1 1h #"),
];

/// The lines of a test of one limit: the call that waits, without `BLOCK` and with it, and the line that gives back the
/// only unit.
struct Lines {
    first: String,
    call: String,
    waits: String,
    twin: String,
    gives_back: String,
}

impl Lines {
    fn own((limiter, parameters): (&str, &str)) -> Lines {
        let [first, second] = ["a", "b"].map(|id| parameters.replace('#', id));
        Lines {
            first: format!("RL.{limiter} k {first}"),
            call: format!("RL.{limiter} k {second}"),
            waits: format!("RL.{limiter} k {second} BLOCK 1d"),
            twin: format!("RL.{limiter} twin {second}"),
            gives_back: if limiter == "CONCURRENT" {
                "RL.RELEASE k a".into()
            } else {
                format!("RL.REFUND k {limiter} {parameters}")
            },
        }
    }

    fn multi((limiter, parameters): (&str, &str)) -> Lines {
        let [first, second] = ["a", "b"].map(|id| parameters.replace('#', id));
        Lines {
            first: format!("RL.MULTI 1 k LIMIT {limiter} {first}"),
            call: format!("RL.MULTI 1 k LIMIT {limiter} {second}"),
            waits: format!("RL.MULTI 1 k BLOCK 1d LIMIT {limiter} {second}"),
            twin: format!("RL.MULTI 1 twin LIMIT {limiter} {second}"),
            gives_back: if limiter == "CONCURRENT" {
                "RL.MULTIRELEASE 1 k a".into()
            } else {
                format!("RL.MULTIREFUND 1 k LIMIT {limiter} {parameters}")
            },
        }
    }

    /// With the policy `p`.
    fn ask((limiter, _): (&str, &str)) -> Lines {
        let is_lease = limiter == "CONCURRENT";
        let [first, second] = ["a", "b"].map(|id| if is_lease { format!(" ID {id}") } else { String::new() });
        Lines {
            first: format!("RL.ASK k p{first}"),
            call: format!("RL.ASK k p{second}"),
            waits: format!("RL.ASK k p BLOCK 1d{second}"),
            twin: format!("RL.ASK twin p{second}"),
            gives_back: if is_lease { "RL.RELEASE k a".into() } else { "RL.ASKREFUND k p".into() },
        }
    }
}

/// Checks that a caller waits until the only unit is given back, and gets the reply of one that comes then.
fn expect_grant(server: &Server, lines: &Lines, clocked: bool) {
    let con = &mut server.connection();
    text(con, "DEL k twin");
    text(con, &lines.first);
    assert_eq!(limited(&text(con, &lines.call)), "1", "{}", lines.call);
    let caller = Waiting::enter(server, &lines.waits);
    text(con, &lines.gives_back);
    let replied = caller.text();
    let ordinary = text(con, &lines.twin);
    if clocked {
        // All but the time until a window of the clock ends.
        let [replied, ordinary] = [&replied, &ordinary].map(|reply| first_four(reply));
        assert_eq!(replied, ordinary, "{}", lines.waits);
    } else {
        assert_eq!(replied, ordinary, "{}", lines.waits);
    }
    assert_eq!(limited(&text(con, &lines.call.replace(" b", " c"))), "1", "{}: it is charged", lines.waits);
    assert_eq!(waiting(con), 0, "{}", lines.waits);
}

fn limited(reply: &str) -> &str {
    first_four(reply).get(..1).unwrap()
}

fn first_four(reply: &str) -> &str {
    let reply = reply.trim_start_matches('[');
    let end = reply.match_indices(',').nth(3).unwrap().0;
    &reply[..end]
}

#[test]
fn each_limiter_admits_who_waits_when_something_is_given_back() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for limit in LIMITS {
        let clocked = ["CALENDAR", "SLIDINGWINDOW"].contains(&limit.0) || limit.1.ends_with("ALIGNED");
        text(con, &format!("RL.POLICY SET p LIMIT {} {}", limit.0, limit.1.replace(" #", "")));
        for lines in [Lines::own(limit), Lines::multi(limit), Lines::ask(limit)] {
            expect_grant(&server, &lines, clocked);
        }
    }
    assert_eq!(count(con, "waited_granted"), 3 * LIMITS.len() as u64);
}

#[test]
fn who_fits_does_not_wait() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for limit in LIMITS {
        text(con, &format!("RL.POLICY SET p LIMIT {} {}", limit.0, limit.1.replace(" #", "")));
        for lines in [Lines::own(limit), Lines::multi(limit), Lines::ask(limit)] {
            text(con, "DEL k");
            assert_eq!(limited(&text(con, &lines.waits)), "0", "{}", lines.waits);
            assert_eq!(limited(&text(con, &lines.call.replace(" b", " c"))), "1", "{}", lines.waits);
        }
    }
    assert_eq!((count(con, "waiting"), count(con, "waited_granted")), (0, 0));
}

#[test]
fn a_lease_lasts_from_the_grant_on() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for line in [
        "RL.CONCURRENT k 1 10m b BLOCK 1m",
        "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 10m b LIMIT GCRA 9 1 1s",
    ] {
        text(con, "DEL k");
        ints(con, "RL.CONCURRENT k 1 1h a");
        let caller = Waiting::enter(&server, line);
        let released = micros(con);
        text(con, "RL.RELEASE k a");
        caller.text();
        let deadline = field(con, "k", "last_deadline_us");
        let lasts = 600_000_000;
        assert!(deadline >= released + lasts, "{line}: {deadline}, {released}");
        assert!(deadline <= micros(con) + lasts, "{line}: {deadline}");
        // The caller has the lease.
        assert_eq!(ints(con, "RL.RELEASE k b"), [1], "{line}");
    }
}

#[test]
fn a_hold_is_held_from_the_grant_on() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    for (waits, asked_again, settles) in [
        (
            "RL.FIXEDWINDOW k 5 1h COST 3 HOLD job 10m BLOCK 1d",
            "RL.FIXEDWINDOW k 5 1h COST 3 HOLD job 10m",
            "RL.SETTLE k job FIXEDWINDOW 5 1h COST 1",
        ),
        (
            "RL.MULTI 1 k COST 3 BLOCK 1d HOLD job 10m LIMIT FIXEDWINDOW 5 1h",
            "RL.MULTI 1 k COST 3 HOLD job 10m LIMIT FIXEDWINDOW 5 1h",
            "RL.MULTISETTLE 1 k job COST 1 LIMIT FIXEDWINDOW 5 1h",
        ),
        (
            "RL.ASK k p HOLD job 10m COST 3 BLOCK 1d",
            "RL.ASK k p HOLD job 10m COST 3",
            "RL.ASKSETTLE k p job COST 1",
        ),
    ] {
        text(con, "DEL k");
        ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
        let caller = Waiting::enter(&server, waits);
        // Nothing is held while its caller waits.
        assert_eq!(ints(con, "RL.SETTLE k job FIXEDWINDOW 5 1h COST 0")[5], 0, "{waits}");
        assert_eq!(waiting(con), 1);
        ints(con, "RL.REFUND k FIXEDWINDOW 5 1h COST 4");
        assert_eq!(limited(&caller.text()), "0", "{waits}");
        let remaining = |con: &mut Connection| ints(con, "RL.PEEK k FIXEDWINDOW 5 1h")[2];
        assert_eq!(remaining(con), 1, "{waits}");
        text(con, asked_again);
        assert_eq!(remaining(con), 1, "{asked_again}: it is held");
        text(con, settles);
        assert_eq!(remaining(con), 3, "{settles}");
    }
}

#[test]
fn a_caller_that_blocks_for_what_it_holds_is_answered_at_once() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT lease 1 1h a");
    ints(con, "RL.FIXEDWINDOW held 5 1h COST 5 HOLD a 1h");
    let others = [
        Waiting::enter(&server, "RL.CONCURRENT lease 1 1h b BLOCK 1d"),
        Waiting::enter(&server, "RL.FIXEDWINDOW held 5 1h BLOCK 1d"),
    ];
    for (line, limited) in [
        ("RL.CONCURRENT lease 1 1h a BLOCK 1d", 0),
        ("RL.FIXEDWINDOW held 5 1h COST 5 HOLD a 1h BLOCK 1d", 0),
    ] {
        assert_eq!(ints(con, line)[0], limited, "{line}");
    }
    assert_eq!(waiting(con), 2);
    drop(others);
    until_waiting(con, 0);
    assert_eq!(info(con, "ratelimit", "ratelimit_waited_granted").as_deref(), Some("0"));
}

#[test]
fn two_calls_that_wait_for_one_lease_both_get_it() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let callers = ["RL.CONCURRENT k 1 1h b BLOCK 1m", "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1h b"]
        .map(|line| Waiting::enter(&server, line));
    let mut last = Waiting::enter(&server, "RL.CONCURRENT k 1 1h c BLOCK 1m");
    text(con, "RL.RELEASE k a");
    for caller in callers {
        let reply = caller.text();
        assert!(reply.trim_start_matches('[').starts_with("0, 1, 0, "), "{reply}");
    }
    assert!(last.waits());
    text(con, "RL.RELEASE k b");
    assert_eq!(last.ints()[0], 0);
}

#[test]
fn who_gets_a_hold_by_another_call_is_charged_once() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let hold = "RL.FIXEDWINDOW k 5 1h COST 3 HOLD job 1h";
    for (end, given_back) in [("RL.REFUND k FIXEDWINDOW 5 1h", 1), ("CLIENT UNBLOCK", 0)] {
        text(con, "DEL k");
        ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
        let caller = Waiting::enter(&server, &format!("{hold} BLOCK 1d"));
        text(con, "MULTI");
        text(con, &format!("{hold} FORCE"));
        text(con, &end.replace("UNBLOCK", &format!("UNBLOCK {}", caller.id)));
        text(con, "EXEC");
        // It has what it asked for.
        assert_eq!(caller.ints()[0], 0, "{end}");
        // Eight were charged.
        ints(con, "RL.REFUND k FIXEDWINDOW 5 1h COST 4");
        assert_eq!(ints(con, "RL.PEEK k FIXEDWINDOW 5 1h")[2], 1 + given_back, "{end}");
    }
}
