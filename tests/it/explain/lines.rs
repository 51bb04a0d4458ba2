//! Callers that wait, as `RL.EXPLAIN` shows them.

use super::explain;
use crate::support::client::Client;
use crate::support::{Server, info, text, wait_for};

/// A caller that waits for the window of `k`, of which one of two is left.
fn enter(server: &Server, number: usize) -> Client {
    let mut client = Client::connect(server.port);
    client.send("RL.FIXEDWINDOW k 2 1h COST 2 BLOCK 1d");
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
    assert_eq!(explain(con, "RL.FIXEDWINDOW k 2 1h COST 2 BLOCK 2h")[0], "would wait, at most 2 h");
    assert_eq!(
        explain(con, "RL.MULTI 1 k COST 2 BLOCK 2h LIMIT FIXEDWINDOW 2 1h")[0],
        "would wait, at most 2 h"
    );
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
    assert_eq!(
        explain(con, "RL.ASK k p BLOCK 1d")[0],
        format!("{policy}: would wait behind 3 callers, at most 1 d")
    );
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
