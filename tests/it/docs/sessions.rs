//! What README, SECURITY and the pages of `docs/` show is what happens: every block in them is run, in order, a page on
//! a fresh server.
//!
//! ```text
//! redis-cli   a session: each line behind the prompt is typed in, and must print what stands below it. Three dots stand
//!             for a number that differs each time; what follows `  # ` is a label. A line `→ …` instead says what
//!             matters of the reply (summary.rs)
//! replies     the block before again, with whole replies; it is not run twice
//! conf        lines of redis.conf: a server starts with them
//! sh          commands of the shell: only `make` and a target that exists
//! python, js  run by the tests of the packages
//! yaml, console, dockerfile   run by tools/test-image, or checked there
//! lua         a script with two keys and an argument
//! text        shown, not run: pictures, and what others print. Below a paragraph that links to a program, text is of it
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use ratelimit_demo::shown::printed;
use ratelimit_engine::memory::Element;
use redis::Value;

use super::summary;
use crate::support::{PROMPT, Server, call, error_line, module};

/// A reply of a server, as that of a node in memory.
fn element(reply: &Value) -> Element {
    match reply {
        Value::Int(number) => Element::Integer(*number),
        Value::BulkString(bytes) => Element::Bytes(bytes.clone()),
        Value::Okay => Element::Ok,
        Value::Nil => Element::Null,
        Value::Array(elements) => Element::Array(elements.iter().map(element).collect()),
        other => panic!("the README shows no {other:?}"),
    }
}

pub struct Block {
    /// The paragraph above it.
    paragraph: String,
    pub language: String,
    pub lines: Vec<String>,
}

pub fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = ["README.md", "SECURITY.md", "docs/site/index.md"].map(|page| root.join(page)).to_vec();
    for folder in ["docs", "docs/commands"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages
}

pub fn blocks(page: &Path) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    let text = fs::read_to_string(page).unwrap();
    let mut before = "";
    let mut paragraph = String::new();
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(language) => {
                inside = true;
                blocks.push(Block {
                    paragraph: paragraph.clone(),
                    language: language.into(),
                    lines: Vec::new(),
                });
            }
            None if inside => blocks.last_mut().unwrap().lines.push(line.into()),
            None if line.is_empty() => {}
            None if before.is_empty() => paragraph = line.into(),
            None => paragraph.push_str(line),
        }
        before = line;
    }
    assert!(!inside, "{}: a block does not end", page.display());
    blocks
}

#[test]
fn every_block_does_what_stands_there() {
    for page in pages() {
        let server = Server::start(&[]);
        let mut replies = Vec::new();
        for block in blocks(&page) {
            match block.language.as_str() {
                "redis-cli" => replies = type_in(&server, &page, &block.lines),
                "replies" => compare(&page, &block.lines, &replies.concat()),
                "conf" => configure(&page, &block.lines),
                "sh" => make(&page, &block.lines),
                "lua" => evaluate(&server, &page, &block.lines),
                "text" | "python" | "js" | "yaml" | "console" | "dockerfile" => {}
                other => panic!("{}: nobody runs a block of {other:?}", page.display()),
            }
        }
    }
}

#[test]
fn what_pages_show_of_a_program_is_in_it() {
    let mut shown = 0;
    for page in pages() {
        for Block { paragraph, lines, .. } in
            blocks(&page).into_iter().filter(|block| block.language == "text")
        {
            let code: String = programs(&paragraph)
                .map(|link| fs::read_to_string(page.with_file_name(link)).unwrap())
                .collect();
            let code: Vec<&str> = code.lines().map(str::trim).collect();
            for line in lines.iter().filter(|_| !code.is_empty()) {
                shown += 1;
                assert!(
                    code.contains(&line.trim()),
                    "{}: its program does not have {line:?}",
                    page.display()
                );
            }
        }
    }
    assert!(shown > 0);
}

fn programs(paragraph: &str) -> impl Iterator<Item = &str> {
    let links = paragraph.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    links.filter(|link| [".py", ".mjs", ".ts", ".go"].iter().any(|extension| link.ends_with(extension)))
}

/// Returns what each command of a session prints, itself as the first line.
fn type_in(server: &Server, page: &Path, lines: &[String]) -> Vec<Vec<String>> {
    let con = &mut server.connection();
    let typed_in = exchanges(lines).map(|(command, expected)| {
        let words: Vec<&str> = command.strip_prefix(PROMPT).expect("a prompt").split(' ').collect();
        let reply = call(con, &words).map_err(|error| error_line(&error));
        [vec![command.clone()], check(page, command, expected, reply)].concat()
    });
    typed_in.collect()
}

/// Each command of a session, and the lines below it.
pub fn exchanges(lines: &[String]) -> impl Iterator<Item = (&String, &[String])> {
    lines.chunk_by(|_, line| !line.starts_with(PROMPT)).map(|exchange| exchange.split_first().unwrap())
}

/// Checks that a reply is what the page says, and returns it as redis-cli prints it.
pub fn check(page: &Path, command: &str, expected: &[String], reply: Result<Value, String>) -> Vec<String> {
    let shown = match &reply {
        Ok(reply) => printed(&element(reply)),
        Err(error) => vec![format!("(error) {error}")],
    };
    match expected {
        [line] if line.starts_with("→ ") => {
            let reply = reply.unwrap_or_else(|error| panic!("{}: {command}: {error}", page.display()));
            summary::check(line.trim_start_matches("→ "), &reply);
        }
        expected => compare(page, expected, &shown),
    }
    shown
}

fn compare(page: &Path, lines: &[String], printed: &[String]) {
    let page = page.display();
    assert_eq!(printed.len(), lines.len(), "{page}: the server replies\n{}", printed.join("\n"));
    for (printed, line) in printed.iter().zip(lines) {
        let expected = line.split_once("  # ").map_or(line.as_str(), |(reply, _)| reply.trim_end());
        let matches = match expected.split_once("...") {
            Some((before, after)) => printed.starts_with(before) && printed.ends_with(after),
            None => printed == expected,
        };
        assert!(matches, "{page}: {expected:?}, but the server replies {printed:?}");
    }
}

/// A script may ask which keys were refused, so one is. The server has just started: its previous window is empty.
fn evaluate(server: &Server, page: &Path, lines: &[String]) {
    let script = lines.join("\n").replace(", 'PREVIOUS'", "");
    let con = &mut server.connection();
    call(con, &["RL.GCRA", "refused", "0", "1", "1h", "COST", "2"]).unwrap();
    let reply = call(con, &["EVAL", &script, "2", "{lua}:1", "{lua}:2", "203.0.113.9"]);
    assert!(reply.is_ok(), "{}: {}", page.display(), error_line(&reply.unwrap_err()));
}

/// Lines that load other modules are skipped.
fn configure(page: &Path, lines: &[String]) {
    let settings = lines.iter().filter(|line| !line.starts_with('#') && !line.starts_with("loadmodule"));
    let words: Vec<String> = settings
        .filter_map(|line| line.split_once(' '))
        .flat_map(|(name, value)| [format!("--{name}"), value.trim_matches('"').to_string()])
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let started = Server::try_start_with(Some(&module()), &[], &words);
    assert!(started.is_ok(), "{}: {words:?}: {:?}", page.display(), started.err());
}

fn make(page: &Path, lines: &[String]) {
    for line in lines {
        let (command, target) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = target.split(' ');
        let target = words.next().unwrap();
        let there = include_str!("../../../Makefile").contains(&format!("\n{target}:"));
        assert!(command == "make" && there, "{}: {line}", page.display());
        for what in words.filter_map(|word| word.strip_prefix("WHAT=")) {
            let there = include_str!("../../../tools/bench").contains(&format!("\n#   {what} "));
            assert!(there, "{}: {line}", page.display());
        }
    }
}
