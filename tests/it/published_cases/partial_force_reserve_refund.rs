//! What other rate limiters test of requests that do not fit (part of them, debt, queues) and of what is given back.
//!
//! Where a source contradicts the contract, the contract wins (more of this in `redis_and_throttlecrab.rs`):
//!
//! - upstash (−3 of a fresh 10 leaves 13, 3 then −5 leaves 12) and node-rate-limiter-flexible (two rewards on a fresh
//!   key leave −2 used) hold more than full. Here a refund never goes above full.
//! - INCREX created a key of 0 for what it refused, at one stored commit. Here a refusal creates none.
//! - nginx' dry run counts what it lets pass. Here a probe charges nothing.

use super::case::{Story, tell};

const TEN: &[&str] = &[
    "FIXEDWINDOW 10 10s",
    "FIXEDWINDOW 10 10s ALIGNED",
    "SLIDINGWINDOW 10 10s",
    "SLIDINGWINDOW 10 10s PRECISION 100ms",
    "SLIDINGLOG 10 10s",
    "TOKENBUCKET 10 10 10s",
    "TOKENBUCKET 10 10 10s BATCH",
    "LEAKYBUCKET 10 10 10s",
    "GCRA 9 10 10s",
];

#[test]
fn refunds_agree() {
    const TWO: &[&str] = &["FIXEDWINDOW 2 5s", "SLIDINGLOG 2 5s", "GCRA 1 2 5s"];
    const STORIES: &[Story] = &[
        ("upstash: 4, then -2", TEN, &[(0, "COST 4", "0 10 6 0 _"), (0, "REFUND COST 2", "0 10 8 0 _")]),
        (
            "upstash: 10, then -3, and 3 more may be used",
            TEN,
            &[
                (0, "COST 10", "0 10 0 0 _"),
                (0, "REFUND COST 3", "0 10 3 0 _"),
                (0, "COST 4", "1 10 3 _ _"),
                (0, "COST 3", "0 10 0 _ _"),
            ],
        ),
        ("upstash: a rate of 0", TEN, &[(0, "COST 3", "0 10 7 0 _"), (0, "COST 0", "0 10 7 0 _")]),
        ("upstash: -3 of a fresh 10", TEN, &[(0, "REFUND COST 3", "0 10 10 0 0")]),
        ("upstash: 3, then -5", TEN, &[(0, "COST 3", "0 10 7 0 _"), (0, "REFUND COST 5", "0 10 10 0 0")]),
        (
            "redisson: 3 of 10 are released, then 10 more",
            TEN,
            &[
                (0, "COST 3", "0 10 7 0 _"),
                (0, "REFUND COST 3", "0 10 10 0 0"),
                (0, "REFUND COST 10", "0 10 10 0 0"),
                (0, "COST 10", "0 10 0 0 _"),
            ],
        ),
        (
            "throttled-py: a refused 4 is not counted, so 1 given back of 5 used is 1 left",
            &["FIXEDWINDOW 5 1m", "SLIDINGWINDOW 5 1m", "SLIDINGLOG 5 1m"],
            &[(0, "COST 5", "0 5 0 0 _"), (0, "COST 4", "1 5 0 _ _"), (0, "REFUND", "0 5 1 0 _")],
        ),
        ("node-rate-limiter-flexible: a reward", TWO, &[(0, "", "0 2 1 0 _"), (0, "REFUND", "0 2 2 0 0")]),
        (
            "node-rate-limiter-flexible #333: two rewards on a fresh key",
            TWO,
            &[(0, "REFUND", "0 2 2 0 0"), (0, "REFUND", "0 2 2 0 0"), (0, "COST 3", "1 2 2 -1 0")],
        ),
    ];
    tell(STORIES);
}

#[test]
fn what_is_forced_agrees() {
    const STORIES: &[Story] = &[(
        "node-rate-limiter-flexible: a penalty",
        &["FIXEDWINDOW 2 5s", "FIXEDWINDOW 2 5s ALIGNED", "SLIDINGLOG 2 5s"],
        &[
            (0, "FORCE", "0 2 1 0 5000"),
            (0, "", "0 2 0 0 5000"),
            (0, "FORCE", "0 2 0 0 5000"),
            (0, "", "1 2 0 5000 5000"),
            // Three were used: one given back leaves none.
            (0, "REFUND", "0 2 0 0 5000"),
            (0, "REFUND", "0 2 1 0 5000"),
            (5_000_000, "", "0 2 1 0 5000"),
        ],
    )];
    tell(STORIES);
}

#[test]
fn parts_agree() {
    const STORIES: &[Story] = &[
        (
            "redis_rate, AtMost",
            &["GCRA 9 10 1s", "TOKENBUCKET 10 10 1s"],
            &[
                (0, "", "0 10 9 0 100"),
                (0, "PARTIAL COST 2", "0 10 7 0 300 2"),
                (0, "PARTIAL COST 10", "0 10 0 0 1000 7"),
                (0, "PARTIAL COST 1000", "1 10 0 100 1000 0"),
                (0, "COST 1000", "1 10 0 -1 1000"),
            ],
        ),
        (
            "INCREX: 10 by 10 of 15, strict and saturating",
            &["FIXEDWINDOW 15 10s", "FIXEDWINDOW 15 10s ALIGNED", "SLIDINGLOG 15 10s"],
            &[
                (0, "COST 10", "0 15 5 0 10000"),
                (0, "COST 10", "1 15 5 10000 10000"),
                (0, "COST 10 PARTIAL", "0 15 0 0 10000 5"),
            ],
        ),
    ];
    tell(STORIES);
}

#[test]
fn queues_agree() {
    const STORIES: &[Story] = &[
        (
            "nginx, 30 r/m delay=1 burst=2: two at once, the third later, no fourth",
            &["GCRA 1 30 1m", "TOKENBUCKET 2 30 1m"],
            &[
                (0, "RESERVE MAXWAIT 2s", "0 2 1 0 2000"),
                (0, "RESERVE MAXWAIT 2s", "0 2 0 0 4000"),
                (0, "RESERVE MAXWAIT 2s", "0 2 0 2000 6000"),
                (0, "RESERVE MAXWAIT 2s", "1 2 0 2000 6000"),
                (2_000_000, "RESERVE MAXWAIT 2s", "0 2 0 2000 6000"),
            ],
        ),
        (
            "nginx, dry run: passed, delayed, rejected",
            &["LEAKYBUCKET 2 30 1m"],
            &[
                (0, "PEEK", "0 2 2 0 0"),
                (0, "", "0 2 1 0 2000"),
                (0, "PEEK", "0 2 1 2000 2000"),
                (0, "", "0 2 0 2000 4000"),
                (0, "PEEK", "1 2 0 2000 4000"),
            ],
        ),
        (
            "node-rate-limiter-flexible, execEvenly: the second of 2 per 5 s is 2.4 to 5.1 s late",
            &["UNIFORM 2500ms", "GCRA 0 2 5s", "TOKENBUCKET 1 2 5s"],
            &[(0, "RESERVE", "0 1 0 0 2500"), (0, "RESERVE", "0 1 0 2500 5000")],
        ),
        (
            "the same in a queue",
            &["LEAKYBUCKET 2 2 5s"],
            &[(0, "", "0 2 1 0 2500"), (0, "", "0 2 0 2500 5000"), (0, "", "1 2 0 2500 5000")],
        ),
        (
            "the same without a store",
            &["SMOOTH 2 5s BURST 0"],
            &[(0, "", "0 0 0 0 2500"), (0, "", "0 0 0 2500 5000")],
        ),
    ];
    tell(STORIES);
}
