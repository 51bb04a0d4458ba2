//! Connections of callers that wait: their database, protocol, and the calls behind the one that waits.

use redis::Value;

use super::{PATIENT, Waiting, until_tried, until_waiting, waiting};
use crate::support::client::Client;
use crate::support::{Server, call, connect, ints, simple, text};

const GRANTED: &str = "[0, 1, 0, 0, 3600000]";

#[test]
fn calls_behind_one_that_waits_are_answered_after_it() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let mut client = Client::connect(server.port);
    client.send("RL.CONCURRENT k 1 1h b BLOCK 1d");
    client.send("INCR counter");
    client.send("RL.CONCURRENT l 1 1h b BLOCK 1d");
    client.send("RL.CONCURRENT l 1 1h c BLOCK 1d");
    client.send("SELECT 5");
    client.send("RL.CONCURRENT k 1 1h c");
    until_waiting(con, 1);
    until_tried(&server);
    assert!(client.poll().is_none());
    assert_eq!(text(con, "EXISTS counter l"), "0", "nothing behind it has run");
    text(con, "RL.RELEASE k a");
    assert_eq!(simple(&client.reply()), GRANTED);
    assert_eq!(client.reply(), Value::Int(1));
    assert_eq!(simple(&client.reply()), GRANTED);
    // The next one waits.
    until_waiting(con, 1);
    until_tried(&server);
    assert!(client.poll().is_none());
    text(con, "RL.RELEASE l b");
    assert_eq!([(); 3].map(|()| simple(&client.reply())), [GRANTED, "OK", GRANTED], "in database 5");
    assert_eq!(ints(con, "RL.RELEASE k b"), [1]);
    // A client that wants no replies gets what it waits for, and then the reply to the last call.
    ints(con, "RL.CONCURRENT k 1 1h a");
    client.send("SELECT 0");
    client.send("CLIENT REPLY OFF");
    client.send("RL.CONCURRENT k 1 1h b BLOCK 1d");
    client.send("CLIENT REPLY ON");
    until_waiting(con, 1);
    text(con, "RL.RELEASE k a");
    assert_eq!([client.reply(), client.reply()].map(|reply| simple(&reply)), ["OK", "OK"]);
    assert_eq!(ints(con, "RL.RELEASE k b"), [1]);
}

#[test]
fn a_key_of_another_database_is_another_key() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for database in [3, 0] {
        text(con, &format!("SELECT {database}"));
        ints(con, "RL.CONCURRENT k 1 1h a");
    }
    let enter = |line: &str| {
        let mut client = Client::connect(server.port);
        client.call("SELECT 3");
        Waiting::enter_on(&server, client, line)
    };
    let mut first = enter("RL.CONCURRENT k 1 1h b BLOCK 1d");
    let mut second = enter("RL.MULTI 2 k l BLOCK 1d LIMIT CONCURRENT 1 1h c");
    // In database 0.
    assert!(text(con, "RL.INFO k").ends_with("waiting, 0]"));
    text(con, "DEL k");
    until_tried(&server);
    assert!(first.waits() && second.waits());
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h x")[0], 0);
    text(con, "SELECT 3");
    assert!(text(con, "RL.INFO k").ends_with("waiting, 2]"));
    text(con, "RL.RELEASE k a");
    assert_eq!(first.ints()[0], 0);
    text(con, "DEL k");
    assert!(second.text().starts_with("[[0, "));
    assert_eq!(text(con, "EXISTS k l"), "2");
    text(con, "SELECT 0");
    assert_eq!(text(con, "EXISTS k l"), "1");
}

#[test]
fn a_client_of_resp3_gets_the_same_replies() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    for (line, expected) in [
        ("RL.CONCURRENT k 1 1h b BLOCK 1d", GRANTED),
        ("RL.MULTI 1 k BLOCK 1d LIMIT CONCURRENT 1 1h b", "[[0, 1, 0, 0, 3600000], [[0, 1, 0, 0, 3600000]]]"),
        ("RL.ASK k p ID b BLOCK 1d FULL", "[[0, 1, 0, 0, 3600000, 1], [[0, 1, 0, 0, 3600000]]]"),
    ] {
        text(con, "DEL k");
        ints(con, "RL.CONCURRENT k 1 1h a");
        let mut resp3 = connect(server.port).unwrap();
        call(&mut resp3, &["HELLO", "3"]).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let reply = std::thread::scope(|scope| {
            let waits = scope.spawn(|| call(&mut resp3, &words).map(|reply| simple(&reply)));
            until_waiting(con, 1);
            text(con, "RL.RELEASE k a");
            waits.join().unwrap()
        });
        assert_eq!(reply.unwrap(), expected, "{line}");
        until_waiting(con, 0);
    }
}

#[test]
fn a_watched_key_that_is_charged_by_a_grant_has_changed() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.MULTI 2 k l LIMIT CONCURRENT 1 1h a");
    let caller = Waiting::enter(&server, "RL.MULTI 2 k l BLOCK 1d LIMIT CONCURRENT 1 1h b");
    text(con, "RL.RELEASE k a");
    let watcher = &mut server.connection();
    text(watcher, "WATCH k");
    text(watcher, "MULTI");
    text(watcher, "PING");
    // The grant charges both.
    text(con, "RL.RELEASE l a");
    caller.text();
    assert_eq!(text(watcher, "EXEC"), "(nil)");
}

#[test]
fn a_server_that_shuts_down_ends_all_waits() {
    let mut server = Server::start(&[&PATIENT[..], &["--save", "3600 1"]].concat());
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let mut callers =
        ["b", "c"].map(|id| Waiting::enter(&server, &format!("RL.CONCURRENT k 1 1h {id} BLOCK 1d")));
    server.restart();
    assert!(callers.iter_mut().all(|caller| caller.outcome().is_none()));
    let con = &mut server.connection();
    assert_eq!(waiting(con), 0);
    let caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h d BLOCK 1d");
    text(con, "RL.RELEASE k a");
    assert_eq!(caller.ints()[0], 0);
}
