//! How a wait ends without a grant, and who is next then.

use std::time::{Duration, Instant};

use redis::{Connection, Value};

use super::{PATIENT, Waiting, count, until_tried, until_waiting, waiting};
use crate::support::client::Client;
use crate::support::replicas::NOWHERE;
use crate::support::{Server, WRONG_TYPE, ints, kind_of_error, multi, refused, text};

const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// The first in line waits for three leases, of which two are there. The second waits for one.
fn two_in_line(server: &Server, timeout: &str) -> [Waiting; 2] {
    let con = &mut server.connection();
    text(con, "DEL k");
    ints(con, "RL.CONCURRENT k 5 1h a COST 3");
    [format!("b COST 3 BLOCK {timeout}"), "c BLOCK 1m".into()]
        .map(|call| Waiting::enter(server, &format!("RL.CONCURRENT k 5 1h {call}")))
}

#[test]
fn a_timeout_is_a_refusal_as_of_then() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    ints(con, "RL.CONCURRENT k 1 1h a");
    for (line, timed_out) in [
        ("RL.CONCURRENT k 1 1h b BLOCK 400ms", 1),
        ("RL.MULTI 1 k BLOCK 400ms LIMIT CONCURRENT 1 1h b", 2),
        ("RL.ASK k p ID b BLOCK 400ms", 3),
    ] {
        let started = Instant::now();
        let reply = Waiting::start(&server, line).text();
        assert!(started.elapsed() >= Duration::from_millis(400), "{line}: {:?}", started.elapsed());
        assert!(started.elapsed() < Duration::from_secs(20), "{line}: {:?}", started.elapsed());
        let numbers: Vec<i64> =
            reply.trim_matches(['[', ']']).split(", ").map_while(|number| number.parse().ok()).collect();
        // The lease has lasted for the whole wait.
        assert_eq!(numbers[..3], [1, 1, 0], "{line}: {reply}");
        assert!((3_500_000..=3_599_600).contains(&numbers[3]), "{line}: {reply}");
        assert_eq!(count(con, "waited_timeout"), timed_out, "{line}");
        assert_eq!(waiting(con), 0, "{line}");
    }
    assert_eq!(count(con, "waited_granted"), 0);
}

#[test]
fn whoever_leaves_makes_way_for_the_next() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ends = ["timeout", "UNBLOCK", "UNBLOCK TIMEOUT", "UNBLOCK ERROR", "KILL", "KILL ADDR", "disconnect"];
    for end in ends.into_iter().chain(["disconnect after another call"]) {
        let [mut first, second] = two_in_line(&server, if end == "timeout" { "2s" } else { "1m" });
        match end {
            "timeout" => {}
            "KILL" => assert_eq!(ints(con, &format!("CLIENT KILL ID {}", first.id)), [1]),
            "KILL ADDR" => {
                let address = address(con, first.id);
                assert_eq!(ints(con, &format!("CLIENT KILL ADDR {address}")), [1]);
            }
            "disconnect" => drop(first),
            "disconnect after another call" => {
                first.client.send("PING");
                drop(first);
            }
            _ => {
                let mode = end.trim_start_matches("UNBLOCK");
                assert_eq!(ints(con, &format!("CLIENT UNBLOCK {}{mode}", first.id)), [1]);
            }
        }
        assert_eq!(second.ints()[..3], [0, 5, 1], "{end}");
        assert_eq!(waiting(con), 0, "{end}");
    }
    assert_eq!(count(con, "waited_granted"), 8);
}

/// The address of a client.
fn address(con: &mut Connection, id: i64) -> String {
    let listed = text(con, &format!("CLIENT LIST ID {id}"));
    let field = listed.split(' ').find_map(|field| field.strip_prefix("addr="));
    field.unwrap_or_else(|| panic!("{listed}")).to_string()
}

#[test]
fn client_unblock_is_a_refusal_as_of_then() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 3");
    // The last one fits, but stands behind the others.
    let callers = [
        "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d",
        "RL.MULTI 1 k COST 3 BLOCK 1d LIMIT FIXEDWINDOW 5 1h",
        "RL.ASK k p COST 3 BLOCK 1d",
        "RL.FIXEDWINDOW k 5 1h BLOCK 1d",
    ]
    .map(|line| Waiting::enter(&server, line));
    for (caller, mode) in callers.into_iter().rev().zip(["", "TIMEOUT", "", "TIMEOUT"]) {
        assert_eq!(ints(con, &format!("CLIENT UNBLOCK {} {mode}", caller.id)), [1]);
        let line = caller.line.clone();
        let reply = caller.text();
        assert!(reply.trim_start_matches('[').starts_with("1, 5, 0, "), "{line}: {reply}");
        let retry: i64 = reply.trim_start_matches('[').split(", ").nth(3).unwrap().parse().unwrap();
        assert!((1..=3_600_000).contains(&retry), "{line}: {reply}");
    }
    assert_eq!((count(con, "waited_timeout"), waiting(con)), (4, 0));
    assert_eq!(ints(con, "RL.PEEK k FIXEDWINDOW 5 1h")[2], 2, "nothing is charged");
}

#[test]
fn client_unblock_with_error_is_an_error() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    ints(con, "RL.CONCURRENT k 1 1h a");
    for line in [
        "RL.CONCURRENT k 1 1h b BLOCK 1d",
        "RL.MULTI 1 k BLOCK 1d LIMIT CONCURRENT 1 1h b",
        "RL.ASK k p ID b BLOCK 1d",
    ] {
        let caller = Waiting::enter(&server, line);
        assert_eq!(ints(con, &format!("CLIENT UNBLOCK {} ERROR", caller.id)), [1]);
        assert_eq!(caller.error(), UNBLOCKED, "{line}");
    }
    assert_eq!((count(con, "waited_granted"), waiting(con)), (0, 0));
    text(con, "RL.RELEASE k a");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h c")[0], 0, "nobody got the lease");
}

#[test]
fn who_is_unblocked_can_call_again_on_the_same_connection() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let mut client = Client::connect(server.port);
    let id = client.id();
    for mode in ["TIMEOUT", "ERROR", "TIMEOUT"] {
        client.send("RL.CONCURRENT k 1 1h b BLOCK 1m");
        until_waiting(con, 1);
        ints(con, &format!("CLIENT UNBLOCK {id} {mode}"));
        let reply = client.reply();
        assert_eq!(matches!(reply, Value::ServerError(_)), mode == "ERROR", "{mode}: {reply:?}");
    }
    // No longer blocked.
    assert_eq!(ints(con, &format!("CLIENT UNBLOCK {id}")), [0]);
    client.send("RL.CONCURRENT k 1 1h b BLOCK 1m");
    until_waiting(con, 1);
    text(con, "RL.RELEASE k a");
    assert!(!refused(&client.reply()));
    assert_eq!(ints(con, &format!("CLIENT UNBLOCK {id}")), [0]);
}

#[test]
fn a_grant_and_an_end_in_one_event_are_one_reply() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for mode in ["UNBLOCK", "UNBLOCK ERROR", "KILL"] {
        text(con, "DEL k");
        ints(con, "RL.CONCURRENT k 1 1h a");
        let mut caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1m");
        let mut words = vec!["RL.RELEASE k a".to_string()];
        words.push(match mode {
            "KILL" => format!("CLIENT KILL ID {}", caller.id),
            mode => format!("CLIENT UNBLOCK {} {}", caller.id, mode.trim_start_matches("UNBLOCK")),
        });
        text(con, "MULTI");
        for line in &words {
            text(con, line);
        }
        text(con, "EXEC");
        let reply = caller.outcome();
        until_waiting(con, 0);
        // The lease is free, so it was the end that counted.
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h c")[0], 0, "{mode}: {reply:?}");
        match mode {
            "KILL" => assert_eq!(reply, None),
            "UNBLOCK" => assert!(refused(&reply.unwrap())),
            _ => assert!(matches!(reply, Some(Value::ServerError(_))), "{reply:?}"),
        }
        if mode != "KILL" {
            caller.client.send("PING");
            assert_eq!(caller.client.reply(), Value::SimpleString("PONG".into()), "{mode}");
        }
    }
}

#[test]
fn a_primary_that_becomes_a_replica_ends_all_waits() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    ints(con, "RL.FIXEDWINDOW window 1 1h");
    let callers = [
        "RL.CONCURRENT k 1 1h b BLOCK 1d",
        "RL.CONCURRENT k 1 1h c BLOCK 1d",
        "RL.MULTI 2 k window BLOCK 1d LIMIT CONCURRENT 1 1h d ON 1 LIMIT FIXEDWINDOW 1 1h ON 2",
    ]
    .map(|line| Waiting::enter(&server, line));
    text(con, &format!("REPLICAOF 127.0.0.1 {NOWHERE}"));
    for mut caller in callers {
        match caller.outcome() {
            None => {}
            Some(Value::ServerError(error)) => assert_eq!(error.code(), "UNBLOCKED"),
            Some(other) => panic!("{}: {other:?}", caller.line),
        }
    }
    let con = &mut server.connection();
    until_waiting(con, 0);
    text(con, "REPLICAOF NO ONE");
    until_tried(&server);
    assert_eq!(ints(con, "RL.PEEK k CONCURRENT 1 1h a")[..3], [0, 1, 0], "the lease is held as before");
    let caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1d");
    text(con, "RL.RELEASE k a");
    assert_eq!(caller.ints()[0], 0);
}

#[test]
fn a_replica_makes_nobody_wait() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&["--replica-read-only", "no"]);
    let con = &mut replica.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h b BLOCK 1m")[..3], [1, 1, 0]);
    assert_eq!(multi(con, "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1h b").0[..3], [1, 1, 0]);
    assert_eq!(waiting(con), 0);
}

#[test]
fn a_policy_that_is_deleted_is_an_error_and_the_next_is_tried() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
    let asked = Waiting::enter(&server, "RL.ASK k p BLOCK 1d");
    let other = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h BLOCK 1d");
    text(con, "RL.POLICY DEL p");
    ints(con, "RL.REFUND k FIXEDWINDOW 5 1h");
    assert_eq!(asked.error(), "ERR no such policy 'p'");
    assert_eq!(other.ints()[..3], [0, 5, 0]);
}

#[test]
fn a_policy_that_changes_counts_as_it_is_at_the_grant() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
    // A larger limit is noticed soon.
    let caller = Waiting::enter(&server, "RL.ASK k p BLOCK 1d");
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 7 1h");
    assert_eq!(caller.ints()[..3], [0, 7, 1]);
    // A caller waits for the limits of the new version.
    text(con, "DEL k");
    ints(con, "RL.ASK k p COST 7");
    let mut caller = Waiting::enter(&server, "RL.ASK k p BLOCK 1d");
    multi(con, "RL.MULTI 1 k LIMIT GCRA 0 1 1h");
    text(con, "RL.POLICY SET p LIMIT GCRA 0 1 1h");
    ints(con, "RL.REFUND k FIXEDWINDOW 7 1h COST 7");
    until_tried(&server);
    assert!(caller.waits());
    assert_eq!(multi(con, "RL.MULTI 1 k LIMIT FIXEDWINDOW 7 1h").0[0], 0, "nobody waits for the old limit");
    ints(con, "RL.REFUND k GCRA 0 1 1h");
    assert_eq!(caller.ints(), [0, 1, 0, 0, 3_600_000, 1]);
}

#[test]
fn a_key_of_another_type_is_an_error_for_who_waits_for_another_one() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT a 1 1h old");
    let caller = Waiting::enter(&server, "RL.MULTI 2 a b BLOCK 1d LIMIT CONCURRENT 1 1h new");
    text(con, "SET b value");
    text(con, "RL.RELEASE a old");
    assert_eq!(kind_of_error(caller.error()), WRONG_TYPE);
    assert_eq!(ints(con, "RL.CONCURRENT a 1 1h other")[0], 0, "nothing is charged");
}

/// Calls that the server runs one after the other, without another event in between.
fn at_once(con: &mut Connection, lines: &[&str]) {
    let mut calls = redis::pipe();
    for line in lines {
        let mut words = line.split(' ');
        calls.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
    }
    calls.query::<Vec<Value>>(con).unwrap();
}

#[test]
fn who_is_unblocked_is_refused_even_if_the_limits_have_room_by_then() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
    let caller = Waiting::enter(&server, "RL.ASK k p BLOCK 1d");
    let unblock = format!("CLIENT UNBLOCK {}", caller.id);
    at_once(con, &["RL.POLICY SET p LIMIT FIXEDWINDOW 5 1d", &unblock]);
    assert_eq!(caller.ints()[..3], [1, 5, 0]);

    ints(con, "RL.CONCURRENT l 1 1h a");
    let caller =
        Waiting::enter(&server, "RL.MULTI 1 l BLOCK 1m LIMIT CONCURRENT 1 1h b LIMIT FIXEDWINDOW 5 1h");
    let unblock = format!("CLIENT UNBLOCK {}", caller.id);
    at_once(con, &["RL.RELEASE l a", "RL.CONCURRENT l 1 1h b CRITICAL", &unblock]);
    let reply = caller.text();
    assert!(reply.starts_with("[[1, 1, 0, 1, "), "{reply}");
    // The lease is alone in its key: nothing was charged to the window.
    assert_eq!(text(con, "RL.INFO l").matches("FIXEDWINDOW").count(), 0);
}
