//! Keyspace events: decisions are published to subscribers, if the operator enables it.

use crate::support::events::{subscribed, until_now};
use crate::support::{Server, call, sync, text};

/// What is published on all channels of keyevents while these lines are called.
fn told(listened: &Server, called: &Server, lines: &[&str]) -> Vec<String> {
    let mut con = listened.connection();
    let mut pubsub = subscribed(&mut con);
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        call(&mut called.connection(), &words).unwrap();
    }
    if called.port != listened.port {
        sync(called, listened);
    }
    until_now(listened, &mut pubsub)
}

const LINES: &[&str] = &[
    "RL.GCRA gcra 0 1 1h",
    "RL.GCRA gcra 0 1 1h",
    // Looks and probes decide nothing.
    "RL.GCRA gcra 0 1 1h COST 0",
    "RL.PEEK gcra GCRA 0 1 1h",
    "RL.TOKENBUCKET part 5 1 1s PARTIAL COST 9",
    "CL.THROTTLE cell 0 1 60",
    "RL.SHED fleet 0.1",
    "RL.SKETCH sketch a 0 1 1h",
    "RL.SKETCH sketch a 0 1 1h",
    "RL.SKETCH sketch a 0 1 1h COST 0",
    "RL.PEEK sketch SKETCH a 0 1 1h",
    "RL.CONCURRENT lease 1 1m a",
    "RL.CONCURRENT lease 1 1m b",
    "RL.RELEASE lease a",
    "RL.XADD stream 1 * a b",
    "RL.XADD stream 1 * a b",
    "RL.LPUSH list 1 a b",
    "RL.MULTI 3 one two three LIMIT GCRA 0 1 1h ON 1 LIMIT UNIFORM 1s ON 2 LIMIT UNIFORM 1s ON 3 COST 0",
    "RL.MULTI 1 one LIMIT GCRA 0 1 1h",
    "RL.MULTIPEEK 1 one LIMIT GCRA 0 1 1h",
    // A repeated call and a settlement decide nothing.
    "RL.GCRA held 9 1 1h HOLD a 1h",
    "RL.GCRA held 9 1 1h HOLD a 1h",
    "RL.MULTI 2 held new HOLD a 1h LIMIT GCRA 9 1 1h",
    "RL.SETTLE held a GCRA 9 1 1h COST 5",
    "RL.GCRA held 9 1 1h COST 11 HOLD a 1h",
    "RL.POLICY SET one LIMIT GCRA 0 1 1h",
    "RL.POLICY SET several LIMIT GCRA 0 1 1h ON 1 LIMIT UNIFORM 1h ON 2 LIMIT UNIFORM 1h ON 3 COST 0",
    "RL.POLICY SET tried LIMIT GCRA 0 1 1h SHADOW",
    "RL.ASK asked one",
    "RL.ASK asked one",
    "RL.ASK asked one COST 0",
    "RL.ASKPEEK asked one",
    "RL.ASK asked one FULL KEYS b",
    "RL.ASK c several KEYS d e",
    "RL.ASK c several KEYS d e",
    "RL.ASK f tried",
    "RL.ASK f tried",
    "RL.ASKREFUND f tried",
    "RL.ASK g one HOLD r1 1h",
    "RL.ASK g one HOLD r1 1h",
    "RL.ASKSETTLE g one r1 COST 0",
];

#[test]
fn decisions_are_told_only_if_asked_for() {
    let server = Server::start(&["--notify-keyspace-events", "Ed"]);
    assert_eq!(text(&mut server.connection(), "CONFIG GET ratelimit.events"), "[ratelimit.events, no]");
    assert!(told(&server, &server, LINES).is_empty());

    let con = &mut server.connection();
    text(con, "FLUSHALL");
    text(con, "CONFIG SET ratelimit.events yes");
    assert_eq!(
        told(&server, &server, LINES),
        [
            "rl.admit gcra",
            "rl.refuse gcra",
            "rl.admit part",
            "rl.admit cell",
            "rl.admit fleet",
            "rl.admit sketch",
            "rl.refuse sketch",
            "rl.admit lease",
            "rl.refuse lease",
            "rl.admit stream",
            "rl.refuse stream",
            "rl.refuse list",
            // Of several keys those that were asked for more than a look.
            "rl.admit one",
            "rl.admit two",
            "rl.refuse one",
            "rl.admit held",
            "rl.refuse held",
            "rl.admit asked",
            "rl.refuse asked",
            "rl.refuse asked",
            "rl.refuse b",
            "rl.admit c",
            "rl.admit d",
            "rl.refuse c",
            "rl.refuse d",
            "rl.admit f",
            "rl.admit f",
            "rl.admit g",
        ]
    );
    // Class d, and none other.
    text(con, "CONFIG SET notify-keyspace-events Egxst$");
    assert!(told(&server, &server, LINES).is_empty());
}

#[test]
fn only_the_node_that_decided_tells() {
    let primary = Server::start(&["--notify-keyspace-events", "Ed", "--ratelimit.events", "yes"]);
    let replica = primary.replica(&["--notify-keyspace-events", "Ed", "--ratelimit.events", "yes"]);
    assert!(told(&replica, &primary, &["RL.GCRA key 5 1 1s", "RL.XADD stream 1 * a b"]).is_empty());
    assert_eq!(told(&primary, &primary, &["RL.GCRA key 5 1 1s"]), ["rl.admit key"]);
}
