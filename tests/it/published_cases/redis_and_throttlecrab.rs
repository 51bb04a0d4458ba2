//! What other rate limiters test, and where we differ: here Redis' own GCRA command and throttlecrab.
//!
//! The rest is in `buckets_and_gcra.rs`, `windows_and_logs.rs`, `partial_force_reserve_refund.rs` and `server.rs` (what
//! needs a real clock, a restart or a replica); the seeds are in `limiters/scenarios.rs`.
//!
//! Their bucket of `burst` tokens is a `capacity` of `burst` here and a `max_burst` of `burst` − 1; seconds are
//! milliseconds. Everything runs on `AT`, so the times in a reply are exact where the sources say "about" or "at least".
//!
//! Where a source contradicts the contract (design §2–5) the contract wins:
//!
//! - Redis (`gcra.tcl`), throttlecrab: 0 tokens are an error or a charge. Here `COST 0` is a look.
//! - Redis, `redis_rate`, redis-shield: an admitted call says retry −1. Here 0; −1 means never.
//! - Redis: times are seconds, a period may be 0.5. Here integer milliseconds; `0.5` is no integer.
//! - Redis: 200,000,000 tokens of a limit of 2 "would cause an overflow". Here they are refused for ever.
//! - Redis #15113 proposes remaining 0 and reset −1 for a cost over the limit. Here both say what the key holds.
//! - `redis_rate`: 1,000 of 10 may be had in about 99 s. Here never: no wait makes a bucket hold more than its limit.
//!   It also rounds its reset down (999 ms). Here times round up.
//! - throttlecrab takes costs up to `i64::MAX` / 2 and bursts up to `i64::MAX` / 1000. Here counts end at 2^53 − 1.
//! - redis-shield says −1 for "refused" in place of remaining, and reads strings. Here what remains is still told,
//!   and a string is WRONGTYPE.
//! - redisson's change of 10 to 20 turns 4 used into 16 left: true of a window, which stores what was used
//!   (`windows_and_logs.rs`). A bucket stores the tokens that remain: 6 stay 6.
//! - All of them: the error texts are ours.
//! - INCREX counts down to a lower bound. Here what is given back ends at full.
//! - node-rate-limiter-flexible blocks a key for a while (`blockDuration`). Here nothing does.
//!
//! Waiting for their commands:
//!
//! - `RL.XADD`: seed 004 (the stream). `RL.THROTTLE`: redis-cell.
//! - `RL.MULTI`: nginx (two zones), seed 003 (three limits in any order).

use super::case::{Case, START, ask, check};
use crate::support::{Server, text};

const MINUTE_OF_10_BURST_5: &[&str] = &["GCRA 4 10 1m", "TOKENBUCKET 5 10 1m"];
const MINUTE_OF_10_BURST_10: &[&str] = &["GCRA 9 10 1m", "TOKENBUCKET 10 10 1m"];

#[test]
fn redis_gcra_tcl_agrees() {
    const CASES: &[Case] = &[
        ("10 5 60", &["GCRA 10 5 1m", "TOKENBUCKET 11 5 1m"], &[(0, 1, 1, "0 11 10 0 12000")]),
        ("10 5 0.5", &["GCRA 10 5 500ms"], &[(0, 1, 1, "0 11 10 0 100")]),
        // A tenth of a millisecond until the key is as new: rounded up.
        ("1 10000 1", &["GCRA 1 10000 1s"], &[(0, 1, 1, "0 2 1 0 1")]),
        ("5 1 60 x7", &["GCRA 5 1 1m"], &[(0, 6, 1, "0 6 0 0 360000"), (0, 1, 1, "1 6 0 60000 360000")]),
        ("2 1 60 x4", &["GCRA 2 1 1m"], &[(0, 3, 1, "0 3 0 0 180000"), (0, 1, 1, "1 3 0 60000 180000")]),
        ("5 1 60", &["GCRA 5 1 1m"], &[(0, 1, 1, "0 6 5 0 60000")]),
        ("5 1 60 TOKENS 3", &["GCRA 5 1 1m"], &[(0, 1, 3, "0 6 3 0 180000")]),
        (
            "1 1 1 x3, and after 1.1 s",
            &["GCRA 1 1 1s"],
            &[(0, 2, 1, "0 2 0 0 2000"), (0, 1, 1, "1 2 0 1000 2000"), (1_100_000, 1, 1, "0 2 0 0 1900")],
        ),
        ("5 1 60, third call", &["GCRA 5 1 1m"], &[(0, 3, 1, "0 6 3 0 180000")]),
        (
            "5 1 60, then TOKENS 4",
            &["GCRA 5 1 1m"],
            &[(0, 1, 1, "0 6 5 0 60000"), (0, 1, 4, "0 6 1 0 300000")],
        ),
        ("0 1 1 x2", &["GCRA 0 1 1s"], &[(0, 1, 1, "0 1 0 0 1000"), (0, 1, 1, "1 1 0 1000 1000")]),
        // "Would cause an overflow" there.
        ("1 1 86400 TOKENS 200000000", &["GCRA 1 1 1d"], &[(0, 1, 200_000_000, "1 2 2 -1 0")]),
        ("#15113: 5 1 60 TOKENS 10", &["GCRA 5 1 1m"], &[(0, 1, 10, "1 6 6 -1 0")]),
    ];
    check(CASES);
}

#[test]
fn throttlecrab_agrees() {
    const CASES: &[Case] = &[
        (
            "a burst, then one per interval",
            MINUTE_OF_10_BURST_5,
            &[
                (0, 1, 1, "0 5 4 0 6000"),
                (0, 1, 1, "0 5 3 0 12000"),
                (0, 1, 1, "0 5 2 0 18000"),
                (0, 1, 1, "0 5 1 0 24000"),
                (0, 1, 1, "0 5 0 0 30000"),
                (0, 1, 1, "1 5 0 6000 30000"),
                (6_000_000, 1, 1, "0 5 0 0 30000"),
                (6_000_000, 1, 1, "1 5 0 6000 30000"),
            ],
        ),
        (
            "3, 3, 2 of 5",
            MINUTE_OF_10_BURST_5,
            &[(0, 1, 3, "0 5 2 0 18000"), (0, 1, 3, "1 5 2 6000 18000"), (0, 1, 2, "0 5 0 0 30000")],
        ),
        (
            "5, 6, 5 of 10",
            MINUTE_OF_10_BURST_10,
            &[(0, 1, 5, "0 10 5 0 30000"), (0, 1, 6, "1 10 5 6000 30000"), (0, 1, 5, "0 10 0 0 60000")],
        ),
        (
            "5, 6, 5 of 10, and 2 after 3 s",
            &["GCRA 9 60 1m", "TOKENBUCKET 10 60 1m"],
            &[
                (0, 1, 5, "0 10 5 0 5000"),
                (0, 1, 6, "1 10 5 1000 5000"),
                (0, 1, 5, "0 10 0 0 10000"),
                (3_000_000, 1, 2, "0 10 1 0 9000"),
            ],
        ),
        (
            "four per second into 8",
            &["GCRA 7 240 1m", "TOKENBUCKET 8 240 1m"],
            &[(0, 1, 6, "0 8 2 0 1500"), (500_000, 1, 1, "0 8 3 0 1250"), (1_500_000, 1, 1, "0 8 6 0 500")],
        ),
        (
            "six a minute",
            &["GCRA 2 6 1m", "TOKENBUCKET 3 6 1m"],
            &[
                (0, 3, 1, "0 3 0 0 30000"),
                (5_000_000, 1, 1, "1 3 0 5000 25000"),
                (10_000_000, 1, 1, "0 3 0 0 30000"),
                (20_000_000, 1, 1, "0 3 0 0 30000"),
            ],
        ),
        (
            "ten a second into 20",
            &["GCRA 19 600 1m", "TOKENBUCKET 20 600 1m"],
            &[
                (0, 1, 15, "0 20 5 0 1500"),
                (1_000_000, 1, 12, "0 20 3 0 1700"),
                (1_000_000, 1, 5, "1 20 3 200 1700"),
            ],
        ),
        ("cost 0 of 10", MINUTE_OF_10_BURST_10, &[(0, 1, 0, "0 10 10 0 0")]),
        ("cost 10 of 5", MINUTE_OF_10_BURST_5, &[(0, 1, 10, "1 5 5 -1 0")]),
        ("cost 10 of 10", MINUTE_OF_10_BURST_10, &[(0, 1, 10, "0 10 0 0 60000")]),
        // `i64::MAX` / 2 there.
        ("the highest cost", MINUTE_OF_10_BURST_10, &[(0, 1, 9_007_199_254_740_991, "1 10 10 -1 0")]),
        // `i64::MAX` / 1000 there. The limit is one more than the burst; here it is replied as 2^53 - 1.
        (
            "the highest burst and count",
            &["GCRA 9007199254740991 9007199254740991 1m"],
            &[(0, 1, 1, "0 9007199254740991 9007199254740991 0 1")],
        ),
    ];
    check(CASES);
}

#[test]
fn throttlecrab_agrees_that_each_interval_of_idleness_frees_one_token() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (interval, limiters) in
        [(500, ["GCRA 4 120 1m", "TOKENBUCKET 5 120 1m"]), (600, ["GCRA 4 100 1m", "TOKENBUCKET 5 100 1m"])]
    {
        for limiter in limiters {
            for idle in 1_u32..=5 {
                text(&mut con, "FLUSHALL");
                assert_eq!(ask(&mut con, limiter, START, 5)[..3], [0, 5, 0]);
                let later = START + u64::from(idle * interval) * 1_000;
                let (freed, reset) = (i64::from(idle) - 1, i64::from((6 - idle) * interval));
                assert_eq!(
                    ask(&mut con, limiter, later, 1),
                    [0, 5, freed, 0, reset],
                    "{limiter}, {idle} idle"
                );
            }
        }
    }
}
