//! What an error proposes is right: the call parses if its wrong word is replaced by the guess.

use ratelimit_core::Time;
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::Reply;

/// Wrong calls with a guess each.
const WRONG: &[&str] = &[
    "RL.GCRA u 9 10 1m COST=5",
    "RL.GCRA u 9 10 1m 5",
    "RL.GCRA u 9 10 1m --cost 5",
    "RL.GCRA u 9 10 1m COTS 5",
    "RL.GCRA u 9 10 1m QUANTITY 2",
    "RL.GCRA u 9 10 1m tokens=2",
    "RL.GCRA u 9 10 1m WAIT 5s",
    "RL.GCRA u 9 10 1m TIMEOUT 5s",
    "RL.GCRA u 9 10 1m BLOKC=5s",
    "RL.GCRA u 9 10 60sec",
    "RL.GCRA u 9 10 60 s",
    "RL.GCRA u 9 10 minute",
    "RL.GCRA u 9 1m 10",
    "RL.GCRA u 9 10 1m AT 1800000000",
    "RL.GCRA u 9 10 1m AT 1800000000000",
    "RL.GCRA u 9 10 1m RESERVE MAXWIAT 5s",
    "RL.FIXEDWINDOW w 100 month",
    "RL.FIXEDWINDOW w 100 1month TZ Europe/Berlin",
    "RL.FIXEDWINDOW w 100 1 month",
    "RL.SLIDINGWINDOW w 100 year",
    "RL.FIXEDWINDOW w 1m 100",
    "RL.PEEK w FIXEDWINDOW 100 month",
    "RL.MULTI 1 w LIMIT FIXEDWINDOW 100 MONTH LIMIT GCRA 9 10 1s",
    "RL.POLICY SET p LIMIT FIXEDWINDOW 100 months",
    "RL.CALENDAR c 100 1 MONTH",
    "RL.CALENDAR c 100 3 months",
    "RL.CALENDAR c 100 monthly",
    "RL.CALENDAR c 100 1d",
    "RL.CALENDAR c 100 MONTH TZ Berlin",
    "RL.CALENDAR c 100 MONTH TZ Europe/Berln",
    "RL.CALENDAR c 100 MONTH TZ NewYork",
    "RL.CALENDAR c 100 MONTH TZ UTC+2",
    "RL.CALENDAR c 100 MONTH TIMEZONE Europe/Berlin",
    "RL.CALENDAR c 100 MNTH",
    "RL.CONCURRENT jobs 30s 10 id",
    "RL.CONCURRENT jobs 10 id 30s",
    "RL.RENEW jobs id 30s",
    "RL.RELEASE jobs id OUTCOM DROP",
    "RL.MULTI 1 u LIMIT GRCA 9 10 1s",
    "RL.MULTI 1 u LIMIT GCRA 9 10 1s LIMTI UNIFORM 1s",
    "RL.PEEK u RL.GRCA 9 10 1s",
    "RL.PEEK u GCAR 9 10 1s",
    "RL.POLICY SET p LIMIT GCRA 9 10 1s SHADWO",
    "RL.ASK u api CSOT 2",
    "RL.ASK u ap",
    "RL.THROTTLE u 9 10 60s",
    "RL.SKETCH s item 9 10 1s WITDH 1024",
    "RL.INFO u LEASE",
    "RL.GCRA u 9 10 0.5s",
    "RL.GCRA u 9 10 1m cost:2",
    "RL.MULTI u LIMIT GCRA 9 10 1m",
    "RL.MULTIPEEK u v COST 2 LIMIT GCRA 9 10 1m",
    "RL.HELP gcrs",
    "RL.EXPLAIN gcrs u 9 10 1s",
    "RL.EXPLAIN GCRA u 9 10 1s 5",
];

#[test]
fn a_call_is_right_with_the_guess_in_place_of_its_wrong_word() {
    for wrong in WRONG {
        let error = replied(wrong).expect_err(wrong);
        let guess = guess(&error).unwrap_or_else(|| panic!("{wrong}: {error} proposes nothing"));
        if guess.starts_with("RL.") {
            assert_eq!(replied(guess), Ok(()), "{wrong}: {error}");
            continue;
        }
        // A guess may stand for several words.
        let words: Vec<&str> = wrong.split(' ').collect();
        let parts = (1..words.len()).flat_map(|from| (from..=words.len()).map(move |to| from..to));
        let right = parts.filter(|part| (1..=3).contains(&part.len())).any(|part| {
            replied(&[&words[..part.start], &[guess], &words[part.end..]].concat().join(" ")).is_ok()
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
