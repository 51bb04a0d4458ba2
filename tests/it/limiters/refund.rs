//! `RL.REFUND`: what was not used is given back.

use crate::support::debt::{LIMITERS, line};
use crate::support::{Server, T0, call, ints, multi, text};

#[test]
fn what_was_not_used_is_given_back_and_never_above_full() {
    let server = Server::start(&["--appendonly", "yes"]);
    let con = &mut server.connection();
    for limiter in LIMITERS {
        text(con, "DEL key");
        let refund = |options: &str| format!("RL.REFUND key {limiter} {options} AT {T0}");
        assert_eq!(ints(con, &refund("COST 3"))[..4], [0, 5, 5, 0], "{limiter}");
        assert_eq!(text(con, "EXISTS key"), "0", "a missing key stays missing");
        ints(con, &line(limiter, "key", "COST 4"));
        let back = ints(con, &refund("COST 3"));
        assert_eq!(back[..4], [0, 5, 4, 0], "{limiter}");
        assert_eq!(ints(con, &format!("RL.PEEK key {limiter} AT {T0}"))[..3], back[..3]);
        assert_eq!(ints(con, &refund("COST 100")), [0, 5, 5, 0, 0], "{limiter}");
        assert_eq!(text(con, "EXISTS key"), "0", "{limiter}: as good as new is gone");
    }
    // A cost of 0 is a look, and moves nothing, also when the clock was set back.
    ints(con, &format!("RL.GCRA look 0 1 1s AT {T0}"));
    let dump = call(con, &["DUMP", "look"]).unwrap();
    ints(con, &format!("RL.REFUND look GCRA 0 1 1s COST 0 AT {}", T0 - 10_000_000));
    assert_eq!(call(con, &["DUMP", "look"]).unwrap(), dump);
    ints(con, &format!("RL.UNIFORM gate 10s AT {T0}"));
    assert_eq!(ints(con, &format!("RL.REFUND gate UNIFORM 10s AT {T0}")), [0, 1, 1, 0, 0]);
}

#[test]
fn a_refund_takes_from_the_newest_sub_bucket_first() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (second, cost) in [(0, 3), (10, 2), (20, 1)] {
        let at = T0 + second * 1_000_000;
        ints(con, &format!("RL.SLIDINGWINDOW key 10 1m PRECISION 1s COST {cost} AT {at}"));
    }
    let at = T0 + 30_000_000;
    assert_eq!(ints(con, &format!("RL.REFUND key SLIDINGWINDOW 10 1m PRECISION 1s COST 2 AT {at}"))[2], 6);
    // 3 are left of the first second, and 1 of the eleventh: that one goes last.
    let peek = |con: &mut redis::Connection, second: u64| {
        let at = T0 + second * 1_000_000;
        ints(con, &format!("RL.PEEK key SLIDINGWINDOW 10 1m PRECISION 1s AT {at}"))[2]
    };
    assert_eq!((peek(con, 59), peek(con, 60), peek(con, 70)), (6, 9, 10));
}

#[test]
fn a_refund_by_a_caller_that_lags_replies_what_its_next_look_replies() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // Five seconds are owed, and one after the refund. A clock that is two seconds behind then was set back.
    let lagging = T0 - 2_000_000;
    ints(con, &format!("RL.GCRA key 9 1 1s COST 5 AT {T0}"));
    let refund = format!("RL.REFUND key GCRA 9 1 1s COST 4 AT {lagging}");
    assert_eq!(ints(con, &refund), [0, 10, 9, 0, 1000]);
    assert_eq!(ints(con, &format!("RL.PEEK key GCRA 9 1 1s COST 0 AT {lagging}")), [0, 10, 9, 0, 1000]);
    for limiter in LIMITERS {
        for lag in [0, 1, 1_500_000, 2_500_000, 40_000_000, 90_000_000] {
            for back in 1..=5 {
                let at = T0 - lag;
                let next = format!("RL.PEEK key {limiter} COST 0 AT {at}");
                text(con, "DEL key other");
                ints(con, &line(limiter, "key", "COST 4"));
                let refunded = ints(con, &format!("RL.REFUND key {limiter} COST {back} AT {at}"));
                assert_eq!(refunded, ints(con, &next), "{limiter} {lag} {back}");

                // Several on two keys, one of which holds a second limit.
                text(con, "DEL key other");
                let charge = |key: &str, limits: &str| format!("RL.MULTI 1 {key} AT {T0} {limits}");
                multi(con, &charge("key", &format!("LIMIT {limiter} COST 4")));
                multi(con, &charge("other", &format!("LIMIT {limiter} COST 3 LIMIT UNIFORM 1m")));
                let limit = format!("LIMIT {limiter} COST {back}");
                let (_, refunded) = multi(con, &format!("RL.MULTIREFUND 2 key other AT {at} {limit}"));
                let limit = format!("LIMIT {limiter} COST 0");
                let (_, looked) = multi(con, &format!("RL.MULTIPEEK 2 key other AT {at} {limit}"));
                assert_eq!(refunded, looked, "{limiter} {lag} {back}");
            }
        }
    }
}
