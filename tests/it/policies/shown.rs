//! What only a server shows of policies: sections of `INFO`, the digest, maps of RESP3, ten thousand of them, a full memory, and keys of
//! its own types. Words, replies, errors and counters are in `tests/sessions/policies*.txt`.

use redis::{Connection, Value};

use super::{digest, policies, set, windows};
use crate::support::harmless::{harmless_error, words};
use crate::support::kinds::flood;
use crate::support::{Server, T0, WRONG_TYPE, call, error, info, ints, kind_of_error, simple, text};

fn field(con: &mut Connection, name: &str) -> Option<String> {
    info(con, "ratelimit_policies", &format!("ratelimit_{name}"))
}

#[test]
fn info_has_a_line_for_each_policy_and_each_limit() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT FIXEDWINDOW 1 60s LIMIT UNIFORM 1s SHADOW");
    set(con, "mail LIMIT CALENDAR 8 DAY TZ Europe/Lisbon");
    for line in ["RL.ASK a api", "RL.ASK a api", "RL.ASK b mail"] {
        ints(con, &format!("{line} AT {T0}"));
    }
    text(con, "SET text value");
    assert_eq!(kind_of_error(harmless_error(con, &words("RL.ASK a api KEYS text"))), WRONG_TYPE);
    for (name, line) in [
        ("policy_0", None),
        ("policy_1", Some("name=api,version=1,admitted=1,refused=1,shadow_refused=0,errors=1")),
        ("policy_1_limit_1", Some("limit=FIXEDWINDOW 1 60s,refused=1,shadow_refused=0")),
        ("policy_1_limit_2", Some("limit=UNIFORM 1s SHADOW,refused=0,shadow_refused=0")),
        ("policy_1_limit_3", None),
        ("policy_2", Some("name=mail,version=1,admitted=1,refused=0,shadow_refused=0,errors=0")),
        ("policy_2_limit_1", Some("limit=CALENDAR 8 DAY TZ Europe/Lisbon,refused=0,shadow_refused=0")),
        ("policy_3", None),
    ] {
        assert_eq!(field(con, name).as_deref(), line, "{name}");
    }
    // Whole policies in a thousand lines: 15 of them have 975, and another one would have 1,040.
    text(con, "RL.POLICY DEL api");
    text(con, "RL.POLICY DEL mail");
    for number in 10..30 {
        set(con, &format!("policy-{number}{}", windows(64)));
    }
    let section = text(con, "INFO ratelimit_policies");
    assert_eq!(section.matches("ratelimit_policy_").count(), 975);
    assert!(section.contains("ratelimit_policy_15_limit_64:") && section.contains("ratelimit_policies:20"));
}

#[test]
fn the_digest_is_the_same_for_the_same_policies_and_versions() {
    let (one, other) = (Server::start(&[]), Server::start(&[]));
    let (a, b) = (&mut one.connection(), &mut other.connection());
    let mut seen = vec![digest(a)];
    set(a, "api VERSION 3 LIMIT GCRA 9 10 1s LIMIT UNIFORM 1s");
    set(a, "jobs LIMIT CONCURRENT 5 1h");
    // In another order, other letters and other units.
    set(b, "jobs limit concurrent 5 60m");
    seen.push(digest(b));
    set(b, "api VERSION 3 limit gcra 9 10 1000ms limit Uniform 1s");
    ints(a, "RL.ASK key api");
    assert_eq!(digest(a), digest(b), "what a policy has counted is not part of it");
    assert!(digest(a).len() == 16 && digest(a).bytes().all(|byte| byte.is_ascii_hexdigit()));
    for line in [
        "api VERSION 4 LIMIT GCRA 9 10 1s LIMIT UNIFORM 1s",
        "api VERSION 5 LIMIT UNIFORM 1s LIMIT GCRA 9 10 1s",
        "api VERSION 6 LIMIT GCRA 9 10 1s",
        "api VERSION 7 LIMIT GCRA 9 10 1s SHADOW",
        "api VERSION 8 LIMIT GCRA 9 10 1m SHADOW",
        "apis LIMIT GCRA 9 10 1s",
    ] {
        seen.push(digest(a));
        set(a, line);
        assert!(!seen.contains(&digest(a)), "{line}");
    }
    text(a, "RL.POLICY DEL apis");
    text(a, "RL.POLICY DEL api");
    assert_eq!(digest(a), seen[1]);
}

#[test]
fn ten_thousand_policies_are_stored_and_not_one_more() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let names: Vec<String> = (0..10_000).map(|number| format!("policy-{number:04}")).collect();
    flood(con, names.iter().rev().map(|name| format!("RL.POLICY SET {name} LIMIT GCRA 9 10 1s")));
    assert_eq!(field(con, "policies").as_deref(), Some("10000"));
    let before = policies(con);
    assert_eq!(error(con, "RL.POLICY SET more LIMIT GCRA 9 10 1s"), "ERR at most 10000 policies");
    assert_eq!(policies(con), before);
    // All of them, in the order of their names.
    let listed: Vec<String> = names.iter().map(|name| format!("{name}, 1")).collect();
    assert_eq!(before.0, format!("[{}]", listed.join(", ")));
    // Ten thousand names are too many to guess from. A policy in place of the key is still found.
    assert_eq!(error(con, "RL.ASK key policy-00000"), "ERR no such policy 'policy-00000'");
    let swapped = "; the key comes first, and 'policy-9999' is a policy";
    assert_eq!(error(con, "RL.ASK policy-9999 key"), format!("ERR no such policy 'key'{swapped}"));
    // A new version needs no room, and a deletion makes some.
    assert_eq!(set(con, "policy-0499 LIMIT GCRA 9 10 1s"), 2);
    let line = "name=policy-0499,version=2,admitted=0,refused=0,shadow_refused=0,errors=0";
    assert_eq!(field(con, "policy_500").as_deref(), Some(line));
    assert_eq!(field(con, "policy_501"), None);
    text(con, "RL.POLICY DEL policy-0000");
    assert_eq!(set(con, "more LIMIT GCRA 9 10 1s"), 1);
    assert_eq!(error(con, "RL.POLICY SET policy-0000 LIMIT UNIFORM 1s"), "ERR at most 10000 policies");
}

#[test]
fn a_client_of_resp3_gets_maps() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    call(con, &["HELLO", "3"]).unwrap();
    let text = |text: &str| Value::BulkString(text.into());
    let zero = |field: &str| (text(field), Value::Int(0));
    let limit = vec![(text("limit"), text("GCRA 9 10 1s")), zero("refused"), zero("shadow_refused")];
    for (word, expected) in [
        ("GET", vec![(text("version"), Value::Int(1)), (text("limits"), text("LIMIT GCRA 9 10 1s"))]),
        ("LIST", vec![(text("api"), Value::Int(1))]),
        (
            "STATS",
            [
                vec![(text("version"), Value::Int(1))],
                ["admitted", "refused", "shadow_refused", "errors"].map(zero).to_vec(),
                vec![(text("limits"), Value::Array(vec![Value::Map(limit)]))],
            ]
            .concat(),
        ),
    ] {
        let words = if word == "LIST" { vec!["RL.POLICY", word] } else { vec!["RL.POLICY", word, "api"] };
        assert_eq!(simple(&call(con, &words).unwrap()), simple(&Value::Map(expected)), "{word}");
    }
    assert_eq!(call(con, &["RL.POLICY", "GET", "missing"]).unwrap(), Value::Nil);
}

#[test]
fn a_full_memory_refuses_what_charges_and_nothing_else() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h");
    ints(con, &format!("RL.ASK k api COST 4 HOLD r1 1h AT {T0}"));
    text(con, "CONFIG SET maxmemory 1");
    for line in ["RL.ASK k api", "RL.POLICY SET api LIMIT GCRA 9 10 1m"] {
        let told = harmless_error(con, &words(line));
        assert_eq!(told, "OOM command not allowed when used memory > 'maxmemory'.");
    }
    for (line, left) in
        [("RL.ASKPEEK k api", 6), ("RL.ASKSETTLE k api r1 COST 2", 8), ("RL.ASKREFUND k api", 9)]
    {
        assert_eq!(ints(con, &format!("{line} AT {T0}"))[..3], [0, 10, left], "{line}");
    }
    assert_eq!(text(con, "RL.POLICY DEL api"), "1");
}
