//! The search for the longest call: no call may block the server for more than a millisecond.
//!
//! Some calls are linear by nature: they load, copy, free, dump or digest a whole value. They are listed apart, with the
//! time that they take for each entry.
//!
//! Four parts search, a fifth watches the event loop, and a sixth counts bytes:
//!
//! - `runs.rs` fills each state, a million entries in most, and empties some. Each of these calls is timed.
//! - `hard.rs` lists the calls that look hard, for each state.
//! - `search.rs` makes random calls on copies of each state.
//! - `report.rs` prints the longest call of each command on each state, with the calls that led to it.
//! - `turns.rs` lets much end at once, and times the turns of the event loop.
//! - `lease_bytes.rs` counts the bytes that a table of leases takes, after histories that waste memory.
//!
//! The server's slow log has the duration of a call, without the network. The system can interrupt the server at any
//! time. So the shortest time of several repetitions counts, each on a fresh copy of the state.

mod calls;
mod hard;
mod lease_bytes;
mod payload;
mod report;
mod runs;
mod search;
mod states;
mod trial;
mod turns;

use super::{Result, Selection};
pub use search::Options;

use report::Findings;
use states::State;
use trial::Trial;

/// Searches the states that were selected, prints what was found, and returns the number of faults.
pub fn run(options: &Options, selection: &Selection<'_>) -> usize {
    let states: Vec<State> = selected(states::all(), selection);
    let mut faults = 0;
    if !states.is_empty() {
        faults += match search(options, &states) {
            Ok(findings) => findings.print(options.most),
            Err(error) => {
                println!("ERROR, the search ended: {error}");
                1
            }
        };
    }
    if selection.has("turns") {
        faults += turns::run(options.most);
    }
    if selection.has("memory") {
        faults += lease_bytes::run();
    }
    faults
}

/// The states whose names hold a word of the selection, and the states that these are made from.
fn selected(states: Vec<State>, selection: &Selection<'_>) -> Vec<State> {
    let mut needed: Vec<&str> = Vec::new();
    for state in states.iter().rev() {
        if selection.has(&state.name) || needed.contains(&state.name.as_str()) {
            needed.push(&state.name);
            needed.extend(state.base);
        }
    }
    if !needed.is_empty() {
        needed.push(states::SMALL);
    }
    let needed: Vec<String> = needed.into_iter().map(str::to_string).collect();
    states.into_iter().filter(|state| needed.contains(&state.name)).collect()
}

fn search(options: &Options, states: &[State]) -> Result<Findings> {
    let mut findings = Findings::default();
    let mut trial = Trial::start()?;
    for state in states {
        eprintln!("fill {}", state.name);
        runs::fill(&mut trial, state, options.most, &mut findings)?;
    }
    trial.begin_aof()?;
    for run in runs::long(states) {
        eprintln!("run {}", run.what);
        runs::make(&mut trial, &run, options.most, &mut findings)?;
    }
    trial.time_every_call()?;
    for state in states {
        eprintln!("hard calls on {}", state.name);
        hard::measure(&mut trial, state, options.most, &mut findings);
    }
    search::run(&mut trial, states, options, &mut findings)?;
    findings.check_coverage(&trial.command_names(), states.len() == states::all().len());
    Ok(findings)
}
