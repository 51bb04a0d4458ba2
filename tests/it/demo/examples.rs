//! The examples that the pages let a reader try: the page's memory answers each as the page prints it. That a server answers so
//! too is checked in `docs/sessions.rs`.

use std::fs;

use ratelimit_demo::example::{Attempt, Page, mark};
use ratelimit_demo::memory::{Memory, NeedsServer};
use ratelimit_demo::shown::{five, printed, shown};
use ratelimit_engine::memory::Called;
use ratelimit_engine::reply::Reply;
use redis::Value;

use crate::docs::sessions::{blocks, check, exchanges, pages};
use crate::docs::summary;
use crate::engine::as_read;

/// The commands of whose pages no example can be tried, and why.
const NOT_TRIED: [(&str, &str); 4] = [
    ("rl.calendar", "time zones are too large for a page"),
    ("rl.policy", "the policy has a calendar"),
    ("rl.top", "CONFIG switches the count on"),
    ("rl.xadd", "the stream is the server's"),
];

#[test]
fn what_needs_a_server_says_so() {
    for (line, what) in [
        ("CONFIG SET ratelimit.top 10", "CONFIG"),
        ("rl.xadd user:1 LIMIT GCRA 15 30 1m * field value", "RL.XADD"),
        ("rl.calendar user:1 100 DAY", "CALENDAR"),
        ("RL.MULTI 1 user:1 LIMIT CALENDAR 100 DAY", "CALENDAR"),
        ("RL.EXPLAIN RL.CALENDAR user:1 100 DAY", "CALENDAR"),
        ("RL.POLICY load", "RL.POLICY LOAD"),
    ] {
        let needs = Memory::new().run(line).err();
        assert_eq!(needs, Some(NeedsServer(what.into())), "{line}");
    }
    let error = |line: &str| match Memory::new().run(line) {
        Ok(Called::Replied(Reply::Error(error))) => error.to_string(),
        _ => String::new(),
    };
    for (line, text) in [
        ("RL.GRCA user:1 15", "ERR unknown command 'RL.GRCA', with args beginning with: 'user:1' '15' "),
        ("gett", "ERR unknown command 'gett', with args beginning with: "),
        ("", "ERR unknown command '', with args beginning with: "),
    ] {
        assert_eq!(error(line), text);
    }
    for page in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands")).unwrap() {
        let name = page.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(name == "README" || !error(&name).contains("unknown"), "{name}");
    }
}

#[test]
fn no_key_of_an_example_that_needs_a_server_is_tried() {
    let call = |line: &str| format!("127.0.0.1:6379> {line}\n");
    for (line, tried) in [
        ("RL.MULTI 2 ann team LIMIT CALENDAR 100 DAY", [false, false, true]),
        ("RL.XADD ann LIMIT GCRA 15 30 1m * field value", [false, true, true]),
        ("KEYS 15", [true, true, true]),
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
    let (mut not_tried, mut all, mut tryable) = (Vec::new(), 0, 0);
    for page in pages() {
        let mut examples = Page::default();
        let mut tried = 0;
        for block in blocks(&page).iter().filter(|block| block.language == "redis-cli") {
            all += 1;
            let Some(attempts) = examples.next(&block.lines.join("\n")) else { continue };
            tried += 1;
            for (((_, line), attempt), (command, expected)) in attempts.iter().zip(exchanges(&block.lines)) {
                let Attempt::Replied(reply, _) = attempt else { panic!("{command}: no reply") };
                if five(reply).is_some() {
                    summary::check(&shown(line, reply), &in_millis(reply));
                }
                let shown = check(&page, command, expected, as_read(reply));
                assert_eq!(printed(&reply.into()), shown, "{}: {command}", page.display());
            }
        }
        let marks = mark(&fs::read_to_string(&page).unwrap()).matches("```redis-cli,tryable\n").count();
        assert_eq!(marks, tried, "{}", page.display());
        tryable += tried;
        if tried == 0 && page.parent().is_some_and(|folder| folder.ends_with("commands")) {
            not_tried.push(page.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(not_tried, NOT_TRIED.map(|(command, _)| command));
    // The others are errors alone, or need a server.
    assert!(tryable * 2 > all, "only {tryable} of {all}");
}

/// A reply of a limiter. That of redis-cell is in seconds.
fn in_millis(reply: &Reply) -> Value {
    match (reply, five(reply)) {
        (Reply::Cell(_), Some(five)) => Value::Array(five.map(Value::Int).to_vec()),
        _ => as_read(reply).unwrap(),
    }
}
