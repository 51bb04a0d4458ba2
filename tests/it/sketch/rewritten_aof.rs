//! A rewritten AOF has a sketch in pieces, all of them short.

use std::fs;

use super::{START, ask};
use crate::support::kinds::flood;
use crate::support::{SECOND, Server, dump_bytes, error, rewrite_aof, text};

/// The most bytes of a call, with its name, its key and what the protocol adds.
const MOST: usize = (64 << 10) + 200;

const AOF: [&str; 4] = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];

/// The words of each call in the base of the AOF, and the bytes that they take there.
fn base(server: &Server) -> Vec<(Vec<Vec<u8>>, usize)> {
    let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap().map(|file| file.unwrap().path());
    let path = files.into_iter().find(|path| path.to_string_lossy().ends_with(".base.aof")).unwrap();
    let log = fs::read(path).unwrap();
    let mut rest = &log[..];
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let before = rest.len();
        let words = (0..number(&mut rest)).map(|_| {
            let length = number(&mut rest);
            let word = rest[..length].to_vec();
            rest = &rest[length + 2..];
            word
        });
        let words = words.collect();
        calls.push((words, before - rest.len()));
    }
    calls
}

/// The number in a line such as `$12`, which is passed.
fn number(log: &mut &[u8]) -> usize {
    let end = log.iter().position(|byte| *byte == b'\r').unwrap();
    let number = std::str::from_utf8(&log[1..end]).unwrap().parse().unwrap();
    *log = &log[end + 2..];
    number
}

#[test]
fn a_sketch_with_cells_all_over_is_written_in_pieces_of_at_most_64_kib() {
    let mut server = Server::start(&AOF);
    let con = &mut server.connection();
    let line =
        |item: u64| format!("RL.SKETCH key item:{item} 4 10 1h WIDTH 65536 DEPTH 4 AT {}", START + item);
    flood(con, (0..5000).map(line));
    let before = (dump_bytes(con, "key"), text(con, "PEXPIRETIME key"));
    rewrite_aof(con);
    let calls = base(&server);
    let pieces: Vec<_> = calls.iter().filter(|(words, _)| words[0] == b"RL.APPLY").collect();
    // The beginning, and 2 MiB in pieces.
    assert!((33..=40).contains(&pieces.len()), "{} pieces", pieces.len());
    for (words, bytes) in &calls {
        assert!(*bytes <= MOST, "{} takes {bytes} bytes", words[0].escape_ascii());
    }
    for (words, _) in &pieces {
        assert_eq!((words.len(), &words[1][..]), (3, &b"key"[..]));
    }
    server.restart();
    let con = &mut server.connection();
    assert_eq!((dump_bytes(con, "key"), text(con, "PEXPIRETIME key")), before);
    // Effects behind the pieces, and a rewrite of what was loaded from pieces.
    flood(con, (5000..5100).map(line));
    let before = dump_bytes(con, "key");
    rewrite_aof(con);
    server.restart();
    let con = &mut server.connection();
    assert_eq!(dump_bytes(con, "key"), before);
    assert!(error(con, "RL.GCRA key 4 10 1h").starts_with("WRONGTYPE"));
}

#[test]
fn a_sparse_sketch_makes_a_small_aof() {
    let mut server = Server::start(&AOF);
    let con = &mut server.connection();
    // 8 MiB, of which one item has eight cells.
    ask(con, "key alice 4 10 1h WIDTH 131072 DEPTH 8", 0);
    let before = dump_bytes(con, "key");
    rewrite_aof(con);
    let calls = base(&server);
    let bytes: usize = calls.iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes <= 9 * MOST, "{bytes} bytes");
    server.restart();
    assert_eq!(dump_bytes(&mut server.connection(), "key"), before);
}

#[test]
fn small_sketches_and_moved_ones_are_rewritten_too() {
    let mut server = Server::start(&AOF);
    let con = &mut server.connection();
    for (key, shape) in [("one", "WIDTH 1 DEPTH 1"), ("few", "WIDTH 16 DEPTH 3"), ("many", "")] {
        ask(con, &format!("{key} alice 4 10 1h {shape}"), 0);
        // The clock is set back by a year.
        let back = START - 365 * 86_400 * SECOND;
        text(con, &format!("RL.SKETCH {key} bob 4 10 1h AT {back}"));
    }
    text(con, "PERSIST few");
    // Beside a key of another kind, and one whose name has any bytes.
    text(con, &format!("RL.GCRA gcra 4 10 1h AT {START}"));
    let all = |server: &Server| {
        let con = &mut server.connection();
        let keys = ["one", "few", "many", "gcra"];
        let keys = keys.map(|key| (dump_bytes(con, key), text(con, &format!("PEXPIRETIME {key}"))));
        (keys, text(con, "DEBUG DIGEST"))
    };
    let before = all(&server);
    rewrite_aof(con);
    server.restart();
    assert_eq!(all(&server), before);
}
