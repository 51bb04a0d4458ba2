//! Keyspace events of callers that wait.

use redis::PubSub;

use super::{PATIENT, Waiting, try_in_vain, until_waiting};
use crate::support::events::{subscribed, until_now};
use crate::support::{Server, ints, text};

/// The events until now, without those of the barrier of [`try_in_vain`].
fn events(server: &Server, pubsub: &mut PubSub<'_>) -> Vec<String> {
    let mut events = until_now(server, pubsub);
    events.retain(|event| !event.ends_with(" barrier"));
    events
}

#[test]
fn an_event_comes_once_for_each_caller_at_its_end() {
    let args = ["--notify-keyspace-events", "Ed", "--ratelimit.events", "yes"];
    let server = Server::start(&[&PATIENT[..], &args].concat());
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    let mut listener = server.connection();
    let mut pubsub = subscribed(&mut listener);
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
        try_in_vain(&server);
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
