//! `PARTIAL`, `FORCE` and `RESERVE`: what a limiter does with a request that does not fit.

use crate::support::debt::{LIMITERS, line};
use crate::support::{Server, T0, call, error, ints, text};

#[test]
fn a_part_is_what_is_there_and_the_sixth_integer_says_how_much() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for limiter in LIMITERS {
        text(con, "DEL key");
        let first = ints(con, &line(limiter, "key", "PARTIAL COST 3"));
        assert_eq!((first[0], first[2], first[5]), (0, 2, 3), "{limiter}");
        let second = ints(con, &line(limiter, "key", "COST 7 PARTIAL"));
        assert_eq!((second[0], second[2], second[5]), (0, 0, 2), "{limiter}");
        let dump = call(con, &["DUMP", "key"]).unwrap();
        let third = ints(con, &line(limiter, "key", "PARTIAL COST 7"));
        assert_eq!((third[0], third[2], third[5]), (1, 0, 0), "{limiter}");
        // The retry is that of the least.
        assert_eq!(third[..5], ints(con, &line(limiter, "key", ""))[..5], "{limiter}");
        assert_eq!(call(con, &["DUMP", "key"]).unwrap(), dump);
    }
}

#[test]
fn whoever_is_forced_is_admitted_into_debt() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for limiter in LIMITERS {
        text(con, "DEL key");
        let forced = ints(con, &line(limiter, "key", "FORCE COST 8"));
        assert_eq!(forced[..4], [0, 5, 0, 0], "{limiter}");
        assert!(forced[4] >= 8000, "{limiter}: the debt is part of the reset, or the window still runs");
        assert_eq!(ints(con, &line(limiter, "key", ""))[0], 1, "{limiter}");
        assert_eq!(ints(con, &line(limiter, "key", "FORCE"))[..4], [0, 5, 0, 0], "{limiter}");
    }
    // 8 of 5: in debt by 3, so a request fits after 4 s.
    text(con, "DEL key");
    ints(con, &line("TOKENBUCKET 5 1 1s", "key", "FORCE COST 8"));
    assert_eq!(ints(con, &line("TOKENBUCKET 5 1 1s", "key", "")), [1, 5, 0, 4000, 8000]);
}

#[test]
fn bookings_wait_for_one_another() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for wait in [0, 10_000, 20_000] {
        let reply = ints(con, &format!("RL.UNIFORM gate 10s RESERVE AT {T0}"));
        assert_eq!(reply, [0, 1, 0, wait, wait + 10_000]);
    }
    ints(con, &line("TOKENBUCKET 5 1 1s", "tb", "COST 5"));
    assert_eq!(ints(con, &line("TOKENBUCKET 5 1 1s", "tb", "RESERVE COST 2"))[..4], [0, 5, 0, 2000]);
    // Longer than the caller would wait: refused, and told how much longer.
    let dump = call(con, &["DUMP", "tb"]).unwrap();
    assert_eq!(ints(con, &line("TOKENBUCKET 5 1 1s", "tb", "RESERVE MAXWAIT 2500ms"))[..4], [1, 5, 0, 500]);
    assert_eq!(call(con, &["DUMP", "tb"]).unwrap(), dump);
    assert_eq!(ints(con, &line("TOKENBUCKET 5 1 1s", "tb", "MAXWAIT 3s RESERVE"))[..4], [0, 5, 0, 3000]);
    assert_eq!(ints(con, &line("TOKENBUCKET 5 1 1s", "tb", "RESERVE COST 6"))[3], -1);
    // A caller whose clock lags by half a second waits that much longer, and MAXWAIT counts it.
    ints(con, &format!("RL.GCRA lag 0 1 1s AT {}", T0 + 500_000));
    assert_eq!(ints(con, &format!("RL.GCRA lag 0 1 1s RESERVE MAXWAIT 1200ms AT {T0}"))[..4], [1, 1, 0, 300]);
    assert_eq!(
        ints(con, &format!("RL.GCRA lag 0 1 1s RESERVE MAXWAIT 1500ms AT {T0}"))[..4],
        [0, 1, 0, 1500]
    );
}

#[test]
fn a_debt_or_booking_of_over_a_century_is_an_error_and_changes_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let year = 31_536_000_000u64;
    for limiter in [
        format!("RL.TOKENBUCKET key 60 1 {year}ms"),
        format!("RL.TOKENBUCKET key 60 1 {year}ms BATCH"),
        format!("RL.LEAKYBUCKET key 60 1 {year}ms"),
        format!("RL.GCRA key 59 1 {year}ms"),
    ] {
        text(con, "DEL key");
        for times in 1..=11 {
            assert_eq!(ints(con, &format!("{limiter} FORCE COST 9 AT {T0}"))[0], 0, "{limiter}: {times}");
        }
        let dump = call(con, &["DUMP", "key"]).unwrap();
        let refused = error(con, &format!("{limiter} FORCE COST 2 AT {T0}"));
        assert_eq!(refused, "ERR limit would take too long to refill", "{limiter}");
        assert_eq!(call(con, &["DUMP", "key"]).unwrap(), dump);
        // To the century exactly, and no further.
        assert_eq!(ints(con, &format!("{limiter} FORCE AT {T0}"))[0], 0, "{limiter}");
        let refused = error(con, &format!("{limiter} FORCE AT {T0}"));
        assert_eq!(refused, "ERR limit would take too long to refill", "{limiter}");
    }
}
