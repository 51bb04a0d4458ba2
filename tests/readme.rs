//! What the README shows is what happens: every session in it is typed in, in order, and must print what stands there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod support;

use redis::Value;
use support::{Server, call, error_line};

const PROMPT: &str = "127.0.0.1:6379> ";

/// A reply as redis-cli prints it.
fn printed(reply: &Value) -> Vec<String> {
    match reply {
        Value::Int(number) => vec![format!("(integer) {number}")],
        Value::BulkString(bytes) => vec![format!("\"{}\"", String::from_utf8_lossy(bytes))],
        Value::Okay => vec!["OK".into()],
        Value::Nil => vec!["(nil)".into()],
        Value::Array(elements) => {
            let width = elements.len().to_string().len();
            let lines = elements.iter().enumerate();
            lines.map(|(i, element)| format!("{:>width$}) {}", i + 1, printed(element).join(" "))).collect()
        }
        other => panic!("the README shows no {other:?}"),
    }
}

#[test]
fn every_session_prints_what_stands_there() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let readme = include_str!("../README.md");
    let (mut expected, mut told, mut in_session) = (Vec::new(), Vec::new(), false);
    for line in readme.lines() {
        match line {
            "```redis-cli" => in_session = true,
            "```" => in_session = false,
            line if in_session => {
                expected.push(line.to_string());
                if let Some(command) = line.strip_prefix(PROMPT) {
                    told.push(line.to_string());
                    let words: Vec<&str> = command.split(' ').collect();
                    match call(con, &words) {
                        Ok(reply) => told.extend(printed(&reply)),
                        Err(error) => told.push(format!("(error) {}", error_line(&error))),
                    }
                }
            }
            _ => {}
        }
    }
    assert!(expected.len() > 60, "the sessions were found");
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(&expected) {
        // Dots stand for what is another number each time.
        let matches = match expected.split_once("...") {
            Some((before, after)) => told.starts_with(before) && told.ends_with(after),
            None => told == expected,
        };
        assert!(matches, "the README says {expected:?}, the server {told:?}");
    }
}

#[test]
fn the_readme_names_every_command_with_its_syntax() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let readme = include_str!("../README.md");
    let commands = support::text(con, "COMMAND LIST FILTERBY MODULE ratelimit");
    let names: Vec<&str> = commands.trim_matches(['[', ']']).split(", ").collect();
    assert_eq!(names.len(), 22, "{names:?}");
    for name in names {
        let arguments = if name == "rl.help" { "" } else { " key" };
        let heading = format!("{}{arguments}", name.to_uppercase());
        let shown = readme.lines().any(|line| line.starts_with("### ") && line.contains(&heading));
        assert!(shown, "no heading with {heading}");
    }
}

#[test]
fn the_readmes_two_commands_and_settings_exist() {
    let makefile = include_str!("../Makefile");
    for target in ["run", "test", "install", "lint", "help"] {
        assert!(makefile.contains(&format!("\n{target}:")), "make {target}");
    }
    let server = Server::start(&[]);
    for setting in ["max-leases", "max-log-entries"] {
        let told = support::text(&mut server.connection(), &format!("CONFIG GET ratelimit.{setting}"));
        assert_eq!(told, format!("[ratelimit.{setting}, 1000000]"));
        let line = format!("ratelimit.{setting} 1000000");
        assert!(include_str!("../redis.conf").contains(&line), "redis.conf shows {line}");
    }
}
