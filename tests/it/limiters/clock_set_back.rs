//! A clock that is set back grants nothing, and no caller waits until the old time comes again.

use redis::Connection;

use crate::support::{AOF_AT_ONCE, SECOND, Server, T0, call, dump, error, info, ints, multi, text};

/// In milliseconds.
const YEAR: u64 = 365 * 86_400_000;
/// The first instant that may be asked for, in microseconds.
const EARLY: u64 = 1_000_000_000_000_000;

#[test]
fn no_time_passes_while_the_clock_is_behind_the_last_charge() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // 10 per 10 s: one a second. Nothing drips in while the clock catches up, which the waits tell.
    ints(con, &format!("RL.TOKENBUCKET key 10 10 10s COST 10 AT {T0}"));
    for (back, lag) in [(1, 1), (SECOND, 1000), (10 * SECOND, 10_000)] {
        let at = T0 - back;
        let reply = ints(con, &format!("RL.TOKENBUCKET key 10 10 10s AT {at}"));
        assert_eq!(reply, [1, 10, 0, 1000 + lag, 10_000 + lag], "{back} us back");
        assert_eq!(ints(con, &format!("RL.PEEK key TOKENBUCKET 10 10 10s AT {at}")), reply);
        // Who sleeps that long is not a millisecond early, and need not sleep longer.
        let then = at + (1000 + lag).unsigned_abs() * 1000;
        assert_eq!(ints(con, &format!("RL.PEEK key TOKENBUCKET 10 10 10s AT {then}"))[0], 0);
        assert_eq!(ints(con, &format!("RL.PEEK key TOKENBUCKET 10 10 10s AT {}", then - 1000))[0], 1);
    }
    // An admitted call counts as of the last charge, and does not turn time back for the next one.
    ints(con, &format!("RL.GCRA gcra 9 10 10s COST 5 AT {T0}"));
    assert_eq!(ints(con, &format!("RL.GCRA gcra 9 10 10s AT {}", T0 - SECOND)), [0, 10, 4, 0, 7000]);
    assert_eq!(ints(con, &format!("RL.GCRA gcra 9 10 10s AT {}", T0 + SECOND)), [0, 10, 4, 0, 6000]);
}

#[test]
fn a_clock_set_back_further_than_the_reset_moves_the_state_even_by_a_refusal() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    // The year 2096.
    let future = 4_000_000_000 * SECOND;
    for (charge, ask, reply) in [
        ("RL.TOKENBUCKET tb 10 10 10s COST 10", "RL.TOKENBUCKET tb 10 10 10s", [1, 10, 0, 1000, 10_000]),
        ("RL.GCRA gcra 9 10 10s COST 10", "RL.GCRA gcra 9 10 10s", [1, 10, 0, 1000, 10_000]),
        (
            "RL.TOKENBUCKET batch 10 10 10s BATCH COST 10",
            "RL.TOKENBUCKET batch 10 10 10s BATCH",
            [1, 10, 0, 10_000, 10_000],
        ),
        // What was counted is in now's window, or bucket.
        ("RL.SLIDINGWINDOW sw 10 10s COST 10", "RL.SLIDINGWINDOW sw 10 10s", [1, 10, 0, 11_000, 20_000]),
        (
            "RL.SLIDINGWINDOW swp 10 10s PRECISION 1s COST 10",
            "RL.SLIDINGWINDOW swp 10 10s PRECISION 1s",
            [1, 10, 0, 10_000, 10_000],
        ),
        (
            "RL.LEAKYBUCKET water 10 10 10s COST 10",
            "RL.LEAKYBUCKET water 10 10 10s",
            [1, 10, 0, 1000, 10_000],
        ),
        ("RL.FIXEDWINDOW window 10 10s COST 10", "RL.FIXEDWINDOW window 10 10s", [1, 10, 0, 10_000, 10_000]),
        (
            "RL.FIXEDWINDOW aligned 10 10s ALIGNED COST 10",
            "RL.FIXEDWINDOW aligned 10 10s ALIGNED",
            [1, 10, 0, 10_000, 10_000],
        ),
        // A quarter of an hour is left in now's window.
        (
            "RL.CALENDAR page 10 HOUR TZ +05:45 COST 10",
            "RL.CALENDAR page 10 HOUR TZ +05:45",
            [1, 10, 0, 900_000, 900_000],
        ),
        ("RL.PENALTY banned 2 10s 10s COST 2", "RL.PENALTY banned 2 10s 10s", [1, 2, 0, 10_000, 10_000]),
        ("RL.UNIFORM gate 10s", "RL.UNIFORM gate 10s", [1, 1, 0, 10_000, 10_000]),
        ("RL.SLIDINGLOG log 10 10s COST 10", "RL.SLIDINGLOG log 10 10s", [1, 10, 0, 10_000, 10_000]),
        ("RL.CONCURRENT lease 1 10s a", "RL.CONCURRENT lease 1 10s b", [1, 1, 0, 10_000, 10_000]),
    ] {
        let key = ask.split(' ').nth(1).unwrap();
        let size = |con: &mut redis::Connection| info(con, "persistence", "aof_current_size");
        ints(con, &format!("{charge} AT {future}"));
        let dump = call(con, &["DUMP", key]).unwrap();
        let written = size(con);

        // A probe and a look answer as if the state were moved, and leave it where it is.
        let (command, rest) = ask.split_once(' ').unwrap();
        let peek = format!("RL.PEEK {key} {} {}", &command[3..], rest.split_once(' ').unwrap().1);
        assert_eq!(ints(con, &format!("{peek} AT {T0}")), reply, "{peek}");
        assert_eq!(ints(con, &format!("{ask} COST 0 AT {T0}"))[4], reply[4]);
        assert_eq!(call(con, &["DUMP", key]).unwrap(), dump);
        assert_eq!(size(con), written);

        assert_eq!(ints(con, &format!("{ask} AT {T0}")), reply, "{ask}");
        assert_ne!(call(con, &["DUMP", key]).unwrap(), dump, "the repair is written");
        assert_ne!(size(con), written, "and replicated");
        // The deadline, which the wrong clock had set, was set anew: expiry goes by the server's clock or AT.
        let expires: u64 = text(con, &format!("PEXPIRETIME {key}")).parse().unwrap();
        assert!(expires < future / 1000 && expires > T0 / 1000, "{key} expires at {expires}");
        // From there time runs as ever.
        let later = T0 + reply[3].unsigned_abs() * 1000;
        assert_eq!(ints(con, &format!("{ask} AT {}", later - 1))[..2], [1, reply[1]], "{ask}");
        assert_eq!(ints(con, &format!("{ask} AT {later}"))[0], 0, "{ask}");
    }
}

#[test]
fn an_error_leaves_a_state_ahead_of_a_clock_that_was_set_back_as_it_is() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // The year 2096, and more than a hundred years of debt; sixty years are less than the clock was set back by.
    let (future, most, sixty_years) = (4_000_000_000 * SECOND, (1u64 << 53) - 1, 60 * YEAR);
    for line in [
        "RL.TOKENBUCKET tb 9 1 1h",
        "RL.TOKENBUCKET batch 9 1 1h BATCH",
        "RL.LEAKYBUCKET water 9 1 1h",
        &format!("RL.UNIFORM gate {sixty_years}ms"),
        "RL.SMOOTH smooth 1 1h",
    ] {
        ints(con, &format!("{line} AT {future}"));
    }
    multi(con, &format!("RL.MULTI 1 all AT {future} LIMIT GCRA 9 1 1h LIMIT FIXEDWINDOW 9 1h"));
    let look = |con: &mut Connection| {
        ["tb", "batch", "water", "gate", "smooth", "all"]
            .map(|key| (dump(con, key), text(con, &format!("PEXPIRETIME {key}"))))
    };
    let before = look(con);
    for line in [
        format!("RL.TOKENBUCKET tb 9 1 1h FORCE COST {most} AT {T0}"),
        format!("RL.TOKENBUCKET batch 9 1 1h BATCH FORCE COST {most} AT {T0}"),
        format!("RL.LEAKYBUCKET water 9 1 1h FORCE COST {most} AT {T0}"),
        format!("RL.UNIFORM gate {sixty_years}ms FORCE AT {T0}"),
        format!("RL.UNIFORM gate {sixty_years}ms RESERVE AT {T0}"),
        format!("RL.SMOOTH smooth 1 1h COST {most} AT {T0}"),
        format!("RL.MULTI 1 all AT {T0} FORCE LIMIT FIXEDWINDOW 9 1h COST 1 LIMIT GCRA 9 1 1h COST {most}"),
    ] {
        let limit = if line.starts_with("RL.MULTI") { " (LIMIT 2)" } else { "" };
        assert_eq!(error(con, &line), format!("ERR limit would take too long to refill{limit}"), "{line}");
        assert_eq!(look(con), before, "{line}");
    }
}

/// Where a debt that is worked off already meets a century that it would take.
#[test]
fn an_error_leaves_a_batch_of_decades_as_it_is() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let bucket = format!("RL.TOKENBUCKET b 2 2 {}ms BATCH", 66 * YEAR);
    ints(con, &format!("{bucket} AT {EARLY}"));
    // 65 years later.
    ints(con, &format!("{bucket} AT 3049840000000000"));
    let before = (dump(con, "b"), text(con, "PEXPIRETIME b"));
    let line = format!("{bucket} FORCE COST 1 AT {EARLY}");
    if call(con, &line.split(' ').collect::<Vec<_>>()).is_err() {
        assert_eq!((dump(con, "b"), text(con, "PEXPIRETIME b")), before, "{line}");
    }
}

#[test]
fn a_gate_that_was_given_back_ahead_of_the_clock_is_as_a_probe_says() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let interval = 45 * YEAR;
    ints(con, &format!("RL.UNIFORM u {interval}ms AT {EARLY}"));
    ints(con, &format!("RL.UNIFORM u {interval}ms FORCE AT {EARLY}"));
    ints(con, &format!("RL.REFUND u UNIFORM {interval}ms AT {}", EARLY + 40 * YEAR * 1000));
    let told = ints(con, &format!("RL.PEEK u UNIFORM {interval}ms AT {EARLY}"));
    let done = ints(con, &format!("RL.UNIFORM u {interval}ms AT {EARLY}"));
    assert_eq!([done[0], done[3]], [told[0], told[3]], "told {told:?}, done {done:?}");
}

#[test]
fn a_step_back_of_exactly_the_reset_is_no_setting_back() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, &format!("RL.GCRA key 9 10 10s COST 10 AT {T0}"));
    let at = T0 - 10 * SECOND;
    assert_eq!(ints(con, &format!("RL.GCRA key 9 10 10s AT {at}"))[3], 11_000);
    assert_eq!(ints(con, &format!("RL.GCRA key 9 10 10s AT {}", T0 + SECOND))[0], 0, "still of the old time");
    ints(con, &format!("RL.GCRA other 9 10 10s COST 10 AT {T0}"));
    ints(con, &format!("RL.GCRA other 9 10 10s AT {}", at - 1));
    assert_eq!(ints(con, &format!("RL.GCRA other 9 10 10s AT {}", at - 1 + SECOND))[0], 0, "moved");
}

#[test]
fn a_lease_moves_with_a_clock_that_was_set_back_by_its_release_or_renewal_too() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let future = T0 + 3600 * SECOND;
    for id in ["a", "b"] {
        ints(con, &format!("RL.CONCURRENT key 2 10s {id} AT {future}"));
    }
    assert_eq!(ints(con, &format!("RL.RENEW key 5s nobody AT {T0}")), [0]);
    assert_eq!(ints(con, &format!("RL.CONCURRENT key 2 10s c AT {}", T0 + SECOND)), [1, 2, 0, 9000, 9000]);
    assert_eq!(ints(con, &format!("RL.RENEW key 5s a AT {}", T0 + 9 * SECOND)), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE key b AT {}", T0 + 10 * SECOND)), [0], "it has ended");
    assert_eq!(ints(con, &format!("RL.RELEASE key a AT {}", T0 + 10 * SECOND)), [1]);
    assert_eq!(text(con, "EXISTS key"), "0");
}

#[test]
fn the_servers_clock_is_used_where_no_other_is_named() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.TOKENBUCKET key 1 1 300ms");
    let reply = ints(con, "RL.TOKENBUCKET key 1 1 300ms");
    // On a machine that slept in between it was admitted; else it comes when it says.
    if reply[0] == 1 {
        assert!((1..=300).contains(&reply[3]), "{reply:?}");
        std::thread::sleep(std::time::Duration::from_millis(reply[3].unsigned_abs()));
        assert_eq!(ints(con, "RL.PEEK key TOKENBUCKET 1 1 300ms")[0], 0);
    }
}
