//! Who may ask for an explanation, and where: rights, keys, replicas, transactions, scripts and a cluster. What it says is in
//! `tests/sessions/explanations.txt`.

use redis::Connection;

use crate::support::cluster::Cluster;
use crate::support::contents::contents;
use crate::support::{Server, T0, call, error, info, sync, text};

const LINES: [&str; 4] = [
    "RL.GCRA user:1 9 10 1h",
    "RL.MULTI 2 user:1 user:2 LIMIT GCRA 9 10 1h LIMIT UNIFORM 1h ON 2",
    "RL.ASK user:1 api KEYS user:2",
    "RL.SKETCH user:3 item 9 10 1h",
];

#[test]
fn the_keys_are_those_of_the_call_and_each_is_only_read() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (line, keys) in [
        ("RL.GCRA k 1 1 1s", "k"),
        ("gcra k", "k"),
        ("k", "k"),
        ("RL.SKETCH k item 1 1 1s", "k"),
        ("RL.MULTI 2 a b LIMIT GCRA 1 1 1s", "a, b"),
        ("multi 1 a LIMIT GCRA 1 1 1s", "a"),
        ("RL.ASK k api", "k"),
        ("rl.ask k api ID KEYS KEYS a b", "k, a, b"),
        ("RL.ASK k api KEYS a KEYS", "k, a, KEYS"),
    ] {
        assert_eq!(text(con, &format!("COMMAND GETKEYS RL.EXPLAIN {line}")), format!("[{keys}]"), "{line}");
    }
    let flags = text(con, "COMMAND GETKEYSANDFLAGS RL.EXPLAIN RL.ASK k api KEYS a");
    assert_eq!(flags, "[[k, [RO, access]], [a, [RO, access]]]");
    // The server would read a word beyond the last one if its place were reported.
    for line in ["RL.SHED k 1", "gcra", "sketch", "ask", "multi", "multi 3 a"] {
        let none = error(con, &format!("COMMAND GETKEYS RL.EXPLAIN {line}"));
        assert!(none.starts_with("ERR"), "{line}: {none}");
    }
}

#[test]
fn a_user_needs_no_more_than_to_read_the_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET api LIMIT GCRA 9 10 1h");
    let user = |name: &str, rules: &str| -> Connection {
        let mut con = server.connection();
        text(&mut con, &format!("ACL SETUSER {name} on nopass {rules}"));
        text(&mut con, &format!("AUTH {name} x"));
        con
    };
    let support = &mut user("support", "%R~user:* +rl.explain");
    let denied = |con: &mut Connection, line: &str| error(con, line).starts_with("NOPERM");
    for line in LINES {
        text(support, &format!("RL.EXPLAIN {line}"));
        let other = format!("RL.EXPLAIN {}", line.replace("user:", "team:"));
        assert!(denied(support, line) && denied(support, &other), "{line}");
    }
    text(support, "RL.EXPLAIN user:1");
    assert!(denied(support, "RL.EXPLAIN team:1"));
    for other in ["RL.ASK user:1 api KEYS team:1", "RL.MULTI 2 user:1 team:1 LIMIT GCRA 9 1 1s"] {
        assert!(denied(support, &format!("RL.EXPLAIN {other}")), "{other}");
    }
    // It shows the numbers of a policy to a user without the right to RL.POLICY.
    assert!(denied(support, "RL.POLICY GET api"));
    assert!(text(support, "RL.EXPLAIN RL.ASK user:1 api").contains("1. GCRA 9 10 1h on user:1: admits"));
    assert!(denied(&mut user("writer", "%W~* +rl.explain"), "RL.EXPLAIN RL.GCRA user:1 9 10 1h"));
}

#[test]
fn it_changes_and_counts_nothing_also_on_replicas_in_transactions_and_in_scripts() {
    let server = Server::start(&["--ratelimit.top", "10"]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET api LIMIT GCRA 0 1 1h");
    text(con, &format!("RL.GCRA user:1 9 1 1h COST 10 AT {T0}"));
    text(con, "RL.UNIFORM user:2 1h");
    let replica = server.replica(&[]);
    sync(&server, &replica);
    let counts = |con: &mut Connection| {
        (
            text(con, "RL.POLICY STATS api"),
            text(con, "RL.TOP"),
            info(con, "ratelimit", "ratelimit_gcra_refused"),
        )
    };
    let before = (contents(&server), counts(con));
    for line in LINES.into_iter().chain(["user:1"]) {
        // The clock goes on.
        let verdict =
            |reply: String| reply.trim_start_matches('[').split([';', ',']).next().unwrap().to_string();
        let explain = format!("RL.EXPLAIN {line}");
        let expected = verdict(text(con, &explain));
        assert_eq!(verdict(text(&mut replica.connection(), &explain)), expected, "{line}");
        for queued in ["MULTI", &explain] {
            text(con, queued);
        }
        assert_eq!(verdict(text(con, "EXEC")), expected, "{line}");
        let keys: Vec<&str> = line.split(' ').filter(|word| word.starts_with("user:")).collect();
        let words = explain.replace(' ', "','");
        let script = format!("EVAL_RO return(redis.call('{words}')) {} {}", keys.len(), keys.join(" "));
        assert_eq!(verdict(text(con, &script)), expected, "{line}");
    }
    assert_eq!((contents(&server), counts(con)), before);
}

#[test]
fn a_cluster_sends_the_call_to_the_node_of_its_keys() {
    let cluster = Cluster::start();
    let place = cluster.place("{user}");
    let home = &cluster.primaries[place];
    let elsewhere = &cluster.primaries[(place + 1) % 3];
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), home.port);
    for line in LINES {
        let line = line.replace("user:", "{user}:");
        assert_eq!(error(&mut elsewhere.connection(), &format!("RL.EXPLAIN {line}")), moved, "{line}");
    }
    let con = &mut home.connection();
    assert!(text(con, "RL.EXPLAIN RL.GCRA {user} 9 10 1h").starts_with("[admitted; "));
    let slots = "CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(error(con, "RL.EXPLAIN RL.MULTI 2 {user} other LIMIT GCRA 9 10 1h"), slots);
}

#[test]
fn of_many_leases_the_first_hundred_are_listed() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for id in 0..110 {
        text(con, &format!("RL.CONCURRENT pool 1000 {}s id:{id}", 3600 - id));
    }
    for (options, count) in [("", 100), (" 10000", 110)] {
        let told = text(con, &format!("RL.INFO pool LEASES{options}"));
        assert!(told.matches("[id, ").count() == count && told.contains("leases, [[id, id:109, "), "{told}");
    }
    text(con, "SET page text");
    assert!(error(con, "RL.INFO page LEASES").starts_with("WRONGTYPE"));
    // The helper `error` makes all errors of this kind one.
    for (line, wanted) in [("RL.EXPLAIN page", "limits"), ("RL.GCRA page 9 10 1s", "GCRA")] {
        let words: Vec<&str> = line.split(' ').collect();
        let told = call(con, &words).expect_err("a string").to_string();
        assert!(told.contains(&format!("the key holds a string, not {wanted}")), "{told}");
    }
}
