//! Several limits under one key: how they join, are told apart, fade and part.

use redis::Connection;

use crate::support::{SECOND, Server, T0, WRONG_TYPE, dump, error, ints, multi, text};

#[test]
fn a_single_limit_stands_alone_and_joins_and_parts() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    multi(con, &format!("RL.MULTI 1 key COST 4 AT {T0} LIMIT TOKENBUCKET 10 1 1000"));
    // Its own command, probe and refund work on it.
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET key 10 1 1000 AT {T0}"))[2], 5);
    assert_eq!(ints(con, &format!("RL.REFUND key TOKENBUCKET 10 1 1000 AT {T0}"))[2], 6);
    // Another limit joins it: both are kept, and the single one's command is of the wrong type.
    let (_, each) = multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 2000"));
    assert_eq!(each, [[0, 5, 4, 0, 2000]]);
    assert_eq!(error(con, "RL.TOKENBUCKET key 10 1 1000"), WRONG_TYPE);
    assert_eq!(error(con, "RL.PEEK key FIXEDWINDOW 5 2000"), WRONG_TYPE);
    assert_eq!(error(con, "RL.REFUND key FIXEDWINDOW 5 2000"), WRONG_TYPE);
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} LIMIT TOKENBUCKET 10 1 1000"));
    assert_eq!(each, [[0, 10, 6, 0, 4000]]);
    // The bucket that a call does not name stays as it is until it is as good as new, and its expiry.
    let later = T0 + 3 * SECOND;
    let (_, each) = multi(con, &format!("RL.MULTI 1 key AT {later} LIMIT FIXEDWINDOW 5 2000"));
    assert_eq!(each, [[0, 5, 4, 0, 2000]]);
    let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {later} LIMIT TOKENBUCKET 10 1 1000"));
    assert_eq!(each, [[0, 10, 9, 0, 1000]]);
    // When it has faded, the next charge leaves the window alone: by then also the slack behind the bucket's end.
    let late = T0 + 200 * SECOND;
    multi(con, &format!("RL.MULTI 1 key AT {late} LIMIT FIXEDWINDOW 5 2000"));
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 5 2000 AT {late}"))[2], 3);
    assert_ne!(text(con, "PEXPIRETIME key"), "-1");
    // Whatever instant is asked for, the key lives as long as its limits last.
    multi(con, &format!("RL.MULTI 1 old AT {T0} LIMIT GCRA 9 1 60000 LIMIT FIXEDWINDOW 5 3600000"));
    let left: i64 = text(con, "PTTL old").parse().unwrap();
    assert!((3_590_000..3_700_000).contains(&left), "{left} ms");
}

#[test]
fn limits_are_known_by_their_length_of_time() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let peek = |con: &mut Connection, limits: &str| {
        let (_, each) = multi(con, &format!("RL.MULTIPEEK 1 key AT {T0} {limits}"));
        each.iter().map(|five| five[2]).collect::<Vec<_>>()
    };
    // A sliding window knows its own: another one is another limit.
    ints(con, &format!("RL.SLIDINGWINDOW key 10 60000 COST 7 AT {T0}"));
    let (_, each) = multi(
        con,
        &format!("RL.MULTI 1 key AT {T0} LIMIT SLIDINGWINDOW 5 1000 LIMIT SLIDINGWINDOW 100 3600000"),
    );
    assert_eq!(each, [[0, 5, 4, 0, 2000], [0, 100, 99, 0, 7_200_000]]);
    assert_eq!(peek(con, "LIMIT SLIDINGWINDOW 10 60000"), [3]);
    // Another number under the same length is the same limit.
    assert_eq!(peek(con, "LIMIT SLIDINGWINDOW 20 60000 LIMIT SLIDINGWINDOW 4 1000"), [13, 3]);
    // Changing, adding and dropping limits keeps the others.
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT SLIDINGWINDOW 12 60000 LIMIT GCRA 4 1 1000"));
    assert_eq!(
        peek(con, "LIMIT SLIDINGWINDOW 5 1000 LIMIT SLIDINGWINDOW 10 60000 LIMIT SLIDINGWINDOW 100 3600000"),
        [4, 2, 99]
    );
    // A bucket does not know its period while it stands alone: it is the longest that is named.
    text(con, "DEL key");
    ints(con, &format!("RL.GCRA key 9 10 60000 COST 5 AT {T0}"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1000 LIMIT GCRA 9 10 60000"), [10, 5]);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 1000 LIMIT GCRA 9 10 60000"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 1000 LIMIT GCRA 9 10 60000"), [9, 4]);
    // And while another limit is charged that it has nothing to do with, it waits to be named.
    text(con, "DEL key");
    ints(con, &format!("RL.GCRA key 9 10 60000 COST 5 AT {T0}"));
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 1000"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 60000 LIMIT FIXEDWINDOW 5 1000"), [5, 4]);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 60000"));
    assert_eq!(peek(con, "LIMIT GCRA 9 10 60000 LIMIT FIXEDWINDOW 5 1000"), [4, 4]);
}

#[test]
fn a_key_holds_at_most_64_limits_and_forgets_those_that_faded() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = |from: u64, to: u64| {
        (from..to).map(|i| format!("LIMIT GCRA 0 1 {}", 1000 * (i + 1))).collect::<Vec<_>>().join(" ")
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
        (0..64).map(|i| format!(" LIMIT FIXEDWINDOW 1 {}", 100_000 + i)).collect::<Vec<_>>().concat();
    ints(con, "RL.GCRA key 1 1 1000000");
    let before = dump(con, "key");
    assert_eq!(error(con, &format!("RL.MULTI 1 key{limits}")), "ERR at most 64 limits a key");
    assert_eq!(dump(con, "key"), before);
    // 64 that are there, and one of them is known by its kind only until it is named.
    let limits = limits.replace("LIMIT FIXEDWINDOW 1 100000", "");
    assert_eq!(multi(con, &format!("RL.MULTI 1 key{limits}")).0[0], 0);
    assert_eq!(multi(con, "RL.MULTI 1 key LIMIT GCRA 1 1 1000000").1[0][..3], [0, 2, 0]);
    // What is given back adds nothing.
    multi(con, "RL.MULTIREFUND 1 key LIMIT TOKENBUCKET 1 1 1000");
}
