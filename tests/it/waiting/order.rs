//! Who is admitted first: the first that came, and critical callers before the others.

use super::{PATIENT, Waiting, until_tried, until_waiting, waiting};
use crate::support::{Server, ints, multi, text};

/// One for each user, and one that all share. `USER` is the key of the user, on which the first limit is.
fn of_user(user: &str, block: &str) -> String {
    format!("RL.MULTI 2 {user} pool {block} LIMIT FIXEDWINDOW 1 1h ON 1 LIMIT FIXEDWINDOW 2 1h ON 2")
}

#[test]
fn first_come_first_served() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 3 1h");
    ints(con, "RL.FIXEDWINDOW k 3 1h COST 3");
    // All stand in one line, however they call.
    let lines = [
        "RL.FIXEDWINDOW k 3 1h BLOCK 1d",
        "RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 3 1h",
        "RL.ASK k p BLOCK 1d",
        "RL.FIXEDWINDOW k 3 1h BLOCK 0",
    ];
    let mut callers: Vec<Waiting> = lines.map(|line| Waiting::enter(&server, line)).into();
    while !callers.is_empty() {
        ints(con, "RL.REFUND k FIXEDWINDOW 3 1h");
        callers.remove(0).text();
        until_tried(&server);
        assert!(callers.iter_mut().all(Waiting::waits), "{} wait", callers.len());
        assert_eq!(waiting(con), callers.len() as u64);
    }
}

#[test]
fn all_who_fit_are_admitted_at_once_in_their_order() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 3 1h a COST 3");
    let [first, second, mut third, mut fourth] = ["b COST 1", "c COST 2", "d COST 1", "e COST 1"]
        .map(|lease| Waiting::enter(&server, &format!("RL.CONCURRENT k 3 1h {lease} BLOCK 1d")));
    text(con, "RL.RELEASE k a");
    assert_eq!(first.ints(), [0, 3, 2, 0, 3_600_000]);
    assert_eq!(second.ints(), [0, 3, 0, 0, 3_600_000]);
    until_tried(&server);
    assert!(third.waits() && fourth.waits());
    text(con, "RL.RELEASE k c");
    assert_eq!((third.ints()[2], fourth.ints()[2]), (1, 0));
}

#[test]
fn a_smaller_cost_does_not_overtake_the_first() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
    let mut large = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d");
    let mut small = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h BLOCK 1d");
    for remaining in [1, 2] {
        assert_eq!(ints(con, "RL.REFUND k FIXEDWINDOW 5 1h")[2], remaining);
        until_tried(&server);
        assert!(large.waits() && small.waits(), "{remaining} remaining");
    }
    // Nor does who comes now, and would fit.
    let mut last = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h BLOCK 1d");
    ints(con, "RL.REFUND k FIXEDWINDOW 5 1h");
    assert_eq!(large.ints()[..3], [0, 5, 0]);
    until_tried(&server);
    assert!(small.waits() && last.waits());
    ints(con, "RL.REFUND k FIXEDWINDOW 5 1h");
    assert_eq!(small.ints()[..3], [0, 5, 0]);
    until_tried(&server);
    assert!(last.waits());
    ints(con, "RL.REFUND k FIXEDWINDOW 5 1h");
    assert_eq!(last.ints()[..3], [0, 5, 0]);
}

#[test]
fn critical_callers_are_admitted_before_the_others() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let callers = ["b", "c", "urgent CRITICAL", "next CRITICAL"]
        .map(|lease| Waiting::enter(&server, &format!("RL.CONCURRENT k 1 1h {lease} BLOCK 1d")));
    let [mut b, mut c, urgent, mut next] = callers;
    text(con, "RL.RELEASE k a");
    assert_eq!(urgent.ints()[0], 0);
    until_tried(&server);
    assert!(b.waits() && c.waits() && next.waits());
    text(con, "RL.RELEASE k urgent");
    assert_eq!(next.ints()[0], 0);
    text(con, "RL.RELEASE k next");
    assert_eq!(b.ints()[0], 0);
    until_tried(&server);
    assert!(c.waits());
    text(con, "RL.RELEASE k b");
    assert_eq!(c.ints()[0], 0);
}

#[test]
fn critical_callers_pass_a_line_of_others_and_wait_behind_their_own() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    // Two of four leases are for critical callers.
    ints(con, "RL.CONCURRENT k 4 1h a RESERVED 2");
    ints(con, "RL.CONCURRENT k 4 1h b RESERVED 2");
    let mut ordinary = Waiting::enter(&server, "RL.CONCURRENT k 4 1h c RESERVED 2 BLOCK 1d");
    for line in
        ["RL.CONCURRENT k 4 1h d RESERVED 2 CRITICAL", "RL.CONCURRENT k 4 1h e RESERVED 2 CRITICAL BLOCK 1d"]
    {
        assert_eq!(ints(con, line)[0], 0, "{line}");
    }
    assert!(ordinary.waits());
    let mut urgent = Waiting::enter(&server, "RL.CONCURRENT k 4 1h f RESERVED 2 CRITICAL COST 2 BLOCK 1d");
    text(con, "RL.RELEASE k d");
    until_tried(&server);
    assert!(urgent.waits());
    // There is room for one, but a critical caller waits for two.
    for line in ["RL.CONCURRENT k 4 1h g RESERVED 2 CRITICAL", "RL.CONCURRENT k 4 1h g"] {
        assert_eq!(ints(con, line)[..3], [1, 4, 0], "{line}");
    }
    text(con, "RL.RELEASE k e");
    assert_eq!(urgent.ints()[0], 0);
    assert!(ordinary.waits());
}

#[test]
fn who_waits_for_its_own_quota_keeps_nobody_from_a_shared_pool() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    assert_eq!(multi(con, &of_user("user:1", "")).0[0], 0);
    let mut first = Waiting::enter(&server, &of_user("user:1", "BLOCK 1d"));
    assert_eq!(multi(con, &of_user("user:1", "")).0[0], 1, "another call of this user");
    // The pool has room for one more, and no caller waits for it.
    assert_eq!(multi(con, &of_user("user:2", "")).0, [0, 1, 0, 0, 3_600_000]);
    assert!(first.waits());
    assert_eq!(waiting(con), 1);
}

#[test]
fn who_moves_to_another_line_keeps_its_place_by_arrival() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    multi(con, &of_user("user:1", ""));
    let mut first = Waiting::enter(&server, &of_user("user:1", "BLOCK 1d"));
    multi(con, &of_user("user:2", ""));
    let mut second = Waiting::enter(&server, &of_user("user:3", "BLOCK 1d"));
    let mut third = Waiting::enter(&server, &of_user("user:4", "BLOCK 1d"));
    assert_eq!(text(con, "RL.INFO pool").split("waiting, ").nth(1), Some("2]"));
    // The user's own limit has room, so the first caller moves to the line of the pool.
    text(con, "DEL user:1");
    until_tried(&server);
    assert!(first.waits() && second.waits() && third.waits());
    assert_eq!(text(con, "RL.INFO user:1"), "(nil)", "nothing is charged there");
    assert_eq!(text(con, "RL.INFO pool").split("waiting, ").nth(1), Some("3]"));
    let refund = "RL.REFUND pool FIXEDWINDOW 2 1h";
    ints(con, refund);
    assert!(first.text().starts_with("[[0, "));
    until_tried(&server);
    assert!(second.waits() && third.waits());
    ints(con, refund);
    assert!(second.text().starts_with("[[0, "));
    until_tried(&server);
    assert!(third.waits());
    ints(con, refund);
    assert!(third.text().starts_with("[[0, "));
}

#[test]
fn who_moves_to_another_line_makes_way_for_the_next() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.FIXEDWINDOW own 1 1h");
    ints(con, "RL.FIXEDWINDOW pool 2 1h COST 2");
    let mut both = Waiting::enter(&server, &of_user("own", "BLOCK 1d"));
    let only = Waiting::enter(&server, "RL.FIXEDWINDOW own 1 1h BLOCK 1d");
    // The pool still refuses the first.
    ints(con, "RL.REFUND own FIXEDWINDOW 1 1h");
    assert_eq!(only.ints()[0], 0);
    assert!(both.waits());
    // The second has taken its room.
    ints(con, "RL.REFUND pool FIXEDWINDOW 2 1h");
    until_tried(&server);
    assert!(both.waits());
    // It waits for its own limit only, and keeps no caller from the pool.
    assert_eq!(ints(con, "RL.FIXEDWINDOW pool 2 1h")[0], 0);
    ints(con, "RL.REFUND own FIXEDWINDOW 1 1h");
    until_tried(&server);
    ints(con, "RL.REFUND pool FIXEDWINDOW 2 1h");
    assert!(both.text().starts_with("[[0, 1, 0, 0, 3600000], [[0, 1, 0, "));
}

#[test]
fn a_line_belongs_to_a_limit_of_a_key() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    // Two limits of one key, which differ by their lengths.
    let limits = "LIMIT FIXEDWINDOW 1 1h LIMIT FIXEDWINDOW 9 2h";
    multi(con, &format!("RL.MULTI 1 k {limits}"));
    let mut short = Waiting::enter(&server, &format!("RL.MULTI 1 k BLOCK 1d {limits}"));
    // The limit of two hours has room, and no caller waits for it.
    assert_eq!(multi(con, "RL.MULTI 1 k COST 8 LIMIT FIXEDWINDOW 9 2h").0[..3], [0, 9, 0]);
    let long = Waiting::enter(&server, "RL.MULTI 1 k BLOCK 1d LIMIT FIXEDWINDOW 9 2h");
    multi(con, "RL.MULTIREFUND 1 k LIMIT FIXEDWINDOW 9 2h");
    assert!(long.text().starts_with("[[0, 9, 0, "));
    assert!(short.waits());
    multi(con, &format!("RL.MULTIREFUND 1 k {limits}"));
    assert!(short.text().starts_with("[[0, 1, 0, "));
    until_waiting(con, 0);
}

#[test]
fn a_caller_waits_for_several_limits_of_several_keys_at_once() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let line = "RL.MULTI 3 a b c BLOCK 1d LIMIT CONCURRENT 1 1h new LIMIT FIXEDWINDOW 1 1h ON 3";
    for key in ["a", "b", "c"] {
        multi(con, &format!("RL.MULTI 1 {key} LIMIT CONCURRENT 1 1h old"));
    }
    let mut caller = Waiting::enter(&server, line);
    for key in ["a", "b", "c"] {
        assert!(text(con, &format!("RL.INFO {key}")).ends_with("waiting, 1]"), "{key}");
    }
    for key in ["b", "a"] {
        text(con, &format!("RL.RELEASE {key} old"));
        until_tried(&server);
        assert!(caller.waits(), "{key} is released");
        // What it waits for no more is there for others.
        assert_eq!(ints(con, &format!("RL.CONCURRENT {key} 1 1h other"))[0], 0, "{key}");
        text(con, &format!("RL.RELEASE {key} other"));
    }
    text(con, "RL.RELEASE c old");
    assert!(caller.text().starts_with("[[0, 1, 0, 0, 3600000], [[0, 1, 0, "));
}
