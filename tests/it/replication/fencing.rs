//! Fencing tokens rise on each node that has seen the last ones, although its clock is behind: in effects, in a file, in a dump.

use redis::Connection;

use crate::support::replicas::attach;
use crate::support::wall_clock::WallClock;
use crate::support::{
    AOF_AT_ONCE, Server, call_bytes, dump_bytes, error_line, ints, last_payload, rewrite_aof, sync, text,
};

/// The clock of the node that gives tokens first. Those of the others show today.
const YEAR_2100: u64 = 4_102_444_800;
const FIRST: i64 = 4_102_444_800_000_000;

/// The token of a lease of `key` under this id.
fn token(con: &mut Connection, key: &str, id: &str) -> i64 {
    ints(con, &format!("RL.CONCURRENT {key} 9 1h {id} FENCE"))[5]
}

/// The tokens of these leases, which rise. Valkey 9.1 lets a clock that stands still go on until its next look at it.
fn rising<const N: usize>(con: &mut Connection, leases: [(&str, &str); N]) -> i64 {
    let tokens = leases.map(|(key, id)| token(con, key, id));
    assert!(tokens.is_sorted_by(|one, next| one < next) && tokens[0] >= FIRST, "{tokens:?}");
    tokens[N - 1]
}

#[test]
fn a_promoted_replica_gives_greater_tokens_although_its_clock_is_behind() {
    let clock = WallClock::start(0, &[]);
    clock.stop(YEAR_2100);
    let primary = &mut clock.server.connection();
    let other = rising(primary, [("k", "a"), ("k", "b"), ("other", "a")]);
    let replica = Server::start(&[]);
    attach(&replica, &clock.server);
    // It has loaded those of the first copy, and then applies one.
    text(primary, "DEL k");
    let last = token(primary, "k", "a");
    assert!(last > other);
    sync(&clock.server, &replica);
    let con = &mut replica.connection();
    text(con, "REPLICAOF NO ONE");
    assert_eq!(token(con, "k", "b"), last + 1);
    assert_eq!(token(con, "other", "a"), other, "it has this lease");
    text(con, "FLUSHALL");
    assert_eq!(token(con, "k", "a"), last + 2);
}

#[test]
fn a_node_that_loads_tokens_goes_on_behind_them() {
    let clock = WallClock::start(0, &["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    clock.stop(YEAR_2100);
    let first = &mut clock.server.connection();
    token(first, "k", "a");
    rewrite_aof(first);
    let last = token(first, "k", "b");
    assert!(last > FIRST);
    let dump = dump_bytes(first, "k");
    // A dump, with its expiry left out.
    let mut server = Server::start(&["--save", "3600 1"]);
    let con = &mut server.connection();
    call_bytes(con, &[b"RESTORE", b"k", b"0", &dump]).unwrap();
    assert_eq!([token(con, "k", "b"), token(con, "k", "c")], [last, last + 1]);
    // A file.
    text(con, "SAVE");
    server.restart();
    let con = &mut server.connection();
    assert_eq!([token(con, "k", "c"), token(con, "x", "a")], [last + 1, last + 2]);
    // The effects of an append-only file.
    clock.set(0);
    text(first, "DEBUG LOADAOF");
    text(first, "DEL k");
    assert_eq!(token(first, "k", "a"), last + 1);
}

#[test]
fn the_greatest_token_that_there_is_ends_them_with_an_error() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let given = token(con, "k", "a").to_le_bytes();
    let payload = last_payload(&server);
    // The first token of a server is the time, which stands there too, before it.
    let place = payload.windows(8).rposition(|word| word == given).unwrap();
    let apply = |con: &mut Connection, token: u64| {
        let mut payload = payload.clone();
        payload[place..place + 8].copy_from_slice(&token.to_le_bytes());
        call_bytes(con, &[b"RL.APPLY", b"k", &payload])
    };
    assert!(apply(con, 1 << 53).is_err() && apply(con, 0).is_err());
    assert!(token(con, "k", "b") < FIRST);
    apply(con, (1 << 53) - 1).unwrap();
    let before = dump_bytes(con, "k");
    let call: Vec<&[u8]> = "RL.CONCURRENT k 9 1h d FENCE".split(' ').map(str::as_bytes).collect();
    let error = error_line(&call_bytes(con, &call).unwrap_err());
    assert_eq!(error, "ERR no fencing token is left: a key was loaded with 9007199254740991");
    assert_eq!(dump_bytes(con, "k"), before);
    assert_eq!(ints(con, "RL.CONCURRENT k 9 1h d")[0], 0);
}
