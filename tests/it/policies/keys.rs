//! The keys of the four commands that ask, as the server sees them. (`cluster/redirections.rs` asks on a cluster.)

use super::set;
use crate::support::{Server, text};

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
