//! The counts belong to a node: they are neither replicated nor saved.

use super::{ON, entry, refuse, top};
use crate::support::replicas::{NOWHERE, follow, wait_for_policies};
use crate::support::{AOF_AT_ONCE, Server, error, info, ints, sync, text};

#[test]
fn a_replica_counts_nothing_of_what_its_primary_refuses() {
    let primary = Server::start(&ON);
    let replica = primary.replica(&ON);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    ints(con, "RL.GCRA key 0 1 1h");
    ints(con, "RL.GCRA key 0 1 1h");
    // These refusals are written, and replicated.
    ints(con, "RL.PENALTY struck 1 1h 1h");
    ints(con, "RL.SLIDINGLOG hammered 1 1h COUNTREFUSED");
    ints(con, "RL.SLIDINGLOG hammered 1 1h COUNTREFUSED");
    sync(&primary, &replica);
    assert_eq!(text(copy, "DBSIZE"), "3");
    assert_eq!(top(con, "").len(), 3);
    assert_eq!(top(copy, ""), []);
    // A replica looks, and can be reset by itself.
    assert_eq!(ints(copy, "RL.PEEK key GCRA 0 1 1h")[0], 1);
    assert_eq!(top(copy, ""), []);
    assert_eq!(text(copy, "RL.TOP RESET"), "OK");
    assert_eq!(top(con, "").len(), 3);
    assert!(error(copy, "RL.GCRA key 0 1 1h").starts_with("READONLY "));
    assert_eq!(top(copy, ""), []);
}

#[test]
fn nothing_of_it_is_written_or_replicated() {
    let primary = Server::start(&[&ON[..], &AOF_AT_ONCE].concat());
    let replica = primary.replica(&[]);
    wait_for_policies(&replica);
    let con = &mut primary.connection();
    ints(con, "RL.GCRA key 0 1 1h");
    sync(&primary, &replica);
    let unchanged = |con: &mut _| {
        let persistence =
            ["aof_current_size", "rdb_changes_since_last_save"].map(|field| info(con, "persistence", field));
        (persistence, info(con, "replication", "master_repl_offset"))
    };
    // The primary pings its replicas now and then.
    text(con, "CONFIG SET repl-ping-replica-period 3600");
    let before = unchanged(con);
    refuse(con, "key", 5);
    refuse(con, "other", 7);
    for line in ["RL.TOP", "RL.TOP PREVIOUS", "RL.TOP RESET", "RL.TOP"] {
        text(con, line);
    }
    refuse(con, "key", 1);
    assert_eq!(unchanged(con), before);
    assert_eq!(top(con, ""), [entry("key", 0, 1, 0)]);
}

#[test]
fn a_restart_forgets_and_a_reload_does_not() {
    let mut server = Server::start(&[&ON[..], &["--save", "3600 1"]].concat());
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 0 1 1h");
    refuse(con, "key", 2);
    text(con, "DEBUG RELOAD");
    assert_eq!(top(con, ""), [entry("key", 0, 2, 0)]);
    server.restart();
    let con = &mut server.connection();
    assert_eq!(top(con, ""), []);
    assert_eq!(ints(con, "RL.GCRA key 0 1 1h")[0], 1);
    assert_eq!(top(con, ""), [entry("key", 0, 1, 0)]);
}

#[test]
fn a_replica_that_lost_its_primary_still_replies() {
    let server = Server::start(&[&ON[..], &["--replica-serve-stale-data", "no"]].concat());
    let con = &mut server.connection();
    refuse(con, "key", 2);
    follow(&server, NOWHERE);
    assert_eq!(top(con, ""), [entry("key", 0, 2, 0)]);
    assert!(error(con, "RL.PEEK key GCRA 0 1 1h").starts_with("MASTERDOWN "));
}
