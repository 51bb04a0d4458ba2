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

#[test]
fn tenants_that_are_missing_or_wrong() {
    let (_server, mut con) = server();
    let con = &mut con;
    for (call, limits) in CALLS.iter().filter(|(_, limits)| limits.is_empty()) {
        for (options, expected) in [
            ("TENANT", syntax(": TENANT needs a value")),
            ("TENANT a TENANT b", syntax(": TENANT is given twice")),
            ("TENANT a WEIGHT 1 WEIGHT 1", syntax(": WEIGHT is given twice")),
            ("WEIGHT 2", syntax(": WEIGHT needs TENANT")),
            ("TENANT a WEIGHT", syntax(": WEIGHT needs a value")),
            ("TENANT a WEIGHT 0", "ERR WEIGHT must be an integer from 1 to 1000; got '0'".into()),
            ("TENANT a WEIGHT 1001", "ERR WEIGHT must be an integer from 1 to 1000; got '1001'".into()),
            ("TENANT a WEIGHT x", "ERR WEIGHT must be an integer from 1 to 1000; got 'x'".into()),
            ("FAIR", syntax(": FAIR is not for COMMAND")),
        ] {
            let command = call.split(' ').next().unwrap_or_default();
            let expected = expected.replace("COMMAND", command);
            expect(con, &format!("{call} BLOCK 1s {options} {limits}"), &expected);
        }
        let long = format!("{call} BLOCK 1s TENANT {} {limits}", "t".repeat(257));
        expect(con, &long, "ERR TENANT must be 1 to 256 bytes");
        // A policy may have leases, and a call of it asks nothing of a rate.
        if !call.contains("CONCURRENT") && !call.contains("ASK") {
            expect(con, &format!("{call} TENANT a"), &syntax(": TENANT needs BLOCK"));
        }
    }
    let empty: Vec<&[u8]> = vec![b"RL.CONCURRENT", b"k", b"5", b"1h", b"id", b"TENANT", b""];
    assert_eq!(error_of(con, VALID, &empty), "ERR TENANT must be 1 to 256 bytes");
}

#[test]
fn commands_without_tenants() {
    let (_server, mut con) = server();
    let con = &mut con;
    for (line, command) in [
        ("RL.SMOOTH k 9 1h", "RL.SMOOTH"),
        ("RL.PENALTY k 3 1m 1m", "RL.PENALTY"),
        ("RL.SHED k 0.9", "RL.SHED"),
        ("RL.THROTTLE k 9 1 60 1", "RL.THROTTLE"),
        ("CL.THROTTLE k 9 1 60 1", "CL.THROTTLE"),
        ("RL.PEEK k CONCURRENT 5 1h id", "RL.PEEK"),
        ("RL.REFUND k GCRA 9 10 1000s", "RL.REFUND"),
        ("RL.RELEASE k id", "RL.RELEASE"),
        ("RL.ASKPEEK k api", "RL.ASKPEEK"),
        ("RL.ASKREFUND k api", "RL.ASKREFUND"),
    ] {
        expect(con, &format!("{line} TENANT a"), &syntax(&format!(": TENANT is not for {command}")));
    }
    for (line, command) in [
        ("RL.SETTLE k id GCRA 9 10 1000s COST 1 TENANT a WEIGHT 1", "WEIGHT is not for RL.SETTLE"),
        ("RL.ASKSETTLE k api id COST 1 TENANT a WEIGHT 1", "WEIGHT is not for RL.ASKSETTLE"),
        ("RL.MULTIPEEK 1 k LIMIT CONCURRENT 5 1h id TENANT a", "TENANT is not for RL.MULTIPEEK (LIMIT 1)"),
        ("RL.MULTIREFUND 1 k LIMIT GCRA 9 10 1000s TENANT a", "TENANT is not for RL.MULTIREFUND (LIMIT 1)"),
        (
            "RL.MULTISETTLE 1 k id COST 1 LIMIT GCRA 9 10 1000s TENANT a WEIGHT 1",
            "WEIGHT is not for RL.MULTISETTLE (LIMIT 1)",
        ),
        ("RL.MULTI 1 k BLOCK 1s LIMIT SMOOTH 9 1h TENANT a", "TENANT is not for SMOOTH (LIMIT 1)"),
    ] {
        expect(con, line, &syntax(&format!(": {command}")));
    }
}

#[test]
fn tenants_of_one_of_several_limits() {
    let (_server, mut con) = server();
    let con = &mut con;
    for (line, expected) in [
        ("RL.MULTI 1 k BLOCK 1s TENANT a LIMIT GCRA 9 10 1000s", "TENANT belongs in a LIMIT"),
        ("RL.MULTI 1 k LIMIT GCRA 9 10 1000s TENANT a", "TENANT needs BLOCK (LIMIT 1)"),
        ("RL.MULTI 1 k LIMIT CONCURRENT 5 1h id WEIGHT 2", "WEIGHT needs TENANT (LIMIT 1)"),
        (
            "RL.MULTI 2 k other LIMIT CONCURRENT 5 1h id TENANT a",
            "TENANT needs ON, as there are several keys (LIMIT 1)",
        ),
        (
            "RL.MULTI 2 k other LIMIT CONCURRENT 5 1h id ON 1 TENANT a LIMIT CONCURRENT 5 1h id ON 2 TENANT a",
            "TENANT is given twice (LIMIT 2)",
        ),
        ("RL.POLICY SET other LIMIT CONCURRENT 5 1h TENANT a", "TENANT is not for a policy (LIMIT 1)"),
        ("RL.POLICY SET other FAIR LIMIT CONCURRENT 5 1h", "FAIR belongs in a LIMIT"),
        ("RL.POLICY SET other LIMIT SMOOTH 5 1h FAIR", "FAIR is not for SMOOTH (LIMIT 1)"),
        ("RL.POLICY SET other LIMIT PENALTY 5 1h 1h FAIR", "FAIR is not for PENALTY (LIMIT 1)"),
        (
            "RL.POLICY SET other LIMIT GCRA 9 10 1s FAIR SHADOW",
            "FAIR and SHADOW exclude each other (LIMIT 1)",
        ),
        (
            "RL.POLICY SET other SHADOW LIMIT GCRA 9 10 1s FAIR",
            "FAIR and SHADOW exclude each other (LIMIT 1)",
        ),
        (
            "RL.POLICY SET other LIMIT GCRA 9 10 1s FAIR LIMIT CONCURRENT 5 1h FAIR",
            "FAIR is given twice (LIMIT 2)",
        ),
        (
            "RL.POLICY SET other LIMIT GCRA 9 10 1s ON 2 LIMIT CONCURRENT 5 1h FAIR",
            "FAIR needs ON, as there are several keys (LIMIT 2)",
        ),
    ] {
        expect(con, line, &syntax(&format!(": {expected}")));
    }
}

#[test]
fn a_fair_policy_takes_a_tenant_for_one_key() {
    let (_server, mut con) = server();
    let con = &mut con;
    text(con, "RL.POLICY SET api VERSION 7 LIMIT CONCURRENT 5 1h FAIR");
    let error = error_of(con, VALID, &words("RL.ASK k api ID id TENANT a KEYS other"));
    assert_eq!(error, "ERR policy 'api' has a FAIR limit without ON, which takes one key");
    assert_eq!(error_of(con, VALID, &words("RL.ASK k api TENANT a")), "ERR policy 'api' needs an ID");
}
