//! What other rate limiters test of windows: fixed, sliding, and exact logs.
//!
//! Exact logs are mapped to `PRECISION` too, at times where sub-buckets cannot be told from them. Where a source
//! contradicts the contract, the contract wins (more of this in `redis_and_throttlecrab.rs`):
//!
//! - limits rounds the weighted previous count down, and so frees a request one step earlier: 3 of 5 left right after the
//!   edge, where the exact sum leaves 2. It frees the next one each third of a second, as here.
//! - limits has 10 left 2 s after 10 of 10 per 2 s. Two counters weigh the previous window by its whole length then,
//!   and are empty only after another one; sub-buckets agree with limits.
//! - throttled-py's fixed counter goes on to 9 of 5 when it refuses. Here it stays 5, as its sliding one does.
//! - redisson forgets its state when the mode changes. Here another mode on the same key is WRONGTYPE.
//! - redisson throws for 20 of a limit of 1. Here that is an ordinary "never".

use super::case::{Case, START, ask, check};
use crate::support::{Server, text};

#[test]
fn windows_and_logs_agree() {
    const CASES: &[Case] = &[
        (
            "upstash #161: a refused request is not counted",
            &[
                "SLIDINGWINDOW 10 10s",
                "SLIDINGWINDOW 10 10s PRECISION 100ms",
                "SLIDINGLOG 10 10s",
                "FIXEDWINDOW 10 10s",
                "FIXEDWINDOW 10 10s ALIGNED",
            ],
            &[(0, 1, 8, "0 10 2 0 _"), (0, 3, 5, "1 10 2 _ _"), (0, 1, 1, "0 10 1 0 _")],
        ),
        (
            "upstash #61: the previous window counts by its overlap",
            &["SLIDINGWINDOW 100 10s"],
            &[(0, 1, 50, "0 100 50 0 20000"), (11_000_000, 1, 10, "0 100 45 0 19000")],
        ),
        (
            "upstash #39: the first of one is admitted",
            &["SLIDINGWINDOW 1 10s", "SLIDINGWINDOW 1 10s PRECISION 10s", "SLIDINGLOG 1 10s"],
            &[(0, 1, 1, "0 1 0 0 _"), (0, 1, 1, "1 1 0 _ _")],
        ),
        (
            "throttled-py, 5 per minute",
            &[
                "SLIDINGWINDOW 5 1m",
                "SLIDINGWINDOW 5 1m PRECISION 1m",
                "SLIDINGLOG 5 1m",
                "FIXEDWINDOW 5 1m",
                "FIXEDWINDOW 5 1m ALIGNED",
            ],
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
            &["SLIDINGWINDOW 2 5s PRECISION 50ms", "SLIDINGLOG 2 5s"],
            &[
                (0, 1, 1, "0 2 1 0 5000"),
                (4_000_000, 1, 1, "0 2 0 0 5000"),
                (5_050_000, 1, 1, "0 2 0 0 5000"),
                (5_050_000, 1, 1, "1 2 0 3950 5000"),
            ],
        ),
        ("redisson, 20 of 1", &["SLIDINGWINDOW 1 5s", "SLIDINGLOG 1 5s"], &[(0, 1, 20, "1 1 1 -1 0")]),
        (
            "node-rate-limiter-flexible, 2 per 5 s",
            &[
                "SLIDINGWINDOW 2 5s",
                "SLIDINGWINDOW 2 5s PRECISION 50ms",
                "SLIDINGLOG 2 5s",
                "FIXEDWINDOW 2 5s",
            ],
            &[(0, 1, 1, "0 2 1 0 _")],
        ),
    ];
    check(CASES);
}

#[test]
fn limits_agrees_on_sliding_windows_and_logs() {
    const CASES: &[Case] = &[
        ("limits: 11 of 10", &["SLIDINGWINDOW 10 2s", "SLIDINGLOG 10 2s"], &[(0, 1, 11, "1 10 10 -1 0")]),
        (
            "limits: 5 of 10, then 6",
            &["SLIDINGWINDOW 10 2s", "SLIDINGWINDOW 10 2s PRECISION 2ms", "SLIDINGLOG 10 2s"],
            &[(0, 1, 5, "0 10 5 0 _"), (0, 1, 6, "1 10 5 _ _")],
        ),
        (
            "limits: all of it, and 2 s later",
            &["SLIDINGWINDOW 10 2s PRECISION 2ms", "SLIDINGLOG 10 2s"],
            &[
                (0, 10, 1, "0 10 0 0 2000"),
                (0, 1, 1, "1 10 0 2000 2000"),
                (1_999_999, 1, 0, "0 10 0 0 1"),
                (2_000_000, 1, 0, "0 10 10 0 0"),
            ],
        ),
        (
            "limits: all of it, weighted",
            &["SLIDINGWINDOW 10 2s"],
            &[
                (0, 1, 10, "0 10 0 0 4000"),
                (2_000_000, 1, 0, "0 10 0 0 2000"),
                (4_000_000, 1, 0, "0 10 10 0 0"),
            ],
        ),
        (
            "limits: each third of a second frees one of 3",
            &["SLIDINGWINDOW 5 1s"],
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
            &["SLIDINGWINDOW 2 1m PRECISION 1s", "SLIDINGLOG 2 1m"],
            &[
                (0, 1, 1, "0 2 1 0 60000"),
                (1_000_000, 1, 1, "0 2 0 0 60000"),
                (2_000_000, 1, 1, "1 2 0 58000 59000"),
            ],
        ),
        (
            "limits: costs within 2 s",
            &["SLIDINGWINDOW 10 2s PRECISION 100ms", "SLIDINGLOG 10 2s"],
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
            &["SLIDINGWINDOW 1000000 2s", "SLIDINGWINDOW 1000000 2s PRECISION 2ms"],
            &[(0, 1, 999_999, "0 1000000 1 0 _")],
        ),
    ];
    check(CASES);
}

#[test]
fn fixed_windows_agree() {
    const LIMITS: &[&str] = &["FIXEDWINDOW 10 2s", "FIXEDWINDOW 10 2s ALIGNED"];
    const INCREX: &[&str] = &["FIXEDWINDOW 10 10s", "FIXEDWINDOW 10 10s ALIGNED"];
    const CASES: &[Case] = &[
        (
            "limits: 10 per 2 s",
            LIMITS,
            &[
                (0, 10, 1, "0 10 0 0 2000"),
                (1_999_999, 1, 1, "1 10 0 1 1"),
                (2_000_000, 1, 1, "0 10 9 0 2000"),
            ],
        ),
        ("limits: 11 of 10", LIMITS, &[(0, 1, 11, "1 10 10 -1 0"), (0, 1, 10, "0 10 0 0 2000")]),
        ("limits: 5 of 10, then 6", LIMITS, &[(0, 1, 5, "0 10 5 0 2000"), (0, 1, 6, "1 10 5 2000 2000")]),
        ("INCREX: a missing key by 15 of 10", INCREX, &[(0, 1, 15, "1 10 10 -1 0")]),
        ("INCREX: 5 by 5 of 10", INCREX, &[(0, 1, 5, "0 10 5 0 10000"), (0, 1, 5, "0 10 0 0 10000")]),
    ];
    check(CASES);
}

#[test]
fn a_changed_limit_keeps_what_was_used_as_in_redisson() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (name, mode) in [
        ("SLIDINGWINDOW", ""),
        ("SLIDINGWINDOW", " PRECISION 100ms"),
        ("SLIDINGLOG", ""),
        ("FIXEDWINDOW", ""),
    ] {
        for (before, used, after, remaining) in
            [(10, 3, 10, 7), (10, 3, 20, 17), (10, 4, 20, 16), (10, 3, 5, 2), (10, 8, 5, 0)]
        {
            text(&mut con, "FLUSHALL");
            ask(&mut con, &format!("{name} {before} 5s{mode}"), START, used);
            let changed = ask(&mut con, &format!("{name} {after} 5s{mode}"), START, 0);
            assert_eq!(
                changed[..4],
                [0, after, remaining, 0],
                "{name}{mode}: {used} of {before}, then {after}"
            );
        }
        // "Not keep" is DEL.
        text(&mut con, "DEL k");
        assert_eq!(ask(&mut con, &format!("{name} 20 5s{mode}"), START, 0), [0, 20, 20, 0, 0]);
    }
}
