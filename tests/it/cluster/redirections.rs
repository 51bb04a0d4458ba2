//! Keys of one slot in one call, and what a node replies to a call that is for another one.

use crate::support::cluster::Cluster;
use crate::support::{T0, command_names, error, info, sync, text};

const OTHER_SLOTS: &str = "CROSSSLOT Keys in request don't hash to the same slot";

#[test]
fn keys_with_one_tag_are_asked_together_and_the_others_are_refused_or_sent_on() {
    let cluster = Cluster::start();
    let home = &cluster.primaries[cluster.place("{user}")];
    let con = &mut home.connection();
    let limits = "LIMIT GCRA 9 1 1h LIMIT CONCURRENT 9 1h id ON 2";
    let reply = text(con, &format!("RL.MULTI 2 {{user}}:a {{user}}:b AT {T0} {limits}"));
    assert_eq!(
        reply,
        "[[0, 9, 8, 0, 3600000], [[0, 10, 9, 0, 3600000], [0, 10, 9, 0, 3600000], [0, 9, 8, 0, 3600000]]]"
    );
    let script = "return{redis.call('RL.GCRA',KEYS[1],9,1,'1h'),redis.call('RL.XADD',KEYS[2],1,'*','f','v')}";
    assert!(text(con, &format!("EVAL {script} 2 {{user}}:c {{user}}:d")).starts_with("[[0, 10, 9"));

    let keys = text(con, "DBSIZE");
    for name in ["RL.MULTI", "RL.MULTIPEEK"] {
        assert_eq!(error(con, &format!("{name} 2 {{user}}:a other {limits}")), OTHER_SLOTS, "{name}");
    }
    assert_eq!(error(con, "RL.MULTIREFUND 2 {user}:a other LIMIT GCRA 9 1 1h"), OTHER_SLOTS);
    assert_eq!(error(con, "RL.MULTISETTLE 2 {user}:a other id COST 1 LIMIT GCRA 9 1 1h"), OTHER_SLOTS);
    assert_eq!(error(con, "RL.APPLY {user}:a payload other payload"), OTHER_SLOTS);
    // A number of keys that cannot be right is an error: no argument after it is taken for a key.
    let miscounted = error(con, "RL.MULTI 9 {user}:a other LIMIT GCRA 9 1");
    assert_eq!(miscounted, "ERR numkeys is 9, but LIMIT follows key 2");
    assert_eq!(text(con, "DBSIZE"), keys);

    // Every command tells its keys, whatever else it is called with.
    let elsewhere = &cluster.primaries[(cluster.place("{user}") + 1) % 3];
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), home.port);
    let mut names = command_names(con);
    names.retain(|name| !["rl.help", "rl.policy", "rl.top"].contains(&name.as_str()));
    assert!(names.len() >= 24, "{names:?}");
    for name in names {
        let described = text(con, &format!("COMMAND INFO {name}"));
        let words: i32 = described.split(", ").nth(1).unwrap().parse().unwrap();
        let first = if name.starts_with("rl.multi") {
            format!("{name} 1 {{user}}")
        } else if name == "rl.explain" {
            format!("{name} rl.gcra {{user}}")
        } else {
            format!("{name} {{user}}")
        };
        let rest = usize::try_from(words.abs()).unwrap() - first.split(' ').count();
        let line = first + &" 1".repeat(rest);
        assert_eq!(error(&mut elsewhere.connection(), &line), moved, "{line}");
        assert_eq!(text(con, &format!("COMMAND GETKEYS {line}")), "[{user}]", "{line}");
    }
}

#[test]
fn a_replica_answers_probes_of_those_who_said_readonly_and_sends_the_others_on() {
    let cluster = Cluster::start();
    let place = cluster.place("{user}");
    let (primary, replica) = (&cluster.primaries[place], &cluster.replicas[place]);
    let (con, read) = (&mut primary.connection(), &mut replica.connection());
    let limits = "LIMIT GCRA 9 1 1h LIMIT SLIDINGLOG 9 1h ON 1 LIMIT CONCURRENT 9 1h id ON 2";
    text(con, &format!("RL.MULTI 2 {{user}}:a {{user}}:b COST 3 {limits}"));
    text(con, "RL.GCRA {user} 9 1 1h COST 4");
    sync(primary, replica);

    let at: u64 = info(con, "server", "server_time_usec").unwrap().parse().unwrap();
    let looks = [
        format!("RL.PEEK {{user}} GCRA 9 1 1h AT {at}"),
        format!("RL.PEEK {{user}} GCRA 9 1 1h COST 7 AT {at}"),
        format!("RL.PEEK {{user}}:missing CONCURRENT 9 1s id AT {at}"),
        format!("RL.MULTIPEEK 2 {{user}}:a {{user}}:b COST 7 AT {at} {limits}"),
        "RL.INFO {user}:a".to_string(),
    ];
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), primary.port);
    for look in &looks {
        assert_eq!(error(read, look), moved, "{look}");
    }
    text(read, "READONLY");
    for look in &looks {
        assert_eq!(text(read, look), text(con, look), "{look}");
    }
    for line in [
        format!("RL.MULTI 2 {{user}}:a {{user}}:b COST 0 {limits}"),
        "RL.GCRA {user} 9 1 1h".to_string(),
        "RL.REFUND {user} GCRA 9 1 1h".to_string(),
        "RL.RELEASE {user}:b id".to_string(),
    ] {
        assert_eq!(error(read, &line), moved, "{line}");
    }
    assert!(error(read, "RL.PEEK other GCRA 9 1 1h").starts_with("MOVED"));
    assert_eq!(error(read, &format!("RL.MULTIPEEK 2 {{user}}:a other {limits}")), OTHER_SLOTS);
    text(read, "READWRITE");
    assert_eq!(error(read, &looks[0]), moved);
}
