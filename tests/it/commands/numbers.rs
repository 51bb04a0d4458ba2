//! Numbers in requests: every one, at both ends of its range and past them, and what is no integer at all.

use crate::support::harmless::{error_of, words};
use crate::support::{LATEST, Server, ints, multi, text};

const TOO_LONG: &str = "ERR limit would take too long to refill";

const MOST: i64 = 9_007_199_254_740_991; // 2^53 - 1
const CENTURY: i64 = 3_153_600_000_000; // ms
const EARLIEST: i64 = 1_000_000_000_000_000; // µs, 2001

/// Each call with its arguments named where they are numbers; `RL.PEEK` of each limiter is added by `calls`.
const CALLS: &[&str] = &[
    "RL.TOKENBUCKET k capacity=10 refill=1 period=1000ms COST COST=1 AT AT=1700000000000000",
    "RL.TOKENBUCKET k capacity=10 refill=1 period=1000ms BATCH COST COST=1 AT AT=1700000000000000",
    "RL.GCRA k max_burst=9 count=1 period=1000ms COST COST=1 AT AT=1700000000000000",
    "RL.SLIDINGWINDOW k limit=10 window=1000ms COST COST=1 AT AT=1700000000000000",
    "RL.SLIDINGWINDOW k limit=10 window=1000ms PRECISION PRECISION=10ms COST COST=1 AT AT=1700000000000000",
    "RL.LEAKYBUCKET k capacity=10 leak=1 period=1000ms COST COST=1 AT AT=1700000000000000",
    "RL.FIXEDWINDOW k limit=10 window=1000ms ALIGNED COST COST=1 AT AT=1700000000000000",
    "RL.CALENDAR k limit=10 MONTH TZ UTC ANCHOR ANCHOR=1 COST COST=1 AT AT=1700000000000000",
    "RL.SLIDINGLOG k limit=10 window=1000ms GAP GAP=10ms COST COST=1 AT AT=1700000000000000",
    "RL.UNIFORM k interval=1000ms RESERVE MAXWAIT MAXWAIT=1ms COST COST=1 AT AT=1700000000000000",
    "RL.SMOOTH k permits=10 period=1000ms BURST BURST=10ms COST COST=1 AT AT=1700000000000000",
    "RL.SMOOTH k permits=10 period=1000ms WARMUP WARMUP=10ms MAXWAIT MAXWAIT=1ms COST COST=1 AT AT=1700000000000000",
    "RL.CONCURRENT k capacity=10 ttl=1000ms id RESERVED RESERVED=2 COST COST=1 AT AT=1700000000000000",
    "RL.PENALTY k strikes=10 window=1000ms ban=1000ms GROW GROW=2 MAX MAX=1000ms FORGIVE FORGIVE=1000ms COST COST=1 AT AT=1700000000000000",
    "RL.RELEASE k id AT AT=1700000000000000",
    "RL.RENEW k ttl=1000ms id AT AT=1700000000000000",
];

fn calls() -> Vec<String> {
    let probe_of = |call: &&str| -> Option<String> {
        let (name, parameters) = call.strip_prefix("RL.")?.split_once(" k ")?;
        (parameters.contains("COST") && !parameters.contains("RESERVE"))
            .then(|| format!("RL.PEEK k {name} {parameters}"))
    };
    CALLS.iter().map(ToString::to_string).chain(CALLS.iter().filter_map(probe_of)).collect()
}

/// A call with one of its numbers replaced; and that number's name.
struct Replaced<'a> {
    name: &'a str,
    words: Vec<&'a [u8]>,
    /// The call as it should be, which makes a key that the wrong one must not touch.
    valid: String,
}

fn replace_each<'a>(call: &'a str, with: &'a [u8]) -> Vec<Replaced<'a>> {
    let value = |word: &'a str| word.split_once('=').map_or(word, |(_, value)| value);
    let valid = call.split(' ').map(value).collect::<Vec<_>>().join(" ");
    let named = call.split(' ').enumerate().filter_map(|(at, word)| Some((at, word.split_once('=')?.0)));
    named
        .map(|(at, name)| {
            let mut words: Vec<&[u8]> = call.split(' ').map(|word| value(word).as_bytes()).collect();
            words[at] = with;
            Replaced { name, words, valid: valid.clone() }
        })
        .collect()
}

fn range(call: &str, name: &str) -> (i64, i64) {
    match name {
        // The module's `ratelimit.max-leases`, as it is by default.
        "capacity" if call.contains("CONCURRENT") => (1, 1_000_000),
        // And its `ratelimit.max-log-entries`.
        "limit" if call.contains("SLIDINGLOG") => (1, 1_000_000),
        "capacity" | "refill" | "leak" | "permits" | "count" | "limit" | "strikes" => (1, MOST),
        "max_burst" | "COST" => (0, MOST),
        "period" | "window" | "interval" | "ttl" | "ban" | "PRECISION" | "WARMUP" | "FORGIVE" => (1, CENTURY),
        "ANCHOR" => (1, 31),
        "GROW" => (1, 1000),
        // From the ban on, which is 1000 here.
        "MAX" => (1000, CENTURY),
        "GAP" | "BURST" | "MAXWAIT" => (0, CENTURY),
        // Up to the capacity, which is 10 here.
        "RESERVED" => (0, 10),
        "AT" => (EARLIEST, LATEST),
        other => panic!("{other} has no range"),
    }
}

/// The error for a word that is none of the numbers of this argument.
fn refused(call: &str, name: &str, word: &[u8]) -> String {
    let (least, most) = range(call, name);
    let shown = match word.get(..64) {
        Some(begin) if word.len() > 64 => format!("{}...", begin.escape_ascii()),
        _ => word.escape_ascii().to_string(),
    };
    let digits = matches!(word, [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit));
    let number: Option<u64> =
        str::from_utf8(word).ok().filter(|_| digits || word == b"0").and_then(|text| text.parse().ok());
    let what = match (name, number) {
        // Seconds, milliseconds or a date: the error names the unit rather than a range.
        ("AT", _) if number.is_none_or(|micros| micros < EARLIEST.unsigned_abs()) => {
            "Unix time in microseconds".into()
        }
        (_, Some(0)) if most == CENTURY => {
            let least = if least == 1000 { "1s".into() } else { format!("{least}ms") };
            format!("from {least} to 36500d")
        }
        (_, Some(_)) if most == CENTURY => {
            return format!("ERR {name} needs a unit: {shown}ms, {shown}s or {shown}m");
        }
        _ if most == CENTURY => "a whole number with ms, s, m, h, d or w, such as 90s".into(),
        ("capacity", _) if most == 1_000_000 => {
            format!("an integer from {least} to {most} (ratelimit.max-leases)")
        }
        ("limit", _) if most == 1_000_000 => {
            format!("an integer from {least} to {most} (ratelimit.max-log-entries)")
        }
        _ => format!("an integer from {least} to {most}"),
    };
    format!("ERR {name} must be {what}; got '{shown}'")
}

#[test]
fn what_is_not_an_integer_is_told_with_the_range() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let wrong: [&[u8]; 20] = [
        b"", b"1.5", b"1.0", b"+1", b"01", b"00", b"-0", b"-", b"--1", b" 1", b"1 ", b"1\n", b"1\0", b"\0",
        b"\xff", b"1e3", b"0x10", b"1_000", b"text", b"inf",
    ];
    let too_long: [&[u8]; 3] = [b"18446744073709551616", b"-9223372036854775809", &[b'1'; 10_000]];
    for call in calls() {
        for wrong in wrong.into_iter().chain(too_long) {
            for Replaced { name, words, valid } in replace_each(&call, wrong) {
                let shown = wrong.escape_ascii();
                let expected = refused(&call, name, wrong);
                assert_eq!(error_of(&mut con, &valid, &words), expected, "{name} {shown} in {call}");
            }
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn a_number_past_either_end_of_its_range_is_told_with_the_range() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let numbers = [i64::MIN, i64::MIN + 1, -MOST, -1, 0, 11, 1_000_001, CENTURY + 1, MOST + 1];
    let numbers = numbers.into_iter().chain([EARLIEST - 1, LATEST + 1, i64::MAX - 1, i64::MAX]);
    for number in numbers {
        let digits = number.to_string();
        for call in calls() {
            for Replaced { name, words, valid } in replace_each(&call, digits.as_bytes()) {
                let (least, most) = range(&call, name);
                // A duration without a unit is an error, whatever its range. 0 needs none.
                if (least..=most).contains(&number) && (most != CENTURY || number == 0) {
                    continue;
                }
                let expected = refused(&call, name, digits.as_bytes());
                assert_eq!(error_of(&mut con, &valid, &words), expected, "{name} {number} in {call}");
            }
        }
    }
    assert_eq!(text(&mut con, "PING"), "PONG");
}

#[test]
fn a_number_at_either_end_of_its_range_is_taken() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (line, expected) in [
        ("RL.TOKENBUCKET k 1 1 1ms", [0, 1, 0, 0, 1]),
        ("RL.TOKENBUCKET k 1 9007199254740991 1ms", [0, 1, 0, 0, 1]),
        ("RL.TOKENBUCKET k 1 1 36500d", [0, 1, 0, 0, CENTURY]),
        ("RL.TOKENBUCKET k 9007199254740991 9007199254740991 36500d", [0, MOST, MOST - 1, 0, 1]),
        ("RL.TOKENBUCKET k 9007199254740991 9007199254740991 1ms COST 9007199254740991", [0, MOST, 0, 0, 1]),
        ("RL.TOKENBUCKET k 1 1 1ms COST 9007199254740991", [1, 1, 1, -1, 0]),
        ("RL.TOKENBUCKET k 1 1 1ms BATCH", [0, 1, 0, 0, 1]),
        ("RL.TOKENBUCKET k 9007199254740991 9007199254740991 36500d BATCH", [0, MOST, MOST - 1, 0, CENTURY]),
        ("RL.GCRA k 0 1 1ms", [0, 1, 0, 0, 1]),
        ("RL.GCRA k 0 1 36500d", [0, 1, 0, 0, CENTURY]),
        // The limit is one more than the highest count, and no reply says more than that.
        ("RL.GCRA k 9007199254740991 9007199254740991 1s", [0, MOST, MOST, 0, 1]),
        ("RL.GCRA k 9007199254740991 9007199254740991 1ms COST 9007199254740991", [0, MOST, 1, 0, 1]),
        ("RL.SLIDINGWINDOW k 1 1ms AT 1700000000000000", [0, 1, 0, 0, 2]),
        (
            "RL.SLIDINGWINDOW k 9007199254740991 1ms COST 9007199254740991 AT 1700000000000000",
            [0, MOST, 0, 0, 2],
        ),
        ("RL.SLIDINGWINDOW k 1 1ms PRECISION 1ms AT 1700000000000000", [0, 1, 0, 0, 1]),
        ("RL.SLIDINGWINDOW k 1 1024ms PRECISION 1ms AT 1700000000000000", [0, 1, 0, 0, 1024]),
        ("RL.CALENDAR k 1 HOUR AT 1700002800000000", [0, 1, 0, 0, 3_600_000]),
        (
            "RL.CALENDAR k 9007199254740991 HOUR COST 9007199254740991 AT 1700002800000000",
            [0, MOST, 0, 0, 3_600_000],
        ),
        ("RL.CALENDAR k 1 HOUR COST 9007199254740991", [1, 1, 1, -1, 0]),
        ("RL.PENALTY k 1 1ms 1ms", [1, 1, 0, 1, 1]),
        ("RL.PENALTY k 9007199254740991 36500d 1ms", [0, MOST, MOST - 1, 0, CENTURY]),
        ("RL.PENALTY k 1 1ms 36500d COST 9007199254740991", [1, 1, 0, CENTURY, CENTURY]),
        // The level is 1 when the ban ends, and a century later it is 0.
        ("RL.PENALTY k 1 1ms 1ms GROW 1000 MAX 36500d FORGIVE 36500d", [1, 1, 0, 1, CENTURY + 1]),
        ("RL.CONCURRENT k 1 1ms id", [0, 1, 0, 0, 1]),
        ("RL.CONCURRENT k 1000000 36500d id", [0, 1_000_000, 999_999, 0, CENTURY]),
        ("RL.CONCURRENT k 1000000 1ms id COST 1000000", [0, 1_000_000, 0, 0, 1]),
        ("RL.CONCURRENT k 1 1ms id COST 9007199254740991", [1, 1, 1, -1, 0]),
        ("RL.CONCURRENT k 10 1ms id RESERVED 0", [0, 10, 9, 0, 1]),
        // Nothing is left for those who are not critical.
        ("RL.CONCURRENT k 10 1ms id RESERVED 10", [1, 0, 0, -1, 0]),
        ("RL.CONCURRENT k 10 1ms id RESERVED 10 CRITICAL", [0, 10, 9, 0, 1]),
    ] {
        text(&mut con, "FLUSHALL");
        assert_eq!(ints(&mut con, line), expected, "{line}");
    }
}

#[test]
fn the_most_leases_that_may_be_asked_for_can_be_set() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let valid = "RL.CONCURRENT k 5 1s id";
    text(&mut con, "CONFIG SET ratelimit.max-leases 5");
    for line in ["RL.CONCURRENT k 6 1s id", "RL.PEEK k CONCURRENT 6 1s id"] {
        assert_eq!(
            error_of(&mut con, valid, &words(line)),
            "ERR capacity must be an integer from 1 to 5 (ratelimit.max-leases); got '6'",
            "{line}"
        );
    }
    text(&mut con, "FLUSHALL");
    assert_eq!(ints(&mut con, valid), [0, 5, 4, 0, 1000]);
}

#[test]
fn time_begins_in_2001_and_ends_with_the_year_9999() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for at in [EARLIEST, LATEST] {
        for line in [
            "RL.TOKENBUCKET k 10 1 1s",
            "RL.TOKENBUCKET k 10 1 1s BATCH",
            "RL.GCRA k 9 1 1s",
            "RL.SLIDINGWINDOW k 10 1s",
            "RL.SLIDINGWINDOW k 10 1s PRECISION 10ms",
            "RL.CALENDAR k 10 MONTH TZ -14:00",
            "RL.CALENDAR k 10 YEAR TZ +14:00",
            "RL.PENALTY k 10 1s 1s",
            "RL.CONCURRENT k 10 1s id",
        ] {
            text(&mut con, "FLUSHALL");
            assert_eq!(ints(&mut con, &format!("{line} AT {at}"))[..4], [0, 10, 9, 0], "{line} AT {at}");
            assert!(ints(&mut con, "PTTL k")[0] > 0, "{line} AT {at} left a key without a deadline");
        }
        assert_eq!(ints(&mut con, &format!("RL.RENEW k 36500d id AT {at}")), [1]);
        assert_eq!(ints(&mut con, &format!("RL.RELEASE k id AT {at}")), [1]);
    }
}

#[test]
fn a_limit_that_takes_more_than_a_century_to_refill_is_an_error() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let refill = "RL.TOKENBUCKET k 10 1 1s";
    let gcra = "RL.GCRA k 9 1 1s";
    for (valid, line) in [
        (refill, "RL.TOKENBUCKET k 2 1 36500d"),
        (refill, "RL.TOKENBUCKET k 9007199254740991 1 1s"),
        (refill, "RL.TOKENBUCKET k 9007199254740991 9007199254740990 36500d"),
        (refill, "RL.TOKENBUCKET k 9007199254740991 1 36500d COST 0"),
        (gcra, "RL.GCRA k 1 1 36500d"),
        (gcra, "RL.GCRA k 9007199254740991 1 1ms"),
        (gcra, "RL.GCRA k 9007199254740991 9007199254740991 36500d"),
        (refill, "RL.PEEK k TOKENBUCKET 2 1 36500d"),
        (gcra, "RL.PEEK k GCRA 1 1 36500d"),
    ] {
        assert_eq!(error_of(&mut con, valid, &words(line)), TOO_LONG, "{line}");
    }
}

#[test]
fn sub_buckets_tile_the_window_and_are_at_most_1024() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let valid = "RL.SLIDINGWINDOW k 1 1s PRECISION 100ms";
    for (parameters, told) in [
        ("1 1s PRECISION 300ms", "PRECISION 300ms does not divide the window 1s into equal parts"),
        ("1 1025ms PRECISION 1ms", "PRECISION 1ms divides the window 1025ms into 1025 parts; at most 1024"),
        ("1 1s PRECISION 1001ms", "PRECISION 1001ms is longer than the window 1s"),
    ] {
        for line in
            [format!("RL.SLIDINGWINDOW k {parameters}"), format!("RL.PEEK k SLIDINGWINDOW {parameters}")]
        {
            assert_eq!(error_of(&mut con, valid, &words(&line)), format!("ERR {told}"), "{line}");
        }
    }
}

#[test]
fn a_bucket_refilled_in_batches_takes_whole_periods_and_a_century_at_most() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let valid = "RL.TOKENBUCKET k 10 1 1s BATCH";
    // 90 years at an even pace, but two periods of 60 when the tokens come all at once.
    for line in ["RL.TOKENBUCKET k 3 2 21900d BATCH", "RL.PEEK k TOKENBUCKET 3 2 21900d BATCH"] {
        assert_eq!(error_of(&mut con, valid, &words(line)), TOO_LONG, "{line}");
    }
}

#[test]
fn a_limit_that_takes_a_century_to_the_millisecond_is_fine() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for (line, expected) in [
        ("RL.TOKENBUCKET bucket 2 1 18250d COST 2", [0, 2, 0, 0, CENTURY]),
        ("RL.TOKENBUCKET batch 3 2 18250d BATCH COST 3", [0, 3, 0, 0, CENTURY]),
        ("RL.TOKENBUCKET even 3 2 21900d COST 3", [0, 3, 0, 0, 2_838_240_000_000]),
        ("RL.GCRA cells 1 2 36500d COST 2", [0, 2, 0, 0, CENTURY]),
    ] {
        assert_eq!(ints(&mut con, line), expected, "{line}");
    }
}

#[test]
fn no_integer_of_a_reply_exceeds_what_every_client_holds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let store = format!("SMOOTH store {MOST} 1ms BURST {CENTURY}ms");
    assert_eq!(ints(con, &format!("RL.{store}")), [0, MOST, MOST, 0, 0]);
    let limit = store.replace(" store", "");
    let all = [0, MOST, MOST, 0, 0];
    assert_eq!(
        multi(con, &format!("RL.MULTIPEEK 1 other LIMIT {limit}")),
        (all.to_vec(), vec![all.to_vec()])
    );
    // A debt that is paid off in a millisecond, and then at one token a century.
    ints(con, &format!("RL.TOKENBUCKET debt 1 {MOST} 1ms FORCE COST {MOST}"));
    assert_eq!(ints(con, &format!("RL.TOKENBUCKET debt 1 1 {CENTURY}ms")), [1, 1, 0, MOST, MOST]);
}
