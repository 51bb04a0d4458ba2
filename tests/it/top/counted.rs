//! What counts as a refusal of a key, and in which order keys are replied.

use std::collections::BTreeMap;

use redis::Value;

use super::{ON, counts, entries, entry, refuse, top};
use crate::support::{SECOND, Server, T0, call, call_bytes, error, refused, text};

#[test]
fn refusals_of_each_command_are_counted_by_key() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    let shed = |number: u64| format!("RL.SHED shed 1 AT {}", T0 + 4 * SECOND * number);
    let shed: Vec<String> = (0..40).map(shed).collect();
    let mut lines = vec![
        "RL.TOKENBUCKET bucket 1 1 1h",
        "RL.TOKENBUCKET batch 1 1 1h BATCH",
        "RL.LEAKYBUCKET water 1 1 1h",
        "RL.GCRA gcra 0 1 1h",
        "RL.GCRA partial 0 1 1h PARTIAL",
        "RL.GCRA booked 0 1 1h RESERVE MAXWAIT 1ms",
        "RL.FIXEDWINDOW window 1 1h",
        "RL.FIXEDWINDOW aligned 1 36500d ALIGNED",
        "RL.CALENDAR page 1 YEAR",
        "RL.SLIDINGWINDOW sliding 1 36500d",
        "RL.SLIDINGWINDOW precise 1 1h PRECISION 1m",
        "RL.SLIDINGLOG log 1 1h",
        "RL.SLIDINGLOG hammered 1 1h COUNTREFUSED",
        "RL.UNIFORM gate 1h",
        "RL.SMOOTH smooth 1 1h BURST 0 MAXWAIT 1ms",
        "RL.SMOOTH warm 1 1h WARMUP 1h MAXWAIT 1ms",
        "RL.PENALTY struck 3 1h 1h",
        "RL.CONCURRENT lease 1 1h id",
        "RL.THROTTLE cell 0 1 3600",
        "CL.THROTTLE redis-cell 0 1 3600",
        "RL.SKETCH sketch item 0 1 1h",
        "RL.XADD stream 1 * f v",
        "RL.LPUSH list 1 a",
        "RL.RPUSH other-list 1 a",
        "RL.MULTI 1 multi LIMIT GCRA 0 1 1h",
        "RL.ASK asked one",
        "RL.ASK both two",
    ];
    lines.extend(shed.iter().map(String::as_str));
    text(con, "RL.POLICY SET one LIMIT GCRA 0 1 1h");
    text(con, "RL.POLICY SET two LIMIT GCRA 0 1 1h LIMIT FIXEDWINDOW 9 1h");
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let key = words[if words[0] == "RL.MULTI" { 2 } else { 1 }];
        let times = if key == "shed" { 1 } else { 5 };
        for number in 0..times {
            // Each lease has an id of its own.
            let line = line.replace(" id", &format!(" id{number}"));
            let reply = call(con, &line.split(' ').collect::<Vec<_>>()).unwrap();
            if refused(&reply) {
                *expected.entry(key.to_string()).or_default() += 1;
            }
        }
    }
    // Each key was refused at least once.
    assert_eq!(expected.len(), 28, "{expected:?}");
    let expected: Vec<_> = expected.into_iter().collect();
    assert_eq!(counts(con), expected);
    for (key, count) in expected {
        let least = if ["shed", "struck"].contains(&key.as_str()) { 3 } else { 4 };
        assert!(count >= least, "{key}: {count}");
    }
}

#[test]
fn a_cost_counts_once_and_items_of_a_sketch_together() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for line in [
        "RL.GCRA key 5 1 1h COST 100",
        "RL.GCRA key 5 1 1h COST 9007199254740991",
        "RL.SKETCH sketch a 0 1 1h COST 2",
        "RL.SKETCH sketch b 0 1 1h COST 2",
        "RL.SKETCH sketch c 0 1 1h COST 2",
    ] {
        text(con, line);
    }
    assert_eq!(top(con, ""), [entry("sketch", 0, 3, 0), entry("key", 0, 2, 0)]);
}

#[test]
fn admissions_looks_and_errors_are_not_counted() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET api LIMIT GCRA 9 1 1h LIMIT UNIFORM 1h");
    for line in [
        // Admitted.
        "RL.GCRA key 0 1 1h",
        "RL.GCRA key 0 1 1h FORCE COST 5",
        "RL.GCRA key 0 1 1h RESERVE",
        "RL.UNIFORM gate 1h",
        "RL.CONCURRENT lease 1 1h a",
        "RL.SKETCH sketch a 0 1 1h",
        "RL.XADD stream 1 * f v",
        "RL.SHED shed 0.1",
        "RL.FIXEDWINDOW held 1 1h HOLD a 1h",
        "RL.ASK asked api",
        // The same lease and the same hold again.
        "RL.CONCURRENT lease 1 1h a",
        "RL.FIXEDWINDOW held 1 1h HOLD a 1h",
        "RL.SETTLE held a FIXEDWINDOW 1 1h COST 9",
        // Looks, on limits that would refuse.
        "RL.GCRA key 0 1 1h COST 0",
        "RL.SKETCH sketch a 0 1 1h COST 0",
        "RL.THROTTLE key 0 1 3600 0",
        "RL.PEEK key GCRA 0 1 1h",
        "RL.PEEK key GCRA 0 1 1h COST 5",
        "RL.PEEK sketch SKETCH a 0 1 1h",
        "RL.PEEK gate UNIFORM 1h",
        "RL.MULTI 2 key gate COST 0 LIMIT GCRA 0 1 1h ON 1 LIMIT UNIFORM 1h ON 2",
        "RL.MULTIPEEK 1 key LIMIT GCRA 0 1 1h",
        "RL.ASKPEEK asked api",
        "RL.ASK asked api COST 0",
        "RL.REFUND gate UNIFORM 1h",
        "RL.MULTIREFUND 1 key LIMIT GCRA 0 1 1h",
        "RL.RELEASE lease b",
        "RL.RENEW lease 1h b",
        "RL.INFO key",
    ] {
        text(con, line);
    }
    for line in [
        "RL.GCRA key 0 1 0",
        "RL.GCRA sketch 0 1 1h",
        "RL.SKETCH key a 0 1 1h",
        "RL.SKETCH sketch a 0 1 1h WIDTH 3",
        "RL.ASK key missing",
        "RL.MULTI 2 key key LIMIT GCRA 0 1 1h",
        "RL.XADD key 1 * f v",
        "NOSUCH key",
    ] {
        error(con, line);
    }
    assert_eq!(top(con, ""), []);
}

#[test]
fn keys_come_in_descending_order_ten_by_default() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    // Key number 1 is refused once, number 12 twelve times, in turns.
    for round in 0..12 {
        for number in round + 1..=12 {
            refuse(con, &format!("key:{number}"), 1);
        }
    }
    let all: Vec<_> = (1..=12).rev().map(|number| entry(&format!("key:{number}"), 0, number, 0)).collect();
    assert_eq!(top(con, ""), all[..10]);
    assert_eq!(top(con, "COUNT 10"), all[..10]);
    assert_eq!(top(con, "COUNT 1"), all[..1]);
    assert_eq!(top(con, "count 11"), all[..11]);
    for count in [12, 100, 10_000] {
        assert_eq!(top(con, &format!("COUNT {count}")), all);
    }
    for options in ["PREVIOUS", "PREVIOUS COUNT 5", "COUNT 5 previous"] {
        assert_eq!(top(con, options), [], "{options}");
    }
    assert_eq!(top(con, ""), all[..10], "a look forgets nothing");
    // The keys are counted, whatever they hold.
    text(con, "FLUSHALL");
    assert_eq!(top(con, "COUNT 12"), all);
    assert_eq!(text(con, "DBSIZE"), "0");
}

#[test]
fn equal_keys_of_two_databases_are_two() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for (database, times) in [(0, 1), (1, 3), (15, 2)] {
        text(con, &format!("SELECT {database}"));
        refuse(con, "key", times);
    }
    let all = [entry("key", 1, 3, 0), entry("key", 15, 2, 0), entry("key", 0, 1, 0)];
    for database in [0, 1, 9] {
        text(con, &format!("SELECT {database}"));
        assert_eq!(top(con, ""), all, "it replies the keys of all databases");
    }
}

#[test]
fn keys_of_up_to_256_bytes_are_counted_and_may_be_any_bytes() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    let all: Vec<u8> = (0..=255).collect();
    let long = vec![b'x'; 257];
    let mut refuse = |key: &[u8]| {
        let words: [&[u8]; 7] = [b"RL.GCRA", key, b"0", b"1", b"1h", b"COST", b"2"];
        assert!(refused(&call_bytes(con, &words).unwrap()));
    };
    for _ in 0..3 {
        refuse(&all);
        refuse(&long);
        refuse(&long.repeat(400));
    }
    refuse(b"");
    refuse(b"");
    refuse(&long[1..]);
    let reply = call(con, &["RL.TOP"]).unwrap();
    assert_eq!(entries(&reply).len(), 3);
    let Value::Array(found) = reply else { unreachable!() };
    let keys: Vec<Vec<u8>> = found
        .into_iter()
        .map(|entry| match entry {
            Value::Array(fields) => match &fields[0] {
                Value::BulkString(key) => key.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(keys, [all, Vec::new(), long[1..].to_vec()]);
}

#[test]
fn calls_in_transactions_and_scripts_are_counted_and_can_look() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    text(con, "MULTI");
    for line in [
        "RL.GCRA a 0 1 1h COST 2",
        "RL.TOP",
        "RL.GCRA a 0 1 1h COST 2",
        "RL.TOP COUNT 5",
        "RL.TOP RESET",
        "RL.TOP",
    ] {
        assert_eq!(text(con, line), "QUEUED");
    }
    assert_eq!(
        text(con, "EXEC"),
        "[[1, 1, 1, -1, 0], [[a, 0, 1, 0]], [1, 1, 1, -1, 0], [[a, 0, 2, 0]], OK, []]"
    );
    let script = "EVAL redis.call('RL.GCRA',KEYS[1],0,1,'1h','COST',2)return(redis.call('RL.TOP')) 1 b";
    assert_eq!(text(con, &script.replace("2)return", "2);return")), "[[b, 0, 1, 0]]");
}
