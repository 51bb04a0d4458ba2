//! Requests per second that one core serves: a million divided by the microseconds of CPU time that the server's main
//! thread takes for each, with as many requests of a connection under way as an application has.
//!
//! It is what the server could do, not what this machine's clients manage to ask beside it. Requests that come alone
//! cost most of their time in the kernel, whatever they ask.

use super::audience::Audience;
use super::load::{Size, put};
use super::row::Row;
use super::rows;
use super::{Result, Selection, grouped};

/// Requests under way on each connection: one, some, and as many as redis-benchmark sends elsewhere.
const PIPELINES: [u32; 3] = [1, 8, 64];
/// The rows that are shown by default.
const TOLD: &[&str] = &[
    "INCR",
    "SET PX",
    "RL.GCRA admitted",
    "RL.GCRA refused",
    "RL.TOKENBUCKET admitted",
    "RL.SLIDINGWINDOW admitted",
    "RL.SLIDINGLOG admitted, 100 entries",
    "RL.CONCURRENT acquire",
    "RL.MULTI, three windows on one key",
    "RL.PEEK GCRA",
    "Lua token bucket",
];
/// The fastest of so many: what slows one down is the machine.
const TRIES: u32 = 3;

/// Prints the table; returns how many rows failed.
pub fn run(selection: &Selection<'_>) -> usize {
    println!("Requests per second and core");
    let heads = PIPELINES.map(|pipeline| format!("{pipeline} at once"));
    println!("{:<36} {:>12} {:>12} {:>12}", "call", heads[0], heads[1], heads[2]);
    let asked = |row: &&Row| TOLD.contains(&row.name) && selection.has(row.name);
    let mut failed = 0;
    for row in rows::hot().filter(asked) {
        let told: Result<Vec<u64>> = PIPELINES.iter().map(|pipeline| per_second(row, *pipeline)).collect();
        match told {
            Ok(told) => {
                let told: Vec<_> = told.iter().map(|number| format!("{:>12}", grouped(*number))).collect();
                println!("{:<36} {}", row.name, told.join(" "));
            }
            Err(error) => {
                failed += 1;
                println!("{:<36} ERROR, not measured: {error}", row.name);
            }
        }
    }
    failed
}

fn per_second(row: &Row, pipeline: u32) -> Result<u64> {
    let size = Size { connections: 50, pipeline, keys: 100_000, calls: 200_000, most: 200_000 };
    let mut micros = f64::INFINITY;
    for _ in 0..TRIES {
        let (server, _) = Audience::Nobody.start()?;
        micros = micros.min(put(&server, row, size)?);
    }
    // To the nearest thousand: the machine is no more exact than that.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some millions at most")]
    Ok((1000.0 / micros).round() as u64 * 1000)
}
