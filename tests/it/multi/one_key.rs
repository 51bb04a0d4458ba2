//! Several limits under one key: how they come together, are told apart, fade, part, and agree on every copy.

use redis::{Connection, Value};

use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, WRONG_TYPE, call, call_bytes, dump, error, error_line, ints,
    last_payload, multi, rewrite_aof, simple, sync, text,
};

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
fn copies_agree_whatever_joins_fades_and_parts() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let mut seed = 99u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    // Ahead, so that no key expires meanwhile.
    let now: u64 = text(con, "TIME").trim_start_matches('[').split(',').next().unwrap().parse().unwrap();
    let start = (now + 3600) * SECOND;
    let (mut admitted, mut refused) = (0, 0);
    for step in 0..3000 {
        let at = if random(40) == 0 { start - random(900 * SECOND) } else { start + step * 20_000 };
        let key = random(3);
        let named: Vec<String> = [
            "LIMIT GCRA 5 1 300".to_string(),
            "LIMIT GCRA 20 10 4000".to_string(),
            "LIMIT TOKENBUCKET 9 3 1000 COST 2".to_string(),
            "LIMIT SLIDINGWINDOW 12 2000".to_string(),
            "LIMIT SLIDINGWINDOW 30 9000 PRECISION 1000".to_string(),
            format!("LIMIT CONCURRENT 4 1500 id{}", random(6)),
            "LIMIT SLIDINGLOG 9 1000 GAP 10".to_string(),
            "LIMIT UNIFORM 30 ON 1".to_string(),
            "LIMIT FIXEDWINDOW 14 1500 ALIGNED".to_string(),
        ]
        .into_iter()
        .filter(|_| random(4) == 0)
        .collect();
        let named = if named.is_empty() { "LIMIT GCRA 5 1 300".into() } else { named.join(" ") };
        let line = match random(16) {
            0 => format!("RL.RELEASE key:{key} id{} AT {at}", random(6)),
            1 => format!("RL.RENEW key:{key} 900 id{} AT {at}", random(6)),
            2 | 3 if !named.contains("CONCURRENT") => {
                format!("RL.MULTIREFUND 2 key:{key} other:{key} COST 2 AT {at} {named}")
            }
            4 if !named.contains("CONCURRENT") => format!("RL.MULTI 1 key:{key} FORCE AT {at} {named}"),
            5 => format!("RL.MULTI 1 key:{key} AT {at} LIMIT GCRA 5 1 300"),
            _ => format!("RL.MULTI 2 key:{key} other:{key} AT {at} {named}"),
        };
        if line.starts_with("RL.MULTI ") {
            if multi(con, &line).0[0] == 0 { admitted += 1 } else { refused += 1 }
        } else if line.starts_with("RL.MULTIREFUND") {
            multi(con, &line);
        } else if let Err(error) = call(con, &line.split(' ').collect::<Vec<_>>()) {
            assert_eq!(error_line(&error), WRONG_TYPE, "{line}: another limit stands alone");
        }
        if step % 500 == 0 {
            sync(&server, &replica);
            assert_eq!(contents(&mut replica.connection()), contents(con), "after {step}: {line}");
        }
    }
    assert!(admitted > 300 && refused > 300, "{admitted} admitted, {refused} refused");
    sync(&server, &replica);
    let expected = contents(con);
    assert_eq!(expected.len(), 6);
    assert_eq!(contents(&mut replica.connection()), expected);
    drop(replica);
    server.restart();
    assert_eq!(contents(&mut server.connection()), expected);
    let con = &mut server.connection();
    rewrite_aof(con);
    server.restart();
    let con = &mut server.connection();
    // A rewrite keeps the expiries, which are the server's own.
    assert_eq!(contents(con), expected);
    for (key, dumped, _) in &expected {
        assert_eq!(text(con, &format!("COPY {key} {key}:copy")), "1");
        assert_eq!(&simple(&dump(con, &format!("{key}:copy"))), dumped);
    }
}

fn contents(con: &mut Connection) -> Vec<(String, String, String)> {
    let keys = text(con, "KEYS *");
    let mut keys: Vec<&str> = keys.trim_matches(['[', ']']).split(", ").collect();
    keys.sort_unstable();
    keys.into_iter()
        .map(|key| (key.to_string(), simple(&dump(con, key)), text(con, &format!("PEXPIRETIME {key}"))))
        .collect()
}

#[test]
fn a_clock_that_was_set_back_moves_each_limit() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 9 10 10000 LIMIT SLIDINGLOG 10 5000";
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
fn a_key_whose_expiry_somebody_else_set_joins_and_can_be_restored() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for (key, expiry) in
        [("far", "PEXPIREAT far 300000000000000"), ("never", "PERSIST never"), ("near", "PTTL near")]
    {
        ints(con, &format!("RL.GCRA {key} 5 1 3600000"));
        text(con, expiry);
        multi(con, &format!("RL.MULTI 1 {key} LIMIT FIXEDWINDOW 5 3600000"));
        let Value::BulkString(bytes) = dump(con, key) else { panic!("no dump") };
        call_bytes(con, &[b"RESTORE", b"again", b"0", &bytes, b"REPLACE"]).unwrap();
    }
    // Nor can a debt that a call leaves behind be too far away to be written down.
    multi(
        con,
        "RL.MULTI 1 owed FORCE COST 1099511627776 LIMIT TOKENBUCKET 10 1125899906842624 315360000000 LIMIT FIXEDWINDOW 10 3600000",
    );
    multi(con, "RL.MULTIREFUND 1 owed LIMIT TOKENBUCKET 10 1 315360000000");
    sync(&server, &replica);
    let expected = text(con, "DEBUG DIGEST");
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), expected);
    server.restart();
    assert_eq!(text(&mut server.connection(), "DEBUG DIGEST"), expected);
}

#[test]
fn a_limit_that_others_would_join_in_vain_still_stands_alone() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    // Its state is moved because the clock was set back, and the call is refused.
    ints(con, &format!("RL.FIXEDWINDOW key 1 1000 AT {}", T0 + 3600 * SECOND));
    let line = format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 1 1000 LIMIT GCRA 0 1 1000 COST 2");
    assert_eq!(multi(con, &line).0[0], 1);
    assert_eq!(ints(con, &format!("RL.FIXEDWINDOW key 1 1000 AT {T0}"))[0], 1);
    let expires: u64 = text(con, "PTTL key").parse().unwrap();
    assert!(expires < 120_000, "{expires} ms");
    sync(&server, &replica);
    assert_eq!(dump(&mut replica.connection(), "key"), dump(con, "key"));
}

#[test]
fn limits_that_a_refusal_has_moved_fade_in_the_time_they_were_moved_to() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 0 1 1000 LIMIT FIXEDWINDOW 1 1000";
    multi(con, &format!("RL.MULTI 1 key AT 4102444800000000 {limits}"));
    assert_eq!(multi(con, &format!("RL.MULTI 1 key {limits}")).0[0], 1);
    let expires: i64 = text(con, "PTTL key").parse().unwrap();
    assert!((0..120_000).contains(&expires), "{expires} ms");
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

#[test]
fn an_effect_that_parts_a_key_can_be_applied_twice() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for id in ["a", "b"] {
        multi(
            con,
            &format!("RL.MULTI 1 key AT {T0} LIMIT CONCURRENT 9 600000 {id} LIMIT FIXEDWINDOW 5 1000"),
        );
    }
    // The window has faded: the leases stand alone.
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT CONCURRENT 9 600000 c", T0 + 5 * SECOND));
    let stands_alone = "limiter, CONCURRENT, mode, leases, stored_leases, 3";
    assert!(text(con, "RL.INFO key").contains(stands_alone));
    let before = dump(con, "key");
    let payload = last_payload(&server);
    call_bytes(con, &[b"RL.APPLY", b"key", &payload]).unwrap();
    assert_eq!(dump(con, "key"), before);
    assert!(text(con, "RL.INFO key").contains(stands_alone));
}

#[test]
fn a_lagging_release_leaves_other_limits_alone() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let at = |seconds: u64| T0 + seconds * SECOND;
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT GCRA 0 1 5000 LIMIT CONCURRENT 5 60000 a", at(0)));
    assert_eq!(ints(con, &format!("RL.RENEW key 60000 a AT {}", at(10))), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {}", at(1))), [1]);
    assert_eq!(text(con, "EXISTS key"), "1");
    let (all, _) = multi(con, &format!("RL.MULTIPEEK 1 key AT {} LIMIT GCRA 0 1 5000", at(1)));
    assert_eq!(all, [1, 1, 0, 4000, 4000]);
}

#[test]
fn the_expiry_of_limits_held_together_is_that_of_the_latest() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let day = 86_400_000;
    let now: u64 = text(con, "TIME").trim_start_matches('[').split(',').next().unwrap().parse().unwrap();
    let ahead = (now + 86_400) * SECOND;
    let limits = format!("LIMIT FIXEDWINDOW 5 {day} LIMIT SLIDINGLOG 5 {day}");
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
    for make in ["RL.GCRA key 9 7 60000 COST 3", "RL.CONCURRENT key 9 60000 a"] {
        let dumps = ["PTTL key", "PERSIST key", "PEXPIRE key 1000000"].map(|expiry| {
            text(con, "DEL key");
            ints(con, &format!("{make} AT {T0}"));
            text(con, expiry);
            multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 5 1000"));
            dump(con, "key")
        });
        assert!(dumps.iter().all(|dump| *dump == dumps[0]), "{make}");
        // And it fades when it says, not when the key would have expired.
        multi(con, &format!("RL.MULTI 1 key AT {} LIMIT FIXEDWINDOW 5 1000", T0 + 60 * SECOND));
        assert!(text(con, "RL.INFO key").starts_with("[limiter, FIXEDWINDOW"), "{make}");
    }
}
