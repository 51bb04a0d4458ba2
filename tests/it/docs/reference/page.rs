//! The pages of `docs/commands/`: which commands each has, and the parts that are made from the language.

use std::fs;
use std::path::{Path, PathBuf};

use super::catalog::{self, Place};
use super::contract;
use super::files::{folder, read};
use crate::support::fuzz::grammar::{Command, commands};

/// The commands without a page of their own. They stand in the index.
const IN_INDEX: [&str; 2] = ["RL.HELP", "RL.APPLY"];

pub struct Page {
    pub path: PathBuf,
    /// Without the extension.
    pub name: String,
    pub text: String,
    pub commands: Vec<Command>,
}

/// The index, and then the pages of commands by their names.
pub fn all() -> Vec<Page> {
    [index()].into_iter().chain(pages()).collect()
}

pub fn index() -> Page {
    Page::of(&folder().join("README.md"), |_| IN_INDEX.map(String::from).into())
}

pub fn pages() -> Vec<Page> {
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.ends_with("README.md"));
    paths.sort();
    paths.iter().map(|path| Page::of(path, titles)).collect()
}

/// The commands that a page's title lists.
fn titles(text: &str) -> Vec<String> {
    let title = text.strip_prefix("# ").and_then(|rest| rest.split_once("\n\n")).expect("a title").0;
    title.split(", ").map(String::from).collect()
}

impl Page {
    fn of(path: &Path, names: impl Fn(&str) -> Vec<String>) -> Self {
        let text = read(path);
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let command = |title: String| {
            let found = commands().into_iter().find(|command| command.name == title);
            found.unwrap_or_else(|| panic!("{name}: no command {title}"))
        };
        let commands = names(&text).into_iter().map(command).collect();
        Self { path: path.into(), name, text, commands }
    }

    /// Whether it has one command, whose syntax and reply have headings of their own.
    pub fn is_of_one(&self) -> bool {
        self.commands.len() == 1
    }

    /// What the index links to for a command of this page.
    pub fn link(&self, command: &Command) -> String {
        let heading = format!("#{}", command.name.to_lowercase().replace('.', ""));
        match self.name.as_str() {
            "README" => heading,
            name if name == command.name.to_lowercase() => format!("{name}.md"),
            name => format!("{name}.md{heading}"),
        }
    }

    /// The page with its parts between markers written anew.
    pub fn renewed(&self) -> String {
        let mut text = self.text.clone();
        for (at, command) in self.commands.iter().enumerate() {
            let place = if self.is_of_one() { Place::Alone } else { Place::Below(&self.commands[..at]) };
            let part = catalog::page_part(command.documentation, &contract::types(command), &place);
            text = with_part(&text, &format!("catalog {}", command.name), &part);
        }
        if self.name == "README" { with_part(&text, "options", &catalog::shared_options()) } else { text }
    }
}

/// The page with another text between two markers. The second one has only the first word.
fn with_part(page: &str, marker: &str, text: &str) -> String {
    let word = marker.split(' ').next().unwrap_or(marker);
    let (start, end) = (format!("<!-- {marker} -->\n"), format!("<!-- /{word} -->\n"));
    let (before, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {start} in {page}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end} in {page}"));
    format!("{before}{start}{text}{end}{after}")
}
