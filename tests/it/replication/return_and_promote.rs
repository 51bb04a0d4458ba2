//! A replica that returns continues where its copy ends, or starts over. A promoted one sends effects from the first call on.
//!
//! These tests change no setting once effects are not sent, as that alone would make the module send them.

use crate::support::callers::{
    callers, finish, propagates, unsent_calls, wait_for_a_check, wait_until_unsent,
};
use crate::support::contents::contents;
use crate::support::replicas::{
    LARGE_BACKLOG, NOWHERE, STRICT, agree, attach, counter, follow, is_up, replicas, replication,
};
use crate::support::{Server, sync, text, wait_for};

#[test]
fn a_replica_that_returns_after_the_backlog_was_freed_starts_over() {
    // Its primary goes on, or is started again from what it saved without a backlog.
    for restarts in [false, true] {
        let mut primary = Server::start(&["--repl-backlog-ttl", "1", "--save", "3600 1"]);
        let replica = Server::start(&STRICT);
        let mut con = primary.connection();
        let calls = callers(&primary, "a");
        attach(&replica, &primary);
        calls.goes_on(300);
        let id = replication(&mut con, "master_replid");
        follow(&replica, NOWHERE);
        wait_until_unsent(&primary);
        assert_ne!(replication(&mut con, "master_replid"), id);
        calls.goes_on(300);
        finish(calls);

        if restarts {
            primary.restart();
            con = primary.connection();
        }
        let (full, partial) = (counter(&mut con, "sync_full"), counter(&mut con, "sync_partial_ok"));
        let calls = unsent_calls(&primary, "b");
        attach(&replica, &primary);
        calls.goes_on(300);
        assert_eq!(counter(&mut con, "sync_full"), full + 1);
        assert_eq!(counter(&mut con, "sync_partial_ok"), partial);
        finish(calls);
        agree(&primary, &[&replica]);
    }
}

#[test]
fn a_primary_that_went_on_alone_starts_over_behind_its_former_replica() {
    let primary = Server::start(&["--repl-backlog-ttl", "1"]);
    let replica = Server::start(&[&STRICT[..], &["--repl-backlog-ttl", "1"]].concat());
    let calls = callers(&primary, "a");
    attach(&replica, &primary);
    calls.goes_on(300);
    text(&mut replica.connection(), "REPLICAOF NO ONE");
    let own_calls = callers(&replica, "b");
    for server in [&primary, &replica] {
        wait_until_unsent(server);
    }
    calls.goes_on(300);
    finish(calls);
    assert_ne!(contents(&primary), contents(&replica));

    attach(&primary, &replica);
    wait_for_a_check(&replica);
    finish(own_calls);
    agree(&replica, &[&primary]);
    let con = &mut replica.connection();
    assert_eq!((counter(con, "sync_full"), counter(con, "sync_partial_ok")), (1, 0));
}

#[test]
fn a_replica_continues_behind_a_primary_that_was_started_again() {
    let mut primary = Server::start(&[&LARGE_BACKLOG[..], &["--save", "3600 1"]].concat());
    let replica = primary.replica(&STRICT);
    let calls = callers(&primary, "a");
    calls.goes_on(300);
    finish(calls);
    sync(&primary, &replica);
    // Else it would be back before the first call.
    follow(&replica, NOWHERE);
    primary.restart();

    let con = &mut primary.connection();
    assert!(propagates(con));
    let calls = callers(&primary, "b");
    calls.goes_on(100);
    wait_for_a_check(&primary);
    assert!(propagates(con));
    assert_eq!((replicas(con), replication(con, "repl_backlog_active").as_str()), (0, "1"));
    attach(&replica, &primary);
    calls.goes_on(100);
    finish(calls);
    agree(&primary, &[&replica]);
    assert_eq!((counter(con, "sync_full"), counter(con, "sync_partial_ok")), (0, 1));
}

#[test]
fn a_chain_whose_middle_is_promoted_agrees() {
    let primary = Server::start(&LARGE_BACKLOG);
    let middle = Server::start(&[&STRICT[..], &LARGE_BACKLOG].concat());
    let (last, other) = (Server::start(&STRICT), Server::start(&STRICT));
    let calls = unsent_calls(&primary, "a");
    follow(&middle, primary.port);
    follow(&other, primary.port);
    wait_for("two links", || is_up(&middle) && is_up(&other));
    attach(&last, &middle);
    calls.goes_on(100);

    // The old primary admits calls for a while, which are lost.
    text(&mut middle.connection(), "REPLICAOF NO ONE");
    let new_calls = callers(&middle, "b");
    new_calls.goes_on(300);
    calls.goes_on(100);
    finish(calls);
    follow(&primary, middle.port);
    follow(&other, middle.port);
    wait_for("both links", || is_up(&primary) && is_up(&other));
    wait_for_a_check(&middle);
    finish(new_calls);
    agree(&middle, &[&last, &primary, &other]);

    // And back, with a crowd that begins at once.
    text(&mut primary.connection(), "REPLICAOF NO ONE");
    let calls = callers(&primary, "c");
    follow(&middle, primary.port);
    follow(&other, last.port);
    wait_for("all links", || [&middle, &last, &other].into_iter().all(is_up));
    calls.goes_on(300);
    finish(calls);
    agree(&primary, &[&middle]);
    agree(&middle, &[&last]);
    agree(&last, &[&other]);
}

#[test]
fn a_promoted_replica_sends_effects_though_it_has_never_forked() {
    promote(&[]);
}

#[test]
fn a_promoted_replica_that_loaded_its_copy_from_the_socket_sends_effects() {
    promote(&["--repl-diskless-load", "swapdb"]);
}

/// Promotes one of two replicas, started with `args`. The others continue from its backlog, without a fork.
fn promote(args: &[&str]) {
    // A ping would put the old primary ahead of the new one.
    let primary = Server::start(&["--repl-ping-replica-period", "3600"]);
    let successor = Server::start(&[&STRICT[..], &LARGE_BACKLOG, args].concat());
    let other = Server::start(&STRICT);
    let calls = callers(&primary, "a");
    for server in [&primary, &successor, &other] {
        wait_until_unsent(server);
    }
    follow(&successor, primary.port);
    assert!(
        propagates(&mut successor.connection()),
        "a replica sends effects from the change of its role on"
    );
    follow(&other, primary.port);
    wait_for("both links", || is_up(&successor) && is_up(&other));
    calls.goes_on(300);
    finish(calls);
    agree(&primary, &[&successor, &other]);

    text(&mut successor.connection(), "REPLICAOF NO ONE");
    let calls = callers(&successor, "b");
    calls.goes_on(300);
    follow(&other, successor.port);
    follow(&primary, successor.port);
    wait_for("both links", || is_up(&other) && is_up(&primary));
    calls.goes_on(100);
    finish(calls);
    agree(&successor, &[&other, &primary]);
    let con = &mut successor.connection();
    assert_eq!((counter(con, "sync_full"), counter(con, "sync_partial_ok")), (0, 2));
    assert_eq!(counter(con, "total_forks"), 0);
}
