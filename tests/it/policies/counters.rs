//! The counters of each policy, in `RL.POLICY STATS` and in `INFO`; the digest; and the events of decisions.

use std::time::Duration;

use redis::Connection;

use super::{digest, set, stats};
use crate::support::{Server, T0, call, error, info, ints, text};

/// A line of the section of policies: its name, version and counters.
fn line(con: &mut Connection, number: usize) -> Option<String> {
    info(con, "ratelimit_policies", &format!("ratelimit_policy_{number}"))
}

fn counter(con: &mut Connection, name: &str) -> u64 {
    info(con, "ratelimit", &format!("ratelimit_{name}")).expect("the field").parse().unwrap()
}

#[test]
fn each_policy_counts_what_its_calls_led_to() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let window = "LIMIT FIXEDWINDOW 2 1h";
    set(con, &format!("one {window}"));
    set(con, &format!("several {window} LIMIT GCRA 9 10 1h"));
    set(con, &format!("tried {window} SHADOW"));
    for name in ["one", "several", "tried"] {
        for key in ["a", "b"] {
            for _ in 0..3 {
                ints(con, &format!("RL.ASK {name}:{key} {name} AT {T0}"));
            }
        }
        for _ in 0..3 {
            error(con, &format!("RL.ASK {name}:a {name} AT {T0} HOLD id 1h FORCE KEYS {name}:a"));
        }
    }
    let counts = [stats(con, "one"), stats(con, "several"), stats(con, "tried")];
    assert_eq!(counts, [[4, 2, 0, 3], [4, 2, 0, 3], [6, 0, 2, 3]]);
    let lines = [1, 2, 3].map(|number| line(con, number).unwrap());
    assert_eq!(lines[0], "name=one,version=1,admitted=4,refused=2,shadow_refused=0,errors=3");
    assert_eq!(lines[1], "name=several,version=1,admitted=4,refused=2,shadow_refused=0,errors=3");
    assert_eq!(lines[2], "name=tried,version=1,admitted=6,refused=0,shadow_refused=2,errors=3");
    assert_eq!([line(con, 0), line(con, 4)], [None, None]);
    // The section of the module counts all of them together, and none for RL.MULTI or the limiters.
    let counters = ["ask_admitted", "ask_refused", "shadow_refused"].map(|name| counter(con, name));
    assert_eq!(counters, [14, 4, 2]);
    for name in ["multi_admitted", "multi_refused", "fixedwindow_admitted", "fixedwindow_refused"] {
        assert_eq!(counter(con, name), 0, "{name}");
    }
}

#[test]
fn each_error_of_a_call_that_names_a_policy_is_counted() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    text(con, "SET other value");
    for call in ["k api BOGUS", "k api COST x", "k api KEYS", "k api KEYS k", "other api"] {
        let [_, _, _, before] = stats(con, "api");
        error(con, &format!("RL.ASK {call}"));
        assert_eq!(stats(con, "api"), [0, 0, 0, before + 1], "{call}");
    }
}

#[test]
fn what_decides_nothing_is_not_counted_and_an_error_of_a_sister_is() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "one LIMIT FIXEDWINDOW 9 1h");
    set(con, "free LIMIT FIXEDWINDOW 9 1h COST 0 LIMIT GCRA 9 10 1h");
    set(con, "jobs LIMIT CONCURRENT 2 1h");
    for line in ["RL.ASK one one HOLD r1 1h", "RL.ASK free free", "RL.ASK jobs jobs ID a"] {
        ints(con, &format!("{line} AT {T0}"));
    }
    for line in [
        "RL.ASK one one COST 0 AT",
        "RL.ASK free free COST 0 AT",
        "RL.ASK jobs jobs COST 0 ID b AT",
        "RL.ASKPEEK one one AT",
        "RL.ASKREFUND free free AT",
        "RL.ASKSETTLE one one nothing COST 1 AT",
        // This id is held already, so the call only looks.
        "RL.ASK one one HOLD r1 1h AT",
        "RL.ASKSETTLE one one r1 COST 2 AT",
    ] {
        ints(con, &format!("{line} {T0}"));
        ints(con, &format!("{line} {T0} KEYS another"));
    }
    let counts = [stats(con, "one"), stats(con, "free"), stats(con, "jobs")];
    assert_eq!(counts, [[1, 0, 0, 0]; 3]);
    assert_eq!([counter(con, "ask_admitted"), counter(con, "ask_refused")], [3, 0]);
    // A call is counted if it charges one of the limits.
    assert_eq!(ints(con, &format!("RL.ASK free free COST 1 AT {T0}"))[0], 0);
    assert_eq!(stats(con, "free"), [2, 0, 0, 0]);
    for line in ["RL.ASKREFUND jobs jobs", "RL.ASKPEEK jobs jobs", "RL.ASK jobs jobs"] {
        error(con, line);
    }
    text(con, "SET text value");
    error(con, "RL.ASKSETTLE text jobs r1 COST 1");
    assert_eq!(stats(con, "jobs"), [1, 0, 0, 4]);
}

#[test]
fn counters_go_on_with_a_new_version_and_end_with_the_policy() {
    let server = Server::start(&["--ratelimit.policy-file", "policies"]);
    let con = &mut server.connection();
    set(con, "api LIMIT FIXEDWINDOW 1 1h");
    set(con, "other LIMIT FIXEDWINDOW 1 1h");
    let ask_twice = |con: &mut Connection, key: &str| {
        for _ in 0..2 {
            ints(con, &format!("RL.ASK {key} api AT {T0}"));
        }
    };
    ask_twice(con, "a");
    assert_eq!(set(con, "api LIMIT GCRA 0 1 1h"), 2);
    ask_twice(con, "b");
    error(con, "RL.ASK b api KEYS b");
    assert_eq!(
        (stats(con, "api"), line(con, 1).unwrap().starts_with("name=api,version=2,")),
        ([2, 2, 0, 1], true)
    );
    // A load replaces the policy, too.
    text(con, "RL.POLICY SAVE");
    text(con, "RL.POLICY LOAD");
    assert_eq!(stats(con, "api"), [2, 2, 0, 1]);
    ask_twice(con, "c");
    assert_eq!(stats(con, "api"), [3, 3, 0, 1]);
    let file = server.dir().join("policies");
    std::fs::write(&file, "api VERSION 2 LIMIT UNIFORM 1h\n").unwrap();
    text(con, "RL.POLICY LOAD");
    ask_twice(con, "d");
    assert_eq!(stats(con, "api"), [4, 4, 0, 1]);
    // A policy that a load leaves out is gone, and so are its counters.
    std::fs::write(&file, "other LIMIT UNIFORM 1h\n").unwrap();
    text(con, "RL.POLICY LOAD");
    assert_eq!(text(con, "RL.POLICY STATS api"), "(nil)");
    set(con, "api LIMIT FIXEDWINDOW 1 1h");
    assert_eq!(stats(con, "api"), [0; 4]);
    ask_twice(con, "e");
    text(con, "RL.POLICY DEL api");
    set(con, "api LIMIT FIXEDWINDOW 1 1h");
    assert_eq!(stats(con, "api"), [0; 4]);
    // The counters of the module go on.
    assert_eq!([counter(con, "ask_admitted"), counter(con, "ask_refused")], [5, 5]);
}

#[test]
fn the_digest_is_the_same_for_the_same_policies_and_versions() {
    let (one, other) = (Server::start(&[]), Server::start(&[]));
    let (a, b) = (&mut one.connection(), &mut other.connection());
    assert_eq!(digest(a), digest(b));
    set(a, "api VERSION 3 LIMIT GCRA 9 10 1s LIMIT UNIFORM 1s");
    set(a, "jobs LIMIT CONCURRENT 5 1h");
    // In another order, other letters and other units.
    set(b, "jobs limit concurrent 5 60m");
    let mut seen = vec![digest(b)];
    set(b, "api VERSION 3 limit gcra 9 10 1000ms limit Uniform 1s");
    assert_eq!(digest(a), digest(b));
    ints(a, "RL.ASK key api");
    assert_eq!(digest(a), digest(b), "what a policy has counted is not part of it");
    assert!(digest(a).len() == 16 && digest(a).bytes().all(|byte| byte.is_ascii_hexdigit()));
    seen.push(digest(a));
    for line in [
        "api VERSION 4 LIMIT GCRA 9 10 1s LIMIT UNIFORM 1s",
        "api VERSION 5 LIMIT UNIFORM 1s LIMIT GCRA 9 10 1s",
        "api VERSION 6 LIMIT GCRA 9 10 1s",
        "api VERSION 7 LIMIT GCRA 9 10 1s SHADOW",
        "api VERSION 8 LIMIT GCRA 9 10 1m SHADOW",
        "apis LIMIT GCRA 9 10 1s",
    ] {
        set(a, line);
        let now = digest(a);
        assert!(!seen.contains(&now), "{line}");
        seen.push(now);
    }
    text(a, "RL.POLICY DEL apis");
    text(a, "RL.POLICY DEL api");
    assert_eq!(digest(a), seen[0]);
}

#[test]
fn decisions_are_events_of_the_keys_that_were_asked() {
    let server = Server::start(&["--notify-keyspace-events", "Ed", "--ratelimit.events", "yes"]);
    let con = &mut server.connection();
    set(con, "one LIMIT GCRA 0 1 1h");
    set(con, "several LIMIT GCRA 0 1 1h ON 1 LIMIT UNIFORM 1h ON 2 LIMIT UNIFORM 1h ON 3 COST 0");
    set(con, "tried LIMIT GCRA 0 1 1h SHADOW");
    let mut listener = server.connection();
    let mut events = listener.as_pubsub();
    events.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    events.psubscribe("__keyevent@0__:rl.*").unwrap();
    events.subscribe("end").unwrap();
    for line in [
        "RL.ASK a one",
        "RL.ASK a one",
        "RL.ASK a one COST 0",
        "RL.ASKPEEK a one",
        "RL.ASK a one FULL KEYS b",
        "RL.ASK c several KEYS d e",
        "RL.ASK c several KEYS d e",
        "RL.ASK f tried",
        "RL.ASK f tried",
        "RL.ASKREFUND f tried",
        "RL.ASK g one HOLD r1 1h",
        "RL.ASK g one HOLD r1 1h",
        "RL.ASKSETTLE g one r1 COST 0",
    ] {
        text(con, line);
    }
    call(con, &["PUBLISH", "end", ""]).unwrap();
    let mut told = Vec::new();
    loop {
        let message = events.get_message().unwrap();
        if message.get_channel_name() == "end" {
            break;
        }
        let event = message.get_channel_name().trim_start_matches("__keyevent@0__:").to_string();
        told.push(format!("{event} {}", message.get_payload::<String>().unwrap()));
    }
    assert_eq!(
        told,
        [
            "rl.admit a",
            "rl.refuse a",
            "rl.refuse a",
            "rl.refuse b",
            // Of several keys those that were asked for more than a look.
            "rl.admit c",
            "rl.admit d",
            "rl.refuse c",
            "rl.refuse d",
            "rl.admit f",
            "rl.admit f",
            "rl.admit g",
        ]
    );
}
