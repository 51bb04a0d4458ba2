//! `HOLD` in `RL.MULTI`, and `RL.MULTISETTLE`: several limits on several keys, held under one id.

use redis::{Connection, Value};

use crate::support::replicas::wait_for_policies;
use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, WRONG_TYPE, call, dump, error, info, ints, kind_of_error, multi, simple,
    text,
};

/// The combined answer, those of the pairs, and the number of keys.
type Settled = (Vec<i64>, Vec<Vec<i64>>, i64);

/// A call of `RL.MULTISETTLE`, without its name.
fn settle(con: &mut Connection, line: &str) -> Settled {
    let line = format!("RL.MULTISETTLE {line}");
    let integers = |value: &Value| match value {
        Value::Array(five) => five.iter().map(|number| simple(number).parse().unwrap()).collect(),
        other => panic!("{line}: {other:?}"),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    match call(con, &words).unwrap_or_else(|error| panic!("{line}: {error}")) {
        Value::Array(reply) => match reply.as_slice() {
            [all, Value::Array(pairs), Value::Int(keys)] => {
                (integers(all), pairs.iter().map(integers).collect(), *keys)
            }
            other => panic!("{line}: {other:?}"),
        },
        other => panic!("{line}: {other:?}"),
    }
}

/// Of each pair, what remains.
fn remaining(pairs: &[Vec<i64>]) -> Vec<i64> {
    pairs.iter().map(|five| five[2]).collect()
}

/// What a change of any key or of what is replicated would change.
fn written(con: &mut Connection) -> (String, Option<String>, Option<String>) {
    let mut field = |name| info(con, "persistence", name);
    let fields = (field("rdb_changes_since_last_save"), field("aof_current_size"));
    (text(con, "DEBUG DIGEST"), fields.0, fields.1)
}

#[test]
fn what_several_keys_hold_is_settled_in_one_call() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT TOKENBUCKET 1000 1000 1m LIMIT FIXEDWINDOW 5000 1h ON 2";
    let (all, pairs) = multi(con, &format!("RL.MULTI 2 user team COST 600 HOLD r1 5m AT {T0} {limits}"));
    assert_eq!(pairs, [[0, 1000, 400, 0, 36_000], [0, 1000, 400, 0, 36_000], [0, 5000, 4400, 0, 3_600_000]]);
    assert_eq!(all, [0, 1000, 400, 0, 3_600_000]);
    // The first two elements are those of RL.MULTI.
    let line = format!("2 user team r1 COST 450 AT {T0} {limits}");
    let pairs = vec![vec![0, 1000, 550, 0, 27_000]; 2];
    let pairs = [pairs, vec![vec![0, 5000, 4550, 0, 3_600_000]]].concat();
    let all = vec![0, 1000, 550, 0, 3_600_000];
    assert_eq!(settle(con, &line), (all.clone(), pairs.clone(), 2));
    assert_eq!(settle(con, &line), (all, pairs, 0));
    for (key, form) in [("user", "TOKENBUCKET"), ("team", "MULTI")] {
        let told = text(con, &format!("RL.INFO {key}"));
        assert!(told.starts_with(&format!("[limiter, {form}, ")) && !told.contains("holds"), "{told}");
    }
}

#[test]
fn keys_whose_holds_were_settled_are_as_after_plain_charges_of_the_actual_cost() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = |costs: [u64; 4]| {
        let [a, b, c, d] = costs;
        format!(
            "LIMIT GCRA 99 100 1h COST {a} LIMIT SLIDINGLOG 100 1h COST {b} ON 1 LIMIT CALENDAR 100 DAY COST {c} \
             LIMIT SLIDINGWINDOW 100 1h PRECISION 1m ON 2 COST {d}"
        )
    };
    let held = limits([10, 20, 30, 40]);
    for actual in [[10, 20, 30, 40], [1, 2, 3, 4], [11, 21, 31, 41], [90, 10, 30, 60]] {
        text(con, "FLUSHALL");
        multi(con, &format!("RL.MULTI 2 a b HOLD r1 5m AT {T0} {held}"));
        let plain = limits(actual);
        multi(con, &format!("RL.MULTI 2 c d AT {T0} {plain}"));
        let (all, pairs, count) = settle(con, &format!("2 a b r1 AT {T0} {plain}"));
        let (looked, looks) = multi(con, &format!("RL.MULTIPEEK 2 c d COST 0 AT {T0} {}", limits([0; 4])));
        assert_eq!((all, pairs, count), (looked, looks, 2), "{actual:?}");
        assert_eq!((dump(con, "a"), dump(con, "b")), (dump(con, "c"), dump(con, "d")), "{actual:?}");
    }
    // All of it given back: both keys are gone.
    multi(con, &format!("RL.MULTI 2 e f HOLD r1 5m AT {T0} {held}"));
    assert_eq!(settle(con, &format!("2 e f r1 AT {T0} {}", limits([0; 4]))).2, 2);
    assert_eq!(text(con, "EXISTS e f"), "0");
}

#[test]
fn each_limit_may_have_a_cost_of_its_own_and_one_of_no_cost_is_not_held() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT GCRA 9 10 1m COST 3"));
    let hold = "LIMIT FIXEDWINDOW 10 1m LIMIT FIXEDWINDOW 100 1h COST 40 LIMIT GCRA 9 10 1m COST 0";
    let (_, pairs) = multi(con, &format!("RL.MULTI 1 key COST 5 HOLD r1 5m AT {T0} {hold}"));
    assert_eq!(remaining(&pairs), [5, 60, 7]);
    let actual = "LIMIT FIXEDWINDOW 10 1m COST 8 LIMIT FIXEDWINDOW 100 1h LIMIT GCRA 9 10 1m";
    let (_, pairs, keys) = settle(con, &format!("1 key r1 COST 1 AT {T0} {actual}"));
    assert_eq!((remaining(&pairs), keys), (vec![2, 99, 7], 1));
}

#[test]
fn the_third_element_counts_the_keys_where_a_named_limit_was_held() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let both = "LIMIT FIXEDWINDOW 10 1m LIMIT GCRA 9 10 1m ON 2";
    let hold = |con: &mut Connection| {
        text(con, "FLUSHALL");
        let (all, _) = multi(con, &format!("RL.MULTI 3 a b c COST 4 HOLD r1 5m AT {T0} {both}"));
        assert_eq!(all[0], 0);
    };
    for (line, count, left) in [
        ("3 a b c r1 COST 1 LIMIT FIXEDWINDOW 10 1m", 3, [9, 9, 9]),
        ("1 b r1 COST 1 LIMIT FIXEDWINDOW 10 1m", 1, [6, 9, 6]),
        ("2 c a r1 COST 1 LIMIT FIXEDWINDOW 10 1m", 2, [9, 6, 9]),
        // The second key of the call.
        ("2 c a r1 COST 1 LIMIT FIXEDWINDOW 10 1m ON 2", 1, [9, 6, 6]),
        // Only one key has it, and the other one is looked at.
        ("2 a b r1 COST 1 LIMIT GCRA 9 10 1m", 1, [6, 6, 6]),
        ("2 a missing r1 COST 1 LIMIT FIXEDWINDOW 10 1m", 1, [9, 6, 6]),
        ("3 a b c r2 COST 1 LIMIT FIXEDWINDOW 10 1m", 0, [6, 6, 6]),
        ("2 a b r1 COST 1 LIMIT UNIFORM 1s LIMIT SLIDINGLOG 10 1m", 0, [6, 6, 6]),
    ] {
        hold(con);
        let before = written(con);
        let (words, limits) = line.split_once(" LIMIT").unwrap();
        assert_eq!(settle(con, &format!("{words} AT {T0} LIMIT{limits}")).2, count, "{line}");
        let look = format!("RL.MULTIPEEK 3 a b c COST 0 AT {T0} LIMIT FIXEDWINDOW 10 1m");
        assert_eq!(remaining(&multi(con, &look).1), left, "{line}");
        assert_eq!(text(con, "EXISTS missing"), "0");
        assert_eq!(written(con) == before, count == 0, "{line}");
    }
}

#[test]
fn a_hold_ends_in_a_key_where_one_of_its_limits_is_named_and_the_others_keep_their_charges() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 10 1m LIMIT GCRA 9 10 1m LIMIT SLIDINGLOG 10 1m";
    multi(con, &format!("RL.MULTI 2 a b COST 4 HOLD r1 5m AT {T0} {limits}"));
    let (_, _, keys) = settle(con, &format!("1 a r1 COST 1 AT {T0} LIMIT GCRA 9 10 1m"));
    assert_eq!(keys, 1);
    let (_, pairs, keys) = settle(con, &format!("2 a b r1 COST 2 AT {T0} {limits}"));
    assert_eq!(keys, 1, "the other key has its hold still");
    assert_eq!(remaining(&pairs), [6, 8, 9, 8, 6, 8]);
    // An own command ends it, too.
    multi(con, &format!("RL.MULTI 2 c d COST 4 HOLD r1 5m AT {T0} {limits}"));
    assert_eq!(
        ints(con, &format!("RL.SETTLE c r1 SLIDINGLOG 10 1m COST 9 AT {T0}")),
        [0, 10, 1, 0, 60_000, 1]
    );
    assert_eq!(settle(con, &format!("2 c d r1 COST 2 AT {T0} {limits}")).2, 1);
}

#[test]
fn shadows_leases_gates_smooth_and_penalties_are_charged_and_not_held() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let others = [
        "LIMIT FIXEDWINDOW 10 1m SHADOW",
        "LIMIT CONCURRENT 10 1h lease",
        "LIMIT UNIFORM 1h",
        "LIMIT SMOOTH 10 1h",
        "LIMIT PENALTY 9 1h 1h",
    ];
    let all = format!("LIMIT FIXEDWINDOW 10 1m {}", others.join(" "));
    multi(con, &format!("RL.MULTI 1 key COST 4 HOLD r1 5m AT {T0} {all}"));
    multi(con, &format!("RL.MULTI 1 plain COST 4 AT {T0} {all}"));
    let before = written(con);
    // A settlement of these alone finds nothing.
    for other in others {
        for cost in [0, 1, 4, 9] {
            let (_, pairs, keys) = settle(con, &format!("1 key r1 COST {cost} AT {T0} {other}"));
            let (_, looks) = multi(con, &format!("RL.MULTIPEEK 1 key COST 0 AT {T0} {other}"));
            assert_eq!((pairs, keys), (looks, 0), "{other} COST {cost}");
        }
    }
    assert_eq!(written(con), before);
    // With the one that is held, they stay as they are.
    let (combined, pairs, keys) = settle(con, &format!("1 key r1 COST 1 AT {T0} {all}"));
    assert_eq!((combined[0], remaining(&pairs)[..2].to_vec(), keys), (0, vec![9, 6], 1));
    ints(con, &format!("RL.REFUND plain FIXEDWINDOW 10 1m COST 3 AT {T0}"));
    assert_eq!(dump(con, "key"), dump(con, "plain"));
    // They alone cannot be held.
    for other in others {
        text(con, "DEL key");
        let line = format!("RL.MULTI 1 key HOLD r1 5m AT {T0} {other}");
        assert_eq!(error(con, &line), "ERR syntax error: HOLD needs a limit that can be held", "{other}");
        assert_eq!(text(con, "EXISTS key"), "0");
    }
}

#[test]
fn a_limit_of_a_settlement_finds_its_charge_by_the_whole_name_first_and_none_twice() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let hold = |con: &mut Connection, limits: &str| {
        text(con, "DEL key");
        multi(con, &format!("RL.MULTI 1 key COST 4 HOLD r1 5m AT {T0} {limits}"));
    };
    let (minute, hour, day) =
        ("LIMIT FIXEDWINDOW 10 1m", "LIMIT FIXEDWINDOW 10 1h", "LIMIT FIXEDWINDOW 10 1d");
    let look = |con: &mut Connection| {
        let (_, pairs) = multi(con, &format!("RL.MULTIPEEK 1 key COST 0 AT {T0} {minute} {hour} {day}"));
        remaining(&pairs)
    };
    for (held, named, replied, left) in [
        // The only one of its kind is found under another length, which it gets.
        ([minute].concat(), format!("{hour} COST 1"), vec![9], [10, 9, 10]),
        // In either order it is that of the same name.
        ([minute].concat(), format!("{hour} COST 1 {minute} COST 2"), vec![10, 8], [8, 10, 10]),
        ([minute].concat(), format!("{minute} COST 2 {hour} COST 1"), vec![8, 10], [8, 10, 10]),
        // Of two others the first one named has it.
        ([minute].concat(), format!("{hour} COST 1 {day} COST 2"), vec![9, 10], [10, 9, 10]),
        // Two are held: only those named are settled, and a third finds neither.
        (format!("{minute} {hour}"), format!("{day} COST 2 {hour} COST 1"), vec![10, 9], [6, 9, 10]),
        (format!("{minute} {hour}"), format!("{hour} COST 3 {minute} COST 1"), vec![7, 9], [9, 7, 10]),
    ] {
        hold(con, &held);
        let (_, pairs, keys) = settle(con, &format!("1 key r1 AT {T0} {named}"));
        assert_eq!((remaining(&pairs), keys), (replied, 1), "{held}, then {named}");
        assert_eq!(look(con), left, "{held}, then {named}");
    }
    // Another mode is another limit.
    hold(con, minute);
    assert_eq!(settle(con, &format!("1 key r1 COST 1 AT {T0} {minute} ALIGNED")).2, 0);
}

#[test]
fn an_id_that_is_held_in_one_of_the_keys_charges_nothing_in_any() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 10 1m LIMIT CONCURRENT 5 1h lease LIMIT UNIFORM 1h ON 1";
    let line = |keys: &str| format!("RL.MULTI {keys} COST 4 HOLD r1 5m AT {T0} {limits}");
    multi(con, &line("2 a b"));
    let before = written(con);
    let look = format!("RL.MULTIPEEK 2 a b COST 0 AT {T0} {limits}");
    let looks = multi(con, &look);
    assert_eq!(multi(con, &line("2 a b")), looks);
    assert_eq!(multi(con, &line("2 a b").replace("COST 4", "COST 99")), looks);
    let forced = format!("RL.MULTI 2 a b COST 99 FORCE HOLD r1 5m AT {T0} LIMIT FIXEDWINDOW 10 1m");
    assert_eq!(remaining(&multi(con, &forced).1), [6, 6]);
    // Each key alone, and one of the two beside a new one.
    for keys in ["1 a", "1 b", "2 new a", "2 b new"] {
        let (all, _) = multi(con, &line(keys));
        assert_eq!((all[0], all[3]), (0, 0), "{keys}");
    }
    // Own commands, on a limit that was held.
    let own = format!("RL.FIXEDWINDOW b 10 1m COST 2 PARTIAL HOLD r1 5m AT {T0}");
    assert_eq!(ints(con, &own), [0, 10, 6, 0, 60_000, 4]);
    assert_eq!(written(con), before);
    assert_eq!(text(con, "EXISTS new"), "0");
    // And the other way round.
    text(con, "FLUSHALL");
    ints(con, &format!("RL.FIXEDWINDOW b 10 1m COST 3 HOLD r1 5m AT {T0}"));
    assert_eq!(remaining(&multi(con, &line("2 a b")).1), [10, 7, 5, 5, 1]);
    assert_eq!(text(con, "EXISTS a"), "0");
}

#[test]
fn a_refused_call_holds_nothing_and_one_with_force_holds_its_debts() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 10 1m LIMIT GCRA 4 10 1m ON 2 LIMIT PENALTY 9 1h 1h ON 2";
    let line =
        |manner: &str, cost: u64| format!("RL.MULTI 2 a b COST {cost} {manner} HOLD r1 5m AT {T0} {limits}");
    assert_eq!(multi(con, &line("", 6)).0[0], 1);
    // The refusal is a strike, and no more.
    assert_eq!(text(con, "EXISTS a"), "0");
    let told = text(con, "RL.INFO b");
    assert!(told.contains("PENALTY") && !told.contains("holds"), "{told}");
    let actual = format!("2 a b r1 COST 3 AT {T0} {limits}");
    assert_eq!(settle(con, &actual).2, 0);
    assert_eq!(multi(con, &line("FORCE", 16)).0[..4], [0, 10, 0, 0]);
    let (_, pairs, keys) = settle(con, &actual);
    assert_eq!((remaining(&pairs), keys), (vec![7, 7, 2, 8], 2));
}

#[test]
fn a_hold_has_at_most_16_limits_of_a_key() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let windows = |count: u64| {
        let each = (1..=count).map(|minutes| format!(" LIMIT FIXEDWINDOW 10 {minutes}m"));
        each.collect::<Vec<_>>().concat()
    };
    let not_held = " LIMIT FIXEDWINDOW 10 17m SHADOW LIMIT FIXEDWINDOW 10 18m COST 0 LIMIT CONCURRENT 9 1h x \
                    LIMIT SMOOTH 10 1h LIMIT PENALTY 9 1h 1h";
    let line = |keys: &str, limits: &str| format!("RL.MULTI {keys} COST 4 HOLD r1 5m AT {T0} {limits}");
    for (keys, limits) in [
        ("1 key", windows(17)),
        ("1 key", format!("{}{not_held}", windows(17))),
        ("2 other key", format!("{} LIMIT GCRA 9 10 1m ON 2", windows(16))),
        // Also a call that would be refused.
        ("1 key", format!("{} LIMIT GCRA 1 10 1m", windows(16))),
    ] {
        assert_eq!(error(con, &line(keys, &limits)), "ERR too many holds", "{keys}");
    }
    assert_eq!(text(con, "DBSIZE"), "0");
    let all = format!("{}{not_held}", windows(16));
    assert_eq!(multi(con, &line("2 other key", &all)).0[0], 0);
    let (_, pairs, keys) = settle(con, &format!("2 other key r1 COST 1 AT {T0} {all}"));
    assert_eq!((&remaining(&pairs)[..32], keys), (&[9; 32][..], 2));
    // Each key has 16 of its own.
    let each: Vec<String> = (1..=32).map(|i| format!(" LIMIT GCRA 9 10 {i}h ON {}", 1 + i % 2)).collect();
    assert_eq!(multi(con, &line("2 one two", &each.concat())).0[0], 0);
}

#[test]
fn a_key_full_of_holds_makes_the_call_an_error_before_any_other_key_changes() {
    let server = Server::start(&[&AOF_AT_ONCE[..], &["--ratelimit.max-holds", "1"]].concat());
    let con = &mut server.connection();
    ints(con, &format!("RL.GCRA full 9 10 1m HOLD r0 5m AT {T0}"));
    let before = written(con);
    let line = |limits: &str| format!("RL.MULTI 2 other full HOLD r1 5m AT {T0} {limits}");
    for limits in [
        "LIMIT GCRA 9 10 1m",
        "LIMIT GCRA 9 10 1m COST 99",
        "LIMIT FIXEDWINDOW 10 1m",
        "LIMIT FIXEDWINDOW 10 1m ON 2 LIMIT UNIFORM 1h",
    ] {
        assert_eq!(error(con, &line(limits)), "ERR too many holds", "{limits}");
    }
    assert_eq!(written(con), before);
    // Nothing would be held there.
    assert_eq!(multi(con, &line("LIMIT FIXEDWINDOW 10 1m ON 1 LIMIT UNIFORM 1h")).0[0], 0);
    assert_eq!(settle(con, &format!("2 full other r1 COST 0 AT {T0} LIMIT FIXEDWINDOW 10 1m")).2, 1);
    assert_eq!(multi(con, &line("LIMIT FIXEDWINDOW 10 1m ON 1 LIMIT GCRA 9 10 1m COST 0")).0[0], 0);
}

#[test]
fn an_error_of_a_settlement_changes_none_of_the_keys() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 10 1m LIMIT GCRA 9 1 1h";
    multi(con, &format!("RL.MULTI 2 a b COST 4 HOLD r1 5m AT {T0} {limits}"));
    text(con, "SET string value");
    text(con, &format!("RL.SHED shed 0.5 AT {T0}"));
    let before = written(con);
    for (line, expected) in [
        (format!("2 a string r1 COST 1 AT {T0} {limits}"), WRONG_TYPE),
        (format!("2 a shed r1 COST 1 AT {T0} {limits}"), WRONG_TYPE),
        (format!("2 a a r1 COST 1 AT {T0} {limits}"), "ERR keys must differ"),
        // The debt would last for more than a century.
        (
            format!("2 a b r1 COST 9007199254740991 AT {T0} {limits}"),
            "ERR limit would take too long to refill (LIMIT 2)",
        ),
        (
            format!("1 a r1 COST 1 AT {T0} {limits} LIMIT GCRA 4 9 1h"),
            "ERR syntax error: GCRA of 1h twice on one key (LIMIT 3)",
        ),
    ] {
        assert_eq!(kind_of_error(error(con, &format!("RL.MULTISETTLE {line}"))), expected, "{line}");
    }
    let own = format!("RL.SETTLE a r1 GCRA 9 1 1h COST 9007199254740991 AT {T0}");
    assert_eq!(error(con, &own), "ERR limit would take too long to refill");
    assert_eq!(written(con), before);
    // No error where it is not held, since nothing is charged.
    assert_eq!(settle(con, &format!("1 a r2 COST 9007199254740991 AT {T0} {limits}")).2, 0);
    assert_eq!(settle(con, &format!("2 a b r1 COST 1 AT {T0} {limits}")).2, 2);
}

#[test]
fn a_settlement_that_would_add_a_limit_to_a_full_key_is_an_error() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let full = "ERR at most 64 limits a key";
    text(con, "RL.POLICY SET p LIMIT GCRA 9 10 1s LIMIT GCRA 9 10 2s");
    let limits = "LIMIT GCRA 9 10 1s LIMIT GCRA 9 10 2s";
    for (windows, free) in [(64, 0), (63, 1)] {
        text(con, "FLUSHALL");
        multi(con, &format!("RL.MULTI 1 k COST 4 HOLD r1 1d AT {T0} {limits}"));
        // Both limits are fully reset, and are dropped. The hold stays.
        let at = T0 + 10 * SECOND;
        let others: Vec<_> = (1..=windows).map(|hours| format!("LIMIT FIXEDWINDOW 10 {hours}h")).collect();
        multi(con, &format!("RL.MULTI 1 k AT {at} {}", others.join(" ")));
        let before = written(con);
        let settlements = [
            format!("RL.MULTISETTLE 1 k r1 COST 5 AT {at} {limits}"),
            format!("RL.ASKSETTLE k p r1 COST 5 AT {at}"),
            format!("RL.SETTLE k r1 GCRA 9 10 1s COST 5 AT {at}"),
        ];
        for line in &settlements[..3 - free] {
            assert_eq!(error(con, line), full, "{windows}: {line}");
        }
        assert_eq!(written(con), before);
        let one = ints(con, &format!("RL.SETTLE k r1 GCRA 9 10 1s COST {} AT {at}", 4 + free));
        assert_eq!(one, [0, 10, 10 - i64::try_from(free).unwrap(), 0, 100 * i64::try_from(free).unwrap(), 1]);
    }
}

#[test]
fn holds_of_several_keys_end_after_their_time() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 10 1m LIMIT SLIDINGLOG 10 1m ON 2";
    let (ends, later) = (T0 + 10 * SECOND, T0 + 11 * SECOND);
    for (at, keys) in [(ends - 1, 2), (ends, 0)] {
        text(con, "FLUSHALL");
        multi(con, &format!("RL.MULTI 2 a b COST 4 HOLD r1 10s AT {T0} {limits}"));
        assert_eq!(settle(con, &format!("2 a b r1 COST 1 AT {at} {limits}")).2, keys, "{at}");
    }
    // A charge drops them.
    multi(con, &format!("RL.MULTI 2 c d COST 4 AT {T0} {limits}"));
    for keys in ["a b", "c d"] {
        multi(con, &format!("RL.MULTI 2 {keys} AT {later} {limits}"));
    }
    assert_eq!((dump(con, "a"), dump(con, "b")), (dump(con, "c"), dump(con, "d")));
}

#[test]
fn a_settlement_is_replicated_at_once_for_all_its_keys_and_one_of_nothing_not_at_all() {
    let server = Server::start(&[]);
    // Else the pings to the replica would move the offset.
    text(&mut server.connection(), "CONFIG SET repl-ping-replica-period 3600");
    let replica = server.replica(&[]);
    wait_for_policies(&replica);
    let con = &mut server.connection();
    let offset = |con: &mut Connection| -> u64 {
        info(con, "replication", "master_repl_offset").unwrap().parse().unwrap()
    };
    let changes = |con: &mut Connection| -> u64 {
        info(con, "persistence", "rdb_changes_since_last_save").unwrap().parse().unwrap()
    };
    let limits = "LIMIT FIXEDWINDOW 10 1h LIMIT SLIDINGLOG 10 1h ON 2";
    let hold = format!("RL.MULTI 2 a b COST 4 HOLD r1 1h {limits}");
    let settlement = format!("RL.MULTISETTLE 2 a b r1 COST 1 {limits}");
    for (line, sent) in [
        (&hold, 1),
        (&hold, 0),
        (&settlement, 1),
        (&settlement, 0),
        (&"RL.SETTLE a r1 FIXEDWINDOW 10 1h COST 9".to_string(), 0),
        (&"RL.FIXEDWINDOW a 10 1h COST 99 HOLD r2 1h".to_string(), 0),
        (&"RL.FIXEDWINDOW a 10 1h COST 2 HOLD r2 1h".to_string(), 1),
        (&"RL.FIXEDWINDOW a 10 1h COST 2 HOLD r2 1h".to_string(), 0),
        (&"RL.SETTLE a r2 FIXEDWINDOW 10 1h COST 2".to_string(), 1),
        (&"RL.SETTLE a r2 FIXEDWINDOW 10 1h COST 2".to_string(), 0),
    ] {
        let before = (offset(con), changes(con));
        text(con, line);
        assert_eq!(changes(con) - before.1, sent, "{line}");
        assert_eq!(offset(con) > before.0, sent > 0, "{line}");
    }
}
