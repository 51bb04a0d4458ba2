//! Calls with too few or too many words, and malformed payloads: the exact error, nothing changed, and a server that goes
//! on.
//!
//! Wrong words are in `wrong_calls.rs`, numbers in `numbers.rs`, keys of another type and ids in `keys_and_ids.rs`.

use std::fs;

use redis::Connection;

use crate::support::harmless::{error_of, harmless_error, words};
use crate::support::{Server, call_bytes, ints, text};

const MALFORMED: &str = "ERR malformed payload, or one of a newer version";

#[test]
fn too_few_arguments_are_told_with_the_name_of_the_command() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    // A valid call: each shorter one lacks something, in whatever case it is typed.
    for line in [
        "RL.TOKENBUCKET k 10 1 1s",
        "RL.GCRA k 9 1 1s",
        "RL.SLIDINGWINDOW k 10 1s",
        "RL.LEAKYBUCKET k 10 1 1s",
        "RL.FIXEDWINDOW k 10 1s",
        "RL.SLIDINGLOG k 10 1s",
        "RL.UNIFORM k 1s",
        "RL.SMOOTH k 10 1s",
        "RL.CONCURRENT k 10 1s id",
        "RL.RELEASE k id",
        "RL.RENEW k 1s id",
        "RL.SETTLE k id UNIFORM 1ms COST 1",
        "RL.MULTISETTLE 1 k id LIMIT UNIFORM 1ms",
        // What a limiter's name lacks, the module tells.
        "RL.REFUND k GCRA 9",
        "RL.PEEK k TOKENBUCKET 10",
        "RL.MULTI 1 k LIMIT UNIFORM 1ms",
        "RL.INFO k",
        "RL.APPLY k payload",
    ] {
        let valid = if line.contains("GCRA") { "RL.TOKENBUCKET k 10 1 1s" } else { "RL.GCRA k 9 1 1s" };
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
    assert_arity(&mut con, "RL.GCRA k 9 1 1s", &words("RL.INFO k LEASES 1 k"));
    // Payloads come with a key each.
    assert_arity(&mut con, "RL.GCRA k 9 1 1s", &words("RL.APPLY k payload k"));
}

/// Core's wording, with the name in lower case however it was typed.
fn assert_arity(con: &mut Connection, valid: &str, words: &[&[u8]]) {
    let name = String::from_utf8_lossy(words[0]).to_lowercase();
    let expected = format!("ERR wrong number of arguments for '{name}' command");
    assert_eq!(error_of(con, valid, words), expected, "{} words", words.len());
}

#[test]
fn a_malformed_payload_is_an_error_and_changes_none_of_the_keys() {
    let server = Server::start(&["--appendonly", "yes"]);
    let mut con = server.connection();
    ints(&mut con, "RL.GCRA k 9 1 1000s COST 3");
    let good = last_argument(&server);
    let newer = [&[good[0] + 1], &good[1..]].concat();
    let cut = &good[..good.len() - 1];
    let longer = [&good[..], b"\0"].concat();
    for bad in [&b""[..], b"\0", b"\xff", b"text", &good[..1], cut, &longer, &newer, &[0xff; 1000]] {
        let name = bad.escape_ascii();
        assert_eq!(error_of(&mut con, "RL.GCRA k 9 1 1s", &[b"RL.APPLY", b"k", bad]), MALFORMED, "{name}");
        // The good one before it is not applied either, and no key is made.
        let both = [b"RL.APPLY", &b"k"[..], &good, b"other", bad];
        assert_eq!(harmless_error(&mut con, &both), MALFORMED, "{name}");
        let both = [b"RL.APPLY", &b"other"[..], &good, b"k", bad];
        assert_eq!(harmless_error(&mut con, &both), MALFORMED, "{name}");
    }
    // The payload was a good one indeed.
    text(&mut con, "FLUSHALL");
    call_bytes(&mut con, &[b"RL.APPLY", b"k", &good]).unwrap();
    assert_eq!(ints(&mut con, "RL.PEEK k GCRA 9 1 1000s")[..3], [0, 10, 7]);
    // It is the one command that takes a key of another kind, or of another limiter, for its own: the primary has the
    // right state, whatever the replica has.
    for other in ["SET k text", "RPUSH k a", "RL.SLIDINGWINDOW k 10 1000s"] {
        text(&mut con, "FLUSHALL");
        text(&mut con, other);
        call_bytes(&mut con, &[b"RL.APPLY", b"k", &good]).unwrap();
        assert_eq!(ints(&mut con, "RL.PEEK k GCRA 9 1 1000s")[..3], [0, 10, 7], "after {other}");
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
