//! Windows by the server's clock, and `RESET`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Connection;

use super::{ON, entry, refuse, top};
use crate::support::{Server, text, wait_for};

/// Refuses a key thrice, and returns whether all of that was in the window that then became the one before.
fn is_kept(con: &mut Connection, key: &str) -> bool {
    refuse(con, key, 3);
    let refused = Instant::now();
    while refused.elapsed() < Duration::from_secs(3) {
        if top(con, "PREVIOUS") == [entry(key, 0, 3, 0)] {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn the_window_before_is_kept_for_one_window() {
    let server = Server::start(&["--ratelimit.top", "10", "--ratelimit.top-window", "1000"]);
    let con = &mut server.connection();
    // A window may end amid the refusals, or pass unseen on a machine that stands still.
    let kept = (0..20).any(|attempt| is_kept(con, &format!("key:{attempt}")));
    assert!(kept, "no window became the one before");
    assert_eq!(top(con, ""), [], "the current window begins without keys");
    wait_for("the end of the window before", || top(con, "PREVIOUS").is_empty());
    assert_eq!(top(con, ""), []);
}

#[test]
fn refusals_are_seen_at_once() {
    let server = Server::start(&["--ratelimit.top", "10", "--ratelimit.top-window", "1000"]);
    let con = &mut server.connection();
    // In a transaction, which a window's end hardly ever meets; and then once more.
    let seen = (0..20).any(|_| {
        text(con, "RL.TOP RESET");
        text(con, "MULTI");
        for line in ["RL.GCRA key 0 1 1h COST 2", "RL.GCRA key 0 1 1h COST 2", "RL.TOP", "RL.TOP PREVIOUS"] {
            text(con, line);
        }
        text(con, "EXEC").ends_with("[[key, 0, 2, 0]], []]")
    });
    assert!(seen);
}

#[test]
fn reset_clears_both_windows() {
    let server = Server::start(&["--ratelimit.top", "10", "--ratelimit.top-window", "1000"]);
    let con = &mut server.connection();
    let cleared = (0..20).any(|attempt| {
        let kept = is_kept(con, &format!("key:{attempt}"));
        refuse(con, "another", 1);
        let both = kept && !top(con, "").is_empty() && !top(con, "PREVIOUS").is_empty();
        assert_eq!(text(con, "RL.TOP RESET"), "OK");
        assert_eq!((top(con, ""), top(con, "PREVIOUS")), (vec![], vec![]));
        both
    });
    assert!(cleared, "there were never two windows");
}

#[test]
fn it_counts_anew_after_a_reset() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for round in 1..4 {
        refuse(con, "a", round);
        refuse(con, &format!("only:{round}"), 5);
        let round = i64::try_from(round).unwrap();
        let mut expected = vec![entry(&format!("only:{round}"), 0, 5, 0), entry("a", 0, round, 0)];
        expected.sort_by_key(|entry| -entry.2);
        assert_eq!(top(con, ""), expected);
        assert_eq!(text(con, "rl.top reset"), "OK");
        assert_eq!(top(con, ""), []);
    }
}
