//! Every way to get a limiter's call wrong, and the exact error. The calls are made from the catalog's arguments, so no
//! argument and no option is forgotten.
//!
//! Each is made as the limiter's own command, by `RL.PEEK`, and as the limit of an `RL.MULTI`.

use std::collections::BTreeSet;

use ratelimit_language::vocabulary::{Argument, Values, option_names};
use ratelimit_language::{CATALOG, FORMS, Row};

use crate::support::harmless::{error_of, words};
use crate::support::{LATEST, Server, call_bytes, error_line, ints, text};

const CENTURY: u64 = 3_153_600_000_000; // ms
const EARLIEST: u64 = 1_000_000_000_000_000; // µs, 2001
const SETTING: u64 = 1_000_000; // ratelimit.max-leases and ratelimit.max-log-entries by default

/// The way a limiter is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Own,
    Peek,
    Limit,
}

/// A limiter's name, its parameters with good values, and options.
#[derive(Clone)]
struct Call {
    way: Way,
    row: &'static Row,
    /// The parameters and options.
    words: Vec<String>,
}

impl Call {
    fn good(way: Way, row: &'static Row) -> Call {
        Call { way, row, words: parameters(row).map(|parameter| good(row, parameter)).collect() }
    }

    fn with(&self, words: &str) -> Call {
        let more = words.split(' ').map(String::from);
        Call { words: self.words.iter().cloned().chain(more).collect(), ..self.clone() }
    }

    /// With another parameter, which may be empty.
    fn with_parameter(&self, place: usize, word: &str) -> Call {
        let mut call = self.clone();
        call.words[place] = word.into();
        call
    }

    fn cut(&self, length: usize) -> Call {
        Call { words: self.words[..length].to_vec(), ..self.clone() }
    }

    fn start(&self) -> Vec<String> {
        let name = self.row.name();
        let start = match self.way {
            Way::Own => format!("RL.{name} k"),
            Way::Peek => format!("RL.PEEK k {name}"),
            Way::Limit => format!("RL.MULTI 1 k LIMIT {name}"),
        };
        start.split(' ').map(String::from).collect()
    }

    fn all(&self) -> Vec<String> {
        self.start().into_iter().chain(self.words.iter().cloned()).collect()
    }

    /// The command that errors name.
    fn command(&self) -> String {
        match self.way {
            Way::Own => format!("RL.{}", self.row.name()),
            Way::Peek => "RL.PEEK".into(),
            Way::Limit => "RL.MULTI".into(),
        }
    }

    fn takes(&self, option: &str) -> bool {
        self.row.arguments().iter().any(|argument| argument.name == option)
    }
}

fn parameters(row: &'static Row) -> impl Iterator<Item = &'static Argument> {
    row.arguments().iter().skip(1).take_while(|argument| !argument.is_option())
}

fn options(row: &'static Row) -> impl Iterator<Item = &'static Argument> {
    row.arguments().iter().filter(|argument| argument.is_option())
}

/// A value that the argument takes.
fn good(row: &Row, argument: &Argument) -> String {
    match (argument.name, argument.values) {
        ("capacity", _) | (_, Values::Setting(_)) => "10".into(),
        (_, Values::Number { min, .. } | Values::UpTo { min, .. }) => min.max(1).to_string(),
        (_, Values::Duration { .. }) => "1s".into(),
        (_, Values::DurationFrom(argument)) => good(row, named(row, argument)),
        (_, Values::Instant) => "1700000000000000".into(),
        (_, Values::Id) => "id".into(),
        (_, Values::Real { max, .. }) => max.to_string(),
        ("unit", _) => "MONTH".into(),
        ("TZ", _) => "UTC".into(),
        (name, other) => panic!("{}: {name} has {other:?}", row.name()),
    }
}

/// The argument of this name.
fn named(row: &Row, name: &str) -> &'static Argument {
    row.arguments().iter().find(|argument| argument.name == name).expect("an argument of the limiter")
}

/// The option with a good value, after the option that it needs.
fn given(call: &Call, option: &Argument) -> String {
    let own = match option.values {
        Values::Flag => option.name.to_string(),
        _ if option.name == "HOLD" => "HOLD id 1s".to_string(),
        _ => format!("{} {}", option.name, good(call.row, option)),
    };
    match needed(call, option.name) {
        Some(needed) => format!("{needed} {own}"),
        None => own,
    }
}

/// What an option is not given without.
fn needed(call: &Call, option: &str) -> Option<&'static str> {
    match option {
        "MAXWAIT" if call.takes("RESERVE") => Some("RESERVE"),
        "COLDFACTOR" => Some("WARMUP 1s"),
        "GRADIENT" | "FLOOR" | "START" | "BACKOFF" | "SLOW" => Some("ADAPT"),
        "WEIGHT" if call.row.name() == "CONCURRENT" => Some("TENANT t"),
        "WEIGHT" if call.way == Way::Own => Some("TENANT t BLOCK 1s"),
        "TENANT" if call.way == Way::Own && call.row.name() != "CONCURRENT" => Some("BLOCK 1s"),
        _ => None,
    }
}

/// The shortest duration that the argument of a good call takes.
fn least(argument: &Argument) -> u64 {
    match argument.values {
        Values::Duration { min } => min,
        Values::DurationFrom(_) => 1000,
        other => panic!("{other:?} is no duration"),
    }
}

/// The values that an argument takes, for an argument that is a word.
fn of_words(name: &str) -> &'static str {
    match name {
        "unit" => "HOUR, DAY, WEEK, MONTH, QUARTER or YEAR",
        "TZ" => "UTC, an offset such as +02:00 or an IANA time zone",
        other => panic!("{other} has no error"),
    }
}

/// Words that are outside of the range, and the error.
fn outside(argument: &Argument) -> Vec<(String, String)> {
    let name = argument.name;
    let mut wrong: Vec<(String, String)> = Vec::new();
    let mut add = |word: &str, what: &str| {
        wrong.push((word.into(), format!("ERR {name} must be {what}; got '{word}'")));
    };
    let not_one = ["x", "", "-1", "-0", "+1", "01", "1.5", "1e3", "0x1", "99999999999999999999"];
    let mut numbers = |min: u64, max: u64, more: &str| {
        let beyond = [max + 1, u64::MAX].map(|number| number.to_string());
        let below = min.checked_sub(1).map(|number| number.to_string());
        for word in beyond.into_iter().chain(below).chain(not_one.map(String::from)) {
            add(&word, &format!("an integer from {min} to {max}{more}"));
        }
    };
    match argument.values {
        Values::Flag => {}
        Values::Word => {
            for word in
                ["x", "", "-1", "0", "1", "MONTHS", "UTC+2", "+2:00", "+0200", "+14:01", "-15:00", "+00:60"]
            {
                // "MONTHS" is near "MONTH".
                let guess = if name == "unit" && word == "MONTHS" { "'; did you mean MONTH?" } else { "'" };
                wrong.push((
                    word.into(),
                    format!("ERR {name} must be {}; got '{word}{guess}", of_words(name)),
                ));
            }
        }
        Values::Number { min, max } => numbers(min, max, ""),
        Values::Setting(setting) => numbers(1, SETTING, &format!(" ({setting})")),
        Values::UpTo { min, .. } => numbers(min, 10, ""),
        Values::Duration { .. } | Values::DurationFrom(_) => {
            let min = least(argument);
            let least = if min == 1000 { "1s".into() } else { format!("{min}ms") };
            let below = min.checked_sub(1).map(|millis| format!("{millis}ms"));
            for word in ["36501d", "3153600000001ms", "999999999999999999w"]
                .map(String::from)
                .into_iter()
                .chain(below)
            {
                add(&word, &format!("from {least} to 36500d"));
            }
            let more = ["1D", "1y", "1min", "60sec", "1.5s", "01s", "-1s", "1 s", "1h30m", "s"];
            for word in not_one.into_iter().chain(more) {
                add(word, "a whole number with ms, s, m, h, d or w, such as 90s");
            }
            for bare in [1, 60, CENTURY, u64::MAX] {
                let told = format!("ERR {name} needs a unit: {bare}ms, {bare}s or {bare}m");
                wrong.push((bare.to_string(), told));
            }
        }
        Values::Seconds => numbers(1, CENTURY / 1000, ", in seconds"),
        Values::Real { min, max } => {
            for word in ["x", "", "-1", "nan", "inf", "1000.001"] {
                add(word, &format!("a number from {min} to {max}"));
            }
        }
        Values::Instant => {
            let latest = u64::try_from(LATEST).unwrap();
            add(&(latest + 1).to_string(), &format!("an integer from {EARLIEST} to {latest}"));
            for word in ["x", "", "-1", "1.5", "1700000000", "1700000000000", "1d"] {
                add(word, "Unix time in microseconds");
            }
        }
        Values::Id => {
            for word in [String::new(), "i".repeat(257)] {
                let name = if name == "TENANT" { name } else { "id" };
                wrong.push((word, format!("ERR {name} must be 1 to 256 bytes")));
            }
        }
    }
    wrong
}

/// The error for an option of another limiter or command.
fn foreign(call: &Call, option: &str) -> String {
    let manner =
        ["PARTIAL", "FORCE", "RESERVE", "MAXWAIT", "HOLD", "BLOCK", "TENANT", "WEIGHT"].contains(&option);
    match call.way {
        // The call does not wait.
        Way::Limit if option == "TENANT" && call.takes(option) => {
            "ERR syntax error: TENANT needs BLOCK".into()
        }
        Way::Limit if option == "WEIGHT" && call.takes(option) => {
            "ERR syntax error: WEIGHT needs TENANT".into()
        }
        Way::Limit if ["TENANT", "WEIGHT"].contains(&option) => {
            format!("ERR syntax error: {option} is not for {}", call.row.name())
        }
        Way::Limit if ["AT", "FORCE", "HOLD", "BLOCK"].contains(&option) => {
            format!("ERR syntax error: {option} belongs before the first LIMIT")
        }
        Way::Own => format!("ERR syntax error: {option} is not for {}", call.command()),
        _ if manner || call.takes(option) || !of_a_limiter(option) => {
            format!("ERR syntax error: {option} is not for {}", call.command())
        }
        _ => format!("ERR syntax error: {option} is not for {}", call.row.name()),
    }
}

/// Whether any limiter takes the option.
fn of_a_limiter(option: &str) -> bool {
    CATALOG.iter().flat_map(Row::arguments).any(|argument| argument.name == option)
}

/// Whether the call takes the option.
fn is_own(call: &Call, option: &str) -> bool {
    let elsewhere = match call.way {
        Way::Own => false,
        // SMOOTH has a MAXWAIT of its own.
        Way::Peek => {
            ["PARTIAL", "FORCE", "RESERVE", "HOLD", "BLOCK", "TENANT", "WEIGHT"].contains(&option)
                || option == "MAXWAIT" && call.takes("RESERVE")
        }
        Way::Limit => {
            ["AT", "PARTIAL", "FORCE", "RESERVE", "COUNTREFUSED", "HOLD", "BLOCK"].contains(&option)
                || option == "MAXWAIT" && call.takes("RESERVE")
                || ["TENANT", "WEIGHT"].contains(&option) && call.row.name() != "CONCURRENT"
        }
    };
    call.takes(option) && !elsewhere || ["ON", "SHADOW"].contains(&option) && call.way == Way::Limit
}

/// Every wrong call of a limiter in one way, and its error without the number of the limit.
fn wrong(good_call: &Call) -> Vec<(Call, String)> {
    let row = good_call.row;
    let mut table = Vec::new();
    let mut add = |call: Call, error: String| table.push((call, error));
    for (place, parameter) in parameters(row).enumerate() {
        for (word, error) in outside(parameter) {
            add(good_call.with_parameter(place, &word), error);
        }
        // The server itself rejects calls with too few arguments.
        if good_call.way != Way::Own && place > 0 {
            let missing = format!("ERR syntax error: {} is missing", parameter.name);
            add(good_call.cut(place), missing.clone());
            if good_call.way == Way::Limit {
                add(good_call.cut(place).with("LIMIT UNIFORM 1ms"), missing);
            }
        }
    }
    for option in options(row).filter(|option| is_own(good_call, option.name)) {
        let once = given(good_call, option);
        let name = option.name;
        let again = once.split(' ').skip_while(|word| *word != name).collect::<Vec<_>>().join(" ");
        add(
            good_call.with(&once).with(&again.to_lowercase()),
            format!("ERR syntax error: {name} is given twice"),
        );
        if let Some(needed) = needed(good_call, name) {
            let needs = format!("ERR syntax error: {name} needs {}", needed.split(' ').next().unwrap());
            add(good_call.with(&again), needs);
        }
        if option.values == Values::Flag {
            continue;
        }
        if name == "HOLD" {
            for (words, error) in wrong_holds(row) {
                let mut call = good_call.clone();
                call.words.extend(words);
                add(call, error);
            }
            continue;
        }
        let bare = once.strip_suffix(again.split(' ').nth(1).unwrap()).unwrap().trim_end();
        let no_value = format!("ERR syntax error: {name} needs a value");
        add(good_call.with(bare), no_value.clone());
        if good_call.way == Way::Limit {
            add(good_call.with(bare).with("LIMIT UNIFORM 1ms"), no_value);
        }
        for (word, error) in outside(option) {
            let mut call = good_call.with(bare);
            call.words.push(word);
            add(call, error);
        }
    }
    let exclusive = [
        ("PARTIAL", "FORCE"),
        ("PARTIAL", "RESERVE"),
        ("FORCE", "RESERVE"),
        ("BURST 1s", "WARMUP 1s"),
        ("COUNTREFUSED", "PARTIAL"),
        ("COUNTREFUSED", "FORCE"),
        ("COUNTREFUSED", "HOLD id 1s"),
        ("HOLD id 1s", "RESERVE"),
        ("BLOCK 1s", "PARTIAL"),
        ("BLOCK 1s", "FORCE"),
        ("BLOCK 1s", "RESERVE"),
        ("BLOCK 1s", "COUNTREFUSED"),
        ("BLOCK 1s", "AT 1700002800000000"),
    ];
    let first = |words: &str| words.split(' ').next().unwrap().to_string();
    for (one, other) in exclusive {
        if is_own(good_call, &first(one)) && is_own(good_call, &first(other)) {
            let error = format!("ERR syntax error: {} and {} exclude each other", first(one), first(other));
            add(good_call.with(one).with(other), error);
        }
    }
    for option in option_names().filter(|option| !is_own(good_call, option) && *option != "LIMIT") {
        let own = row.arguments().iter().find(|argument| argument.name == option);
        let words = own.map_or_else(|| option.to_string(), |argument| given(good_call, argument));
        // The error names RESERVE, not its MAXWAIT, and TENANT, not its WEIGHT.
        let is_behind = option == "WEIGHT" || option == "MAXWAIT" && good_call.takes("RESERVE");
        let told = if is_behind { first(&words) } else { option.to_string() };
        // These take a value, and only then are an error here.
        let value = match (option, own) {
            ("MAXWAIT" | "BLOCK", None) => " 1ms",
            ("HOLD", None) => " id 1s",
            ("TENANT" | "WEIGHT", None) => " 1",
            _ => "",
        };
        let words = words + value;
        add(good_call.with(&words), foreign(good_call, &told));
    }
    for unknown in ["NOSUCH", "1", "COTS 1", "COSTS 1", "COST=1", "-", "id"] {
        let guess = match first(unknown).as_str() {
            "COTS" | "COSTS" => "; did you mean COST?",
            "NOSUCH" | "1" | "COST=1" | "-" | "id" => "",
            other => panic!("{other}"),
        };
        let told = format!("ERR syntax error near '{}'{guess}", first(unknown));
        add(good_call.with(unknown), told.clone());
        add(good_call.with("COST 1").with(unknown), told);
    }
    add(good_call.with(&"A".repeat(65)), format!("ERR syntax error near '{}...'", "A".repeat(64)));
    table
}

/// The option `HOLD`, wrong in every way, and the error.
fn wrong_holds(row: &Row) -> Vec<(Vec<String>, String)> {
    let (id, ttl) = (named(row, "HOLD"), named(row, "ttl"));
    let syntax = |text: &str| format!("ERR syntax error: {text}");
    let mut wrong = vec![
        (vec!["HOLD".into()], syntax("id is missing")),
        (vec!["HOLD".into(), "id".into()], syntax("ttl is missing")),
        (["HOLD", "id", "1s", "COST", "0"].map(String::from).into(), syntax("HOLD needs a COST above 0")),
    ];
    let ids = outside(id).into_iter().map(|(id, error)| (id, "1s".into(), error));
    let ttls = outside(ttl).into_iter().map(|(ttl, error)| ("id".into(), ttl, error));
    wrong.extend(ids.chain(ttls).map(|(id, ttl, error)| (vec!["HOLD".into(), id, ttl], error)));
    wrong
}

#[test]
fn the_error_says_what_is_wrong_with_every_wrong_call_of_a_limiter() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut calls = 0;
    let mut texts = BTreeSet::new();
    for row in &CATALOG {
        for way in [Way::Own, Way::Peek, Way::Limit] {
            let good_call = Call::good(way, row);
            let valid = Call::good(Way::Own, row).all().join(" ");
            text(con, "FLUSHALL");
            call_bytes(con, &words(&good_call.all().join(" "))).expect("a good call");
            for (call, error) in wrong(&good_call) {
                let line = call.all();
                let words: Vec<&[u8]> = line.iter().map(String::as_bytes).collect();
                let error = if way == Way::Limit { format!("{error} (LIMIT 1)") } else { error };
                assert_eq!(error_of(con, &valid, &words), error, "{}", line.join(" "));
                calls += 1;
                texts.insert(error);
            }
        }
    }
    println!("{calls} wrong calls, {} errors", texts.len());
    assert!(calls > 2500, "{calls}");
    assert_eq!(text(con, "PING"), "PONG");
}

#[test]
fn the_ends_of_each_range_are_no_error() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for row in &CATALOG {
        let good_call = Call::good(Way::Own, row);
        let with = |argument: &Argument, word: &str| {
            let place = parameters(row).position(|parameter| parameter.name == argument.name);
            place.map_or_else(
                || {
                    // The time of a hold is the last word of `HOLD`.
                    let option = if argument.is_option() { argument } else { named(row, "HOLD") };
                    good_call
                        .with(&format!("{} {word}", given(&good_call, option).rsplit_once(' ').unwrap().0))
                },
                |place| good_call.with_parameter(place, word),
            )
        };
        for argument in row.arguments() {
            let (min, max) = match argument.values {
                Values::Number { min, max } => (min, max),
                Values::Real { min, max } => (min.into(), max.into()),
                Values::Duration { .. } | Values::DurationFrom(_) => (least(argument), CENTURY),
                Values::Setting(_) => (1, SETTING),
                Values::UpTo { min, .. } => (min, 10),
                Values::Instant => (EARLIEST, u64::try_from(LATEST).unwrap()),
                Values::Flag | Values::Word | Values::Id | Values::Seconds => continue,
            };
            let unit = if argument.values.is_duration() { "ms" } else { "" };
            for end in [min, max] {
                text(con, "FLUSHALL");
                let line = with(argument, &format!("{end}{unit}")).all().join(" ");
                // Together with the other parameters it may be too much.
                if let Err(error) = call_bytes(con, &words(&line)) {
                    let error = error_line(&error);
                    let others = ["ERR limit would take too long to refill", "ERR PRECISION "];
                    assert!(others.iter().any(|other| error.starts_with(other)), "{line}: {error}");
                }
            }
        }
    }
}

#[test]
fn the_error_names_two_equal_limits_of_a_key() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in &FORMS {
        let (one, other) = (form.words(10, 60_000, "a"), form.words(10, 60_000, "b"));
        // A log that counts refusals is not for RL.MULTI.
        if one.contains("COUNTREFUSED") {
            continue;
        }
        let (limiter, parameters) = one.split_once(' ').unwrap();
        let (before, after) = match () {
            () if parameters.contains("BATCH") => (" BATCH", ""),
            () if parameters.contains("ALIGNED") => (" ALIGNED", ""),
            () if parameters.contains("PRECISION") => ("", " with PRECISION"),
            () if parameters.contains("WARMUP") => ("", " with WARMUP"),
            () => ("", ""),
        };
        let name = match limiter {
            "CONCURRENT" => "CONCURRENT".into(),
            "UNIFORM" => "UNIFORM of 6s".into(),
            "CALENDAR" => "CALENDAR HOUR".into(),
            _ => format!("{limiter}{before} of 1m{after}"),
        };
        let line = format!("RL.MULTI 1 k LIMIT {one} LIMIT {other}");
        let told = error_of(con, "RL.GCRA k 1 1 1s", &words(&line));
        assert_eq!(told, format!("ERR syntax error: {name} twice on one key (LIMIT 2)"), "{line}");
    }
}

#[test]
fn the_error_shows_a_word_that_is_no_limiter() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for row in &CATALOG {
        let parameters = Call::good(Way::Own, row).words.join(" ");
        let name = row.name();
        let near = |word: &str| format!("ERR syntax error near '{word}'");
        let plural = format!("{}; did you mean {name}?", near(&format!("{name}S")));
        let prefixed = format!("{}: the limiter's name is {name}", near(&format!("RL.{name}")));
        for (line, error) in [
            (format!("RL.PEEK k RL.{name} {parameters}"), prefixed.clone()),
            (format!("RL.MULTI 1 k LIMIT RL.{name} {parameters}"), format!("{prefixed} (LIMIT 1)")),
            (format!("RL.PEEK k {name}S {parameters}"), plural.clone()),
            (format!("RL.REFUND k {name}S {parameters}"), plural.clone()),
            (
                format!("RL.MULTI 1 k LIMIT UNIFORM 1ms LIMIT {name}S {parameters}"),
                format!("{plural} (LIMIT 2)"),
            ),
            (
                format!("RL.MULTI 1 k {name} {parameters} COST 1"),
                format!("{}: a limit begins with LIMIT", near(name)),
            ),
        ] {
            assert_eq!(error_of(con, "RL.GCRA k 1 1 1s", &words(&line)), error, "{line}");
        }
    }
}

#[test]
fn a_guess_is_a_word_that_fits_there() {
    check(&[
        ("RL.GCRA k 1 1 1s MAXX 3", "ERR syntax error near 'MAXX'".into()),
        ("RL.PENALTY k 3 1s 1s MAXX 3s", "ERR syntax error near 'MAXX'; did you mean MAX?".into()),
        ("RL.GCRA k 1 1 1s MAXWIT 3s", "ERR syntax error near 'MAXWIT'; did you mean MAXWAIT?".into()),
        ("RL.FIXEDWINDOW k 3 1s PRECISON 1ms", "ERR syntax error near 'PRECISON'".into()),
        ("RL.SHED k 0.5 COTS 1", "ERR syntax error near 'COTS'".into()),
        ("RL.GCRA k 1 1 1s SHADWO", "ERR syntax error near 'SHADWO'".into()),
        (
            "RL.MULTI 1 k LIMIT GCRA 1 1 1s SHADWO",
            "ERR syntax error near 'SHADWO'; did you mean SHADOW? (LIMIT 1)".into(),
        ),
        (
            "RL.MULTI 1 k LIMIT GCRA 1 1 1s LIMTI UNIFORM 1s",
            "ERR syntax error near 'LIMTI'; did you mean LIMIT? (LIMIT 1)".into(),
        ),
        ("RL.PEEK k RL.GRCA 1 1 1s", "ERR syntax error near 'RL.GRCA'; did you mean GCRA?".into()),
    ]);
}

#[test]
fn an_error_escapes_the_bytes_of_a_word() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let valid = "RL.GCRA k 9 1 1s";
    for (word, shown) in [
        (&b""[..], ""),
        (b"\0", r"\x00"),
        (b"COST\0", r"COST\x00"),
        (b"\xff\xfe", r"\xff\xfe"),
        (b"CO\r\nST", r"CO\r\nST"),
        (b" COST", " COST"),
        (b"%s%n", "%s%n"),
        (b"'", r"\'"),
    ] {
        let near = format!("ERR syntax error near '{shown}'");
        // One byte more is near.
        let guess = if shown.contains("COST") { "; did you mean COST?" } else { "" };
        let expected = format!("{near}{guess}");
        let mut line = words(valid);
        line.extend([word, b"1"]);
        assert_eq!(error_of(con, valid, &line), expected);
        assert_eq!(error_of(con, valid, &[b"RL.PEEK", b"k", word, b"9", b"1", b"1s"]), near);
    }
    let long = [0xff; 10_000];
    let mut line = words(valid);
    line.push(&long);
    assert_eq!(error_of(con, valid, &line), format!("ERR syntax error near '{}...'", r"\xff".repeat(64)));
}

#[test]
fn the_error_says_what_is_wrong_with_calls_with_several_limits() {
    let syntax = |text: &str| format!("ERR syntax error{text}");
    check(&[
        // RL.MULTI and its sisters.
        ("RL.MULTI 1 k COST 1 AT 1700000000000000", syntax(": LIMIT is missing")),
        ("RL.MULTI 9 k LIMIT GCRA 1 1 1s", "ERR numkeys is 9, but LIMIT follows the first key".into()),
        ("RL.MULTI 0 k LIMIT GCRA 1 1 1s", "ERR numkeys must be an integer from 1 to 64; got '0'".into()),
        ("RL.MULTI x k LIMIT GCRA 1 1 1s", "ERR numkeys must be an integer from 1 to 64; got 'x'".into()),
        ("RL.MULTI 1 k l LIMIT GCRA 1 1 1s", "ERR numkeys is 1, but 2 keys come before LIMIT".into()),
        ("RL.MULTI 2 k LIMIT GCRA 1 1 1s", "ERR numkeys is 2, but LIMIT follows the first key".into()),
        ("RL.MULTI 1 foo bar LIMIT GCRA 1 1 1s", "ERR numkeys is 1, but 2 keys come before LIMIT".into()),
        ("RL.MULTI 1 k CSOT 2 LIMIT GCRA 1 1 1s", syntax(" near 'CSOT'; did you mean COST?")),
        ("RL.MULTI 2 k l LMIT GCRA 1 1 1s COST 2", syntax(" near 'LMIT'; did you mean LIMIT?")),
        ("RL.MULTI 1 k ON 1 LIMIT GCRA 1 1 1s", syntax(": ON belongs in a LIMIT")),
        ("RL.MULTI 1 k PARTIAL LIMIT GCRA 1 1 1s", syntax(": PARTIAL is not for RL.MULTI")),
        ("RL.MULTI 1 k RESERVE LIMIT GCRA 1 1 1s", syntax(": RESERVE is not for RL.MULTI")),
        ("RL.MULTI 1 k MAXWAIT 1ms LIMIT GCRA 1 1 1s", syntax(": MAXWAIT is not for RL.MULTI")),
        ("RL.MULTI 1 k FORCE FORCE LIMIT GCRA 1 1 1s", syntax(": FORCE is given twice")),
        ("RL.MULTI 1 k FORCE MAXWAIT 1ms LIMIT GCRA 1 1 1s", syntax(": MAXWAIT is not for RL.MULTI")),
        (
            "RL.MULTI 1 k FORCE LIMIT UNIFORM 1ms LIMIT SMOOTH 5 1s",
            syntax(": FORCE is not for SMOOTH (LIMIT 2)"),
        ),
        ("RL.MULTI 1 k FORCE LIMIT CONCURRENT 5 1s id", syntax(": FORCE is not for CONCURRENT (LIMIT 1)")),
        ("RL.MULTI 1 k COST LIMIT GCRA 1 1 1s", syntax(": COST needs a value")),
        ("RL.MULTI 1 k ALIGNED LIMIT GCRA 1 1 1s", syntax(": ALIGNED belongs in a LIMIT")),
        ("RL.MULTI 1 k GOOD 1 LIMIT GCRA 1 1 1s", syntax(": GOOD is not for RL.MULTI")),
        ("RL.MULTI 1 k AT LIMIT GCRA 1 1 1s", syntax(": AT needs a value")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1s AT LIMIT UNIFORM 1ms", syntax(": AT needs a value (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT LIMIT GCRA 1 1 1s", syntax(": limiter is missing (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT CONCURRENT 5 1s LIMIT GCRA 1 1 1s", syntax(": id is missing (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT CONCURRENT 5 1s LIMIT RL.GCRA 1 1 1s", syntax(": id is missing (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT SHED 0.5 1", syntax(": SHED is not for RL.MULTI (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1s LIMIT", syntax(": limiter is missing (LIMIT 2)")),
        (
            "RL.MULTI 1 k LIMIT GCRA 1 1 1s ON 2",
            "ERR ON must be an integer from 1 to 1; got '2' (LIMIT 1)".into(),
        ),
        (
            "RL.MULTI 1 k LIMIT GCRA 1 1 100y",
            "ERR period must be a whole number with ms, s, m, h, d or w, such as 90s; got '100y' (LIMIT 1)"
                .into(),
        ),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 36500d", "ERR limit would take too long to refill (LIMIT 1)".into()),
        (
            "RL.MULTI 1 k LIMIT UNIFORM 1ms LIMIT SLIDINGWINDOW 1 10ms PRECISION 3ms",
            "ERR PRECISION 3ms does not divide the window 10ms into equal parts (LIMIT 2)".into(),
        ),
        (
            "RL.MULTI 1 k FORCE COST 9007199254740991 LIMIT FIXEDWINDOW 1 1ms LIMIT GCRA 1 1 1s",
            "ERR limit would take too long to refill (LIMIT 2)".into(),
        ),
        ("RL.MULTIPEEK 1 k FORCE LIMIT GCRA 1 1 1s", syntax(": FORCE is not for RL.MULTIPEEK")),
        ("RL.MULTIPEEK 1 k LIMIT GCRA 1 1 1s FORCE", syntax(": FORCE is not for RL.MULTIPEEK (LIMIT 1)")),
        ("RL.MULTIREFUND 1 k FORCE LIMIT GCRA 1 1 1s", syntax(": FORCE is not for RL.MULTIREFUND")),
        (
            "RL.MULTIREFUND 1 k LIMIT UNIFORM 1ms LIMIT CONCURRENT 1 1ms a",
            syntax(": CONCURRENT is not for RL.MULTIREFUND (LIMIT 2)"),
        ),
        (
            "RL.MULTIREFUND 1 k LIMIT SLIDINGLOG 1 1ms COUNTREFUSED",
            syntax(": COUNTREFUSED is not for RL.MULTIREFUND (LIMIT 1)"),
        ),
        ("RL.MULTIRELEASE 2 k id", "ERR wrong number of arguments for 'rl.multirelease' command".into()),
        ("RL.MULTIRELEASE 1 k id NOW", syntax(" near 'NOW'")),
    ]);
}

#[test]
fn the_error_says_what_is_wrong_with_holds_and_settlements() {
    let syntax = |text: &str| format!("ERR syntax error{text}");
    let arity = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    let no_holder = syntax(": HOLD needs a limit that can be held");
    check(&[
        // A limiter's own command.
        ("RL.GCRA k 9 1 1s RESERVE MAXWAIT 1ms HOLD a 1m", syntax(": HOLD and RESERVE exclude each other")),
        ("RL.GCRA k 9 1 1s COST 0 HOLD a 1m", syntax(": HOLD needs a COST above 0")),
        ("RL.GCRA k 9 1 1s HOLD a 1m COST 0 FORCE", syntax(": HOLD needs a COST above 0")),
        ("RL.SLIDINGLOG k 9 1s HOLD a 1m COUNTREFUSED", syntax(": COUNTREFUSED and HOLD exclude each other")),
        (
            "RL.GCRA k 9 1 1s HOLD a COST 2",
            "ERR ttl must be a whole number with ms, s, m, h, d or w, such as 90s; got 'COST'".into(),
        ),
        ("RL.GCRA k 9 1 1s HOLD 1m", syntax(": ttl is missing")),
        ("RL.GCRA k 9 1 1s HOLD a 0", "ERR ttl must be from 1ms to 36500d; got '0'".into()),
        ("RL.GCRA k 9 1 1s HOLD a 36501d", "ERR ttl must be from 1ms to 36500d; got '36501d'".into()),
        ("RL.UNIFORM k 1s HOLD a 1m", syntax(": HOLD is not for RL.UNIFORM")),
        ("RL.SMOOTH k 9 1s HOLD a 1m", syntax(": HOLD is not for RL.SMOOTH")),
        ("RL.CONCURRENT k 9 1s id HOLD a 1m", syntax(": HOLD is not for RL.CONCURRENT")),
        ("RL.PENALTY k 9 1s 1s HOLD a 1m", syntax(": HOLD is not for RL.PENALTY")),
        ("RL.SHED k 0.5 HOLD a 1m", syntax(": HOLD is not for RL.SHED")),
        ("RL.THROTTLE k 15 30 60 1 HOLD a 1m", syntax(": HOLD is not for RL.THROTTLE")),
        // Looks and refunds.
        ("RL.PEEK k GCRA 9 1 1s HOLD a 1m", syntax(": HOLD is not for RL.PEEK")),
        ("RL.REFUND k GCRA 9 1 1s HOLD a 1m", syntax(": HOLD is not for RL.REFUND")),
        ("RL.MULTIPEEK 1 k HOLD a 1m LIMIT GCRA 9 1 1s", syntax(": HOLD is not for RL.MULTIPEEK")),
        ("RL.MULTIPEEK 1 k LIMIT GCRA 9 1 1s HOLD a 1m", syntax(": HOLD is not for RL.MULTIPEEK (LIMIT 1)")),
        ("RL.MULTIREFUND 1 k HOLD a 1m LIMIT GCRA 9 1 1s", syntax(": HOLD is not for RL.MULTIREFUND")),
        // Several limits.
        (
            "RL.MULTI 1 k LIMIT UNIFORM 1s LIMIT GCRA 9 1 1s HOLD a 1m",
            syntax(": HOLD belongs before the first LIMIT (LIMIT 2)"),
        ),
        ("RL.MULTI 1 k HOLD a 1m LIMIT UNIFORM 1s", no_holder.clone()),
        ("RL.MULTI 1 k HOLD a 1m LIMIT GCRA 9 1 1s COST 0", no_holder.clone()),
        ("RL.MULTI 1 k HOLD a 1m LIMIT GCRA 9 1 1s SHADOW LIMIT CONCURRENT 9 1s id", no_holder),
        ("RL.MULTI 1 k COST 0 HOLD a 1m LIMIT GCRA 9 1 1s", syntax(": HOLD needs a COST above 0")),
        ("RL.MULTI 1 k HOLD a 1m RESERVE LIMIT GCRA 9 1 1s", syntax(": RESERVE is not for RL.MULTI")),
        ("RL.MULTI 1 k HOLD a 1m HOLD b 1m LIMIT GCRA 9 1 1s", syntax(": HOLD is given twice")),
        ("RL.MULTI 1 k HOLD LIMIT GCRA 9 1 1s", syntax(": id is missing")),
        ("RL.MULTI 1 k HOLD a LIMIT GCRA 9 1 1s", syntax(": ttl is missing")),
        (
            "RL.MULTI 1 k HOLD a 1x LIMIT GCRA 9 1 1s",
            "ERR ttl must be a whole number with ms, s, m, h, d or w, such as 90s; got '1x'".into(),
        ),
        ("RL.MULTI 1 k HOLD a 1m COST 2 AT 1700000000000000", syntax(": LIMIT is missing")),
        // RL.SETTLE.
        ("RL.SETTLE k a GCRA 9 1 1s", syntax(": COST is missing")),
        ("RL.SETTLE k a GCRA 9 1 1s AT 1700000000000000", syntax(": COST is missing")),
        ("RL.SETTLE k a UNIFORM 1s", arity("rl.settle")),
        ("RL.SETTLE k a UNIFORM 1s COST 1", syntax(": UNIFORM is not for RL.SETTLE")),
        ("RL.SETTLE k a SMOOTH 9 1s COST 1", syntax(": SMOOTH is not for RL.SETTLE")),
        ("RL.SETTLE k a CONCURRENT 9 1s id COST 1", syntax(": CONCURRENT is not for RL.SETTLE")),
        ("RL.SETTLE k a PENALTY 9 1s 1s COST 1", syntax(": PENALTY is not for RL.SETTLE")),
        ("RL.SETTLE k a SHED 0.5 COST 1", syntax(": SHED is not for RL.SETTLE")),
        ("RL.SETTLE k a SLIDINGLOG 9 1s COUNTREFUSED COST 1", syntax(": COUNTREFUSED is not for RL.SETTLE")),
        ("RL.SETTLE k a GCRA 9 1 1s COST 1 FORCE", syntax(": FORCE is not for RL.SETTLE")),
        ("RL.SETTLE k a GCRA 9 1 1s COST 1 PARTIAL", syntax(": PARTIAL is not for RL.SETTLE")),
        ("RL.SETTLE k a GCRA 9 1 1s COST 1 HOLD a 1m", syntax(": HOLD is not for RL.SETTLE")),
        ("RL.SETTLE k a GCRA 9 1 1s COST 1 SHADOW", syntax(": SHADOW is not for RL.SETTLE")),
        ("RL.SETTLE k a GCRA 9 1 1s COST 1 COST 1", syntax(": COST is given twice")),
        (
            "RL.SETTLE k a GCRA 9 1 1s COST -1",
            "ERR COST must be an integer from 0 to 9007199254740991; got '-1'".into(),
        ),
        ("RL.SETTLE k GCRA a 9 1 1s COST 1", syntax(" near 'a'")),
        ("RL.SETTLE k a RL.GCRA 9 1 1s COST 1", syntax(" near 'RL.GCRA': the limiter's name is GCRA")),
        // RL.MULTISETTLE.
        ("RL.MULTISETTLE 1 k a LIMIT GCRA 9 1 1s", syntax(": COST is missing (LIMIT 1)")),
        (
            "RL.MULTISETTLE 1 k a LIMIT GCRA 9 1 1s COST 1 LIMIT UNIFORM 1s",
            syntax(": COST is missing (LIMIT 2)"),
        ),
        ("RL.MULTISETTLE 1 k a COST 1 AT 1700000000000000", syntax(": LIMIT is missing")),
        ("RL.MULTISETTLE 1 k LIMIT GCRA 9 1 1s COST 1", syntax(" near 'GCRA': a limit begins with LIMIT")),
        ("RL.MULTISETTLE 9 k a COST 1 LIMIT UNIFORM 1s", arity("rl.multisettle")),
        (
            "RL.MULTISETTLE 0 k a COST 1 LIMIT UNIFORM 1s",
            "ERR numkeys must be an integer from 1 to 64; got '0'".into(),
        ),
        ("RL.MULTISETTLE 1 k a COST 1 FORCE LIMIT GCRA 9 1 1s", syntax(": FORCE is not for RL.MULTISETTLE")),
        ("RL.MULTISETTLE 1 k a HOLD a 1m LIMIT GCRA 9 1 1s", syntax(": HOLD is not for RL.MULTISETTLE")),
        (
            "RL.MULTISETTLE 1 k a COST 1 LIMIT GCRA 9 1 1s HOLD a 1m",
            syntax(": HOLD is not for RL.MULTISETTLE (LIMIT 1)"),
        ),
        (
            "RL.MULTISETTLE 1 k a COST 1 LIMIT SLIDINGLOG 9 1s COUNTREFUSED",
            syntax(": COUNTREFUSED is not for RL.MULTISETTLE (LIMIT 1)"),
        ),
        ("RL.MULTISETTLE 1 k a COST 1 LIMIT SHED 0.5", syntax(": SHED is not for RL.MULTISETTLE (LIMIT 1)")),
    ]);
}

#[test]
fn the_error_says_what_is_wrong_with_calls_of_the_other_commands() {
    let syntax = |text: &str| format!("ERR syntax error{text}");
    check(&[
        // RL.PEEK and RL.REFUND.
        ("RL.PEEK k GCRA 1 1 1s ON 1", syntax(": ON is not for RL.PEEK")),
        ("RL.PEEK k GCRA 1 1 1s LIMIT", syntax(": LIMIT is not for RL.PEEK")),
        ("RL.PEEK k RL.SHED 0.5", syntax(": SHED is not for RL.PEEK")),
        ("RL.PEEK k THROTTLE 14 30 60", syntax(": THROTTLE is not for RL.PEEK")),
        ("RL.PEEK k SHED 0.5", syntax(": SHED is not for RL.PEEK")),
        ("RL.REFUND k GCRA 1 1 1s PARTIAL", syntax(": PARTIAL is not for RL.REFUND")),
        ("RL.REFUND k CONCURRENT 5 1s id", syntax(": CONCURRENT is not for RL.REFUND")),
        ("RL.REFUND k SMOOTH 5 1s", syntax(": SMOOTH is not for RL.REFUND")),
        ("RL.REFUND k SLIDINGLOG 5 1s COUNTREFUSED", syntax(": COUNTREFUSED is not for RL.REFUND")),
        ("RL.REFUND k GCRA 1 1", syntax(": period is missing")),
        // Leases.
        ("RL.RELEASE k id COST 1", syntax(": COST is not for RL.RELEASE")),
        ("RL.RELEASE k id id", syntax(" near 'id'")),
        ("RL.RELEASE k id AT", syntax(": AT needs a value")),
        ("RL.RELEASE k id AT 1700000000000000 AT 1700000000000000", syntax(": AT is given twice")),
        (
            "RL.RENEW k id 1s",
            "ERR ttl must be a whole number with ms, s, m, h, d or w, such as 90s; got 'id'".into(),
        ),
        ("RL.RENEW k 1s id CRITICAL", syntax(": CRITICAL is not for RL.RENEW")),
        (
            "RL.CONCURRENT k 5 id 1s",
            "ERR ttl must be a whole number with ms, s, m, h, d or w, such as 90s; got 'id'".into(),
        ),
        // A calendar's anchor, and a penalty's longest ban.
        ("RL.CALENDAR k 9 DAY ANCHOR 1", syntax(": ANCHOR needs WEEK or MONTH")),
        ("RL.CALENDAR k 9 YEAR ANCHOR 1 TZ UTC", syntax(": ANCHOR needs WEEK or MONTH")),
        ("RL.CALENDAR k 9 WEEK ANCHOR 8", "ERR ANCHOR must be an integer from 1 to 7; got '8'".into()),
        ("RL.CALENDAR k 9 week ANCHOR 0", "ERR ANCHOR must be an integer from 1 to 7; got '0'".into()),
        ("RL.CALENDAR k 9 UTC", "ERR unit must be HOUR, DAY, WEEK, MONTH, QUARTER or YEAR; got 'UTC'".into()),
        ("RL.CALENDAR k 9 1d", "ERR unit must be HOUR, DAY, WEEK, MONTH, QUARTER or YEAR; got '1d'".into()),
        ("RL.PENALTY k 3 10m 10m MAX 9m", "ERR MAX must be from 10m to 36500d; got '9m'".into()),
        ("RL.PENALTY k 3 10m 10m MAX 599999ms", "ERR MAX must be from 10m to 36500d; got '599999ms'".into()),
        // RL.SHED.
        ("RL.SHED k 35", "ERR utilization must be a number from 0 to 2; got '35'".into()),
        ("RL.SHED k 2.001", "ERR utilization must be a number from 0 to 2; got '2.001'".into()),
        ("RL.SHED k -0.001", "ERR utilization must be a number from 0 to 2; got '-0.001'".into()),
        ("RL.SHED k 35%", "ERR utilization must be a number from 0 to 2; got '35%'".into()),
        ("RL.SHED k nan", "ERR utilization must be a number from 0 to 2; got 'nan'".into()),
        ("RL.SHED k 0.5 GOOD x", "ERR GOOD must be a number from 0 to 1; got 'x'".into()),
        ("RL.SHED k 0.5 BAD 80", "ERR BAD must be a number from 0 to 1; got '80'".into()),
        ("RL.SHED k 0.5 BAD", syntax(": BAD needs a value")),
        ("RL.SHED k 0.5 DELAY 0", "ERR DELAY must be from 1ms to 36500d; got '0'".into()),
        ("RL.SHED k 0.5 RAMP 1ms RAMP 2ms", syntax(": RAMP is given twice")),
        ("RL.SHED k 0.5 TIER", syntax(": TIER needs a value")),
        ("RL.SHED k 0.5 TIER 1", syntax(": TIER needs OF")),
        ("RL.SHED k 0.5 TIER 1 2 3", syntax(": TIER needs OF")),
        ("RL.SHED k 0.5 TIER 1 OF", syntax(": OF needs a value")),
        ("RL.SHED k 0.5 TIER 3 OF 2", "ERR TIER must be an integer from 1 to 2; got '3'".into()),
        (
            "RL.SHED k 0.5 TIER x OF 2",
            "ERR TIER must be an integer from 1 to 9007199254740991; got 'x'".into(),
        ),
        ("RL.SHED k 0.5 TIER 1 OF 0", "ERR OF must be an integer from 1 to 9007199254740991; got '0'".into()),
        ("RL.SHED k 0.5 OF 2 TIER 1", syntax(": OF needs TIER")),
        ("RL.SHED k 0.5 TIER 1 OF 2 OF 3", syntax(": OF is given twice")),
        ("RL.SHED k 0.5 COST 1", syntax(": COST is not for RL.SHED")),
        // redis-cell's command, which speaks seconds.
        (
            "CL.THROTTLE k 15 30 60s",
            "ERR period must be an integer from 1 to 3153600000, in seconds; got '60s'".into(),
        ),
        ("CL.THROTTLE k 15 30 60 AT 1700000000000000", syntax(": AT needs quantity")),
        (
            "CL.THROTTLE k 15 30 60 x",
            "ERR quantity must be an integer from 0 to 9007199254740991; got 'x'".into(),
        ),
        ("CL.THROTTLE k 15 30 60 1 2", syntax(" near '2'")),
        ("RL.THROTTLE k 15 30 60 1 COST 1", syntax(": COST is not for RL.THROTTLE")),
        ("CL.THROTTLE k 15 30 60 1 COST 1", syntax(": COST is not for CL.THROTTLE")),
        // Queues.
        ("RL.XADD k 5 * a", "ERR wrong number of arguments for 'rl.xadd' command".into()),
        ("RL.XADD k x * a b", "ERR maxlen must be an integer from 1 to 9007199254740991; got 'x'".into()),
        ("RL.LPUSH k 0 a", "ERR maxlen must be an integer from 1 to 9007199254740991; got '0'".into()),
        // RL.HELP.
        ("RL.HELP grca", syntax(" near 'grca': RL.HELP lists the commands")),
        ("RL.HELP throttle gcra", "ERR wrong number of arguments for 'rl.help' command".into()),
    ]);
}

/// Makes each call, on a missing key and on one in use, and checks its error.
fn check(calls: &[(&str, String)]) {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (line, error) in calls {
        assert_eq!(error_of(con, "RL.GCRA k 9 1 1s", &words(line)), *error, "{line}");
    }
}

#[test]
fn a_duration_is_the_same_in_any_unit() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (millis, unit) in [
        ("TOKENBUCKET k 5 10 60000ms", "TOKENBUCKET k 5 10 1m"),
        ("TOKENBUCKET k 5 10 60000ms BATCH", "TOKENBUCKET k 5 10 60s BATCH"),
        ("LEAKYBUCKET k 5 10 3600000ms", "LEAKYBUCKET k 5 10 1h"),
        ("GCRA k 5 10 86400000ms RESERVE MAXWAIT 1000ms", "GCRA k 5 10 1d RESERVE MAXWAIT 1s"),
        ("FIXEDWINDOW k 5 604800000ms ALIGNED", "FIXEDWINDOW k 5 1w ALIGNED"),
        ("SLIDINGWINDOW k 5 60000ms PRECISION 1000ms", "SLIDINGWINDOW k 5 60s PRECISION 1s"),
        ("SLIDINGLOG k 5 900000ms GAP 0", "SLIDINGLOG k 5 15m GAP 0s"),
        ("UNIFORM k 2000ms", "UNIFORM k 2s"),
        ("SMOOTH k 5 1000ms BURST 3000ms MAXWAIT 0", "SMOOTH k 5 1s BURST 3s MAXWAIT 0d"),
        ("SMOOTH k 5 1000ms WARMUP 10000ms", "SMOOTH k 5 1s WARMUP 10s"),
        (
            "PENALTY k 1 600000ms 600000ms GROW 2 MAX 86400000ms FORGIVE 604800000ms",
            "PENALTY k 1 10m 10m GROW 2 MAX 1d FORGIVE 1w",
        ),
        ("CONCURRENT k 5 30000ms id", "CONCURRENT k 5 30s id"),
    ] {
        let dump = |con: &mut _, call: &str| {
            text(con, "FLUSHALL");
            let reply = ints(con, &format!("RL.{call} AT 1700000000000000"));
            (reply, text(con, "DUMP k"))
        };
        assert_eq!(dump(con, millis), dump(con, unit), "{unit}");
    }
    assert_eq!(ints(con, "RL.CONCURRENT k 5 1d id AT 1700000000000000")[4], 86_400_000);
    assert_eq!(ints(con, "RL.RENEW k 2h id AT 1700000000000000"), [1]);
    assert_eq!(ints(con, "RL.CONCURRENT k 5 1d id COST 0 AT 1700000000000000")[4], 7_200_000);
    let shed = |con: &mut _, options: &str| {
        text(con, "FLUSHALL");
        text(con, &format!("RL.SHED s 1 {options} AT 1700000000000000"));
        text(con, &format!("RL.SHED s 1 {options} AT 1700000060000000"))
    };
    assert_eq!(shed(con, "DELAY 60000ms RAMP 120000ms"), shed(con, "DELAY 1m RAMP 2m"));
}
