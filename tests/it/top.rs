//! `RL.TOP` on servers: settings that change, databases, queues, and that its counts belong to a node. What it counts is in
//! `tests/sessions/most_refused.txt`.

use redis::Connection;

use crate::support::replicas::{NOWHERE, follow, wait_for_policies, written};
use crate::support::{AOF_AT_ONCE, Server, error, info, sync, text};

/// A window of a day, which hardly ever ends within a test.
const ON: [&str; 4] = ["--ratelimit.top", "100", "--ratelimit.top-window", "86400000"];

/// Calls that are refused whatever the key holds, and make none: a cost above the limit.
fn refuse(con: &mut Connection, key: &str, times: usize) {
    for _ in 0..times {
        text(con, &format!("RL.GCRA {key} 0 1 1h COST 2"));
    }
}

#[test]
fn a_change_of_its_settings_forgets_all_and_another_one_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "CONFIG GET ratelimit.top"), "[ratelimit.top, 0]");
    assert_eq!(text(con, "CONFIG GET ratelimit.top-window"), "[ratelimit.top-window, 60000]");
    refuse(con, "before", 3);
    for setting in ["top-window 80000000", "top 50", "top 10000", "top 1", "top-window 86400000"] {
        text(con, &format!("CONFIG SET ratelimit.{setting}"));
        if setting != "top-window 80000000" {
            assert_eq!((text(con, "RL.TOP"), text(con, "RL.TOP PREVIOUS")), ("[]".into(), "[]".into()));
        }
        refuse(con, "key", 2);
    }
    assert_eq!(text(con, "RL.TOP"), "[[key, 0, 2, 0]]");
    // One entry, which the last key has.
    refuse(con, "b", 1);
    for setting in ["max-leases 5", "top-window 1d", "top-window 24h", "top-window 86400000"] {
        text(con, &format!("CONFIG SET ratelimit.{setting}"));
        assert_eq!(text(con, "RL.TOP"), "[[b, 0, 3, 2]]", "{setting}");
    }
    for off in ["0", "10"] {
        text(con, &format!("CONFIG SET ratelimit.top {off}"));
    }
    assert_eq!(text(con, "RL.TOP"), "[]");
    for value in ["top -1", "top 10001", "top 1k", "top-window 999", "top-window 2d", "top-window 060000"] {
        let told = error(con, &format!("CONFIG SET ratelimit.{value}"));
        assert!(
            told.starts_with("ERR CONFIG SET failed (possibly related to argument 'ratelimit.top"),
            "{told}"
        );
    }
}

#[test]
fn it_shows_the_keys_of_all_databases_and_queues_to_who_may_call_it() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for (database, times) in [(1, 4), (15, 3)] {
        text(con, &format!("SELECT {database}"));
        refuse(con, "key", times);
    }
    text(con, "SELECT 0");
    for line in ["RL.XADD stream 1 * f v", "RL.LPUSH list 1 a", "RL.RPUSH list 1 a"] {
        text(con, line);
    }
    assert_eq!(text(con, "RL.TOP"), "[[key, 1, 4, 0], [key, 15, 3, 0], [list, 0, 1, 0]]");
    text(con, "MULTI");
    for line in ["RL.XADD stream 1 * f v", "RL.TOP COUNT 5", "RL.TOP RESET", "RL.TOP"] {
        assert_eq!(text(con, line), "QUEUED");
    }
    let told = text(con, "EXEC");
    assert!(
        told.ends_with(", [[key, 1, 4, 0], [key, 15, 3, 0], [list, 0, 1, 0], [stream, 0, 1, 0]], OK, []]"),
        "{told}"
    );
    let script = "EVAL redis.call('RL.LPUSH',KEYS[1],1,'a');return(redis.call('RL.TOP')) 1 list";
    assert_eq!(text(con, script), "[[list, 0, 1, 0]]");
    text(con, "ACL SETUSER viewer on nopass resetkeys +rl.top");
    let viewer = &mut server.connection();
    text(viewer, "AUTH viewer x");
    assert_eq!(text(viewer, "RL.TOP"), "[[list, 0, 1, 0]]");
}

#[test]
fn its_counts_are_neither_replicated_nor_saved() {
    let mut primary = Server::start(&[&ON[..], &AOF_AT_ONCE, &["--save", "3600 1"]].concat());
    let replica = primary.replica(&ON);
    wait_for_policies(&replica);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    // The primary pings its replicas now and then.
    text(con, "CONFIG SET repl-ping-replica-period 3600");
    // These refusals are written, and replicated.
    for _ in 0..2 {
        text(con, "RL.SLIDINGLOG hammered 1 1h COUNTREFUSED");
    }
    sync(&primary, &replica);
    assert_eq!((text(con, "RL.TOP"), text(copy, "RL.TOP")), ("[[hammered, 0, 1, 0]]".into(), "[]".into()));
    let written = |con: &mut _| (written(con), info(con, "replication", "master_repl_offset"));
    let before = written(con);
    refuse(con, "key", 5);
    for line in ["RL.TOP", "RL.TOP PREVIOUS", "RL.TOP RESET", "RL.TOP"] {
        text(con, line);
    }
    refuse(con, "key", 1);
    assert_eq!(written(con), before);
    text(con, "DEBUG RELOAD");
    assert_eq!(text(con, "RL.TOP"), "[[key, 0, 1, 0]]");
    drop(replica);
    primary.restart();
    let con = &mut primary.connection();
    assert_eq!(text(con, "RL.TOP"), "[]");
    assert_eq!(text(con, "RL.PEEK hammered SLIDINGLOG 1 1h").split(", ").next(), Some("[1"));
}

#[test]
fn a_replica_that_lost_its_primary_still_replies() {
    let server = Server::start(&[&ON[..], &["--replica-serve-stale-data", "no"]].concat());
    let con = &mut server.connection();
    refuse(con, "key", 2);
    follow(&server, NOWHERE);
    assert_eq!(text(con, "RL.TOP"), "[[key, 0, 2, 0]]");
    assert!(error(con, "RL.PEEK key GCRA 0 1 1h").starts_with("MASTERDOWN "));
}
