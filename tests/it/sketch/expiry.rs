//! When a sketch expires, and what `RL.INFO` replies.

use redis::Connection;

use super::{START, ask, ask_at};
use crate::support::{SECOND, Server, text};

const START_MILLIS: u64 = START / 1000;

/// When the key expires, in milliseconds after `START`.
fn expires(con: &mut Connection, key: &str) -> i64 {
    let millis: u64 = text(con, &format!("PEXPIRETIME {key}")).parse().unwrap();
    millis.cast_signed() - START_MILLIS.cast_signed()
}

#[test]
fn a_sketch_expires_some_time_after_its_latest_item_is_fully_reset() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // The slack is half as long as the reset, and at least ten seconds.
    ask(con, "key a 0 1 10s", 0);
    assert_eq!(expires(con, "key"), 20_000);
    ask(con, "key b 0 1 100s", 0);
    assert_eq!(expires(con, "key"), 150_000);
    ask(con, "key c 0 1 1000s", 1000);
    assert_eq!(expires(con, "key"), 1_501_000);
    // Another item that is reset before that moves nothing, and neither does a refusal.
    ask(con, "key d 0 1 10s", 2000);
    ask(con, "key c 0 1 1000s", 2000);
    assert_eq!(expires(con, "key"), 1_501_000);
    let info = text(con, "RL.INFO key");
    assert!(info.contains(&format!("expires_at_ms, {}, ", START_MILLIS + 1_501_000)), "{info}");
    // This arrival time is the latest, and less than 2.5 s of slack would remain.
    ask(con, "key a 0 1 1s", 1_499_500);
    assert_eq!(expires(con, "key"), 1_510_500);
    // A step back of two days leaves 999 s of the longest item's reset.
    text(con, "DEL key");
    ask(con, "key c 0 1 1000s", 1000);
    ask(con, "key d 0 1 10s", 2000);
    let back = START - 2 * 86_400 * SECOND;
    assert_eq!(ask_at(con, "key c 0 1 1000s", back), [1, 1, 0, 999_000, 999_000]);
    assert_eq!(expires(con, "key"), -172_800_000 + 999_000 + 499_500);
}

#[test]
fn an_instant_of_the_past_does_not_make_a_key_expire_early() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask_at(con, "key a 0 1 100s", 1_000_000_000_000_000);
    let left: i64 = text(con, "PTTL key").parse().unwrap();
    assert!((100_000..=151_000).contains(&left), "{left}");
    text(con, "PERSIST key");
    assert!(text(con, "RL.INFO key").ends_with("expires_at_ms, -1, waiting, 0]"));
}

#[test]
fn rl_info_replies_the_shape_and_the_share_of_cells_ahead() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // An item has one cell in each row.
    for (shape, width, depth, ahead, all_ahead) in [
        ("WIDTH 1 DEPTH 1", 1, 1, "1", "1"),
        ("WIDTH 1 DEPTH 3", 1, 3, "1", "1"),
        ("WIDTH 2 DEPTH 1", 2, 1, "0.5", "0.5"),
        ("WIDTH 2 DEPTH 2", 2, 2, "0.5", "0.25"),
        ("WIDTH 4 DEPTH 3", 4, 3, "0.25", "0.015625"),
        ("WIDTH 8 DEPTH 2", 8, 2, "0.125", "0.015625"),
    ] {
        ask(con, &format!("key a 0 1 1h {shape}"), 0);
        let expires = text(con, "PEXPIRETIME key");
        assert_eq!(
            text(con, "RL.INFO key"),
            format!(
                "[limiter, SKETCH, mode, cells, width, {width}, depth, {depth}, ahead, {ahead}, \
                 all_ahead, {all_ahead}, last_charge_us, {START}, expires_at_ms, {expires}, waiting, 0]"
            )
        );
        text(con, "DEL key");
    }
    assert_eq!(text(con, "TYPE key"), "none");
}

#[test]
fn cells_are_ahead_by_the_servers_clock() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ahead = |con: &mut Connection| {
        let info = text(con, "RL.INFO key");
        info.split(", ").skip_while(|word| *word != "ahead").nth(1).unwrap().to_string()
    };
    text(con, "RL.SKETCH key a 0 1 1h WIDTH 1 DEPTH 2");
    assert_eq!(ahead(con), "1");
    text(con, "DEL key");
    // What was due in 2001 is due.
    ask_at(con, "key a 0 1 1h WIDTH 1 DEPTH 2", 1_000_000_000_000_000);
    assert_eq!(ahead(con), "0");
    // A few of many.
    for item in 0..10 {
        ask(con, &format!("many {item} 0 1 1h WIDTH 1024 DEPTH 4"), 0);
    }
    let info = text(con, "RL.INFO many");
    let share: f64 = info.split(", ").skip_while(|word| *word != "ahead").nth(1).unwrap().parse().unwrap();
    assert!((0.008..=0.009_765_625).contains(&share), "at most forty of 4096 cells: {share}");
}
