//! Callers that wait: `BLOCK`. A call counts once, when it is refused.

use super::{ON, counts, entry, top};
use crate::support::client::Client;
use crate::support::{Server, info, refused, text, wait_for};

#[test]
fn a_call_that_waits_in_vain_counts_once() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    text(con, "SELECT 3");
    text(con, "RL.POLICY SET one LIMIT CONCURRENT 1 1h");
    text(con, "RL.POLICY SET two LIMIT CONCURRENT 1 1h ON 1 LIMIT FIXEDWINDOW 9 1h ON 2");
    for (key, line) in [
        ("own", "RL.CONCURRENT own 1 1h second BLOCK 300ms"),
        ("multi", "RL.MULTI 1 multi BLOCK 300ms LIMIT CONCURRENT 1 1h second"),
        (
            "several",
            "RL.MULTI 2 several other BLOCK 300ms LIMIT CONCURRENT 1 1h second ON 1 LIMIT FIXEDWINDOW 9 1h ON 2",
        ),
        ("asked", "RL.ASK asked one ID second BLOCK 300ms"),
        ("both", "RL.ASK both two ID second BLOCK 300ms KEYS more"),
    ] {
        text(con, "RL.TOP RESET");
        text(con, &format!("RL.CONCURRENT {key} 1 1h first"));
        let mut client = Client::connect(server.port);
        client.call("SELECT 3");
        client.send(line);
        wait_for("a caller that waits", || info(con, "ratelimit", "ratelimit_waiting").unwrap() == "1");
        assert_eq!(top(con, ""), [], "{line}: it is not refused yet");
        assert!(refused(&client.reply()), "{line}");
        assert_eq!(top(con, ""), [entry(key, 3, 1, 0)], "{line}");
    }
    // This one is refused at once, because it would come after the timeout.
    text(con, "RL.TOP RESET");
    for _ in 0..3 {
        text(con, "RL.UNIFORM gate 1h BLOCK 300ms");
    }
    assert_eq!(counts(con), [("gate".to_string(), 2)]);
}

#[test]
fn a_refusal_because_others_wait_counts_and_an_admission_after_a_wait_does_not() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    text(con, "RL.CONCURRENT lease 1 1h first");
    let mut client = Client::connect(server.port);
    client.send("RL.CONCURRENT lease 1 1h second BLOCK 50s");
    wait_for("a caller that waits", || info(con, "ratelimit", "ratelimit_waiting").unwrap() == "1");
    for id in ["third", "fourth"] {
        text(con, &format!("RL.CONCURRENT lease 1 1h {id}"));
    }
    assert_eq!(counts(con), [("lease".to_string(), 2)]);
    text(con, "RL.RELEASE lease first");
    assert!(!refused(&client.reply()));
    assert_eq!(counts(con), [("lease".to_string(), 2)]);
}
