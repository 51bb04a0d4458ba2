//! `RL.POLICY SET`, `GET`, `DEL`, `LIST`, `STATS` and `HELP`: versions, names, words, and how many there may be.

use redis::{Connection, Value};

use super::{digest, get, policies, set, stats};
use crate::support::kinds::flood;
use crate::support::{Server, T0, call, call_bytes, error, error_line, info, ints, multi, simple, text};

const LIMIT: &str = "LIMIT GCRA 9 10 1s";
/// The largest version.
const MOST: u64 = 9_007_199_254_740_991;
const NAME: &str = "ERR name must be 1 to 64 of A-Z a-z 0-9 . _ : -";

#[test]
fn versions_only_rise_and_begin_again_at_1_after_a_deletion() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let is_at = |version: u64| format!("ERR policy 'api' is at version {version}");
    assert_eq!(set(con, &format!("api {LIMIT}")), 1);
    assert_eq!(set(con, &format!("api {LIMIT}")), 2);
    assert_eq!(set(con, &format!("api VERSION 7 {LIMIT}")), 7);
    for version in [7, 6, 1] {
        assert_eq!(error(con, &format!("RL.POLICY SET api VERSION {version} {LIMIT}")), is_at(7));
    }
    assert_eq!(set(con, &format!("api {LIMIT}")), 8);
    assert_eq!(set(con, &format!("api version 9 {LIMIT}")), 9);
    // No version is above the largest one.
    assert_eq!(set(con, &format!("api VERSION {MOST} {LIMIT}")), i64::try_from(MOST).unwrap());
    assert_eq!(error(con, &format!("RL.POLICY SET api {LIMIT}")), is_at(MOST));
    assert_eq!(get(con, "api").0, MOST);
    assert_eq!([text(con, "RL.POLICY DEL api"), text(con, "RL.POLICY DEL api")], ["1", "0"]);
    assert_eq!(set(con, &format!("api {LIMIT}")), 1);
    text(con, "RL.POLICY DEL api");
    assert_eq!(set(con, &format!("api VERSION 3 {LIMIT}")), 3);
    // Another policy has versions of its own.
    assert_eq!(set(con, &format!("other {LIMIT}")), 1);
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 3, other, 1]");
}

#[test]
fn a_policy_that_is_missing_is_nil_and_cannot_be_deleted() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.POLICY LIST"), "[]");
    let empty = digest(con);
    let long = "x".repeat(65);
    for name in [&b"missing"[..], b"", b"\xff\0", b"a b", long.as_bytes()] {
        for (word, reply) in [("GET", "(nil)"), ("STATS", "(nil)"), ("DEL", "0")] {
            let told = call_bytes(con, &[b"RL.POLICY", word.as_bytes(), name]).unwrap();
            assert_eq!(simple(&told), reply, "{word} {}", name.escape_ascii());
        }
    }
    set(con, &format!("api {LIMIT}"));
    assert_ne!(digest(con), empty);
    // Names are compared byte by byte.
    for other in ["API", "ap", "apis"] {
        assert_eq!(text(con, &format!("RL.POLICY GET {other}")), "(nil)");
        assert_eq!(text(con, &format!("RL.POLICY DEL {other}")), "0");
    }
    text(con, "RL.POLICY DEL api");
    assert_eq!(policies(con), ("[]".into(), empty));
}

#[test]
fn a_name_has_1_to_64_of_the_allowed_bytes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let stores = |con: &mut Connection, name: &[u8]| {
        let words = [&b"RL.POLICY"[..], b"SET", name, b"LIMIT", b"UNIFORM", b"1s"];
        call_bytes(con, &words).map_err(|error| error_line(&error)).map(|version| simple(&version))
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    for byte in 0..=u8::MAX {
        for name in [vec![byte], vec![b'a', byte], vec![byte, b'a']] {
            let expected = if allowed(byte) {
                Ok("1".into())
            } else {
                Err(format!("{NAME}; got '{}'", name.escape_ascii()))
            };
            assert_eq!(stores(con, &name), expected, "{}", name.escape_ascii());
            call_bytes(con, &[b"RL.POLICY", b"DEL", &name]).unwrap();
        }
    }
    for (length, fits) in [(0, false), (1, true), (64, true), (65, false), (10_000, false)] {
        assert_eq!(stores(con, &vec![b'n'; length]).is_ok(), fits, "{length} bytes");
    }
    assert_eq!(ints(con, &format!("RL.ASK key {}", "n".repeat(64)))[0], 0);
    // Words of the syntax are names, too.
    for name in ["LIMIT", "VERSION", "SHADOW", "KEYS", "GCRA", "1", "-", "GET"] {
        assert_eq!(stores(con, name.as_bytes()).as_deref(), Ok("1"), "{name}");
        assert_eq!(ints(con, &format!("RL.ASK key:{name} {name}")), [0, 1, 0, 0, 1000, 1]);
    }
}

#[test]
fn words_of_letters_are_kept_in_upper_case_and_the_others_as_they_are() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (given, kept) in [
        (
            "limit gcra 9 10 1s on 2 cost 3 shadow limit Uniform 10ms",
            "LIMIT GCRA 9 10 1s ON 2 COST 3 SHADOW LIMIT UNIFORM 10ms",
        ),
        ("shadow limit fixedwindow 5 1h aligned", "SHADOW LIMIT FIXEDWINDOW 5 1h ALIGNED"),
        ("shadow version 2 limit gcra 9 10 1s", "SHADOW LIMIT GCRA 9 10 1s"),
        ("version 3 shadow limit gcra 9 10 1s shadow", "SHADOW LIMIT GCRA 9 10 1s SHADOW"),
        ("limit concurrent 5 1h reserved 2 critical", "LIMIT CONCURRENT 5 1h RESERVED 2 CRITICAL"),
        // Time zones have any case.
        ("limit calendar 9 day tz europe/Lisbon", "LIMIT CALENDAR 9 DAY TZ europe/Lisbon"),
        ("limit calendar 9 month tz Japan anchor 5", "LIMIT CALENDAR 9 MONTH TZ JAPAN ANCHOR 5"),
        ("limit calendar 9 hour tz utc", "LIMIT CALENDAR 9 HOUR TZ UTC"),
        ("limit calendar 9 hour tz +05:45", "LIMIT CALENDAR 9 HOUR TZ +05:45"),
        ("limit smooth 9 1s warmup 2s coldfactor 4.5", "LIMIT SMOOTH 9 1s WARMUP 2s COLDFACTOR 4.5"),
    ] {
        text(con, "RL.POLICY DEL api");
        set(con, &format!("api {given}"));
        let (version, words) = get(con, "api");
        assert_eq!(words, kept);
        // What is kept is the same policy again.
        let before = digest(con);
        text(con, "RL.POLICY DEL api");
        set(con, &format!("api VERSION {version} {words}"));
        assert_eq!((get(con, "api"), digest(con)), ((version, words), before), "{given}");
    }
}

#[test]
fn shadow_before_the_first_limit_makes_shadows_of_all() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "each LIMIT GCRA 1 1 1h SHADOW LIMIT FIXEDWINDOW 1 1h SHADOW LIMIT PENALTY 9 1h 1h SHADOW");
    set(con, "all SHADOW LIMIT GCRA 1 1 1h LIMIT FIXEDWINDOW 1 1h SHADOW LIMIT PENALTY 9 1h 1h");
    let limits = "LIMIT GCRA 1 1 1h SHADOW LIMIT FIXEDWINDOW 1 1h SHADOW LIMIT PENALTY 9 1h 1h SHADOW";
    for step in 0..4 {
        let (combined, pairs) = multi(con, &format!("RL.MULTI 1 multi AT {T0} {limits}"));
        assert_eq!((combined[0], pairs[1][0] == 1), (0, step > 0));
        for name in ["each", "all"] {
            // No pair binds.
            let six = ints(con, &format!("RL.ASK key:{name} {name} AT {T0}"));
            assert_eq!((&six[..5], six[5]), (&combined[..], 0), "{name}");
        }
    }
    let keys = ["multi", "key:each", "key:all"].map(|key| call(con, &["DUMP", key]).unwrap());
    assert!(keys[0] == keys[1] && keys[0] == keys[2] && keys[0] != Value::Nil);
    assert_eq!([stats(con, "each"), stats(con, "all")], [[4, 0, 3, 0]; 2]);
}

#[test]
fn ten_thousand_policies_are_stored_and_not_one_more() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let names: Vec<String> = (0..10_000).map(|number| format!("policy-{number:04}")).collect();
    flood(con, names.iter().rev().map(|name| format!("RL.POLICY SET {name} {LIMIT}")));
    let field =
        |con: &mut Connection, name: &str| info(con, "ratelimit_policies", &format!("ratelimit_{name}"));
    assert_eq!(field(con, "policies").as_deref(), Some("10000"));
    let before = policies(con);
    assert_eq!(error(con, &format!("RL.POLICY SET more {LIMIT}")), "ERR at most 10000 policies");
    assert_eq!(policies(con), before);
    // All of them, in the order of their names.
    let listed: Vec<String> = names.iter().map(|name| format!("{name}, 1")).collect();
    assert_eq!(before.0, format!("[{}]", listed.join(", ")));
    // Ten thousand names are too many to guess from. A policy in place of the key is still found.
    assert_eq!(error(con, "RL.ASK key policy-00000"), "ERR no such policy 'policy-00000'");
    let swapped = "; 'policy-9999' is one: the key comes before the policy";
    assert_eq!(error(con, "RL.ASK policy-9999 key"), format!("ERR no such policy 'key'{swapped}"));
    // INFO lists the first ones, in a thousand lines.
    let line = |number: usize, version| {
        format!(
            "name=policy-{:04},version={version},admitted=0,refused=0,shadow_refused=0,errors=0",
            number - 1
        )
    };
    for number in [1, 2, 500] {
        assert_eq!(field(con, &format!("policy_{number}")), Some(line(number, 1)));
    }
    assert_eq!(field(con, "policy_501"), None);
    // A new version needs no room, and a deletion makes some.
    assert_eq!(set(con, &format!("policy-0499 {LIMIT}")), 2);
    assert_eq!(field(con, "policy_500"), Some(line(500, 2)));
    text(con, "RL.POLICY DEL policy-0000");
    assert_eq!(set(con, &format!("more {LIMIT}")), 1);
    assert_eq!(error(con, &format!("RL.POLICY SET policy-0000 {LIMIT}")), "ERR at most 10000 policies");
    assert_eq!(ints(con, "RL.ASK key more")[0], 0);
}

#[test]
fn a_client_of_resp3_gets_maps() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, &format!("api {LIMIT}"));
    call(con, &["HELLO", "3"]).unwrap();
    let text = |text: &str| Value::BulkString(text.into());
    let words = LIMIT.strip_prefix("LIMIT ").unwrap();
    let limit = vec![
        (text("limit"), text(words)),
        (text("refused"), Value::Int(0)),
        (text("shadow_refused"), Value::Int(0)),
    ];
    for (line, expected) in [
        ("GET api", vec![(text("version"), Value::Int(1)), (text("limits"), text(LIMIT))]),
        ("LIST", vec![(text("api"), Value::Int(1))]),
        (
            "STATS api",
            ["version", "admitted", "refused", "shadow_refused", "errors"]
                .map(|field| (text(field), Value::Int(i64::from(field == "version"))))
                .into_iter()
                .chain([(text("limits"), Value::Array(vec![Value::Map(limit)]))])
                .collect(),
        ),
    ] {
        let words: Vec<&str> = ["RL.POLICY"].into_iter().chain(line.split(' ')).collect();
        assert_eq!(simple(&call(con, &words).unwrap()), simple(&Value::Map(expected)), "{line}");
    }
    assert_eq!(call(con, &["RL.POLICY", "GET", "missing"]).unwrap(), Value::Nil);
}

#[test]
fn help_explains_the_command() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let help = text(con, "RL.POLICY HELP");
    for word in ["SET", "VERSION", "SHADOW", "LIMIT", "GET", "DEL", "LIST", "STATS", "LOAD", "SAVE", "HELP"] {
        assert!(help.contains(word), "{word} is missing: {help}");
    }
    assert_eq!(help, text(con, "rl.policy help"));
}
