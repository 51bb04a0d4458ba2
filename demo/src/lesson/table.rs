//! All lessons. Unless a lesson says otherwise, 100 requests are allowed in 10 s, and a bucket holds 50.

use super::measure::Measure;
use super::parts::{Lesson, Panel};
use super::verdict;
use crate::settings::{Keys, Settings};
use crate::traffic::{ABUSER, Arrival, Shape};

/// Of which a table's row says what is different.
const PLAIN: Lesson = Lesson {
    id: "",
    title: ["", ""],
    story: "",
    settings: Settings::default,
    arrivals: Settings::arrivals,
    view: (0, 30_000),
    measure: Measure::Rate { slot: 500 },
    mark: None,
    edges: &[],
    apart: None,
    panels: [PANEL, PANEL],
};
const PANEL: Panel = Panel { strategy: "", note: "", keys: Keys::Each, verdict: verdict::got_through };

pub static LESSONS: [Lesson; 12] = [
    Lesson {
        id: "edge",
        title: ["A fixed window of 100 lets 200 through", "at its edge. A log lets 100 through."],
        story: "300 requests come in one second. The limit is 100 per 10 s.",
        arrivals: |_| evenly(0, 9_500, 10_500, 300),
        view: (9_000, 11_000),
        measure: Measure::Within,
        mark: Some(("limit", 100)),
        edges: &[10_000],
        panels: [
            Panel { strategy: "fixed-window-aligned", verdict: verdict::in_one_second, ..PANEL },
            Panel { strategy: "sliding-log", verdict: verdict::in_one_second, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "stampede",
        title: ["Windows on the clock let everybody in", "at the same instant."],
        story: "20 users begin one after another. Each is allowed 10 requests per 10 s.",
        settings: || Settings { limit: 10, ..Shape::Steady.into() },
        arrivals: |_| one_after_another(20, 40_000),
        view: (0, 40_000),
        edges: &[10_000, 20_000, 30_000],
        panels: [
            Panel { strategy: "fixed-window", verdict: verdict::in_one_second, ..PANEL },
            Panel { strategy: "fixed-window-aligned", verdict: verdict::in_one_second, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "burst",
        title: ["A bucket's burst comes on top of its rate.", "A log never exceeds the limit."],
        story: "30 requests come per second. The limit is 100 per 10 s, the burst 50.",
        arrivals: |_| evenly(0, 0, 30_000, 900),
        measure: Measure::Within,
        mark: Some(("limit", 100)),
        panels: [
            Panel { strategy: "token-bucket", verdict: verdict::in_a_period, ..PANEL },
            Panel { strategy: "sliding-log", verdict: verdict::in_a_period, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "portions",
        title: ["A bucket that is filled all at once", "is emptied all at once."],
        story: "30 requests come per second. The limit is 10, or 100 at once every 10 s.",
        arrivals: |_| evenly(0, 0, 30_000, 900),
        mark: Some(("limit", 10)),
        panels: [
            Panel { strategy: "token-bucket", verdict: verdict::pause, ..PANEL },
            Panel { strategy: "token-bucket-batch", verdict: verdict::pause, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "spacing",
        title: ["A token bucket passes a burst on.", "A leaky bucket spaces it out."],
        story: "60 come at once, each for half a second. Burst 50; then 10 a second.",
        arrivals: |_| evenly(0, 1_000, 1_250, 60),
        view: (0, 8_000),
        measure: Measure::AtWork,
        mark: Some(("workers", 10)),
        panels: [
            Panel { strategy: "token-bucket", verdict: verdict::at_work, ..PANEL },
            Panel { strategy: "leaky-bucket", verdict: verdict::at_work, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "reserve",
        title: ["GCRA refuses what comes too early.", "With RESERVE it says when to act instead."],
        story: "100 come per second for 1.9 s. 50 are allowed, after a burst of 50.",
        settings: || Settings { limit: 500, ..Shape::Steady.into() },
        arrivals: |_| evenly(0, 0, 1_900, 190),
        view: (0, 2_500),
        measure: Measure::Wait,
        panels: [
            Panel { strategy: "gcra", verdict: verdict::refused, ..PANEL },
            Panel { strategy: "gcra-reserve", verdict: verdict::refused, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "apart",
        title: ["UNIFORM refuses the second of two that", "come together. LEAKYBUCKET has it wait."],
        story: "8 requests come per second, at random. One is allowed every 100 ms.",
        settings: || Settings { rate: 8, ..Shape::Steady.into() },
        arrivals: |settings| {
            settings.arrivals().into_iter().filter(|arrival| arrival.at < 15_000_000).collect()
        },
        view: (0, 15_000),
        measure: Measure::Wait,
        panels: [
            Panel { strategy: "uniform", verdict: verdict::refused, ..PANEL },
            Panel { strategy: "leaky-bucket", verdict: verdict::refused, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "warmup",
        title: ["SMOOTH starts with a burst.", "WARMUP starts at a third of the rate."],
        story: "20 requests come per second. 10 are allowed, after 10 s of warming up.",
        arrivals: |_| evenly(0, 0, 30_000, 600),
        measure: Measure::Rate { slot: 1000 },
        mark: Some(("limit", 10)),
        panels: [
            Panel { strategy: "smooth", verdict: verdict::at_first, ..PANEL },
            Panel { strategy: "smooth-warmup", verdict: verdict::at_first, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "hammering",
        title: ["A log lets a hammering caller in again.", "COUNTREFUSED waits until it stops."],
        story: "20 come per second for 30 s, then 5. The limit is 100 per 10 s.",
        arrivals: |_| [evenly(0, 0, 30_000, 600), evenly(0, 45_000, 60_000, 75)].concat(),
        view: (0, 60_000),
        measure: Measure::Rate { slot: 1000 },
        mark: Some(("limit", 10)),
        panels: [
            Panel { strategy: "sliding-log", verdict: verdict::got_through, ..PANEL },
            Panel { strategy: "sliding-log-countrefused", verdict: verdict::got_through, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "neighbours",
        title: ["Under one limit for all, one caller starves", "the rest. SKETCH counts each, in one key."],
        story: "Five users call now and then, a sixth 21 times a second for 30 s.",
        settings: || Shape::Abuser.into(),
        view: (0, 60_000),
        measure: Measure::Rate { slot: 2000 },
        apart: Some(ABUSER),
        panels: [
            Panel {
                strategy: "gcra",
                note: ", one limit for all",
                keys: Keys::Shared,
                verdict: verdict::others,
            },
            Panel { strategy: "sketch", note: ", a limit for each", verdict: verdict::others, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "slow",
        title: ["A rate limit does not see that the backend", "is slow. CONCURRENT does."],
        story: "15 come per second, 10 may. For 40 s each takes ten times as long.",
        settings: || Shape::Slow.into(),
        view: (0, 120_000),
        measure: Measure::AtWork,
        mark: Some(("workers", 10)),
        panels: [
            Panel { strategy: "token-bucket", verdict: verdict::at_work, ..PANEL },
            Panel { strategy: "concurrent", verdict: verdict::at_work, ..PANEL },
        ],
        ..PLAIN
    },
    Lesson {
        id: "shedding",
        title: ["A rate limit refuses what idle workers", "could do. SHED begins and ends late."],
        story: "Traffic rises to 25 per second. The limit is 10, the workers can do 20.",
        settings: || Shape::Rising.into(),
        view: (0, 600_000),
        measure: Measure::Rate { slot: 10_000 },
        mark: Some(("workers", 20)),
        panels: [Panel { strategy: "token-bucket", ..PANEL }, Panel { strategy: "shed", ..PANEL }],
        ..PLAIN
    },
];

/// The tenants of the last lesson.
const TENANTS: [&str; 3] = ["Ann", "Bob", "Cid"];

/// Its callers wait in lines, which are a server's alone. So it is not for a page without one.
pub static FAIRNESS: Lesson = Lesson {
    id: "fairness",
    title: ["In order of arrival one batch delays all.", "With TENANT, the tenants take turns."],
    story: "12 leases, jobs of 4 s. Ann brings 75 jobs, Bob 18 and Cid 4.",
    settings: || Settings { workers: 12, service: 4000, ..Settings::default() },
    arrivals: |_| {
        let [ann, bob, cid] =
            [evenly(0, 0, 15_000, 75), evenly(1, 6_000, 15_000, 18), evenly(2, 8_000, 16_000, 4)];
        in_order([ann, bob, cid].concat())
    },
    view: (0, 34_000),
    measure: Measure::Held { tenants: TENANTS },
    mark: Some(("leases", 12)),
    panels: [
        Panel { strategy: "concurrent", note: " BLOCK", verdict: verdict::last_waits, ..PANEL },
        Panel { strategy: "concurrent", note: " BLOCK TENANT", verdict: verdict::last_waits, ..PANEL },
    ],
    ..PLAIN
};

/// So many requests of a user between two instants, in milliseconds, all at the same distance.
fn evenly(user: u64, from: u64, until: u64, count: u64) -> Vec<Arrival> {
    (0..count)
        .map(|i| Arrival { at: from * 1000 + i * (until - from) * 1000 / count, user, cost: 1 })
        .collect()
}

/// Users of whom each begins half a second after the one before, and then sends 5 requests per second.
fn one_after_another(users: u64, until: u64) -> Vec<Arrival> {
    let of = |user| evenly(user, user * 500, until, (until - user * 500) / 200);
    in_order((0..users).flat_map(of).collect())
}

fn in_order(mut arrivals: Vec<Arrival>) -> Vec<Arrival> {
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}
