//! The questions of people, and the exact sentences that answer them.

use super::explain;
use crate::support::{Server, T0, text};

/// In microseconds.
const S: u64 = 1_000_000;

#[test]
fn why_is_this_customer_refused_although_the_burst_is_not_used_up() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // 2026-12-02 23:00 UTC.
    let at = 1_796_252_400_000_000_u64;
    let limits = "LIMIT gcra 15 30 1m LIMIT calendar 1000 month tz America/Sao_Paulo ANCHOR 15 COST 2";
    text(con, &format!("RL.POLICY SET plan:free VERSION 3 {limits}"));
    for cost in [1, 1] {
        text(con, &format!("RL.ASK user:7 plan:free COST {cost} AT {at}"));
    }
    let calendar = "CALENDAR 1000 MONTH TZ America/Sao_Paulo ANCHOR 15";
    text(con, &format!("RL.MULTI 1 user:7 COST 996 AT {at} LIMIT {calendar}"));
    assert_eq!(
        explain(con, &format!("RL.ASK user:7 plan:free AT {at}")),
        [
            "policy plan:free, version 3 on this node: refused by limit 2; try again in 12 d 4 h",
            "1. GCRA 15 30 1m on user:7: admits; 14 of 16 left; fully reset in 4 s",
            "2. CALENDAR 1000 MONTH TZ America/Sao_Paulo ANCHOR 15 on user:7: refuses; 1000 of 1000 used; renews on \
             2026-12-15 00:00 -03:00",
        ]
    );
}

#[test]
fn how_long_is_this_login_banned() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let penalty = "RL.PENALTY login:ann 3 10m 10m";
    let asked = |con: &mut _, at: u64| explain(con, &format!("{penalty} AT {at}"));
    assert_eq!(
        asked(con, T0),
        ["admitted", "1. PENALTY 3 10m 10m on login:ann: admits; 0 of 3 strikes; nothing is stored of it"]
    );
    text(con, &format!("{penalty} COST 2 AT {T0}"));
    assert_eq!(
        asked(con, T0),
        [
            "refused by limit 1: this strike bans for 10 m",
            "1. PENALTY 3 10m 10m on login:ann: refuses; 2 of 3 strikes; fully reset in 10 m",
        ]
    );
    text(con, &format!("{penalty} AT {T0}"));
    let line = "1. PENALTY 3 10m 10m on login:ann: refuses; banned for 9 m 58 s";
    assert_eq!(asked(con, T0 + 2 * S), ["banned for 9 m 58 s by limit 1", line]);
    // While the next ban would be longer, the limit is not fully reset.
    text(con, &format!("RL.PENALTY login:bob 1 1m 1m GROW 2 FORGIVE 1h AT {T0}"));
    assert_eq!(
        explain(con, &format!("RL.PENALTY login:bob 1 1m 1m GROW 2 FORGIVE 1h AT {T0}")),
        [
            "banned for 1 m by limit 1",
            "1. PENALTY 1 1m 1m GROW 2 FORGIVE 1h on login:bob: refuses; banned for 1 m; fully reset in 1 h 1 m",
        ]
    );
    let several = explain(
        con,
        &format!("RL.MULTI 1 login:ann AT {} LIMIT GCRA 9 1 1s LIMIT PENALTY 3 10m 10m", T0 + 2 * S),
    );
    assert_eq!(several[0], "banned for 9 m 58 s by limit 2");
    assert_eq!(several[1], "1. GCRA 9 1 1s on login:ann: admits; 10 of 10 left; nothing is stored of it");
}

#[test]
fn who_fills_the_pool() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, &format!("RL.CONCURRENT pool 8 1m a COST 5 AT {T0}"));
    text(con, &format!("RL.CONCURRENT pool 8 1m b COST 2 AT {}", T0 + 10 * S));
    let asked =
        |con: &mut _, words: &str| explain(con, &format!("RL.CONCURRENT pool {words} AT {}", T0 + 10 * S));
    let held = "2 leases hold 7 of 8; the next ends in 50 s; fully reset in 1 m";
    assert_eq!(
        asked(con, "8 1m c COST 4"),
        [
            "refused by limit 1; try again in 50 s",
            &format!("1. CONCURRENT 8 1m c on pool: refuses for 50 s; {held}")
        ]
    );
    assert_eq!(
        asked(con, "8 1m b"),
        ["admitted; renews the lease", &format!("1. CONCURRENT 8 1m b on pool: admits; {held}")]
    );
    assert_eq!(
        asked(con, "9 1m c RESERVED 1 COST 9"),
        [
            "refused for good by limit 1: a cost of 9 is above the limit 8",
            &format!("1. CONCURRENT 9 1m c RESERVED 1 on pool: refuses for good; {held}"),
        ]
    );
    assert_eq!(
        explain(con, "RL.CONCURRENT empty 8 1m c"),
        [
            "admitted",
            "1. CONCURRENT 8 1m c on empty: admits; no lease is held; 8 of 8 left; nothing is stored of it"
        ]
    );
}

#[test]
fn would_the_limit_that_is_tried_refuse() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, &format!("RL.MULTI 1 user:1 AT {T0} LIMIT UNIFORM 2s LIMIT FIXEDWINDOW 1 1h SHADOW"));
    let line = format!("RL.MULTI 1 user:1 AT {} LIMIT UNIFORM 2s LIMIT FIXEDWINDOW 1 1h SHADOW", T0 + 2 * S);
    assert_eq!(
        explain(con, &line),
        [
            "admitted",
            "1. UNIFORM 2s on user:1: admits; 1 of 1 left",
            "2. FIXEDWINDOW 1 1h on user:1: a shadow: would refuse; 1 of 1 used; fully reset in 59 m 58 s",
        ]
    );
}

#[test]
fn when_may_a_booking_or_a_queued_request_act() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, &format!("RL.UNIFORM crawler 2s AT {T0}"));
    let at = T0 + S / 2;
    for (options, verdict, own) in [
        ("RESERVE", "admitted; wait 1 s 500 ms", "would refuse without RESERVE"),
        ("RESERVE MAXWAIT 1s", "refused by limit 1; try again in 500 ms", "refuses"),
        ("", "refused by limit 1; try again in 1 s 500 ms", "refuses"),
        ("FORCE", "admitted by FORCE, as debt", "would refuse without FORCE"),
    ] {
        let line = format!("1. UNIFORM 2s on crawler: {own}; 0 of 1 left; fully reset in 1 s 500 ms");
        assert_eq!(
            explain(con, &format!("RL.UNIFORM crawler 2s AT {at} {options}")),
            [verdict.to_string(), line],
            "{options}"
        );
    }
    text(con, &format!("RL.LEAKYBUCKET printer 10 4 1s AT {T0}"));
    assert_eq!(
        explain(con, &format!("RL.LEAKYBUCKET printer 10 4 1s AT {T0}")),
        [
            "admitted; wait 250 ms",
            "1. LEAKYBUCKET 10 4 1s on printer: admits; wait 250 ms; 9 of 10 left; fully reset in 250 ms",
        ]
    );
}

#[test]
fn how_much_of_a_burst_is_left() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, &format!("RL.GCRA user:1 4 1 1s COST 2 AT {T0}"));
    let line = "1. GCRA 4 1 1s on user:1: ";
    let left = "3 of 5 left; fully reset in 2 s";
    for (options, verdict, own) in [
        ("COST 3", "admitted", "admits"),
        ("COST 5 PARTIAL", "admitted in part: 3 of 5", "would refuse without PARTIAL"),
        ("COST 3 PARTIAL", "admitted", "admits"),
        ("COST 4 FORCE", "admitted by FORCE, as debt", "would refuse without FORCE"),
        ("COST 4", "refused by limit 1; try again in 1 s", "refuses for 1 s"),
        ("COST 6", "refused for good by limit 1: a cost of 6 is above the limit 5", "refuses for good"),
        ("COST 6 FORCE", "admitted by FORCE, as debt", "would refuse without FORCE"),
        ("COST 0", "admitted", "admits"),
    ] {
        let expected = [verdict.to_string(), format!("{line}{own}; {left}")];
        assert_eq!(explain(con, &format!("RL.GCRA user:1 4 1 1s AT {T0} {options}")), expected, "{options}");
    }
}

#[test]
fn what_may_a_key_do_that_is_missing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(
        explain(con, "gcra nobody 15 30 1m"),
        ["admitted", "1. GCRA 15 30 1m on nobody: admits; 16 of 16 left; nothing is stored of it"]
    );
    assert_eq!(
        explain(con, &format!("rl.calendar nobody 9 hour at {}", T0 + S)),
        [
            "admitted",
            "1. CALENDAR 9 HOUR on nobody: admits; 0 of 9 used; renews on 2023-11-15 00:00 +00:00; nothing is stored of it"
        ]
    );
    assert_eq!(
        explain(con, "Rl.Sketch nobody 203.0.113.7 9 10 1s DEPTH 2 COST 11"),
        [
            "refused for good by limit 1: a cost of 11 is above the limit 10",
            "1. SKETCH 9 10 1s DEPTH 2 for 203.0.113.7 on nobody: refuses for good; 10 of 10 left; nothing is stored of it",
        ]
    );
    assert_eq!(text(con, "DBSIZE"), "0", "a question makes no key");
}

#[test]
fn why_does_no_time_pass_for_this_state() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, &format!("RL.FIXEDWINDOW user:1 1 10s AT {}", T0 + 3 * S));
    assert_eq!(
        explain(con, &format!("RL.FIXEDWINDOW user:1 1 10s AT {T0}")),
        [
            "refused by limit 1; try again in 13 s",
            "1. FIXEDWINDOW 1 10s on user:1: refuses; 1 of 1 used; fully reset in 13 s; its last charge is 3 s ahead of AT",
        ]
    );
    // By the clock: a charge of tomorrow.
    let now: u64 = text(con, "TIME").trim_matches(['[', ']']).split(", ").next().unwrap().parse().unwrap();
    text(con, &format!("RL.FIXEDWINDOW user:2 1 2d AT {}", (now + 86_400) * S));
    let line = &explain(con, "RL.FIXEDWINDOW user:2 1 2d")[1];
    assert!(line.ends_with("; its last charge is 1 d ahead of this server's clock"), "{line}");
}

#[test]
fn what_is_on_hold() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let bucket = "TOKENBUCKET llm 1000 1000 1m";
    for id in ["a", "b"] {
        text(con, &format!("RL.{bucket} COST 400 HOLD {id} 5m AT {T0}"));
    }
    let line = "1. TOKENBUCKET 1000 1000 1m on llm: ";
    let rest = "200 of 1000 left; fully reset in 48 s; 2 holds of 800 in all";
    let asked = |con: &mut _, options: &str| explain(con, &format!("{bucket} AT {T0} {options}"));
    assert_eq!(
        asked(con, "COST 300"),
        ["refused by limit 1; try again in 6 s", &format!("{line}refuses for 6 s; {rest}")]
    );
    assert_eq!(
        asked(con, "COST 300 HOLD a 5m"),
        ["admitted; the id is held already, so nothing is charged", &format!("{line}admits; {rest}")]
    );
    let several = format!("RL.MULTI 1 llm AT {T0} COST 300 HOLD a 5m LIMIT TOKENBUCKET 1000 1000 1m");
    assert_eq!(
        explain(con, &several),
        ["admitted; the id is held already, so nothing is charged", &format!("{line}admits; {rest}")]
    );
}

/// A refusal strikes the penalties of the call, which a look does not show.
#[test]
fn what_does_this_refusal_cost_the_caller() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let call = format!(
        "RL.MULTI 1 ip:1 AT {T0} LIMIT FIXEDWINDOW 1 1m LIMIT PENALTY 2 1h 10m LIMIT PENALTY 9 2h 10m COST 0"
    );
    text(con, &call);
    let window = "1. FIXEDWINDOW 1 1m on ip:1: refuses; 1 of 1 used; fully reset in 1 m";
    let looked = "3. PENALTY 9 2h 10m on ip:1: admits; 0 of 9 strikes; nothing is stored of it";
    assert_eq!(
        explain(con, &call),
        [
            "refused by limit 1; try again in 1 m",
            window,
            "2. PENALTY 2 1h 10m on ip:1: admits; 0 of 2 strikes; nothing is stored of it; the refusal is a strike",
            looked,
        ]
    );
    text(con, &call);
    assert_eq!(
        explain(con, &call),
        [
            "refused by limit 2: this strike bans for 10 m",
            window,
            "2. PENALTY 2 1h 10m on ip:1: admits; 1 of 2 strikes; fully reset in 1 h; the refusal is a strike, and bans for 10 m",
            looked,
        ]
    );
    // Who waits is not struck.
    let limits = "LIMIT UNIFORM 30s LIMIT PENALTY 1 1h 10m";
    text(con, "RL.MULTI 1 ip:2 LIMIT UNIFORM 30s");
    assert_eq!(
        explain(con, &format!("RL.MULTI 1 ip:2 BLOCK 1m {limits}"))[0],
        "would wait 30 s, at most 1 m"
    );
    text(con, &call);
    assert_eq!(explain(con, &call)[0], "banned for 10 m by limit 2");
}

#[test]
fn does_trying_again_make_it_worse() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for second in [0, 10] {
        text(con, &format!("RL.SLIDINGLOG login:1 2 1m COUNTREFUSED AT {}", T0 + second * S));
    }
    assert_eq!(
        explain(con, &format!("RL.SLIDINGLOG login:1 2 1m COUNTREFUSED AT {}", T0 + 20 * S)),
        [
            "refused by limit 1; try again in 40 s",
            "1. SLIDINGLOG 2 1m COUNTREFUSED on login:1: refuses for 40 s; 2 of 2 used; fully reset in 50 s; a refused request \
             counts too",
        ]
    );
}

/// During a gap nothing is left, but little is used.
#[test]
fn how_long_is_the_gap() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, &format!("RL.SLIDINGLOG form:1 3 1h GAP 5s AT {T0}"));
    assert_eq!(
        explain(con, &format!("RL.SLIDINGLOG form:1 3 1h GAP 5s AT {}", T0 + S))[1],
        "1. SLIDINGLOG 3 1h GAP 5s on form:1: refuses for 4 s; 0 of 3 left; fully reset in 59 m 59 s"
    );
}
