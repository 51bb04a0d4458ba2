//! The scenarios of the five seed documents, one test each, at the seeds' own numbers and times.
//!
//! Of seeds 003 and 004 the limits in any order wait for `RL.MULTI`, and the limited stream for `RL.XADD`.

use redis::Connection;

use crate::support::{SECOND, Server, dump, ints, text};

/// A Tuesday in 2023 at 18:00:00 UTC.
const SIX: u64 = 1_699_984_800_000_000;
const MINUTE: u64 = 60 * SECOND;

/// The reply to `line` as of `micros` after six o'clock.
fn at(con: &mut Connection, micros: u64, line: &str) -> Vec<i64> {
    ints(con, &format!("{line} AT {}", SIX + micros))
}

// Seed 000: 100 per second, five seconds' worth at once.
#[test]
fn a_burst_of_500_then_one_per_10_ms() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let request = "RL.TOKENBUCKET key 500 100 1s";
    for left in (0..500).rev() {
        assert_eq!(at(con, 0, request), [0, 500, left, 0, (500 - left) * 10]);
    }
    assert_eq!(at(con, 0, request), [1, 500, 0, 10, 5000]);
    for token in 1..=5 {
        assert_eq!(at(con, token * 10_000 - 1, request), [1, 500, 0, 1, 4991]);
        assert_eq!(at(con, token * 10_000, request), [0, 500, 0, 0, 5000]);
    }
}

#[test]
fn an_idle_bucket_is_gone_at_most_ten_seconds_after_it_is_full() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // The year 2100, so that the deadline depends on `AT` alone.
    let now = 4_102_444_800_000;
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET key 500 100 1s COST 500 AT {now}000"))[4], 5000);
    let kept = ints(con, "PEXPIRETIME key")[0] - now;
    assert!((5000..=15_000).contains(&kept), "{kept} ms");
}

// Seed 000: 100 at once, each for a minute at most.
#[test]
fn of_100_concurrent_requests_one_that_got_lost_comes_free_by_itself() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for n in 0..100 {
        let reply = at(con, 0, &format!("RL.CONCURRENT key 100 1m request-{n}"));
        assert_eq!(reply, [0, 100, 99 - n, 0, 60_000]);
    }
    assert_eq!(at(con, 0, "RL.CONCURRENT key 100 1m late"), [1, 100, 0, 60_000, 60_000]);
    for n in (0..100).filter(|n| *n != 42) {
        let release = format!("RL.RELEASE key request-{n}");
        assert_eq!(at(con, SECOND, &release), [1]);
        assert_eq!(at(con, SECOND, &release), [0], "only once");
    }
    assert_eq!(at(con, MINUTE - 1, "RL.PEEK key CONCURRENT 100 1m late"), [0, 100, 99, 0, 1]);
    assert_eq!(at(con, MINUTE - 1, "RL.CONCURRENT key 100 1m late"), [0, 100, 98, 0, 60_000]);
    assert_eq!(at(con, MINUTE, "RL.RENEW key 1m request-42"), [0], "too late");
    assert_eq!(at(con, MINUTE, "RL.PEEK key CONCURRENT 100 1m other"), [0, 100, 99, 0, 60_000]);
}

// Seed 000, the fleet usage load shedder: a fifth of the workers is for what is critical.
#[test]
fn at_80_of_100_only_what_is_critical_passes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let request = |id: &str| format!("RL.CONCURRENT fleet 100 1m {id} RESERVED 20");
    for n in 0..80 {
        assert_eq!(at(con, 0, &request(&format!("report-{n}"))), [0, 80, 79 - n, 0, 60_000]);
    }
    assert_eq!(at(con, SECOND, &request("report-80")), [1, 80, 0, 59_000, 59_000]);
    for n in 0..20 {
        let critical = request(&format!("charge-{n} CRITICAL"));
        assert_eq!(at(con, SECOND, &critical), [0, 100, 19 - n, 0, 60_000]);
    }
    assert_eq!(at(con, SECOND, &request("charge-20 CRITICAL")), [1, 100, 0, 59_000, 60_000]);
    // Of 99 held, the hundredth is for what is critical too.
    assert_eq!(at(con, SECOND, "RL.RELEASE fleet report-0"), [1]);
    assert_eq!(at(con, SECOND, &request("report-80")), [1, 80, 0, 59_000, 60_000]);
    assert_eq!(at(con, SECOND, &request("charge-20 CRITICAL")), [0, 100, 0, 0, 60_000]);
}

// Seed 000, the worker utilization load shedder.
#[test]
fn nothing_is_shed_for_28_s_everything_after_148_s_and_the_way_back_is_as_slow() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut report = |second: u32, utilization: f64, expected: f64| {
        let now = SIX + u64::from(second) * SECOND;
        let reply = text(con, &format!("RL.SHED key {utilization} AT {now}"));
        let (limited, chance) = reply.trim_matches(['[', ']']).split_once(", ").unwrap();
        let chance: f64 = chance.parse().unwrap();
        assert!((chance - expected).abs() < 1e-9, "{second} s: {chance}, not {expected}");
        // Where the chance leaves no choice, the dice agree.
        if !(1e-9..1.0 - 1e-9).contains(&expected) {
            assert_eq!(limited, if expected < 0.5 { "0" } else { "1" }, "{second} s");
        }
    };
    let share = |seconds: u32, of: f64| f64::from(seconds) / of;
    (0..=28).step_by(4).for_each(|second| report(second, 1.0, 0.0));
    (32..148).step_by(4).for_each(|second| report(second, 1.0, share(second - 28, 120.0)));
    (148..=160).step_by(4).for_each(|second| report(second, 1.0, 1.0));
    // Between good and bad it holds. At 0.35, half of good, it takes twice the time to let everything in again.
    (164..=200).step_by(4).for_each(|second| report(second, 0.75, 1.0));
    (204..440).step_by(4).for_each(|second| report(second, 0.35, 1.0 - share(second - 200, 240.0)));
    (440..=496).step_by(4).for_each(|second| report(second, 0.35, 0.0));
    // At rest: it takes 28 s of trouble again.
    (500..=524).step_by(4).for_each(|second| report(second, 1.0, 0.0));
    report(536, 1.0, 0.1);
}

// Seed 001: a packet of n takes n tokens, or none at all.
#[test]
fn a_token_bucket_keeps_its_tokens_if_they_are_too_few() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(at(con, 0, "RL.TOKENBUCKET key 5 1 1s COST 3"), [0, 5, 2, 0, 3000]);
    let before = dump(con, "key");
    assert_eq!(at(con, 0, "RL.TOKENBUCKET key 5 1 1s COST 3"), [1, 5, 2, 1000, 3000]);
    assert_eq!(dump(con, "key"), before);
    assert_eq!(at(con, 0, "RL.TOKENBUCKET key 5 1 1s COST 2"), [0, 5, 0, 0, 5000]);
}

// Seed 001: a constant outflow, whatever pours in.
#[test]
fn a_leaky_bucket_lets_out_one_per_second_and_overflows_at_three() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let request = "RL.LEAKYBUCKET key 3 1 1s";
    for waiting in 0..3 {
        assert_eq!(at(con, 0, request), [0, 3, 2 - waiting, waiting * 1000, (waiting + 1) * 1000]);
    }
    assert_eq!(at(con, 0, request), [1, 3, 0, 1000, 3000]);
    assert_eq!(at(con, SECOND - 1, request), [1, 3, 0, 1, 2001]);
    assert_eq!(at(con, SECOND, request), [0, 3, 0, 2000, 3000]);
}

// Seed 001, "stamping elephant", and what the sliding window and the log make of it.
#[test]
fn a_fixed_window_admits_twice_the_limit_at_its_edge_and_the_sliding_ones_do_not() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let (before, edge) = (MINUTE - 1000, MINUTE);
    assert_eq!(at(con, before, "RL.FIXEDWINDOW fixed 100 1m ALIGNED COST 100"), [0, 100, 0, 0, 1]);
    assert_eq!(at(con, edge, "RL.FIXEDWINDOW fixed 100 1m ALIGNED COST 100"), [0, 100, 0, 0, 60_000]);

    // A hundredth of the window frees one of the hundred; half of it, fifty.
    assert_eq!(at(con, before, "RL.SLIDINGWINDOW window 100 1m COST 100"), [0, 100, 0, 0, 60_001]);
    assert_eq!(at(con, edge, "RL.SLIDINGWINDOW window 100 1m"), [1, 100, 0, 600, 60_000]);
    let halfway = edge + 30 * SECOND;
    assert_eq!(at(con, halfway, "RL.SLIDINGWINDOW window 100 1m COST 51"), [1, 100, 50, 600, 30_000]);
    assert_eq!(at(con, halfway, "RL.SLIDINGWINDOW window 100 1m COST 50"), [0, 100, 0, 0, 90_000]);

    assert_eq!(at(con, before, "RL.SLIDINGLOG log 100 1m COST 100"), [0, 100, 0, 0, 60_000]);
    assert_eq!(at(con, edge, "RL.SLIDINGLOG log 100 1m"), [1, 100, 0, 59_999, 59_999]);
    assert_eq!(at(con, before + MINUTE, "RL.SLIDINGLOG log 100 1m COST 100"), [0, 100, 0, 0, 60_000]);
}

// Seed 001: ten seconds of twice the limit. The previous window's weight costs one request in ten after the first
// second: 10 + 9 times 9.
#[test]
fn of_200_requests_a_sliding_window_admits_91_where_the_exact_ones_admit_100() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (limiter, expected) in [
        ("SLIDINGWINDOW key 10 1s", 91),
        ("FIXEDWINDOW key 10 1s ALIGNED", 100),
        ("SLIDINGWINDOW key 10 1s PRECISION 50ms", 100),
        ("SLIDINGLOG key 10 1s", 100),
    ] {
        text(con, "DEL key");
        let line = format!("RL.{limiter}");
        let admitted = (0..200).filter(|n| at(con, n * SECOND / 20, &line)[0] == 0).count();
        assert_eq!(admitted, expected, "{limiter}");
    }
}

// Seed 001, the sorted set: a blocked action is added too, and a minimum difference may be set.
#[test]
fn whoever_keeps_hammering_a_log_that_counts_refusals_stays_out() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let request = "RL.SLIDINGLOG key 2 10s COUNTREFUSED";
    assert_eq!(at(con, 0, request), [0, 2, 1, 0, 10_000]);
    assert_eq!(at(con, SECOND, request), [0, 2, 0, 0, 10_000]);
    for second in 2..=30 {
        assert_eq!(at(con, second * SECOND, request), [1, 2, 0, 9000, 10_000], "{second} s");
    }
    assert_eq!(at(con, 39 * SECOND, request), [0, 2, 0, 0, 10_000]);

    let spaced = "RL.SLIDINGLOG spaced 5 10s GAP 1s";
    assert_eq!(at(con, 0, spaced), [0, 5, 0, 0, 10_000]);
    assert_eq!(at(con, SECOND / 2, spaced), [1, 5, 0, 500, 9500]);
    assert_eq!(at(con, SECOND, spaced), [0, 5, 0, 0, 10_000]);
    assert_eq!(at(con, 2 * SECOND, "RL.PEEK spaced SLIDINGLOG 5 10s GAP 1s"), [0, 5, 3, 0, 9000]);
}

// Seed 001, Guava's two limiters: permits on credit, and a warm-up.
#[test]
fn guava_lets_the_next_one_pay_and_warms_up_by_the_trapezoid() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(at(con, 0, "RL.SMOOTH bursty 1 1s COST 10"), [0, 1, 0, 0, 10_000]);
    assert_eq!(at(con, 0, "RL.SMOOTH bursty 1 1s"), [0, 1, 0, 9000, 11_000]);

    let mut now = 0;
    for wait in [0, 1375, 1125, 875, 625, 500, 500] {
        assert_eq!(at(con, now, "RL.SMOOTH cold 2 1s WARMUP 4s")[3], wait);
        now += wait.unsigned_abs() * 1000;
    }
}

// Seed 002, its first implementation: 60 per minute, one after the other, and idle time is no credit.
#[test]
fn a_booking_of_60_per_minute_waits_0_1_and_2_seconds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for start in [0, 33 * SECOND] {
        for wait in [0, 1000, 2000] {
            let reply = at(con, start, "RL.GCRA key 0 60 1m RESERVE");
            assert_eq!(reply, [0, 1, 0, wait, wait + 1000]);
        }
    }
}

// Seed 002, its second: a caller that must wait comes back, and only then is charged.
#[test]
fn of_60_per_minute_one_passes_each_second() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for line in ["RL.GCRA key 0 60 1m", "RL.TOKENBUCKET key 1 60 1m", "RL.UNIFORM key 1s"] {
        text(con, "DEL key");
        for second in 0..3 {
            assert_eq!(at(con, second * SECOND, line), [0, 1, 0, 0, 1000], "{line}");
            assert_eq!(at(con, second * SECOND, line), [1, 1, 0, 1000, 1000], "{line}");
            assert_eq!(at(con, second * SECOND + 999_999, line), [1, 1, 0, 1, 1], "{line}");
        }
    }
}

// Seed 003: "at 7:05PM you would get those 20 tokens back".
#[test]
fn what_was_spent_at_18_05_of_240_per_hour_is_given_back_at_19_05() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let window = "240 1h PRECISION 1m";
    let ask = format!("RL.SLIDINGWINDOW key {window} COST");
    let peek = format!("RL.PEEK key SLIDINGWINDOW {window}");
    assert_eq!(at(con, 5 * MINUTE, &format!("{ask} 20")), [0, 240, 220, 0, 3_600_000]);
    assert_eq!(at(con, 65 * MINUTE - 1, &peek), [0, 240, 220, 0, 1]);
    assert_eq!(at(con, 65 * MINUTE, &peek), [0, 240, 240, 0, 0]);

    // What is used in between comes back an hour later as well; a refused request changes no counter.
    assert_eq!(at(con, 30 * MINUTE, &format!("{ask} 220")), [0, 240, 0, 0, 3_600_000]);
    let before = dump(con, "key");
    assert_eq!(at(con, 64 * MINUTE, &format!("{ask} 20")), [1, 240, 0, 60_000, 1_560_000]);
    assert_eq!(at(con, 64 * MINUTE, &format!("{ask} 21")), [1, 240, 0, 1_560_000, 1_560_000]);
    assert_eq!(dump(con, "key"), before);
    assert_eq!(at(con, 65 * MINUTE, &format!("{ask} 20")), [0, 240, 0, 0, 3_600_000]);
    assert_eq!(at(con, 90 * MINUTE, &peek), [0, 240, 220, 0, 2_100_000]);
}

// Seed 003, the stampeding elephants: not at 19:00, but at 19:01 and 19:59.
#[test]
fn what_was_spent_at_18_01_and_18_59_comes_back_at_19_01_and_19_59() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let left = |con: &mut Connection, minute: u64, limiter: &str| {
        let (name, parameters) = limiter.split_once(' ').unwrap();
        at(con, minute * MINUTE, &format!("RL.{name} key {parameters} COST 0"))[2]
    };
    for (limiter, expected) in [
        ("SLIDINGWINDOW 240 1h PRECISION 1m", [0, 100, 100, 240]),
        ("SLIDINGLOG 240 1h", [0, 100, 100, 240]),
        ("FIXEDWINDOW 240 1h ALIGNED", [240, 240, 240, 240]),
    ] {
        let (name, parameters) = limiter.split_once(' ').unwrap();
        text(con, "DEL key");
        at(con, MINUTE, &format!("RL.{name} key {parameters} COST 100"));
        at(con, 59 * MINUTE, &format!("RL.{name} key {parameters} COST 140"));
        assert_eq!([60, 61, 118, 119].map(|minute| left(con, minute, limiter)), expected, "{limiter}");
    }
}

// Seed 004, at its own times: tickets to the tiger feeding, once in ten seconds.
#[test]
fn the_gate_of_10_s_is_shut_at_15_57_and_open_at_25_09() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for line in [
        "RL.UNIFORM key 10s",
        "RL.GCRA key 0 1 10s",
        "RL.TOKENBUCKET key 1 1 10s",
        "RL.TOKENBUCKET key 1 1 10s BATCH",
    ] {
        text(con, "DEL key");
        let mut ask = |time: u64| ints(con, &format!("{line} AT {time}"));
        assert_eq!(ask(1_668_631_508_791_244), [0, 1, 0, 0, 10_000], "{line}");
        assert_eq!(ask(1_668_631_515_574_130), [1, 1, 0, 3218, 3218], "{line}");
        assert_eq!(ask(1_668_631_525_094_945), [0, 1, 0, 0, 10_000], "{line}");
    }
}

// Seed 004, at its own times, except the first, which it does not give.
#[test]
fn a_log_of_3_per_10_s_answers_1_1_1_0() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut ask = |time: u64, limit: u64| ints(con, &format!("RL.SLIDINGLOG key {limit} 10s AT {time}"));
    assert_eq!(ask(1_668_807_300_000_000, 3), [0, 3, 2, 0, 10_000]);
    assert_eq!(ask(1_668_807_303_988_345, 3), [0, 3, 1, 0, 10_000]);
    assert_eq!(ask(1_668_807_306_468_427, 3), [0, 3, 0, 0, 10_000]);
    assert_eq!(ask(1_668_807_308_411_043, 3), [1, 3, 0, 1589, 8058]);
    // The source's `==` opens the gate when the limit is lowered below what was used.
    assert_eq!(ask(1_668_807_308_411_043, 2), [1, 2, 0, 5578, 8058]);
    assert_eq!(ask(1_668_807_310_000_000, 3), [0, 3, 0, 0, 10_000]);
}
