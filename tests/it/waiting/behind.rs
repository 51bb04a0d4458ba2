//! Callers that do not `BLOCK` and ask for a limit for which others wait.

use redis::{Connection, ConnectionLike, Value};

use super::{PATIENT, Waiting, count, field, micros, until_tried, until_waiting, waiting};
use crate::support::{Server, ints, multi, refused, simple, text};

const WINDOW: &str = "FIXEDWINDOW 5 1h";
const LOG: &str = "RL.SLIDINGLOG k 5 1h";

/// A server with a window of which two remain, and a caller that waits for three.
fn window_with_a_line() -> (Server, Connection, Waiting) {
    let server = Server::start(&PATIENT);
    let mut con = server.connection();
    text(&mut con, &format!("RL.POLICY SET p LIMIT {WINDOW}"));
    // Something is held, too.
    ints(&mut con, "RL.FIXEDWINDOW k 5 1h COST 2 HOLD job 1h");
    ints(&mut con, "RL.FIXEDWINDOW k 5 1h");
    let caller = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d");
    (server, con, caller)
}

/// Sends lines at once, so that the server does nothing else between them.
pub fn pipeline(con: &mut Connection, lines: &[&str]) -> Vec<Value> {
    let mut packed = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let mut cmd = redis::cmd(words.next().unwrap());
        words.for_each(|word| _ = cmd.arg(word));
        packed.extend(cmd.get_packed_command());
    }
    con.req_packed_commands(&packed, 0, lines.len()).unwrap()
}

#[test]
fn a_call_that_would_fit_is_refused_until_the_first_one_may_be_admitted() {
    let (server, mut con, mut caller) = window_with_a_line();
    let con = &mut con;
    let look = |con: &mut Connection| ints(con, "RL.PEEK k FIXEDWINDOW 5 1h COST 3")[3];
    for line in [
        "RL.FIXEDWINDOW k 5 1h",
        "RL.FIXEDWINDOW k 5 1h COST 2",
        "RL.FIXEDWINDOW k 5 1h PARTIAL COST 4",
        "RL.FIXEDWINDOW k 5 1h PARTIAL COST 6",
        "RL.FIXEDWINDOW k 5 1h HOLD other 1h",
        "RL.MULTI 1 k LIMIT FIXEDWINDOW 5 1h",
        "RL.MULTI 2 k new HOLD other 1h LIMIT FIXEDWINDOW 5 1h LIMIT UNIFORM 1s ON 2",
        "RL.ASK k p",
        "RL.ASK k p COST 2 HOLD other 1h",
    ] {
        let before = look(con);
        let reply = text(con, line);
        let numbers: Vec<i64> =
            reply.trim_matches(['[', ']']).split(", ").map_while(|number| number.parse().ok()).collect();
        assert_eq!(numbers[..3], [1, 5, 0], "{line}: {reply}");
        // The first caller waits until the window ends.
        assert!(look(con) <= numbers[3] && numbers[3] <= before + 1, "{line}: {reply}, {before}");
    }
    let shown = multi(con, "RL.MULTI 2 k new LIMIT FIXEDWINDOW 5 1h").1;
    assert_eq!(shown[0][..3], [1, 5, 0]);
    assert_eq!(shown[1], [0, 5, 5, 0, 0], "nobody waits for this key, which is not charged");
    assert!(text(con, "RL.ASK new p KEYS k").ends_with(", 2]"), "the second pair binds");
    until_tried(&server);
    assert!(caller.waits());
    assert_eq!(ints(con, "RL.PEEK k FIXEDWINDOW 5 1h")[2], 2, "nothing was charged");
    // Of a call that would not fit either, the longer retry counts.
    assert_eq!(ints(con, "RL.FIXEDWINDOW k 5 1h COST 6")[3], -1);
}

#[test]
fn the_commands_of_redis_cell_and_bookings_are_refused_too() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    // Two of three are there, but the first caller waits for three.
    ints(con, "RL.GCRA k 2 1 3600s");
    let _caller = Waiting::enter(&server, "RL.GCRA k 2 1 3600s COST 3 BLOCK 1d");
    for command in ["RL.THROTTLE", "CL.THROTTLE"] {
        let cell = ints(con, &format!("{command} k 2 1 3600"));
        assert_eq!(cell[..3], [1, 3, 0], "{command}");
        assert!((3590..=3600).contains(&cell[3]), "{command}: {cell:?}");
        assert_eq!(ints(con, &format!("{command} k 2 1 3600 0"))[..4], [0, 3, 2, -1], "{command}: a look");
    }
    for line in ["RL.GCRA k 2 1 3600s RESERVE", "RL.GCRA k 2 1 3600s RESERVE MAXWAIT 1d COST 2"] {
        assert_eq!(ints(con, line)[..3], [1, 3, 0], "{line}");
    }
    assert_eq!(ints(con, "RL.GCRA k 2 1 3600s COST 0")[2], 2);
    // Other limits that store the same state, but with another length of time, are other limits.
    assert_eq!(multi(con, "RL.MULTI 1 k LIMIT GCRA 2 1 1800s").0[0], 0);
}

#[test]
fn nobody_comes_between_a_release_and_the_grant() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1d");
    // There is room before the second call is decided.
    let replies = pipeline(con, &["RL.RELEASE k a", "RL.CONCURRENT k 1 1h c", "RL.PEEK k CONCURRENT 1 1h c"]);
    assert_eq!(replies[0], Value::Int(1));
    assert!(refused(&replies[1]), "{}", simple(&replies[1]));
    assert!(!refused(&replies[2]), "{}: a look", simple(&replies[2]));
    assert_eq!(caller.ints()[0], 0);
    assert_eq!(ints(con, "RL.RELEASE k c"), [0]);
}

#[test]
fn the_retry_is_at_least_a_millisecond() {
    let (server, mut con, first) = window_with_a_line();
    let con = &mut con;
    let second = Waiting::enter(&server, "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d");
    // The second caller is the first now, and is not tried yet.
    let kill = format!("CLIENT KILL ID {}", first.id);
    let replies = pipeline(con, &[&kill, "RL.FIXEDWINDOW k 5 1h", "RL.ASK k p"]);
    assert_eq!(simple(&replies[0]), "1");
    assert_eq!(simple(&replies[1]).get(..12), Some("[1, 5, 0, 1,"), "{}", simple(&replies[1]));
    assert_eq!(simple(&replies[2]).get(..12), Some("[1, 5, 0, 1,"), "{}", simple(&replies[2]));
    drop(second);
    until_waiting(con, 0);
    assert_eq!(ints(con, "RL.FIXEDWINDOW k 5 1h")[..3], [0, 5, 1]);
}

#[test]
fn looks_and_probes_show_what_there_is() {
    let (_server, mut con, mut caller) = window_with_a_line();
    let con = &mut con;
    for line in [
        "RL.FIXEDWINDOW k 5 1h COST 0",
        "RL.PEEK k FIXEDWINDOW 5 1h",
        "RL.MULTI 1 k COST 0 LIMIT FIXEDWINDOW 5 1h",
        "RL.MULTIPEEK 1 k LIMIT FIXEDWINDOW 5 1h",
        "RL.ASK k p COST 0",
        "RL.ASKPEEK k p",
    ] {
        let reply = text(con, line);
        assert!(reply.trim_start_matches('[').starts_with("0, 5, 2, 0, "), "{line}: {reply}");
    }
    // A limit that a call only looks at makes no caller wait, nor refuses the call.
    let line = "RL.MULTI 2 k new LIMIT FIXEDWINDOW 5 1h ON 1 COST 0 LIMIT GCRA 0 1 1h ON 2";
    assert_eq!(multi(con, line).0[0], 0);
    assert!(caller.waits());
}

#[test]
fn debt_is_charged_past_the_line() {
    let (_server, mut con, mut caller) = window_with_a_line();
    let con = &mut con;
    for (line, remaining) in [
        ("RL.FIXEDWINDOW k 5 1h FORCE", 1),
        ("RL.MULTI 1 k FORCE LIMIT FIXEDWINDOW 5 1h", 0),
        ("RL.ASK k p FORCE", 0),
    ] {
        let reply = text(con, line);
        let expected = format!("0, 5, {remaining}, ");
        assert!(reply.trim_start_matches('[').starts_with(&expected), "{line}: {reply}");
    }
    assert!(caller.waits());
}

#[test]
fn a_limit_in_shadow_has_no_line() {
    let (_server, mut con, mut caller) = window_with_a_line();
    let con = &mut con;
    assert_eq!(multi(con, "RL.MULTI 1 k LIMIT FIXEDWINDOW 5 1h SHADOW").0[0], 0);
    assert!(caller.waits());
}

#[test]
fn what_is_given_back_does_not_stand_in_line() {
    let (server, mut con, mut caller) = window_with_a_line();
    let con = &mut con;
    // Refunds of nothing, and a settlement at its cost.
    assert_eq!(ints(con, "RL.REFUND k FIXEDWINDOW 5 1h COST 0")[..3], [0, 5, 2]);
    assert_eq!(multi(con, "RL.MULTIREFUND 1 k COST 0 LIMIT FIXEDWINDOW 5 1h").0[..3], [0, 5, 2]);
    assert_eq!(ints(con, "RL.ASKREFUND k p COST 0")[..3], [0, 5, 2]);
    // The held call asked again, in each way.
    assert_eq!(ints(con, "RL.FIXEDWINDOW k 5 1h COST 2 HOLD job 1h")[..3], [0, 5, 2]);
    assert_eq!(multi(con, "RL.MULTI 1 k COST 2 HOLD job 1h LIMIT FIXEDWINDOW 5 1h").0[..3], [0, 5, 2]);
    assert_eq!(ints(con, "RL.ASK k p COST 2 HOLD job 1h")[..3], [0, 5, 2]);
    assert_eq!(ints(con, "RL.SETTLE k other FIXEDWINDOW 5 1h COST 1")[5], 0);
    let settled = ints(con, "RL.SETTLE k job FIXEDWINDOW 5 1h COST 2");
    assert_eq!((settled[2], settled[5]), (2, 1));
    until_tried(&server);
    assert!(caller.waits());
    ints(con, "RL.REFUND k FIXEDWINDOW 5 1h");
    assert_eq!(caller.ints()[..3], [0, 5, 0]);
}

#[test]
fn a_lease_that_is_held_is_asked_for_renewed_and_released() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 2 1h");
    ints(con, "RL.CONCURRENT k 2 1h a");
    ints(con, "RL.CONCURRENT k 2 1h b");
    let caller = Waiting::enter(&server, "RL.CONCURRENT k 2 1h c COST 2 BLOCK 1d");
    for line in [
        "RL.CONCURRENT k 2 1h a",
        "RL.MULTI 1 k LIMIT CONCURRENT 2 1h b",
        "RL.ASK k p ID a",
        "RL.ASK k p ID b FULL",
    ] {
        let reply = text(con, line);
        assert!(reply.trim_start_matches('[').starts_with("0, 2, 0, "), "{line}: {reply}");
    }
    assert_eq!(ints(con, "RL.RENEW k 2h a"), [1]);
    assert_eq!(ints(con, "RL.RELEASE k b"), [1]);
    // One of two is there, for who holds it.
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1h b")[..3], [1, 2, 0]);
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1h a")[..3], [0, 2, 1]);
    assert_eq!(ints(con, "RL.MULTIRELEASE 1 k a"), [1]);
    assert_eq!(caller.ints()[..3], [0, 2, 0]);
}

#[test]
fn other_limits_and_other_keys_are_not_concerned() {
    let (_server, mut con, mut caller) = window_with_a_line();
    let con = &mut con;
    for line in [
        "RL.FIXEDWINDOW other 5 1h",
        "RL.MULTI 1 k LIMIT FIXEDWINDOW 5 2h",
        "RL.MULTI 1 k LIMIT GCRA 4 5 1h",
        "RL.MULTI 1 k LIMIT CONCURRENT 5 1h a",
        "RL.MULTI 2 k other LIMIT FIXEDWINDOW 5 1h ON 2",
        "RL.ASK other p",
    ] {
        let reply = text(con, line);
        assert!(reply.trim_start_matches('[').starts_with("0, "), "{line}: {reply}");
    }
    // The key of this name in another database.
    text(con, "SELECT 1");
    assert_eq!(ints(con, "RL.FIXEDWINDOW k 5 1h")[..3], [0, 5, 4]);
    assert!(caller.waits());
}

#[test]
fn who_is_refused_by_a_line_is_counted_as_refused_and_charged_nowhere() {
    let (_server, mut con, _caller) = window_with_a_line();
    let con = &mut con;
    let reply = multi(con, "RL.MULTI 2 k new LIMIT FIXEDWINDOW 5 1h ON 1 LIMIT GCRA 9 1 1h ON 2");
    assert_eq!((reply.0[0], reply.1[0][0], &reply.1[1]), (1, 1, &vec![0, 10, 10, 0, 0]));
    assert_eq!(text(con, "EXISTS new"), "0");
    ints(con, "RL.FIXEDWINDOW k 5 1h");
    ints(con, "RL.ASK k p");
    for (field, expected) in [("multi_refused", 1), ("fixedwindow_refused", 1), ("ask_refused", 1)] {
        assert_eq!(count(con, field), expected, "{field}");
    }
    assert_eq!((waiting(con), count(con, "waited_timeout")), (1, 0));
}

#[test]
fn a_log_that_counts_refusals_records_those_that_it_makes_itself_beside_a_line() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, &format!("{LOG} COST 3"));
    let mut caller = Waiting::enter(&server, &format!("{LOG} COST 3 BLOCK 1d"));
    let before = field(con, "k", "last_charge_us");
    // The log has room for these, and records no request that the line refuses.
    for call in [LOG, &format!("{LOG} COUNTREFUSED"), &format!("{LOG} COUNTREFUSED COST 2")] {
        assert_eq!(ints(con, call)[..3], [1, 5, 0], "{call}");
        // A request that can never be admitted is not recorded either.
        assert_eq!(ints(con, &format!("{LOG} COUNTREFUSED COST 6"))[..4], [1, 5, 0, -1]);
        assert_eq!(field(con, "k", "last_charge_us"), before, "{call}");
    }
    // As without the line: the retry counts this refusal.
    let at = micros(con) + 60_000_000;
    assert_eq!(ints(con, &format!("{LOG} COUNTREFUSED COST 4 AT {at}"))[..4], [1, 5, 0, 3_600_000]);
    assert_eq!(field(con, "k", "last_charge_us"), at);
    assert_eq!(ints(con, &format!("RL.PEEK k SLIDINGLOG 5 1h AT {at}"))[..3], [1, 5, 0]);
    assert_eq!(count(con, "slidinglog_refused"), 7);
    until_tried(&server);
    assert!(caller.waits());
}
