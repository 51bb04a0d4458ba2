//! Keys of one slot in one call, what a node replies to a call that is for another one, and what a replica answers.

use crate::support::cluster::Cluster;
use crate::support::{T0, command_names, error, ints, sync, text};

const OTHER_SLOTS: &str = "CROSSSLOT Keys in request don't hash to the same slot";

#[test]
fn keys_of_one_slot_are_asked_together_and_the_others_are_refused_or_sent_on() {
    let cluster = Cluster::start();
    let place = cluster.place("{user}");
    let (home, replica) = (&cluster.primaries[place], &cluster.replicas[place]);
    let (con, read) = (&mut home.connection(), &mut replica.connection());
    text(con, "RL.POLICY SET api LIMIT GCRA 9 10 1h LIMIT CONCURRENT 9 1h ON 2");
    let limits = "LIMIT GCRA 9 1 1h LIMIT CONCURRENT 9 1h id ON 2";
    let reply = text(con, &format!("RL.MULTI 2 {{user}}:a {{user}}:b AT {T0} {limits}"));
    assert_eq!(
        reply,
        "[[0, 9, 8, 0, 3600000], [[0, 10, 9, 0, 3600000], [0, 10, 9, 0, 3600000], [0, 9, 8, 0, 3600000]]]"
    );
    let script = "return{redis.call('RL.GCRA',KEYS[1],9,1,'1h'),redis.call('RL.XADD',KEYS[2],1,'*','f','v')}";
    assert!(text(con, &format!("EVAL {script} 2 {{user}}:c {{user}}:d")).starts_with("[[0, 10, 9"));
    let asked = ints(con, &format!("RL.ASK {{user}}:e api ID x HOLD KEYS 1h AT {T0} KEYS {{user}}:f"));
    assert_eq!(asked[..3], [0, 9, 8]);
    text(con, &format!("RL.GCRA {{user}} 9 1 1h COST 4 AT {T0}"));

    let keys = text(con, "DBSIZE");
    for line in [
        &format!("RL.MULTI 2 {{user}}:a other {limits}"),
        &format!("RL.MULTIPEEK 2 {{user}}:a other {limits}"),
        "RL.MULTIREFUND 2 {user}:a other LIMIT GCRA 9 1 1h",
        "RL.MULTISETTLE 2 {user}:a other id COST 1 LIMIT GCRA 9 1 1h",
        "RL.APPLY {user}:a payload other payload",
        "RL.ASK {user}:a api ID KEYS KEYS {user}:b other",
        "RL.ASK {user}:a api ID x HOLD KEYS 1h KEYS other",
        "RL.ASKPEEK {user}:a api ID x KEYS {user}:b other",
        "RL.ASKREFUND {user}:a api KEYS other",
        "RL.ASKSETTLE {user}:a api KEYS COST 1 KEYS other",
        // The policy is not looked up before.
        "RL.ASK {user}:a missing KEYS other",
    ] {
        assert_eq!(error(con, line), OTHER_SLOTS, "{line}");
    }
    // A number of keys that cannot be right is an error: no argument after it is taken for a key.
    let miscounted = error(con, "RL.MULTI 9 {user}:a other LIMIT GCRA 9 1");
    assert_eq!(miscounted, "ERR numkeys is 9, but LIMIT follows key 2");
    assert_eq!(text(con, "DBSIZE"), keys);

    // Every command tells its keys, whatever else it is called with. A node without the slot sends it on, also without the policy.
    let elsewhere = &mut cluster.primaries[(place + 1) % 3].connection();
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), home.port);
    let mut names = command_names(con);
    names.retain(|name| !["rl.help", "rl.policy", "rl.top"].contains(&name.as_str()));
    assert!(names.len() >= 24, "{names:?}");
    for name in names {
        let line = match &*name {
            name if name.starts_with("rl.multi") => format!("{name} 1 {{user}}"),
            "rl.explain" => format!("{name} rl.gcra {{user}}"),
            name => format!("{name} {{user}}"),
        };
        assert_eq!(error(elsewhere, &line), moved, "{line}");
        assert_eq!(text(con, &format!("COMMAND GETKEYS {line}")), "[{user}]", "{line}");
    }
    // RL.POLICY has no keys: each primary answers for itself.
    assert_eq!(text(elsewhere, "RL.POLICY LIST"), "[]");
    assert_eq!(text(elsewhere, "RL.POLICY SET api LIMIT UNIFORM 1s"), "1");

    // A replica answers looks of those who said READONLY, and sends the others on.
    sync(home, replica);
    let looks = [
        format!("RL.PEEK {{user}} GCRA 9 1 1h COST 7 AT {T0}"),
        format!("RL.PEEK {{user}}:missing CONCURRENT 9 1s id AT {T0}"),
        format!("RL.MULTIPEEK 2 {{user}}:a {{user}}:b COST 7 AT {T0} {limits}"),
        format!("RL.ASKPEEK {{user}}:e api ID x AT {T0} KEYS {{user}}:f"),
        "RL.INFO {user}:a".to_string(),
    ];
    for look in &looks {
        assert_eq!(error(read, look), moved, "{look}");
    }
    text(read, "READONLY");
    for look in &looks {
        assert_eq!(text(read, look), text(con, look), "{look}");
    }
    for line in [
        &format!("RL.MULTI 2 {{user}}:a {{user}}:b COST 0 {limits}"),
        "RL.GCRA {user} 9 1 1h",
        "RL.REFUND {user} GCRA 9 1 1h",
        "RL.RELEASE {user}:b id",
        "RL.ASK {user}:a api ID x KEYS {user}:b",
    ] {
        assert_eq!(error(read, line), moved, "{line}");
    }
    assert!(error(read, "RL.PEEK other GCRA 9 1 1h").starts_with("MOVED"));
    for line in ["RL.MULTIPEEK 2 {user}:a other LIMIT GCRA 9 1 1h", "RL.ASKPEEK {user}:a api ID x KEYS other"]
    {
        assert_eq!(error(read, line), OTHER_SLOTS, "{line}");
    }
    text(read, "READWRITE");
    assert_eq!(error(read, &looks[0]), moved);
}
