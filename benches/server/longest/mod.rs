//! The search for the longest call: no call may block the server for more than a millisecond.
//!
//! `table.txt` has states of up to a million entries, the calls that fill them, and calls that look hard on each. All are
//! timed, and what replicas receive of the hard ones, and then random sequences of these. Some calls are linear by nature:
//! they load, copy, free, dump or digest a whole value. These are listed apart, with the time for each entry.

mod findings;
mod search;
mod table;
mod turns;

use super::Selection;
pub use search::Options;

/// Searches the states that were selected, prints what was found, and returns the number of faults.
pub fn run(options: &Options, selection: &Selection<'_>) -> usize {
    let mut states = table::states();
    let all = states.len();
    for place in (0..all).rev() {
        // A state is made from one before it.
        let is_base = states[place..].iter().any(|state| state.option("base=") == Some(states[place].name()));
        if !is_base && !selection.has(states[place].name()) {
            states.remove(place);
        }
    }
    let are_all = states.len() == all;
    let faults = if states.is_empty() { 0 } else { search::run(options, &states, are_all) };
    faults + if selection.has("turns") { turns::run(options.most) } else { 0 }
}
