//! What the server runs at once, before it tries a caller.

use redis::Value;

use super::{AHEAD, PATIENT, Waiting, figure, pipeline, until_waiting};
use crate::support::{Server, ints, refused, simple, text};

#[test]
fn no_call_comes_between_a_release_and_the_grant() {
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

    // The second caller is the first now, and would fit. The retry is a millisecond at least.
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW w 5 1h COST 3");
    let [first, second] = ["3", "1"]
        .map(|cost| Waiting::enter(&server, &format!("RL.FIXEDWINDOW w 5 1h COST {cost} BLOCK 1d")));
    let kill = format!("CLIENT KILL ID {}", first.id);
    let replies = pipeline(con, &[&kill, "RL.FIXEDWINDOW w 5 1h", "RL.ASK w p"]);
    for reply in &replies[1..] {
        assert!(simple(reply).starts_with("[1, 5, 0, 1,"), "{}", simple(reply));
    }
    assert_eq!(second.ints()[..3], [0, 5, 1]);
}

#[test]
fn a_call_that_the_line_refuses_moves_a_limit_that_is_far_ahead_and_what_is_held() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for limit in ["FIXEDWINDOW k 5 1h", "SLIDINGLOG k 5 1h", "SLIDINGWINDOW k 5 1h PRECISION 1m"] {
        // One that would fit, one that the limit refuses as well, and one that holds.
        for options in ["", "COST 5", "COST 5 HOLD other 1h"] {
            ints(con, &format!("RL.{limit} COST 4"));
            let caller = Waiting::enter(&server, &format!("RL.{limit} COST 4 BLOCK 1d"));
            let (name, parameters) = limit.split_once(" k ").unwrap();
            let replies = pipeline(
                con,
                &[
                    // Charged past the line.
                    &format!("RL.{limit} COST 2 HOLD job 300d FORCE AT {AHEAD}"),
                    &format!("RL.{limit} {options}"),
                    "RL.INFO k",
                    &format!("RL.SETTLE k job {name} {parameters} COST 0"),
                ],
            );
            let replies: Vec<String> = replies.iter().map(simple).collect();
            assert!(replies[1].starts_with("[1, 5, 0, "), "{limit} {options}: {replies:?}");
            let last = figure(replies[2].split("limits, ").last().unwrap(), "last_charge_us");
            assert!(last < AHEAD, "{limit} {options}: {replies:?}");
            assert!(replies[3].starts_with("[0, 5, 5, 0, ") && replies[3].ends_with(", 1]"), "{replies:?}");
            assert_eq!(caller.ints()[..3], [0, 5, 1], "{limit} {options}");
            text(con, "DEL k");
        }
    }
}

#[test]
fn who_is_unblocked_is_refused_even_if_the_limits_have_room_by_then() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    ints(con, "RL.FIXEDWINDOW k 5 1h COST 5");
    let caller = Waiting::enter(&server, "RL.ASK k p BLOCK 1d");
    let unblock = format!("CLIENT UNBLOCK {}", caller.id);
    pipeline(con, &["RL.POLICY SET p LIMIT FIXEDWINDOW 5 1d", &unblock]);
    assert_eq!(caller.ints()[..3], [1, 5, 0]);

    ints(con, "RL.CONCURRENT l 1 1h a");
    let caller =
        Waiting::enter(&server, "RL.MULTI 1 l BLOCK 1m LIMIT CONCURRENT 1 1h b LIMIT FIXEDWINDOW 5 1h");
    let unblock = format!("CLIENT UNBLOCK {}", caller.id);
    pipeline(con, &["RL.RELEASE l a", "RL.CONCURRENT l 1 1h b CRITICAL", &unblock]);
    let reply = caller.text();
    assert!(reply.starts_with("[[1, 1, 0, 1, "), "{reply}");
    // The lease is alone in its key: nothing was charged to the window.
    assert_eq!(text(con, "RL.INFO l").matches("FIXEDWINDOW").count(), 0);

    // Who got its hold by another call has what it asked for, and is charged once.
    ints(con, "RL.FIXEDWINDOW h 5 1h COST 5");
    let caller = Waiting::enter(&server, "RL.FIXEDWINDOW h 5 1h COST 3 HOLD job 1h BLOCK 1d");
    let unblock = format!("CLIENT UNBLOCK {}", caller.id);
    pipeline(con, &["RL.FIXEDWINDOW h 5 1h COST 3 HOLD job 1h FORCE", &unblock]);
    assert_eq!(caller.ints()[0], 0);
    assert_eq!(ints(con, "RL.REFUND h FIXEDWINDOW 5 1h COST 4")[2], 1);
}

#[test]
fn a_grant_and_an_end_in_one_event_are_one_reply() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for mode in ["UNBLOCK", "UNBLOCK ERROR", "KILL"] {
        ints(con, "RL.CONCURRENT k 1 1h a");
        let mut caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1m");
        let end = match mode {
            "KILL" => format!("CLIENT KILL ID {}", caller.id),
            mode => format!("CLIENT UNBLOCK {} {}", caller.id, mode.trim_start_matches("UNBLOCK")),
        };
        for line in ["MULTI", "RL.RELEASE k a", &end, "EXEC"] {
            text(con, line);
        }
        let reply = caller.outcome();
        until_waiting(con, 0);
        // The lease is free, so it was the end that counted.
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h c")[0], 0, "{mode}: {reply:?}");
        text(con, "DEL k");
        match mode {
            "KILL" => assert_eq!(reply, None),
            "UNBLOCK" => assert!(refused(&reply.unwrap())),
            _ => assert!(matches!(reply, Some(Value::ServerError(_))), "{reply:?}"),
        }
        if mode != "KILL" {
            caller.client.send("PING");
            assert_eq!(caller.client.reply(), Value::SimpleString("PONG".into()), "{mode}");
        }
    }
}
