//! The limiters that can be in debt, and calls of them.

use crate::support::T0;

/// The limiters that can be in debt, each with a limit of 5 that takes 1 s a piece, or a minute or half an hour as a whole.
pub const LIMITERS: [&str; 10] = [
    "TOKENBUCKET 5 1 1000",
    "TOKENBUCKET 5 1 1000 BATCH",
    "LEAKYBUCKET 5 1 1000",
    "GCRA 4 1 1000",
    "FIXEDWINDOW 5 60000",
    "FIXEDWINDOW 5 60000 ALIGNED",
    "CALENDAR 5 HOUR TZ -03:30",
    "SLIDINGWINDOW 5 60000",
    "SLIDINGWINDOW 5 60000 PRECISION 1000",
    "SLIDINGLOG 5 60000",
];

/// The limiter's command on a key of its own.
pub fn line(limiter: &str, key: &str, options: &str) -> String {
    let (name, parameters) = limiter.split_once(' ').unwrap();
    format!("RL.{name} {key} {parameters} {options} AT {T0}")
}
