//! Instructions per call, counted by callgrind on the server.
//!
//! Two servers are prepared alike; one serves 10,048 calls, the other 60,032. Start, preparation and end are the same
//! and cancel: the difference of their counts, divided by 49,984, is what a call costs. It is repeatable to a percent
//! on any x86-64 machine, which CPU time is not. It does not show cache misses.

use std::thread::scope;

use super::load::{Size, put};
use super::rows::{ROWS, Row};
use super::support::{Server, module};
use super::{Result, Selection, against, grouped};

const FEW: u32 = 10_048;
const MANY: u32 = 60_032;

/// Prints the table; returns how many rows failed.
pub fn run(selection: &Selection<'_>) -> usize {
    println!("Instructions per call");
    println!("{:<36} {:>12}  {:<32} elsewhere", "call", "instructions", "target");
    let mut failed = 0;
    for row in ROWS.iter().filter(|row| selection.has(row.name)) {
        match per_call(row) {
            Ok(count) => {
                let target = against(count, row.target);
                println!("{:<36} {:>12}  {target:<32} {}", row.name, grouped(count), row.elsewhere);
            }
            Err(error) => {
                failed += 1;
                println!("{:<36} ERROR, not measured: {error}", row.name);
            }
        }
    }
    failed
}

fn per_call(row: &Row) -> Result<u64> {
    // Side by side: what is counted does not depend on how long it takes.
    let (few, many) = scope(|scope| {
        let few = scope.spawn(|| count(row, FEW));
        let many = count(row, MANY);
        (few.join().unwrap_or_else(|_| Err("the shorter run panicked".into())), many)
    });
    let difference = many?.checked_sub(few?).ok_or("more calls took fewer instructions")?;
    Ok(difference / u64::from(MANY - FEW))
}

/// All instructions of a server that serves so many calls.
fn count(row: &Row, calls: u32) -> Result<u64> {
    let callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let mut server = Server::try_start_under(&callgrind, Some(&module()), &[], &["--hz", "1"])?;
    put(&server, row, Size { connections: 10, keys: 1000, calls, most: MANY })?;
    server.stop();
    let log = server.log();
    // "==123== Collected : 456"
    let total = log.lines().find_map(|line| line.split_once("Collected : "));
    let (_, total) = total.ok_or_else(|| format!("callgrind tells no count:\n{log}"))?;
    Ok(total.trim().parse()?)
}
