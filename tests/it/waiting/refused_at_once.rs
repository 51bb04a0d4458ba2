//! Calls with `BLOCK` that are refused, and do not wait.

use redis::{Connection, Value};

use super::{PATIENT, Waiting, count, until_tried, until_waiting, waiting};
use crate::support::{Server, call, ints, multi, simple, text};

/// Makes a call that is refused at once.
fn refusal(con: &mut Connection, line: &str) -> String {
    let waited = waiting(con);
    let reply = text(con, line);
    assert!(reply.trim_start_matches('[').starts_with("1, "), "{line}: {reply}");
    assert_eq!(waiting(con), waited, "{line}");
    assert_eq!(count(con, "waited_timeout"), 0, "{line}");
    reply
}

#[test]
fn what_never_fits() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    for (line, expected) in [
        ("RL.FIXEDWINDOW k 5 1h COST 6 BLOCK 1d", "[1, 5, 5, -1, 0]"),
        ("RL.CONCURRENT k 5 1h a COST 6 BLOCK 1d", "[1, 5, 5, -1, 0]"),
        ("RL.MULTI 1 k COST 6 BLOCK 1d LIMIT FIXEDWINDOW 5 1h", "[[1, 5, 5, -1, 0], [[1, 5, 5, -1, 0]]]"),
        ("RL.ASK k p COST 6 BLOCK 1d", "[1, 5, 5, -1, 0, 1]"),
    ] {
        assert_eq!(refusal(con, line), expected, "{line}");
    }
    // Nor if others wait before it, or another limit has no room yet.
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
    let _first = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h BLOCK 1d");
    for line in [
        "RL.FIXEDWINDOW k 5 1h COST 6 BLOCK 1d",
        "RL.ASK k p COST 6 BLOCK 1d",
        "RL.MULTI 2 k new BLOCK 1d LIMIT FIXEDWINDOW 5 1h ON 1 LIMIT GCRA 2 1 1h ON 2 COST 4",
    ] {
        assert_eq!(refusal(con, line).split(", ").nth(3), Some("-1"), "{line}");
    }
}

#[test]
fn what_time_alone_decides_and_would_come_after_the_timeout() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for (limiter, parameters) in [
        ("TOKENBUCKET", "1 1 1h"),
        ("TOKENBUCKET", "1 1 1h BATCH"),
        ("LEAKYBUCKET", "1 1 1h"),
        ("GCRA", "0 1 1h"),
        ("FIXEDWINDOW", "1 1h"),
        ("CALENDAR", "1 YEAR"),
        ("SLIDINGWINDOW", "1 1h"),
        ("SLIDINGWINDOW", "1 1h PRECISION 1m"),
        ("SLIDINGLOG", "1 1h"),
        ("UNIFORM", "1h"),
    ] {
        text(con, "DEL k");
        text(con, &format!("RL.POLICY SET p LIMIT {limiter} {parameters}"));
        ints(con, &format!("RL.{limiter} k {parameters}"));
        for line in [
            format!("RL.{limiter} k {parameters} BLOCK 10s"),
            format!("RL.MULTI 1 k BLOCK 10s LIMIT {limiter} {parameters}"),
            "RL.ASK k p BLOCK 10s".to_string(),
        ] {
            refusal(con, &line);
        }
    }
    // The last was a refusal with the ordinary reply.
    let reply = ints(con, "RL.UNIFORM k 1h BLOCK 10s");
    assert_eq!(reply[..3], [1, 1, 0]);
    assert!((3_500_000..=3_600_000).contains(&reply[3]), "{reply:?}");
}

#[test]
fn the_retry_that_counts_is_the_one_of_a_caller_that_asks_alone() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    // One each hour.
    ints(con, "RL.GCRA k 0 1 1h");
    let _others = ["1d"; 3].map(|block| Waiting::enter(&server, &format!("RL.GCRA k 0 1 1h BLOCK {block}")));
    // Alone it would be admitted within an hour. In line it takes four hours.
    let mut hopeful = Waiting::enter(&server, "RL.GCRA k 0 1 1h BLOCK 2h");
    refusal(con, "RL.GCRA k 0 1 1h BLOCK 30m");
    assert!(hopeful.waits());
}

#[test]
fn a_lease_may_end_before_the_timeout_so_its_callers_wait() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    ints(con, "RL.CONCURRENT k 1 1h a");
    let lines = [
        "RL.CONCURRENT k 1 1h b BLOCK 20s",
        "RL.MULTI 1 k BLOCK 20s LIMIT CONCURRENT 1 1h c",
        "RL.ASK k p ID d BLOCK 20s",
    ];
    let callers = lines.map(|line| Waiting::enter(&server, line));
    text(con, "DEL k");
    let [first, ..] = callers;
    assert_eq!(first.ints()[0], 0);
    // In one call with a limit that has no room before the timeout.
    ints(con, "RL.FIXEDWINDOW window 1 1h");
    refusal(con, "RL.MULTI 2 k window BLOCK 10s LIMIT CONCURRENT 1 1h e ON 1 LIMIT FIXEDWINDOW 1 1h ON 2");
}

#[test]
fn who_is_banned() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 9 1h LIMIT PENALTY 1 1m 1h");
    ints(con, "RL.PENALTY k 1 1m 1h");
    let parts = "LIMIT FIXEDWINDOW 9 1h LIMIT PENALTY 1 1m 1h";
    refusal(con, &format!("RL.MULTI 1 k BLOCK 1d {parts}"));
    refusal(con, "RL.ASK k p BLOCK 1d");
    // Also if another limit has no room.
    ints(con, "RL.FIXEDWINDOW full 9 1h COST 9");
    refusal(con, &format!("RL.MULTI 2 k full BLOCK 1d {parts}"));
    // A ban in a shadow does not count.
    let tried = "LIMIT FIXEDWINDOW 9 1h LIMIT PENALTY 1 1m 1h SHADOW";
    for limited in [0, 1] {
        assert_eq!(multi(con, &format!("RL.MULTI 1 new COST 9 {tried}")).0[0], limited);
    }
    assert_eq!(multi(con, &format!("RL.MULTIPEEK 1 new {tried}")).1[1][0], 1);
    let caller = Waiting::enter(&server, &format!("RL.MULTI 1 new BLOCK 1d {tried}"));
    multi(con, "RL.MULTIREFUND 1 new COST 1 LIMIT FIXEDWINDOW 9 1h");
    assert!(caller.text().starts_with("[[0, 9, 0, "));
}

#[test]
fn a_limit_in_shadow_makes_nobody_wait() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let line = "RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 0 1 1h SHADOW";
    for remaining in [8, 7] {
        assert_eq!(multi(con, line).0[..3], [0, 9, remaining]);
    }
}

#[test]
fn more_than_may_wait() {
    let server = Server::start(&[&PATIENT[..], &["--ratelimit.max-waiters", "3"]].concat());
    let con = &mut server.connection();
    text(con, "CONFIG SET ratelimit.max-waiters-per-key 2");
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    for key in ["a", "b", "c"] {
        ints(con, &format!("RL.CONCURRENT {key} 1 1h old"));
    }
    let lease = |key: &str, id: &str| format!("RL.CONCURRENT {key} 1 1h {id} BLOCK 1d");
    let first = Waiting::enter(&server, &lease("a", "1"));
    let mut second = Waiting::enter(&server, "RL.ASK a p ID 2 BLOCK 1d");
    // Two wait for this key.
    assert_eq!(refusal(con, &lease("a", "3")).get(..9), Some("[1, 1, 0,"));
    refusal(con, "RL.MULTI 1 a BLOCK 1d LIMIT CONCURRENT 1 1h 3");
    refusal(con, "RL.MULTI 2 b a BLOCK 1d LIMIT CONCURRENT 1 1h 3");
    refusal(con, "RL.ASK a p ID 3 BLOCK 1d");
    let mut third = Waiting::enter(&server, &lease("b", "3"));
    // Three wait in all.
    refusal(con, &lease("c", "4"));
    refusal(con, "RL.MULTI 1 c BLOCK 1d LIMIT CONCURRENT 1 1h 4");
    // Who leaves makes room, in both counts.
    drop(first);
    until_waiting(con, 2);
    let mut fourth = Waiting::enter(&server, &lease("a", "4"));
    refusal(con, &lease("a", "5"));
    text(con, "CONFIG SET ratelimit.max-waiters 4");
    refusal(con, &lease("a", "5"));
    let _fifth = Waiting::enter(&server, &lease("b", "5"));
    assert!(second.waits() && third.waits() && fourth.waits());
}

#[test]
fn those_who_wait_go_on_if_fewer_may() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    multi(con, "RL.MULTI 2 a b LIMIT CONCURRENT 1 1h old");
    let mut caller = Waiting::enter(&server, "RL.MULTI 2 a b BLOCK 1d LIMIT CONCURRENT 1 1h new");
    text(con, "CONFIG SET ratelimit.max-waiters 0 ratelimit.max-waiters-per-key 0");
    text(con, "RL.RELEASE a old");
    until_waiting(con, 1);
    assert!(caller.waits());
    text(con, "RL.RELEASE b old");
    assert!(caller.text().starts_with("[[0, "));
}

#[test]
fn everybody_if_nobody_may_wait() {
    for setting in ["max-waiters", "max-waiters-per-key"] {
        let name = format!("--ratelimit.{setting}");
        let server = Server::start(&[&name, "0"]);
        let con = &mut server.connection();
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h a BLOCK 1m")[0], 0, "{setting}");
        for line in ["RL.CONCURRENT k 1 1h b BLOCK 1m", "RL.MULTI 1 k BLOCK 0 LIMIT CONCURRENT 1 1h b"] {
            refusal(con, line);
        }
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h b BLOCK 1m")[..3], [1, 1, 0]);
    }
}

/// Calls that would wait, and such that fit.
const IN_VAIN: [&str; 3] = [
    "RL.CONCURRENT k 1 1h b BLOCK 1m",
    "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1h b",
    "RL.ASK k p ID b BLOCK 1m",
];
const AT_ONCE: [&str; 3] = [
    "RL.CONCURRENT new 1 1h b BLOCK 1m",
    "RL.MULTI 1 newer BLOCK 1m LIMIT CONCURRENT 1 1h b",
    "RL.ASK newest p ID b BLOCK 1m",
];

/// Checks that no caller waits. `run` runs lines and returns the reply of each.
fn expect_no_wait(run: impl Fn(&mut Connection, &[&str]) -> Vec<Value>) {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    ints(con, "RL.CONCURRENT k 1 1h a");
    let of = |reply: &Value| simple(reply).trim_start_matches('[').get(..2).map(str::to_string);
    for (lines, limited) in [(IN_VAIN, "1,"), (AT_ONCE, "0,")] {
        for reply in run(con, &lines) {
            assert_eq!(of(&reply).as_deref(), Some(limited), "{}", simple(&reply));
        }
    }
    assert_eq!((waiting(con), count(con, "waited_timeout")), (0, 0));
    // Also if others wait.
    let mut first = Waiting::enter(&server, "RL.CONCURRENT k 1 1h c BLOCK 1m");
    for reply in run(con, &IN_VAIN) {
        assert_eq!(of(&reply).as_deref(), Some("1,"), "{}", simple(&reply));
    }
    until_tried(&server);
    assert!(first.waits());
    text(con, "RL.RELEASE k a");
    assert_eq!(first.ints()[0], 0);
}

#[test]
fn in_a_transaction() {
    expect_no_wait(|con, lines| {
        text(con, "MULTI");
        for line in lines {
            assert_eq!(text(con, line), "QUEUED");
        }
        match call(con, &["EXEC"]).unwrap() {
            Value::Array(replies) => replies,
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn in_a_script() {
    const SCRIPT: &str = "return redis.call(unpack(ARGV))";
    expect_no_wait(|con, lines| {
        let run = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            call(con, &[&["EVAL", SCRIPT, "0"], &words[..]].concat()).unwrap()
        };
        lines.iter().map(run).collect()
    });
}

#[test]
fn in_a_function() {
    const LIBRARY: &str = "#!lua name=lib\n\
                           redis.register_function('run', function(_, args) return redis.call(unpack(args)) end)";
    expect_no_wait(|con, lines| {
        call(con, &["FUNCTION", "LOAD", "REPLACE", LIBRARY]).unwrap();
        let run = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            call(con, &[&["FCALL", "run", "0"], &words[..]].concat()).unwrap()
        };
        lines.iter().map(run).collect()
    });
}

#[test]
fn what_comes_after_the_longest_wait_that_is_allowed() {
    let server = Server::start(&["--ratelimit.max-block", "10000"]);
    let con = &mut server.connection();
    ints(con, "RL.FIXEDWINDOW k 1 1h");
    for block in ["0", "10s", "1d", "5200w"] {
        refusal(con, &format!("RL.FIXEDWINDOW k 1 1h BLOCK {block}"));
    }
    // The setting counts as of the arrival.
    text(con, "CONFIG SET ratelimit.max-block 86400000");
    let _callers = ["0", "1d", "5200w"]
        .map(|block| Waiting::enter(&server, &format!("RL.FIXEDWINDOW k 1 1h BLOCK {block}")));
    refusal(con, "RL.FIXEDWINDOW k 1 1h BLOCK 10s");
    assert_eq!(waiting(con), 3);
}
