//! Calls with several limits on servers: what is sent, effects that come twice, and long calls. What they reply is in
//! `tests/sessions/several_limits.txt`, `several_holds.txt` and `shadows.txt`.

use crate::support::replicas::{STRICT, wait_for_policies, written};
use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, WRONG_TYPE, call_bytes, dump, error, error_line, info, kind_of_error,
    last_payload, multi, sync, text,
};

#[test]
fn one_effect_is_sent_for_all_keys_and_none_where_none_changes() {
    let server = Server::start(&AOF_AT_ONCE);
    let replica = server.replica(&STRICT);
    wait_for_policies(&replica);
    let con = &mut server.connection();
    let applied = || -> u64 {
        sync(&server, &replica);
        let stats = info(&mut replica.connection(), "commandstats", "cmdstat_rl.apply").unwrap_or_default();
        stats.trim_start_matches("calls=").split(',').next().unwrap().parse().unwrap_or(0)
    };
    let limits = "LIMIT FIXEDWINDOW 10 1h LIMIT SLIDINGLOG 10 1h ON 2";
    for (line, sent) in [
        (format!("RL.MULTI 2 a b COST 4 HOLD r1 1h {limits}"), 1),
        (format!("RL.MULTI 2 a b COST 4 HOLD r1 1h {limits}"), 0),
        (format!("RL.MULTISETTLE 2 a b r1 COST 1 {limits}"), 1),
        (format!("RL.MULTISETTLE 2 a b r1 COST 1 {limits}"), 0),
        ("RL.SETTLE a r1 FIXEDWINDOW 10 1h COST 9".into(), 0),
        ("RL.FIXEDWINDOW a 10 1h COST 99 HOLD r2 1h".into(), 0),
        ("RL.FIXEDWINDOW a 10 1h COST 2 HOLD r2 1h".into(), 1),
        ("RL.FIXEDWINDOW a 10 1h COST 2 HOLD r2 1h".into(), 0),
        ("RL.SETTLE a r2 FIXEDWINDOW 10 1h COST 2".into(), 1),
        ("RL.SETTLE a r2 FIXEDWINDOW 10 1h COST 2".into(), 0),
        (format!("RL.MULTI 3 a b c {limits}"), 1),
        (format!("RL.MULTI 3 d a b COST 11 {limits}"), 0),
        (format!("RL.MULTI 3 d a b COST 0 {limits}"), 0),
        (format!("RL.MULTIPEEK 2 d a {limits}"), 0),
        ("RL.MULTIREFUND 1 d LIMIT FIXEDWINDOW 10 1h".into(), 0),
        ("RL.MULTIRELEASE 2 a d id".into(), 0),
    ] {
        let (before, count) = (written(con), applied());
        text(con, &line);
        assert_eq!(applied() - count, sent, "{line}");
        assert_eq!(written(con) != before, sent > 0, "{line}");
    }
    assert_eq!(text(con, "EXISTS d"), "0");
    assert!(error(&mut replica.connection(), &format!("RL.MULTI 2 a b {limits}")).starts_with("READONLY"));
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), text(con, "DEBUG DIGEST"));
}

#[test]
fn a_key_of_another_type_is_an_error_before_any_key_changes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 9 1h LIMIT CONCURRENT 5 1h job";
    text(con, &format!("RL.MULTI 1 key HOLD r1 1h {limits}"));
    text(con, "SET string x");
    let digest = text(con, "DEBUG DIGEST");
    for line in [
        format!("RL.MULTI 3 new key string {limits}"),
        format!("RL.MULTIPEEK 2 key string {limits}"),
        "RL.MULTIREFUND 2 key string LIMIT FIXEDWINDOW 9 1h".into(),
        format!("RL.MULTISETTLE 2 key string r1 COST 1 {limits}"),
        "RL.MULTIRELEASE 2 key string job".into(),
    ] {
        assert_eq!(kind_of_error(error(con, &line)), WRONG_TYPE, "{line}");
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{line}");
    }
}

#[test]
fn an_effect_that_parts_a_key_can_be_applied_twice() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for id in ["a", "b"] {
        multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT CONCURRENT 9 10m {id} LIMIT FIXEDWINDOW 5 1s"));
    }
    // The window has faded: the leases stand alone.
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT CONCURRENT 9 10m c", T0 + 5 * SECOND));
    let stands_alone = "limiter, CONCURRENT, mode, leases, stored_leases, 3";
    assert!(text(con, "RL.INFO key").contains(stands_alone));
    let before = dump(con, "key");
    call_bytes(con, &[b"RL.APPLY", b"key", &last_payload(&server)]).unwrap();
    assert_eq!(dump(con, "key"), before);
    assert!(text(con, "RL.INFO key").contains(stands_alone));
}

#[test]
fn a_call_of_a_megabyte_is_refused_before_it_costs_anything() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let keys = (0..64).map(|i| format!("key{i}"));
    let limits = (1..=40_000)
        .flat_map(|i| ["LIMIT", "GCRA", "1", "1"].map(String::from).into_iter().chain([format!("{i}ms")]));
    let words: Vec<String> =
        ["RL.MULTIPEEK".into(), "64".into()].into_iter().chain(keys).chain(limits).collect();
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    text(con, "SLOWLOG RESET");
    text(con, "CONFIG SET slowlog-log-slower-than 1000000");
    let refused = call_bytes(con, &words).unwrap_err();
    assert_eq!(error_line(&refused), "ERR at most 64 pairs of a limit and a key");
    assert_eq!(text(con, "SLOWLOG LEN"), "0", "it took less than a second");
}
