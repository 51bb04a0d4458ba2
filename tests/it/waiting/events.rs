//! Keyspace events of callers that wait.

use std::time::Duration;

use redis::PubSub;

use super::{PATIENT, Waiting, until_tried, until_waiting};
use crate::support::{Server, call, ints, text};

/// The events of this module that come before one called `end`, without those of the barrier of [`until_tried`].
fn events(server: &Server, pubsub: &mut PubSub<'_>) -> Vec<String> {
    call(&mut server.connection(), &["PUBLISH", "end", ""]).unwrap();
    let mut events = Vec::new();
    loop {
        let message = pubsub.get_message().unwrap();
        if message.get_channel_name() == "end" {
            return events;
        }
        let event = message.get_channel_name().trim_start_matches("__keyevent@0__:").to_string();
        let key: String = message.get_payload().unwrap();
        if key != "barrier" {
            events.push(format!("{event} {key}"));
        }
    }
}

#[test]
fn an_event_comes_once_for_each_caller_at_its_end() {
    let args = ["--notify-keyspace-events", "Ed", "--ratelimit.events", "yes"];
    let server = Server::start(&[&PATIENT[..], &args].concat());
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    let mut listener = server.connection();
    let mut pubsub = listener.as_pubsub();
    pubsub.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    pubsub.psubscribe("__keyevent@0__:rl.*").unwrap();
    pubsub.subscribe("end").unwrap();
    for (line, keys) in [
        ("RL.CONCURRENT k 1 1h # BLOCK 1d", &["k"][..]),
        ("RL.MULTI 2 k l BLOCK 1d LIMIT CONCURRENT 1 1h #", &["k", "l"]),
        ("RL.ASK k p ID # BLOCK 1d", &["k"]),
    ] {
        let of = |event: &str| -> Vec<String> { keys.iter().map(|key| format!("{event} {key}")).collect() };
        text(con, "DEL k l");
        ints(con, "RL.CONCURRENT k 1 1h a");
        events(&server, &mut pubsub);
        let [granted, unblocked, leaves] =
            ["b", "c", "d"].map(|id| Waiting::enter(&server, &line.replace('#', id)));
        // They are tried in vain.
        text(con, "COPY k copy REPLACE");
        text(con, "RENAME copy k");
        until_tried(&server);
        assert!(events(&server, &mut pubsub).is_empty(), "{line}");
        text(con, "RL.RELEASE k a");
        granted.text();
        assert_eq!(events(&server, &mut pubsub), of("rl.admit"), "{line}");
        ints(con, &format!("CLIENT UNBLOCK {}", unblocked.id));
        unblocked.text();
        assert_eq!(events(&server, &mut pubsub), of("rl.refuse"), "{line}");
        Waiting::start(&server, &line.replace('#', "e").replace("1d", "200ms")).text();
        assert_eq!(events(&server, &mut pubsub), of("rl.refuse"), "{line}");
        drop(leaves);
        until_waiting(con, 0);
        assert!(events(&server, &mut pubsub).is_empty(), "{line}: who leaves is not decided on");
    }
}
