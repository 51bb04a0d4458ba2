//! Calls with a wrong `BLOCK`, and the exact errors. None of them changes anything.

use redis::Connection;

use crate::support::harmless::{error_of, words};
use crate::support::{Server, text};

/// A call that makes the key `k`, so that errors are tried with a key in use, too.
const VALID: &str = "RL.GCRA k 9 10 1000s";

/// The commands that wait, without `BLOCK` and behind it.
const CALLS: [(&str, &str); 11] = [
    ("RL.TOKENBUCKET k 5 1 1h", ""),
    ("RL.LEAKYBUCKET k 5 1 1h", ""),
    ("RL.GCRA k 9 10 1000s", ""),
    ("RL.FIXEDWINDOW k 5 1h", ""),
    ("RL.CALENDAR k 5 DAY", ""),
    ("RL.SLIDINGWINDOW k 5 1h", ""),
    ("RL.SLIDINGLOG k 5 1h", ""),
    ("RL.UNIFORM k 1h", ""),
    ("RL.CONCURRENT k 5 1h id", ""),
    ("RL.MULTI 1 k", "LIMIT GCRA 9 10 1000s"),
    ("RL.ASK k api", ""),
];

fn server() -> (Server, Connection) {
    let server = Server::start(&[]);
    let mut con = server.connection();
    text(&mut con, "RL.POLICY SET api LIMIT GCRA 9 10 1000s");
    (server, con)
}

/// Checks the error, which leaves everything as it is.
fn expect(con: &mut Connection, line: &str, expected: &str) {
    assert_eq!(error_of(con, VALID, &words(line)), expected, "{line}");
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]", "{line}");
}

fn syntax(text: &str) -> String {
    format!("ERR syntax error{text}")
}

#[test]
fn options_that_exclude_a_wait() {
    let (_server, mut con) = server();
    let con = &mut con;
    for (call, limits) in CALLS {
        for (option, expected) in [
            ("AT 1700000000000000", ": BLOCK and AT exclude each other"),
            ("COST 0", ": BLOCK needs a COST above 0"),
            ("BLOCK 2s", ": BLOCK is given twice"),
            ("BLOCK 0", ": BLOCK is given twice"),
        ] {
            expect(con, &format!("{call} BLOCK 1s {option} {limits}"), &syntax(expected));
            expect(con, &format!("{call} {option} BLOCK 1s {limits}"), &syntax(expected));
        }
        // A lease is never forced.
        let expected = if call.contains("CONCURRENT") {
            syntax(": FORCE is not for RL.CONCURRENT")
        } else {
            syntax(": BLOCK and FORCE exclude each other")
        };
        expect(con, &format!("{call} BLOCK 0 FORCE {limits}"), &expected);
        expect(con, &format!("{call} force block 0 {limits}"), &expected);
    }
    for call in CALLS.map(|(call, _)| call).iter().filter(|call| call.contains("BUCKET")) {
        let expected = syntax(": BLOCK and PARTIAL exclude each other");
        expect(con, &format!("{call} BLOCK 1s PARTIAL"), &expected);
        expect(con, &format!("{call} PARTIAL COST 2 BLOCK 1s"), &expected);
    }
    for call in ["RL.TOKENBUCKET k 5 1 1h", "RL.GCRA k 9 10 1000s", "RL.UNIFORM k 1h"] {
        let expected = syntax(": BLOCK and RESERVE exclude each other");
        expect(con, &format!("{call} BLOCK 1s RESERVE MAXWAIT 1s"), &expected);
        expect(con, &format!("{call} RESERVE BLOCK 1s"), &expected);
    }
    expect(con, "RL.GCRA k 9 10 1000s BLOCK 1s MAXWAIT 1s", &syntax(": MAXWAIT needs RESERVE"));
    expect(
        con,
        "RL.SLIDINGLOG k 5 1h COUNTREFUSED BLOCK 1s",
        &syntax(": BLOCK and COUNTREFUSED exclude each other"),
    );
}

#[test]
fn commands_that_never_wait() {
    let (_server, mut con) = server();
    let con = &mut con;
    for (line, command) in [
        ("RL.SMOOTH k 9 1h BLOCK 1s", "RL.SMOOTH"),
        ("RL.PENALTY k 3 1m 1m BLOCK 1s", "RL.PENALTY"),
        ("RL.SHED k 0.9 BLOCK 1s", "RL.SHED"),
        ("RL.THROTTLE k 9 1 60 1 BLOCK 1s", "RL.THROTTLE"),
        ("CL.THROTTLE k 9 1 60 1 BLOCK 1s", "CL.THROTTLE"),
        ("RL.PEEK k GCRA 9 10 1000s BLOCK 1s", "RL.PEEK"),
        ("RL.REFUND k GCRA 9 10 1000s BLOCK 1s", "RL.REFUND"),
        ("RL.SETTLE k id GCRA 9 10 1000s COST 1 BLOCK 1s", "RL.SETTLE"),
        ("RL.MULTIPEEK 1 k BLOCK 1s LIMIT GCRA 9 10 1000s", "RL.MULTIPEEK"),
        ("RL.MULTIREFUND 1 k BLOCK 1s LIMIT GCRA 9 10 1000s", "RL.MULTIREFUND"),
        ("RL.MULTISETTLE 1 k id BLOCK 1s COST 1 LIMIT GCRA 9 10 1000s", "RL.MULTISETTLE"),
        ("RL.ASKPEEK k api BLOCK 1s", "RL.ASKPEEK"),
        ("RL.ASKREFUND k api BLOCK 1s", "RL.ASKREFUND"),
        ("RL.ASKSETTLE k api id COST 1 BLOCK 1s", "RL.ASKSETTLE"),
        ("RL.POLICY SET other BLOCK 1s LIMIT GCRA 9 10 1000s", "a policy"),
    ] {
        expect(con, line, &syntax(&format!(": BLOCK is not for {command}")));
    }
}

#[test]
fn a_wait_for_one_of_several_limits() {
    let (_server, mut con) = server();
    let con = &mut con;
    let belongs = syntax(": BLOCK belongs before the first LIMIT (LIMIT 1)");
    expect(con, "RL.MULTI 1 k LIMIT GCRA 9 10 1000s BLOCK 1s", &belongs);
    expect(con, "RL.MULTI 1 k BLOCK 1s LIMIT GCRA 9 10 1000s BLOCK 1s", &belongs);
    for (line, command) in [
        ("RL.MULTIPEEK 1 k LIMIT GCRA 9 10 1000s BLOCK 1s", "RL.MULTIPEEK"),
        ("RL.MULTIREFUND 1 k LIMIT GCRA 9 10 1000s BLOCK 1s", "RL.MULTIREFUND"),
        ("RL.POLICY SET other LIMIT GCRA 9 10 1000s BLOCK 1s", "a policy"),
    ] {
        expect(con, line, &syntax(&format!(": BLOCK is not for {command} (LIMIT 1)")));
    }
}

#[test]
fn timeouts_that_are_missing_or_wrong() {
    let (_server, mut con) = server();
    let con = &mut con;
    for (call, limits) in CALLS {
        expect(con, &format!("{call} BLOCK {limits}"), &syntax(": BLOCK needs a value"));
        for timeout in ["-1", "x", "1.5", "0x1", "1y", "99999999999999999999", "BLOCK", "COST"] {
            let fits = "a whole number with ms, s, m, h, d or w, such as 90s";
            let expected = format!("ERR BLOCK must be {fits}; got '{timeout}'");
            expect(con, &format!("{call} BLOCK {timeout} {limits}"), &expected);
        }
        let (too_long, bare) = (format!("{call} BLOCK 36501d {limits}"), format!("{call} BLOCK 30 {limits}"));
        expect(con, &too_long, "ERR BLOCK must be from 0ms to 36500d; got '36501d'");
        expect(con, &bare, "ERR BLOCK needs a unit: 30ms, 30s or 30m");
    }
}
