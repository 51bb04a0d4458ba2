//! Several limits under one key: which limit a call finds, and how long the others stay.

use redis::Connection;

use crate::support::{SECOND, Server, T0, WRONG_TYPE, dump, error, ints, kind_of_error, multi, text};

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
    assert_eq!(
        error(con, "RL.SLIDINGWINDOW key 5 2s"),
        "WRONGTYPE the key holds TOKENBUCKET of 1s, FIXEDWINDOW of 2s, not SLIDINGWINDOW"
    );
    // The limit of the same limiter comes first.
    assert_eq!(
        error(con, "RL.FIXEDWINDOW key 5 2s ALIGNED"),
        "WRONGTYPE the key holds FIXEDWINDOW of 2s, TOKENBUCKET of 1s, not FIXEDWINDOW ALIGNED"
    );
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
    assert_eq!(kind_of_error(error(con, "RL.TOKENBUCKET key 10 1 1s")), WRONG_TYPE);
    assert_ne!(text(con, "PEXPIRETIME key"), "-1");
    // Whatever instant is asked for, the key lives as long as its limits last.
    multi(con, &format!("RL.MULTI 1 old AT {T0} LIMIT GCRA 9 1 1m LIMIT FIXEDWINDOW 5 1h"));
    let left: i64 = text(con, "PTTL old").parse().unwrap();
    assert!((3_590_000..=5_400_001).contains(&left), "{left} ms");
}

/// `remaining` of each limit at `T0`.
fn remaining(con: &mut Connection, limits: &str) -> Vec<i64> {
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} {limits}"));
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
    for own in ["RL.GCRA key 9 1 5s", "RL.PEEK key GCRA 9 1 5s", "RL.REFUND key GCRA 9 1 5s"] {
        assert_eq!(kind_of_error(error(con, own)), WRONG_TYPE);
    }
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
    assert_eq!(error(con, &more), "ERR at most 64 limits a key");
    assert_eq!(dump(con, "key"), before);
    // A second on, the first of them has faded and makes room.
    multi(con, &more.replace(&T0.to_string(), &(T0 + SECOND).to_string()));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 64"));
    multi(
        con,
        &format!("RL.MULTI 1 key AT {} {}", T0 + 60 * SECOND, limits(61, 62)).replace("AT", "COST 0 AT"),
    );
    multi(con, &format!("RL.MULTI 1 key AT {} {}", T0 + 63 * SECOND, limits(61, 62)));
    assert!(text(con, "RL.INFO key").contains("stored_limits, 3"), "{}", text(con, "RL.INFO key"));
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
