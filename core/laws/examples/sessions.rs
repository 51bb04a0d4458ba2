//! Runs files of sessions on a node in memory, and prints each line that differs: `sessions tests/sessions/gcra.txt`. With `--fill`
//! it replaces each reply `?` by what the node replies.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use ratelimit_laws::session::{InMemory, run, sessions};

fn main() -> ExitCode {
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let (mut count, mut differ) = (0, 0);
    for name in &names {
        if !flags.is_empty() {
            fill(name, &differences(name).1);
        }
        let (sessions, differs) = differences(name);
        for why in &differs {
            println!("{name}: {why}");
        }
        count += sessions;
        differ += differs.len();
    }
    println!("{count} sessions, {differ} lines differ");
    if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The number of the sessions of a file, and each line that differs.
fn differences(name: &str) -> (usize, Vec<String>) {
    let sessions = sessions(Path::new(name));
    let differs = sessions.iter().flat_map(|session| run(session, &mut InMemory::default()));
    (sessions.len(), differs.collect())
}

/// Replaces `=> ?` in the lines of which a report says the reply.
fn fill(name: &str, differs: &[String]) {
    let text = fs::read_to_string(name).expect("a file");
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for why in differs {
        let number = why.strip_prefix("line ").and_then(|rest| rest.split_once(','));
        let reply = why.split_once("expected ?, replied ").map(|(_, reply)| reply);
        if let (Some((number, _)), Some(reply)) = (number, reply) {
            let line = &mut lines[number.parse::<usize>().expect("a number") - 1];
            if let Some(call) = line.strip_suffix("=> ?") {
                *line = format!("{call}=> {reply}");
            }
        }
    }
    fs::write(name, lines.join("\n") + "\n").expect("a file");
}
