//! What operators see of callers that wait: counters, fields, events and flags.

use std::time::Duration;

use redis::{Connection, PubSub};

use super::{PATIENT, Waiting, count, try_in_vain, until_waiting};
use crate::support::{Server, call, command_names, ints, older, sorted_elements, text};

#[test]
fn info_counts_those_who_wait_who_are_granted_and_whose_time_passes() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let counts =
        |con: &mut Connection| ["waiting", "waited_granted", "waited_timeout"].map(|field| count(con, field));
    assert_eq!(counts(con), [0, 0, 0]);
    ints(con, "RL.CONCURRENT k 1 1h a");
    ints(con, "RL.CONCURRENT k 1 1h x");
    assert_eq!(counts(con), [0, 0, 0], "a refusal at once is no wait");
    let [b, c, d, e] = ["b BLOCK 1d", "c BLOCK 1d", "d BLOCK 1d", "e BLOCK 1d"]
        .map(|lease| Waiting::enter(&server, &format!("RL.CONCURRENT k 1 1h {lease}")));
    assert_eq!(counts(con), [4, 0, 0]);
    text(con, "RL.RELEASE k a");
    b.ints();
    assert_eq!(counts(con), [3, 1, 0]);
    ints(con, &format!("CLIENT UNBLOCK {}", c.id));
    c.ints();
    assert_eq!(counts(con), [2, 1, 1]);
    drop(d);
    until_waiting(con, 1);
    assert_eq!(counts(con), [1, 1, 1], "a disconnect");
    ints(con, &format!("CLIENT UNBLOCK {} ERROR", e.id));
    e.error();
    assert_eq!(counts(con), [0, 1, 1], "an error");
    Waiting::start(&server, "RL.CONCURRENT k 1 1h f BLOCK 200ms").ints();
    assert_eq!(counts(con), [0, 1, 2], "a timeout");
    let mut wrong = Waiting::enter(&server, "RL.CONCURRENT k 1 1h g BLOCK 1d");
    text(con, "SET k value");
    wrong.outcome();
    assert_eq!(counts(con), [0, 1, 2], "a key of another type");
}

#[test]
fn a_caller_that_waits_is_counted_once_at_its_end() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 1 1h");
    for (row, line) in [
        ("fixedwindow", "RL.FIXEDWINDOW k 1 1h BLOCK 1d"),
        ("fixedwindow", "RL.FIXEDWINDOW k 1 1h BLOCK 1d HOLD job 1h"),
        ("multi", "RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 1 1h"),
        ("ask", "RL.ASK k p BLOCK 1d"),
    ] {
        text(con, "DEL k");
        ints(con, "RL.FIXEDWINDOW k 1 1h");
        let counts =
            |con: &mut Connection| ["admitted", "refused"].map(|what| count(con, &format!("{row}_{what}")));
        let [admitted, refused] = counts(con);
        let granted = Waiting::enter(&server, line);
        try_in_vain(&server);
        assert_eq!(counts(con), [admitted, refused], "{line}: while it waits");
        ints(con, "RL.REFUND k FIXEDWINDOW 1 1h");
        granted.text();
        assert_eq!(counts(con), [admitted + 1, refused], "{line}: granted");
        let line = line.replace("HOLD job", "HOLD other");
        let unblocked = Waiting::enter(&server, &line);
        ints(con, &format!("CLIENT UNBLOCK {}", unblocked.id));
        unblocked.text();
        assert_eq!(counts(con), [admitted + 1, refused + 1], "{line}: refused");
    }
}

#[test]
fn a_policy_counts_a_caller_that_waits_once() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    ints(con, "RL.ASK k p ID a");
    let stats = |con: &mut Connection| text(con, "RL.POLICY STATS p");
    let of = |admitted: u64, refused: u64, errors: u64| {
        let limit = format!("[limit, CONCURRENT 1 1h, refused, {refused}, shadow_refused, 0]");
        format!(
            "[version, 1, admitted, {admitted}, refused, {refused}, shadow_refused, 0, errors, {errors}, \
             limits, [{limit}]]"
        )
    };
    let [granted, unblocked] =
        ["b", "c"].map(|id| Waiting::enter(&server, &format!("RL.ASK k p ID {id} BLOCK 1m")));
    assert_eq!(stats(con), of(1, 0, 0));
    text(con, "RL.RELEASE k a");
    granted.ints();
    assert_eq!(stats(con), of(2, 0, 0));
    ints(con, &format!("CLIENT UNBLOCK {}", unblocked.id));
    unblocked.ints();
    assert_eq!(stats(con), of(2, 1, 0));
    Waiting::start(&server, "RL.ASK k p ID d BLOCK 200ms").ints();
    assert_eq!(stats(con), of(2, 2, 0));
    let wrong = Waiting::enter(&server, "RL.ASK k p ID e BLOCK 1m");
    text(con, "SET k value");
    wrong.error();
    assert_eq!(stats(con), of(2, 2, 1));
}

#[test]
fn rl_info_shows_how_many_wait_for_a_key() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let waiting = |con: &mut Connection, key: &str| {
        let fields = text(con, &format!("RL.INFO {key}"));
        fields.split("waiting, ").nth(1).unwrap_or(&fields).trim_end_matches(']').to_string()
    };
    let limits = "LIMIT FIXEDWINDOW 1 1h LIMIT CONCURRENT 1 1h";
    text(con, &format!("RL.MULTI 2 k l {limits} a"));
    assert_eq!(waiting(con, "k"), "0");
    // It stands in two lines of each key.
    let both = Waiting::enter(&server, &format!("RL.MULTI 2 k l BLOCK 1d {limits} b"));
    let _one = Waiting::enter(&server, "RL.FIXEDWINDOW k 1 1h BLOCK 1d");
    assert_eq!((waiting(con, "k"), waiting(con, "l")), ("2".into(), "1".into()));
    text(con, "SELECT 1");
    ints(con, "RL.FIXEDWINDOW k 1 1h");
    assert_eq!(waiting(con, "k"), "0", "in another database");
    text(con, "SELECT 0");
    drop(both);
    until_waiting(con, 1);
    assert_eq!((waiting(con, "k"), waiting(con, "l")), ("1".into(), "0".into()));
}

/// The events of this module that come before one called `end`.
fn events(server: &Server, pubsub: &mut PubSub<'_>) -> Vec<String> {
    call(&mut server.connection(), &["PUBLISH", "end", ""]).unwrap();
    let mut events = Vec::new();
    loop {
        let message = pubsub.get_message().unwrap();
        if message.get_channel_name() == "end" {
            return events;
        }
        let event = message.get_channel_name().trim_start_matches("__keyevent@0__:").to_string();
        events.push(format!("{event} {}", message.get_payload::<String>().unwrap()));
    }
}

#[test]
fn an_event_comes_once_for_each_caller_at_its_end() {
    let server = Server::start(&[
        "--ratelimit.max-block",
        "86400000",
        "--notify-keyspace-events",
        "Ed",
        "--ratelimit.events",
        "yes",
    ]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    let mut listener = server.connection();
    let mut pubsub = listener.as_pubsub();
    pubsub.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    pubsub.psubscribe("__keyevent@0__:rl.*").unwrap();
    pubsub.subscribe("end").unwrap();
    for (lines, keys) in [
        (["RL.CONCURRENT k 1 1h b BLOCK 1d", "RL.CONCURRENT k 1 1h c BLOCK 1d"], &["k"][..]),
        (
            [
                "RL.MULTI 2 k l BLOCK 1d LIMIT CONCURRENT 1 1h b",
                "RL.MULTI 2 k l BLOCK 1d LIMIT CONCURRENT 1 1h c",
            ],
            &["k", "l"],
        ),
        (["RL.ASK k p ID b BLOCK 1d", "RL.ASK k p ID c BLOCK 1d"], &["k"]),
    ] {
        let of = |event: &str| -> Vec<String> { keys.iter().map(|key| format!("{event} {key}")).collect() };
        text(con, "DEL k l");
        ints(con, "RL.CONCURRENT k 1 1h a");
        events(&server, &mut pubsub);
        let [granted, unblocked] = lines.map(|line| Waiting::enter(&server, line));
        try_in_vain(&server);
        let others = |event: &String| !event.ends_with(" barrier");
        assert_eq!(events(&server, &mut pubsub).into_iter().find(others), None, "{lines:?}");
        text(con, "RL.RELEASE k a");
        granted.text();
        assert_eq!(events(&server, &mut pubsub), of("rl.admit"), "{lines:?}");
        ints(con, &format!("CLIENT UNBLOCK {}", unblocked.id));
        unblocked.text();
        assert_eq!(events(&server, &mut pubsub), of("rl.refuse"), "{lines:?}");
        Waiting::start(&server, &lines[1].replace("1d", "200ms")).text();
        assert_eq!(events(&server, &mut pubsub), of("rl.refuse"), "{lines:?}");
        drop(Waiting::enter(&server, lines[1]));
        until_waiting(con, 0);
        assert!(events(&server, &mut pubsub).is_empty(), "{lines:?}: who leaves is not decided on");
    }
}

/// The commands that may wait.
const WAIT: [&str; 11] = [
    "rl.ask",
    "rl.calendar",
    "rl.concurrent",
    "rl.fixedwindow",
    "rl.gcra",
    "rl.leakybucket",
    "rl.multi",
    "rl.slidinglog",
    "rl.slidingwindow",
    "rl.tokenbucket",
    "rl.uniform",
];

#[test]
fn the_commands_that_may_wait_are_flagged() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut flagged = command_names(con);
    flagged.retain(|name| {
        let described = text(con, &format!("COMMAND INFO {name}"));
        described.split(['[', ']']).nth(3).unwrap().split(", ").any(|flag| flag == "blocking")
    });
    assert_eq!(flagged, WAIT);
    if older(con, [7, 2], "categories for modules' commands") {
        return;
    }
    let mut category = sorted_elements(&text(con, "COMMAND LIST FILTERBY ACLCAT blocking"));
    category.retain(|name| name.starts_with("rl."));
    assert_eq!(category, WAIT);
}
