//! Copies of a sketch: files, replicas, dumps.

use redis::Connection;

use super::{START, ask, ask_at, peek_at};
use crate::support::contents::{contents, expect_same};
use crate::support::dice::Dice;
use crate::support::{
    AOF_AT_ONCE, SECOND, Server, call_bytes, dump_bytes, error, info, rewrite_aof, sync, text,
};

/// The keys that `drive` makes, and their shapes.
const SHAPES: [&str; 5] =
    ["WIDTH 8 DEPTH 2", "WIDTH 1 DEPTH 1", "WIDTH 64 DEPTH 8", "WIDTH 1024 DEPTH 1", ""];

/// Random calls for a few items of a few sketches. The clock steps back now and then, by little or by a lot.
fn drive(con: &mut Connection, seed: u64, calls: u64) {
    let mut dice = Dice::new(seed);
    let (mut admitted, mut refused) = (0, 0);
    for step in 0..calls {
        let at = START + 4000 * step;
        let at = match dice.below(40) {
            0 => at - dice.below(86_400) * SECOND,
            1..=4 => at - dice.below(100_000),
            _ => at,
        };
        let key = dice.index(SHAPES.len());
        let (item, cost) = (dice.below(12), 1 + dice.below(3));
        let parameters = dice.pick(&["6 7 1s", "3 4 1s", "9 10 2s"]);
        match ask_at(con, &format!("key:{key} {item} {parameters} COST {cost} {}", SHAPES[key]), at)[0] {
            0 => admitted += 1,
            _ => refused += 1,
        }
    }
    assert!(admitted > calls / 4 && refused > calls / 8, "{admitted} admitted, {refused} refused");
}

#[test]
fn replicas_hold_the_same_bytes_and_expiries() {
    let primary = Server::start(&[]);
    let strict = ["--propagation-error-behavior", "panic"];
    let first = primary.replica(&strict);
    let con = &mut primary.connection();
    drive(con, 1, 600);
    // The first replica gets all effects. The second gets a full copy and the effects after it. The third replicates
    // the second.
    let second = primary.replica(&strict);
    let chained = second.replica(&[&strict[..], &["--appendonly", "yes"]].concat());
    drive(con, 2, 600);
    let expected = contents(&primary);
    assert_eq!(expected.len(), SHAPES.len());
    for (name, copy, from) in
        [("first", &first, &primary), ("second", &second, &primary), ("chained", &chained, &second)]
    {
        sync(from, copy);
        expect_same(&contents(copy), &expected, name);
        let theirs = &mut copy.connection();
        assert_eq!(text(theirs, "DEBUG DIGEST"), text(con, "DEBUG DIGEST"), "{name}");
        for item in 0..12 {
            let arguments = format!("key:0 {item} 6 7 1s");
            assert_eq!(peek_at(theirs, &arguments, START), peek_at(con, &arguments, START), "{name}: {item}");
        }
        let told = error(theirs, "RL.SKETCH key:0 a 6 7 1s");
        assert!(told.starts_with("READONLY "), "{told}");
    }
}

#[test]
fn files_bring_back_the_same_bytes_and_expiries() {
    let aof = ["--appendonly", "yes"];
    let ways: [&[&str]; 3] =
        [&["--save", "3600 1"], &aof, &[&aof[..], &["--aof-use-rdb-preamble", "no"]].concat()];
    for way in ways {
        let mut server = Server::start(way);
        drive(&mut server.connection(), 3, 600);
        let expected = contents(&server);
        server.restart();
        expect_same(&contents(&server), &expected, &way.join(" "));
        let con = &mut server.connection();
        text(con, "DEBUG RELOAD");
        expect_same(&contents(&server), &expected, "DEBUG RELOAD");
        if way.len() > 2 || way[0] == "--appendonly" {
            rewrite_aof(con);
            // Effects that follow what was rewritten.
            drive(con, 4, 200);
            let expected = contents(&server);
            server.restart();
            expect_same(&contents(&server), &expected, "a rewritten AOF");
        }
        // They go on from there.
        drive(&mut server.connection(), 5, 200);
    }
}

#[test]
fn an_effect_is_as_small_as_the_cells_of_an_item() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let size =
        |con: &mut Connection| info(con, "persistence", "aof_current_size").unwrap().parse::<u64>().unwrap();
    ask(con, "key first 9 10 10s WIDTH 65536 DEPTH 8", 0);
    for item in 0..100 {
        let before = size(con);
        ask(con, &format!("key {item} 9 10 10s"), item);
        assert!(size(con) - before < 140, "{} bytes", size(con) - before);
    }
    let before = size(con);
    assert_eq!(ask(con, "key first 9 10 10s COST 11", 100)[0], 1);
    assert_eq!(size(con), before, "a refusal has no effect");
}

#[test]
fn copied_moved_and_restored_sketches_have_the_same_items() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for shape in SHAPES {
        text(con, "FLUSHALL");
        let alice = |key: &str| format!("{key} alice 9 10 10s");
        ask(con, &format!("{} COST 4 {shape}", alice("key")), 0);
        ask(con, &format!("key bob 9 10 10s {shape}"), 0);
        let bytes = dump_bytes(con, "key");
        let look = peek_at(con, &alice("key"), START);
        text(con, "COPY key copy");
        call_bytes(con, &[b"RESTORE", b"restored", b"0", &bytes]).unwrap();
        // The digest of a value depends on whether it expires, and what was restored does not.
        let digest = text(con, "DEBUG DIGEST-VALUE key");
        assert_eq!(text(con, "DEBUG DIGEST-VALUE copy"), digest);
        for key in ["copy", "restored"] {
            assert_eq!(dump_bytes(con, key), bytes, "{key}, {shape}");
            assert_eq!(peek_at(con, &alice(key), START), look);
            // A charge of the copy leaves the original alone.
            assert_eq!(ask(con, &alice(key), 0)[0], 0);
            assert_ne!(dump_bytes(con, key), bytes);
            assert_ne!(text(con, &format!("DEBUG DIGEST-VALUE {key}")), digest);
            assert_eq!(dump_bytes(con, "key"), bytes);
            // Restored without an expiry, it got one by the charge.
            assert_ne!(text(con, &format!("PTTL {key}")), "-1", "{key}");
        }
        text(con, "RENAME key renamed");
        text(con, "MOVE renamed 5");
        text(con, "SELECT 5");
        assert_eq!(dump_bytes(con, "renamed"), bytes);
        assert_eq!(peek_at(con, &alice("renamed"), START), look);
        text(con, "SELECT 0");
    }
}

#[test]
fn a_replica_takes_sketches_that_are_larger_than_its_own_setting() {
    let primary = Server::start(&["--ratelimit.max-sketch-bytes", "32mb"]);
    let replica = primary.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut primary.connection();
    ask(con, "key a 9 10 10s WIDTH 4194304 DEPTH 1", 0);
    ask(con, "key b 9 10 10s", 0);
    sync(&primary, &replica);
    let late = primary.replica(&["--propagation-error-behavior", "panic"]);
    for copy in [&replica, &late] {
        let theirs = &mut copy.connection();
        assert_eq!(peek_at(theirs, "key a 9 10 10s", START), [0, 10, 9, 0, 1000]);
        assert_eq!(text(theirs, "DEBUG DIGEST"), text(con, "DEBUG DIGEST"));
    }
}
