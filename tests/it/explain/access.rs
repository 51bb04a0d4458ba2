//! Who may ask for an explanation, and where: rights, keys, replicas, transactions, scripts and a cluster.

use redis::Connection;

use super::{explain, texts};
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
    let none = error(con, "COMMAND GETKEYS RL.EXPLAIN RL.SHED k 1");
    assert!(none.starts_with("ERR"), "{none}");
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
    for line in LINES {
        assert!(explain(support, line).len() > 1);
        assert!(error(support, line).starts_with("NOPERM"), "{line}");
        let other = format!("RL.EXPLAIN {}", line.replace("user:", "team:"));
        assert!(error(support, &other).starts_with("NOPERM"), "{other}");
    }
    assert!(error(support, "RL.EXPLAIN RL.ASK user:1 api KEYS team:1").starts_with("NOPERM"));
    assert!(error(support, "RL.EXPLAIN RL.MULTI 2 user:1 team:1 LIMIT GCRA 9 1 1s").starts_with("NOPERM"));
    // It shows the numbers of a policy to a user without the right to RL.POLICY.
    assert!(error(support, "RL.POLICY GET api").starts_with("NOPERM"));
    assert_eq!(
        explain(support, "RL.ASK user:1 api")[1],
        "1. GCRA 9 10 1h on user:1: admits; 10 of 10 left; nothing is stored of it"
    );
    let writer = &mut user("writer", "%W~* +rl.explain");
    assert!(error(writer, "RL.EXPLAIN RL.GCRA user:1 9 10 1h").starts_with("NOPERM"));
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
    let counts =
        |con: &mut Connection| (text(con, "RL.POLICY STATS api"), text(con, "RL.TOP"), decisions(con));
    let before = (contents(&server), counts(con));
    for line in LINES {
        let told = explain(con, line);
        // The clock goes on.
        let verdict = |texts: &[String]| texts[0].split(';').next().unwrap().to_string();
        assert_eq!(verdict(&explain(&mut replica.connection(), line)), verdict(&told), "{line}");
        text(con, "MULTI");
        text(con, &format!("RL.EXPLAIN {line}"));
        let redis::Value::Array(replies) = call(con, &["EXEC"]).unwrap() else { panic!("no array") };
        assert_eq!(verdict(&texts(&replies[0])), verdict(&told), "{line}");
        let words: Vec<&str> = line.split(' ').collect();
        let script = format!("return redis.call('RL.EXPLAIN','{}')", words.join("','"));
        let keys: Vec<&str> = words.iter().filter(|word| word.starts_with("user:")).copied().collect();
        let count = keys.len().to_string();
        let told_by_script = call(con, &[&["EVAL_RO", &script, &count], &keys[..]].concat()).unwrap();
        assert_eq!(verdict(&texts(&told_by_script)), verdict(&told), "{line}");
    }
    assert_eq!((contents(&server), counts(con)), before);
}

/// The counters of decisions.
fn decisions(con: &mut Connection) -> Vec<Option<String>> {
    ["ratelimit_gcra_admitted", "ratelimit_gcra_refused", "ratelimit_multi_admitted", "ratelimit_ask_refused"]
        .map(|field| info(con, "ratelimit", field))
        .into()
}

#[test]
fn a_cluster_sends_the_call_to_the_node_of_its_keys() {
    let cluster = Cluster::start();
    let place = cluster.place("{user}");
    let home = &cluster.primaries[place];
    let elsewhere = &cluster.primaries[(place + 1) % 3];
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), home.port);
    for line in [
        "RL.GCRA {user} 9 10 1h",
        "RL.MULTI 2 {user} {user}:2 LIMIT GCRA 9 10 1h",
        "RL.ASK {user} api KEYS {user}:2",
        "RL.SKETCH {user} item 9 10 1h",
    ] {
        assert_eq!(error(&mut elsewhere.connection(), &format!("RL.EXPLAIN {line}")), moved, "{line}");
    }
    let con = &mut home.connection();
    assert_eq!(explain(con, "RL.GCRA {user} 9 10 1h")[0], "admitted");
    let slots = "CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(error(con, "RL.EXPLAIN RL.MULTI 2 {user} other LIMIT GCRA 9 10 1h"), slots);
}
