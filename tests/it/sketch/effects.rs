//! Effects on sketches: applied in any order, applied twice, and with bytes changed.

use redis::{Connection, Value};

use super::START;
use crate::support::{AOF_AT_ONCE, Server, call, call_bytes, dump_bytes, error_line, last_payload, text};

pub(super) const MALFORMED: &str = "ERR malformed payload, or one of a newer version";

/// The kind of a sketch.
pub(super) const KIND: u8 = 19;

pub(super) fn apply(con: &mut Connection, key: &str, payload: &[u8]) -> Result<(), String> {
    call_bytes(con, &[b"RL.APPLY", key.as_bytes(), payload]).map(|_| ()).map_err(|error| error_line(&error))
}

#[test]
fn effects_may_come_in_any_order_and_more_than_once() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let mut effects = Vec::new();
    let mut now = 0;
    for number in 0..20 {
        now += if number == 10 { 0 } else { 100 };
        // Many of ten items share a cell. The eleventh call sets the clock back.
        let at = if number >= 10 { START - 86_400_000_000 + now } else { START + now };
        ask_at_key(con, number % 10, at);
        effects.push(last_payload(&server));
    }
    let expected = dump_bytes(con, "key");
    let (creation, others) = effects.split_first().unwrap();
    assert_eq!(creation[..3], [1, KIND, 5], "created, with an expiry");
    for order in 0..others.len() {
        apply(con, "other", creation).unwrap();
        let mut shuffled = others.to_vec();
        shuffled.rotate_left(order);
        if order % 2 == 0 {
            shuffled.reverse();
        }
        shuffled.extend_from_within(..order);
        for effect in &shuffled {
            apply(con, "other", effect).unwrap();
        }
        assert_eq!(dump_bytes(con, "other"), expected, "order {order}");
    }
    // The creation alone replaces what a key holds.
    for make in ["SET other text", "RL.GCRA other 1 1 1h", "RL.SKETCH other a 1 1 1h"] {
        text(con, "DEL other another");
        text(con, make);
        apply(con, "other", creation).unwrap();
        apply(con, "another", creation).unwrap();
        assert_eq!(dump_bytes(con, "other"), dump_bytes(con, "another"), "{make}");
    }
}

fn ask_at_key(con: &mut Connection, item: u64, at: u64) {
    let line = format!("RL.SKETCH key item:{item} 9 10 1s WIDTH 4 DEPTH 2 AT {at}");
    text(con, &line);
}

#[test]
fn a_sound_effect_or_dump_with_any_byte_changed_or_cut_is_an_error_or_makes_a_key_that_works() {
    let server = Server::start(&[&AOF_AT_ONCE[..], &["--ratelimit.max-sketch-bytes", "256mb"]].concat());
    let con = &mut server.connection();
    text(con, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    ask_at_key(con, 1, START);
    let creation = last_payload(&server);
    ask_at_key(con, 2, START - 86_400_000_000);
    let effect = last_payload(&server);
    let dump = dump_bytes(con, "key");
    let (mut applied, mut restored) = (0, 0);
    for (sound, is_dump) in [(&creation, false), (&effect, false), (&dump, true)] {
        // The last ten bytes of a dump are the server's.
        let body = if is_dump { sound.len() - 10 } else { sound.len() };
        for place in 0..body {
            let changed = [0x01, 0x02, 0x40, 0x7f, 0x80, 0xff].map(|bits| {
                let mut changed = sound.clone();
                changed[place] ^= bits;
                changed
            });
            let cut = [&sound[..place], &sound[body..]].concat();
            for bytes in changed.iter().chain([&cut]) {
                text(con, "DEL key");
                if is_dump {
                    if call_bytes(con, &[b"RESTORE", b"key", b"0", bytes]).is_err() {
                        continue;
                    }
                    restored += 1;
                } else {
                    apply(con, "key", &creation).unwrap();
                    match apply(con, "key", bytes) {
                        Ok(()) => applied += 1,
                        Err(error) => assert_eq!(error, MALFORMED),
                    }
                }
                let told = text(con, "TYPE key");
                if text(con, "RL.INFO key").contains("limiter, SKETCH") {
                    exercise(con, "key", &[START, START - 86_400_000_000, START + 1]);
                } else {
                    assert!(["none", "ratelimit"].contains(&told.as_str()), "{told}");
                }
            }
        }
    }
    // The test is worth its time only if some are keys.
    assert!(applied > 100 && restored > 100, "{applied} applied, {restored} restored");
    assert_eq!(text(con, "PING"), "PONG");
}

/// Asks a key at each of these instants. Every reply is a decision.
pub(super) fn exercise(con: &mut Connection, key: &str, instants: &[u64]) {
    for at in instants {
        let at = at.to_string();
        for (item, cost) in [("a", "1"), ("b", "2"), ("c", "0"), ("d", "1000")] {
            let parameters = [item, "99", "100", "1h", "COST", cost, "AT", &at];
            let peek = [&["RL.PEEK", key, "SKETCH"], &parameters[..]].concat();
            let told = call(con, &peek).unwrap_or_else(|error| panic!("{peek:?}: {error}"));
            let line = [&["RL.SKETCH", key], &parameters[..]].concat();
            let done = call(con, &line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            assert_eq!(limited(&told), limited(&done), "{line:?}");
        }
    }
    text(con, &format!("RL.INFO {key}"));
}

fn limited(reply: &Value) -> i64 {
    match reply {
        Value::Array(five) => match five.as_slice() {
            [Value::Int(limited), _, _, _, _] => *limited,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
