//! Several limits under one key: a clock that was set back, and when the key expires.

use redis::Connection;

use crate::support::{SECOND, Server, T0, clock, dump, ints, multi, sync, text};

#[test]
fn a_clock_that_was_set_back_moves_each_limit() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 9 10 10s LIMIT SLIDINGLOG 10 5s";
    let ahead = T0 + 86_400 * SECOND;
    multi(con, &format!("RL.MULTI 1 key COST 10 AT {ahead} {limits}"));
    let before = dump(con, "key");
    let reply = vec![vec![1, 10, 0, 1000, 10_000], vec![1, 10, 0, 5000, 5000]];
    // A probe answers as if; a refusal moves the states.
    assert_eq!(multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} {limits}")).1, reply);
    assert_eq!(dump(con, "key"), before);
    assert_eq!(multi(con, &format!("RL.MULTI 1 key AT {T0} {limits}")).1, reply);
    assert_ne!(dump(con, "key"), before);
    sync(&server, &replica);
    assert_eq!(dump(&mut replica.connection(), "key"), dump(con, "key"));
    assert_eq!(multi(con, &format!("RL.MULTI 1 key AT {} {limits}", T0 + 5 * SECOND)).0[0], 0);
}

#[test]
fn a_limit_that_others_would_join_in_vain_still_stands_alone() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    // Its state is moved because the clock was set back, and the call is refused.
    ints(con, &format!("RL.FIXEDWINDOW key 1 1s AT {}", T0 + 3600 * SECOND));
    let line = format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 1 1s LIMIT GCRA 0 1 1s COST 2");
    assert_eq!(multi(con, &line).0[0], 1);
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 1 1s AT {T0}"))[0], 1);
    let expires: u64 = text(con, "PTTL key").parse().unwrap();
    assert!(expires < 120_000, "{expires} ms");
    sync(&server, &replica);
    assert_eq!(dump(&mut replica.connection(), "key"), dump(con, "key"));
}

#[test]
fn limits_that_a_refusal_has_moved_fade_in_the_time_they_were_moved_to() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 0 1 1s LIMIT FIXEDWINDOW 1 1s";
    multi(con, &format!("RL.MULTI 1 key AT 4102444800000000 {limits}"));
    assert_eq!(multi(con, &format!("RL.MULTI 1 key {limits}")).0[0], 1);
    let expires: i64 = text(con, "PTTL key").parse().unwrap();
    assert!((0..120_000).contains(&expires), "{expires} ms");
}

#[test]
fn a_lagging_release_leaves_other_limits_alone() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let at = |seconds: u64| T0 + seconds * SECOND;
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT GCRA 0 1 5s LIMIT CONCURRENT 5 1m a", at(0)));
    assert_eq!(ints(con, &format!("RL.RENEW key 1m a AT {}", at(10))), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {}", at(1))), [1]);
    assert_eq!(text(con, "EXISTS key"), "1");
    let (all, _) = multi(con, &format!("RL.MULTIPEEK 1 key AT {} LIMIT GCRA 0 1 5s", at(1)));
    assert_eq!(all, [1, 1, 0, 4000, 4000]);
}

#[test]
fn the_expiry_of_limits_held_together_is_that_of_the_latest() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let day = 86_400_000;
    let now = clock(con);
    let ahead = (now + 86_400) * SECOND;
    let limits = format!("LIMIT FIXEDWINDOW 5 {day}ms LIMIT SLIDINGLOG 5 {day}ms");
    multi(con, &format!("RL.MULTI 1 key AT {ahead} {limits}"));
    let expires = |con: &mut Connection| text(con, "PEXPIRETIME key").parse::<u64>().unwrap();
    let first = expires(con);
    // A caller who lags, but not by more than a reset, does not put it off.
    multi(con, &format!("RL.MULTI 1 key FORCE AT {} {limits}", ahead - 23 * 3600 * SECOND));
    assert!(expires(con) <= first + 60_000, "{} after {first}", expires(con));
}

#[test]
fn a_limit_that_tells_when_it_is_as_good_as_new_joins_whatever_its_expiry() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for make in ["RL.GCRA key 9 7 1m COST 3", "RL.CONCURRENT key 9 1m a"] {
        let dumps = ["PTTL key", "PERSIST key", "PEXPIRE key 1000000"].map(|expiry| {
            text(con, "DEL key");
            ints(con, &format!("{make} AT {T0}"));
            text(con, expiry);
            multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 1s"));
            dump(con, "key")
        });
        assert!(dumps.iter().all(|dump| *dump == dumps[0]), "{make}");
        // And it fades when it says, not when the key would have expired.
        multi(con, &format!("RL.MULTI 1 key AT {} LIMIT FIXEDWINDOW 5 1s", T0 + 60 * SECOND));
        assert!(text(con, "RL.INFO key").starts_with("[limiter, FIXEDWINDOW"), "{make}");
    }
}
