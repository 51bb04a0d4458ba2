//! Malformed payloads: the exact error, nothing changed, and a server that goes on.
//!
//! Wrong words are in `tests/sessions/wrong_calls.txt`, numbers in `numbers.rs`, keys of another type and ids in
//! `keys_and_ids.rs`.

use std::fs;

use crate::support::harmless::{error_of, harmless_error, words};
use crate::support::{Server, call_bytes, ints, text};

const MALFORMED: &str = "ERR malformed payload, or one of a newer version";

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
    // Payloads come with a key each.
    for line in ["RL.APPLY k", "RL.APPLY k payload k"] {
        let arity = "ERR wrong number of arguments for 'rl.apply' command";
        assert_eq!(error_of(&mut con, "RL.GCRA k 9 1 1s", &words(line)), arity, "{line}");
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
