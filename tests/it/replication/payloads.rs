//! Dumps and effects that the module did not write: an error or a working key, never a crash.

use crate::support::kinds::flood;
use crate::support::{
    AOF_AT_ONCE, LATEST, Server, call_bytes, dump_bytes, error_line, info, ints, last_payload, text,
    used_memory, wait_for,
};

const MALFORMED: &str = "ERR malformed payload, or one of a newer version";

#[test]
fn a_dump_with_bytes_left_over_is_refused_and_leaks_nothing() {
    let server = Server::start(&["--rdbcompression", "no"]);
    let con = &mut server.connection();
    text(con, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    for i in 0..60 {
        ints(con, &format!("RL.CONCURRENT key 100 1h lease:{i}"));
    }
    // Type and module id (10 bytes), the opcode of a string, its length (2 bytes), the kind, last, the number of
    // leases: one less than there are leaves bytes over.
    let whole = dump_bytes(con, "key");
    let mut short = whole.clone();
    let count = short.windows(8).position(|window| window == 60u64.to_le_bytes()).unwrap();
    short[count] = 59;
    let mut refuse = || {
        let error = call_bytes(con, &[b"RESTORE", b"other", b"0", &short]).unwrap_err();
        assert_eq!(error_line(&error), "ERR Bad data format");
        used_memory(con)
    };
    let before = refuse();
    for _ in 0..1000 {
        refuse();
    }
    let after = refuse();
    assert!(after < before + 200_000, "{before} before, {after} after");
    call_bytes(con, &[b"RESTORE", b"other", b"0", &whole]).unwrap();
}

#[test]
fn effects_of_other_versions_kinds_and_lengths_are_errors() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 1h");
    let before = dump_bytes(con, "key");
    let huge = [&[1, 6, 2][..], &[0; 8], &u64::MAX.to_le_bytes()].concat();
    // Due 2/3 of a microsecond after 4102444802666666, last charged at 4102444800250000: two instants and a fraction. Behind the
    // header is the period in the limit's name, a second.
    let words = [1_000_000u64, 4_102_444_802_666_666, 0xaaaa_aaaa_aaaa_aaab, 4_102_444_800_250_000];
    let state = words.map(u64::to_le_bytes).concat();
    let whole = |version: u8, after: &[u8]| [&[version, 3, 2], &state[..], after].concat();
    let payloads: [&[u8]; 12] = [
        b"",
        b"\x01",
        b"\x01\x03",
        b"\x02\x03\x00",
        b"\x01\x63\x00",
        b"\x01\x03\x00",
        b"\x01\x00\x01",
        b"\x01\x00\x00x",
        &huge,
        &whole(2, b""),
        &whole(0, b""),
        &whole(1, b"\0"),
    ];
    for payload in payloads {
        let error = call_bytes(con, &[b"RL.APPLY", b"key", payload]).unwrap_err();
        assert_eq!(error_line(&error), MALFORMED, "{payload:?}");
        assert_eq!(dump_bytes(con, "key"), before);
    }
    let odd = call_bytes(con, &[b"RL.APPLY", b"key", b"x", b"other"]).unwrap_err();
    assert_eq!(error_line(&odd), "ERR payload is missing: RL.APPLY key payload [key payload ...]");
    call_bytes(con, &[b"RL.APPLY", b"key", &whole(1, b"")]).unwrap();
    assert!(text(con, "RL.INFO key").contains("theoretical_arrival_us, 4102444802666666"));
    // Kind 0 says that the key is gone, of whatever type it is.
    call_bytes(con, &[b"RL.APPLY", b"key", b"\x01\x00\x00"]).unwrap();
    assert_eq!(text(con, "EXISTS key"), "0");
}

#[test]
fn what_is_sent_for_a_large_table_is_what_changed() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    flood(con, (0..2000).map(|id| format!("RL.CONCURRENT lease 5000 1h id{id}")));
    let mut size = || info(con, "persistence", "aof_current_size").unwrap().parse::<u64>().unwrap();
    let before = size();
    let other = &mut server.connection();
    for line in ["CONCURRENT lease 5000 1h another", "RENEW lease 1h another", "RELEASE lease another"] {
        ints(other, &format!("RL.{line}"));
    }
    assert!(size() - before < 600, "three changes of a table of 2000 leases");
}

#[test]
fn an_effect_replaces_a_key_of_another_kind() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 9 3 1h COST 2");
    let (payload, gcra) = (last_payload(&server), dump_bytes(con, "key"));
    for other in ["SET key x", "LPUSH key x", "RL.TOKENBUCKET key 1 1 1h", "RL.CONCURRENT key 1 1h a"] {
        text(con, "DEL key");
        text(con, other);
        call_bytes(con, &[b"RL.APPLY", b"key", &payload]).unwrap();
        assert_eq!(dump_bytes(con, "key"), gcra, "{other}");
        assert!(text(con, "PTTL key").parse::<i64>().unwrap() > 0);
    }
}

#[test]
fn a_large_value_that_an_effect_replaces_is_freed_on_another_thread() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 9 3 1h COST 2");
    let changes = last_payload(&server);
    // Version, kind, form, length and a gate that closed in 2100: a whole state, without an expiry.
    let whole = [
        &[1, 10, 2][..],
        &[1_000_000, 4_102_444_800_000_000, 4_102_444_800_000_000u64].map(u64::to_le_bytes).concat(),
    ]
    .concat();
    let leases = || (0..1000).map(|i| format!("RL.CONCURRENT large 1000 1h {i:0>64}"));
    let fields = || (0..1000).map(|i| format!("HSET large field:{i} value"));
    for (payload, expires) in [(changes, true), (whole, false)] {
        for large in [leases().collect::<Vec<_>>(), fields().collect()] {
            flood(con, large.into_iter());
            text(con, "PEXPIRE large 3600000");
            text(con, "CONFIG RESETSTAT");
            call_bytes(con, &[b"RL.APPLY", b"large", &payload]).unwrap();
            wait_for("the other thread", || info(con, "memory", "lazyfreed_objects").as_deref() == Some("1"));
            assert_eq!(text(con, "PTTL large") != "-1", expires, "the old expiry is gone");
            text(con, "DEL large");
        }
    }
}

#[test]
fn a_value_that_no_call_can_make_is_refused() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let word = |number: u64| number.to_le_bytes();
    let gate = [word(4_102_444_800_000_000), word(4_102_444_800_000_000)].concat();
    let second = word(1_000_000);
    let shadow = |length: u64| word(length | 1 << 63);
    let set = |limits: &[&[u8]]| [&[15][..], &word(0), &word(limits.len() as u64), &limits.concat()].concat();
    let named = |length: [u8; 8]| [&[10][..], &length, &gate].concat();
    let leases = |length: [u8; 8]| [&[6][..], &length, &word(4_102_444_800_000_000), &word(0)].concat();
    let (t, end) = (1_700_000_000_000_000, LATEST.unsigned_abs() + 1);
    let page = |words: [u64; 5]| [&[16][..], &word(3_600_000_000), &words.map(word).concat()].concat();
    let strikes = |words: [u64; 6]| [&[17][..], &second, &words.map(word).concat()].concat();
    let charge =
        |kind: u8, length: u64, cost: u64| [&[kind][..], &word(length), &word(cost), &word(t)].concat();
    let gcra = charge(3, 1_000_000, 5);
    let hold = |id: &[u8], ends: u64, charges: &[&[u8]]| {
        let length = u16::try_from(id.len()).unwrap().to_le_bytes();
        let count = [u8::try_from(charges.len()).unwrap()];
        [&length[..], id, &word(ends), &count, &charges.concat()].concat()
    };
    let holds = |length: [u8; 8], holds: &[&[u8]]| {
        [&[18][..], &length, &word(t), &word(0), &word(holds.len() as u64), &holds.concat()].concat()
    };
    let held = |all: &[&[u8]]| set(&[&named(second), &holds(word(0), all)]);
    let (sound, other) = (hold(b"a", t + 1, &[&gcra]), hold(b"b", t + 1, &[&gcra]));
    let many: Vec<Vec<u8>> = (1..=17).map(|length| charge(3, length, 5)).collect();
    let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    for (what, value) in [
        ("holds without a limit", holds(word(0), &[&sound])),
        ("a set of holds alone", set(&[&holds(word(0), &[&sound])])),
        ("holds twice", set(&[&named(second), &holds(word(0), &[&sound]), &holds(word(0), &[&other])])),
        ("holds with a length", set(&[&named(second), &holds(second, &[&sound])])),
        ("holds in the shadow", set(&[&named(second), &holds(shadow(0), &[&sound])])),
        ("a hold that had ended", held(&[&hold(b"a", t, &[&gcra])])),
        ("a hold without an id", held(&[&hold(b"", t + 1, &[&gcra])])),
        ("a hold with a long id", held(&[&hold(&[b'x'; 257], t + 1, &[&gcra])])),
        ("a hold of nothing", held(&[&hold(b"a", t + 1, &[])])),
        ("a hold of 17 limits", held(&[&hold(b"a", t + 1, &many)])),
        ("a hold of one limit twice", held(&[&hold(b"a", t + 1, &[&gcra, &gcra])])),
        ("a hold of no cost", held(&[&hold(b"a", t + 1, &[&charge(3, 1_000_000, 0)])])),
        ("a hold of holds", held(&[&hold(b"a", t + 1, &[&charge(18, 0, 5)])])),
        ("a hold of several limits", held(&[&hold(b"a", t + 1, &[&charge(15, 0, 5)])])),
        ("a hold of a utilization", held(&[&hold(b"a", t + 1, &[&charge(11, 0, 5)])])),
        ("one id twice", held(&[&sound, &hold(b"a", t + 2, &[&gcra])])),
        ("holds that are not in the order of their ends", held(&[&hold(b"a", t + 2, &[&gcra]), &other])),
        ("holds of one end that are not in the order of their ids", held(&[&other, &sound])),
        ("a page that had ended at its last charge", page([1, t, t + 1, t + 1, 0])),
        ("a page that began after its last charge", page([1, t + 1, t + 2, t, 0])),
        ("a page after the year 9999", page([1, t, end + 1, t, 0])),
        ("strikes before their window", strikes([1, t + 1, 0, 0, 0, t])),
        ("a level that no ban has", strikes([0, t, 43, t, 1, t])),
        ("a ban after the year 9999", strikes([0, t, 1, end + 1, 1, t])),
        ("over a century to forgive", strikes([0, t, 1, t, 3_153_600_000_000_001, t])),
        ("a set of none", set(&[])),
        ("a set of one", set(&[&named(second)])),
        ("a gate without an interval", named(word(0))),
        ("leases of a length", leases(second)),
        ("a set with a length", [&[15][..], &second, &word(0)].concat()),
        ("a set in the shadow", [&[15][..], &shadow(0), &word(2), &named(second), &leases(word(0))].concat()),
        ("a gate in the shadow without an interval", named(shadow(0))),
        ("leases in the shadow of a length", leases(shadow(1_000_000))),
        ("a length of over a century in the shadow", named(shadow(3_153_600_000_000_001))),
        ("a utilization in the shadow", [&[11][..], &shadow(0), &gate].concat()),
    ] {
        // Version, kind, form: a whole state.
        let payload = [&[1, value[0], 2][..], &value[1..]].concat();
        let error = call_bytes(con, &[b"RL.APPLY", b"key", &payload]).unwrap_err();
        assert_eq!(error_line(&error), MALFORMED, "{what}");
        assert_eq!(text(con, "EXISTS key"), "0", "{what}");
    }
    let tried = [leases(shadow(0)), named(shadow(1_000_000))];
    for value in [
        held(&[&sound, &other]),
        held(&[&hold(&[0; 256], t + 1, &many[..16])]),
        named(second),
        leases(word(0)),
        set(&[&leases(word(0)), &named(second)]),
        page([1, t, end, t, 0]),
        strikes([1, t, 42, end, 3_153_600_000_000_000, t]),
        tried[0].clone(),
        tried[1].clone(),
        set(&[&leases(word(0)), &tried[0], &named(second), &tried[1]]),
    ] {
        let payload = [&[1, value[0], 2][..], &value[1..]].concat();
        call_bytes(con, &[b"RL.APPLY", b"key", &payload]).unwrap();
    }
}
