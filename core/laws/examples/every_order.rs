//! All orders of events, also of four callers of three tenants: `make every-order`. With an argument, only the sizes whose title
//! has it.

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::{env, fs};

use ratelimit_laws::every_order::{PROPERTIES, Size, search};

fn main() -> ExitCode {
    let chosen = env::args().nth(1).unwrap_or_default();
    println!("In each state, or at each event:\n{}\n", PROPERTIES.join("\n"));
    for size in Size::ALL.into_iter().filter(|size| size.title.contains(&chosen)) {
        let report = search(size, progress);
        match report {
            Ok(report) => println!("{report}{}", memory()),
            Err(failure) => {
                println!("{}: {failure}", size.title);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The most memory that the program has had so far, where the system tells.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    most.map(|most| format!(", {} so far", most.trim())).unwrap_or_default()
}

/// Shows how far a search is, to who watches it.
fn progress(states: usize, depth: usize) {
    if stderr().is_terminal() {
        eprint!("\r{states} states, depth {depth} \r");
    }
}
