//! What README, SECURITY and the pages of `docs/` show is what happens: every block in them is run, in order, a page on
//! a fresh server.
//!
//! ```text
//! redis-cli   a session: each line behind the prompt is typed in, and must print what stands below it; three dots
//!             stand for what is another number each time
//! conf        lines of redis.conf: a server starts with them
//! lua, text   shown, not run: other people's scripts, and pictures
//! sh          commands of the shell: only `make` and a target that there is
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;

use crate::support::{PROMPT, Server, call, error_line, module};

/// A reply as redis-cli prints it.
fn printed(reply: &Value) -> Vec<String> {
    match reply {
        Value::Int(number) => vec![format!("(integer) {number}")],
        Value::BulkString(bytes) => vec![format!("\"{}\"", String::from_utf8_lossy(bytes))],
        Value::Okay => vec!["OK".into()],
        Value::Nil => vec!["(nil)".into()],
        Value::Array(elements) if elements.is_empty() => vec!["(empty array)".into()],
        Value::Array(elements) => {
            let width = elements.len().to_string().len();
            let indented = |(i, element)| {
                let lines = printed(element).into_iter().enumerate();
                lines.map(move |(line, text)| match line {
                    0 => format!("{:>width$}) {text}", i + 1),
                    _ => format!("{:>width$}  {text}", ""),
                })
            };
            elements.iter().enumerate().flat_map(indented).collect()
        }
        other => panic!("the README shows no {other:?}"),
    }
}

struct Block {
    language: String,
    lines: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("SECURITY.md")];
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    pages.sort();
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in fs::read_to_string(page).unwrap().lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(language) => {
                inside = true;
                blocks.push(Block { language: language.into(), lines: Vec::new() });
            }
            None if inside => blocks.last_mut().unwrap().lines.push(line.into()),
            None => {}
        }
    }
    assert!(!inside, "{}: a block does not end", page.display());
    blocks
}

#[test]
fn every_block_does_what_stands_there() {
    for page in pages() {
        let server = Server::start(&[]);
        for block in blocks(&page) {
            match block.language.as_str() {
                "redis-cli" => type_in(&server, &page, &block.lines),
                "conf" => configure(&page, &block.lines),
                "sh" => make(&page, &block.lines),
                "lua" | "text" => {}
                other => panic!("{}: nobody runs a block of {other:?}", page.display()),
            }
        }
    }
}

fn type_in(server: &Server, page: &Path, lines: &[String]) {
    let con = &mut server.connection();
    let mut told = Vec::new();
    for line in lines {
        if let Some(command) = line.strip_prefix(PROMPT) {
            told.push(line.clone());
            let words: Vec<&str> = command.split(' ').collect();
            match call(con, &words) {
                Ok(reply) => told.extend(printed(&reply)),
                Err(error) => told.push(format!("(error) {}", error_line(&error))),
            }
        }
    }
    let page = page.display();
    assert_eq!(told.len(), lines.len(), "{page}: the server says\n{}", told.join("\n"));
    for (told, expected) in told.iter().zip(lines) {
        let matches = match expected.split_once("...") {
            Some((before, after)) => told.starts_with(before) && told.ends_with(after),
            None => told == expected,
        };
        assert!(matches, "{page} says {expected:?}, the server {told:?}");
    }
}

/// Lines that name a module of somebody's are not ours to load.
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
        let target = target.split(' ').next().unwrap();
        let there = include_str!("../../../Makefile").contains(&format!("\n{target}:"));
        assert!(command == "make" && there, "{}: {line}", page.display());
    }
}
