//! `RL.REFUND`: what was not used is given back.

use crate::support::debt::{LIMITERS, line};
use crate::support::{Server, T0, call, ints, text};

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
    ints(con, &format!("RL.GCRA look 0 1 1000 AT {T0}"));
    let dump = call(con, &["DUMP", "look"]).unwrap();
    ints(con, &format!("RL.REFUND look GCRA 0 1 1000 COST 0 AT {}", T0 - 10_000_000));
    assert_eq!(call(con, &["DUMP", "look"]).unwrap(), dump);
    ints(con, &format!("RL.UNIFORM gate 10000 AT {T0}"));
    assert_eq!(ints(con, &format!("RL.REFUND gate UNIFORM 10000 AT {T0}")), [0, 1, 1, 0, 0]);
}

#[test]
fn a_refund_takes_from_the_newest_sub_bucket_first() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (second, cost) in [(0, 3), (10, 2), (20, 1)] {
        let at = T0 + second * 1_000_000;
        ints(con, &format!("RL.SLIDINGWINDOW key 10 60000 PRECISION 1000 COST {cost} AT {at}"));
    }
    let at = T0 + 30_000_000;
    assert_eq!(
        ints(con, &format!("RL.REFUND key SLIDINGWINDOW 10 60000 PRECISION 1000 COST 2 AT {at}"))[2],
        6
    );
    // 3 are left of the first second, and 1 of the eleventh: that one goes last.
    let peek = |con: &mut redis::Connection, second: u64| {
        let at = T0 + second * 1_000_000;
        ints(con, &format!("RL.PEEK key SLIDINGWINDOW 10 60000 PRECISION 1000 AT {at}"))[2]
    };
    assert_eq!((peek(con, 59), peek(con, 60), peek(con, 70)), (6, 9, 10));
}
