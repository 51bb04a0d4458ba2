//! How a wait ends without a grant, and who is next then.

use redis::Value;

use super::{PATIENT, Waiting, count, waiting};
use crate::support::client::Client;
use crate::support::{Server, WRONG_TYPE, ints, kind_of_error, simple, text};

#[test]
fn a_caller_that_leaves_makes_way_for_the_next() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ends = ["timeout", "UNBLOCK", "UNBLOCK TIMEOUT", "UNBLOCK ERROR", "KILL", "KILL ADDR", "disconnect"];
    for end in ends.into_iter().chain(["disconnect after another call"]) {
        text(con, "DEL k");
        ints(con, "RL.CONCURRENT k 5 1h a COST 3");
        // The first waits for three leases, of which two are there. The second waits for one.
        let (mut first, second) = if end == "timeout" {
            let first = Waiting::start(&server, "RL.CONCURRENT k 5 1h b COST 3 BLOCK 300ms");
            (first, Waiting::start(&server, "RL.CONCURRENT k 5 1h c BLOCK 1m"))
        } else {
            let first = Waiting::enter(&server, "RL.CONCURRENT k 5 1h b COST 3 BLOCK 1m");
            (first, Waiting::enter(&server, "RL.CONCURRENT k 5 1h c BLOCK 1m"))
        };
        match end {
            "timeout" => assert_eq!(first.ints()[..2], [1, 5]),
            "KILL" => assert_eq!(ints(con, &format!("CLIENT KILL ID {}", first.id)), [1]),
            "KILL ADDR" => {
                let listed = text(con, &format!("CLIENT LIST ID {}", first.id));
                let address = listed.split(' ').find_map(|field| field.strip_prefix("addr=")).unwrap();
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
}

#[test]
fn client_unblock_is_a_refusal_as_of_then_or_an_error() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 3");
    let _first = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d");
    // The same client calls again and again.
    let mut client = Client::connect(server.port);
    for line in [
        "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d",
        "RL.MULTI 1 k COST 3 BLOCK 1d LIMIT FIXEDWINDOW 5 1h",
        "RL.ASK k p COST 3 BLOCK 1d",
        // It fits, but stands behind the other.
        "RL.FIXEDWINDOW k 5 1h BLOCK 1d",
    ] {
        for mode in ["", "ERROR", "TIMEOUT"] {
            let mut caller = Waiting::enter_on(&server, client, line);
            assert_eq!(ints(con, &format!("CLIENT UNBLOCK {} {mode}", caller.id)), [1]);
            let reply = caller.outcome().unwrap();
            let shown = simple(&reply);
            if mode == "ERROR" {
                assert_eq!(shown, "UNBLOCKED client unblocked via CLIENT UNBLOCK", "{line}");
                assert!(matches!(reply, Value::ServerError(_)), "{line}");
            } else {
                let numbers = shown.trim_start_matches('[');
                let retry: i64 = numbers.split(", ").nth(3).unwrap().parse().unwrap();
                assert!(numbers.starts_with("1, 5, ") && (1..=3_600_000).contains(&retry), "{line}: {shown}");
            }
            client = caller.client;
        }
    }
    assert_eq!(ints(con, &format!("CLIENT UNBLOCK {}", client.id())), [0], "no longer blocked");
    assert_eq!(["waiting", "waited_granted", "waited_timeout"].map(|field| count(con, field)), [1, 0, 8]);
    assert_eq!(ints(con, "RL.PEEK k FIXEDWINDOW 5 1h")[2], 2, "nothing is charged");
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
    let counts = ["waiting", "waited_granted", "waited_timeout"].map(|field| count(con, field));
    assert_eq!(counts, [0, 0, 0]);
}
