//! What the README names exists: commands, targets of make, pages. The reference has each command (reference.rs).

use std::collections::BTreeSet;
use std::path::Path;

use ratelimit_language::docs;

use super::reference::links;

const README: &str = include_str!("../../../README.md");

/// The words that follow `start` up to another character than those of a name.
fn names_after(start: &str) -> BTreeSet<&'static str> {
    let rests = README.split(start).skip(1);
    let names = rests.map(|rest| {
        rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').next().unwrap_or(rest)
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_commands_that_the_readme_names_exist() {
    let named = names_after("RL.");
    assert!(named.len() >= 3, "{named:?}");
    for name in named {
        assert!(docs::find(format!("RL.{name}").as_bytes()).is_some(), "{name}");
    }
}

#[test]
fn the_targets_that_the_readme_names_exist() {
    let makefile = include_str!("../../../Makefile");
    let named = names_after("`make ");
    assert!(!named.is_empty());
    for target in named.iter().chain(&["run", "test", "install", "lint", "help"]) {
        assert!(makefile.contains(&format!("\n{target}:")), "make {target}");
    }
}

#[test]
fn the_readme_leads_to_the_reference_and_no_link_is_dead() {
    assert!(
        README.contains("](docs/commands/README.md"),
        "README.md does not link to docs/commands/README.md"
    );
    let dead = links::dead(&Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    assert!(dead.is_empty(), "these links lead nowhere:\n{}", dead.join("\n"));
}
