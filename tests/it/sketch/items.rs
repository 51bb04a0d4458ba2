//! Items: any bytes of any length, each with a limit of its own.

use redis::{Connection, Value};

use super::{START, ask};
use crate::support::{AOF_AT_ONCE, Server, call_bytes, info, text};

/// The first two integers that the item is answered by a limit of one in an hour: limited, and the limit.
fn once(con: &mut Connection, item: &[u8]) -> (i64, i64) {
    let at = START.to_string();
    let words: [&[u8]; 8] = [b"RL.SKETCH", b"key", item, b"0", b"1", b"1h", b"AT", at.as_bytes()];
    match call_bytes(con, &words).unwrap() {
        Value::Array(five) => match five.as_slice() {
            [Value::Int(limited), Value::Int(limit), ..] => (*limited, *limit),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_item_has_a_limit_of_its_own() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // 200 of 16,384 cells in each row: an item finds all four of its cells taken with a chance of 2 in 100 million.
    for item in 0..200 {
        let arguments = format!("key item:{item} 2 10 1s");
        for remaining in [2, 1, 0] {
            assert_eq!(ask(con, &arguments, 0), [0, 3, remaining, 0, 300 - 100 * remaining], "{item}");
        }
    }
    for item in 0..200 {
        assert_eq!(ask(con, &format!("key item:{item} 2 10 1s"), 0), [1, 3, 0, 100, 300], "{item}");
    }
}

#[test]
fn an_item_is_any_bytes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let all: Vec<u8> = (0..=255).collect();
    let long = vec![b'x'; 100_000];
    let other = [&long[..99_999], b"y"].concat();
    let shorter = &long[..99_999];
    let items: [&[u8]; 11] =
        [b"", b"\0", b"\0\0", b" ", b"\r\n", b"\xff\xfe", b"COST", &all, &long, &other, shorter];
    for item in items {
        assert_eq!(once(con, item), (0, 1), "{} bytes", item.len());
    }
    for item in items {
        assert_eq!(once(con, item), (1, 1), "{} bytes", item.len());
    }
    assert_eq!(text(con, "DBSIZE"), "1");
}

#[test]
fn no_item_is_stored_or_replicated() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let size =
        |con: &mut Connection| info(con, "persistence", "aof_current_size").unwrap().parse::<u64>().unwrap();
    once(con, b"first");
    let usage = text(con, "MEMORY USAGE key");
    let before = size(con);
    assert_eq!(once(con, &vec![b'x'; 100_000]), (0, 1));
    let effect = size(con) - before;
    assert!(effect < 200, "{effect} bytes of effect");
    assert_eq!(text(con, "MEMORY USAGE key"), usage);
    // A sketch of 512 KiB begins with a payload as small.
    let before = size(con);
    ask(con, "another item 0 1 1h", 0);
    assert!(size(con) - before < 200, "{} bytes for a new sketch", size(con) - before);
}

#[test]
fn all_items_share_the_only_cell_of_a_row() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for shape in ["WIDTH 1 DEPTH 1", "WIDTH 1 DEPTH 8"] {
        let arguments = |item: &str| format!("key {item} 4 10 1s {shape}");
        assert_eq!(ask(con, &arguments("a"), 0), [0, 5, 4, 0, 100]);
        assert_eq!(ask(con, &arguments("b"), 0), [0, 5, 3, 0, 200]);
        assert_eq!(ask(con, &format!("{} COST 3", arguments("c")), 0), [0, 5, 0, 0, 500]);
        assert_eq!(ask(con, &arguments("a"), 0), [1, 5, 0, 100, 500]);
        assert_eq!(ask(con, &arguments("never"), 50), [1, 5, 0, 50, 450]);
        text(con, "DEL key");
    }
}

#[test]
fn two_sketches_choose_different_cells_for_an_item() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // With two cells, two items share one by an even chance. It is outside of these bounds once in 10^9 times.
    let shared = (0..64).filter(|sketch| {
        ask(con, &format!("sketch:{sketch} a 0 1 1h WIDTH 2 DEPTH 1"), 0);
        ask(con, &format!("sketch:{sketch} b 0 1 1h WIDTH 2 DEPTH 1"), 0)[0] == 1
    });
    let shared = shared.count();
    assert!((10..=54).contains(&shared), "{shared} of 64");
    // A sketch that is made again has another hash key.
    let dump = |con: &mut Connection| {
        text(con, "DEL key");
        ask(con, "key a 0 1 1h WIDTH 64 DEPTH 2", 0);
        text(con, "DEBUG DIGEST-VALUE key")
    };
    assert_ne!(dump(con), dump(con));
}

#[test]
fn a_flush_forgets_all_items() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for forget in ["FLUSHDB", "FLUSHALL ASYNC", "DEL key", "UNLINK key", "PEXPIREAT key 1000"] {
        assert_eq!(ask(con, "key a 0 1 1h", 0)[0], 0, "{forget}");
        assert_eq!(ask(con, "key a 0 1 1h", 0)[0], 1, "{forget}");
        text(con, forget);
        assert_eq!(text(con, "EXISTS key"), "0", "{forget}");
    }
    assert_eq!(ask(con, "key a 0 1 1h", 0), [0, 1, 0, 0, 3_600_000]);
}
