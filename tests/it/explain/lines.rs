//! Callers that wait, as `RL.EXPLAIN` shows them.

use super::explain;
use crate::support::client::Client;
use crate::support::{Server, info, text, wait_for};

/// A caller that waits for the window of `k`, of which one of two is left.
fn enter(server: &Server, number: usize) -> Client {
    enter_by(server, number, "RL.FIXEDWINDOW k 2 1h COST 2 BLOCK 1d")
}

fn enter_by(server: &Server, number: usize, line: &str) -> Client {
    let mut client = Client::connect(server.port);
    client.send(line);
    let con = &mut server.connection();
    wait_for("a caller that waits", || {
        info(con, "ratelimit", "ratelimit_waiting").as_deref() == Some(&number.to_string())
    });
    client
}

/// The texts without what follows the words.
fn before(texts: &[String], words: &str) -> Vec<String> {
    texts.iter().map(|text| text.split(words).next().unwrap().to_string()).collect()
}

#[test]
fn a_call_is_refused_because_others_wait_or_would_wait_behind_them() {
    let server = Server::start(&["--ratelimit.max-block", "86400000"]);
    let con = &mut server.connection();
    text(con, "RL.FIXEDWINDOW k 2 1h");
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 2 1h");
    for call in
        ["RL.FIXEDWINDOW k 2 1h COST 2 BLOCK 2h", "RL.MULTI 1 k COST 2 BLOCK 2h LIMIT FIXEDWINDOW 2 1h"]
    {
        // The window opened just now.
        let told = explain(con, call)[0].clone();
        assert!(told.starts_with("would wait 1 h, ") || told.starts_with("would wait 59 m 5"), "{told}");
        assert!(told.ends_with(", at most 2 h"), "{told}");
    }
    assert_eq!(explain(con, "RL.FIXEDWINDOW k 2 1h BLOCK 2h")[0], "admitted", "it fits");
    // A wait that would be in vain is none.
    let short = &explain(con, "RL.FIXEDWINDOW k 2 1h COST 2 BLOCK 2s")[0];
    assert!(short.starts_with("refused by limit 1; try again in "), "{short}");
    let callers: Vec<Client> = (1..=3).map(|number| enter(&server, number)).collect();
    for line in ["RL.FIXEDWINDOW k 2 1h", "RL.MULTI 1 k LIMIT FIXEDWINDOW 2 1h"] {
        let told = explain(con, line);
        assert_eq!(
            before(&told, " in "),
            [
                "refused: 3 callers wait for limit 1; the first is tried",
                "1. FIXEDWINDOW 2 1h on k: admits; 1 of 2 used; fully reset"
            ],
            "{line}"
        );
        assert!(told[1].ends_with("; on this node 3 callers wait for it"), "{told:?}");
        assert!(!told[0].ends_with("now"), "{told:?}");
    }
    assert_eq!(
        explain(con, "RL.FIXEDWINDOW k 2 1h BLOCK 30m")[0],
        "would wait behind 3 callers, at most 30 m"
    );
    let policy = "policy p, version 1 on this node";
    // They wait for the next window.
    let asked = explain(con, "RL.ASK k p BLOCK 1d")[0].clone();
    assert!(asked.starts_with(&format!("{policy}: would wait behind 3 callers at least ")), "{asked}");
    assert!(asked.ends_with(", at most 1 d"), "{asked}");
    let refused = explain(con, "RL.ASK k p")[0].clone();
    assert!(refused.starts_with(&format!("{policy}: refused: 3 callers wait for limit 1;")), "{refused}");
    // Those that do not stand in line.
    assert_eq!(explain(con, "RL.FIXEDWINDOW k 2 1h FORCE")[0], "admitted");
    assert_eq!(explain(con, "RL.FIXEDWINDOW k 2 1h COST 0")[0], "admitted");
    assert_eq!(
        explain(con, "RL.FIXEDWINDOW k 2 1h COST 3")[0],
        "refused for good by limit 1: a cost of 3 is above the limit 2"
    );
    // Another limit of the key has no line.
    assert_eq!(explain(con, "RL.MULTI 1 k LIMIT GCRA 1 1 1s")[0], "admitted");
    assert_eq!(info(con, "ratelimit", "ratelimit_waiting").as_deref(), Some("3"), "a question does not wait");
    drop(callers);
}

#[test]
fn one_caller_waits() {
    let server = Server::start(&["--ratelimit.max-block", "86400000"]);
    let con = &mut server.connection();
    text(con, "RL.FIXEDWINDOW k 2 1h");
    let _caller = enter(&server, 1);
    let told = explain(con, "RL.FIXEDWINDOW k 2 1h");
    assert!(told[0].starts_with("refused: 1 caller waits for limit 1; the first is tried in "), "{told:?}");
    assert!(told[1].ends_with("; on this node 1 caller waits for it"), "{told:?}");
    assert_eq!(
        explain(con, "RL.FIXEDWINDOW k 2 1h BLOCK 30m")[0],
        "would wait behind 1 caller, at most 30 m"
    );
}

/// Critical callers come before the others.
#[test]
fn a_critical_caller_is_behind_critical_ones_only() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.CONCURRENT pool 1 1h a");
    let call = |id: &str| format!("RL.CONCURRENT pool 1 1h {id} BLOCK 1m");
    let mut callers: Vec<Client> =
        (1..=2).map(|number| enter_by(&server, number, &call(&format!("w{number}")))).collect();
    let critical = |id: &str| call(id).replace(" BLOCK", " CRITICAL BLOCK");
    let several = |limit: &str| format!("RL.MULTI 1 pool BLOCK 1m LIMIT {limit}");
    let expect = |con: &mut _, ordinary: &str, first: &str| {
        for (line, verdict) in [
            (call("b"), ordinary),
            (critical("b"), first),
            (several("CONCURRENT 1 1h b"), ordinary),
            (several("CONCURRENT 1 1h b CRITICAL"), first),
        ] {
            let told = explain(con, &line);
            assert_eq!(told[0], verdict, "{line}");
        }
    };
    let [behind_2, behind_3, behind_1] = ["2 callers", "3 callers", "1 caller"]
        .map(|callers| format!("would wait behind {callers} for a release, at most 1 m"));
    expect(con, &behind_2, "would wait for a release, at most 1 m");
    callers.push(enter_by(&server, 3, &critical("w3")));
    expect(con, &behind_3, &behind_1);
    let told = explain(con, "RL.CONCURRENT pool 1 1h b");
    assert!(
        told[0].starts_with("refused: 3 callers wait for limit 1; the first is tried in 1 h"),
        "{told:?}"
    );
    assert!(told[1].ends_with("; on this node 3 callers wait for it"), "{told:?}");
}

/// The limit itself has room later than the first caller is tried.
#[test]
fn the_longer_retry_is_shown() {
    let server = Server::start(&["--ratelimit.max-block", "86400000"]);
    let con = &mut server.connection();
    text(con, "RL.GCRA k 9 1 1h COST 10");
    let _caller = enter_by(&server, 1, "RL.GCRA k 9 1 1h BLOCK 1d");
    let told = explain(con, "RL.GCRA k 9 1 1h COST 5");
    let (waits, retry) = told[0].split_once("; try again in ").expect("both");
    assert!(waits.starts_with("refused: 1 caller waits for limit 1; the first is tried in "), "{told:?}");
    assert!(retry == "5 h" || retry.starts_with("4 h 59 m"), "{told:?}");
}
