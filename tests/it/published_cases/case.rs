//! Scenarios of other rate limiters as data: the limiters they map to, and what each of those answers over the wire.

use redis::{Connection, Value};

use crate::support::{Server, call, ints, text};

/// Where it comes from; the limiters it maps to, as `RL.PEEK` names them (`GCRA 4 10 1m`); and the requests
/// that each of those answers alike, on a fresh key.
pub type Case = (&'static str, &'static [&'static str], &'static [Step]);

/// When, in µs since the start; how many equal requests; the cost of each; and the last one's reply, in which `_` is
/// what the source does not say and what differs between its limiters.
pub type Step = (u64, u32, u64, &'static str);

/// Where it comes from, the limiters it maps to, and what is done on a fresh key.
pub type Story = (&'static str, &'static [&'static str], &'static [(u64, &'static str, &'static str)]);

/// A Tuesday at 22:00:00 UTC: a multiple of every window used here.
pub const START: u64 = 1_699_999_200_000_000;

pub fn check(cases: &[Case]) {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (source, limiters, steps) in cases {
        for limiter in *limiters {
            text(&mut con, "FLUSHALL");
            for (step, (after, times, cost, expected)) in steps.iter().enumerate() {
                let ask = |_| ask(&mut con, limiter, START + after, *cost);
                let reply = (0..*times).map(ask).last().expect("a step asks at least once");
                assert!(
                    fits(&reply, expected),
                    "{source}, {limiter}, step {step}: {reply:?}, not {expected}"
                );
            }
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

/// As above, for what a cost alone does not say: each line is when, in µs since the start, the options, after `PEEK` or
/// `REFUND` if it is one, and the reply. What is refused changes nothing.
pub fn tell(stories: &[Story]) {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (source, limiters, lines) in stories {
        for limiter in *limiters {
            text(&mut con, "FLUSHALL");
            for (after, words, expected) in *lines {
                let before = state(&mut con);
                let reply = ints(&mut con, &format!("{} AT {}", line(limiter, words), START + after));
                assert!(fits(&reply, expected), "{source}, {limiter}, {words}: {reply:?}, not {expected}");
                if reply[0] == 1 || words.starts_with("PEEK") {
                    assert_eq!(state(&mut con), before, "{source}, {limiter}, {words}: the key changed");
                }
            }
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

fn line(limiter: &str, words: &str) -> String {
    let (name, parameters) = limiter.split_once(' ').expect("a limiter and its parameters");
    match words.split_once(' ').unwrap_or((words, "")) {
        (command @ ("PEEK" | "REFUND"), options) => format!("RL.{command} k {limiter} {options}"),
        _ => format!("RL.{name} k {parameters} {words}"),
    }
}

/// Asks for `cost` on the key `k`, with the checks that hold whatever the answer: a probe foretells it, and what
/// charges nothing changes nothing.
pub fn ask(con: &mut Connection, limiter: &str, at: u64, cost: u64) -> Vec<i64> {
    let (name, parameters) = limiter.split_once(' ').expect("a limiter and its parameters");
    let before = state(con);
    let probe = ints(con, &format!("RL.PEEK k {limiter} COST {cost} AT {at}"));
    assert_eq!(state(con), before, "{limiter} at {at}: the probe of {cost} changed the key");
    let reply = ints(con, &format!("RL.{name} k {parameters} COST {cost} AT {at}"));

    assert_eq!(
        probe[0], reply[0],
        "{limiter} at {at}: the probe of {cost} says {probe:?}, the call {reply:?}"
    );
    if reply[0] == 1 || cost == 0 {
        assert_eq!(probe, reply, "{limiter} at {at}: probe and call of {cost}");
        assert_eq!(state(con), before, "{limiter} at {at}: {reply:?} for {cost} changed the key");
    }
    reply
}

/// The key's value and deadline.
pub fn state(con: &mut Connection) -> (Value, Value) {
    (call(con, &["DUMP", "k"]).expect("a dump"), call(con, &["PEXPIRETIME", "k"]).expect("a deadline"))
}

fn fits(reply: &[i64], expected: &str) -> bool {
    let expected: Vec<&str> = expected.split_whitespace().collect();
    reply.len() == expected.len()
        && reply.iter().zip(expected).all(|(number, word)| word == "_" || word == number.to_string())
}
