//! The keys of the four commands that ask: as the server sees them, and on a cluster.

use super::set;
use crate::support::cluster::Cluster;
use crate::support::{Server, T0, error, ints, text};

const OTHER_SLOTS: &str = "CROSSSLOT Keys in request don't hash to the same slot";

#[test]
fn the_server_finds_the_first_key_and_those_behind_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for command in
        ["RL.ASK k api", "RL.ASKPEEK k api", "RL.ASKREFUND k api", "RL.ASKSETTLE k api held COST 1"]
    {
        for (words, keys) in [
            ("", "k"),
            ("KEYS a", "k, a"),
            ("keys a b", "k, a, b"),
            ("FULL AT 1700000000000000 KEYS a b c", "k, a, b, c"),
            // The first KEYS ends the options, and all words behind it are keys.
            ("KEYS a KEYS b FULL ID", "k, a, KEYS, b, FULL, ID"),
            ("KEYS KEYS", "k, KEYS"),
            // An id may be that word.
            ("ID KEYS", "k"),
            ("ID KEYS KEYS a", "k, a"),
            ("ID keys FULL KEYS a", "k, a"),
            ("ID x KEYS a", "k, a"),
            // The keys of a malformed call are those that it has in any case.
            ("KEYS", "k"),
            ("BOGUS KEYS a", "k"),
            ("ID KEYS a", "k"),
            ("AT KEYS a", "k"),
            ("FULL FULL KEYS a", "k"),
        ] {
            let line = format!("COMMAND GETKEYS {command} {words}");
            assert_eq!(text(con, &line), format!("[{keys}]"), "{line}");
        }
    }
    for (line, keys) in [
        ("RL.ASK KEYS api", "KEYS"),
        ("RL.ASK k KEYS", "k"),
        ("RL.ASK k KEYS KEYS a", "k, a"),
        ("RL.ASK KEYS KEYS KEYS a", "KEYS, a"),
        ("RL.ASK k api HOLD KEYS 1h", "k"),
        ("RL.ASK k api HOLD KEYS 1h KEYS a", "k, a"),
        ("RL.ASK k api ID KEYS HOLD KEYS 1h FORCE KEYS a b", "k, a, b"),
        ("RL.ASK k api HOLD x KEYS a", "k"),
        ("RL.ASK k api HOLD KEYS KEYS a", "k"),
        ("RL.ASKPEEK k api HOLD x 1h KEYS a", "k"),
        ("RL.ASKREFUND k api FORCE KEYS a", "k"),
        ("RL.ASKSETTLE k api KEYS COST 1", "k"),
        ("RL.ASKSETTLE k api KEYS COST 1 KEYS a", "k, a"),
        ("RL.ASKSETTLE k KEYS KEYS COST 1 ID KEYS KEYS KEYS", "k, KEYS"),
        ("RL.ASKSETTLE k api KEYS KEYS a", "k"),
    ] {
        assert_eq!(text(con, &format!("COMMAND GETKEYS {line}")), format!("[{keys}]"), "{line}");
    }
    // They are those that it charges.
    set(con, "KEYS LIMIT GCRA 9 10 1h LIMIT CONCURRENT 5 1h");
    for (options, keys) in [
        ("ID KEYS", "k"),
        ("ID KEYS KEYS KEYS a", "k KEYS a"),
        ("HOLD KEYS 1h ID KEYS FULL keys keys", "k keys"),
    ] {
        text(con, "FLUSHALL");
        text(con, &format!("RL.ASK k KEYS {options}"));
        let count = text(con, "DBSIZE");
        assert_eq!(text(con, &format!("EXISTS {keys}")), count, "{options}");
        assert_eq!(keys.split(' ').count().to_string(), count, "{options}");
    }
    // The server shows what a call does with each key.
    let flags = text(con, "COMMAND GETKEYSANDFLAGS RL.ASKPEEK k api KEYS a");
    assert_eq!(flags, "[[k, [RO, access]], [a, [RO, access]]]");
    let flags = text(con, "COMMAND GETKEYSANDFLAGS RL.ASK k api KEYS a");
    assert_eq!(flags, "[[k, [RW, access, update]], [a, [RW, access, update]]]");
}

#[test]
fn keys_of_one_slot_are_asked_together_and_the_others_are_refused_or_sent_on() {
    let cluster = Cluster::start();
    let place = cluster.place("{user}");
    let (home, replica) = (&cluster.primaries[place], &cluster.replicas[place]);
    let con = &mut home.connection();
    set(con, "api LIMIT GCRA 9 10 1h LIMIT CONCURRENT 9 1h ON 2");
    assert_eq!(ints(con, &format!("RL.ASK {{user}}:a api ID x HOLD KEYS 1h AT {T0} KEYS {{user}}:b"))[0], 0);
    assert_eq!(ints(con, &format!("RL.ASKPEEK {{user}}:a api ID KEYS AT {T0} KEYS {{user}}:b"))[2], 8);
    assert_eq!(ints(con, &format!("RL.ASKSETTLE {{user}}:a api KEYS COST 1 AT {T0} KEYS {{user}}:b"))[5], 2);
    let keys = text(con, "DBSIZE");
    for line in [
        "RL.ASK {user}:a api ID x KEYS other",
        "RL.ASK {user}:a api ID x HOLD KEYS 1h KEYS other",
        "RL.ASKPEEK {user}:a api ID x KEYS {user}:b other",
        "RL.ASKREFUND {user}:a api KEYS other",
        "RL.ASKSETTLE {user}:a api KEYS COST 1 KEYS other",
        // The policy is not looked up before.
        "RL.ASK {user}:a missing KEYS other",
    ] {
        assert_eq!(error(con, line), OTHER_SLOTS, "{line}");
    }
    assert_eq!(text(con, "DBSIZE"), keys);

    // A node without the slot sends on whatever it is asked, also without the policy.
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), home.port);
    let elsewhere = &mut cluster.primaries[(place + 1) % 3].connection();
    for line in
        ["RL.ASK {user} api", "RL.ASKPEEK {user} api KEYS {user}:a", "RL.ASK {user} api BOGUS KEYS other"]
    {
        assert_eq!(error(elsewhere, line), moved, "{line}");
    }
    // RL.POLICY has no keys: each primary answers for itself.
    assert_eq!(text(elsewhere, "RL.POLICY LIST"), "[]");
    assert_eq!(set(elsewhere, "api LIMIT UNIFORM 1s"), 1);

    let read = &mut replica.connection();
    let peek = format!("RL.ASKPEEK {{user}}:a api ID x AT {T0} KEYS {{user}}:b");
    assert_eq!(error(read, &peek), moved);
    text(read, "READONLY");
    crate::support::sync(home, replica);
    assert_eq!(ints(read, &peek), ints(con, &peek));
    assert_eq!(error(read, "RL.ASK {user}:a api ID x KEYS {user}:b"), moved);
    assert_eq!(error(read, "RL.ASKPEEK {user}:a api ID x KEYS other"), OTHER_SLOTS);
}
