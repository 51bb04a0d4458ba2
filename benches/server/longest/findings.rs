//! What the search found, and how it is printed.

use std::{collections::BTreeMap, fs};

use crate::grouped;

/// What only prepares a call.
const PREPARATION: [&str; 3] = ["COPY", "CONFIG", "DEBUG"];
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/longest");

#[derive(Default)]
pub struct Findings {
    /// The number of calls that were timed.
    pub made: u64,
    /// Calls that are linear by nature: the state, the call, its microseconds, and nanoseconds for each entry.
    pub linear: Vec<(&'static str, String, u64, u64)>,
    /// Why some calls were not timed.
    pub failures: Vec<String>,
    /// The longest call by state and command: its microseconds, and the calls before it and itself.
    longest: BTreeMap<(&'static str, String), (u64, Vec<String>)>,
}

impl Findings {
    /// Records a call if it is the longest of its command.
    pub fn record(&mut self, state: &'static str, call: &str, micros: u64, after: &[String]) {
        let command = call.split(' ').next().unwrap_or_default();
        let longest = self.longest.entry((state, command.to_string())).or_default();
        if !PREPARATION.contains(&command) && micros >= longest.0 {
            *longest = (micros, [after, &[call.into()]].concat());
        }
    }

    /// Fails for each command of the module that was not timed.
    pub fn check_coverage(&mut self, commands: &[String]) {
        let timed: Vec<String> = self.longest.keys().map(|(_, command)| command.to_lowercase()).collect();
        let missing = commands.iter().filter(|command| !timed.contains(command));
        self.failures.extend(missing.map(|command| format!("{command}: no call was timed")));
    }

    /// Prints all findings. Returns the number of calls that took over `most` microseconds, and of failures.
    pub fn print(&self, most: u64) -> usize {
        println!("\nThe longest calls of {}, in microseconds of the server's time", grouped(self.made));
        let mut sorted: Vec<_> = self.longest.iter().filter(|(_, found)| found.0 > most / 100).collect();
        sorted.sort_by_key(|(_, found)| std::cmp::Reverse(found.0));
        let mut over = Vec::new();
        for ((state, command), (micros, calls)) in sorted {
            let call = calls.last().expect("itself");
            println!("{micros:>12}  {state:<26} {call:.110}");
            // A call on several keys may take so long for each.
            let keys = call.split_once("RL.MULTI").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
            if *micros > most * keys.unwrap_or(1) {
                let file = format!("{FOLDER}/{state}-{command}.txt");
                let written = fs::create_dir_all(FOLDER).and_then(|()| fs::write(&file, calls.join("\n")));
                over.push(format!(
                    "{command} on {state}, {}",
                    written.map_or_else(|error| error.to_string(), |()| file)
                ));
            }
        }
        println!("\nLinear by nature\n{:>12} {:>10}  {:<26} call", "us", "ns/entry", "state");
        for (state, call, micros, each) in &self.linear {
            println!("{:>12} {each:>10}  {state:<26} {call:.110}", grouped(*micros));
        }
        let which = if over.is_empty() { "none".into() } else { over.join("; ") };
        println!("\nOver the limit of {} us for each key: {which}", grouped(most));
        self.failures.iter().for_each(|failure| println!("ERROR, not measured: {failure}"));
        over.len() + self.failures.len()
    }
}
