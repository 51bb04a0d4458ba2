//! `WIDTH` and `DEPTH`: what a new sketch gets, what an existing one keeps, and how many bytes they may take.

use redis::Connection;

use super::{START, after, ask, peek_at};
use crate::support::harmless::{harmless_error, words};
use crate::support::{Server, dump_bytes, error, info, text, used_memory, wait_for};

/// The width and the depth that `RL.INFO` replies.
fn shape(con: &mut Connection, key: &str) -> (u64, u64) {
    let info = text(con, &format!("RL.INFO {key}"));
    let field = |name: &str| {
        let rest = info.split(&format!("{name}, ")).nth(1).unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    };
    (field("width"), field("depth"))
}

fn too_large(most: u64, bytes: u64) -> String {
    format!("ERR WIDTH * DEPTH * 8 must be at most {most} bytes (ratelimit.max-sketch-bytes); got {bytes}")
}

#[test]
fn a_new_sketch_has_the_shape_of_the_call_or_the_default() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (options, expected) in [
        ("", (16_384, 4)),
        ("WIDTH 64", (64, 4)),
        ("DEPTH 2", (16_384, 2)),
        ("depth 8 width 1", (1, 8)),
        ("WIDTH 1 DEPTH 1", (1, 1)),
        ("WIDTH 131072 DEPTH 8", (131_072, 8)),
        ("WIDTH 1048576 DEPTH 1", (1_048_576, 1)),
    ] {
        assert_eq!(ask(con, &format!("key a 0 1 1h {options}"), 0)[0], 0, "{options}");
        assert_eq!(shape(con, "key"), expected, "{options}");
        // Eight bytes a cell, and what any key takes.
        let usage: u64 = text(con, "MEMORY USAGE key").parse().unwrap();
        let cells = 8 * expected.0 * expected.1;
        assert!((cells..cells + 400).contains(&usage), "{options}: {usage}");
        text(con, "DEL key");
    }
}

#[test]
fn a_loaded_sketch_takes_as_much_memory_as_before() {
    let server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let con = &mut server.connection();
    for depth in 1..=8 {
        ask(con, &format!("key:{depth} a 0 1 1h WIDTH 4096 DEPTH {depth}"), 0);
    }
    let usage = |con: &mut Connection| {
        (1..=8).map(|depth| text(con, &format!("MEMORY USAGE key:{depth}"))).collect::<Vec<_>>()
    };
    let before = usage(con);
    for load in ["DEBUG LOADAOF", "DEBUG RELOAD"] {
        text(con, load);
        assert_eq!(usage(con), before, "{load}");
    }
}

#[test]
fn an_existing_sketch_keeps_its_shape() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, "key a 1 1 1h WIDTH 1024 DEPTH 2", 0);
    for options in ["", "WIDTH 1024", "DEPTH 2", "DEPTH 2 WIDTH 1024"] {
        assert_eq!(ask(con, &format!("key a 9 1 1h COST 0 {options}"), 0)[2], 9, "{options}");
        assert_eq!(peek_at(con, &format!("key a 9 1 1h {options}"), START)[2], 9, "{options}");
        assert_eq!(ask(con, &format!("key {}z 1 1 1h {options}", options.len()), 0)[0], 0, "{options}");
    }
    let before = dump_bytes(con, "key");
    for options in
        ["WIDTH 2048", "DEPTH 3", "WIDTH 16384", "DEPTH 4", "WIDTH 1024 DEPTH 4", "WIDTH 512 DEPTH 2"]
    {
        for line in [
            format!("RL.SKETCH key a 1 1 1h {options}"),
            format!("RL.SKETCH key a 1 1 1h COST 0 {options}"),
            format!("RL.SKETCH key a 1 1 1h COST 9 {options}"),
            format!("RL.PEEK key SKETCH a 1 1 1h {options}"),
        ] {
            let told = error(con, &line);
            let held = "SKETCH with WIDTH 1024 DEPTH 2";
            assert_eq!(told, format!("WRONGTYPE the key holds {held}, not {options}"));
        }
    }
    assert_eq!(dump_bytes(con, "key"), before);
    assert_eq!(shape(con, "key"), (1024, 2));
}

#[test]
fn a_shape_that_may_not_be_is_an_error_whatever_the_key_holds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let two = |word| format!("ERR WIDTH must be a power of two; got '{word}'");
    let width = |word| format!("ERR WIDTH must be an integer from 1 to 33554432; got '{word}'");
    let depth = |word| format!("ERR DEPTH must be an integer from 1 to 8; got '{word}'");
    for make in ["", "RL.SKETCH k a 9 10 1s", "RL.SKETCH k a 9 10 1s WIDTH 8", "SET k text"] {
        text(con, "FLUSHALL");
        if !make.is_empty() {
            text(con, make);
        }
        for (options, expected) in [
            ("WIDTH 0", width("0")),
            ("WIDTH 33554433", width("33554433")),
            ("WIDTH 18446744073709551616", width("18446744073709551616")),
            ("WIDTH -1", width("-1")),
            ("WIDTH x", width("x")),
            ("WIDTH 64.0", width("64.0")),
            ("DEPTH 0", depth("0")),
            ("DEPTH 9", depth("9")),
            ("DEPTH 4294967297", depth("4294967297")),
            ("WIDTH 3", two("3")),
            ("WIDTH 16383", two("16383")),
            ("WIDTH 33554431 DEPTH 8", two("33554431")),
            ("WIDTH 262144 DEPTH 8", too_large(8 << 20, 16 << 20)),
            ("WIDTH 524288", too_large(8 << 20, 16 << 20)),
            ("WIDTH 2097152 DEPTH 1", too_large(8 << 20, 16 << 20)),
            ("WIDTH 33554432 DEPTH 8", too_large(8 << 20, 2 << 30)),
            ("WIDTH", "ERR syntax error: WIDTH needs a value".into()),
            ("DEPTH", "ERR syntax error: DEPTH needs a value".into()),
            ("WIDTH 8 WIDTH 8", "ERR syntax error: WIDTH is given twice".into()),
            ("DEPTH 8 WIDTH 8 DEPTH 4", "ERR syntax error: DEPTH is given twice".into()),
        ] {
            for line in
                [format!("RL.SKETCH k a 9 10 1s {options}"), format!("RL.PEEK k SKETCH a 9 10 1s {options}")]
            {
                assert_eq!(harmless_error(con, &words(&line)), expected, "{line}, after {make}");
            }
        }
    }
}

#[test]
fn a_lower_setting_leaves_larger_sketches_as_they_are() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "CONFIG GET ratelimit.max-sketch-bytes"), "[ratelimit.max-sketch-bytes, 8388608]");
    let ask_large = |con: &mut Connection, options: &str| ask(con, &format!("large a 9 10 10s {options}"), 0);
    ask_large(con, "WIDTH 262144");
    text(con, "CONFIG SET ratelimit.max-sketch-bytes 512kb");
    assert_eq!(text(con, "CONFIG GET ratelimit.max-sketch-bytes"), "[ratelimit.max-sketch-bytes, 524288]");
    assert_eq!(ask_large(con, ""), [0, 10, 8, 0, 2000]);
    assert_eq!(peek_at(con, "large a 9 10 10s", after(0))[2], 8);
    for (options, bytes) in [
        ("WIDTH 262144", 8 << 20),
        ("WIDTH 262144 DEPTH 4", 8 << 20),
        ("WIDTH 32768", 1 << 20),
        ("DEPTH 5", 640 << 10),
    ] {
        let told = harmless_error(con, &words(&format!("RL.SKETCH large a 9 10 10s {options}")));
        assert_eq!(told, too_large(512 << 10, bytes), "{options}");
    }
    // The least setting has room for the default.
    assert_eq!(ask(con, "new a 9 10 10s", 0)[2], 9);
    assert_eq!(ask(con, "new a 9 10 10s WIDTH 16384 DEPTH 4", 0)[2], 8);
    assert_eq!(ask(con, "wide a 9 10 10s WIDTH 65536 DEPTH 1", 0)[2], 9);
    // Larger ones are loaded, too.
    text(con, "DEBUG RELOAD");
    assert_eq!(ask_large(con, ""), [0, 10, 7, 0, 3000]);
    let bounds = "argument must be between 524288 and 268435456 inclusive";
    for value in ["0", "524287", "511kb", "268435457", "257mb"] {
        let told = error(con, &format!("CONFIG SET ratelimit.max-sketch-bytes {value}"));
        assert!(told.ends_with(bounds), "{value}: {told}");
    }
}

#[test]
fn the_largest_sketch_has_256_mib_and_gives_them_back() {
    let server = Server::start(&["--ratelimit.max-sketch-bytes", "256mb"]);
    let con = &mut server.connection();
    let before = used_memory(con);
    for (key, options) in [("wide", "WIDTH 33554432 DEPTH 1"), ("deep", "WIDTH 4194304 DEPTH 8")] {
        assert_eq!(ask(con, &format!("{key} a 1 1 1h {options}"), 0), [0, 2, 1, 0, 3_600_000]);
        assert_eq!(ask(con, &format!("{key} a 1 1 1h"), 0), [0, 2, 0, 0, 7_200_000]);
        assert_eq!(ask(con, &format!("{key} a 1 1 1h"), 0)[0], 1);
    }
    let grown = used_memory(con) - before;
    // Meanwhile the server may free or take some kilobytes for connections, such as the one that found it ready.
    assert!((grown - (512 << 20)).abs() < 1 << 20, "{grown}");
    for (options, bytes) in [
        ("WIDTH 33554432 DEPTH 2", 512 << 20),
        ("WIDTH 33554432", 1 << 30),
        ("WIDTH 8388608 DEPTH 8", 512 << 20),
    ] {
        assert_eq!(error(con, &format!("RL.SKETCH more a 1 1 1h {options}")), too_large(256 << 20, bytes));
    }
    text(con, "UNLINK wide");
    text(con, "DEL deep");
    wait_for("the freeing", || info(con, "memory", "lazyfree_pending_objects").unwrap() == "0");
    let left = used_memory(con) - before;
    assert!(left < 1 << 20, "{left} left");
}
