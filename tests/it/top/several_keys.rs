//! Calls for several limits on several keys: each key of which a limit refuses is counted once.

use super::{ON, counts};
use crate::support::{Server, T0, multi, text};

fn counted(list: &[(&str, i64)]) -> Vec<(String, i64)> {
    list.iter().map(|(key, count)| (key.to_string(), *count)).collect()
}

#[test]
fn a_key_is_counted_once_and_only_if_a_limit_of_its_own_refuses() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    let call = format!(
        "RL.MULTI 4 a b c d COST 2 AT {T0} LIMIT GCRA 0 1 1h ON 1 LIMIT FIXEDWINDOW 1 1h ON 1 \
         LIMIT FIXEDWINDOW 9 1h ON 2 LIMIT UNIFORM 1h ON 3 COST 0 LIMIT FIXEDWINDOW 1 1h ON 4 SHADOW"
    );
    let (all, each) = multi(con, &call);
    assert_eq!(all[0], 1);
    assert_eq!(each.iter().map(|pair| pair[0]).collect::<Vec<_>>(), [1, 1, 0, 0, 1]);
    assert_eq!(counts(con), counted(&[("a", 1)]), "two limits of a, none of b and c, and a shadow of d");
    // A limit of all keys, of which two are used up.
    text(con, "RL.TOP RESET");
    for key in ["b", "d"] {
        text(con, &format!("RL.FIXEDWINDOW {key} 2 1d COST 2 AT {T0}"));
    }
    let (_, each) = multi(con, &format!("RL.MULTI 4 a b c d AT {T0} LIMIT FIXEDWINDOW 2 1d"));
    assert_eq!(each.iter().map(|pair| pair[0]).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert_eq!(counts(con), counted(&[("b", 1), ("d", 1)]));
    // A call that is admitted, although a shadow would refuse.
    text(con, "RL.TOP RESET");
    let shadow = format!(
        "RL.MULTI 2 a b AT {T0} LIMIT FIXEDWINDOW 9 1m ON 1 LIMIT FIXEDWINDOW 2 1d ON 2 SHADOW COST 9"
    );
    assert_eq!(multi(con, &shadow).0[0], 0);
    assert_eq!(counts(con), []);
}

#[test]
fn a_penalty_that_bans_counts_and_one_that_only_strikes_does_not() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    let mut ask = |cost: u64, seconds: u64| {
        let at = T0 + seconds * 1_000_000;
        let call = format!(
            "RL.MULTI 2 ip user COST {cost} AT {at} LIMIT FIXEDWINDOW 2 1h ON 1 LIMIT PENALTY 2 1h 1h ON 2"
        );
        let refused: Vec<i64> = multi(con, &call).1.iter().map(|pair| pair[0]).collect();
        (refused, counts(con))
    };
    assert_eq!(ask(1, 0), (vec![0, 0], vec![]));
    // The window refuses, and the penalty strikes for the first time.
    assert_eq!(ask(2, 1), (vec![1, 0], counted(&[("ip", 1)])));
    // The second strike bans.
    assert_eq!(ask(2, 2), (vec![1, 1], counted(&[("ip", 2), ("user", 1)])));
    // During the ban the window has room for one.
    assert_eq!(ask(1, 3), (vec![0, 1], counted(&[("ip", 2), ("user", 2)])));
    // A look during the ban is refused and not counted.
    assert_eq!(ask(0, 4), (vec![0, 1], counted(&[("ip", 2), ("user", 2)])));
    // In the shadow it counts as little as any other shadow.
    text(con, "RL.TOP RESET");
    let shadow = "RL.MULTI 2 one two COST 2 LIMIT GCRA 0 1 1h ON 1 LIMIT PENALTY 1 1h 1h ON 2 SHADOW";
    multi(con, shadow);
    assert_eq!(counts(con), counted(&[("one", 1)]));
}

#[test]
fn a_policy_counts_the_same() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    for policy in [
        "one LIMIT GCRA 0 1 1h",
        "two LIMIT GCRA 0 1 1h ON 1 LIMIT FIXEDWINDOW 1 1d ON 1 LIMIT FIXEDWINDOW 9 1h ON 2",
        "shadow LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 0 1 1h SHADOW",
        "ban LIMIT GCRA 0 1 1h ON 1 LIMIT PENALTY 2 1h 1h ON 2",
        "forced LIMIT GCRA 0 1 1h",
    ] {
        text(con, &format!("RL.POLICY SET {policy}"));
    }
    for line in [
        // By the short way of one limit on one key, and by the long one.
        "RL.ASK one:a one COST 2",
        "RL.ASK one:a one FULL COST 2",
        "RL.ASK one:b one COST 2 KEYS one:c",
        "RL.ASK two:a two COST 2 KEYS two:b",
        "RL.ASK two:a two COST 2 KEYS two:b",
        "RL.ASK shadow:a shadow COST 2",
        "RL.ASK ban:ip ban COST 2 KEYS ban:user",
        "RL.ASK ban:ip ban COST 2 KEYS ban:user",
        "RL.ASK forced:a forced FORCE COST 2",
        "RL.ASK two:a two COST 0 KEYS two:b",
        "RL.ASKPEEK two:a two COST 2 KEYS two:b",
        "RL.ASKREFUND two:a two KEYS two:b",
    ] {
        text(con, line);
    }
    let expected = [("ban:ip", 2), ("ban:user", 1), ("one:a", 2), ("one:b", 1), ("one:c", 1), ("two:a", 2)];
    assert_eq!(counts(con), counted(&expected));
}
