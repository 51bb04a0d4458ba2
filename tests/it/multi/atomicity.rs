//! A call with several limits happens as a whole: for replicas, for clients at once, and for who watches a key.

use std::thread;

use redis::Value;

use crate::support::{AOF_AT_ONCE, Server, call, error, info, multi, sync, text};

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
    let limits = "LIMIT GCRA 0 1 1h LIMIT FIXEDWINDOW 5 1h";
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
                    "RL.MULTI 2 user all LIMIT FIXEDWINDOW 700 1h ON 1 LIMIT SLIDINGLOG 500 1h ON 2 \
                     LIMIT TOKENBUCKET 900 1 1h LIMIT CONCURRENT 10000 1h {client}- ON 2"
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
        "RL.MULTIPEEK 2 user all LIMIT FIXEDWINDOW 700 1h ON 1 LIMIT SLIDINGLOG 500 1h ON 2 \
         LIMIT TOKENBUCKET 900 1 1h",
    );
    let left: Vec<i64> = each.iter().map(|five| five[2]).collect();
    assert_eq!(left, [200, 0, 400, 400]);
}

#[test]
fn who_watches_a_key_is_disturbed_by_a_charge_and_by_no_refusal() {
    let server = Server::start(&[]);
    let (watcher, other) = (&mut server.connection(), &mut server.connection());
    let limits = "LIMIT GCRA 9 1 1h LIMIT CONCURRENT 5 1h a";
    multi(other, &format!("RL.MULTI 1 key {limits}"));
    for (line, executes) in [
        (format!("RL.MULTI 2 new key COST 11 {limits}"), true),
        (format!("RL.MULTIPEEK 1 key {limits}"), true),
        (format!("RL.MULTI 1 key COST 0 {limits}"), true),
        (format!("RL.MULTI 1 key {limits}"), false),
        ("RL.MULTIREFUND 1 key LIMIT GCRA 9 1 1h".into(), false),
        ("RL.RENEW key 1h a".into(), false),
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
