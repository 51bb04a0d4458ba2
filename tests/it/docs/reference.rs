//! `docs/commands/` has each command on a page, alone or beside its sisters. The title of a page lists its commands, and its
//! file is named after the first. The parts between markers are what the language says of a command:
//!
//! ```text
//! <!-- catalog RL.GCRA --> syntax, flags, arguments and reply <!-- /catalog -->
//! <!-- options -->         the options that commands share    <!-- /options -->, in the index
//! ```
//!
//! `RATELIMIT_REFERENCE=write cargo test --test it reference` writes these parts anew, and `clients/contract/catalog.json`.
//! The rest of a page is written by hand. `sessions.rs` runs the examples and the errors.

mod argument;
pub mod catalog;
mod contract;
mod files;
pub(super) mod links;
mod page;
mod settings;

use std::fs;

use ratelimit_language::Error;

use crate::support::PROMPT;
use crate::support::fuzz::grammar::{Command, commands};
use files::{folder, is_written, read, root};
use page::Page;

#[test]
fn each_command_is_on_one_page_which_is_named_after_its_first() {
    let pages = page::all();
    let mut found: Vec<&str> =
        pages.iter().flat_map(|page| &page.commands).map(|command| command.name.as_str()).collect();
    found.sort_unstable();
    let commands = commands();
    let mut expected: Vec<&str> = commands.iter().map(|command| command.name.as_str()).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "left: the commands on the pages in docs/commands/; right: all commands");
    assert_eq!(expected.len(), 38, "the number of commands; if one is new, change it here");
    for page in page::pages() {
        assert_eq!(page.name, page.commands[0].name.to_lowercase(), "{}", page.path.display());
    }
}

#[test]
fn what_a_page_says_of_its_commands_is_what_the_language_says() {
    for page in page::all() {
        let renewed = page.renewed();
        if is_written() {
            fs::write(&page.path, &renewed).unwrap();
        } else {
            assert!(
                page.text == renewed,
                "{}.md is not up to date: RATELIMIT_REFERENCE=write writes it. It must be\n{renewed}",
                page.name
            );
        }
    }
}

#[test]
fn each_page_has_the_same_sections_in_the_same_order() {
    for page in page::pages() {
        let sections: Vec<&str> = page.text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let own: Vec<&str> = if page.is_of_one() {
            vec!["Syntax", "Arguments", "Reply"]
        } else {
            page.commands.iter().map(|command| command.name.as_str()).collect()
        };
        let expected = [vec!["Example"], own, vec!["Details", "Errors", "See also"]].concat();
        assert_eq!(sections, expected, "{}", page.name);
        for section in sections {
            assert!(!section_of(&page.text, section).is_empty(), "{}: nothing below {section}", page.name);
        }
    }
}

/// The text below a heading, up to the next one.
fn section_of<'p>(page: &'p str, section: &str) -> &'p str {
    let rest = page.split_once(&format!("\n## {section}\n")).map_or("", |(_, rest)| rest);
    rest.split("\n## ").next().unwrap_or(rest).trim()
}

/// The example and the errors of a command. Both are in its section of the index, if it has no page.
fn example_and_errors<'p>(page: &'p Page, command: &Command) -> [&'p str; 2] {
    let sections = if page.name == "README" { [&*command.name; 2] } else { ["Example", "Errors"] };
    sections.map(|section| section_of(&page.text, section))
}

#[test]
fn each_page_shows_each_command_at_work_and_its_errors() {
    for page in page::all() {
        for command in &page.commands {
            let name = &command.name;
            let is_call = |line: &str| {
                let words = line.strip_prefix(PROMPT).and_then(|call| call.strip_prefix(name.as_str()));
                words.is_some_and(|words| words.is_empty() || words.starts_with(' '))
            };
            let [example, errors] = example_and_errors(&page, command);
            assert!(example.lines().any(is_call), "{}: no example calls {name}", page.name);
            let fails = |[call, reply]: &[&str; 2]| is_call(call) && reply.starts_with("(error) ");
            let lines: Vec<&str> = errors.lines().collect();
            assert!(lines.array_windows().any(fails), "{}: {name} shows no error", page.name);
        }
    }
}

#[test]
fn each_text_of_an_error_is_on_a_page() {
    let pages: String = page::all().into_iter().map(|page| page.text).collect();
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
fn a_page_explains_its_arrows() {
    let mut explained = 0;
    for page in page::pages().iter().filter(|page| page.text.contains("\n→ ")) {
        assert!(page.text.contains("[arrow](README.md#the-reply) sums up"), "{}: no legend", page.name);
        explained += 1;
    }
    assert!(explained > 0);
    let reply = page::index().text;
    assert!(section_of(&reply, "The reply").contains("a line with an arrow sums up"));
}

#[test]
fn five_integers_have_labels_in_each_example() {
    for page in page::pages() {
        if page.commands[0].documentation.reply[0].starts_with("Five integers") {
            let example = section_of(&page.text, "Example");
            for label in ["# limited", "# limit", "# remaining", "# retry_after", "# reset_after"] {
                assert!(example.contains(label), "{}: no reply with a label {label}", page.name);
            }
        }
    }
}

#[test]
fn the_index_has_each_command_with_its_summary() {
    let index = page::index().text;
    for page in page::all() {
        for command in &page.commands {
            let (title, summary) = (&command.name, command.documentation.summary);
            let row = format!("| [{title}]({}) | {summary}. |\n", page.link(command));
            assert_eq!(index.matches(&row).count(), 1, "the index lacks {row}");
        }
    }
}

#[test]
fn the_sidebar_has_each_page_with_its_commands() {
    let site = read(&root().join("docs/site/SUMMARY.md"));
    for page in page::pages() {
        let [first, sisters @ ..] = &page.commands[..] else { panic!("{} has no command", page.name) };
        let short = |command: &Command| command.name.trim_start_matches("RL.").to_owned();
        let titles: Vec<_> = [first.name.clone()].into_iter().chain(sisters.iter().map(short)).collect();
        let entry = format!("- [{}](docs/commands/{}.md)\n", titles.join(", "), page.name);
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
