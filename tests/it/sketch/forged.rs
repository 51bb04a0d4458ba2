//! Forged effects on sketches: each is an error, or leaves a key that works.

use redis::Connection;

use super::effects::{KIND, MALFORMED, apply, exercise};
use super::{START, ask, peek_at};
use crate::support::{LATEST, Server, call_bytes, dump_bytes, info, rewrite_aof, text};

/// The forms of a payload: changes of what the key holds, a whole state, changes of a missing key.
const CHANGES: u8 = 0;
const WHOLE: u8 = 2;
const CREATED: u8 = 4;

/// The latest instant on a sketch's clock, and a limiter's longest reset, in microseconds.
const END: u64 = 1 << 62;
const CENTURY: u64 = 3_153_600_000_000_000;

/// A number of variable length: seven bits a byte, the lowest first.
fn short(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f | 0x80).to_le_bytes()[0]);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A payload: version, kind, form, no length of time, and changes.
fn payload(form: u8, changes: &[u8]) -> Vec<u8> {
    [&[1, KIND, form][..], &words(&[0]), changes].concat()
}

/// The number of an item's cells, the last charge, the arrival time, the shift, and the places of the cells.
fn charge(last: u64, arrival: u64, shift: u64, places: &[u32]) -> Vec<u8> {
    let count = u8::try_from(places.len()).unwrap();
    let places: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    [&[count][..], &words(&[last, arrival, shift]), &places].concat()
}

/// The change of a call that finds a sketch.
fn charged(last: u64, arrival: u64, shift: u64, places: &[u32]) -> Vec<u8> {
    [&[0][..], &charge(last, arrival, shift, places)].concat()
}

/// The change of a call that makes a sketch.
fn begun(width: u64, depth: u64, charge: &[u8]) -> Vec<u8> {
    [&[1][..], charge, &short(width), &short(depth), &words(&[7, 8])].concat()
}

/// Neighbouring cells.
fn piece(first: u64, length: u64, cells: &[u8]) -> Vec<u8> {
    [&[2][..], &short(first), &short(length), cells].concat()
}

#[test]
fn a_forged_effect_is_an_error_that_changes_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, "key a 9 10 10s WIDTH 8 DEPTH 2", 0);
    text(con, "SET text x");
    let before = text(con, "DEBUG DIGEST");
    let cell = words(&[START]);
    let sound = charged(0, 0, 0, &[]);
    let many = vec![0; 64_008];
    let whole = |cells: usize| {
        let state = [short(2), short(2), words(&[7, 8, 0, 0, 0]), words(&vec![0; cells])].concat();
        [&[1, KIND, WHOLE][..], &words(&[0]), &state].concat()
    };
    let mut forged = vec![
        ("nothing", payload(CHANGES, &[])),
        ("an unknown form of change", payload(CHANGES, &[3])),
        ("another one", payload(CHANGES, &[&[0x80][..], &sound].concat())),
        ("another one", payload(CHANGES, &[&[0xff][..], &sound].concat())),
        ("an unknown form of payload", payload(8, &sound)),
        ("a whole state that is created", payload(WHOLE | CREATED, &sound)),
        ("bytes behind the change", payload(CHANGES, &[&sound[..], &[9]].concat())),
        ("nine places", payload(CHANGES, &charged(0, 0, 0, &[0; 9]))),
        ("255 places", payload(CHANGES, &charged(0, 0, 0, &[0; 255]))),
        ("a place that does not follow", payload(CHANGES, &[&[0, 1], &sound[2..]].concat())),
        ("part of a place", payload(CHANGES, &[&[0, 1], &sound[2..], &[0; 3]].concat())),
        ("places that do not follow", payload(CHANGES, &[&[0, 0xff], &sound[2..]].concat())),
        ("a charge after the end of time", payload(CHANGES, &charged(END + 1, 0, 0, &[0]))),
        ("a charge long after it", payload(CHANGES, &charged(u64::MAX, 0, 0, &[0]))),
        ("an arrival too late", payload(CHANGES, &charged(0, END + 2 * CENTURY + 1, 0, &[0]))),
        ("an arrival far too late", payload(CHANGES, &charged(0, u64::MAX, 0, &[0]))),
        ("a shift too long", payload(CHANGES, &charged(0, 0, END + 1, &[0]))),
        ("a longer shift", payload(CHANGES, &charged(0, 0, u64::MAX, &[0]))),
        ("a piece of 64,008 bytes", payload(CHANGES, &piece(0, 64_008, &many))),
        ("a piece of part of a cell", payload(CHANGES, &piece(0, 9, &[0; 9]))),
        ("a piece of less than a cell", payload(CHANGES, &piece(0, 1, &[0]))),
        ("a piece that does not follow", payload(CHANGES, &piece(0, 16, &cell))),
        ("a piece of a length beyond all", payload(CHANGES, &piece(0, u64::MAX, &cell))),
        ("a piece that begins beyond 32 bits", payload(CHANGES, &piece(1 << 32, 8, &cell))),
        ("a cell too late", payload(CHANGES, &piece(0, 8, &words(&[END + 2 * CENTURY + 1])))),
        ("a second cell too late", payload(CHANGES, &piece(0, 16, &words(&[0, u64::MAX])))),
        (
            "a second change that is malformed",
            payload(CHANGES, &[&sound[..], &piece(0, 3, &[0; 3])].concat()),
        ),
        ("two sound changes", payload(CHANGES, &[&sound[..], &sound[..]].concat())),
        ("a whole state with a cell missing", whole(3)),
        ("a whole state with a cell left over", whole(5)),
        (
            "a sketch among several limits",
            [&[1, 15, CHANGES][..], &words(&[0]), &[1, KIND], &words(&[0]), &sound].concat(),
        ),
        ("a length of time", [&[1, KIND, CHANGES][..], &words(&[1_000_000]), &sound].concat()),
        ("a shadow", [&[1, KIND, CHANGES][..], &words(&[1 << 63]), &sound].concat()),
        ("an expiry beyond all", [&payload(1, &sound)[..], &words(&[u64::MAX])].concat()),
    ];
    for (width, depth) in [
        (0, 1),
        (3, 1),
        (1 << 26, 1),
        (1 << 32, 1),
        (u64::MAX, 1),
        (1, 0),
        (1, 9),
        (1 << 25, 2),
        (1 << 31, 8),
    ] {
        for form in [CHANGES, CREATED] {
            forged.push(("a shape", payload(form, &begun(width, depth, &charge(0, 0, 0, &[])))));
        }
    }
    let creation = payload(CREATED, &begun(2, 2, &charge(START, START + 1, 5, &[0, 2])));
    for length in 0..creation.len() {
        forged.push(("a beginning that is cut", creation[..length].to_vec()));
    }
    for (what, effect) in &forged {
        for key in ["key", "text", "missing"] {
            assert_eq!(apply(con, key, effect), Err(MALFORMED.into()), "{what} on {key}: {effect:02x?}");
        }
        // Beside a sound one: both or none.
        let both = call_bytes(con, &[b"RL.APPLY", b"text", b"\x01\0\0", b"key", effect]);
        assert!(both.is_err(), "{what}");
    }
    // A few bytes make a large sketch, so a call makes one only.
    assert!(call_bytes(con, &[b"RL.APPLY", b"one", &creation, b"other", &creation]).is_err());
    assert_eq!(text(con, "DEBUG DIGEST"), before);
    // The sound ones of the same form are applied.
    apply(con, "whole", &whole(4)).unwrap();
    apply(con, "sound", &creation).unwrap();
    assert!(text(con, "RL.INFO whole").contains("width, 2, depth, 2, ahead, 0, all_ahead, 0, "));
}

#[test]
fn cells_that_there_are_not_are_passed_over() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, "key a 9 10 10s WIDTH 8 DEPTH 2", 0);
    let before = dump_bytes(con, "key");
    let late = words(&[END]);
    for (what, changes) in [
        ("a place beyond the cells", charged(0, START, 0, &[16])),
        ("places far beyond them", charged(0, START, 0, &[u32::MAX; 8])),
        ("no place", charged(0, START, 0, &[])),
        ("a piece beyond them", piece(16, 8, &late)),
        ("a piece far beyond them", piece(u32::MAX.into(), 8, &late)),
        ("a piece that ends beyond them", piece(15, 16, &[words(&[0]), late.clone()].concat())),
        ("an empty piece", piece(0, 0, &[])),
        ("the longest piece", piece(16, 64_000, &late.repeat(8000))),
        ("earlier instants", charged(0, 1, 0, &[0, 1, 2])),
        ("a piece of earlier instants", piece(0, 128, &words(&[1; 16]))),
    ] {
        let earlier = what.ends_with("earlier instants");
        apply(con, "key", &payload(CHANGES, &changes)).unwrap_or_else(|error| panic!("{what}: {error}"));
        if !earlier {
            assert_eq!(dump_bytes(con, "key"), before, "{what}");
        }
    }
    // An item without charges still gets a decision.
    assert_eq!(peek_at(con, "key b 9 10 10s", START + 1_000_000)[1], 10);
    assert_eq!(text(con, "PING"), "PONG");
}

#[test]
fn a_key_that_an_effect_without_a_beginning_makes_can_be_saved_and_loaded() {
    let server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let con = &mut server.connection();
    let mut keys = Vec::new();
    for (number, changes) in [
        charged(0, 0, 0, &[]),
        charged(START, START + 1_000_000, 0, &[0]),
        charged(START, START + 1_000_000, 77, &[0, 1, 9]),
        piece(0, 8, &words(&[START])),
        piece(5, 8, &words(&[START])),
        piece(0, 64_000, &words(&[START]).repeat(8000)),
    ]
    .into_iter()
    .enumerate()
    {
        for form in [CHANGES, CREATED] {
            for make in ["", "SET KEY text", "RL.GCRA KEY 9 1 1h", "RL.SKETCH KEY a 1 1 1h"] {
                // A sketch that the key holds keeps its shape, unless the effect says that it was missing.
                let kept = make.contains("SKETCH") && form == CHANGES;
                let key = format!("key:{number}:{form}:{}", make.len());
                if !make.is_empty() {
                    text(con, &make.replace("KEY", &key));
                }
                apply(con, &key, &payload(form, &changes)).unwrap();
                let shape = if kept { "width, 16384, depth, 4, " } else { "width, 1, depth, 1, " };
                let told = text(con, &format!("RL.INFO {key}"));
                assert!(told.contains(shape), "{key}: {told}");
                keys.push(key);
            }
        }
    }
    let all = |con: &mut Connection| keys.iter().map(|key| dump_bytes(con, key)).collect::<Vec<_>>();
    let before = all(con);
    text(con, "DEBUG RELOAD");
    assert!(all(con) == before, "an RDB");
    text(con, "DEBUG LOADAOF");
    assert!(all(con) == before, "effects");
    rewrite_aof(con);
    text(con, "DEBUG LOADAOF");
    assert!(all(con) == before, "a rewritten AOF");
    for key in &keys {
        let dump = dump_bytes(con, key);
        call_bytes(con, &[b"RESTORE", b"restored", b"0", &dump, b"REPLACE"]).unwrap();
        assert_eq!(dump_bytes(con, "restored"), dump);
        // It works: once it is reset, it admits.
        assert_eq!(ask(con, &format!("{key} a 0 1 1s"), 3_600_000)[0], 0, "{key}");
        assert_eq!(ask(con, &format!("{key} a 0 1 1s"), 3_600_000)[0], 1, "{key}");
    }
}

#[test]
fn forged_instants_at_the_ends_of_time_are_answered_and_stay_loadable() {
    let server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let con = &mut server.connection();
    let (early, late) = (1_000_000_000_000_000, LATEST.unsigned_abs());
    let instants = [0, early, START, late, late + 1, END - 1, END];
    let mut number = 0;
    for last in instants {
        for arrival in instants.into_iter().chain([END + 2 * CENTURY]) {
            for shift in instants {
                number += 1;
                let key = format!("key:{number}");
                let forged = begun(2, 2, &charge(last, arrival, shift, &[0, 3]));
                apply(con, &key, &payload(CREATED, &forged)).unwrap();
                exercise(con, &key, &[late, early, START, early, late]);
            }
        }
    }
    let digest = text(con, "DEBUG DIGEST");
    for reload in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
        text(con, reload);
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{reload}");
    }
    rewrite_aof(con);
    text(con, "DEBUG LOADAOF");
    assert_eq!(text(con, "DEBUG DIGEST"), digest, "a rewritten AOF");
    assert_eq!(info(con, "ratelimit", "ratelimit_errors").as_deref(), Some("0"));
}
