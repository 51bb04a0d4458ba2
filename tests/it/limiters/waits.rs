//! `RL.LEAKYBUCKET` and `RL.SMOOTH`: how long a caller waits whose request is admitted.

use crate::support::{Server, T0, error, ints, multi, text};

#[test]
fn a_queue_tells_when_the_turn_comes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for wait in [0, 1000, 2000] {
        assert_eq!(ints(con, &format!("RL.LEAKYBUCKET key 3 1 1s AT {T0}"))[3], wait);
    }
    assert_eq!(ints(con, &format!("RL.LEAKYBUCKET key 3 1 1s AT {T0}")), [1, 3, 0, 1000, 3000]);
    assert_eq!(
        ints(con, &format!("RL.PEEK key LEAKYBUCKET 3 1 1s AT {}", T0 + 1_000_000))[..4],
        [0, 3, 1, 2000]
    );
}

#[test]
fn a_smooth_limiter_lets_a_big_request_through_and_the_next_one_pays() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut at = T0;
    for wait in [0i64, 1375, 1125, 875, 625, 500, 500, 500] {
        assert_eq!(ints(con, &format!("RL.SMOOTH warm 2 1s WARMUP 4s AT {at}"))[3], wait);
        at += wait.unsigned_abs() * 1000;
    }
    // Five are stored, the other 95 are owed: 9.5 s, and no more than 2 s may be waited for.
    assert_eq!(
        ints(con, &format!("RL.SMOOTH burst 10 1s BURST 500ms COST 100 AT {T0}")),
        [0, 5, 0, 0, 10_000]
    );
    assert_eq!(ints(con, &format!("RL.SMOOTH burst 10 1s BURST 500ms MAXWAIT 2s AT {T0}"))[3], 7500);
    assert_eq!(ints(con, &format!("RL.PEEK burst SMOOTH 10 1s BURST 500ms AT {T0}"))[3], 9500);
    assert_eq!(ints(con, &format!("RL.SMOOTH burst 10 1s BURST 500ms AT {T0}"))[3], 9500);
    // The lag of a caller's clock is part of its wait, and counts against the longest one.
    ints(con, &format!("RL.SMOOTH lag 1 1s COST 21 AT {T0}"));
    let behind = T0 - 25_000;
    for (longest, expected) in [(20_010, [1, 15]), (20_024, [1, 1]), (20_025, [0, 20_025])] {
        for call in ["RL.PEEK lag SMOOTH", "RL.MULTIPEEK 1 lag", "RL.SMOOTH lag", "RL.MULTI 1 lag"] {
            let limit = format!("1 1s MAXWAIT {longest}ms");
            let told = if call.contains("MULTI") {
                multi(con, &format!("{call} AT {behind} LIMIT SMOOTH {limit}")).0
            } else {
                ints(con, &format!("{call} {limit} AT {behind}"))
            };
            assert_eq!([told[0], told[3]], expected, "{call} {limit}");
            if told[0] == 0 && !call.contains("PEEK") {
                text(con, "DEL lag");
                ints(con, &format!("RL.SMOOTH lag 1 1s COST 21 AT {T0}"));
            }
        }
    }
    // Who asks again after the retry is admitted.
    assert_eq!(
        ints(con, &format!("RL.SMOOTH lag 1 1s MAXWAIT 20010ms AT {}", behind + 14_000))[..4],
        [1, 1, 0, 1]
    );
    assert_eq!(
        ints(con, &format!("RL.SMOOTH lag 1 1s MAXWAIT 20010ms AT {}", behind + 15_000))[..4],
        [0, 1, 0, 20_010]
    );
    let factor = error(con, "RL.SMOOTH key 10 1s WARMUP 1ms COLDFACTOR 0.5");
    assert_eq!(factor, "ERR COLDFACTOR must be a number from 1 to 1000; got '0.5'");
    let century = error(con, "RL.SMOOTH key 1 36500d COST 3");
    assert_eq!(century, "ERR limit would take too long to refill");
    assert_eq!(ints(con, &format!("RL.SMOOTH warm 2 1s AT {T0}"))[3], 0, "another mode is another limit");
}
