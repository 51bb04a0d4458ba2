//! Keys and ids: of another type, of any bytes, of any length; and option words in any case and order.

use redis::{Connection, Value};

use crate::support::harmless::{error_of, harmless_error, probe_of, words};
use crate::support::{Server, WRONG_TYPE, call_bytes, error, ints, text};

const ID_LENGTH: &str = "ERR id must be 1 to 256 bytes";

/// One call of each limiter and mode: none may touch what another one left under the key.
const LIMITERS: &[&str] = &[
    "RL.TOKENBUCKET k 10 1 1000s",
    "RL.TOKENBUCKET k 10 1 1000s BATCH",
    "RL.GCRA k 9 1 1000s",
    "RL.SLIDINGWINDOW k 10 1000s",
    "RL.SLIDINGWINDOW k 10 1000s PRECISION 10s",
    "RL.LEAKYBUCKET k 10 1 1000s",
    "RL.FIXEDWINDOW k 10 1000s",
    "RL.FIXEDWINDOW k 10 1000s ALIGNED",
    "RL.SLIDINGLOG k 10 1000s",
    "RL.CONCURRENT k 10 1000s id",
];
const LEASES: &[&str] = &["RL.RELEASE k id", "RL.RENEW k 1s id"];
const OTHERS: [&str; 6] = [
    "RL.INFO k",
    "RL.SKETCH k item 9 1 1s",
    "RL.SKETCH k item 9 1 1s COST 11 WIDTH 8 DEPTH 1",
    "RL.PEEK k SKETCH item 9 1 1s",
    "RL.EXPLAIN RL.GCRA k 9 1 1s",
    "RL.EXPLAIN RL.MULTI 1 k LIMIT GCRA 9 1 1s",
];

/// Bytes that C strings, UTF-8, lines of text and formats stumble over; `CRITICAL` and `COST` stumble over themselves.
const AWKWARD: &[&[u8]] = &[
    b"\0",
    b"a\0b",
    b"a\0c",
    b"\n",
    b"\r\n$3\r\nfoo\r\n",
    b"\xff",
    b"\xff\0\n\xfe",
    b"\xc3\x28",
    b" ",
    b"%s%n",
    b"COST",
    b"CRITICAL",
];

/// A call that decides, the same as a look, as one of a cost that never fits, and as a probe.
fn variants(line: &str) -> [String; 4] {
    [line.to_string(), format!("{line} COST 0"), format!("{line} COST 11"), probe_of(line)]
}

#[test]
fn a_key_of_another_type_is_refused_and_left_alone() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for foreign in [
        "SET k 1700000000000000",
        "SETBIT k 100 1",
        "RPUSH k a b",
        "SADD k a",
        "SADD k 1",
        "HSET k field value",
        "ZADD k 1 a",
        "XADD k 1-1 field value",
        "PFADD k a",
    ] {
        text(&mut con, "FLUSHALL");
        text(&mut con, foreign);
        text(&mut con, "PEXPIRE k 1000000");
        let limiters = LIMITERS.iter().flat_map(|line| variants(line));
        let others = LEASES.iter().chain(&OTHERS).map(ToString::to_string);
        for line in limiters.chain(others) {
            assert_eq!(harmless_error(&mut con, &words(&line)), WRONG_TYPE, "{line} after {foreign}");
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn another_limiter_or_mode_on_a_key_is_another_limit() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for owner in LIMITERS {
        text(&mut con, "FLUSHALL");
        assert_eq!(ints(&mut con, owner)[..3], [0, 10, 9]);
        for line in LEASES.iter().filter(|_| !owner.contains("CONCURRENT")) {
            assert_eq!(ints(&mut con, line), [0], "{line} after {owner}");
        }
        for line in LIMITERS.iter().filter(|line| *line != owner) {
            // It answers as on a key of its own.
            for line in variants(line) {
                let alone = ints(&mut con, &line.replace(" k ", " alone "));
                assert_eq!(ints(&mut con, &line)[..3], alone[..3], "{line} beside {owner}");
            }
            text(&mut con, "DEL alone");
            // And the first one has lost nothing. What does not belong to a mode is no mode.
            let cost = if owner.contains("CONCURRENT") { "RESERVED 1 CRITICAL COST 0" } else { "COST 0" };
            assert_eq!(ints(&mut con, &format!("{owner} {cost}"))[..3], [0, 10, 9], "{owner} beside {line}");
        }
        assert!(text(&mut con, "RL.INFO k").contains(&format!("stored_limits, {}", LIMITERS.len())));
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn commands_for_other_types_refuse_a_limiter() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for owner in LIMITERS.iter().chain(&["RL.SKETCH k item 9 1 1000s"]) {
        text(&mut con, "FLUSHALL");
        ints(&mut con, owner);
        for line in [
            "GET k",
            "INCR k",
            "LPUSH k a",
            "SADD k a",
            "HSET k a b",
            "ZADD k 1 a",
            "XADD k * a b",
            "RL.XADD k 9 * a b",
            "RL.LPUSH k 9 a",
        ] {
            assert_eq!(harmless_error(&mut con, &words(line)), WRONG_TYPE, "{line} after {owner}");
        }
        assert_eq!(text(&mut con, "TYPE k"), "ratelimit");
    }
    // The other way round the core decides: SET takes any key, and the limiter begins anew after DEL.
    text(&mut con, "SET k 1");
    assert_eq!(error(&mut con, LIMITERS[0]), WRONG_TYPE);
    text(&mut con, "DEL k");
    assert_eq!(ints(&mut con, LIMITERS[0])[..3], [0, 10, 9]);
}

#[test]
fn an_id_has_1_to_256_bytes() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let valid = "RL.CONCURRENT k 10 1000s id";
    for id in [&b""[..], &[b'x'; 257], &[0; 257], &[0xff; 10_000]] {
        for line in [
            &[b"RL.CONCURRENT", &b"k"[..], b"10", b"1s", id][..],
            &[b"RL.CONCURRENT", b"k", b"10", b"1s", id, b"COST", b"0"],
            &[b"RL.PEEK", b"k", b"CONCURRENT", b"10", b"1s", id],
            &[b"RL.RELEASE", b"k", id],
            &[b"RL.RENEW", b"k", b"1s", id],
        ] {
            let shown = line[0].escape_ascii();
            assert_eq!(error_of(&mut con, valid, line), ID_LENGTH, "{shown} with {} bytes", id.len());
        }
    }
    for id in [&b"x"[..], &[b'x'; 256], &[0; 256], &[0xff; 256]] {
        text(&mut con, "FLUSHALL");
        lease_lives_and_ends(&mut con, id);
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn an_id_may_be_any_bytes() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for id in AWKWARD {
        lease_lives_and_ends(&mut con, id);
    }
    // None is taken for another one: not for what stands before its NUL, nor for its text.
    for (n, id) in AWKWARD.iter().enumerate() {
        let reply = call_bytes(&mut con, &[b"RL.CONCURRENT", b"k", b"100", b"1000s", id]).unwrap();
        assert_eq!(integers(&reply)[..3], [0, 100, 99 - i64::try_from(n).unwrap()], "{}", id.escape_ascii());
    }
}

fn lease_lives_and_ends(con: &mut Connection, id: &[u8]) {
    let shown = id.escape_ascii();
    let mut ask = |words: &[&[u8]]| integers(&call_bytes(con, words).unwrap());
    assert_eq!(ask(&[b"RL.RENEW", b"k", b"1000s", id]), [0], "{shown} is not held yet");
    assert_eq!(ask(&[b"RL.CONCURRENT", b"k", b"1", b"1000s", id]), [0, 1, 0, 0, 1_000_000], "{shown}");
    // The limit is full, and yet the holder may ask again.
    assert_eq!(ask(&[b"RL.CONCURRENT", b"k", b"1", b"1000s", b"other"])[..3], [1, 1, 0], "{shown}");
    assert_eq!(ask(&[b"RL.PEEK", b"k", b"CONCURRENT", b"1", b"1000s", id])[..4], [0, 1, 0, 0], "{shown}");
    assert_eq!(ask(&[b"RL.CONCURRENT", b"k", b"1", b"1000s", id])[..4], [0, 1, 0, 0], "{shown}");
    assert_eq!(ask(&[b"RL.RENEW", b"k", b"1000s", id]), [1], "{shown}");
    assert_eq!(ask(&[b"RL.RELEASE", b"k", id]), [1], "{shown}");
    assert_eq!(ask(&[b"RL.RELEASE", b"k", id]), [0], "{shown}");
    assert_eq!(ask(&[b"EXISTS", b"k"]), [0], "the last lease leaves no key");
}

#[test]
fn a_key_may_be_any_bytes() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let keys: Vec<&[u8]> = AWKWARD.iter().copied().chain([&b""[..], &[0xff; 10_000]]).collect();
    for line in LIMITERS {
        text(&mut con, "FLUSHALL");
        // Twice, so that a key which was taken for another one would show.
        for remaining in [9, 8] {
            for key in &keys {
                let mut words = words(line);
                words[1] = key;
                // Another lease the second time.
                if let Some(id) = words.get_mut(4).filter(|word| **word == b"id" && remaining == 8) {
                    *id = b"another";
                }
                let reply = integers(&call_bytes(&mut con, &words).unwrap());
                assert_eq!(reply[..3], [0, 10, remaining], "{line} on {}", key.escape_ascii());
            }
        }
        assert_eq!(ints(&mut con, "DBSIZE"), [i64::try_from(keys.len()).unwrap()]);
        let probe = probe_of(line);
        for key in &keys {
            let mut words = words(&probe);
            words[1] = key;
            assert_eq!(integers(&call_bytes(&mut con, &words).unwrap())[..3], [0, 10, 8], "{probe}");
            let Value::Array(description) = call_bytes(&mut con, &[b"RL.INFO", key]).unwrap() else {
                panic!("{line}: RL.INFO is no map");
            };
            assert!(!description.is_empty(), "{line}");
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

fn integers(reply: &Value) -> Vec<i64> {
    let integer = |value: &Value| match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no integer"),
    };
    match reply {
        Value::Array(elements) => elements.iter().map(integer).collect(),
        other => vec![integer(other)],
    }
}

#[test]
fn option_words_may_come_in_any_case_and_order() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (line, options) in [
        ("rl.tokenbucket k 10 1 1s", &["batch", "CoSt 2", "at 1700000000000000"][..]),
        ("Rl.TokenBucket k 10 1 1s", &["cost 2", "At 1700000000000000"]),
        ("RL.gcra k 9 1 1s", &["cOST 2", "aT 1700000000000000"]),
        ("rl.slidingwindow k 10 1s", &["Precision 10ms", "Cost 2", "AT 1700000000000000"]),
        ("rl.concurrent k 11 1s id", &["reserved 1", "cost 2", "at 1700000000000000"]),
        ("rl.concurrent k 10 1s id", &["critical", "reserved 1", "COST 2", "at 1700000000000000"]),
    ] {
        for turn in 0..options.len() {
            for mut options in [options.to_vec(), options.iter().rev().copied().collect()] {
                options.rotate_left(turn);
                text(&mut con, "FLUSHALL");
                let line = format!("{line} {}", options.join(" "));
                let probe = probe_of(&line.replacen(&line[..3], "RL.", 1));
                assert_eq!(ints(&mut con, &probe), [0, 10, 10, 0, 0], "{probe}");
                assert_eq!(ints(&mut con, &line)[..4], [0, 10, 8, 0], "{line}");
            }
        }
    }
    assert_eq!(ints(&mut con, "rl.renew k 1s id at 1700000000000000"), [1]);
    assert_eq!(ints(&mut con, "rl.release k id aT 1700000000000000"), [1]);
}
