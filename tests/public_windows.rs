//! What other rate limiters test of windows and of leases, as far as it fits `RL.SLIDINGWINDOW` and `RL.CONCURRENT`.
//!
//! Exact logs are mapped to `PRECISION`, at times where sub-buckets cannot be told from them. Where a source contradicts
//! the contract, the contract wins (more of this in `public_cases.rs`):
//!
//! - limits rounds the weighted previous count down, and so frees a request one step earlier: 3 of 5 left right after the
//!   edge, where the exact sum leaves 2. It frees the next one each third of a second, as here.
//! - limits has 10 left 2 s after 10 of 10 per 2 s. Two counters weigh the previous window by its whole length then,
//!   and are empty only after another one; sub-buckets agree with limits.
//! - redisson forgets its state when the mode changes. Here another mode on the same key is WRONGTYPE.
//! - redisson throws for 20 of a limit of 1. Here that is an ordinary "never".

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod public;
mod support;

use public::{Case, START, ask, check};
use support::{Server, ints, text};

#[test]
fn sliding_windows_agree() {
    const CASES: &[Case] = &[
        (
            "upstash #161: a refused request is not counted",
            &["SLIDINGWINDOW 10 10000", "SLIDINGWINDOW 10 10000 PRECISION 100"],
            &[(0, 1, 8, "0 10 2 0 _"), (0, 3, 5, "1 10 2 _ _"), (0, 1, 1, "0 10 1 0 _")],
        ),
        (
            "upstash #61: the previous window counts by its overlap",
            &["SLIDINGWINDOW 100 10000"],
            &[(0, 1, 50, "0 100 50 0 20000"), (11_000_000, 1, 10, "0 100 45 0 19000")],
        ),
        (
            "upstash #39: the first of one is admitted",
            &["SLIDINGWINDOW 1 10000", "SLIDINGWINDOW 1 10000 PRECISION 10000"],
            &[(0, 1, 1, "0 1 0 0 _"), (0, 1, 1, "1 1 0 _ _")],
        ),
        (
            "throttled-py, 5 per minute",
            &["SLIDINGWINDOW 5 60000", "SLIDINGWINDOW 5 60000 PRECISION 60000"],
            &[
                (0, 1, 0, "0 5 5 0 0"),
                (0, 1, 1, "0 5 4 0 _"),
                (0, 1, 4, "0 5 0 0 _"),
                (0, 1, 4, "1 5 0 _ _"),
                (0, 1, 0, "0 5 0 0 _"),
            ],
        ),
        (
            "redisson, 2 per 5 s",
            &["SLIDINGWINDOW 2 5000 PRECISION 50"],
            &[
                (0, 1, 1, "0 2 1 0 5000"),
                (4_000_000, 1, 1, "0 2 0 0 5000"),
                (5_050_000, 1, 1, "0 2 0 0 5000"),
                (5_050_000, 1, 1, "1 2 0 3950 5000"),
            ],
        ),
        ("redisson, 20 of 1", &["SLIDINGWINDOW 1 5000"], &[(0, 1, 20, "1 1 1 -1 0")]),
        (
            "node-rate-limiter-flexible, 2 per 5 s",
            &["SLIDINGWINDOW 2 5000", "SLIDINGWINDOW 2 5000 PRECISION 50"],
            &[(0, 1, 1, "0 2 1 0 _")],
        ),
        // 20 of 240 at 18:05 come back at 19:05, a minute's bucket at a time.
        (
            "seed 003, 240 per hour by the minute",
            &["SLIDINGWINDOW 240 3600000 PRECISION 60000"],
            &[
                (300_000_000, 20, 1, "0 240 220 0 3600000"),
                (3_899_999_999, 1, 0, "0 240 220 0 1"),
                (3_900_000_000, 1, 0, "0 240 240 0 0"),
            ],
        ),
        // The three instants that the source shows, and the admitted request before them.
        (
            "seed 004, 3 per 10 s",
            &["SLIDINGWINDOW 3 10000 PRECISION 10"],
            &[
                (0, 1, 1, "0 3 2 0 10000"),
                (3_988_345, 1, 1, "0 3 1 0 9992"),
                (6_468_427, 1, 1, "0 3 0 0 9992"),
                (8_411_043, 1, 1, "1 3 0 1589 8049"),
            ],
        ),
    ];
    check(CASES);
}

#[test]
fn limits_agrees_on_sliding_windows() {
    const CASES: &[Case] = &[
        ("limits: 11 of 10", &["SLIDINGWINDOW 10 2000"], &[(0, 1, 11, "1 10 10 -1 0")]),
        (
            "limits: 5 of 10, then 6",
            &["SLIDINGWINDOW 10 2000", "SLIDINGWINDOW 10 2000 PRECISION 2"],
            &[(0, 1, 5, "0 10 5 0 _"), (0, 1, 6, "1 10 5 _ _")],
        ),
        (
            "limits: all of it, and 2 s later",
            &["SLIDINGWINDOW 10 2000 PRECISION 2"],
            &[
                (0, 10, 1, "0 10 0 0 2000"),
                (0, 1, 1, "1 10 0 2000 2000"),
                (1_999_999, 1, 0, "0 10 0 0 1"),
                (2_000_000, 1, 0, "0 10 10 0 0"),
            ],
        ),
        (
            "limits: all of it, weighted",
            &["SLIDINGWINDOW 10 2000"],
            &[
                (0, 1, 10, "0 10 0 0 4000"),
                (2_000_000, 1, 0, "0 10 0 0 2000"),
                (4_000_000, 1, 0, "0 10 10 0 0"),
            ],
        ),
        (
            "limits: each third of a second frees one of 3",
            &["SLIDINGWINDOW 5 1000"],
            &[
                (0, 1, 3, "0 5 2 0 2000"),
                (1_000_000, 1, 0, "0 5 2 0 1000"),
                (1_000_000, 1, 3, "1 5 2 334 1000"),
                (1_333_333, 1, 0, "0 5 2 0 667"),
                (1_333_334, 1, 0, "0 5 3 0 667"),
                (1_666_666, 1, 0, "0 5 3 0 334"),
                (1_666_667, 1, 0, "0 5 4 0 334"),
                (2_000_000, 1, 0, "0 5 5 0 0"),
            ],
        ),
        (
            "limits: 2 per minute, a second apart",
            &["SLIDINGWINDOW 2 60000 PRECISION 1000"],
            &[
                (0, 1, 1, "0 2 1 0 60000"),
                (1_000_000, 1, 1, "0 2 0 0 60000"),
                (2_000_000, 1, 1, "1 2 0 58000 59000"),
            ],
        ),
        (
            "limits: costs within 2 s",
            &["SLIDINGWINDOW 10 2000 PRECISION 100"],
            &[
                (0, 1, 5, "0 10 5 0 2000"),
                (1_800_000, 1, 4, "0 10 1 0 2000"),
                (1_800_000, 1, 2, "1 10 1 200 2000"),
                (1_800_000, 1, 1, "0 10 0 0 2000"),
                (2_000_000, 1, 5, "0 10 0 0 2000"),
            ],
        ),
        (
            "limits: 999,999 of a million",
            &["SLIDINGWINDOW 1000000 2000", "SLIDINGWINDOW 1000000 2000 PRECISION 2"],
            &[(0, 1, 999_999, "0 1000000 1 0 _")],
        ),
    ];
    check(CASES);
}

#[test]
fn a_changed_limit_keeps_what_was_used_as_in_redisson() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for mode in ["", " PRECISION 100"] {
        for (before, used, after, remaining) in
            [(10, 3, 10, 7), (10, 3, 20, 17), (10, 4, 20, 16), (10, 3, 5, 2), (10, 8, 5, 0)]
        {
            text(&mut con, "FLUSHALL");
            ask(&mut con, &format!("SLIDINGWINDOW {before} 5000{mode}"), START, used);
            let changed = ask(&mut con, &format!("SLIDINGWINDOW {after} 5000{mode}"), START, 0);
            assert_eq!(changed[..4], [0, after, remaining, 0], "{used} of {before}, then {after}{mode}");
        }
        // "Not keep" is DEL.
        text(&mut con, "DEL k");
        assert_eq!(ask(&mut con, &format!("SLIDINGWINDOW 20 5000{mode}"), START, 0), [0, 20, 20, 0, 0]);
    }
}

/// The concurrent requests limiter of seed 000: 100 at once, each for a minute at most.
#[test]
fn as_many_requests_run_at_once_as_seed_000_allows() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let acquire = |id: &str, after: u64| format!("RL.CONCURRENT k 100 60000 {id} AT {}", START + after);
    for n in 0..100 {
        let reply = ints(&mut con, &acquire(&format!("request-{n}"), n * 1_000));
        assert_eq!(reply, [0, 100, 99 - i64::try_from(n).unwrap(), 0, 60000], "request {n}");
    }

    // Only the first lease's end makes room; the last one's end empties the key.
    let full = ints(&mut con, &acquire("late", 99_000));
    assert_eq!(full, [1, 100, 0, 59_901, 60_000]);
    // A request that finishes makes room at once, and only once.
    let release = format!("RL.RELEASE k request-50 AT {}", START + 99_000);
    assert_eq!(ints(&mut con, &release), [1]);
    assert_eq!(ints(&mut con, &release), [0]);
    assert_eq!(ints(&mut con, &acquire("late", 99_000)), [0, 100, 0, 0, 60_000]);
    // Requests that got lost are forgotten after a minute, the first of them at exactly that instant.
    assert_eq!(ints(&mut con, &acquire("early", 59_999_999)), [1, 100, 0, 1, 100]);
    assert_eq!(ints(&mut con, &acquire("in-time", 60_000_000)), [0, 100, 0, 0, 60_000]);
}

/// The fleet usage load shedder of seed 000: the last fifth is for what is critical.
#[test]
fn reserved_slots_are_for_critical_requests_as_in_seed_000() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let acquire = |id: &str, critical: &str| {
        format!("RL.CONCURRENT fleet 10 60000 {id} RESERVED 2 {critical} AT {START}")
    };
    for n in 0..8 {
        assert_eq!(ints(&mut con, &acquire(&format!("list-{n}"), "")), [0, 8, 7 - n, 0, 60_000]);
    }
    assert_eq!(ints(&mut con, &acquire("list-8", "")), [1, 8, 0, 60_000, 60_000]);
    assert_eq!(ints(&mut con, &acquire("charge-0", "CRITICAL")), [0, 10, 1, 0, 60_000]);
    assert_eq!(ints(&mut con, &acquire("charge-1", "CRITICAL")), [0, 10, 0, 0, 60_000]);
    assert_eq!(ints(&mut con, &acquire("charge-2", "CRITICAL")), [1, 10, 0, 60_000, 60_000]);
}
