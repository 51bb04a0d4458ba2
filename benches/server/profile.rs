//! Where the instructions of a call go, on a server alone: callgrind's own account, by function, with what each calls.
//!
//! Divided by the calls that were made, so that start and preparation are a few hundred too much; what matters is what
//! stands beside what. The server's functions have names; ours stand with the file they are in.

use std::process::Command;

use super::audience::Audience;
use super::instructions::{args, under_callgrind};
use super::load::{PIPELINE, Size, put};
use super::row::Row;
use super::rows;
use super::{Result, Selection, grouped};
use ratelimit_testing::fresh_dir;

const CALLS: u32 = 60_032;
/// Functions that take fewer instructions per call are not told.
const LEAST: u64 = 100;
/// What stands above everything and says nothing.
const FRAME: [&str; 5] = ["PROGRAM TOTALS", "below main", "libc_start", "aeMain", "aeProcessEvents"];

/// Prints an account for each row; returns how many failed.
pub fn run(selection: &Selection<'_>) -> usize {
    let mut failed = 0;
    for row in rows::all().filter(|row| selection.has(row.name)) {
        println!("\n{}: instructions per call, with all that is called from there", row.name);
        match account(row) {
            Ok(lines) => {
                for (count, function) in lines {
                    println!("{:>8}  {function}", grouped(count));
                }
            }
            Err(error) => {
                failed += 1;
                println!("ERROR, not measured: {error}");
            }
        }
    }
    failed
}

fn account(row: &Row) -> Result<Vec<(u64, String)>> {
    let folder = fresh_dir();
    let mut server = under_callgrind(&folder.join("out").to_string_lossy(), &args(row)?, Audience::Nobody)?;
    put(&server, row, Size { connections: 10, pipeline: PIPELINE, keys: 1000, calls: CALLS, most: CALLS })?;
    server.stop();
    let told = Command::new("callgrind_annotate")
        .args(["--inclusive=yes", "--threshold=99"])
        .arg(folder.join("out-01"))
        .output();
    let _ = std::fs::remove_dir_all(&folder);
    let told = String::from_utf8_lossy(&told?.stdout).into_owned();
    // "1,234,567 (12.3%)  file:function [object]"
    let line = |line: &str| {
        let (count, rest) = line.trim().split_once(" (")?;
        let count: u64 = count.replace(',', "").parse().ok()?;
        let (_, function) = rest.split_once(')')?;
        let function = function.trim().split(" [").next()?.trim_start_matches("???:").to_string();
        let function = function.replace(env!("CARGO_MANIFEST_DIR").trim_end_matches("benches"), "");
        let framed = FRAME.iter().any(|frame| function.contains(frame)) || function.starts_with("0x");
        (!framed && count / u64::from(CALLS) >= LEAST).then_some((count / u64::from(CALLS), function))
    };
    let lines: Vec<_> = told.lines().filter_map(line).collect();
    if lines.is_empty() { Err("callgrind_annotate tells nothing".into()) } else { Ok(lines) }
}
