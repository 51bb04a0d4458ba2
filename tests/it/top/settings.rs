//! `ratelimit.top` and `ratelimit.top-window`.

use super::{ON, entry, refuse, top};
use crate::support::{Server, error, text};

const OFF: &str = "ERR RL.TOP is off: CONFIG SET ratelimit.top to a number of keys, such as 1000";

#[test]
fn it_is_off_by_default_and_an_error_says_so() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "CONFIG GET ratelimit.top"), "[ratelimit.top, 0]");
    assert_eq!(text(con, "CONFIG GET ratelimit.top-window"), "[ratelimit.top-window, 60000]");
    refuse(con, "key", 3);
    for options in ["", " PREVIOUS", " COUNT 10000"] {
        assert_eq!(error(con, &format!("RL.TOP{options}")), OFF);
    }
    assert_eq!(text(con, "RL.TOP RESET"), "OK");
}

#[test]
fn it_is_switched_on_and_off_at_run_time_and_forgets() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "CONFIG SET ratelimit.top-window 86400000");
    refuse(con, "before", 3);
    text(con, "CONFIG SET ratelimit.top 10");
    assert_eq!(top(con, ""), [], "what was refused before is not known");
    refuse(con, "key", 3);
    assert_eq!(top(con, ""), [entry("key", 0, 3, 0)]);
    text(con, "CONFIG SET ratelimit.top 0");
    assert_eq!(error(con, "RL.TOP"), OFF);
    refuse(con, "while-off", 1);
    text(con, "CONFIG SET ratelimit.top 10");
    assert_eq!(top(con, ""), []);
    refuse(con, "key", 1);
    assert_eq!(top(con, ""), [entry("key", 0, 1, 0)]);
}

#[test]
fn other_settings_forget() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for setting in ["top 50", "top 10000", "top 1", "top-window 80000000", "top-window 86400000"] {
        refuse(con, "key", 2);
        assert_eq!(top(con, ""), [entry("key", 0, 2, 0)]);
        text(con, &format!("CONFIG SET ratelimit.{setting}"));
        assert_eq!(top(con, ""), [], "{setting}");
        assert_eq!(top(con, "PREVIOUS"), [], "{setting}");
    }
    // One entry, which the last key has.
    refuse(con, "a", 3);
    refuse(con, "b", 1);
    assert_eq!(top(con, ""), [entry("b", 0, 4, 3)]);
    // Any other setting forgets nothing, nor does the same one in another unit.
    for setting in ["max-leases 5", "top-window 1d", "top-window 24h", "top-window 86400000"] {
        text(con, &format!("CONFIG SET ratelimit.{setting}"));
        assert_eq!(top(con, ""), [entry("b", 0, 4, 3)], "{setting}");
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for (setting, values, bounds) in [
        ("top", &["-1", "10001", "x", "1k"][..], "between 0 and 10000 inclusive"),
        (
            "top-window",
            &["0", "999", "86400001", "2d", "+60000", "060000", "1min"],
            "a duration from 1s to 1d, such as 90s; got '{}'",
        ),
    ] {
        for value in values {
            let told = error(con, &format!("CONFIG SET ratelimit.{setting} {value}"));
            let start = format!(
                "ERR CONFIG SET failed (possibly related to argument 'ratelimit.{setting}') - argument"
            );
            assert!(told.starts_with(&start), "{told}");
            let number = value.parse::<i64>().is_ok();
            assert!(told.ends_with(&bounds.replace("{}", value)) || !number, "{setting} {value}: {told}");
        }
    }
    assert_eq!(text(con, "CONFIG GET ratelimit.top"), "[ratelimit.top, 100]");
    refuse(con, "key", 1);
    text(con, "CONFIG SET ratelimit.top 10000 ratelimit.top-window 1000");
    assert_eq!(top(con, ""), []);
}
