//! The examples that the command pages let a reader try: the page's engine answers each as the page prints it. That a server
//! answers so too is checked in `docs/sessions.rs`.

use std::fs;
use std::path::Path;

use ratelimit_demo::example::{calls, can_be_tried, in_words, mark};
use ratelimit_demo::memory::Memory;

use super::as_read;
use crate::docs::sessions::{blocks, check, exchanges};
use crate::docs::summary;

/// The commands that need a server: policies, lists and streams of the server, and what it reports of itself. The time zones
/// of a calendar are too large for a page.
const NOT_TRIED: [&str; 14] = [
    "rl.apply",
    "rl.ask",
    "rl.askpeek",
    "rl.askrefund",
    "rl.asksettle",
    "rl.calendar",
    "rl.explain",
    "rl.help",
    "rl.info",
    "rl.lpush",
    "rl.policy",
    "rl.rpush",
    "rl.top",
    "rl.xadd",
];

#[test]
fn each_example_that_can_be_tried_is_answered_as_its_page_prints_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands");
    let mut not_tried = Vec::new();
    for page in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mut tried = 0;
        for block in blocks(&page).iter().filter(|block| block.language == "redis-cli") {
            let example = block.lines.join("\n");
            if !can_be_tried(&example) {
                continue;
            }
            tried += 1;
            let mut memory = Memory::new();
            for ((at, line), (command, expected)) in calls(&example).iter().zip(exchanges(&block.lines)) {
                let reply = memory.reply_at(*at, line);
                if let Ok(full) = &reply
                    && full.reply.five().is_some()
                    && !line.contains("THROTTLE")
                {
                    summary::check(&in_words(full), &as_read(&full.to_json()));
                }
                let read = reply.map(|full| as_read(&full.to_json())).map_err(|failure| failure.to_string());
                check(&page, command, expected, read);
            }
        }
        let marks = mark(&fs::read_to_string(&page).unwrap()).matches("```redis-cli,tryable\n").count();
        assert_eq!(marks, tried, "{}", page.display());
        if tried == 0 {
            not_tried.push(page.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    not_tried.sort();
    assert_eq!(not_tried, NOT_TRIED);
}
