//! What `RL.POLICY SET` refuses: what no call could ask, whatever its keys. It stores what some call can ask.

use redis::Connection;

use super::{each, get, policies, set, stats, windows};
use crate::support::{Server, T0, error, ints, text};

const PAIRS: &str = "ERR at most 64 pairs of a limit and a key";

fn twice(limit: &str, place: usize) -> String {
    format!("ERR syntax error: {limit} twice on one key (LIMIT {place})")
}

/// Stores nothing, and says so in these words.
fn refuses(con: &mut Connection, words: &str, expected: &str) {
    let before = (policies(con), get(con, "api"), stats(con, "api"));
    for name in ["api", "new"] {
        assert_eq!(error(con, &format!("RL.POLICY SET {name} {words}")), expected, "{words}");
        assert_eq!(error(con, &format!("RL.POLICY SET {name} VERSION 99 {words}")), expected, "{words}");
    }
    assert_eq!((policies(con), get(con, "api"), stats(con, "api")), before, "{words} changed something");
}

#[test]
fn a_limit_twice_on_one_key_is_refused_and_on_different_keys_it_is_stored() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    ints(con, "RL.ASK key api");
    for (words, expected) in [
        ("LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 1s", twice("GCRA of 1s", 2)),
        ("LIMIT GCRA 1 1 1s LIMIT UNIFORM 1s LIMIT GCRA 2 2 1s", twice("GCRA of 1s", 3)),
        ("LIMIT GCRA 1 1 1s ON 1 LIMIT GCRA 2 2 1s ON 1", twice("GCRA of 1s", 2)),
        ("LIMIT GCRA 1 1 1s ON 3 LIMIT GCRA 2 2 1s ON 3", twice("GCRA of 1s", 2)),
        // Without ON, a limit is on the other one's key, too.
        ("LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 1s ON 3", twice("GCRA of 1s", 2)),
        ("LIMIT GCRA 1 1 1s ON 3 LIMIT GCRA 2 2 1s", twice("GCRA of 1s", 2)),
        ("LIMIT CONCURRENT 1 1s LIMIT CONCURRENT 1 1m", twice("CONCURRENT", 2)),
        ("LIMIT CALENDAR 5 DAY LIMIT CALENDAR 6 DAY", twice("CALENDAR DAY", 2)),
        ("LIMIT GCRA 1 1 1s SHADOW LIMIT GCRA 2 2 1s SHADOW", twice("GCRA of 1s with SHADOW", 2)),
        ("SHADOW LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 1s SHADOW", twice("GCRA of 1s with SHADOW", 2)),
        (
            "LIMIT FIXEDWINDOW 9 1s ALIGNED LIMIT FIXEDWINDOW 8 1s ALIGNED",
            twice("FIXEDWINDOW ALIGNED of 1s", 2),
        ),
    ] {
        refuses(con, words, &expected);
    }
    for words in [
        "LIMIT GCRA 1 1 1s ON 1 LIMIT GCRA 2 2 1s ON 2",
        "LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 1s SHADOW",
        "LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 2s",
        "LIMIT FIXEDWINDOW 9 1s LIMIT FIXEDWINDOW 9 1s ALIGNED",
        "LIMIT CONCURRENT 1 1s ON 1 LIMIT CONCURRENT 1 1s ON 2",
        "LIMIT CONCURRENT 1 1s LIMIT CONCURRENT 1 1s SHADOW",
    ] {
        set(con, &format!("stored {words}"));
        assert_eq!(get(con, "stored").1, words);
        assert_eq!(ints(con, &format!("RL.ASK a stored AT {T0} ID x KEYS b"))[0], 0, "{words}");
        text(con, "FLUSHALL");
    }
}

#[test]
fn more_than_64_pairs_with_the_fewest_keys_are_refused_and_a_call_may_still_have_too_many() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    refuses(con, &windows(65), PAIRS);
    refuses(con, &windows(1000), PAIRS);
    // With two keys, 32 limits of all keys are 64 pairs.
    refuses(con, &format!("{} LIMIT GCRA 9 10 1s ON 2", windows(32)), PAIRS);
    refuses(con, "LIMIT GCRA 9 10 1s LIMIT UNIFORM 1s ON 64", PAIRS);
    set(con, &format!("one-key {}", windows(64)));
    set(con, &format!("two-keys {} LIMIT GCRA 9 10 1s ON 2", windows(31)));
    set(con, "last-key LIMIT UNIFORM 1s ON 64");

    assert_eq!(ints(con, &format!("RL.ASK a one-key AT {T0}"))[..3], [0, 10, 9]);
    assert_eq!(error(con, &format!("RL.ASK a one-key AT {T0} KEYS b")), PAIRS);
    assert_eq!(ints(con, &format!("RL.ASK c two-keys AT {T0} KEYS d"))[..3], [0, 10, 9]);
    assert_eq!(error(con, &format!("RL.ASK c two-keys AT {T0} KEYS d e f")), PAIRS);
    let others = each(2..=64, |key| format!(" key:{key}"));
    assert_eq!(ints(con, &format!("RL.ASK key:1 last-key AT {T0} KEYS {others}")), [0, 1, 0, 0, 1000, 1]);
    assert_eq!(text(con, "EXISTS key:1 key:2 key:63"), "0");
    assert_eq!(text(con, "EXISTS key:64 b e f"), "1");
}

#[test]
fn a_cost_that_its_limit_never_admits_is_refused() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    for (words, cost, limit, place) in [
        ("LIMIT TOKENBUCKET 5 1 1s COST 6", 6, 5, 1),
        ("LIMIT TOKENBUCKET 5 1 1s BATCH COST 6", 6, 5, 1),
        ("LIMIT LEAKYBUCKET 5 1 1s COST 6", 6, 5, 1),
        ("LIMIT GCRA 4 1 1s COST 6", 6, 5, 1),
        ("LIMIT FIXEDWINDOW 5 1s COST 6", 6, 5, 1),
        ("LIMIT FIXEDWINDOW 5 1s ALIGNED COST 9007199254740991", 9_007_199_254_740_991_u64, 5, 1),
        ("LIMIT CALENDAR 5 MONTH TZ Europe/Lisbon COST 6", 6, 5, 1),
        ("LIMIT SLIDINGWINDOW 5 1s COST 6", 6, 5, 1),
        ("LIMIT SLIDINGWINDOW 5 1s PRECISION 100ms COST 6", 6, 5, 1),
        ("LIMIT SLIDINGLOG 5 1s GAP 10ms COST 6", 6, 5, 1),
        ("LIMIT UNIFORM 1s COST 2", 2, 1, 1),
        ("LIMIT CONCURRENT 5 1m COST 9", 9, 5, 1),
        // What is reserved is for others.
        ("LIMIT CONCURRENT 5 1m RESERVED 2 COST 4", 4, 3, 1),
        ("LIMIT CONCURRENT 5 1m RESERVED 5", 1, 0, 1),
        ("LIMIT UNIFORM 1s LIMIT GCRA 0 1 1s ON 2 COST 2", 2, 1, 2),
        ("LIMIT UNIFORM 1s LIMIT GCRA 0 1 1s COST 2 SHADOW", 2, 1, 2),
    ] {
        refuses(con, words, &format!("ERR COST {cost} is above the limit {limit} (LIMIT {place})"));
    }
    for words in [
        "LIMIT TOKENBUCKET 5 1 1s COST 5",
        "LIMIT CONCURRENT 5 1m RESERVED 2 CRITICAL COST 5",
        "LIMIT CONCURRENT 5 1m RESERVED 5 COST 0",
        // A larger cost makes later requests wait, and larger strikes ban.
        "LIMIT SMOOTH 5 1s COST 6",
        "LIMIT SMOOTH 5 1s WARMUP 1s MAXWAIT 0 COST 6",
        "LIMIT PENALTY 5 1s 1s COST 6",
    ] {
        set(con, &format!("stored {words}"));
        assert_eq!(get(con, "stored").1, words);
    }
    // A call's own cost is no error: its caller learns that it is never admitted.
    assert_eq!(ints(con, "RL.ASK key api COST 11")[3], -1);
}

#[test]
fn what_belongs_to_a_call_or_to_other_commands_is_refused() {
    let server = Server::start(&["--ratelimit.max-leases", "50", "--ratelimit.max-log-entries", "40"]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    let syntax = |text: &str| format!("ERR syntax error{text}");
    for (words, expected) in [
        ("", syntax(": LIMIT is missing")),
        ("SHADOW", syntax(": LIMIT is missing")),
        ("LIMIT", syntax(": limiter is missing (LIMIT 1)")),
        ("LIMIT LIMIT GCRA 1 1 1s", syntax(": limiter is missing (LIMIT 1)")),
        ("LIMIT GCRA", syntax(": max_burst is missing (LIMIT 1)")),
        ("LIMIT GCRA 1 1 1s LIMIT", syntax(": limiter is missing (LIMIT 2)")),
        ("LIMIT NOBODY 1 1", syntax(" near 'NOBODY' (LIMIT 1)")),
        ("GCRA 1 1 1s", syntax(" near 'GCRA': a limit begins with LIMIT")),
        ("LIMIT GCRA 1 1 0", "ERR period must be from 1ms to 36500d; got '0' (LIMIT 1)".into()),
        (
            "LIMIT UNIFORM 1s LIMIT GCRA 1 1 1s ON 65",
            "ERR ON must be an integer from 1 to 64; got '65' (LIMIT 2)".into(),
        ),
        ("LIMIT GCRA 1 1 1s ON 0", "ERR ON must be an integer from 1 to 64; got '0' (LIMIT 1)".into()),
        ("LIMIT GCRA 1 1 1s ON 1 ON 2", syntax(": ON is given twice (LIMIT 1)")),
        (
            "LIMIT GCRA 1 1 1s COST -1",
            "ERR COST must be an integer from 0 to 9007199254740991; got '-1' (LIMIT 1)".into(),
        ),
        ("LIMIT GCRA 1 1 1s COST 1 COST 1", syntax(": COST is given twice (LIMIT 1)")),
        ("LIMIT GCRA 1 1 1s SHADOW SHADOW", syntax(": SHADOW is given twice (LIMIT 1)")),
        ("SHADOW SHADOW LIMIT GCRA 1 1 1s", syntax(": SHADOW is given twice")),
        // These belong in a limit.
        ("COST 1 LIMIT GCRA 1 1 1s", syntax(": COST belongs in a LIMIT")),
        ("ON 1 LIMIT GCRA 1 1 1s", syntax(": ON belongs in a LIMIT")),
        ("ALIGNED LIMIT FIXEDWINDOW 1 1s", syntax(": ALIGNED belongs in a LIMIT")),
        // Those belong to a call, or to a limiter's own command.
        ("LIMIT GCRA 1 1 1s AT 1700000000000000", syntax(": AT is not for a policy (LIMIT 1)")),
        ("AT 1700000000000000 LIMIT GCRA 1 1 1s", syntax(": AT is not for a policy")),
        ("LIMIT GCRA 1 1 1s FORCE", syntax(": FORCE is not for a policy (LIMIT 1)")),
        ("FORCE LIMIT GCRA 1 1 1s", syntax(": FORCE is not for a policy")),
        ("LIMIT GCRA 1 1 1s HOLD a 1s", syntax(": HOLD is not for a policy (LIMIT 1)")),
        ("HOLD a 1s LIMIT GCRA 1 1 1s", syntax(": HOLD is not for a policy")),
        ("PARTIAL LIMIT GCRA 1 1 1s", syntax(": PARTIAL is not for a policy")),
        ("RESERVE LIMIT GCRA 1 1 1s", syntax(": RESERVE is not for a policy")),
        ("LIMIT GCRA 1 1 1s PARTIAL", syntax(": PARTIAL is not for a policy (LIMIT 1)")),
        ("LIMIT GCRA 1 1 1s RESERVE", syntax(": RESERVE is not for a policy (LIMIT 1)")),
        ("LIMIT SLIDINGLOG 5 1s COUNTREFUSED", syntax(": COUNTREFUSED is not for RL.POLICY (LIMIT 1)")),
        // The id of a lease is the call's.
        ("LIMIT CONCURRENT 5 1h job", syntax(" near 'job' (LIMIT 1)")),
        // The settings bound what a policy may have.
        (
            "LIMIT CONCURRENT 51 1h",
            "ERR capacity must be an integer from 1 to 50 (ratelimit.max-leases); got '51' (LIMIT 1)".into(),
        ),
        (
            "LIMIT UNIFORM 1s LIMIT SLIDINGLOG 41 1h",
            "ERR limit must be an integer from 1 to 40 (ratelimit.max-log-entries); got '41' (LIMIT 2)"
                .into(),
        ),
        (
            "VERSION 0 LIMIT GCRA 1 1 1s",
            "ERR VERSION must be an integer from 1 to 9007199254740991; got '0'".into(),
        ),
        (
            "VERSION 9007199254740992 LIMIT GCRA 1 1 1s",
            "ERR VERSION must be an integer from 1 to 9007199254740991; got '9007199254740992'".into(),
        ),
        (
            "VERSION x LIMIT GCRA 1 1 1s",
            "ERR VERSION must be an integer from 1 to 9007199254740991; got 'x'".into(),
        ),
        ("VERSION LIMIT GCRA 1 1 1s", syntax(": VERSION needs a value")),
    ] {
        let before = (policies(con), get(con, "api"));
        assert_eq!(error(con, &format!("RL.POLICY SET api {words}")), expected, "{words}");
        assert_eq!((policies(con), get(con, "api")), before, "{words} changed something");
    }
}
