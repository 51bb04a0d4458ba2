//! The sixth integer: which pair of a limit and a key binds, by examples that a reader can check.

use redis::Connection;

use super::set;
use crate::support::{SECOND, Server, T0, error, ints, multi, text};

const HOUR: u64 = 3600 * SECOND;

/// The first, the third and the sixth integer: whether the call is limited, what remains, and which pair binds.
fn ask(con: &mut Connection, line: &str) -> [i64; 3] {
    let six = ints(con, &format!("RL.ASK {line}"));
    assert_eq!(six.len(), 6, "{line}");
    [six[0], six[2], six[5]]
}

#[test]
fn of_an_admitted_call_the_pair_with_the_least_remaining_binds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "three LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 5 1h LIMIT SLIDINGLOG 7 1h");
    assert_eq!(ask(con, &format!("a three AT {T0}")), [0, 4, 2]);
    // The limits are outermost: pairs 1 and 2 are the first limit's, 3 and 4 the second one's.
    set(con, "two LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 10 1h");
    ints(con, &format!("RL.FIXEDWINDOW d 10 1h COST 3 AT {T0}"));
    assert_eq!(ask(con, &format!("c two AT {T0} KEYS d")), [0, 6, 4]);
    assert_eq!(ask(con, &format!("d two AT {T0} KEYS c")), [0, 5, 3]);
    ints(con, &format!("RL.GCRA c 9 10 1h COST 6 AT {T0}"));
    assert_eq!(ask(con, &format!("d two AT {T0} KEYS c")), [0, 1, 2]);
    // A limit ON one key is one pair.
    set(con, "on LIMIT GCRA 9 10 1h ON 2 LIMIT FIXEDWINDOW 5 1h LIMIT UNIFORM 1h ON 1");
    assert_eq!(ask(con, &format!("e on AT {T0} KEYS f")), [0, 0, 4]);
    assert_eq!(ask(con, &format!("e on COST 0 AT {T0} KEYS f")), [0, 0, 4]);
}

#[test]
fn of_a_refused_call_the_pair_with_the_longest_retry_binds_and_never_comes_first() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "windows LIMIT FIXEDWINDOW 1 1m LIMIT FIXEDWINDOW 1 1h LIMIT FIXEDWINDOW 1 1s");
    ints(con, &format!("RL.ASK a windows AT {T0}"));
    assert_eq!(ints(con, &format!("RL.ASK a windows AT {T0}")), [1, 1, 0, 3_600_000, 3_600_000, 2]);
    // A pair that admits does not bind, though nothing remains of it.
    set(con, "mixed LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 0 1 1h COST 0 LIMIT FIXEDWINDOW 3 1d");
    ints(con, &format!("RL.GCRA b 0 1 1h AT {T0}"));
    assert_eq!(ints(con, &format!("RL.ASK b mixed COST 4 AT {T0}"))[3..], [-1, 3_600_000, 3]);
    set(con, "cost LIMIT FIXEDWINDOW 20 1h LIMIT FIXEDWINDOW 5 1m LIMIT FIXEDWINDOW 4 1s");
    ints(con, &format!("RL.ASK c cost COST 4 AT {T0}"));
    ints(con, &format!("RL.FIXEDWINDOW c 20 1h COST 16 AT {T0}"));
    for (cost, retry, binding) in [(1, 3_600_000, 1), (4, 3_600_000, 1), (5, -1, 3), (6, -1, 2), (21, -1, 1)]
    {
        let six = ints(con, &format!("RL.ASK c cost COST {cost} AT {T0}"));
        assert_eq!((six[0], six[3], six[5]), (1, retry, binding), "COST {cost}");
    }
}

#[test]
fn of_equal_pairs_the_first_one_binds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "equal LIMIT FIXEDWINDOW 9 1h LIMIT FIXEDWINDOW 2 2h LIMIT SLIDINGLOG 2 2h LIMIT GCRA 8 9 1h");
    for (limited, remaining) in [(0, 1), (0, 0), (1, 0)] {
        assert_eq!(ask(con, &format!("a equal AT {T0}")), [limited, remaining, 2]);
    }
    assert_eq!(ask(con, &format!("a equal COST 99 AT {T0}")), [1, 0, 1], "all refuse for ever");
    set(con, "keys LIMIT FIXEDWINDOW 1 1h");
    for limited in [0, 1] {
        assert_eq!(ask(con, &format!("b keys AT {T0} KEYS c d")), [limited, 0, 1]);
    }
    // Later one of the keys is free again.
    let later = T0 + HOUR;
    ints(con, &format!("RL.ASK d keys AT {later}"));
    assert_eq!(ask(con, &format!("b keys AT {later} KEYS c d")), [1, 0, 3]);
}

#[test]
fn shadows_never_bind_and_penalties_only_when_they_refuse() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "shadows LIMIT UNIFORM 1h SHADOW LIMIT FIXEDWINDOW 5 1h LIMIT GCRA 0 1 1h SHADOW");
    for remaining in [4, 3] {
        assert_eq!(ask(con, &format!("a shadows AT {T0}")), [0, remaining, 2]);
    }
    set(con, "only SHADOW LIMIT UNIFORM 1h LIMIT FIXEDWINDOW 5 1h");
    for _ in 0..2 {
        assert_eq!(ask(con, &format!("b only AT {T0}"))[2], 0);
    }
    // The second refusal bans for an hour.
    set(con, "punished LIMIT PENALTY 2 1m 1h LIMIT FIXEDWINDOW 3 1s");
    assert_eq!(ask(con, &format!("c punished COST 3 AT {T0}")), [0, 0, 2]);
    assert_eq!(ask(con, &format!("c punished AT {T0}")), [1, 0, 2]);
    for _ in 0..2 {
        let six = ints(con, &format!("RL.ASK c punished AT {T0}"));
        assert_eq!((six[0], six[3], six[5]), (1, 3_600_000, 1));
    }
    set(con, "nothing LIMIT PENALTY 2 1m 1h");
    assert_eq!(ask(con, &format!("d nothing AT {T0}"))[2], 0);
    // In a shadow it does not refuse either.
    set(con, "tried LIMIT PENALTY 2 1m 1h SHADOW LIMIT FIXEDWINDOW 9 1s");
    assert_eq!(ask(con, &format!("c tried AT {}", T0 + 2 * SECOND))[2], 2);
}

#[test]
fn full_replies_the_six_integers_and_the_five_of_each_pair() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 5 1h ON 2");
    let (six, pairs) = multi(con, &format!("RL.ASK a api COST 2 HOLD r1 1h FULL AT {T0} KEYS b"));
    assert_eq!(six, [0, 5, 3, 0, 3_600_000, 3]);
    assert_eq!(pairs, [[0, 10, 8, 0, 720_000], [0, 10, 8, 0, 720_000], [0, 5, 3, 0, 3_600_000]]);
    let (looked, each) = multi(con, &format!("RL.ASKPEEK a api full AT {T0} KEYS b"));
    assert_eq!((looked[5], &each), (3, &pairs));
    let (back, each) = multi(con, &format!("RL.ASKREFUND a api FULL AT {T0} KEYS b"));
    assert_eq!((back[2], back[5], each[2][2]), (4, 3, 4));
    // Of a settlement the sixth is the number of keys.
    let (settled, each) = multi(con, &format!("RL.ASKSETTLE a api r1 COST 1 FULL AT {T0} KEYS b c"));
    assert_eq!((settled[5], each.len()), (2, 4));
    assert_eq!(
        ints(con, &format!("RL.ASKSETTLE a api r1 COST 1 AT {T0} KEYS b")),
        [&settled[..5], &[0]].concat()
    );
    assert_eq!(text(con, &format!("RL.ASKPEEK new api AT {T0} KEYS b")).matches(',').count(), 5);
}

#[test]
fn the_cost_of_a_call_is_for_limits_without_a_cost_of_their_own() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(
        con,
        "api LIMIT FIXEDWINDOW 100 1m LIMIT FIXEDWINDOW 100 1h COST 7 LIMIT FIXEDWINDOW 100 1d COST 0 LIMIT UNIFORM 1s",
    );
    let (_, pairs) = multi(con, &format!("RL.ASK a api COST 30 FULL AT {T0}"));
    // A passage is one, whatever the call costs.
    assert_eq!(pairs.iter().map(|pair| pair[2]).collect::<Vec<_>>(), [70, 93, 100, 0]);
    let (_, pairs) = multi(con, &format!("RL.ASK b api FULL AT {T0}"));
    assert_eq!(pairs.iter().map(|pair| pair[2]).collect::<Vec<_>>(), [99, 93, 100, 0]);
    let (_, pairs) = multi(con, &format!("RL.ASK c api COST 0 FULL AT {T0}"));
    assert_eq!(pairs.iter().map(|pair| pair[2]).collect::<Vec<_>>(), [100, 93, 100, 1]);
    let (_, pairs) = multi(con, &format!("RL.ASKREFUND a api COST 20 FULL AT {T0}"));
    assert_eq!(pairs.iter().map(|pair| pair[2]).collect::<Vec<_>>(), [90, 100, 100, 1]);
}

#[test]
fn other_commands_go_on_with_what_a_policy_charged_and_held() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 100 1h LIMIT CONCURRENT 5 1h");
    assert_eq!(ask(con, &format!("k api COST 5 ID job HOLD r1 1h AT {T0}")), [0, 4, 3]);
    assert_eq!(ints(con, &format!("RL.GCRA k 9 10 1h AT {T0}"))[2], 4);
    assert_eq!(ints(con, &format!("RL.PEEK k FIXEDWINDOW 100 1h AT {T0}"))[2], 95);
    assert_eq!(
        ints(con, &format!("RL.SETTLE k r1 GCRA 9 10 1h COST 2 AT {T0}")),
        [0, 10, 7, 0, 1_080_000, 1]
    );
    assert_eq!(multi(con, &format!("RL.MULTI 1 k COST 3 AT {T0} LIMIT GCRA 9 10 1h")).0[2], 4);
    assert_eq!(ints(con, &format!("RL.RENEW k 2h job AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 1 k job AT {T0}")), [1]);
    let (_, pairs) = multi(con, &format!("RL.ASKPEEK k api ID job FULL AT {T0}"));
    assert_eq!(pairs.iter().map(|pair| pair[2]).collect::<Vec<_>>(), [4, 95, 5]);
    // A hold of another command's is settled by the policy.
    ints(con, &format!("RL.FIXEDWINDOW k 100 1h COST 10 HOLD r2 1h AT {T0}"));
    let (_, pairs) = multi(con, &format!("RL.MULTIPEEK 1 k AT {T0} LIMIT FIXEDWINDOW 100 1h"));
    assert_eq!(pairs[0][2], 85);
    let (six, pairs) = multi(con, &format!("RL.ASKSETTLE k api r2 COST 1 FULL AT {T0}"));
    assert_eq!((six[5], pairs[1][2]), (1, 94));
}

#[test]
fn a_new_version_goes_on_with_limits_of_the_same_length_and_begins_others_anew() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT FIXEDWINDOW 10 1h LIMIT GCRA 9 10 1h");
    assert_eq!(ask(con, &format!("k api COST 6 AT {T0}")), [0, 4, 1]);
    set(con, "api LIMIT FIXEDWINDOW 20 1h LIMIT GCRA 9 10 2h");
    let (_, pairs) = multi(con, &format!("RL.ASK k api FULL AT {T0}"));
    assert_eq!(pairs.iter().map(|pair| pair[2]).collect::<Vec<_>>(), [13, 9]);
    // Another policy with the same limits shares them.
    set(con, "other LIMIT FIXEDWINDOW 8 1h");
    assert_eq!(ask(con, &format!("k other AT {T0}")), [0, 0, 1]);
    assert_eq!(ask(con, &format!("k other AT {T0}")), [1, 0, 1]);
    assert_eq!(error(con, "RL.ASK k nobody"), "ERR no such policy 'nobody'");
}
