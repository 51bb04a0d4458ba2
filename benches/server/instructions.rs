//! Instructions per call, counted by callgrind on the server.
//!
//! Two servers are prepared alike; one serves 10,048 calls, the other 60,032. Start, preparation and end are the same
//! and cancel: the difference of their counts, divided by 49,984, is what a call costs. It is repeatable to a percent
//! on any x86-64 machine, which CPU time is not. It does not show cache misses. Only the main thread is counted, so with
//! `IO_THREADS=2` what other threads read and write is left out.
//!
//! What writes is counted twice: on a server alone, and on one with a replication backlog, where effects are sent.

use std::fs::{read_to_string, remove_dir_all};
use std::path::Path;
use std::thread::scope;

use super::audience::{Audience, history};
use super::load::{PIPELINE, Size, put};
use super::row::Row;
use super::rows;
use super::{Result, Selection, against, grouped, median_and_range, spread};
use ratelimit_testing::{Server, fresh_dir, module};

const FEW: u32 = 10_048;
const MANY: u32 = 60_032;

/// Prints the table, each figure the median of so many runs; returns how many failed.
pub fn run(runs: usize, selection: &Selection<'_>) -> usize {
    let history = match history() {
        Ok(history) => history,
        Err(error) => {
            println!("ERROR, no RDB with a replication id: {error}");
            return 1;
        }
    };
    println!(
        "Instructions per call{}",
        if runs == 1 { String::new() } else { format!(": median of {runs} runs") }
    );
    println!("{:<36} {:<48} {:<48} elsewhere", "call", "alone, target", "with a backlog, target");
    let mut failed = 0;
    for row in rows::all().filter(|row| selection.has(row.name)) {
        let mut column = |audience, target| match of_runs(runs, row, audience, target) {
            Ok(figure) => figure,
            Err(error) => {
                failed += 1;
                format!("ERROR, not measured: {error}")
            }
        };
        let alone = column(Audience::Nobody, row.target);
        let with_backlog = if row.writes {
            column(Audience::Backlog(history.dir()), row.target_with_backlog)
        } else {
            "-".into()
        };
        println!("{:<36} {alone:<48} {with_backlog:<48} {}", row.name, row.elsewhere);
    }
    failed
}

/// One figure with its target.
fn of_runs(runs: usize, row: &Row, audience: Audience<'_>, target: Option<u64>) -> Result<String> {
    let counts = (0..runs).map(|_| per_call(row, audience)).collect::<Result<Vec<u64>>>()?;
    let (median, _, _) = spread(counts.clone());
    Ok(format!("{:<26} {}", median_and_range(counts, grouped), against(median, target)))
}

fn per_call(row: &Row, audience: Audience<'_>) -> Result<u64> {
    let size = |calls| Size { connections: 10, pipeline: PIPELINE, keys: 1000, calls, most: MANY };
    between([FEW, MANY], &args(row)?, audience, |server, calls| put(server, row, size(calls)))
}

/// Instructions per call, from the fewer calls and the more that `put` makes on a server with these arguments and this
/// audience.
pub fn between(
    [few, many]: [u32; 2],
    args: &[String],
    audience: Audience<'_>,
    put: impl Fn(&Server, u32) -> Result<f64> + Sync,
) -> Result<u64> {
    // Side by side: what is counted does not depend on how long it takes.
    let (fewer, more) = scope(|scope| {
        let fewer = scope.spawn(|| count(args, audience, |server| put(server, few)));
        let more = scope.spawn(|| count(args, audience, |server| put(server, many)));
        let [fewer, more] = [fewer, more].map(|run| run.join().unwrap_or_else(|_| Err("it panicked".into())));
        (fewer, more)
    });
    let difference = more?.checked_sub(fewer?).ok_or("more calls took fewer instructions")?;
    Ok(difference / u64::from(many - few))
}

/// The instructions of the main thread of a server that serves this load.
fn count(args: &[String], audience: Audience<'_>, put: impl Fn(&Server) -> Result<f64>) -> Result<u64> {
    let folder = fresh_dir();
    let mut server = under_callgrind(&folder.join("out").to_string_lossy(), args, audience)?;
    put(&server)?;
    audience.check(&server)?;
    server.stop();
    let told = read_to_string(folder.join("out-01"))?;
    let _ = remove_dir_all(folder);
    // "totals: 456"
    let total = told.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(total.ok_or("callgrind tells no count")?.trim().parse()?)
}

/// A server whose instructions are counted into a file for each thread, `-01` for the main one. It has its audience.
pub fn under_callgrind(file: &str, args: &[String], audience: Audience<'_>) -> Result<Server> {
    let file = format!("--callgrind-out-file={file}");
    let args = [vec!["--hz".into(), "1".into()], args.to_vec(), audience.args()].concat();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let server = Server::try_start_under(
        &["valgrind", "--tool=callgrind", "--trace-children=yes", "--separate-threads=yes", &file],
        Some(&module()),
        &[],
        &args,
    )?;
    audience.join(&server)?;
    Ok(server)
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
