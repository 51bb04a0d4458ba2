//! Requests that cannot be parsed: the exact error, nothing changed, and a server that goes on.
//!
//! Numbers have their own file, `numbers.rs`; keys of another type and ids are in `keys_and_ids.rs`.

use std::fs;

use redis::Connection;

use crate::support::harmless::{error_of, harmless_error, probe_of, words};
use crate::support::{Server, call_bytes, ints, text};

const SYNTAX: &str = "ERR syntax error";
const MALFORMED: &str = "ERR malformed payload, or one of a newer version";

#[test]
fn too_few_arguments_are_told_with_the_name_of_the_command() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    // A valid call: each shorter one lacks something, in whatever case it is typed.
    for line in [
        "RL.TOKENBUCKET k 10 1 1000",
        "RL.GCRA k 9 1 1000",
        "RL.SLIDINGWINDOW k 10 1000",
        "RL.LEAKYBUCKET k 10 1 1000",
        "RL.FIXEDWINDOW k 10 1000",
        "RL.SLIDINGLOG k 10 1000",
        "RL.UNIFORM k 1000",
        "RL.SMOOTH k 10 1000",
        "RL.CONCURRENT k 10 1000 id",
        "RL.RELEASE k id",
        "RL.RENEW k 1000 id",
        "RL.REFUND k GCRA 9 1 1000",
        "RL.PEEK k TOKENBUCKET 10 1 1000",
        "RL.PEEK k GCRA 9 1 1000",
        "RL.PEEK k SLIDINGWINDOW 10 1000",
        "RL.PEEK k CONCURRENT 10 1000 id",
        "RL.INFO k",
        "RL.APPLY k payload",
    ] {
        let valid = if line.contains("GCRA") { "RL.TOKENBUCKET k 10 1 1000" } else { "RL.GCRA k 9 1 1000" };
        let words = words(line);
        for length in 1..words.len() {
            assert_arity(&mut con, valid, &words[..length]);
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn too_many_arguments_are_told_where_there_are_no_options() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    assert_arity(&mut con, "RL.GCRA k 9 1 1000", &words("RL.INFO k k"));
    // Payloads come with a key each.
    assert_arity(&mut con, "RL.GCRA k 9 1 1000", &words("RL.APPLY k payload k"));
}

/// Core's wording, with the name in lower case however it was typed.
fn assert_arity(con: &mut Connection, valid: &str, words: &[&[u8]]) {
    let name = String::from_utf8_lossy(words[0]).to_lowercase();
    let expected = format!("ERR wrong number of arguments for '{name}' command");
    assert_eq!(error_of(con, valid, words), expected, "{} words", words.len());
}

#[test]
fn options_that_a_limiter_does_not_know_are_syntax_errors() {
    const UNKNOWN: &[&str] =
        &["NOSUCH", "1", "COS 1", "COSTS 1", "COST=1", "PX 1000", "id", "-", "LIMIT", "RL.GCRA"];
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (valid, foreign) in [
        ("RL.TOKENBUCKET k 10 1 1000", &["PRECISION 10", "RESERVED 1", "CRITICAL", "ALIGNED", "GAP 1"][..]),
        ("RL.GCRA k 9 1 1000", &["BATCH", "PRECISION 10", "RESERVED 1", "CRITICAL", "BURST 1"]),
        (
            "RL.SLIDINGWINDOW k 10 1000",
            &["BATCH", "RESERVED 1", "CRITICAL", "ALIGNED", "GAP 1", "COUNTREFUSED"],
        ),
        ("RL.LEAKYBUCKET k 10 1 1000", &["BATCH", "RESERVE", "MAXWAIT 1", "ALIGNED"]),
        ("RL.FIXEDWINDOW k 10 1000", &["BATCH", "PRECISION 10", "RESERVE", "GAP 1", "COUNTREFUSED"]),
        ("RL.SLIDINGLOG k 10 1000", &["BATCH", "PRECISION 10", "RESERVE", "ALIGNED", "CRITICAL"]),
        ("RL.UNIFORM k 1000", &["PARTIAL", "GAP 1", "BURST 1"]),
        ("RL.SMOOTH k 10 1000", &["PARTIAL", "FORCE", "RESERVE", "COLDFACTOR 2", "BURST 1 WARMUP 1"]),
        // Leases are released, not refunded, and never granted in part or into debt.
        (
            "RL.CONCURRENT k 10 1000 id",
            &["BATCH", "PRECISION 10", "PARTIAL", "FORCE", "RESERVE", "MAXWAIT 1"],
        ),
    ] {
        for option in UNKNOWN.iter().chain(foreign) {
            assert_syntax(&mut con, valid, &format!("{valid} {option}"));
            assert_syntax(&mut con, valid, &format!("{valid} COST 1 {option}"));
            assert_syntax(&mut con, valid, &format!("{} {option}", probe_of(valid)));
        }
        assert_syntax(&mut con, valid, "RL.PEEK k NOSUCH 10 1 1000");
        assert_syntax(&mut con, valid, "RL.PEEK k RL.GCRA 9 1 1000");
    }
    // Leases have a cost when they are taken, and slots are reserved against those who take one.
    for line in ["RL.RELEASE k id", "RL.RENEW k 1000 id"] {
        for option in UNKNOWN.iter().chain(&["COST 1", "CRITICAL", "RESERVED 1", "AT 1700000000000000 id"]) {
            assert_syntax(&mut con, "RL.CONCURRENT k 10 1000 id", &format!("{line} {option}"));
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn an_option_given_twice_or_without_its_value_is_a_syntax_error() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let both = ["COST 1 COST 1", "COST 1 cost 2", "AT 1700000000000000 AT 1700000000000000", "COST", "AT"];
    for (valid, own) in [
        ("RL.TOKENBUCKET k 10 1 1000", &["BATCH BATCH", "BATCH COST 1 batch"][..]),
        ("RL.GCRA k 9 1 1000", &[]),
        ("RL.SLIDINGWINDOW k 10 1000", &["PRECISION 10 PRECISION 10", "PRECISION"]),
        ("RL.FIXEDWINDOW k 10 1000", &["ALIGNED ALIGNED"]),
        ("RL.SLIDINGLOG k 10 1000", &["GAP 1 GAP 1", "GAP", "COUNTREFUSED COUNTREFUSED"]),
        ("RL.UNIFORM k 1000", &["FORCE FORCE", "RESERVE MAXWAIT 1 MAXWAIT 1", "RESERVE MAXWAIT"]),
        ("RL.SMOOTH k 10 1000", &["BURST 1 BURST 1", "BURST", "WARMUP", "WARMUP 1 COLDFACTOR", "MAXWAIT"]),
        (
            "RL.CONCURRENT k 10 1000 id",
            &["RESERVED 1 RESERVED 1", "CRITICAL CRITICAL", "RESERVED", "CRITICAL RESERVED 1 critical"],
        ),
    ] {
        for options in both.iter().chain(own) {
            assert_syntax(&mut con, valid, &format!("{valid} {options}"));
            assert_syntax(&mut con, valid, &format!("{} {options}", probe_of(valid)));
        }
        assert_syntax(&mut con, valid, &format!("{valid} AT 1700000000000000 COST"));
    }
    for line in ["RL.RELEASE k id", "RL.RENEW k 1000 id"] {
        for options in ["AT", "AT 1700000000000000 AT 1700000000000000", "AT 1700000000000000 AT"] {
            assert_syntax(&mut con, "RL.CONCURRENT k 10 1000 id", &format!("{line} {options}"));
        }
    }
}

fn assert_syntax(con: &mut Connection, valid: &str, line: &str) {
    assert_eq!(error_of(con, valid, &words(line)), SYNTAX, "{line}");
}

// A word is looked up, never printed: bytes that are no text are as unknown as any other.
#[test]
fn option_words_of_any_bytes_are_syntax_errors() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for word in [&b""[..], b"\0", b"COST\0", b"\xff\xfe", b"CO\nST", b" COST", b"%s%n", &[b'A'; 10_000]] {
        let mut line = words("RL.GCRA k 9 1 1000");
        line.extend([word, b"1"]);
        assert_eq!(error_of(&mut con, "RL.GCRA k 9 1 1000", &line), SYNTAX, "{}", word.escape_ascii());
        let probe = [&b"RL.PEEK"[..], b"k", word, b"9", b"1", b"1000"];
        assert_eq!(error_of(&mut con, "RL.GCRA k 9 1 1000", &probe), SYNTAX, "{}", word.escape_ascii());
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn a_malformed_payload_is_an_error_and_changes_none_of_the_keys() {
    let server = Server::start(&["--appendonly", "yes"]);
    let mut con = server.connection();
    ints(&mut con, "RL.GCRA k 9 1 1000000 COST 3");
    let good = last_argument(&server);
    let newer = [&[good[0] + 1], &good[1..]].concat();
    let cut = &good[..good.len() - 1];
    let longer = [&good[..], b"\0"].concat();
    for bad in [&b""[..], b"\0", b"\xff", b"text", &good[..1], cut, &longer, &newer, &[0xff; 1000]] {
        let name = bad.escape_ascii();
        assert_eq!(error_of(&mut con, "RL.GCRA k 9 1 1000", &[b"RL.APPLY", b"k", bad]), MALFORMED, "{name}");
        // The good one before it is not applied either, and no key is made.
        let both = [b"RL.APPLY", &b"k"[..], &good, b"other", bad];
        assert_eq!(harmless_error(&mut con, &both), MALFORMED, "{name}");
        let both = [b"RL.APPLY", &b"other"[..], &good, b"k", bad];
        assert_eq!(harmless_error(&mut con, &both), MALFORMED, "{name}");
    }
    // The payload was a good one indeed.
    text(&mut con, "FLUSHALL");
    call_bytes(&mut con, &[b"RL.APPLY", b"k", &good]).unwrap();
    assert_eq!(ints(&mut con, "RL.PEEK k GCRA 9 1 1000000")[..3], [0, 10, 7]);
    // It is the one command that takes a key of another kind, or of another limiter, for its own: the primary has the
    // right state, whatever the replica has.
    for other in ["SET k text", "RPUSH k a", "RL.SLIDINGWINDOW k 10 1000000"] {
        text(&mut con, "FLUSHALL");
        text(&mut con, other);
        call_bytes(&mut con, &[b"RL.APPLY", b"k", &good]).unwrap();
        assert_eq!(ints(&mut con, "RL.PEEK k GCRA 9 1 1000000")[..3], [0, 10, 7], "after {other}");
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

/// The last argument of the last command in the AOF: what our command replicates ends with its payload.
fn last_argument(server: &Server) -> Vec<u8> {
    let aof = fs::read(server.dir().join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap();
    let end = aof.len() - b"\r\n".len();
    // `$<length>\r\n<bytes>\r\n` is the only header whose length fits what follows it.
    (0..end)
        .rev()
        .find_map(|start| {
            let bytes = &aof[start..end];
            aof[..start].ends_with(format!("${}\r\n", bytes.len()).as_bytes()).then(|| bytes.to_vec())
        })
        .unwrap()
}
