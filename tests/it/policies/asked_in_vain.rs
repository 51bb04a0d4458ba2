//! Calls that a policy does not allow, by their exact errors; and what changes then: nothing, on any key.

use redis::Connection;

use super::{set, stats, windows};
use crate::support::harmless::{harmless_error, words};
use crate::support::{Server, T0, WRONG_TYPE, call_bytes, error_line, ints, kind_of_error, multi, text};

/// The error of a line that changes nothing.
fn error(con: &mut Connection, line: &str) -> String {
    harmless_error(con, &words(line))
}

#[test]
fn a_policy_that_is_missing_is_named_in_the_error() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for command in ["RL.ASK", "RL.ASKPEEK", "RL.ASKREFUND"] {
        assert_eq!(error(con, &format!("{command} user:1 api")), "ERR no such policy 'api'");
        assert_eq!(error(con, &format!("{command} user:1 api KEYS user:2")), "ERR no such policy 'api'");
    }
    assert_eq!(error(con, "RL.ASKSETTLE user:1 api id COST 1"), "ERR no such policy 'api'");
    set(con, "api LIMIT GCRA 9 10 1s");
    assert_eq!(ints(con, &format!("RL.ASK user:1 api AT {T0}")), [0, 10, 9, 0, 100, 1]);
    text(con, "RL.POLICY DEL api");
    assert_eq!(error(con, "RL.ASK user:1 api"), "ERR no such policy 'api'");
    // Any bytes may be asked for.
    let long = [b'x'; 100];
    for (name, shown) in [(&b""[..], ""), (b"a\r\n'\xff", r"a\r\n\'\xff"), (&long, &("x".repeat(64) + "..."))]
    {
        let told = error_line(&call_bytes(con, &[b"RL.ASK", b"user:1", name]).unwrap_err());
        assert_eq!(told, format!("ERR no such policy '{shown}'"));
    }
}

#[test]
fn a_policy_with_leases_needs_an_id_and_others_ignore_it() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "jobs LIMIT GCRA 9 10 1h LIMIT CONCURRENT 2 1h LIMIT CONCURRENT 1 1h SHADOW");
    set(con, "tried LIMIT CONCURRENT 2 1h SHADOW");
    for name in ["jobs", "tried"] {
        let needs = format!("ERR policy '{name}' needs an ID");
        for call in
            ["RL.ASK k NAME", "RL.ASK k NAME COST 0 FULL", "RL.ASKPEEK k NAME", "RL.ASK k NAME HOLD ID 1h"]
        {
            assert_eq!(error(con, &call.replace("NAME", name)), needs, "{call}");
        }
    }
    for (id, free) in [("a", 1), ("b", 0), ("a", 0)] {
        let (six, pairs) = multi(con, &format!("RL.ASK k jobs FULL ID {id} AT {T0}"));
        assert_eq!((six[0], pairs[1][2]), (0, free), "{id}");
    }
    assert_eq!(ints(con, &format!("RL.ASK k jobs ID c AT {T0}"))[..4], [1, 2, 0, 3_600_000]);
    // It is the lease's id: RL.RELEASE knows it.
    assert_eq!(ints(con, &format!("RL.RELEASE k a AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.ASK k jobs ID c AT {T0}"))[0], 0);
    // A settlement only looks at leases, so it may have none.
    let settled = ints(con, &format!("RL.ASKSETTLE k jobs held COST 1 AT {T0}"));
    assert_eq!(ints(con, &format!("RL.ASKSETTLE k jobs held COST 1 ID nobody AT {T0}")), settled);
    // Where there are no leases, an id says nothing.
    set(con, "api LIMIT GCRA 9 10 1h");
    let with = ints(con, &format!("RL.ASK with api ID x AT {T0}"));
    assert_eq!(with, ints(con, &format!("RL.ASK without api AT {T0}")));
    assert_eq!(ints(con, &format!("RL.ASKREFUND with api ID y AT {T0}"))[..3], [0, 10, 10]);
}

#[test]
fn a_policy_needs_the_keys_that_its_limits_name_and_takes_more() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "two LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 100 1h ON 2");
    set(con, "five LIMIT UNIFORM 1s ON 5");
    for (call, keys, got) in [("two", 2, 1), ("five", 5, 1), ("five KEYS b", 5, 2), ("five KEYS b c d", 5, 4)]
    {
        let name = call.split(' ').next().unwrap();
        let expected = format!("ERR policy '{name}' needs {keys} keys; got {got}");
        for command in ["RL.ASK", "RL.ASKPEEK", "RL.ASKREFUND"] {
            assert_eq!(error(con, &format!("{command} a {call}")), expected, "{command} {call}");
        }
    }
    assert_eq!(error(con, "RL.ASKSETTLE a two held COST 1"), "ERR policy 'two' needs 2 keys; got 1");
    assert_eq!(ints(con, &format!("RL.ASK a two AT {T0} KEYS b")), [0, 10, 9, 0, 3_600_000, 1]);
    // Limits without ON are on all keys, however many.
    let (six, pairs) = multi(con, &format!("RL.ASK a two FULL AT {T0} KEYS b c"));
    assert_eq!(six, [0, 10, 8, 0, 3_600_000, 1]);
    let left: Vec<i64> = pairs.iter().map(|pair| pair[2]).collect();
    assert_eq!(left, [8, 8, 9, 98]);
    assert_eq!(ints(con, &format!("RL.ASK a five AT {T0} KEYS b c d e f g"))[5], 1);
}

/// Equal keys are looked for by comparing each with each, so a call of thousands must be refused before.
#[test]
fn more_keys_than_pairs_are_an_error() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s ON 1");
    let keys = |count: usize| (1..count).map(|key| format!(" k{key}")).collect::<Vec<_>>().concat();
    assert_eq!(ints(con, &format!("RL.ASK a api AT {T0} KEYS{}", keys(64)))[0], 0);
    for count in [65, 50_000] {
        for command in ["RL.ASK", "RL.ASKPEEK", "RL.ASKREFUND"] {
            let told = error(con, &format!("{command} a api AT {T0} KEYS{}", keys(count)));
            assert_eq!(told, "ERR at most 64 pairs of a limit and a key", "{count} keys");
        }
    }
}

#[test]
fn what_one_of_the_limits_forbids_is_refused_with_its_name() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    set(con, "jobs LIMIT GCRA 9 10 1s LIMIT CONCURRENT 5 1h");
    set(con, "smooth LIMIT SMOOTH 10 1s LIMIT GCRA 9 10 1s");
    set(con, "tried LIMIT GCRA 9 10 1s LIMIT CONCURRENT 5 1h SHADOW");
    set(con, "punished LIMIT GCRA 9 10 1s LIMIT PENALTY 3 1m 1h");
    for (name, limiter) in [("jobs", "CONCURRENT"), ("smooth", "SMOOTH"), ("tried", "CONCURRENT")] {
        let not_for = |word| format!("ERR policy '{name}' has a {limiter} limit; {word} is not for it");
        assert_eq!(error(con, &format!("RL.ASK k {name} ID x FORCE")), not_for("FORCE"));
        assert_eq!(error(con, &format!("RL.ASK k {name} ID x FORCE COST 0")), not_for("FORCE"));
        assert_eq!(error(con, &format!("RL.ASKREFUND k {name} ID x")), not_for("RL.ASKREFUND"));
        assert_eq!(error(con, &format!("RL.ASKREFUND k {name}")), not_for("RL.ASKREFUND"));
    }
    // Penalties allow both.
    assert_eq!(ints(con, &format!("RL.ASK k punished FORCE COST 15 AT {T0}"))[..3], [0, 10, 0]);
    assert_eq!(ints(con, &format!("RL.ASKREFUND k punished COST 15 AT {T0}"))[..3], [0, 10, 10]);
}

#[test]
fn a_hold_needs_a_limit_that_can_be_held() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (number, limits) in [
        "LIMIT CONCURRENT 5 1h",
        "LIMIT UNIFORM 1s",
        "LIMIT SMOOTH 10 1s",
        "LIMIT PENALTY 3 1m 1h",
        "LIMIT GCRA 9 10 1s SHADOW",
        "SHADOW LIMIT GCRA 9 10 1s",
        "LIMIT GCRA 9 10 1s COST 0",
        "LIMIT GCRA 9 10 1s COST 0 LIMIT CONCURRENT 5 1h LIMIT FIXEDWINDOW 10 1m SHADOW",
    ]
    .iter()
    .enumerate()
    {
        set(con, &format!("policy{number} {limits}"));
        let told = error(con, &format!("RL.ASK k policy{number} ID x HOLD r1 5m"));
        assert_eq!(told, format!("ERR policy 'policy{number}' has no limit that can be held"), "{limits}");
    }
    // What the call charges can be held, and a call of no cost charges nothing.
    set(con, "api LIMIT GCRA 9 10 1s");
    assert_eq!(error(con, "RL.ASK k api HOLD r1 5m COST 0"), "ERR syntax error: HOLD needs a COST above 0");
    assert_eq!(ints(con, &format!("RL.ASK k api HOLD r1 5m COST 4 AT {T0}")), [0, 10, 6, 0, 400, 1]);
    assert_eq!(ints(con, &format!("RL.ASKSETTLE k api r1 COST 1 AT {T0}")), [0, 10, 9, 0, 100, 1]);
    assert_eq!(ints(con, &format!("RL.ASKSETTLE k api r1 COST 9 AT {T0}")), [0, 10, 9, 0, 100, 0]);
    // A hold remembers 16 limits of a key.
    set(con, &format!("many {}", windows(17)));
    assert_eq!(error(con, "RL.ASK new many HOLD r1 5m"), "ERR too many holds");
}

#[test]
fn a_key_of_another_type_is_an_error_and_no_key_changes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    set(con, "more LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 9 1h");
    text(con, "SET text value");
    text(con, "RL.SHED shed 0.9");
    ints(con, &format!("RL.ASK used more AT {T0} HOLD r1 1h"));
    for name in ["api", "more"] {
        for other in ["text", "shed"] {
            for (first, others) in [
                (other, String::new()),
                (other, "KEYS new used".into()),
                ("new", format!("KEYS {other} used")),
                ("used", format!("KEYS new {other}")),
            ] {
                for line in [
                    format!("RL.ASK {first} {name} {others}"),
                    format!("RL.ASK {first} {name} COST 0 {others}"),
                    format!("RL.ASK {first} {name} HOLD r2 1h {others}"),
                    format!("RL.ASK {first} {name} FORCE {others}"),
                    format!("RL.ASKPEEK {first} {name} {others}"),
                    format!("RL.ASKREFUND {first} {name} {others}"),
                    format!("RL.ASKSETTLE {first} {name} r1 COST 1 {others}"),
                ] {
                    assert_eq!(kind_of_error(error(con, &line)), WRONG_TYPE, "{line}");
                }
            }
        }
        // Each of them is counted.
        assert_eq!(stats(con, name)[3], 2 * 4 * 7);
    }
    assert_eq!(text(con, "EXISTS new"), "0");
}

#[test]
fn a_debt_that_would_take_too_long_is_the_error_of_rl_multi() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "slow LIMIT GCRA 9 1 1h");
    set(con, "more LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 9 1 1h");
    let debt = "FORCE COST 9007199254740991";
    for (name, limits) in
        [("slow", "LIMIT GCRA 9 1 1h"), ("more", "LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 9 1 1h")]
    {
        for (keys, behind) in [("1 k", ""), ("2 k l", "KEYS l")] {
            let told = error(con, &format!("RL.MULTI {keys} {debt} {limits}"));
            assert!(told.starts_with("ERR limit would take too long to refill (LIMIT "), "{told}");
            for full in ["", "FULL"] {
                assert_eq!(
                    error(con, &format!("RL.ASK k {name} {debt} {full} {behind}")),
                    told,
                    "{name} {full}"
                );
            }
        }
    }
}

#[test]
fn a_full_memory_refuses_what_charges_and_nothing_else() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h");
    ints(con, &format!("RL.ASK k api COST 4 HOLD r1 1h AT {T0}"));
    text(con, "CONFIG SET maxmemory 1");
    let told = error(con, "RL.ASK k api");
    assert_eq!(told, "OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(error(con, "RL.MULTI 1 k LIMIT GCRA 9 10 1h"), told);
    assert_eq!(ints(con, &format!("RL.ASKPEEK k api AT {T0}"))[..3], [0, 10, 6]);
    assert_eq!(ints(con, &format!("RL.ASKSETTLE k api r1 COST 2 AT {T0}"))[..3], [0, 10, 8]);
    assert_eq!(ints(con, &format!("RL.ASKREFUND k api AT {T0}"))[..3], [0, 10, 9]);
    assert_eq!(error(con, "RL.POLICY SET api LIMIT GCRA 9 10 1m"), told);
    assert_eq!(text(con, "RL.POLICY DEL api"), "1");
}
