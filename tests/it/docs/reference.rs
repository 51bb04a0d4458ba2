//! `docs/commands/` has a page for each command. The parts between markers are what the language says of commands,
//! and the costs of docs/performance.md:
//!
//! ```text
//! <!-- catalog --> syntax, flags, arguments and reply <!-- /catalog -->
//! <!-- cost -->    the rows of the command            <!-- /cost -->
//! ```
//!
//! `RATELIMIT_REFERENCE=write cargo test --test it reference` writes these parts anew, and `clients/contract/catalog.json`.
//! The rest of a page is written by hand. `sessions.rs` runs the examples and the errors.

mod argument;
pub mod catalog;
mod contract;
mod cost;
mod files;
pub(super) mod links;
mod settings;

use std::fs;

use ratelimit_language::Error;

use crate::support::PROMPT;
use crate::support::fuzz::grammar::commands;
use files::{folder, is_written, read, root};

/// The sections of a page, in order.
const SECTIONS: [&str; 8] =
    ["Example", "Syntax", "Arguments", "Reply", "Details", "Errors", "Cost", "See also"];

/// The names of the commands, in lower case.
fn names() -> Vec<String> {
    commands().iter().map(|command| command.name.to_lowercase()).collect()
}

/// The names of commands with their pages.
fn pages() -> impl Iterator<Item = (String, String)> {
    names().into_iter().map(|name| {
        let page = read(&folder().join(format!("{name}.md")));
        (name, page)
    })
}

#[test]
fn each_command_has_a_page_and_each_page_a_command() {
    let found =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = found.filter(|name| name != "README.md").collect();
    found.sort();
    let names = names();
    let expected: Vec<String> = names.iter().map(|name| format!("{name}.md")).collect();
    assert_eq!(found, expected, "left: the pages in docs/commands/; right: those of the commands");
    assert_eq!(names.len(), 38, "the number of commands; if one is new, change it here");
}

#[test]
fn what_a_page_says_of_its_command_is_what_the_language_says() {
    let performance = read(&root().join("docs/performance.md"));
    for command in commands() {
        let name = command.name.to_lowercase();
        let path = folder().join(format!("{name}.md"));
        let page = read(&path);
        let part = catalog::page_part(command.documentation, &contract::types(&command));
        let renewed = with_part(&page, "catalog", &part);
        let renewed = with_part(&renewed, "cost", &cost::table(&command.name, &performance));
        if is_written() {
            fs::write(&path, &renewed).unwrap();
        } else {
            assert!(
                page == renewed,
                "{name}.md is not up to date: RATELIMIT_REFERENCE=write writes it. It must be\n{renewed}"
            );
        }
    }
}

/// The page with another text between two markers.
fn with_part(page: &str, marker: &str, text: &str) -> String {
    let (start, end) = (format!("<!-- {marker} -->\n"), format!("<!-- /{marker} -->\n"));
    let (before, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {start} in {page}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end} in {page}"));
    format!("{before}{start}{text}{end}{after}")
}

#[test]
fn each_page_has_the_same_sections_in_the_same_order() {
    for (name, page) in pages() {
        assert!(page.starts_with(&format!("# {}\n\n", name.to_uppercase())), "{name}");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, SECTIONS, "{name}");
        for section in SECTIONS {
            assert!(!section_of(&page, section).is_empty(), "{name}: nothing below {section}");
        }
    }
}

/// The text below a heading, up to the next one.
fn section_of<'p>(page: &'p str, section: &str) -> &'p str {
    let rest = page.split_once(&format!("\n## {section}\n")).map_or("", |(_, rest)| rest);
    rest.split("\n## ").next().unwrap_or(rest).trim()
}

#[test]
fn each_page_shows_the_command_at_work_and_its_errors() {
    for (name, page) in pages() {
        let called = format!("{PROMPT}{}", name.to_uppercase());
        let example = section_of(&page, "Example");
        assert!(example.contains(&called), "{name}: the example has no {called}");
        let errors = section_of(&page, "Errors");
        assert!(errors.contains(&called) && errors.contains("\n(error) "), "{name} shows no error");
    }
}

#[test]
fn each_text_of_an_error_is_on_a_page() {
    let pages: String = pages().map(|(_, page)| page).chain([read(&folder().join("README.md"))]).collect();
    // A new error must be in the list below, or name an argument or a word in its text.
    let has_fixed_text = |error: &Error| match error {
        Error::Arity
        | Error::Missing(_)
        | Error::WrongType(_)
        | Error::Syntax(_)
        | Error::Invalid(_)
        | Error::OtherKind(_)
        | Error::NotForCommand(_)
        | Error::InLimit(..) => false,
        Error::SameKeys
        | Error::TooManyPairs
        | Error::TooManyLimits
        | Error::TooLong
        | Error::TooManyHolds
        | Error::StreamId
        | Error::Payload
        | Error::OutOfMemory
        | Error::Internal => true,
    };
    let errors = [
        Error::SameKeys,
        Error::TooManyPairs,
        Error::TooManyLimits,
        Error::TooLong,
        Error::TooManyHolds,
        Error::StreamId,
        Error::Payload,
        Error::OutOfMemory,
        Error::Internal,
    ];
    for error in errors {
        assert!(has_fixed_text(&error), "{error}");
        assert!(pages.contains(&error.to_string()), "no page has the error {error}");
    }
}

#[test]
fn five_integers_have_labels_in_each_example() {
    for (name, page) in pages() {
        if section_of(&page, "Reply").starts_with("- Five integers") {
            let example = section_of(&page, "Example");
            for label in ["# limited", "# limit", "# remaining", "# retry_after", "# reset_after"] {
                assert!(example.contains(label), "{name}: no reply with a label {label}");
            }
        }
    }
}

#[test]
fn the_index_has_each_command_with_its_summary() {
    let index = read(&folder().join("README.md"));
    let site = read(&root().join("docs/site/SUMMARY.md"));
    for command in commands() {
        let (title, name) = (&command.name, command.name.to_lowercase());
        let row = format!("| [{title}]({name}.md) | {}. |\n", command.documentation.summary);
        assert_eq!(index.matches(&row).count(), 1, "the index lacks {row}");
        let entry = format!("- [{title}](docs/commands/{name}.md)\n");
        assert_eq!(site.matches(&entry).count(), 1, "docs/site/SUMMARY.md lacks {entry}");
    }
}

#[test]
fn each_link_leads_somewhere() {
    let mut dead = links::dead(&root().join("docs/settings.md"));
    for entry in fs::read_dir(folder()).unwrap() {
        dead.extend(links::dead(&entry.unwrap().path()));
    }
    assert!(dead.is_empty(), "these links lead nowhere:\n{}", dead.join("\n"));
}
