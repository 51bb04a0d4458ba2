//! The examples that the pages let a reader try: the page's engine answers each as the page prints it. That a server answers so
//! too is checked in `docs/sessions.rs`.

use std::fs;

use ratelimit_demo::example::{Page, in_words, mark};
use ratelimit_demo::reply::Reply;
use serde_json::json;

use super::as_read;
use crate::docs::sessions::{blocks, check, exchanges, pages};
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
fn no_key_of_an_example_that_needs_a_server_is_tried() {
    let call = |line: &str| format!("127.0.0.1:6379> {line}\n");
    for (line, tried) in [
        ("RL.MULTI 2 ann team BLOCK 1s LIMIT GCRA 15 30 1m", [false, false, true]),
        ("RL.ASK ann api", [false, true, true]),
        ("RL.TOP 15", [true, true, true]),
    ] {
        for (key, tried) in ["ann", "team", "bob"].into_iter().zip(tried) {
            let mut page = Page::default();
            assert!(page.next(&call(line)).is_none());
            let next = page.next(&call(&format!("RL.GCRA {key} 15 30 1m")));
            assert_eq!(next.is_some(), tried, "{line}: {key}");
        }
    }
}

#[test]
fn each_example_that_can_be_tried_is_answered_as_its_page_prints_it() {
    let (mut not_tried, mut all) = (Vec::new(), 0);
    for page in pages() {
        let mut examples = Page::default();
        let mut tried = 0;
        for block in blocks(&page).iter().filter(|block| block.language == "redis-cli") {
            let Some(replies) = examples.next(&block.lines.join("\n")) else { continue };
            tried += 1;
            for (reply, (command, expected)) in replies.iter().zip(exchanges(&block.lines)) {
                if let Ok(full) = reply
                    && full.reply.five().is_some()
                {
                    let in_millis = match full.reply {
                        // Of redis-cell, in seconds.
                        Reply::Cell([limited, limit, remaining, retry, reset]) => {
                            json!([limited, limit, remaining, retry * 1000, reset * 1000])
                        }
                        _ => full.to_json(),
                    };
                    summary::check(&in_words(full), &as_read(&in_millis));
                }
                let read = reply.as_ref().map(|full| as_read(&full.to_json())).map_err(ToString::to_string);
                check(&page, command, expected, read);
            }
        }
        let marks = mark(&fs::read_to_string(&page).unwrap()).matches("```redis-cli,tryable\n").count();
        assert_eq!(marks, tried, "{}", page.display());
        all += tried;
        if tried == 0 && page.parent().is_some_and(|folder| folder.ends_with("commands")) {
            not_tried.push(page.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(not_tried, NOT_TRIED);
    assert!(all > 110, "only {all}");
}
