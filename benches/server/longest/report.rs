//! What the search found, and how it is printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::grouped;

/// The characters of a call that are printed.
const SHOWN: usize = 110;
/// Calls that take less than this share of the limit are not printed.
const LEAST_SHARE: u64 = 100;
/// The calls before it that are printed; if there are more, they are written to a file.
const SHOWN_CALLS: usize = 4;

/// A call, and how long it took at least.
pub struct Found {
    pub micros: u64,
    pub call: String,
    /// The calls on a fresh copy of the state before it.
    pub after: Vec<String>,
}

/// A call that is linear by nature.
struct Linear {
    micros: u64,
    entries: u64,
}

#[derive(Default)]
pub struct Findings {
    /// The number of calls that were timed.
    pub made: u64,
    /// The longest call by family of states and command.
    longest: BTreeMap<(String, String), Found>,
    /// By family of states and call.
    linear: BTreeMap<(String, String), Linear>,
    /// Why some calls were not timed.
    failures: Vec<String>,
}

/// The command of a call.
pub fn command(call: &str) -> &str {
    call.split(' ').next().unwrap_or_default()
}

impl Findings {
    /// The microseconds of the longest call of this command so far.
    pub fn longest(&self, family: &str, command: &str) -> u64 {
        self.longest.get(&(family.to_string(), command.to_string())).map_or(0, |found| found.micros)
    }

    /// Records a call if it is the longest of its command.
    pub fn record(&mut self, family: &str, found: Found) {
        let command = command(&found.call).to_string();
        if found.micros > self.longest(family, &command) || !self.has(family, &command) {
            self.longest.insert((family.to_string(), command), found);
        }
    }

    fn has(&self, family: &str, command: &str) -> bool {
        self.longest.contains_key(&(family.to_string(), command.to_string()))
    }

    pub fn record_linear(&mut self, family: &str, call: &str, micros: u64, entries: u64) {
        self.linear.insert((family.to_string(), call.to_string()), Linear { micros, entries });
    }

    pub fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// Fails for each command of the module that was not timed, if all states were searched.
    pub fn check_coverage(&mut self, commands: &[String], complete: bool) {
        if !complete {
            return;
        }
        let timed: Vec<String> = self.longest.keys().map(|(_, command)| command.to_lowercase()).collect();
        for missing in commands.iter().filter(|command| !timed.contains(command)) {
            self.failures.push(format!("{missing}: no call was timed"));
        }
    }

    /// Prints all findings. Returns the number of calls that took over `most` microseconds, and of failures.
    pub fn print(&self, most: u64) -> usize {
        println!("\nThe longest calls of {}, in microseconds of the server's time", grouped(self.made));
        println!("{:>12}  {:<16} call", "us", "state");
        let mut sorted: Vec<_> = self.longest.iter().collect();
        sorted.sort_by_key(|(_, found)| std::cmp::Reverse(found.micros));
        let told = sorted.iter().take_while(|(_, found)| found.micros > most / LEAST_SHARE);
        for ((family, command), found) in told.clone() {
            println!("{:>12}  {family:<16} {}", grouped(found.micros), shortened(&found.call));
            if found.micros > most / 2 {
                print_after(&format!("{family}-{command}"), &found.after);
            }
        }
        let others = sorted.len() - told.count();
        println!(
            "{:>12}  the longest calls of {others} other commands on a state",
            format!("<= {}", most / LEAST_SHARE)
        );
        println!("\nLinear by nature");
        println!("{:>12} {:>10}  {:<16} call", "us", "ns/entry", "state");
        for ((family, call), linear) in &self.linear {
            let each = linear.micros * 1000 / linear.entries;
            println!(
                "{:>12} {:>10}  {family:<16} {}",
                grouped(linear.micros),
                grouped(each),
                shortened(call)
            );
        }
        // A call on several keys may take so long for each.
        let long = sorted.iter().filter(|(_, found)| found.micros > most * keys(&found.call));
        let long: Vec<String> = long.map(|((family, command), _)| format!("{command} on {family}")).collect();
        println!(
            "\nOver {} us for each key: {}",
            grouped(most),
            if long.is_empty() { "none".into() } else { long.join(", ") }
        );
        for failure in &self.failures {
            println!("ERROR, not measured: {failure}");
        }
        long.len() + self.failures.len()
    }
}

/// The number of keys of a call, or of the call whose effect it is.
fn keys(call: &str) -> u64 {
    let number = call.split_once("RL.MULTI").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
    number.unwrap_or(1)
}

/// Prints the calls that come before a call, or writes them to a file if there are many.
fn print_after(name: &str, after: &[String]) {
    if after.len() <= SHOWN_CALLS {
        for call in after {
            println!("{:>12}  {:<16}   after {}", "", "", shortened(call));
        }
        return;
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/longest");
    let file = folder.join(format!("{}.txt", name.replace(' ', "-")));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, after.join("\n") + "\n"));
    let place = written.map_or_else(|error| error.to_string(), |()| file.display().to_string());
    println!("{:>12}  {:<16}   after {} calls: {place}", "", "", after.len());
}

/// A call as it is printed: the ids of leases and the middle of a long call are left out.
fn shortened(call: &str) -> String {
    let words: Vec<&str> = call.split(' ').map(|word| if is_id(word) { "id" } else { word }).collect();
    let line = words.join(" ");
    if line.chars().count() <= SHOWN {
        return line;
    }
    let (start, end) = (SHOWN * 2 / 3, SHOWN / 3);
    let chars: Vec<char> = line.chars().collect();
    let text = |part: &[char]| part.iter().collect::<String>();
    format!("{} ... {}", text(&chars[..start]), text(&chars[chars.len() - end..]))
}

/// Whether it is an id of `states.rs`, which unlike an instant has a letter or begins with 0.
fn is_id(word: &str) -> bool {
    let is_hex = word.len() == 16 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    is_hex && (word.starts_with('0') || word.contains(char::is_alphabetic))
}
