//! A server at its `maxmemory`: what it refuses and evicts; and how large a caller can make a key.

use redis::{Connection, Value};

use crate::support::kinds::{KINDS, charge, flood, settled};
use crate::support::{
    Server, T0, call, call_bytes, dump, error, error_line, info, ints, last_payload, rewrite_aof, skipped,
    sync, text, wait_for,
};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

#[test]
fn a_full_server_refuses_what_consumes_and_changes_nothing() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let con = &mut server.connection();
    let key = |kind: usize| format!("key:{kind:08}");
    for kind in 0..KINDS.len() {
        call(con, &charge(kind, &key(kind), kind).split(' ').collect::<Vec<_>>()).unwrap();
    }
    text(con, "RL.XADD stream 9 * f v");
    text(con, "RL.RPUSH list 9 a");
    let keys: Vec<String> = (0..KINDS.len()).map(key).chain(["stream".into(), "list".into()]).collect();
    let before: Vec<Value> = keys.iter().map(|key| dump(con, key)).collect();
    let errors = |con: &mut Connection| info(con, "ratelimit", "ratelimit_errors").unwrap();
    let own_errors = errors(con);
    text(con, "CONFIG SET maxmemory 1");

    for kind in 0..KINDS.len() {
        assert_eq!(error(con, &charge(kind, &key(kind), kind)), OOM);
        assert_eq!(error(con, &charge(kind, "fresh", kind)), OOM);
    }
    let more =
        ["RL.XADD stream 9 * f v", "RL.LPUSH list 9 b", "RL.RPUSH list 9 b", "CL.THROTTLE fresh 9 1 60"];
    // The server knows no costs: a look is a call of a command that writes.
    let looks = [
        "RL.GCRA key:00000003 9 1 1h COST 0",
        "RL.PENALTY key:00000017 9 1h 1h COST 0",
        "RL.MULTI 1 key:00000015 COST 0 LIMIT GCRA 9 1 1h",
        "CL.THROTTLE fresh 9 1 60 0",
    ];
    for line in
        [&more[..], &looks, &["RL.GCRA key:00000003 9 1 1h FORCE"], &["RL.THROTTLE fresh 9 1 60"]].concat()
    {
        assert_eq!(error(con, line), OOM, "{line}");
    }
    let after: Vec<Value> = keys.iter().map(|key| dump(con, key)).collect();
    assert!(before == after && text(con, "EXISTS fresh") == "0");
    assert_eq!(errors(con), own_errors, "the server refused, not the module");

    // What gives room back, and what only looks, goes on.
    let settled = ints(con, "RL.SETTLE key:00000018 hold:00000018 FIXEDWINDOW 9 1h COST 0");
    assert_eq!(settled, [0, 9, 9, 0, 0, 1]);
    text(con, "RL.MULTISETTLE 1 key:00000015 id COST 1 LIMIT GCRA 9 1 1h");
    assert_eq!(ints(con, "RL.PEEK key:00000003 GCRA 9 1 1h")[..3], [0, 10, 9]);
    assert_eq!(ints(con, "RL.PEEK key:00000017 PENALTY 9 1h 1h COST 0")[..3], [0, 9, 8]);
    assert_eq!(ints(con, "RL.REFUND key:00000003 GCRA 9 1 1h"), [0, 10, 10, 0, 0]);
    assert_eq!(ints(con, "RL.RENEW key:00000013 2h lease:00000013"), [1]);
    assert_eq!(ints(con, "RL.RELEASE key:00000013 lease:00000013"), [1]);
    assert_eq!(text(con, "EXISTS key:00000003 key:00000013"), "0");
    text(con, "RL.MULTIPEEK 1 key:00000015 LIMIT GCRA 9 1 1h");
    text(con, "RL.MULTIREFUND 1 key:00000015 LIMIT GCRA 9 1 1h");
    text(con, "RL.INFO key:00000015");
}

#[test]
fn a_key_that_was_evicted_is_a_fresh_limiter() {
    for policy in ["volatile-lru", "volatile-ttl", "allkeys-random"] {
        let server = Server::start(&["--maxmemory-policy", policy]);
        let con = &mut server.connection();
        let most = settled(&server) + 2_000_000;
        text(con, &format!("CONFIG SET maxmemory {most}"));
        flood(
            con,
            (0..30_000).map(|number| charge(number % KINDS.len(), &format!("key:{number:08}"), number)),
        );
        // The server goes on evicting between two calls.
        wait_for("counts of one instant", || {
            let evicted: u64 = info(con, "stats", "evicted_keys").unwrap().parse().unwrap();
            assert!(evicted > 1000, "{policy}: {evicted} evicted");
            let kept: u64 = text(con, "DBSIZE").parse().unwrap();
            kept + evicted == 30_000
        });
        let gone = (0..30_000)
            .step_by(KINDS.len())
            .find(|number| text(con, &format!("EXISTS key:{number:08}")) == "0");
        let gone = format!("key:{:08}", gone.unwrap());
        assert_eq!(ints(con, &charge(0, &gone, 0))[..4], [0, 9, 8, 0], "{policy}: as the very first call");
    }
}

#[test]
fn keys_are_intact_after_they_were_moved_by_active_defragmentation() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if call(con, &["CONFIG", "SET", "activedefrag", "yes"]).is_err() {
        return skipped(con, "active defragmentation");
    }
    text(con, "CONFIG SET active-defrag-ignore-bytes 1");
    text(con, "CONFIG SET active-defrag-threshold-lower 1");
    flood(con, (0..60_000).map(|number| charge(number % KINDS.len(), &format!("key:{number:08}"), number)));
    // Holes: three of four are gone.
    flood(
        con,
        (0..60_000)
            .filter(|number| number % 4 != number / 64 % 4)
            .map(|number| format!("DEL key:{number:08}")),
    );
    let digest = text(con, "DEBUG DIGEST");
    let hits = |con: &mut Connection| info(con, "stats", "active_defrag_key_hits").unwrap();
    wait_for("a key that was moved", || hits(con) != "0");
    // It may never find that it has done enough.
    text(con, "CONFIG SET activedefrag no");
    assert_eq!(text(con, "DEBUG DIGEST"), digest);
    flood(con, (0..60_000).map(|number| charge(number % KINDS.len(), &format!("key:{number:08}"), number)));
}

/// As `SECURITY.md` puts it: what a key may take for each lease, besides its id, and for each entry of a log.
const LEASE: i64 = 200;
const ENTRY: i64 = 24;
/// For each hold, besides its id, and for each of its limits.
const HOLD: i64 = 110;
const HELD: i64 = 32;
const EMPTY: i64 = 1024;

#[test]
fn a_hostile_caller_cannot_make_a_key_larger_than_its_bound() {
    const MOST: i64 = 500;
    const CALLS: u64 = 20_000;
    let most = MOST.to_string();
    let server = Server::start(&["--ratelimit.max-leases", &most, "--ratelimit.max-log-entries", &most]);
    let con = &mut server.connection();
    let usage = |con: &mut Connection, key: &str| -> i64 {
        text(con, &format!("MEMORY USAGE {key} SAMPLES 0")).parse().unwrap()
    };
    // Leases that end at once, so that each makes room for another; and ids as long as they may be.
    let id = |i: u64| format!("{:0>256}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for (key, ttl) in [("leases", 3_600_000), ("ending", 1)] {
        let step = if ttl == 1 { 3 } else { 1 };
        flood(
            con,
            (0..CALLS).map(|i| format!("RL.CONCURRENT {key} {MOST} {ttl}ms {} AT {}", id(i), T0 + step * i)),
        );
        let bound = EMPTY + MOST * (LEASE + 256);
        println!("{key}: {} of {bound}", usage(con, key));
        assert!(usage(con, key) < bound, "{key}: {} of {bound}", usage(con, key));
    }
    // Holds of as many limits as they may have, that stay or end at once.
    text(con, &format!("CONFIG SET ratelimit.max-holds {MOST}"));
    let limits: Vec<String> = (1..=16).map(|minutes| format!("LIMIT GCRA 9007199 1000 {minutes}m")).collect();
    let limits = limits.join(" ");
    for (key, ttl, calls) in [("holds", 3_600_000, MOST.unsigned_abs()), ("holds that end", 1, CALLS / 4)] {
        for i in 0..calls {
            let at = (T0 + if ttl == 1 { 3000 * i } else { i }).to_string();
            let (id, ttl) = (id(i), format!("{ttl}ms"));
            let words = ["RL.MULTI", "1", key, "HOLD", &id, &ttl, "AT", &at];
            let words: Vec<&str> = words.into_iter().chain(limits.split_whitespace()).collect();
            call(con, &words).unwrap();
        }
        let bound = 2 * EMPTY + MOST * (HOLD + 256 + 16 * HELD);
        let words = ["MEMORY", "USAGE", key, "SAMPLES", "0"];
        let Value::Int(used) = call(con, &words).unwrap() else { panic!("no number") };
        println!("{key}: {used} of {bound}");
        assert!(used < bound, "{key}: {used} of {bound}");
    }
    // Far apart and heavy, so that entries take as many bytes as they can.
    let far = |i: u64| T0 + i * 86_400_000_000;
    let century = 3_153_600_000_000u64;
    for (key, options) in
        [("hammered", "COUNTREFUSED COST 300"), ("forced", "FORCE COST 90071992547"), ("plain", "")]
    {
        flood(
            con,
            (0..CALLS).map(|i| format!("RL.SLIDINGLOG {key} {MOST} {century}ms {options} AT {}", far(i))),
        );
        let bound = EMPTY + MOST * ENTRY;
        println!("{key}: {} of {bound}", usage(con, key));
        assert!(usage(con, key) < bound, "{key}: {} of {bound}", usage(con, key));
    }
    // As many sub-buckets as there may be, again and again, with another window each time.
    let precise = |i: u64| {
        format!("RL.SLIDINGWINDOW precise {MOST} {}ms PRECISION {}ms", 1024 * (1 + i / 3000), 1 + i / 3000)
    };
    flood(con, (0..CALLS).map(|i| format!("{} FORCE AT {}", precise(i), T0 + i * (1 + i / 3000) * 1000)));
    println!("precise: {} of {}", usage(con, "precise"), EMPTY + 2048 * 16);
    assert!(usage(con, "precise") < EMPTY + 2048 * 16);
    // Limits of ever other lengths of time: no more than 64 are kept under one key.
    for i in 0..CALLS / 10 {
        let line = format!(
            "RL.MULTI 1 many AT {} LIMIT GCRA 9 1 {}ms LIMIT SLIDINGWINDOW 9 {}ms",
            T0 + i,
            3_600_000 + i,
            3_600_000 + i
        );
        if let Err(error) = call(con, &line.split(' ').collect::<Vec<_>>()) {
            assert_eq!(error_line(&error), "ERR at most 64 limits a key");
        }
    }
    println!("many: {}", usage(con, "many"));
    assert!(usage(con, "many") < EMPTY + 64 * 256, "{}", usage(con, "many"));
}

#[test]
fn a_full_server_refuses_effects_from_clients_and_changes_nothing() {
    let server = Server::start(&["--maxmemory-policy", "noeviction", "--appendonly", "yes"]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 9 1 1h");
    let stores = last_payload(&server);
    let deletes: &[u8] = &[1, 0, 0];
    text(con, "CONFIG SET maxmemory 1");
    let mut apply = |pairs: &[(&str, &[u8])]| {
        let mut words: Vec<&[u8]> = vec![b"RL.APPLY"];
        for (key, payload) in pairs {
            words.extend([key.as_bytes(), payload]);
        }
        call_bytes(con, &words).map_err(|error| error_line(&error))
    };
    assert_eq!(apply(&[("fresh", &stores)]), Err(OOM.into()));
    assert_eq!(apply(&[("key", &stores)]), Err(OOM.into()));
    assert_eq!(apply(&[("key", deletes), ("fresh", &stores)]), Err(OOM.into()), "nor the first of two");
    assert_eq!(
        apply(&[("key", b"malformed")]),
        Err("ERR malformed payload, or one of a newer version".into())
    );
    let con = &mut server.connection();
    assert_eq!(text(con, "EXISTS key fresh"), "1");
    assert_eq!(ints(con, "RL.PEEK key GCRA 9 1 1h")[2], 9);
    // What deletes is not refused.
    call_bytes(con, &[b"RL.APPLY", b"key", deletes]).unwrap();
    assert_eq!(text(con, "EXISTS key"), "0");
}

#[test]
fn a_full_replica_that_heeds_maxmemory_loses_no_effect() {
    let primary = Server::start(&[]);
    let full = ["--maxmemory-policy", "noeviction", "--maxmemory", "1", "--replica-ignore-maxmemory", "no"];
    let replica = primary.replica(&full);
    let (on_primary, on_replica) = (&mut primary.connection(), &mut replica.connection());
    for kind in 0..KINDS.len() {
        let key = format!("key:{kind:08}");
        call(on_primary, &charge(kind, &key, kind).split(' ').collect::<Vec<_>>()).unwrap();
    }
    sync(&primary, &replica);
    assert_eq!(text(on_replica, "DBSIZE"), KINDS.len().to_string());
    assert_eq!(text(on_replica, "DEBUG DIGEST"), text(on_primary, "DEBUG DIGEST"));
    assert_eq!(info(on_replica, "stats", "unexpected_error_replies").as_deref(), Some("0"));
}

#[test]
fn a_full_server_loads_all_of_its_aof() {
    let server = Server::start(&[
        "--maxmemory-policy",
        "noeviction",
        "--appendonly",
        "yes",
        // So that a rewritten file holds effects, too.
        "--aof-use-rdb-preamble",
        "no",
    ]);
    let con = &mut server.connection();
    for kind in 0..KINDS.len() {
        let key = format!("key:{kind:08}");
        call(con, &charge(kind, &key, kind).split(' ').collect::<Vec<_>>()).unwrap();
    }
    let digest = text(con, "DEBUG DIGEST");
    text(con, "CONFIG SET maxmemory 1");
    text(con, "DEBUG LOADAOF");
    assert_eq!(text(con, "DEBUG DIGEST"), digest);
    rewrite_aof(con);
    text(con, "DEBUG LOADAOF");
    assert_eq!(text(con, "DEBUG DIGEST"), digest);
}
