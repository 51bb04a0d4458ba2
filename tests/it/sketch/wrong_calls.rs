//! Calls that are errors, and change nothing.

use redis::Connection;

use super::{START, ask};
use crate::support::harmless::{error_of, harmless_error, words};
use crate::support::{Server, WRONG_TYPE, text};

/// What makes a sketch of the key `k`.
const MAKE: &str = "RL.SKETCH k a 9 10 10s";

fn syntax(text: &str) -> String {
    format!("ERR syntax error{text}")
}

#[test]
fn the_error_says_what_is_wrong() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let arity = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    let is_not = |option: &str, command: &str| syntax(&format!(": {option} is not for {command}"));
    let mut calls = vec![
        ("RL.SKETCH k", arity("rl.sketch")),
        ("RL.SKETCH k a 9 10", arity("rl.sketch")),
        ("RL.PEEK k SKETCH", arity("rl.peek")),
        ("RL.PEEK k SKETCH a", syntax(": max_burst is missing")),
        ("RL.PEEK k SKETCH a 9 10", syntax(": period is missing")),
        (
            "RL.SKETCH k a -1 10 10s",
            "ERR max_burst must be an integer from 0 to 9007199254740991; got '-1'".into(),
        ),
        (
            "RL.SKETCH k a x 10 10s",
            "ERR max_burst must be an integer from 0 to 9007199254740991; got 'x'".into(),
        ),
        (
            "RL.SKETCH k 9 10 10s 1",
            "ERR count must be an integer from 1 to 9007199254740991; got '10s'".into(),
        ),
        ("RL.SKETCH k a 9 0 10s", "ERR count must be an integer from 1 to 9007199254740991; got '0'".into()),
        ("RL.SKETCH k a 9 10 0", "ERR period must be from 1ms to 36500d; got '0'".into()),
        ("RL.SKETCH k a 9 10 10", "ERR period needs a unit: 10ms, 10s or 10m".into()),
        (
            "RL.SKETCH k a 9 10 10y",
            "ERR period must be a whole number with ms, s, m, h, d or w, such as 90s; got '10y'".into(),
        ),
        ("RL.SKETCH k a 1 1 36500d", "ERR limit would take too long to refill".into()),
        (
            "RL.SKETCH k a 9 10 10s COST -1",
            "ERR COST must be an integer from 0 to 9007199254740991; got '-1'".into(),
        ),
        ("RL.SKETCH k a 9 10 10s COST 1 COST 1", syntax(": COST is given twice")),
        (
            "RL.SKETCH k a 9 10 10s AT 1700000000",
            "ERR AT must be Unix time in microseconds; got '1700000000'".into(),
        ),
        ("RL.SKETCH k a 9 10 10s AT", syntax(": AT needs a value")),
        ("RL.SKETCH k a 9 10 10s items", syntax(" near 'items'")),
        ("RL.SKETCH k a 9 10 10s b 9 10 10s", syntax(" near 'b'")),
        // What other limiters and commands take.
        ("RL.GCRA k 9 10 10s WIDTH 8", is_not("WIDTH", "RL.GCRA")),
        ("RL.GCRA k 9 10 10s DEPTH 8", is_not("DEPTH", "RL.GCRA")),
        ("RL.MULTI 1 k LIMIT SKETCH a 9 10 10s", is_not("SKETCH", "RL.MULTI (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT UNIFORM 1s LIMIT SKETCH a 9 10 10s", is_not("SKETCH", "RL.MULTI (LIMIT 2)")),
        ("RL.MULTIPEEK 1 k LIMIT SKETCH a 9 10 10s", is_not("SKETCH", "RL.MULTIPEEK (LIMIT 1)")),
        ("RL.MULTIREFUND 1 k LIMIT SKETCH a 9 10 10s", is_not("SKETCH", "RL.MULTIREFUND (LIMIT 1)")),
        (
            "RL.MULTISETTLE 1 k id COST 1 LIMIT SKETCH a 9 10 10s",
            is_not("SKETCH", "RL.MULTISETTLE (LIMIT 1)"),
        ),
        ("RL.POLICY SET api LIMIT SKETCH a 9 10 10s", is_not("SKETCH", "RL.POLICY (LIMIT 1)")),
        ("RL.REFUND k SKETCH a 9 10 10s", is_not("SKETCH", "RL.REFUND")),
        ("RL.REFUND k RL.SKETCH a 9 10 10s", is_not("SKETCH", "RL.REFUND")),
        ("RL.SETTLE k id SKETCH a 9 10 10s COST 1", is_not("SKETCH", "RL.SETTLE")),
    ];
    for (option, line) in [
        ("PARTIAL", "RL.SKETCH k a 9 10 10s PARTIAL"),
        ("FORCE", "RL.SKETCH k a 9 10 10s FORCE"),
        ("RESERVE", "RL.SKETCH k a 9 10 10s RESERVE"),
        ("MAXWAIT", "RL.SKETCH k a 9 10 10s MAXWAIT 1ms"),
        ("HOLD", "RL.SKETCH k a 9 10 10s HOLD id 1m"),
        ("BLOCK", "RL.SKETCH k a 9 10 10s BLOCK 1s"),
        ("SHADOW", "RL.SKETCH k a 9 10 10s SHADOW"),
        ("ON", "RL.SKETCH k a 9 10 10s ON 1"),
        ("LIMIT", "RL.SKETCH k a 9 10 10s LIMIT UNIFORM 1s"),
        ("BATCH", "RL.SKETCH k a 9 10 10s BATCH"),
    ] {
        calls.push((line, is_not(option, "RL.SKETCH")));
    }
    for (line, expected) in calls {
        assert_eq!(error_of(con, MAKE, &words(line)), expected, "{line}");
    }
    // A probe takes what the command takes.
    for option in ["PARTIAL", "FORCE", "RESERVE", "HOLD id 1m", "BLOCK 1s"] {
        let line = format!("RL.PEEK k SKETCH a 9 10 10s {option}");
        let expected = is_not(option.split(' ').next().unwrap(), "RL.PEEK");
        assert_eq!(error_of(con, MAKE, &words(&line)), expected, "{line}");
    }
}

#[test]
fn a_sketch_is_the_wrong_type_for_all_other_commands() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, "k a 9 10 10s", 0);
    for line in [
        "RL.GCRA k 9 10 10s",
        "RL.GCRA k 9 10 10s COST 0",
        "RL.TOKENBUCKET k 9 10 10s",
        "RL.FIXEDWINDOW k 9 10s FORCE",
        "RL.SLIDINGLOG k 9 10s HOLD id 1m",
        "RL.CONCURRENT k 9 10s id",
        "RL.SHED k 0.5",
        "RL.THROTTLE k 9 10 10",
        "RL.REFUND k GCRA 9 10 10s",
        "RL.SETTLE k id GCRA 9 10 10s COST 1",
        "RL.PEEK k GCRA 9 10 10s",
        "RL.MULTI 1 k LIMIT GCRA 9 10 10s",
        "RL.MULTI 2 other k LIMIT GCRA 9 10 10s",
        "RL.MULTIPEEK 1 k LIMIT GCRA 9 10 10s",
        "RL.MULTIREFUND 1 k LIMIT GCRA 9 10 10s",
        "RL.MULTISETTLE 1 k id COST 1 LIMIT GCRA 9 10 10s",
        "RL.XADD k 9 * f v",
        "RL.LPUSH k 9 a",
        "GET k",
        "LPUSH k a",
    ] {
        let told = harmless_error(con, &words(line));
        assert!(
            told == WRONG_TYPE || told.starts_with("WRONGTYPE the key holds SKETCH, not "),
            "{line}: {told}"
        );
    }
    text(con, "RL.POLICY SET api LIMIT GCRA 9 10 10s");
    for line in ["RL.ASK k api", "RL.ASK other api KEYS k", "RL.ASKPEEK k api", "RL.ASKREFUND k api"] {
        let told = harmless_error(con, &words(line));
        assert_eq!(told, "WRONGTYPE the key holds SKETCH, not limits", "{line}");
    }
}

#[test]
fn any_other_key_is_the_wrong_type_for_rl_sketch() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let wrong = |con: &mut Connection, make: &str| {
        text(con, "FLUSHALL");
        text(con, make);
        for line in [
            format!("RL.SKETCH k a 9 10 10s AT {START}"),
            "RL.SKETCH k a 9 10 10s COST 0".into(),
            "RL.SKETCH k a 9 10 10s COST 11 WIDTH 8 DEPTH 1".into(),
            "RL.PEEK k SKETCH a 9 10 10s".into(),
        ] {
            let told = harmless_error(con, &words(&line));
            let is_own = make.starts_with("RL.") && told.ends_with(", not SKETCH");
            assert!(
                told == WRONG_TYPE || is_own && told.starts_with("WRONGTYPE the key holds "),
                "{line}: {told}"
            );
        }
    };
    for make in [
        "RL.GCRA k 9 10 10s",
        "RL.FIXEDWINDOW k 9 1h HOLD id 1m",
        "RL.MULTI 1 k LIMIT GCRA 9 10 10s LIMIT UNIFORM 1h",
        "RL.MULTI 1 k LIMIT GCRA 9 10 10s SHADOW",
        "RL.CONCURRENT k 9 1h id",
        "RL.SHED k 0.5",
        "SET k text",
        "RPUSH k a",
        "XADD k * f v",
        "HSET k f v",
        "SADD k a",
        "ZADD k 1 a",
    ] {
        wrong(con, make);
    }
}
