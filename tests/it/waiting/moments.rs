//! Grants that come because time has passed: never early, and soon.

use redis::Connection;

use super::{Waiting, field, micros};
use crate::support::{Server, call, ints, multi, refused, text, wait_for};

/// The limiters that admit again soon, each with a limit of 1.
const LIMITS: [(&str, &str); 10] = [
    ("TOKENBUCKET", "1 1 400ms"),
    ("TOKENBUCKET", "1 1 400ms BATCH"),
    ("LEAKYBUCKET", "1 1 400ms"),
    ("GCRA", "0 1 400ms"),
    ("FIXEDWINDOW", "1 400ms"),
    ("FIXEDWINDOW", "1 400ms ALIGNED"),
    ("SLIDINGWINDOW", "1 400ms"),
    ("SLIDINGWINDOW", "1 400ms PRECISION 50ms"),
    ("SLIDINGLOG", "1 400ms"),
    ("UNIFORM", "400ms"),
];

/// How late a grant may be, in microseconds; and how often a test is made, as a machine may be busy.
const SOON: u64 = 500_000;
const TRIES: usize = 5;

/// Whether a call like the one that waited is admitted at this instant, after the same first call.
fn admits(con: &mut Connection, (limiter, parameters): (&str, &str), first: u64, at: u64) -> bool {
    text(con, "DEL twin");
    ints(con, &format!("RL.{limiter} twin {parameters} AT {first}"));
    let line = format!("RL.PEEK twin {limiter} {parameters} AT {at}");
    !refused(&call(con, &line.split(' ').collect::<Vec<_>>()).unwrap())
}

#[test]
fn each_limiter_admits_who_waits_when_its_time_has_come() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for limit @ (limiter, parameters) in LIMITS {
        let is_soon = (0..TRIES).any(|_| {
            text(con, "DEL k");
            let line = format!("RL.{limiter} k {parameters}");
            ints(con, &line);
            let first = field(con, "k", "last_charge_us");
            let reply = Waiting::start(&server, &format!("{line} BLOCK 1m")).ints();
            assert_eq!(reply[..3], [0, 1, 0], "{line}");
            let granted = field(con, "k", "last_charge_us");
            assert!(granted > first, "{line}");
            assert!(admits(con, limit, first, granted), "{line}: early, {} us after", granted - first);
            !admits(con, limit, first, granted.saturating_sub(SOON).max(first))
        });
        assert!(is_soon, "{limiter} {parameters}: late");
    }
}

#[test]
fn a_lease_that_expires_admits_the_first_in_line() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let is_soon = (0..TRIES).any(|_| {
        text(con, "DEL k");
        // One lease outlives the other, so the key does not expire.
        ints(con, "RL.CONCURRENT k 2 1h long");
        ints(con, "RL.CONCURRENT k 2 300ms short");
        let ends = field(con, "k", "last_charge_us") + 300_000;
        let reply = Waiting::start(&server, "RL.CONCURRENT k 2 1h new BLOCK 1m").ints();
        assert_eq!(reply, [0, 2, 0, 0, 3_600_000]);
        let granted = field(con, "k", "last_charge_us");
        assert!(granted >= ends, "{granted}, {ends}");
        granted < ends + SOON
    });
    assert!(is_soon, "late");
}

#[test]
fn each_of_a_line_waits_for_an_interval_of_its_own() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT GCRA 0 1 300ms");
    ints(con, "RL.GCRA k 0 1 300ms");
    let first = field(con, "k", "theoretical_arrival_us");
    let lines = [
        "RL.GCRA k 0 1 300ms BLOCK 1m",
        "RL.MULTI 1 k BLOCK 1m LIMIT GCRA 0 1 300ms",
        "RL.ASK k p BLOCK 1m",
        "RL.GCRA k 0 1 300ms BLOCK 0",
    ];
    let mut callers: Vec<Waiting> = lines.map(|line| Waiting::start(&server, line)).into();
    for interval in 0.. {
        let mut granted = None;
        wait_for("a grant", || {
            granted = callers.iter_mut().position(|caller| !caller.waits());
            granted.is_some()
        });
        let (moment, now) = (first + interval * 300_000, micros(con));
        assert!(now >= moment, "{interval}: {now}, {moment}");
        callers.remove(granted.unwrap()).text();
        if callers.is_empty() {
            break;
        }
    }
    let charged = field(con, "k", "last_charge_us");
    assert!(charged >= first + 3 * 300_000, "{charged}, {first}");
}

#[test]
fn a_caller_that_needs_several_limits_is_admitted_when_the_last_has_room() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT GCRA 0 1 200ms LIMIT FIXEDWINDOW 1 600ms";
    multi(con, &format!("RL.MULTI 1 k {limits}"));
    let first = field(con, "k", "last_charge_us");
    let reply = Waiting::start(&server, &format!("RL.MULTI 1 k BLOCK 1m {limits}")).text();
    assert!(reply.starts_with("[[0, 1, 0, "), "{reply}");
    let granted = field(con, "k", "last_charge_us");
    assert!(granted >= first + 600_000, "{granted}, {first}");
}
