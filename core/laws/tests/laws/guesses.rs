//! What an error proposes is right: the call parses if its wrong word is replaced by the guess.

use ratelimit_core::Time;
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::Reply;

/// Wrong calls, and what their errors propose.
const WRONG: &[(&str, &str)] = &[
    ("RL.GCRA u 9 10 1m COST=5", "COST 5"),
    ("RL.GCRA u 9 10 1m 5", "COST 5"),
    ("RL.GCRA u 9 10 1m --cost 5", "COST"),
    ("RL.GCRA u 9 10 1m COTS 5", "COST"),
    ("RL.GCRA u 9 10 1m QUANTITY 2", "COST"),
    ("RL.GCRA u 9 10 1m tokens=2", "COST 2"),
    ("RL.GCRA u 9 10 1m WAIT 5s", "BLOCK"),
    ("RL.GCRA u 9 10 1m TIMEOUT 5s", "BLOCK"),
    ("RL.GCRA u 9 10 1m BLOKC=5s", "BLOCK 5s"),
    ("RL.GCRA u 9 10 60sec", "60s"),
    ("RL.GCRA u 9 10 60 s", "60s"),
    ("RL.GCRA u 9 10 minute", "1m"),
    ("RL.GCRA u 9 1m 10", "RL.GCRA u 9 10 1m"),
    ("RL.GCRA u 9 10 1m AT 1800000000", "1800000000000000"),
    ("RL.GCRA u 9 10 1m AT 1800000000000", "1800000000000000"),
    ("RL.GCRA u 9 10 1m RESERVE MAXWIAT 5s", "MAXWAIT"),
    ("RL.FIXEDWINDOW w 100 month", "RL.CALENDAR w 100 MONTH"),
    ("RL.FIXEDWINDOW w 100 1month TZ Europe/Berlin", "RL.CALENDAR w 100 MONTH TZ Europe/Berlin"),
    ("RL.FIXEDWINDOW w 100 1 month", "RL.CALENDAR w 100 MONTH"),
    ("RL.SLIDINGWINDOW w 100 year", "RL.CALENDAR w 100 YEAR"),
    ("RL.FIXEDWINDOW w 1m 100", "RL.FIXEDWINDOW w 100 1m"),
    ("RL.PEEK w FIXEDWINDOW 100 month", "CALENDAR 100 MONTH"),
    ("RL.MULTI 1 w LIMIT FIXEDWINDOW 100 MONTH LIMIT GCRA 9 10 1s", "CALENDAR 100 MONTH"),
    ("RL.POLICY SET p LIMIT FIXEDWINDOW 100 months", "CALENDAR 100 MONTH"),
    ("RL.CALENDAR c 100 1 MONTH", "RL.CALENDAR c 100 MONTH"),
    ("RL.CALENDAR c 100 3 months", "RL.CALENDAR c 100 QUARTER"),
    ("RL.CALENDAR c 100 monthly", "MONTH"),
    ("RL.CALENDAR c 100 1d", "DAY"),
    ("RL.CALENDAR c 100 MONTH TZ Berlin", "Europe/Berlin"),
    ("RL.CALENDAR c 100 MONTH TZ Europe/Berln", "Europe/Berlin"),
    ("RL.CALENDAR c 100 MONTH TZ NewYork", "America/New_York"),
    ("RL.CALENDAR c 100 MONTH TZ UTC+2", "+02:00"),
    ("RL.CALENDAR c 100 MONTH TIMEZONE Europe/Berlin", "TZ"),
    ("RL.CALENDAR c 100 MNTH", "MONTH"),
    ("RL.CONCURRENT jobs 30s 10 id", "RL.CONCURRENT jobs 10 30s id"),
    ("RL.CONCURRENT jobs 10 id 30s", "RL.CONCURRENT jobs 10 30s id"),
    ("RL.RENEW jobs id 30s", "RL.RENEW jobs 30s id"),
    ("RL.RELEASE jobs id OUTCOM DROP", "OUTCOME"),
    ("RL.MULTI 1 u LIMIT GRCA 9 10 1s", "GCRA"),
    ("RL.MULTI 1 u LIMIT GCRA 9 10 1s LIMTI UNIFORM 1s", "LIMIT"),
    ("RL.PEEK u RL.GRCA 9 10 1s", "GCRA"),
    ("RL.PEEK u GCAR 9 10 1s", "GCRA"),
    ("RL.POLICY SET p LIMIT GCRA 9 10 1s SHADWO", "SHADOW"),
    ("RL.ASK u api CSOT 2", "COST"),
    ("RL.ASK u ap", "api"),
    ("RL.THROTTLE u 9 10 60s", "60"),
    ("RL.SKETCH s item 9 10 1s WITDH 1024", "WIDTH"),
    ("RL.INFO u LEASE", "LEASES"),
    ("RL.GCRA u 9 10 0.5s", "500ms"),
    ("RL.GCRA u 9 10 1m cost:2", "COST 2"),
    ("RL.MULTI u LIMIT GCRA 9 10 1m", "RL.MULTI 1 u LIMIT GCRA 9 10 1m"),
    ("RL.MULTIPEEK u v COST 2 LIMIT GCRA 9 10 1m", "RL.MULTIPEEK 2 u v COST 2 LIMIT GCRA 9 10 1m"),
    ("RL.HELP gcrs", "GCRA"),
    ("RL.EXPLAIN gcrs u 9 10 1s", "GCRA"),
    ("RL.EXPLAIN GCRA u 9 10 1s 5", "COST 5"),
];

#[test]
fn a_call_is_right_with_the_guess_in_place_of_its_wrong_word() {
    for (wrong, meant) in WRONG {
        let error = replied(wrong).expect_err(wrong);
        assert_eq!(guess(&error), Some(*meant), "{wrong}: {error}");
        if meant.starts_with("RL.") {
            assert_eq!(replied(meant), Ok(()), "{wrong}: {error}");
            continue;
        }
        // A guess may stand for several words: the one that the error names or the last one, two before it, and some behind it.
        let words: Vec<&str> = wrong.split(' ').collect();
        let named = |word: &&str| error.contains(&format!("'{word}'"));
        let at = words.iter().rposition(named).unwrap_or(words.len() - 1);
        let mut parts =
            (at.saturating_sub(2)..=at).flat_map(|from| (at + 1..=words.len()).map(move |to| from..to));
        let right = parts.any(|part| {
            replied(&[&words[..part.start], &[*meant], &words[part.end..]].concat().join(" ")).is_ok()
        });
        assert!(right, "{wrong}: {error}");
    }
}

/// What an error proposes.
fn guess(error: &str) -> Option<&str> {
    let error = error.rsplit_once(" (LIMIT ").map_or(error, |(error, _)| error);
    let asked = error.split_once("; did you mean ").map(|(_, guess)| guess.trim_end_matches('?'));
    asked.or_else(|| error.split_once("; a window is one unit: ").map(|(_, guess)| guess))
}

/// Runs a call on a node with a policy. `Err` has the text of the error.
fn replied(line: &str) -> Result<(), String> {
    let memory = Memory::new(0);
    memory.set_clock(Time::from_millis(1_700_000_000_000));
    _ = call(&memory, "RL.POLICY SET api LIMIT GCRA 9 10 1s");
    call(&memory, line)
}

fn call(memory: &Memory, line: &str) -> Result<(), String> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    match memory.call(&words) {
        Called::Replied(Reply::Error(error)) => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// A wrong call costs little, however long it and its words are.
#[test]
fn a_long_call_is_an_error_without_a_guess() {
    let words = vec!["COTS"; 100_000].join(" ");
    let error = replied(&format!("RL.GCRA u 9 10 1s {words}")).expect_err("wrong");
    assert_eq!(error, "ERR syntax error near 'COTS'");
    let long = "COST=".repeat(1_000_000);
    let error = replied(&format!("RL.GCRA u 9 10 1s {long}")).expect_err("wrong");
    assert!(error.len() < 200, "{error}");
    let zone = "x".repeat(1_000_000);
    let error = replied(&format!("RL.CALENDAR c 100 MONTH TZ {zone}")).expect_err("wrong");
    assert!(error.len() < 300, "{error}");
}
