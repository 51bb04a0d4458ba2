//! Instructions per call, counted by callgrind on the server.
//!
//! Two servers are prepared alike; one serves 10,048 calls, the other 60,032. Start, preparation and end are the same
//! and cancel: the difference of their counts, divided by 49,984, is what a call costs. It is repeatable to a percent
//! on any x86-64 machine, which CPU time is not. It does not show cache misses.

use std::path::Path;
use std::thread::scope;

use super::load::{PIPELINE, Size, put};
use super::row::Row;
use super::rows;
use super::support::{Server, module};
use super::{Result, Selection, against, grouped};

const FEW: u32 = 10_048;
const MANY: u32 = 60_032;

/// Prints the table; returns how many rows failed.
pub fn run(selection: &Selection<'_>) -> usize {
    println!("Instructions per call");
    println!("{:<36} {:>12}  {:<32} elsewhere", "call", "instructions", "target");
    let mut failed = 0;
    for row in rows::all().filter(|row| selection.has(row.name)) {
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
    let size = |calls| Size { connections: 10, pipeline: PIPELINE, keys: 1000, calls, most: MANY };
    let args = args(row)?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    between([FEW, MANY], &args, |server, calls| put(server, row, size(calls)))
}

/// Instructions per call, from the fewer calls and the more that `put` makes on a server with these arguments.
pub fn between(
    [few, many]: [u32; 2],
    args: &[&str],
    put: impl Fn(&Server, u32) -> Result<f64> + Sync,
) -> Result<u64> {
    // Side by side: what is counted does not depend on how long it takes.
    let (fewer, more) = scope(|scope| {
        let fewer = scope.spawn(|| count(args, |server| put(server, few)));
        let more = scope.spawn(|| count(args, |server| put(server, many)));
        let [fewer, more] = [fewer, more].map(|run| run.join().unwrap_or_else(|_| Err("it panicked".into())));
        (fewer, more)
    });
    let difference = more?.checked_sub(fewer?).ok_or("more calls took fewer instructions")?;
    Ok(difference / u64::from(many - few))
}

/// All instructions of a server that serves this load.
fn count(args: &[&str], put: impl Fn(&Server) -> Result<f64>) -> Result<u64> {
    let callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let args = [&["--hz", "1"], args].concat();
    let mut server = Server::try_start_under(&callgrind, Some(&module()), &[], &args)?;
    put(&server)?;
    server.stop();
    let log = server.log();
    // "==123== Collected : 456"
    let total = log.lines().find_map(|line| line.split_once("Collected : "));
    let (_, total) = total.ok_or_else(|| format!("callgrind tells no count:\n{log}"))?;
    Ok(total.trim().parse()?)
}

/// What a server needs besides the module to know the row's command.
pub fn args(row: &Row) -> Result<Vec<String>> {
    let Some(example) = row.module else { return Ok(Vec::new()) };
    // Beside the folder that this program is in.
    let program = std::env::current_exe()?;
    let built = program.parent().and_then(Path::parent).ok_or("no folder of examples")?;
    let library = built.join("examples").join(format!("lib{example}.so"));
    if !library.exists() {
        return Err(format!("{} is missing: cargo build --release --examples", library.display()).into());
    }
    Ok(vec!["--loadmodule".into(), library.display().to_string()])
}
