//! `SHADOW`: a limit that is tried. It answers for itself, refuses no call, and has a state of its own.

use redis::Connection;

use crate::support::harmless::{error_of, words};
use crate::support::{SECOND, Server, T0, error, info, ints, multi, text};

fn ask(con: &mut Connection, at: u64, limits: &str) -> (Vec<i64>, Vec<Vec<i64>>) {
    multi(con, &format!("RL.MULTI 1 key AT {at} {limits}"))
}

fn shadow_refused(con: &mut Connection) -> String {
    info(con, "ratelimit", "ratelimit_shadow_refused").unwrap()
}

#[test]
fn a_shadow_answers_for_itself_and_refuses_no_call() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let tried = "LIMIT FIXEDWINDOW 3 1m LIMIT FIXEDWINDOW 1 1m SHADOW";
    let limit = |remaining, reset| vec![0, 3, remaining, 0, reset];
    assert_eq!(ask(con, T0, tried), (limit(2, 60_000), vec![limit(2, 60_000), vec![0, 1, 0, 0, 60_000]]));
    // It is the tightest, and does not enter the combined answer.
    for (second, remaining) in [(1, 1), (2, 0)] {
        let reset = 60_000 - 1000 * second;
        let own = vec![1, 1, 0, reset, reset];
        let all = limit(remaining, reset);
        let at = T0 + second.unsigned_abs() * SECOND;
        assert_eq!(ask(con, at, tried), (all.clone(), vec![all, own]));
    }
    assert_eq!(shadow_refused(con), "2");
    // A call that the limit refuses charges neither, and the shadow answers all the same.
    let (all, each) = ask(con, T0 + 3 * SECOND, tried);
    assert_eq!((&all, &each[0]), (&vec![1, 3, 0, 57_000, 57_000], &vec![1, 3, 0, 57_000, 57_000]));
    assert_eq!(each[1], [1, 1, 0, 57_000, 57_000]);
    assert_eq!(shadow_refused(con), "2", "it is the limit that refuses this call");
    assert_eq!(info(con, "ratelimit", "ratelimit_multi_admitted").unwrap(), "3");
    // A call that costs nothing counts nothing.
    ask(con, T0 + 3 * SECOND, "COST 0 LIMIT FIXEDWINDOW 3 1m LIMIT FIXEDWINDOW 1 1m SHADOW");
    assert_eq!(shadow_refused(con), "2");
}

#[test]
fn a_shadow_is_charged_where_the_call_and_itself_admit() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let shadow = |con: &mut Connection| {
        multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} LIMIT TOKENBUCKET 9 1 1s SHADOW")).1[0][2]
    };
    // The limit refuses: nothing is charged.
    assert_eq!(ask(con, T0, "COST 4 LIMIT GCRA 2 1 1s LIMIT TOKENBUCKET 9 1 1s SHADOW").0[0], 1);
    assert_eq!(text(con, "EXISTS key"), "0");
    // Both admit.
    ask(con, T0, "COST 3 LIMIT GCRA 2 1 1s LIMIT TOKENBUCKET 9 1 1s SHADOW");
    assert_eq!(shadow(con), 6);
    // Only the shadow refuses.
    ask(con, T0, "COST 7 LIMIT SLIDINGWINDOW 99 1s LIMIT TOKENBUCKET 9 1 1s SHADOW");
    assert_eq!(shadow(con), 6);
    // FORCE charges it always, and it can be given back.
    ask(con, T0, "FORCE COST 7 LIMIT SLIDINGWINDOW 99 1s LIMIT TOKENBUCKET 9 1 1s SHADOW");
    assert_eq!(shadow(con), 0);
    multi(con, &format!("RL.MULTIREFUND 1 key AT {T0} COST 5 LIMIT TOKENBUCKET 9 1 1s SHADOW"));
    assert_eq!(shadow(con), 4);
    let real = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} LIMIT SLIDINGWINDOW 99 1s")).1;
    assert_eq!(real[0][2], 99 - 14, "a refund of the shadow is none of the limit");
}

#[test]
fn limits_in_the_shadow_alone_admit_all() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let both = "LIMIT FIXEDWINDOW 2 1m SHADOW LIMIT GCRA 0 1 1h SHADOW";
    assert_eq!(ask(con, T0, both).0, [0, 1, 0, 0, 3_600_000]);
    for _ in 0..3 {
        let (all, each) = ask(con, T0, both);
        // The tightest answers, of equals the first, and the longest reset counts.
        assert_eq!(all, [0, 2, 0, 0, 3_600_000]);
        assert_eq!(each[1], [1, 1, 0, 3_600_000, 3_600_000]);
    }
    let (all, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} {both}"));
    assert_eq!((all, each[0][0]), (vec![0, 2, 0, 0, 3_600_000], 1));
    assert_eq!(shadow_refused(con), "3", "each call once");
}

#[test]
fn a_shadow_is_another_limit_than_the_one_it_stands_beside() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, T0, "COST 3 LIMIT FIXEDWINDOW 5 1m SHADOW");
    let told = text(con, "RL.INFO key");
    assert!(told.contains("limiter, FIXEDWINDOW, mode, opened, length_ms, 60000, shadow, 1, "), "{told}");
    // A limiter's own command does not take it for its own.
    assert_eq!(ints(con, &format!("RL.PEEK key FIXEDWINDOW 5 1m AT {T0}"))[2], 5);
    assert_eq!(ints(con, &format!("RL.REFUND key FIXEDWINDOW 5 1m AT {T0}"))[2], 5);
    assert_eq!(text(con, "RL.INFO key"), told);
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 5 1m AT {T0}")), [0, 5, 4, 0, 60_000]);
    assert!(text(con, "RL.INFO key").contains("stored_limits, 2"), "beside it");
    text(con, "DEL key");
    ask(con, T0, "COST 3 LIMIT FIXEDWINDOW 5 1m SHADOW");
    // Promoted, it is fresh. The shadow stays until it is fully reset.
    assert_eq!(ask(con, T0, "LIMIT FIXEDWINDOW 5 1m").0, [0, 5, 4, 0, 60_000]);
    assert!(text(con, "RL.INFO key").contains("limiter, MULTI"));
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 5 1m AT {T0}"))[2], 3);
    assert_eq!(ask(con, T0, "LIMIT FIXEDWINDOW 5 1m SHADOW").1[0][2], 1);
    assert_eq!(ask(con, T0 + 60 * SECOND, "LIMIT FIXEDWINDOW 5 1m").0[2], 4);
    assert!(
        text(con, "RL.INFO key").starts_with("[limiter, FIXEDWINDOW, mode, opened, length_ms, 60000, count")
    );
    // Both of one length in one call.
    let (all, each) = ask(con, T0 + 61 * SECOND, "LIMIT FIXEDWINDOW 5 1m LIMIT FIXEDWINDOW 9 1m SHADOW");
    assert_eq!((all[2], each[1][2]), (3, 8));
}

#[test]
fn a_lease_in_the_shadow_is_released_and_renewed_with_the_lease() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let take = |con: &mut Connection, id: &str| {
        ask(con, T0, &format!("LIMIT CONCURRENT 9 1m {id} LIMIT CONCURRENT 1 1m {id} SHADOW")).1[1][0]
    };
    assert_eq!(take(con, "a"), 0);
    assert_eq!(take(con, "b"), 1);
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {T0}")), [1]);
    assert_eq!(take(con, "b"), 0);
    assert_eq!(ints(con, &format!("RL.RENEW key 2m b AT {T0}")), [1]);
    let later = T0 + 90 * SECOND;
    let peek =
        format!("RL.MULTIPEEK 1 key AT {later} LIMIT CONCURRENT 9 1m x LIMIT CONCURRENT 1 1m x SHADOW");
    assert_eq!(multi(con, &peek).1.iter().map(|five| five[2]).collect::<Vec<_>>(), [8, 0]);
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 1 key b AT {later}")), [1]);
    assert_eq!(text(con, "EXISTS key"), "0");
    // An id counts as held in any table: a worker that only tries a limit in the shadow keeps its job.
    ask(con, T0, "LIMIT CONCURRENT 1 10s a LIMIT CONCURRENT 5 1m a SHADOW");
    assert_eq!(ask(con, T0 + 20 * SECOND, "LIMIT CONCURRENT 1 10s b").0[0], 0);
    assert_eq!(ints(con, &format!("RL.RENEW key 10s a AT {}", T0 + 21 * SECOND)), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE key b AT {}", T0 + 21 * SECOND)), [1]);
    assert_eq!(text(con, "EXISTS key"), "1");
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {}", T0 + 21 * SECOND)), [1]);
    assert_eq!(text(con, "EXISTS key"), "0");
}

#[test]
fn a_worker_of_a_shadow_alone_keeps_its_lease_when_the_shadow_is_promoted() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, T0, "LIMIT CONCURRENT 1 1m a SHADOW");
    assert_eq!(ints(con, &format!("RL.RENEW key 1m a AT {}", T0 + 50 * SECOND)), [1]);
    assert_eq!(ints(con, &format!("RL.RENEW key 1m b AT {}", T0 + 50 * SECOND)), [0]);
    // The limit is enforced from now on, and the worker asks for its lease again.
    ask(con, T0 + 60 * SECOND, "LIMIT CONCURRENT 1 1m a");
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 2 key other a AT {}", T0 + 70 * SECOND)), [1]);
    assert_eq!(text(con, "EXISTS key"), "0");
    ask(con, T0, "LIMIT CONCURRENT 1 1m a SHADOW");
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {T0}")), [1]);
    assert_eq!(text(con, "EXISTS key"), "0");
}

#[test]
fn a_shadow_that_refuses_changes_no_key() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // Limits that are fully reset, and that a charge would drop.
    ints(con, &format!("RL.FIXEDWINDOW lone 5 1s AT {T0}"));
    multi(con, &format!("RL.MULTI 1 set AT {T0} LIMIT FIXEDWINDOW 5 1s LIMIT GCRA 4 5 1s"));
    let later = T0 + 2 * SECOND;
    for calls in 0..2 {
        let digest = text(con, "DEBUG DIGEST");
        for line in [
            "RL.MULTI 1 lone AT @ COST 6 LIMIT FIXEDWINDOW 5 1s SHADOW",
            "RL.MULTI 1 set AT @ COST 6 LIMIT SLIDINGWINDOW 5 1s SHADOW",
            "RL.MULTI 1 missing AT @ COST 6 LIMIT SLIDINGWINDOW 5 1s SHADOW",
            "RL.MULTI 2 lone set AT @ COST 6 LIMIT UNIFORM 1s ON 2 COST 0 LIMIT GCRA 4 5 1m SHADOW ON 1",
        ] {
            assert_eq!(multi(con, &line.replace('@', &later.to_string())).0[0], 0, "{line}");
            assert_eq!(text(con, "DEBUG DIGEST"), digest, "{line}");
        }
        // The second time after a restart.
        assert_eq!(text(con, "DEBUG RELOAD"), "OK", "{calls}");
        assert_eq!(text(con, "DEBUG DIGEST"), digest);
    }
    assert_eq!(text(con, "EXISTS missing"), "0");
    // Where another limit is charged, what is fully reset goes.
    let line = format!("RL.MULTI 1 set AT {later} LIMIT UNIFORM 1s LIMIT SLIDINGWINDOW 5 1s SHADOW COST 6");
    assert_eq!(multi(con, &line).0[0], 0);
    assert!(text(con, "RL.INFO set").starts_with("[limiter, UNIFORM"));
}

#[test]
fn shadows_on_several_keys_and_behind_a_clock_that_was_set_back() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let tried = "LIMIT FIXEDWINDOW 9 1m LIMIT FIXEDWINDOW 1 1m SHADOW ON 2";
    for (remaining, refused) in [(8, 0), (7, 1)] {
        let (all, each) = multi(con, &format!("RL.MULTI 2 a b AT {T0} {tried}"));
        assert_eq!((all[0], all[2], each.len(), each[2][0]), (0, remaining, 3, refused));
    }
    // An hour back: both limits of the key move, and the shadow still refuses.
    let (all, each) = multi(con, &format!("RL.MULTI 2 a b AT {} {tried}", T0 - 3600 * SECOND));
    assert_eq!((all[0], all[2], each[2].as_slice()), (0, 6, &[1, 1, 0, 60_000, 60_000][..]));
    // Commands of other limiters do not take a shadow for their own.
    multi(con, "RL.MULTI 1 tried LIMIT GCRA 1 1 1h SHADOW");
    assert_eq!(error(con, "RL.SHED tried 0.5"), "WRONGTYPE the key holds limits, not SHED");
    for line in ["RL.CONCURRENT tried 1 1s a", "RL.FIXEDWINDOW tried 1 1h", "RL.GCRA tried 0 1 1h"] {
        assert_eq!(ints(con, line)[..3], [0, 1, 0], "{line}");
    }
    // A wait in the shadow is none of the call.
    let smooth = "LIMIT SMOOTH 1 1s SHADOW COST 9";
    multi(con, &format!("RL.MULTI 1 spaced AT {T0} {smooth}"));
    let (all, each) = multi(con, &format!("RL.MULTI 1 spaced AT {T0} {smooth}"));
    assert_eq!((&all[..4], each[0][3]), (&[0, 1, 0, 0][..], 8000));
    // A key that only a shadow keeps goes with its refund.
    multi(con, &format!("RL.MULTI 1 back AT {T0} LIMIT GCRA 4 1 1s SHADOW"));
    multi(con, &format!("RL.MULTIREFUND 1 back AT {T0} LIMIT GCRA 4 1 1s SHADOW"));
    assert_eq!(text(con, "EXISTS back"), "0");
}

#[test]
fn an_error_of_a_shadow_is_an_error_of_the_call() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (line, error) in [
        ("RL.GCRA key 1 1 1s SHADOW", "ERR syntax error: SHADOW is not for RL.GCRA"),
        ("RL.PEEK key GCRA 1 1 1s SHADOW", "ERR syntax error: SHADOW is not for RL.PEEK"),
        ("RL.MULTI 1 key SHADOW LIMIT GCRA 1 1 1s", "ERR syntax error: SHADOW belongs in a LIMIT"),
        (
            "RL.MULTI 1 key LIMIT GCRA 1 1 1s LIMIT GCRA 2 1 1s SHADOW SHADOW",
            "ERR syntax error: SHADOW is given twice (LIMIT 2)",
        ),
        (
            "RL.MULTI 1 key LIMIT GCRA 1 1 1s SHADOW LIMIT GCRA 2 1 1s SHADOW",
            "ERR syntax error: GCRA of 1s with SHADOW twice on one key (LIMIT 2)",
        ),
        (
            "RL.MULTI 1 key LIMIT CONCURRENT 1 1s a SHADOW LIMIT CONCURRENT 1 1m a SHADOW",
            "ERR syntax error: CONCURRENT with SHADOW twice on one key (LIMIT 2)",
        ),
        (
            "RL.MULTI 1 key FORCE LIMIT GCRA 1 1 1s LIMIT SMOOTH 1 1s SHADOW",
            "ERR syntax error: FORCE is not for SMOOTH (LIMIT 2)",
        ),
        (
            "RL.MULTI 1 key FORCE COST 9007199254740991 LIMIT FIXEDWINDOW 1 1ms LIMIT GCRA 1 1 1s SHADOW",
            "ERR limit would take too long to refill (LIMIT 2)",
        ),
    ] {
        assert_eq!(error_of(con, "RL.UNIFORM k 1s", &words(line)), error, "{line}");
    }
}
