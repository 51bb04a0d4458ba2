//! What the rate limiting libraries test, as far as it fits the buckets and GCRA.
//!
//! What differs, and why, is listed in `redis_and_throttlecrab.rs`.

use super::case::{Case, check};
use crate::support::{Server, error, ints};

#[test]
fn the_libraries_for_applications_agree() {
    const CASES: &[Case] = &[
        (
            "redis_rate, 10 per second",
            &["GCRA 9 10 1s", "TOKENBUCKET 10 10 1s"],
            &[
                (0, 1, 0, "0 10 10 0 0"),
                (0, 1, 1, "0 10 9 0 100"),
                (0, 1, 2, "0 10 7 0 300"),
                (0, 1, 7, "0 10 0 0 1000"),
                (0, 1, 1000, "1 10 0 -1 1000"),
            ],
        ),
        (
            "Losant, 4500",
            &["GCRA 4499 75 1m", "TOKENBUCKET 4500 75 1m"],
            &[(0, 1, 1, "0 4500 4499 0 800"), (0, 1, 1, "0 4500 4498 0 1600")],
        ),
        ("Losant, cost 2", &["TOKENBUCKET 4500 75 1m"], &[(0, 1, 2, "0 4500 4498 0 1600")]),
        (
            "Losant, 200 of 1000",
            &["GCRA 999 100 1m", "TOKENBUCKET 1000 100 1m"],
            &[
                (0, 1, 1001, "1 1000 1000 -1 0"),
                (0, 1, 200, "0 1000 800 0 120000"),
                (0, 3, 200, "0 1000 200 0 480000"),
                (0, 1, 200, "0 1000 0 0 600000"),
            ],
        ),
        ("Losant, 137 times 1", &["TOKENBUCKET 1000 100 1m"], &[(0, 137, 1, "0 1000 863 0 82200")]),
        (
            "Losant, one per 500 ms",
            &["GCRA 3 1 500ms", "TOKENBUCKET 4 1 500ms"],
            &[
                (0, 1, 2, "0 4 2 0 1000"),
                (0, 1, 2, "0 4 0 0 2000"),
                (0, 1, 2, "1 4 0 1000 2000"),
                (500_000, 1, 2, "1 4 1 500 1500"),
                (1_000_000, 1, 2, "0 4 0 0 2000"),
            ],
        ),
        (
            "Losant, 250 ms early",
            &["GCRA 0 1 1s", "TOKENBUCKET 1 1 1s"],
            &[(0, 1, 1, "0 1 0 0 1000"), (750_000, 1, 1, "1 1 0 250 250")],
        ),
        (
            "throttled-py, 60 per minute, burst 10",
            &["GCRA 9 60 1m", "TOKENBUCKET 10 60 1m"],
            &[
                (0, 1, 0, "0 10 10 0 0"),
                (0, 1, 1, "0 10 9 0 1000"),
                (0, 1, 10, "1 10 9 1000 1000"),
                (1_000_000, 1, 5, "0 10 5 0 5000"),
                (1_000_000, 1, 8, "1 10 5 3000 5000"),
                (1_000_000, 1, 5, "0 10 0 0 10000"),
                (1_000_000, 1, 1, "1 10 0 1000 10000"),
                (1_000_000, 1, 0, "0 10 0 0 10000"),
            ],
        ),
        (
            "throttled-py, leaking: whoever is admitted is told its turn",
            &["LEAKYBUCKET 10 60 1m"],
            &[
                (0, 1, 0, "0 10 10 0 0"),
                (0, 1, 1, "0 10 9 0 1000"),
                (0, 1, 10, "1 10 9 1000 1000"),
                (1_000_000, 1, 5, "0 10 5 0 5000"),
                (1_000_000, 1, 8, "1 10 5 3000 5000"),
                (1_000_000, 1, 5, "0 10 0 5000 10000"),
                (1_000_000, 1, 1, "1 10 0 1000 10000"),
                (1_000_000, 1, 0, "0 10 0 0 10000"),
            ],
        ),
        (
            "upstash #156: a refused request leaves no debt",
            &["TOKENBUCKET 10 10 10s", "TOKENBUCKET 10 10 10s BATCH", "GCRA 9 10 10s"],
            &[(0, 1, 8, "0 10 2 0 _"), (0, 1, 5, "1 10 2 _ _"), (0, 1, 2, "0 10 0 0 10000")],
        ),
        (
            "redis-shield, 13 of 30 per minute",
            &["GCRA 29 30 1m", "TOKENBUCKET 30 30 1m"],
            &[(0, 1, 13, "0 30 17 0 26000"), (0, 1, 13, "0 30 4 0 52000"), (0, 1, 13, "1 30 4 18000 52000")],
        ),
        (
            "nginx, 2 r/s burst=1 nodelay",
            &["GCRA 1 2 1s"],
            &[(0, 2, 1, "0 2 0 0 1000"), (0, 3, 1, "1 2 0 500 1000"), (1_000_000, 1, 1, "0 2 1 0 500")],
        ),
        (
            "nginx, 1000 r/s: idle time is no credit beyond the burst",
            &["GCRA 1 1000 1s"],
            &[(0, 1, 1, "0 2 1 0 1"), (100_000, 2, 1, "0 2 0 0 2"), (100_000, 1, 1, "1 2 0 1 2")],
        ),
    ];
    check(CASES);
}

#[test]
fn what_the_sources_refuse_to_parse_is_an_error_here_too() {
    const TOO_LONG: &str = "ERR limit would take too long to refill";
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (source, line, expected) in [
        ("gcra.tcl", "RL.GCRA k -1 5 10ms", "ERR max_burst ANY; got '-1'"),
        ("gcra.tcl", "RL.GCRA k text 5 10ms", "ERR max_burst ANY; got 'text'"),
        ("gcra.tcl", "RL.GCRA k 10 0 10ms", "ERR count POSITIVE; got '0'"),
        ("gcra.tcl", "RL.GCRA k 10 -1 10ms", "ERR count POSITIVE; got '-1'"),
        ("gcra.tcl", "RL.GCRA k 10 text 10ms", "ERR count POSITIVE; got 'text'"),
        ("gcra.tcl", "RL.GCRA k 10 5 0", "ERR period must be from 1ms to 36500d; got '0'"),
        ("gcra.tcl", "RL.GCRA k 10 5 -1", "ERR period DURATION; got '-1'"),
        ("gcra.tcl", "RL.GCRA k 10 5 text", "ERR period DURATION; got 'text'"),
        ("gcra.tcl", "RL.GCRA k 10 5 0.5", "ERR period DURATION; got '0.5'"),
        ("gcra.tcl", "RL.GCRA k 10 5 10ms COST", "ERR syntax error: COST needs a value"),
        ("gcra.tcl", "RL.GCRA k 10 5 10ms COST -1", "ERR COST ANY; got '-1'"),
        ("gcra.tcl", "RL.GCRA k 10 5 10ms COST text", "ERR COST ANY; got 'text'"),
        ("gcra.tcl", "RL.GCRA k 200000000 1 1d", TOO_LONG),
        ("gcra.tcl", "RL.GCRA k 1 1 2147483647s COST 2147483647", TOO_LONG),
        ("throttlecrab", "RL.TOKENBUCKET k 0 10 1m", "ERR capacity POSITIVE; got '0'"),
        ("throttlecrab", "RL.TOKENBUCKET k 5 0 1m", "ERR refill POSITIVE; got '0'"),
        ("throttlecrab", "RL.TOKENBUCKET k 5 10 0", "ERR period must be from 1ms to 36500d; got '0'"),
        ("throttlecrab", "RL.GCRA k 4 10 1m COST -5", "ERR COST ANY; got '-5'"),
        (
            "throttlecrab",
            "RL.GCRA k 4 10 1m COST 4611686018427387903",
            "ERR COST ANY; got '4611686018427387903'",
        ),
        ("redis-shield", "RL.TOKENBUCKET k 1.2 30 60000", "ERR capacity POSITIVE; got '1.2'"),
        ("redis-shield", "RL.TOKENBUCKET k 30 30 1m COST 1.2", "ERR COST ANY; got '1.2'"),
        ("node-rate-limiter-flexible", "RL.SLIDINGWINDOW k 2 5s COST 1.5", "ERR COST ANY; got '1.5'"),
        // Zero points there are a limiter that always rejects.
        ("node-rate-limiter-flexible", "RL.SLIDINGWINDOW k 0 5s", "ERR limit POSITIVE; got '0'"),
        ("redisson", "RL.SLIDINGLOG k 10 5s COST -1", "ERR COST ANY; got '-1'"),
        ("redisson", "RL.REFUND k SLIDINGLOG 10 5s COST -1", "ERR COST ANY; got '-1'"),
        ("INCREX, EX 0", "RL.FIXEDWINDOW k 10 0", "ERR window must be from 1ms to 36500d; got '0'"),
    ] {
        let expected = expected
            .replace("ANY", "must be an integer from 0 to 9007199254740991")
            .replace("POSITIVE", "must be an integer from 1 to 9007199254740991")
            .replace("DURATION", "must be a whole number with ms, s, m, h, d or w, such as 90s");
        assert_eq!(error(&mut con, line), expected, "{source}: {line}");
    }
    assert_eq!(ints(&mut con, "DBSIZE"), [0]);
}
