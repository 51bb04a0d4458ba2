//! Replicas that attach and leave amid calls hold what the primary holds, although effects are not sent while nothing can
//! receive them.
//!
//! These tests change no setting once effects are not sent, as that alone would make the module send them.

use std::fs;

use crate::support::callers::{
    callers, finish, propagates, unsent_calls, wait_for_a_check, wait_until_unsent,
};
use crate::support::machine::persistence;
use crate::support::replicas::{
    LARGE_BACKLOG, NOWHERE, SLOWLY, STRICT, agree, attach, counter, follow, is_up, replicas,
};
use crate::support::{Server, fresh_dir, skipped, text, wait_for};

#[test]
fn replicas_that_attach_leave_and_return_amid_calls_agree() {
    for diskless in ["yes", "no"] {
        let args = [&SLOWLY[..], &LARGE_BACKLOG, &["--repl-diskless-sync", diskless]].concat();
        let primary = Server::start(&args);
        let (first, second) = (Server::start(&STRICT), Server::start(&STRICT));
        let con = &mut primary.connection();
        let calls = unsent_calls(&primary, "a");

        // The second one attaches while the first one gets its copy.
        follow(&first, primary.port);
        wait_for("the first copy's begin", || persistence(con, "rdb_bgsave_in_progress") == "1");
        follow(&second, primary.port);
        wait_for("the second replica", || replicas(con) == 2);
        assert!(!is_up(&first), "the first copy was too fast");
        calls.goes_on(100);
        wait_for("both links", || is_up(&first) && is_up(&second));
        wait_for_a_check(&primary);
        assert!(propagates(con));

        // Only the backlog receives effects.
        let (full, partial) = (counter(con, "sync_full"), counter(con, "sync_partial_ok"));
        follow(&first, NOWHERE);
        follow(&second, NOWHERE);
        wait_for("both to leave", || replicas(con) == 0);
        wait_for_a_check(&primary);
        assert!(propagates(con));
        attach(&first, &primary);
        calls.goes_on(100);
        attach(&second, &primary);
        assert_eq!(counter(con, "sync_partial_ok"), partial + 2);
        assert_eq!(counter(con, "sync_full"), full);

        finish(calls);
        agree(&primary, &[&first, &second]);
    }
}

#[test]
fn a_replica_whose_copy_waits_for_a_running_save_agrees() {
    let primary = Server::start(&[&SLOWLY[..], &["--repl-diskless-sync", "no"]].concat());
    let replica = Server::start(&STRICT);
    let con = &mut primary.connection();
    let calls = unsent_calls(&primary, "a");

    let forks = counter(con, "total_forks");
    text(con, "BGSAVE");
    assert!(propagates(con), "effects are sent from the fork on");
    follow(&replica, primary.port);
    wait_for("the replica", || replicas(con) == 1);
    assert_eq!(counter(con, "total_forks"), forks + 1, "the save was too fast");
    calls.goes_on(100);
    wait_for("the link", || is_up(&replica));
    assert_eq!(counter(con, "total_forks"), forks + 2);
    calls.goes_on(100);

    finish(calls);
    agree(&primary, &[&replica]);
}

#[test]
fn calls_between_the_attach_and_the_fork_are_in_the_copy() {
    // The copy is for two replicas, and the first one waits for the second one.
    let waits = ["--repl-diskless-sync-delay", "3600", "--repl-diskless-sync-max-replicas", "2"];
    let primary = Server::start(&[&SLOWLY[..], &waits].concat());
    let (first, second) = (Server::start(&STRICT), Server::start(&STRICT));
    let con = &mut primary.connection();
    let calls = callers(&primary, "a");
    wait_until_unsent(&primary);

    follow(&first, primary.port);
    wait_for("the first replica", || replicas(con) == 1);
    calls.goes_on(300);
    // No event has told of the replica. The check of each second finds the backlog.
    wait_for("effects to be sent", || propagates(con));
    assert_eq!(counter(con, "total_forks"), 0);
    follow(&second, primary.port);
    wait_for("both links", || is_up(&first) && is_up(&second));
    assert_eq!(counter(con, "total_forks"), 1);
    wait_for_a_check(&primary);

    finish(calls);
    agree(&primary, &[&first, &second]);
}

#[test]
fn a_replica_that_starts_from_a_save_before_the_fork_agrees() {
    let waits = ["--repl-diskless-sync-delay", "3600", "--repl-diskless-sync-max-replicas", "2"];
    let primary = Server::start(&waits);
    let first = Server::start(&STRICT);
    let con = &mut primary.connection();
    let calls = callers(&primary, "a");
    wait_until_unsent(&primary);
    follow(&first, primary.port);
    wait_for("the first replica", || replicas(con) == 1);
    calls.goes_on(100);

    // Without a fork, and with the replication id that the waiting replica does not know yet.
    text(con, "SAVE");
    assert!(propagates(con), "effects are sent from the save on");
    let folder = fresh_dir();
    fs::copy(primary.dir().join("dump.rdb"), folder.join("dump.rdb")).unwrap();
    calls.goes_on(300);
    let port = primary.port.to_string();
    let place = ["--dir", folder.to_str().unwrap(), "--replicaof", "127.0.0.1", &port];
    let second = Server::start(&[&STRICT[..], &place].concat());
    wait_for("the link", || is_up(&second));
    calls.goes_on(100);
    assert_eq!((counter(con, "sync_partial_ok"), counter(con, "total_forks")), (1, 0));

    finish(calls);
    agree(&primary, &[&second]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_replica_that_is_killed_amid_its_copy_leaves_nothing_behind() {
    let primary = Server::start(&[&SLOWLY[..], &["--repl-backlog-ttl", "1"]].concat());
    let (mut first, second) = (Server::start(&STRICT), Server::start(&STRICT));
    let con = &mut primary.connection();
    let calls = unsent_calls(&primary, "a");

    follow(&first, primary.port);
    wait_for("the copy's begin", || persistence(con, "rdb_bgsave_in_progress") == "1");
    assert!(!is_up(&first), "the copy was too fast");
    first.kill();
    wait_until_unsent(&primary);
    calls.goes_on(100);
    attach(&second, &primary);
    calls.goes_on(100);

    finish(calls);
    agree(&primary, &[&second]);
}

#[test]
fn a_copy_over_a_second_connection_agrees() {
    let probe = Server::start(&[]);
    let con = &mut probe.connection();
    // Redis and Valkey.
    let settings = ["repl-rdb-channel", "dual-channel-replication-enabled"];
    let known = |setting: &&str| text(con, &format!("CONFIG GET {setting}")) != "[]";
    let Some(setting) = settings.into_iter().find(known) else {
        return skipped(con, "copies over a second connection");
    };
    let setting = format!("--{setting}");
    let both = [&STRICT[..], &[&setting, "yes", "--repl-diskless-sync", "yes"]].concat();
    let primary = Server::start(&[&both[..], &SLOWLY].concat());
    let replica = Server::start(&both);
    let con = &mut primary.connection();
    let calls = unsent_calls(&primary, "a");

    follow(&replica, primary.port);
    wait_for("the copy's begin", || persistence(con, "rdb_bgsave_in_progress") == "1");
    assert!(!is_up(&replica), "the copy was too fast");
    calls.goes_on(100);
    wait_for("the link", || is_up(&replica));
    wait_for_a_check(&primary);

    finish(calls);
    agree(&primary, &[&replica]);
    assert!(replica.log().contains("initialize RDB channel"));
}
