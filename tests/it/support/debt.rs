//! The limiters that can be in debt, and calls of them.

use crate::support::T0;

/// The limiters that can be in debt, each with a limit of 5 that takes 1 s a piece, or a minute or half an hour as a whole.
pub const LIMITERS: [&str; 10] = [
    "TOKENBUCKET 5 1 1s",
    "TOKENBUCKET 5 1 1s BATCH",
    "LEAKYBUCKET 5 1 1s",
    "GCRA 4 1 1s",
    "FIXEDWINDOW 5 1m",
    "FIXEDWINDOW 5 1m ALIGNED",
    "CALENDAR 5 HOUR TZ -03:30",
    "SLIDINGWINDOW 5 1m",
    "SLIDINGWINDOW 5 1m PRECISION 1s",
    "SLIDINGLOG 5 1m",
];

/// The limiter's command on a key of its own.
pub fn line(limiter: &str, key: &str, options: &str) -> String {
    let (name, parameters) = limiter.split_once(' ').unwrap();
    format!("RL.{name} {key} {parameters} {options} AT {T0}")
}
