//! `RL.MULTI`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys, all or nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod support;

use std::thread;

use redis::{Connection, Value};
use support::{Server, call, error, info, ints, simple, sync, text};

/// The start of an hour in 2023.
const T0: u64 = 1_700_002_800_000_000;
const SECOND: u64 = 1_000_000;
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The five integers for all, and those of each pair.
fn multi(con: &mut Connection, line: &str) -> (Vec<i64>, Vec<Vec<i64>>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let five = |value: &Value| match value {
        Value::Array(five) => {
            five.iter().map(|n| if let Value::Int(n) = n { *n } else { panic!("{line}: {n:?}") }).collect()
        }
        other => panic!("{line}: {other:?}"),
    };
    match call(con, &words).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Value::Array(reply) => match reply.as_slice() {
            [all, Value::Array(each)] => (five(all), each.iter().map(five).collect()),
            other => panic!("{line}: {other:?}"),
        },
        other => panic!("{line}: {other:?}"),
    }
}

fn dump(con: &mut Connection, key: &str) -> Value {
    call(con, &["DUMP", key]).unwrap()
}

#[test]
fn all_are_charged_or_none_and_the_reply_tells_which_limit_binds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let line = format!("RL.MULTI 1 user AT {T0} LIMIT FIXEDWINDOW 2 1000 LIMIT FIXEDWINDOW 3 60000");
    let (all, each) = multi(con, &line);
    assert_eq!(all, [0, 2, 1, 0, 60_000]);
    assert_eq!(each, [[0, 2, 1, 0, 1000], [0, 3, 2, 0, 60_000]]);
    assert_eq!(multi(con, &line).0, [0, 2, 0, 0, 60_000]);
    let before = dump(con, "user");
    let (all, each) = multi(con, &line);
    assert_eq!(all, [1, 2, 0, 1000, 60_000]);
    // Each answers for itself: the one that would admit says so, and was not charged.
    assert_eq!(each, [[1, 2, 0, 1000, 1000], [0, 3, 1, 0, 60_000]]);
    assert_eq!(dump(con, "user"), before);
    // A second later the minute binds.
    let line = line.replace(&T0.to_string(), &(T0 + SECOND).to_string());
    assert_eq!(multi(con, &line).0, [0, 3, 0, 0, 59_000]);
    let (all, each) = multi(con, &line);
    assert_eq!(all, [1, 3, 0, 59_000, 59_000]);
    assert_eq!(each[0], [0, 2, 1, 0, 1000]);
    // Never is never, whatever the others say.
    assert_eq!(multi(con, &format!("{line} COST 4")).0[3], -1);
}

#[test]
fn limits_go_on_all_keys_or_on_one_of_them_with_costs_of_their_own() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let line = format!(
        "RL.MULTI 2 user address COST 3 AT {T0} LIMIT GCRA 9 1 1000 LIMIT TOKENBUCKET 100 1 1000 ON 2 COST 50 \
         LIMIT CONCURRENT 5 60000 limit ON 1 LIMIT UNIFORM 1000 on 2 LIMIT GCRA 4 1 60000 COST 0 ON 1"
    );
    let (all, each) = multi(con, &line);
    assert_eq!(
        each,
        [
            [0, 10, 7, 0, 3000],
            [0, 10, 7, 0, 3000],
            [0, 100, 50, 0, 50_000],
            // One lease and one passage, whatever the default.
            [0, 5, 4, 0, 60_000],
            [0, 1, 0, 0, 1000],
            // Looked at.
            [0, 5, 5, 0, 0],
        ]
    );
    assert_eq!(all, [0, 1, 0, 0, 60_000]);
    assert!(text(con, "RL.INFO user").contains("stored_limits, 2"));
    assert!(text(con, "RL.INFO address").contains("stored_limits, 3"));
    // A default of 0 looks at all.
    let (all, each) = multi(con, "RL.MULTI 1 new COST 0 LIMIT UNIFORM 1000 LIMIT CONCURRENT 5 60000 a");
    assert_eq!((all[0], each.len()), (0, 2));
    assert_eq!(text(con, "EXISTS new"), "0");
    // The lease is found where it is; the id is an id, whatever it spells.
    assert_eq!(ints(con, &format!("RL.RENEW user 90000 limit AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE user other AT {T0}")), [0]);
    assert_eq!(ints(con, &format!("RL.RELEASE user limit AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE user limit AT {T0}")), [0]);
    assert_eq!(ints(con, "RL.RELEASE address limit"), [0]);
}

#[test]
fn a_single_limit_stands_alone_and_joins_and_parts() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    multi(con, &format!("RL.MULTI 1 key COST 4 AT {T0} LIMIT TOKENBUCKET 10 1 1000"));
    // Its own command, probe and refund work on it.
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET key 10 1 1000 AT {T0}"))[2], 5);
    assert_eq!(ints(con, &format!("RL.REFUND key TOKENBUCKET 10 1 1000 AT {T0}"))[2], 6);
    // Another limit joins it: both are kept, and the single one's command is of the wrong type.
    let (_, each) = multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 2000"));
    assert_eq!(each, [[0, 5, 4, 0, 2000]]);
    assert_eq!(error(con, "RL.TOKENBUCKET key 10 1 1000"), WRONG_TYPE);
    assert_eq!(error(con, "RL.PEEK key FIXEDWINDOW 5 2000"), WRONG_TYPE);
    assert_eq!(error(con, "RL.REFUND key FIXEDWINDOW 5 2000"), WRONG_TYPE);
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} LIMIT TOKENBUCKET 10 1 1000"));
    assert_eq!(each, [[0, 10, 6, 0, 4000]]);
    // The bucket that a call does not name stays as it is until it is as good as new, and its expiry.
    let later = T0 + 3 * SECOND;
    let (_, each) = multi(con, &format!("RL.MULTI 1 key AT {later} LIMIT FIXEDWINDOW 5 2000"));
    assert_eq!(each, [[0, 5, 4, 0, 2000]]);
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {later} LIMIT TOKENBUCKET 10 1 1000"));
    assert_eq!(each, [[0, 10, 9, 0, 1000]]);
    // When it has faded, the next charge leaves the window alone: by then also the slack behind the bucket's end.
    let late = T0 + 200 * SECOND;
    multi(con, &format!("RL.MULTI 1 key AT {late} LIMIT FIXEDWINDOW 5 2000"));
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 5 2000 AT {late}"))[2], 3);
    assert_ne!(text(con, "PEXPIRETIME key"), "-1");
    // Whatever instant is asked for, the key lives as long as its limits last.
    multi(con, &format!("RL.MULTI 1 old AT {T0} LIMIT GCRA 9 1 60000 LIMIT FIXEDWINDOW 5 3600000"));
    let left: i64 = text(con, "PTTL old").parse().unwrap();
    assert!((3_590_000..3_700_000).contains(&left), "{left} ms");
}

#[test]
fn limits_are_known_by_their_length_of_time() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let peek = |con: &mut Connection, limits: &str| {
        let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} {limits}"));
        each.iter().map(|five| five[2]).collect::<Vec<_>>()
    };
    // A sliding window knows its own: another one is another limit.
    ints(con, &format!("RL.SLIDINGWINDOW key 10 60000 COST 7 AT {T0}"));
    let (_, each) = multi(
        con,
        &format!("RL.MULTI 1 key AT {T0} LIMIT SLIDINGWINDOW 5 1000 LIMIT SLIDINGWINDOW 100 3600000"),
    );
    assert_eq!(each, [[0, 5, 4, 0, 2000], [0, 100, 99, 0, 7_200_000]]);
    assert_eq!(peek(con, "LIMIT SLIDINGWINDOW 10 60000"), [3]);
    // Another number under the same length is the same limit.
    assert_eq!(peek(con, "LIMIT SLIDINGWINDOW 20 60000 LIMIT SLIDINGWINDOW 4 1000"), [13, 3]);
    // Changing, adding and dropping limits keeps the others.
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT SLIDINGWINDOW 12 60000 LIMIT GCRA 4 1 1000"));
    assert_eq!(
        peek(con, "LIMIT SLIDINGWINDOW 5 1000 LIMIT SLIDINGWINDOW 10 60000 LIMIT SLIDINGWINDOW 100 3600000"),
        [4, 2, 99]
    );
    // A bucket does not know its period while it stands alone: it is the longest that is named.
    text(con, "DEL key");
    ints(con, &format!("RL.GCRA key 9 10 60000 COST 5 AT {T0}"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1000 LIMIT GCRA 9 10 60000"), [10, 5]);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 1000 LIMIT GCRA 9 10 60000"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1000 LIMIT GCRA 9 10 60000"), [9, 4]);
    // And while another limit is charged that it has nothing to do with, it waits to be named.
    text(con, "DEL key");
    ints(con, &format!("RL.GCRA key 9 10 60000 COST 5 AT {T0}"));
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 1000"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 60000 LIMIT FIXEDWINDOW 5 1000"), [5, 4]);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 60000"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 60000 LIMIT FIXEDWINDOW 5 1000"), [4, 4]);
}

#[test]
fn what_is_given_back_is_given_back_to_each() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT TOKENBUCKET 10 1 1000 LIMIT SLIDINGLOG 8 60000 ON 1";
    multi(con, &format!("RL.MULTI 2 a b COST 6 AT {T0} {limits}"));
    let (all, each) = multi(con, &format!("RL.MULTIREFUND 2 a b COST 2 AT {T0} {limits}"));
    assert_eq!(each, [[0, 10, 6, 0, 4000], [0, 10, 6, 0, 4000], [0, 8, 4, 0, 60_000]]);
    assert_eq!(all, [0, 8, 4, 0, 60_000]);
    // Only what is there, and what is as good as new is gone.
    let (_, each) = multi(con, &format!("RL.MULTIREFUND 1 a COST 99 AT {T0} {limits} LIMIT GCRA 9 1 1000"));
    assert_eq!(each, [[0, 10, 10, 0, 0], [0, 8, 8, 0, 0], [0, 10, 10, 0, 0]]);
    assert_eq!(text(con, "EXISTS a b missing"), "1");
    multi(con, &format!("RL.MULTIREFUND 2 missing b COST 99 AT {T0} LIMIT TOKENBUCKET 10 1 1000"));
    assert_eq!(text(con, "EXISTS a b missing"), "0");
    // FORCE admits into debt, and a refund works it off.
    let (all, _) = multi(con, &format!("RL.MULTI 1 a COST 12 FORCE AT {T0} {limits}"));
    assert_eq!(all, [0, 10, 0, 0, 60_000]);
    let (_, each) = multi(con, &format!("RL.MULTIREFUND 1 a COST 5 AT {T0} {limits}"));
    assert_eq!(each, [[0, 10, 3, 0, 7000], [0, 8, 1, 0, 60_000]]);
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    multi(con, "RL.MULTI 1 several LIMIT GCRA 9 1 1000000 LIMIT FIXEDWINDOW 5 1000000");
    ints(con, "RL.GCRA alone 9 1 1000000");
    text(con, "RL.SHED shed 0.5");
    text(con, "SET text x");
    let digest = text(con, "DEBUG DIGEST");
    let syntax = "ERR syntax error";
    let many = (0..65).map(|i| format!("LIMIT GCRA 1 1 {}", 1000 + i)).collect::<Vec<_>>().join(" ");
    let arity = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    for (line, expected) in [
        ("RL.MULTI 1 k", arity("rl.multi")),
        ("RL.MULTI 2 k LIMIT", arity("rl.multi")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1", syntax.into()),
        ("RL.MULTIPEEK 1 k", arity("rl.multipeek")),
        ("RL.MULTI 0 k LIMIT GCRA 1 1 1000", "ERR numkeys must be between 1 and 64".into()),
        ("RL.MULTI 65 k LIMIT GCRA 1 1 1000", "ERR numkeys must be between 1 and 64".into()),
        ("RL.MULTI x k LIMIT GCRA 1 1 1000", "ERR value is not an integer or out of range".into()),
        ("RL.MULTI 2 k k LIMIT GCRA 1 1 1000", "ERR keys must differ".into()),
        ("RL.MULTI 1 k COST 1 FORCE x", syntax.into()),
        ("RL.MULTI 1 k GCRA 1 1 1000", syntax.into()),
        ("RL.MULTI 1 k PARTIAL LIMIT GCRA 1 1 1000", syntax.into()),
        ("RL.MULTI 1 k RESERVE LIMIT GCRA 1 1 1000", syntax.into()),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1000 FORCE", syntax.into()),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1000 RESERVE", syntax.into()),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1000 AT 1700002800000000", syntax.into()),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1000 ON 1 ON 1", syntax.into()),
        ("RL.MULTI 1 k ON 1 LIMIT GCRA 1 1 1000 NOSUCH", syntax.into()),
        ("RL.MULTI 1 k LIMIT NOSUCH 1 1 1000", syntax.into()),
        ("RL.MULTI 1 k LIMIT SHED 0.5", syntax.into()),
        ("RL.MULTI 1 k LIMIT SLIDINGLOG 5 1000 COUNTREFUSED", syntax.into()),
        ("RL.MULTI 1 k FORCE LIMIT CONCURRENT 5 1000 id", syntax.into()),
        ("RL.MULTI 1 k FORCE LIMIT SMOOTH 5 1000", syntax.into()),
        ("RL.MULTIREFUND 1 k LIMIT CONCURRENT 5 1000 id", syntax.into()),
        ("RL.MULTIREFUND 1 k FORCE LIMIT GCRA 1 1 1000", syntax.into()),
        ("RL.MULTIPEEK 1 k FORCE LIMIT GCRA 1 1 1000", syntax.into()),
        // Two equal ones, also where only one of them says on which key.
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1000 LIMIT GCRA 2 2 1000", syntax.into()),
        ("RL.MULTI 2 k l LIMIT GCRA 1 1 1000 LIMIT GCRA 2 2 1000 ON 2", syntax.into()),
        ("RL.MULTI 2 k l LIMIT GCRA 1 1 1000 ON 3", "ERR ON must be between 1 and 2".into()),
        ("RL.MULTI 2 k l LIMIT GCRA 1 1 1000 ON 0", "ERR ON must be between 1 and 2".into()),
        ("RL.MULTI 2 k l ON 1 LIMIT GCRA 1 1 1000", syntax.into()),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 0", "ERR period must be between 1 and 3153600000000".into()),
        (&format!("RL.MULTI 1 k {many}"), "ERR at most 64 pairs of a limit and a key".into()),
        // The last of them is why nothing is charged.
        ("RL.MULTI 3 new several text LIMIT GCRA 9 1 1000000", WRONG_TYPE.into()),
        ("RL.MULTI 2 new shed LIMIT GCRA 9 1 1000000", WRONG_TYPE.into()),
        (
            "RL.MULTI 2 alone new FORCE COST 9007199254740991 LIMIT TOKENBUCKET 1 1 1000 ON 2 COST 1 LIMIT GCRA 9 1 1000000",
            "ERR limit would take too long to refill".into(),
        ),
        ("RL.GCRA several 9 1 1000000", WRONG_TYPE.into()),
        ("RL.SHED several 0.5", WRONG_TYPE.into()),
        ("RL.CONCURRENT several 5 1000 id", WRONG_TYPE.into()),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{line}");
    }
}

#[test]
fn a_key_holds_at_most_64_limits_and_forgets_those_that_faded() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = |from: u64, to: u64| {
        (from..to).map(|i| format!("LIMIT GCRA 0 1 {}", 1000 * (i + 1))).collect::<Vec<_>>().join(" ")
    };
    multi(con, &format!("RL.MULTI 1 key AT {T0} {}", limits(0, 64)));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 64"));
    let before = dump(con, "key");
    let more = format!("RL.MULTI 1 key AT {T0} {}", limits(64, 65));
    assert_eq!(error(con, &more), "ERR at most 64 limits a key");
    assert_eq!(dump(con, "key"), before);
    // A second on, the first of them has faded and makes room.
    multi(con, &more.replace(&T0.to_string(), &(T0 + SECOND).to_string()));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 64"));
    multi(
        con,
        &format!("RL.MULTI 1 key AT {} {}", T0 + 60 * SECOND, limits(61, 62)).replace("AT", "COST 0 AT"),
    );
    multi(con, &format!("RL.MULTI 1 key AT {} {}", T0 + 63 * SECOND, limits(61, 62)));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 3"), "{}", text(con, "RL.INFO key"));
}

#[test]
fn carlsons_windows_in_any_order_give_the_same_verdicts() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = [
        "LIMIT SLIDINGWINDOW 10 1000 ",
        "LIMIT SLIDINGWINDOW 120 60000 PRECISION 1000 ",
        "LIMIT SLIDINGWINDOW 240 3600000 PRECISION 60000 ",
    ];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let (mut at, mut refused) = (T0, [0; 3]);
    for step in 0..1000 {
        // Now in bursts, now minutes apart.
        at += if step % 200 < 150 { random(300_000) } else { random(20 * SECOND) };
        let cost = 1 + random(3);
        let mut first = None;
        for (place, order) in orders.iter().enumerate() {
            let named: String = order.iter().map(|limit| limits[*limit]).collect();
            let key = format!("key{place}");
            let before = dump(con, &key);
            let (all, each) = multi(con, &format!("RL.MULTI 1 {key} COST {cost} AT {at} {named}"));
            if all[0] == 1 {
                assert_eq!(dump(con, &key), before, "a refusal changes no counter");
            }
            let mut by_limit = each.clone();
            order.iter().zip(each).for_each(|(limit, five)| by_limit[*limit] = five);
            // The limit told is the first one's of equals.
            let told = (all[0], all[2..].to_vec(), by_limit);
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{order:?}");
        }
        for (count, five) in refused.iter_mut().zip(first.unwrap().2) {
            *count += five[0];
        }
    }
    assert!(refused.iter().all(|count| *count > 20), "{refused:?}");
    // The same bytes, in whatever order they were named.
    let expected = dump(con, "key0");
    assert!((1..6).all(|key| dump(con, &format!("key{key}")) == expected));
}

#[test]
fn copies_agree_whatever_joins_fades_and_parts() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let mut seed = 99u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    // Ahead, so that no key expires meanwhile.
    let now: u64 = text(con, "TIME").trim_start_matches('[').split(',').next().unwrap().parse().unwrap();
    let start = (now + 3600) * SECOND;
    let (mut admitted, mut refused) = (0, 0);
    for step in 0..3000 {
        let at = if random(40) == 0 { start - random(900 * SECOND) } else { start + step * 20_000 };
        let key = random(3);
        let named: Vec<String> = [
            "LIMIT GCRA 5 1 300".to_string(),
            "LIMIT GCRA 20 10 4000".to_string(),
            "LIMIT TOKENBUCKET 9 3 1000 COST 2".to_string(),
            "LIMIT SLIDINGWINDOW 12 2000".to_string(),
            "LIMIT SLIDINGWINDOW 30 9000 PRECISION 1000".to_string(),
            format!("LIMIT CONCURRENT 4 1500 id{}", random(6)),
            "LIMIT SLIDINGLOG 9 1000 GAP 10".to_string(),
            "LIMIT UNIFORM 30 ON 1".to_string(),
            "LIMIT FIXEDWINDOW 14 1500 ALIGNED".to_string(),
        ]
        .into_iter()
        .filter(|_| random(4) == 0)
        .collect();
        let named = if named.is_empty() { "LIMIT GCRA 5 1 300".into() } else { named.join(" ") };
        let line = match random(16) {
            0 => format!("RL.RELEASE key:{key} id{} AT {at}", random(6)),
            1 => format!("RL.RENEW key:{key} 900 id{} AT {at}", random(6)),
            2 | 3 if !named.contains("CONCURRENT") => {
                format!("RL.MULTIREFUND 2 key:{key} other:{key} COST 2 AT {at} {named}")
            }
            4 if !named.contains("CONCURRENT") => format!("RL.MULTI 1 key:{key} FORCE AT {at} {named}"),
            5 => format!("RL.MULTI 1 key:{key} AT {at} LIMIT GCRA 5 1 300"),
            _ => format!("RL.MULTI 2 key:{key} other:{key} AT {at} {named}"),
        };
        if line.starts_with("RL.MULTI ") {
            if multi(con, &line).0[0] == 0 { admitted += 1 } else { refused += 1 }
        } else if line.starts_with("RL.MULTIREFUND") {
            multi(con, &line);
        } else if let Err(error) = call(con, &line.split(' ').collect::<Vec<_>>()) {
            assert_eq!(support::error_line(&error), WRONG_TYPE, "{line}: another limit stands alone");
        }
        if step % 500 == 0 {
            sync(&server, &replica);
            assert_eq!(contents(&mut replica.connection()), contents(con), "after {step}: {line}");
        }
    }
    assert!(admitted > 300 && refused > 300, "{admitted} admitted, {refused} refused");
    sync(&server, &replica);
    let expected = contents(con);
    assert_eq!(expected.len(), 6);
    assert_eq!(contents(&mut replica.connection()), expected);
    drop(replica);
    server.restart();
    assert_eq!(contents(&mut server.connection()), expected);
    let con = &mut server.connection();
    text(con, "BGREWRITEAOF");
    support::wait_for("the rewrite", || {
        info(con, "persistence", "aof_rewrite_in_progress").as_deref() == Some("0")
    });
    server.restart();
    let con = &mut server.connection();
    // A rewrite keeps the expiries, which are the server's own.
    assert_eq!(contents(con), expected);
    for (key, dumped, _) in &expected {
        assert_eq!(text(con, &format!("COPY {key} {key}:copy")), "1");
        assert_eq!(&simple(&dump(con, &format!("{key}:copy"))), dumped);
    }
}

fn contents(con: &mut Connection) -> Vec<(String, String, String)> {
    let keys = text(con, "KEYS *");
    let mut keys: Vec<&str> = keys.trim_matches(['[', ']']).split(", ").collect();
    keys.sort_unstable();
    keys.into_iter()
        .map(|key| (key.to_string(), simple(&dump(con, key)), text(con, &format!("PEXPIRETIME {key}"))))
        .collect()
}

#[test]
fn one_command_goes_to_replicas_for_an_admitted_call_and_none_for_a_refused_one() {
    let server = Server::start(&support::AOF_AT_ONCE);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let applied = || -> u64 {
        sync(&server, &replica);
        let stats = info(&mut replica.connection(), "commandstats", "cmdstat_rl.apply").unwrap_or_default();
        stats.trim_start_matches("calls=").split(',').next().unwrap().parse().unwrap_or(0)
    };
    let limits = "LIMIT GCRA 0 1 3600000 LIMIT FIXEDWINDOW 5 3600000";
    multi(con, &format!("RL.MULTI 3 a b c {limits}"));
    assert_eq!(applied(), 1);
    let size = info(con, "persistence", "aof_current_size");
    for line in [
        format!("RL.MULTI 3 d a b {limits}"),
        format!("RL.MULTI 2 a d COST 0 {limits}"),
        format!("RL.MULTIPEEK 2 a d {limits}"),
        format!("RL.MULTIREFUND 1 d {limits}"),
    ] {
        multi(con, &line);
        assert_eq!(applied(), 1, "{line}");
        assert_eq!(info(con, "persistence", "aof_current_size"), size, "{line}");
    }
    assert_eq!(text(con, "EXISTS d"), "0");
    let (all, _) = multi(&mut replica.connection(), &format!("RL.MULTIPEEK 2 a d {limits}"));
    assert_eq!(all[0], 1);
    assert!(error(&mut replica.connection(), &format!("RL.MULTI 1 a {limits}")).starts_with("READONLY"));
    assert_eq!(info(con, "ratelimit", "ratelimit_multi_admitted").as_deref(), Some("1"));
    assert_eq!(info(con, "ratelimit", "ratelimit_multi_refused").as_deref(), Some("1"));
}

#[test]
fn many_clients_at_once_get_exactly_what_the_limits_allow() {
    let server = Server::start(&[]);
    let threads: Vec<_> = (0..32)
        .map(|client| {
            let mut con = server.connection();
            thread::spawn(move || {
                let line = format!(
                    "RL.MULTI 2 user all LIMIT FIXEDWINDOW 700 3600000 ON 1 LIMIT SLIDINGLOG 500 3600000 ON 2 \
                     LIMIT TOKENBUCKET 900 1 3600000 LIMIT CONCURRENT 10000 3600000 {client}- ON 2"
                );
                (0..100)
                    .filter(|i| multi(&mut con, &line.replace("- ON", &format!("-{i} ON"))).0[0] == 0)
                    .count()
            })
        })
        .collect();
    let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(admitted, 500);
    let con = &mut server.connection();
    let (_, each) = multi(
        con,
        "RL.MULTIPEEK 2 user all LIMIT FIXEDWINDOW 700 3600000 ON 1 LIMIT SLIDINGLOG 500 3600000 ON 2 \
         LIMIT TOKENBUCKET 900 1 3600000",
    );
    let left: Vec<i64> = each.iter().map(|five| five[2]).collect();
    assert_eq!(left, [200, 0, 400, 400]);
}

#[test]
fn a_clock_that_was_set_back_moves_each_limit() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 9 10 10000 LIMIT SLIDINGLOG 10 5000";
    let ahead = T0 + 86_400 * SECOND;
    multi(con, &format!("RL.MULTI 1 key COST 10 AT {ahead} {limits}"));
    let before = dump(con, "key");
    let reply = vec![vec![1, 10, 0, 1000, 10_000], vec![1, 10, 0, 5000, 5000]];
    // A probe answers as if; a refusal moves the states.
    assert_eq!(multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} {limits}")).1, reply);
    assert_eq!(dump(con, "key"), before);
    assert_eq!(multi(con, &format!("RL.MULTI 1 key AT {T0} {limits}")).1, reply);
    assert_ne!(dump(con, "key"), before);
    sync(&server, &replica);
    assert_eq!(dump(&mut replica.connection(), "key"), dump(con, "key"));
    assert_eq!(multi(con, &format!("RL.MULTI 1 key AT {} {limits}", T0 + 5 * SECOND)).0[0], 0);
}

#[test]
fn the_server_finds_the_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let keys = text(con, "COMMAND GETKEYS RL.MULTI 2 a b LIMIT GCRA 1 1 1000 ON 1");
    assert_eq!(keys, "[a, b]");
    // A number that cannot be right names none: the error is the command's own, on a cluster too.
    for wrong in ["5", "0", "-1", "x"] {
        error(con, &format!("COMMAND GETKEYS RL.MULTI {wrong} a b LIMIT"));
    }
    let flags = text(con, "COMMAND GETKEYSANDFLAGS RL.MULTIPEEK 1 a LIMIT GCRA 1 1 1000");
    assert_eq!(flags, "[[a, [RO, access]]]");
}

#[test]
fn a_key_whose_expiry_somebody_else_set_joins_and_can_be_restored() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for (key, expiry) in
        [("far", "PEXPIREAT far 300000000000000"), ("never", "PERSIST never"), ("near", "PTTL near")]
    {
        ints(con, &format!("RL.GCRA {key} 5 1 1000"));
        text(con, expiry);
        multi(con, &format!("RL.MULTI 1 {key} LIMIT FIXEDWINDOW 5 1000"));
        let Value::BulkString(bytes) = dump(con, key) else { panic!("no dump") };
        support::call_bytes(con, &[b"RESTORE", b"again", b"0", &bytes, b"REPLACE"]).unwrap();
    }
    // Nor can a debt that a call leaves behind be too far away to be written down.
    multi(
        con,
        "RL.MULTI 1 owed FORCE COST 1099511627776 LIMIT TOKENBUCKET 10 1125899906842624 315360000000 LIMIT FIXEDWINDOW 10 3600000",
    );
    multi(con, "RL.MULTIREFUND 1 owed LIMIT TOKENBUCKET 10 1 315360000000");
    sync(&server, &replica);
    let expected = text(con, "DEBUG DIGEST");
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), expected);
    server.restart();
    assert_eq!(text(&mut server.connection(), "DEBUG DIGEST"), expected);
}

#[test]
fn a_limit_that_others_would_join_in_vain_still_stands_alone() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    // Its state is moved because the clock was set back, and the call is refused.
    ints(con, &format!("RL.FIXEDWINDOW key 1 1000 AT {}", T0 + 3600 * SECOND));
    let line = format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 1 1000 LIMIT GCRA 0 1 1000 COST 2");
    assert_eq!(multi(con, &line).0[0], 1);
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 1 1000 AT {T0}"))[0], 1);
    let expires: u64 = text(con, "PTTL key").parse().unwrap();
    assert!(expires < 120_000, "{expires} ms");
    sync(&server, &replica);
    assert_eq!(dump(&mut replica.connection(), "key"), dump(con, "key"));
}

#[test]
fn limits_that_a_refusal_has_moved_fade_in_the_time_they_were_moved_to() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 0 1 1000 LIMIT FIXEDWINDOW 1 1000";
    multi(con, &format!("RL.MULTI 1 key AT 4102444800000000 {limits}"));
    assert_eq!(multi(con, &format!("RL.MULTI 1 key {limits}")).0[0], 1);
    let expires: i64 = text(con, "PTTL key").parse().unwrap();
    assert!((0..120_000).contains(&expires), "{expires} ms");
}

#[test]
fn sixty_four_limits_do_not_join_one_that_stands_alone() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits =
        (0..64).map(|i| format!(" LIMIT FIXEDWINDOW 1 {}", 100_000 + i)).collect::<Vec<_>>().concat();
    ints(con, "RL.GCRA key 1 1 1000000");
    let before = dump(con, "key");
    assert_eq!(error(con, &format!("RL.MULTI 1 key{limits}")), "ERR at most 64 limits a key");
    assert_eq!(dump(con, "key"), before);
    // 64 that are there, and one of them is known by its kind only until it is named.
    let limits = limits.replace("LIMIT FIXEDWINDOW 1 100000", "");
    assert_eq!(multi(con, &format!("RL.MULTI 1 key{limits}")).0[0], 0);
    assert_eq!(multi(con, "RL.MULTI 1 key LIMIT GCRA 1 1 1000000").1[0][..3], [0, 2, 0]);
    // What is given back adds nothing.
    multi(con, "RL.MULTIREFUND 1 key LIMIT TOKENBUCKET 1 1 1000");
}

#[test]
fn a_call_of_a_megabyte_is_refused_before_it_costs_anything() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let keys: Vec<String> = (0..64).map(|i| format!("key{i}")).collect();
    let mut words = vec!["RL.MULTIPEEK".to_string(), "64".into()];
    words.extend(keys);
    for i in 1..=40_000 {
        words.extend(format!("LIMIT GCRA 1 1 {i}").split(' ').map(String::from));
    }
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    text(con, "SLOWLOG RESET");
    text(con, "CONFIG SET slowlog-log-slower-than 1000000");
    let refused = support::call_bytes(con, &words).unwrap_err();
    assert_eq!(support::error_line(&refused), "ERR at most 64 pairs of a limit and a key");
    assert_eq!(text(con, "SLOWLOG LEN"), "0", "it took less than a second");
}

#[test]
fn an_effect_that_parts_a_key_can_be_applied_twice() {
    let server = Server::start(&support::AOF_AT_ONCE);
    let con = &mut server.connection();
    for id in ["a", "b"] {
        multi(
            con,
            &format!("RL.MULTI 1 key AT {T0} LIMIT CONCURRENT 9 600000 {id} LIMIT FIXEDWINDOW 5 1000"),
        );
    }
    // The window has faded: the leases stand alone.
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT CONCURRENT 9 600000 c", T0 + 5 * SECOND));
    let stands_alone = "limiter, CONCURRENT, mode, leases, stored_leases, 3";
    assert!(text(con, "RL.INFO key").contains(stands_alone));
    let before = dump(con, "key");
    let payload = support::last_payload(&server);
    support::call_bytes(con, &[b"RL.APPLY", b"key", &payload]).unwrap();
    assert_eq!(dump(con, "key"), before);
    assert!(text(con, "RL.INFO key").contains(stands_alone));
}

#[test]
fn a_lagging_release_leaves_other_limits_alone() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let at = |seconds: u64| T0 + seconds * SECOND;
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT GCRA 0 1 5000 LIMIT CONCURRENT 5 60000 a", at(0)));
    assert_eq!(ints(con, &format!("RL.RENEW key 60000 a AT {}", at(10))), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {}", at(1))), [1]);
    assert_eq!(text(con, "EXISTS key"), "1");
    let (all, _) = multi(con, &format!("RL.MULTIPEEK 1 key AT {} LIMIT GCRA 0 1 5000", at(1)));
    assert_eq!(all, [1, 1, 0, 4000, 4000]);
}

#[test]
fn the_expiry_of_limits_held_together_is_that_of_the_latest() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let day = 86_400_000;
    let now: u64 = text(con, "TIME").trim_start_matches('[').split(',').next().unwrap().parse().unwrap();
    let ahead = (now + 86_400) * SECOND;
    let limits = format!("LIMIT FIXEDWINDOW 5 {day} LIMIT SLIDINGLOG 5 {day}");
    multi(con, &format!("RL.MULTI 1 key AT {ahead} {limits}"));
    let expires = |con: &mut Connection| text(con, "PEXPIRETIME key").parse::<u64>().unwrap();
    let first = expires(con);
    // A caller who lags, but not by more than a reset, does not put it off.
    multi(con, &format!("RL.MULTI 1 key FORCE AT {} {limits}", ahead - 23 * 3600 * SECOND));
    assert!(expires(con) <= first + 60_000, "{} after {first}", expires(con));
}
