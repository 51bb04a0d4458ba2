//! Several limits under one key: which limit a call finds, and how long the others stay.

use redis::Connection;

use crate::support::contents::contents;
use crate::support::{AOF_AT_ONCE, SECOND, Server, T0, dump, error, ints, multi, sync, text};

#[test]
fn a_limiters_own_command_works_on_a_key_with_several_limits() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    multi(con, &format!("RL.MULTI 1 key COST 4 AT {T0} LIMIT TOKENBUCKET 10 1 1s"));
    // On the only limit of a key:
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET key 10 1 1s AT {T0}"))[2], 5);
    assert_eq!(ints(con, &format!("RL.REFUND key TOKENBUCKET 10 1 1s AT {T0}"))[2], 6);
    // and on one of two.
    let (_, each) = multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 2s"));
    assert_eq!(each, [[0, 5, 4, 0, 2000]]);
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET key 10 1 1s COST 2 AT {T0}"))[2], 4);
    assert_eq!(ints(con, &format!("RL.PEEK key FIXEDWINDOW 5 2s AT {T0}"))[2], 4);
    assert_eq!(ints(con, &format!("RL.REFUND key TOKENBUCKET 10 1 1s COST 2 AT {T0}"))[2], 6);
    // Another limiter, and another mode, is fully reset. A look adds nothing, and neither does a refund.
    let before = dump(con, "key");
    for other in ["SLIDINGWINDOW 5 2s", "FIXEDWINDOW 5 2s ALIGNED"] {
        assert_eq!(ints(con, &format!("RL.PEEK key {other} AT {T0}"))[..3], [0, 5, 5]);
        assert_eq!(ints(con, &format!("RL.REFUND key {other} AT {T0}")), [0, 5, 5, 0, 0]);
    }
    assert_eq!(dump(con, "key"), before);
    // The bucket that a call does not name stays until it is fully reset.
    let later = T0 + 3 * SECOND;
    let (_, each) = multi(con, &format!("RL.MULTI 1 key AT {later} LIMIT FIXEDWINDOW 5 2s"));
    assert_eq!(each, [[0, 5, 4, 0, 2000]]);
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {later} LIMIT TOKENBUCKET 10 1 1s"));
    assert_eq!(each, [[0, 10, 9, 0, 1000]]);
    // Then the next charge drops it, also one by another limiter's own command.
    let late = T0 + 4 * SECOND;
    ints(con, &format!("RL.FIXEDWINDOW key 5 2s AT {late}"));
    assert!(text(con, "RL.INFO key").starts_with("[limiter, FIXEDWINDOW"));
    assert_eq!(ints(con, &format!("RL.PEEK key TOKENBUCKET 10 1 1s AT {T0}"))[2], 10);
    assert_ne!(text(con, "PEXPIRETIME key"), "-1");
    // Whatever instant is asked for, the key lives as long as its limits last.
    multi(con, &format!("RL.MULTI 1 old AT {T0} LIMIT GCRA 9 1 1m LIMIT FIXEDWINDOW 5 1h"));
    let left: i64 = text(con, "PTTL old").parse().unwrap();
    assert!((3_590_000..=5_400_001).contains(&left), "{left} ms");
}

/// `remaining` of each limit at `T0`.
fn remaining(con: &mut Connection, limits: &str) -> Vec<i64> {
    remaining_of(con, "key", limits)
}

fn remaining_of(con: &mut Connection, key: &str, limits: &str) -> Vec<i64> {
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 {key} AT {T0} {limits}"));
    each.iter().map(|five| five[2]).collect()
}

#[test]
fn an_own_command_finds_its_name_or_the_only_limit_of_its_kind() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // Another period on a key of one limit is a changed parameter; what is written has the new name.
    ints(con, &format!("RL.GCRA key 9 1 1s COST 4 AT {T0}"));
    assert_eq!(ints(con, &format!("RL.PEEK key GCRA 9 1 2s AT {T0}"))[2], 8);
    assert_eq!(remaining(con, "LIMIT GCRA 9 1 1s LIMIT GCRA 9 1 2s"), [6, 10]);
    ints(con, &format!("RL.GCRA key 9 1 2s AT {T0}"));
    assert_eq!(remaining(con, "LIMIT GCRA 9 1 1s LIMIT GCRA 9 1 2s"), [10, 7]);
    // A refusal writes nothing, so the name stays.
    assert_eq!(ints(con, &format!("RL.GCRA key 9 1 3s COST 10 AT {T0}"))[0], 1);
    assert_eq!(remaining(con, "LIMIT GCRA 9 1 2s LIMIT GCRA 9 1 3s"), [7, 10]);
    // The same on a key of several limits, of which one is of the kind.
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 1m"));
    assert_eq!(ints(con, &format!("RL.REFUND key GCRA 9 1 4s AT {T0}"))[2], 9);
    assert_eq!(remaining(con, "LIMIT GCRA 9 1 2s LIMIT GCRA 9 1 4s LIMIT FIXEDWINDOW 5 1m"), [10, 9, 4]);
    // Of two of the kind only one that is named can be meant.
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 1 1m"));
    assert_eq!(ints(con, &format!("RL.GCRA key 9 1 1m AT {T0}"))[2], 8);
    // Any other is a third one.
    assert_eq!(ints(con, &format!("RL.PEEK key GCRA 9 1 5s AT {T0}"))[2], 10);
    assert_eq!(ints(con, &format!("RL.REFUND key GCRA 9 1 5s AT {T0}")), [0, 10, 10, 0, 0]);
    assert_eq!(ints(con, &format!("RL.GCRA key 9 1 5s AT {T0}"))[2], 9);
    assert_eq!(remaining(con, "LIMIT GCRA 9 1 1m LIMIT GCRA 9 1 4s LIMIT GCRA 9 1 5s"), [8, 9, 9]);
}

#[test]
fn no_call_is_refused_for_what_else_its_key_holds() {
    let mut server = Server::start(&AOF_AT_ONCE);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let at = |seconds: u64| T0 + seconds * SECOND;
    // Another limiter is fully reset. What it gets back adds nothing, what it charges stands beside the first.
    ints(con, &format!("RL.FIXEDWINDOW w 5 1h AT {T0}"));
    let before = dump(con, "w");
    assert_eq!(ints(con, &format!("RL.REFUND w GCRA 0 1 1s AT {T0}")), [0, 1, 1, 0, 0]);
    assert_eq!(dump(con, "w"), before);
    assert_eq!(ints(con, &format!("RL.GCRA w 0 1 1s AT {T0}")), [0, 1, 0, 0, 1000]);
    assert_eq!(ints(con, &format!("RL.GCRA w 0 1 1s AT {T0}"))[0], 1);
    assert_eq!(ints(con, &format!("RL.PEEK w FIXEDWINDOW 5 1h AT {T0}"))[2], 4);
    // The throttles too.
    ints(con, "RL.FIXEDWINDOW cell 5 1h");
    assert_eq!(ints(con, "CL.THROTTLE cell 2 1 3600")[..3], [0, 3, 2]);
    assert!(text(con, "RL.INFO cell").contains("stored_limits, 2"));
    // Another period is the same limit if it is the only one; of two, it is neither.
    multi(con, &format!("RL.MULTI 1 g AT {T0} LIMIT GCRA 0 1 1s LIMIT GCRA 9 1 1h"));
    assert_eq!(ints(con, &format!("RL.GCRA g 9 1 2s AT {T0}"))[2], 9);
    assert!(text(con, "RL.INFO g").contains("stored_limits, 3"));
    // The limit of a second has faded, but without it the call would take that of the hour.
    multi(con, &format!("RL.MULTI 1 u AT {T0} LIMIT GCRA 0 1 1s LIMIT GCRA 0 10 1h"));
    multi(con, &format!("RL.MULTI 1 u AT {} LIMIT GCRA 0 10 1h", at(400)));
    assert_eq!(ints(con, &format!("RL.GCRA u 0 1 1s AT {}", at(401))), [0, 1, 0, 0, 1000]);
    assert_eq!(ints(con, &format!("RL.PEEK u GCRA 0 10 1h AT {}", at(401)))[0], 1);
    // A shadow is no limit of the limiter's own command.
    multi(con, &format!("RL.MULTI 1 s AT {T0} LIMIT SLIDINGLOG 1 1m SHADOW"));
    assert_eq!(ints(con, &format!("RL.SLIDINGLOG s 1 1m AT {T0}")), [0, 1, 0, 0, 60_000]);
    // A mode is another limit.
    ints(con, &format!("RL.TOKENBUCKET b 9 1 1m COST 5 AT {T0}"));
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET b 9 1 1m BATCH AT {T0}"))[2], 8);
    assert_eq!(ints(con, &format!("RL.PEEK b TOKENBUCKET 9 1 1m AT {T0}"))[2], 4);
    // A penalty that was forgotten begins anew, as one that was not.
    let two = "LIMIT UNIFORM 1h LIMIT PENALTY 3 100ms 100ms";
    for key in ["p", "q"] {
        multi(con, &format!("RL.MULTI 1 {key} AT {T0} {two}"));
    }
    multi(con, &format!("RL.MULTI 1 q AT {} LIMIT UNIFORM 1h", at(3600)));
    assert!(text(con, "RL.INFO q").starts_with("[limiter, UNIFORM"), "the penalty was dropped");
    for (key, seconds) in [("p", 1), ("q", 3601)] {
        assert_eq!(ints(con, &format!("RL.PENALTY {key} 3 100ms 100ms AT {}", at(seconds)))[2], 2, "{key}");
    }
    // What another limit holds under an id is none of this one.
    ints(con, &format!("RL.GCRA h 9 1 1m COST 3 HOLD h1 1h AT {T0}"));
    let before = dump(con, "h");
    assert_eq!(ints(con, &format!("RL.SETTLE h h1 TOKENBUCKET 9 1 1m COST 1 AT {T0}")), [0, 9, 9, 0, 0, 0]);
    assert_eq!(dump(con, "h"), before);
    assert_eq!(ints(con, &format!("RL.SETTLE h h1 GCRA 9 1 1m COST 1 AT {T0}"))[2..], [9, 0, 60_000, 1]);
    ints(con, &format!("RL.GCRA e 9 1 1m COST 3 HOLD h2 1h AT {T0}"));
    // The hold finds its limit by limiter and mode, and a refund that changes it renames it.
    assert_eq!(ints(con, &format!("RL.SETTLE e h2 GCRA 9 1 2m COST 2 AT {T0}"))[5], 1);
    assert_eq!(remaining_of(con, "e", "LIMIT GCRA 9 1 1m LIMIT GCRA 9 1 2m"), [10, 9]);
    // Only a sketch and an amount are no limits.
    text(con, "RL.SKETCH sketch a 9 1 1m");
    text(con, "RL.SHED shed 0.5");
    for (key, held) in [("sketch", "SKETCH"), ("shed", "SHED")] {
        for (call, wanted) in
            [("GCRA {} 9 1 1m", "GCRA"), ("PEEK {} GCRA 9 1 1m", "GCRA"), ("REFUND {} UNIFORM 1m", "UNIFORM")]
        {
            let line = format!("RL.{}", call.replace("{}", key));
            assert_eq!(error(con, &line), format!("WRONGTYPE the key holds {held}, not {wanted}"), "{line}");
        }
    }
    sync(&server, &replica);
    let expected = contents(&server);
    assert_eq!(contents(&replica), expected);
    drop(replica);
    server.restart();
    assert_eq!(contents(&server), expected);
}

#[test]
fn a_second_limit_of_a_limiter_is_another_limit() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let admitted = |con: &mut Connection, limits: &str| {
        multi(con, &format!("RL.MULTI 1 key AT {T0} {limits}")).0[0] == 0
    };
    // One per second is one per second, whichever other limits are named with it.
    assert!(admitted(con, "LIMIT GCRA 0 1 1s"));
    assert!(!admitted(con, "LIMIT GCRA 0 1 1s LIMIT GCRA 9 10 1h"));
    assert!(!admitted(con, "LIMIT GCRA 0 1 1s"));
    // An hour that was never charged is full, whatever the minute has left.
    text(con, "DEL key");
    assert!(admitted(con, "COST 5 LIMIT TOKENBUCKET 5 5 1m"));
    assert_eq!(remaining(con, "LIMIT TOKENBUCKET 100 100 1d"), [100]);
    assert!(admitted(con, "LIMIT TOKENBUCKET 100 100 1d"));
    // A window that was never opened is fresh.
    text(con, "DEL key");
    assert!(admitted(con, "COST 7 LIMIT FIXEDWINDOW 100 1s"));
    assert_eq!(remaining(con, "LIMIT FIXEDWINDOW 3 1m"), [3]);
    // The limiter's own command carries the count over instead: its window changed.
    assert_eq!(ints(con, &format!("RL.PEEK key FIXEDWINDOW 10 1m AT {T0}"))[2], 3);
}

#[test]
fn calls_with_and_without_the_hour_do_not_shut_the_second() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for second in 0..20 {
        let at = T0 + second * SECOND;
        let hour = if second % 2 == 0 { " LIMIT GCRA 99 100 1h" } else { "" };
        let (all, _) = multi(con, &format!("RL.MULTI 1 key AT {at} LIMIT GCRA 0 1 1s{hour}"));
        assert_eq!(all[0], 0, "second {second}");
    }
    assert_eq!(ints(con, &format!("RL.PEEK key GCRA 99 100 1h AT {T0}"))[2], 90);
}

#[test]
fn a_key_has_one_table_of_leases() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let take =
        |con: &mut Connection, limits: &str| multi(con, &format!("RL.MULTI 1 key AT {T0} {limits}")).0[0];
    assert_eq!(take(con, "LIMIT CONCURRENT 1 1m a LIMIT FIXEDWINDOW 100 1m"), 0);
    // Another ttl is not another table.
    assert_eq!(take(con, "LIMIT CONCURRENT 1 90s b LIMIT FIXEDWINDOW 100 1m"), 1);
    assert_eq!(ints(con, &format!("RL.CONCURRENT key 1 5s b AT {T0}"))[0], 1);
    let two = format!("RL.MULTI 1 key AT {T0} LIMIT CONCURRENT 1 1m b LIMIT CONCURRENT 9 5s b");
    assert_eq!(error(con, &two), "ERR syntax error: CONCURRENT twice on one key (LIMIT 2)");
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.CONCURRENT key 1 5s b AT {T0}"))[0], 0);
    assert_eq!(remaining(con, "LIMIT FIXEDWINDOW 100 1m"), [99]);
}

#[test]
fn equal_histories_leave_equal_bytes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let dumps = ["one", "two"].map(|key| {
        ints(con, &format!("RL.TOKENBUCKET {key} 10 1 1s COST 4 AT {T0}"));
        if key == "two" {
            // The server's clock and the key's expiry are no part of a history with `AT`.
            text(con, "PEXPIRE two 1000000");
        }
        multi(con, &format!("RL.MULTI 1 {key} AT {T0} LIMIT FIXEDWINDOW 5 1s"));
        multi(con, &format!("RL.MULTI 1 {key} AT {} LIMIT FIXEDWINDOW 5 1s", T0 + 4 * SECOND));
        dump(con, key)
    });
    assert_eq!(dumps[0], dumps[1]);
    assert!(text(con, "RL.INFO one").starts_with("[limiter, FIXEDWINDOW"), "the bucket was full again");
}

#[test]
fn limits_are_known_by_their_length_of_time() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let peek = remaining;
    ints(con, &format!("RL.SLIDINGWINDOW key 10 1m COST 7 AT {T0}"));
    let (_, each) =
        multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT SLIDINGWINDOW 5 1s LIMIT SLIDINGWINDOW 100 1h"));
    assert_eq!(each, [[0, 5, 4, 0, 2000], [0, 100, 99, 0, 7_200_000]]);
    assert_eq!(peek(con, "LIMIT SLIDINGWINDOW 10 1m"), [3]);
    // Another number under the same length is the same limit.
    assert_eq!(peek(con, "LIMIT SLIDINGWINDOW 20 1m LIMIT SLIDINGWINDOW 4 1s"), [13, 3]);
    // Changing, adding and dropping limits keeps the others.
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT SLIDINGWINDOW 12 1m LIMIT GCRA 4 1 1s"));
    assert_eq!(
        peek(con, "LIMIT SLIDINGWINDOW 5 1s LIMIT SLIDINGWINDOW 10 1m LIMIT SLIDINGWINDOW 100 1h"),
        [4, 2, 99]
    );
    // Also the limit that stood alone before.
    text(con, "DEL key");
    ints(con, &format!("RL.GCRA key 9 10 1m COST 5 AT {T0}"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1s LIMIT GCRA 9 10 1m"), [10, 5]);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 1s LIMIT GCRA 9 10 1m"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1s LIMIT GCRA 9 10 1m"), [9, 4]);
    // It stays while another limit is charged.
    text(con, "DEL key");
    ints(con, &format!("RL.GCRA key 9 10 1m COST 5 AT {T0}"));
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 1s"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1m LIMIT FIXEDWINDOW 5 1s"), [5, 4]);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 1m"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1m LIMIT FIXEDWINDOW 5 1s"), [4, 4]);
}

#[test]
fn a_key_holds_at_most_64_limits_and_forgets_those_that_faded() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = |from: u64, to: u64| {
        (from..to).map(|i| format!("LIMIT GCRA 0 1 {}ms", 1000 * (i + 1))).collect::<Vec<_>>().join(" ")
    };
    multi(con, &format!("RL.MULTI 1 key AT {T0} {}", limits(0, 64)));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 64"));
    let before = dump(con, "key");
    let more = format!("RL.MULTI 1 key AT {T0} {}", limits(64, 65));
    for more in [
        &more,
        &format!("RL.UNIFORM key 1s AT {T0}"),
        &format!("RL.GCRA key 0 1 70s AT {T0}"),
        &format!("RL.FIXEDWINDOW key 1 1s HOLD a 1s AT {T0}"),
    ] {
        assert_eq!(error(con, more), "ERR at most 64 limits a key", "{more}");
    }
    // A look and a refund add nothing.
    assert_eq!(ints(con, &format!("RL.UNIFORM key 1s COST 0 AT {T0}"))[..3], [0, 1, 1]);
    assert_eq!(ints(con, &format!("RL.REFUND key FIXEDWINDOW 1 1s AT {T0}"))[..3], [0, 1, 1]);
    assert_eq!(dump(con, "key"), before);
    // A second on, the first of them has faded and makes room.
    multi(con, &more.replace(&T0.to_string(), &(T0 + SECOND).to_string()));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 64"));
    multi(
        con,
        &format!("RL.MULTI 1 key AT {} {}", T0 + 60 * SECOND, limits(61, 62)).replace("AT", "COST 0 AT"),
    );
    let stored = |con: &mut Connection, limits: usize| {
        let told = text(con, "RL.INFO key");
        assert!(told.contains(&format!("stored_limits, {limits}, ")), "{told}");
    };
    // While others of the limiter are not fully reset, the faded ones stay too: without them, a call would take another for them.
    multi(con, &format!("RL.MULTI 1 key AT {} {}", T0 + 63 * SECOND, limits(61, 62)));
    stored(con, 64);
    // But not if that would be an error.
    ints(con, &format!("RL.GCRA key 0 1 100s AT {}", T0 + 63 * SECOND));
    stored(con, 4);
    ints(con, &format!("RL.UNIFORM key 1s AT {}", T0 + 200 * SECOND));
    assert!(text(con, "RL.INFO key").starts_with("[limiter, UNIFORM"));
}

#[test]
fn sixty_four_limits_do_not_join_one_that_stands_alone() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits =
        (0..64).map(|i| format!(" LIMIT FIXEDWINDOW 1 {}ms", 100_000 + i)).collect::<Vec<_>>().concat();
    ints(con, "RL.GCRA key 1 1 1000s");
    let before = dump(con, "key");
    assert_eq!(error(con, &format!("RL.MULTI 1 key{limits}")), "ERR at most 64 limits a key");
    assert_eq!(dump(con, "key"), before);
    // With 63 others it makes 64.
    let limits = limits.replace("LIMIT FIXEDWINDOW 1 100000ms", "");
    assert_eq!(multi(con, &format!("RL.MULTI 1 key{limits}")).0[0], 0);
    assert_eq!(multi(con, "RL.MULTI 1 key LIMIT GCRA 1 1 1000s").1[0][..3], [0, 2, 0]);
    // What is given back adds nothing.
    multi(con, "RL.MULTIREFUND 1 key LIMIT TOKENBUCKET 1 1 1s");
}
