//! The settings `ratelimit.max-leases` and `ratelimit.max-log-entries` bound a policy also after it was stored.

use super::{digest, get, set, stats};
use crate::support::harmless::{harmless_error, words};
use crate::support::{Server, T0, error, ints, text};

const POLICIES: [(&str, &str, &str, &str); 2] = [
    ("max-leases", "5", "2", "LIMIT GCRA 9 10 1h LIMIT CONCURRENT 5 1h"),
    ("max-log-entries", "7", "6", "LIMIT GCRA 9 10 1h LIMIT SLIDINGLOG 7 1h"),
];

#[test]
fn a_policy_beyond_a_lowered_bound_replies_the_error_of_rl_multi_and_works_again_when_it_is_raised() {
    for (setting, high, low, limits) in POLICIES {
        let server = Server::start(&["--ratelimit.policy-file", "policies"]);
        let con = &mut server.connection();
        set(con, &format!("api {limits}"));
        set(con, "other LIMIT GCRA 9 10 1h");
        let words_of_multi = limits.replace("5 1h", "5 1h x");
        assert_eq!(ints(con, &format!("RL.ASK k api ID x HOLD r1 1h AT {T0}"))[0], 0);
        for (value, fits) in [(high, true), (low, false), (high, true), ("1", false), ("1000", true)] {
            text(con, &format!("CONFIG SET ratelimit.{setting} {value}"));
            for (call, multi_call) in [
                ("RL.ASK k api ID x", format!("RL.MULTI 1 k {words_of_multi}")),
                ("RL.ASKPEEK k api ID x", format!("RL.MULTIPEEK 1 k {words_of_multi}")),
                (
                    "RL.ASKSETTLE k api r2 ID x COST 1",
                    format!("RL.MULTISETTLE 1 k r2 COST 1 {words_of_multi}"),
                ),
            ] {
                let (call, multi_call) =
                    (format!("{call} AT {T0}"), multi_call.replacen(" LIMIT", &format!(" AT {T0} LIMIT"), 1));
                if fits {
                    assert_eq!(ints(con, &call)[0], 0, "{setting} {value}: {call}");
                } else {
                    let told = harmless_error(con, &words(&call));
                    assert_eq!(told, error(con, &multi_call), "{setting} {value}: {call}");
                    let range = format!("must be an integer from 1 to {value} (ratelimit.{setting}); got ");
                    assert!(told.contains(&range) && told.ends_with(" (LIMIT 2)"), "{told}");
                }
            }
            // Others are not concerned, and the policy is kept.
            assert_eq!(ints(con, &format!("RL.ASK {setting} other COST 0"))[0], 0);
            assert_eq!(get(con, "api"), (1, limits.into()));
            if !fits {
                let told = error(con, &format!("RL.POLICY SET new {limits}"));
                assert!(told.contains(" must be an integer from 1 to "), "{told}");
            }
        }
    }
}

#[test]
fn what_a_lowered_bound_forbids_can_be_saved_and_deleted_but_not_loaded() {
    for (setting, _, low, limits) in POLICIES {
        let server = Server::start(&["--ratelimit.policy-file", "policies"]);
        let con = &mut server.connection();
        set(con, &format!("api {limits}"));
        let before = digest(con);
        text(con, &format!("CONFIG SET ratelimit.{setting} {low}"));
        assert_eq!(text(con, "RL.POLICY SAVE"), "1");
        let file = server.dir().join("policies");
        let told = error(con, "RL.POLICY LOAD");
        let place = format!("ERR {}:2: ", file.display());
        assert!(
            told.starts_with(&place)
                && told.contains(&format!("must be an integer from 1 to {low} (ratelimit.")),
            "{told}"
        );
        assert_eq!(digest(con), before);
        text(con, &format!("CONFIG SET ratelimit.{setting} 1000"));
        assert_eq!(text(con, "RL.POLICY LOAD"), "1");
        assert_eq!(ints(con, "RL.ASK k api ID x")[0], 0);
        text(con, &format!("CONFIG SET ratelimit.{setting} {low}"));
        assert_eq!(text(con, "RL.POLICY DEL api"), "1");
    }
}

#[test]
fn counters_go_on_when_a_bound_changes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "jobs LIMIT CONCURRENT 2 1h");
    for (id, limited) in [("a", 0), ("b", 0), ("c", 1)] {
        assert_eq!(ints(con, &format!("RL.ASK k jobs ID {id} AT {T0}"))[0], limited);
    }
    for setting in ["max-log-entries 9", "max-leases 2", "max-leases 9"] {
        text(con, &format!("CONFIG SET ratelimit.{setting}"));
        let before = stats(con, "jobs");
        assert_eq!(ints(con, &format!("RL.ASK k jobs ID c AT {T0}"))[0], 1);
        assert_eq!(stats(con, "jobs"), [2, before[1] + 1, 0, 0], "{setting}");
    }
}

#[test]
fn an_error_for_a_lowered_bound_is_counted_for_the_policy() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "jobs LIMIT CONCURRENT 2 1h");
    text(con, "CONFIG SET ratelimit.max-leases 1");
    for call in ["RL.ASK", "RL.ASKPEEK"] {
        let told = error(con, &format!("{call} k jobs ID c"));
        assert_eq!(
            told,
            "ERR capacity must be an integer from 1 to 1 (ratelimit.max-leases); got '2' (LIMIT 1)"
        );
    }
    assert_eq!(stats(con, "jobs"), [0, 0, 0, 2]);
}
