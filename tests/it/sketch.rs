//! The memory of sketches, and how they are sent and stored. What they reply is in `tests/sessions/sketches.txt`.

use std::fs;

use redis::Connection;

use crate::support::kinds::flood;
use crate::support::replicas::STRICT;
use crate::support::{
    AOF_AT_ONCE, Server, T0, dump_bytes, error, info, ints, rewrite_aof, sync, text, used_memory, wait_for,
};

const AOF: [&str; 4] = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];

/// The most bytes of a call of a rewritten AOF, with its name, its key and what the protocol adds.
const MOST: usize = (64 << 10) + 200;

fn ask(con: &mut Connection, arguments: &str) -> Vec<i64> {
    ints(con, &format!("RL.SKETCH {arguments} AT {T0}"))
}

/// The bytes of each `RL.APPLY` in the base of the AOF.
fn payloads(server: &Server) -> Vec<usize> {
    let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap().map(|file| file.unwrap().path());
    let path = files.into_iter().find(|path| path.to_string_lossy().ends_with(".base.aof")).unwrap();
    let log = fs::read(path).unwrap();
    let name = b"$8\r\nRL.APPLY\r\n";
    let mut places: Vec<usize> = (0..log.len()).filter(|place| log[*place..].starts_with(name)).collect();
    places.push(log.len());
    places.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn no_item_is_stored_or_sent_and_an_effect_is_as_small_as_the_cells_of_an_item() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let size =
        |con: &mut Connection| info(con, "persistence", "aof_current_size").unwrap().parse::<u64>().unwrap();
    // 512 KiB begin with an effect as small as any.
    let before = size(con);
    ask(con, "key first 9 10 10s");
    ask(con, "deep first 9 10 10s WIDTH 65536 DEPTH 8");
    assert!(size(con) - before < 400, "{} bytes for two sketches", size(con) - before);
    let usage = text(con, "MEMORY USAGE key");
    for item in ["second", &"x".repeat(100_000)] {
        for key in ["key", "deep"] {
            let before = size(con);
            assert_eq!(ask(con, &format!("{key} {item} 9 10 10s"))[0], 0);
            assert!(size(con) - before < 140, "{} bytes", size(con) - before);
        }
    }
    assert_eq!(text(con, "MEMORY USAGE key"), usage);
    let before = size(con);
    assert_eq!(ask(con, "key first 9 10 10s COST 11")[0], 1);
    assert_eq!(size(con), before, "a refusal has no effect");
}

#[test]
fn a_rewritten_aof_has_a_sketch_in_short_pieces_and_no_piece_without_charges() {
    let mut server = Server::start(&AOF);
    let con = &mut server.connection();
    // Cells all over two MiB, and eight cells of eight MiB. Besides, the smallest one.
    let line = |item: u64| format!("RL.SKETCH key item:{item} 4 10 1h WIDTH 65536 DEPTH 4 AT {}", T0 + item);
    flood(con, (0..5000).map(line));
    ask(con, "sparse alice 4 10 1h WIDTH 131072 DEPTH 8");
    ask(con, "small alice 4 10 1h WIDTH 1 DEPTH 1");
    let all = |con: &mut Connection| {
        ["key", "sparse", "small"].map(|key| (dump_bytes(con, key), text(con, &format!("PEXPIRETIME {key}"))))
    };
    let before = all(con);
    rewrite_aof(con);
    let pieces = payloads(&server);
    assert!((33 + 2..40 + 10).contains(&pieces.len()), "{} pieces", pieces.len());
    assert!(pieces.iter().all(|bytes| *bytes <= MOST), "{pieces:?}");
    server.restart();
    let con = &mut server.connection();
    assert!(all(con) == before);
    // Effects behind the pieces, and a rewrite of what was loaded from pieces.
    flood(con, (5000..5100).map(line));
    let before = all(con);
    rewrite_aof(con);
    server.restart();
    assert!(all(&mut server.connection()) == before);
}

#[test]
fn a_sketch_takes_eight_bytes_a_cell_also_when_it_was_loaded() {
    let server = Server::start(&AOF);
    let con = &mut server.connection();
    let usage = |con: &mut Connection, depth: u64| -> u64 {
        text(con, &format!("MEMORY USAGE key:{depth}")).parse().unwrap()
    };
    let before: Vec<u64> = (1..=8)
        .map(|depth| {
            ask(con, &format!("key:{depth} a 0 1 1h WIDTH 4096 DEPTH {depth}"));
            usage(con, depth)
        })
        .collect();
    for (depth, bytes) in (1..).zip(&before) {
        assert!((8 * 4096 * depth..8 * 4096 * depth + 400).contains(bytes), "{depth}: {bytes}");
    }
    for load in ["DEBUG LOADAOF", "DEBUG RELOAD"] {
        text(con, load);
        assert!((1..).zip(&before).all(|(depth, bytes)| usage(con, depth) == *bytes), "{load}");
    }
}

#[test]
fn the_largest_sketch_has_256_mib_and_gives_them_back() {
    let server = Server::start(&["--ratelimit.max-sketch-bytes", "256mb"]);
    let con = &mut server.connection();
    let before = used_memory(con);
    for (key, shape) in [("wide", "WIDTH 33554432 DEPTH 1"), ("deep", "WIDTH 4194304 DEPTH 8")] {
        assert_eq!(ask(con, &format!("{key} a 1 1 1h {shape}")), [0, 2, 1, 0, 3_600_000]);
        assert_eq!(ask(con, &format!("{key} a 1 1 1h")), [0, 2, 0, 0, 7_200_000]);
    }
    let grown = used_memory(con) - before;
    // Meanwhile the server may free or take some kilobytes for connections, such as the one that found it ready.
    assert!((grown - (512 << 20)).abs() < 1 << 20, "{grown}");
    let told = error(con, "RL.SKETCH more a 1 1 1h WIDTH 33554432 DEPTH 2");
    assert!(told.ends_with("at most 268435456 bytes (ratelimit.max-sketch-bytes); got 536870912"), "{told}");
    text(con, "UNLINK wide");
    text(con, "DEL deep");
    wait_for("the freeing", || info(con, "memory", "lazyfree_pending_objects").unwrap() == "0");
    let left = used_memory(con) - before;
    assert!(left < 1 << 20, "{left} left");
}

#[test]
fn copies_take_sketches_that_are_larger_than_their_own_setting() {
    let primary = Server::start(&["--ratelimit.max-sketch-bytes", "32mb"]);
    let replica = primary.replica(&STRICT);
    let con = &mut primary.connection();
    ask(con, "key a 9 10 10s WIDTH 4194304 DEPTH 1");
    sync(&primary, &replica);
    let late = primary.replica(&STRICT);
    for copy in [&replica, &late] {
        assert_eq!(text(&mut copy.connection(), "DEBUG DIGEST"), text(con, "DEBUG DIGEST"));
    }
    text(con, "CONFIG SET ratelimit.max-sketch-bytes 512kb");
    text(con, "DEBUG RELOAD");
    assert_eq!(ask(con, "key a 9 10 10s"), [0, 10, 8, 0, 2000]);
}
