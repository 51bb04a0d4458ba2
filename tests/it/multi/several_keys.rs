//! `RL.MULTI`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys, all or nothing.

use std::thread;

use redis::Value;

use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, WRONG_TYPE, call, call_bytes, dump, error, error_line, info, ints,
    multi, sync, text,
};

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
fn a_limit_of_no_cost_hinders_nobody_and_stays_as_it_is() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, &format!("RL.GCRA full 0 1 60000 AT {T0}"));
    let before = dump(con, "full");
    let line = format!(
        "RL.MULTI 2 full window AT {T0} LIMIT GCRA 0 1 60000 ON 1 COST 0 LIMIT FIXEDWINDOW 2 60000 ON 2 COST 2"
    );
    let (all, each) = multi(con, &line);
    assert_eq!(
        (all, each),
        (vec![0, 1, 0, 0, 60_000], vec![vec![0, 1, 0, 0, 60_000], vec![0, 2, 0, 0, 60_000]])
    );
    // Whoever is refused is so by the other, though of two with nothing left the first is told.
    let (all, each) = multi(con, &line);
    assert_eq!(
        (all, each),
        (vec![1, 1, 0, 60_000, 60_000], vec![vec![0, 1, 0, 0, 60_000], vec![1, 2, 0, 60_000, 60_000]])
    );
    assert_eq!(dump(con, "full"), before);
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
    let keys = (0..33).map(|i| format!("key{i}")).collect::<Vec<_>>().join(" ");
    let arity = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    for (line, expected) in [
        ("RL.MULTI 1 k", arity("rl.multi")),
        ("RL.MULTI 1 k LIMIT", arity("rl.multi")),
        ("RL.MULTI 1 k COST 1", arity("rl.multi")),
        ("RL.MULTI 1 k FORCE", arity("rl.multi")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1000 LIMIT", syntax.into()),
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
        (
            &format!("RL.MULTI 33 {keys} LIMIT GCRA 1 1 1000 LIMIT FIXEDWINDOW 1 1000"),
            "ERR at most 64 pairs of a limit and a key".into(),
        ),
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
fn one_command_goes_to_replicas_for_an_admitted_call_and_none_for_a_refused_one() {
    let server = Server::start(&AOF_AT_ONCE);
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
    let refused = call_bytes(con, &words).unwrap_err();
    assert_eq!(error_line(&refused), "ERR at most 64 pairs of a limit and a key");
    assert_eq!(text(con, "SLOWLOG LEN"), "0", "it took less than a second");
}

#[test]
fn who_watches_a_key_is_disturbed_by_a_charge_and_by_no_refusal() {
    let server = Server::start(&[]);
    let (watcher, other) = (&mut server.connection(), &mut server.connection());
    let limits = "LIMIT GCRA 9 1 3600000 LIMIT CONCURRENT 5 3600000 a";
    multi(other, &format!("RL.MULTI 1 key {limits}"));
    for (line, executes) in [
        (format!("RL.MULTI 2 new key COST 11 {limits}"), true),
        (format!("RL.MULTIPEEK 1 key {limits}"), true),
        (format!("RL.MULTI 1 key COST 0 {limits}"), true),
        (format!("RL.MULTI 1 key {limits}"), false),
        ("RL.MULTIREFUND 1 key LIMIT GCRA 9 1 3600000".into(), false),
        ("RL.RENEW key 3600000 a".into(), false),
        ("RL.RELEASE key nobody".into(), true),
        ("RL.RELEASE key a".into(), false),
    ] {
        for command in ["WATCH key", "MULTI", "PING"] {
            text(watcher, command);
        }
        text(other, &line);
        let reply = call(watcher, &["EXEC"]).unwrap();
        assert_eq!(reply != Value::Nil, executes, "{line}");
    }
}
