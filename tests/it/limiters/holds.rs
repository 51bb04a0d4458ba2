//! `HOLD` and `RL.SETTLE`: a charge of an estimated cost, which is settled with the actual one.
//!
//! Most tests compare a key with holds with one that had none. Several limits on several keys are in `multi/holds.rs`.

use redis::{Connection, Value};

use crate::support::{
    AOF_AT_ONCE, LATEST, SECOND, Server, T0, WRONG_TYPE, call_bytes, dump, error, error_line, info, ints,
    kind_of_error, multi, text,
};

/// Every form that can be held: a limit of 10, and nothing that was charged comes back within a few seconds.
const FORMS: [&str; 10] = [
    "TOKENBUCKET 10 10 1m",
    "TOKENBUCKET 10 10 1m BATCH",
    "LEAKYBUCKET 10 10 1m",
    "GCRA 9 10 1m",
    "FIXEDWINDOW 10 1m",
    "FIXEDWINDOW 10 1m ALIGNED",
    "CALENDAR 10 HOUR",
    "SLIDINGWINDOW 10 1m",
    "SLIDINGWINDOW 10 1m PRECISION 1s",
    "SLIDINGLOG 10 1m",
];

/// This many milliseconds after `T0`.
fn after(millis: u64) -> u64 {
    T0 + millis * 1000
}

/// A limiter's own call.
fn own(key: &str, form: &str, options: &str, millis: u64) -> String {
    let (limiter, parameters) = form.split_once(' ').unwrap();
    format!("RL.{limiter} {key} {parameters} {options} AT {}", after(millis))
}

fn charge(con: &mut Connection, key: &str, form: &str, options: &str, millis: u64) -> Vec<i64> {
    ints(con, &own(key, form, options, millis))
}

fn look(con: &mut Connection, key: &str, form: &str, millis: u64) -> Vec<i64> {
    charge(con, key, form, "COST 0", millis)
}

/// Settles the hold `a`.
fn settle(con: &mut Connection, key: &str, form: &str, actual: u64, millis: u64) -> Vec<i64> {
    ints(con, &format!("RL.SETTLE {key} a {form} COST {actual} AT {}", after(millis)))
}

fn refund(con: &mut Connection, key: &str, form: &str, cost: u64, millis: u64) -> Vec<i64> {
    ints(con, &format!("RL.REFUND {key} {form} COST {cost} AT {}", after(millis)))
}

/// Whether less than held comes back as by `RL.REFUND`, because there is no place where it was charged.
fn gives_back_as_refund(form: &str) -> bool {
    ["TOKENBUCKET", "LEAKYBUCKET", "GCRA"].iter().any(|limiter| form.starts_with(limiter))
}

/// A reply and what follows it.
fn and(five: Vec<i64>, sixth: i64) -> Vec<i64> {
    [five, vec![sixth]].concat()
}

/// What a change of the key or of what is replicated would change.
fn written(con: &mut Connection, key: &str) -> (Value, String, String, String) {
    let changes = info(con, "persistence", "rdb_changes_since_last_save").unwrap();
    let size = info(con, "persistence", "aof_current_size").unwrap_or_default();
    (dump(con, key), text(con, &format!("PEXPIRETIME {key}")), changes, size)
}

/// The number of holds that `RL.INFO` shows.
fn holds(con: &mut Connection, key: &str) -> Option<String> {
    let shown = text(con, &format!("RL.INFO {key}"));
    let (_, rest) = shown.split_once("holds, ")?;
    rest.split(',').next().map(str::to_string)
}

#[test]
fn an_estimate_is_settled_with_what_the_work_has_cost() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "TOKENBUCKET 1000 1000 1m";
    assert_eq!(charge(con, "llm", p, "COST 600 HOLD a 5m", 0), [0, 1000, 400, 0, 36_000]);
    // 50 tokens come in within three seconds.
    assert_eq!(settle(con, "llm", p, 450, 3000), [0, 1000, 600, 0, 24_000, 1]);
    assert_eq!(settle(con, "llm", p, 450, 3000), [0, 1000, 600, 0, 24_000, 0]);
    // More than held is charged as `FORCE` does, into debt.
    assert_eq!(charge(con, "llm", p, "COST 600 HOLD a 5m", 3000), [0, 1000, 0, 0, 60_000]);
    assert_eq!(settle(con, "llm", p, 1600, 3000), [0, 1000, 0, 0, 120_000, 1]);
    assert_eq!(charge(con, "llm", p, "COST 1", 3000), [1, 1000, 0, 60_060, 120_000]);
}

#[test]
fn settled_at_its_estimate_a_key_is_as_after_a_plain_charge() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        let reply = charge(con, "held", form, "COST 6 HOLD a 5m", 1000);
        assert_eq!(reply, charge(con, "plain", form, "COST 6", 1000), "{form}");
        assert_ne!(dump(con, "held"), dump(con, "plain"), "{form}");
        assert_eq!(look(con, "held", form, 2000), look(con, "plain", form, 2000), "{form}");
        let settled = settle(con, "held", form, 6, 4000);
        assert_eq!(settled, and(look(con, "plain", form, 4000), 1), "{form}");
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
        // Also when it is fully reset.
        charge(con, "late", form, "COST 6 HOLD a 1d", 1000);
        assert_eq!(settle(con, "late", form, 6, 7_200_000), [0, 10, 10, 0, 0, 1], "{form}");
        assert_eq!(dump(con, "late"), dump(con, "plain"), "{form}");
        // And so are the charges after it.
        assert_eq!(charge(con, "held", form, "COST 2", 5000), charge(con, "plain", form, "COST 2", 5000));
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
    }
}

#[test]
fn a_settlement_at_once_leaves_a_key_that_was_charged_the_actual_cost() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        for actual in [1, 4, 6, 8, 10, 17] {
            text(con, "FLUSHALL");
            charge(con, "held", form, "COST 6 HOLD a 5m", 1000);
            charge(con, "plain", form, &format!("COST {actual} FORCE"), 1000);
            let settled = settle(con, "held", form, actual, 1000);
            assert_eq!(settled, and(look(con, "plain", form, 1000), 1), "{form} {actual}");
            assert_eq!(dump(con, "held"), dump(con, "plain"), "{form} {actual}");
        }
    }
}

#[test]
fn less_than_held_goes_back_to_where_it_was_charged() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        for actual in [0, 1, 4, 5] {
            text(con, "FLUSHALL");
            // Charges before and after it stay.
            for (key, options) in [("held", "COST 6 HOLD a 5m"), ("plain", &format!("COST {actual}"))] {
                charge(con, key, form, "COST 1", 0);
                charge(con, key, form, options, 2000);
                charge(con, key, form, "COST 2", 4000);
            }
            let settled = settle(con, "held", form, actual, 5000);
            assert_eq!(settled, and(look(con, "plain", form, 5000), 1), "{form} {actual}");
            // Until all of it has left.
            for millis in [5000, 59_999, 60_000, 61_999, 62_000, 63_999, 64_000, 90_000, 119_999, 3_599_999] {
                let looks = ["held", "plain"].map(|key| look(con, key, form, millis));
                assert_eq!(looks[0], looks[1], "{form} {actual} at {millis}");
            }
        }
    }
}

#[test]
fn to_buckets_and_gcra_it_goes_back_as_by_a_refund() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS.into_iter().filter(|form| gives_back_as_refund(form)) {
        for (actual, millis) in [(1, 1000), (5, 1000), (1, 20_000), (0, 20_000), (0, 100_000)] {
            text(con, "FLUSHALL");
            charge(con, "held", form, "COST 6 HOLD a 5m", 1000);
            charge(con, "plain", form, "COST 6", 1000);
            let refunded = refund(con, "plain", form, 6 - actual, millis);
            assert_eq!(
                settle(con, "held", form, actual, millis),
                and(refunded, 1),
                "{form} {actual} {millis}"
            );
            assert_eq!(dump(con, "held"), dump(con, "plain"), "{form} {actual} {millis}");
        }
    }
}

#[test]
fn more_than_held_is_charged_when_it_is_settled() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        charge(con, "held", form, "COST 6 HOLD a 5m", 1000);
        charge(con, "plain", form, "COST 6", 1000);
        let settled = settle(con, "held", form, 14, 5000);
        charge(con, "plain", form, "COST 8 FORCE", 5000);
        assert_eq!(settled, and(look(con, "plain", form, 5000), 1), "{form}");
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
    }
    // A window that the estimate opened, and entries and sub-buckets of their own.
    for (form, reply, later, at_its_end) in [
        ("FIXEDWINDOW 10 1m", [0, 10, 2, 0, 55_000, 1], 60_000, [0, 10, 10, 0, 0]),
        ("SLIDINGLOG 10 1m", [0, 10, 2, 0, 60_000, 1], 60_000, [0, 10, 8, 0, 5000]),
        ("SLIDINGWINDOW 10 1m PRECISION 5s", [0, 10, 2, 0, 60_000, 1], 60_000, [0, 10, 8, 0, 5000]),
    ] {
        text(con, "DEL key");
        charge(con, "key", form, "COST 6 HOLD a 5m", 0);
        assert_eq!(settle(con, "key", form, 8, 5000), reply, "{form}");
        assert_eq!(look(con, "key", form, later), at_its_end, "{form}");
    }
}

#[test]
fn a_cost_that_left_in_the_meantime_gives_nothing_back() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (form, at, before, settled) in [
        // The window that the estimate was charged to ended a second ago, and another one has begun.
        ("FIXEDWINDOW 10 1m", 61_000, [0, 10, 7, 0, 60_000], [0, 10, 7, 0, 60_000, 1]),
        ("FIXEDWINDOW 10 1m ALIGNED", 61_000, [0, 10, 7, 0, 59_000], [0, 10, 7, 0, 59_000, 1]),
        ("CALENDAR 10 HOUR", 3_601_000, [0, 10, 7, 0, 3_599_000], [0, 10, 7, 0, 3_599_000, 1]),
        // Half of the six weighs on this window: 3 and 3. Of two, one would.
        ("SLIDINGWINDOW 10 1m", 90_000, [0, 10, 4, 0, 90_000], [0, 10, 6, 0, 90_000, 1]),
        ("SLIDINGWINDOW 10 1m", 120_000, [0, 10, 7, 0, 120_000], [0, 10, 7, 0, 120_000, 1]),
        // The entry and the sub-bucket count for a minute.
        ("SLIDINGLOG 10 1m", 59_999, [0, 10, 1, 0, 60_000], [0, 10, 5, 0, 60_000, 1]),
        ("SLIDINGLOG 10 1m", 60_000, [0, 10, 7, 0, 60_000], [0, 10, 7, 0, 60_000, 1]),
        ("SLIDINGWINDOW 10 1m PRECISION 1s", 59_000, [0, 10, 1, 0, 60_000], [0, 10, 5, 0, 60_000, 1]),
        ("SLIDINGWINDOW 10 1m PRECISION 1s", 60_000, [0, 10, 7, 0, 60_000], [0, 10, 7, 0, 60_000, 1]),
        // To buckets it comes back, but never above full.
        ("TOKENBUCKET 10 1 10s", 30_000, [0, 10, 4, 0, 60_000], [0, 10, 8, 0, 20_000, 1]),
        ("TOKENBUCKET 10 1 10s", 60_000, [0, 10, 7, 0, 30_000], [0, 10, 10, 0, 0, 1]),
        ("TOKENBUCKET 10 5 10s BATCH", 12_000, [0, 10, 6, 0, 8000], [0, 10, 10, 0, 0, 1]),
        ("LEAKYBUCKET 10 1 10s", 30_000, [0, 10, 4, 30_000, 60_000], [0, 10, 8, 0, 20_000, 1]),
        ("GCRA 9 1 10s", 30_000, [0, 10, 4, 0, 60_000], [0, 10, 8, 0, 20_000, 1]),
    ] {
        text(con, "DEL key");
        charge(con, "key", form, "COST 6 HOLD a 2h", 0);
        assert_eq!(charge(con, "key", form, "COST 3", at), before, "{form} at {at}");
        assert_eq!(settle(con, "key", form, 2, at), settled, "{form} at {at}");
    }
    // Nor does it if the key holds the limit no more, or the window was opened anew after a refund.
    let p = "FIXEDWINDOW 10 1m";
    text(con, "DEL key");
    charge(con, "key", p, "COST 6 HOLD a 2h", 0);
    charge(con, "plain", p, "COST 6", 0);
    assert_eq!(settle(con, "key", p, 2, 60_000), [0, 10, 10, 0, 0, 1]);
    assert_eq!(dump(con, "key"), dump(con, "plain"));
    text(con, "DEL key");
    charge(con, "key", p, "COST 6 HOLD a 2h", 0);
    refund(con, "key", p, 6, 1000);
    charge(con, "key", p, "COST 3", 2000);
    assert_eq!(settle(con, "key", p, 0, 3000), [0, 10, 7, 0, 59_000, 1]);
    // The excess is charged all the same.
    charge(con, "key", p, "COST 2 HOLD a 2h", 3000);
    assert_eq!(settle(con, "key", p, 9, 100_000), [0, 10, 3, 0, 60_000, 1]);
}

#[test]
fn a_repeated_call_charges_once_and_replies_as_a_look() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "DEL key");
        charge(con, "key", form, "COST 6 HOLD a 5m", 1000);
        let before = written(con, "key");
        let shown = look(con, "key", form, 3000);
        // Whatever else the call says: the id decides.
        for options in ["COST 6", "COST 3", "", "COST 99", "COST 6 FORCE", "COST 99 FORCE"] {
            let repeated = charge(con, "key", form, &format!("{options} HOLD a 5m"), 3000);
            assert_eq!(repeated, shown, "{form} {options}");
        }
        for (options, sixth) in [("COST 6 PARTIAL", 6), ("COST 2 PARTIAL", 6)] {
            let repeated = charge(con, "key", form, &format!("{options} HOLD a 1h"), 3000);
            assert_eq!(repeated, and(shown.clone(), sixth), "{form} {options}");
        }
        assert_eq!(written(con, "key"), before, "{form}");
        // Another id is another charge.
        assert_eq!(charge(con, "key", form, "COST 1 HOLD A 5m", 3000)[0], 0, "{form}");
        assert_eq!(holds(con, "key").as_deref(), Some("2"), "{form}");
    }
    let admitted = |con: &mut Connection| info(con, "ratelimit", "ratelimit_gcra_admitted").unwrap();
    let before = admitted(con);
    text(con, "DEL key");
    charge(con, "key", "GCRA 9 10 1m", "HOLD a 5m", 0);
    charge(con, "key", "GCRA 9 10 1m", "HOLD a 5m", 0);
    let counted = admitted(con).parse::<u32>().unwrap() - before.parse::<u32>().unwrap();
    assert_eq!(counted, 1, "a repeated call is no request");
}

#[test]
fn with_partial_the_granted_part_is_held() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        for key in ["held", "plain"] {
            charge(con, key, form, "COST 6", 0);
        }
        let granted = charge(con, "held", form, "COST 9 PARTIAL HOLD a 5m", 0);
        assert_eq!((granted[0], granted[2], granted[5]), (0, 0, 4), "{form}");
        let repeated = charge(con, "held", form, "PARTIAL COST 9 HOLD a 5m", 0);
        assert_eq!(repeated, and(look(con, "held", form, 0), 4), "{form}");
        charge(con, "plain", form, "COST 3", 0);
        assert_eq!(settle(con, "held", form, 3, 0), and(look(con, "plain", form, 0), 1), "{form}");
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
        // Nothing fits: it is refused, and not held.
        charge(con, "held", form, "COST 1", 0);
        let refused = charge(con, "held", form, "PARTIAL COST 9 HOLD a 5m", 0);
        assert_eq!((refused[0], refused[5]), (1, 0), "{form}");
        assert_eq!(settle(con, "held", form, 1, 0)[5], 0, "{form}");
    }
}

#[test]
fn with_force_a_debt_is_held() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        let forced = charge(con, "held", form, "FORCE COST 25 HOLD a 5m", 0);
        assert_eq!(forced[..4], [0, 10, 0, 0], "{form}");
        charge(con, "plain", form, "FORCE COST 12", 0);
        assert_eq!(settle(con, "held", form, 12, 0), and(look(con, "plain", form, 0), 1), "{form}");
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
    }
}

#[test]
fn what_is_refused_is_not_held() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "DEL key");
        assert_eq!(charge(con, "key", form, "COST 11 HOLD a 5m", 0)[..4], [1, 10, 10, -1], "{form}");
        assert_eq!(text(con, "EXISTS key"), "0", "{form}");
        charge(con, "key", form, "COST 6", 0);
        let before = written(con, "key");
        let refused = charge(con, "key", form, "COST 5 HOLD a 5m", 0);
        assert_eq!(refused, charge(con, "key", form, "COST 5", 0), "{form}");
        assert_eq!(refused[0], 1, "{form}");
        assert_eq!(settle(con, "key", form, 5, 0), and(look(con, "key", form, 0), 0), "{form}");
        assert_eq!(written(con, "key"), before, "{form}");
        // So the id is free.
        assert_eq!(charge(con, "key", form, "COST 4 HOLD a 5m", 0)[0], 0, "{form}");
        assert_eq!(settle(con, "key", form, 4, 0)[5], 1, "{form}");
    }
}

#[test]
fn a_repeated_settlement_changes_nothing() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for form in FORMS {
        for actual in [1, 6, 9] {
            text(con, "DEL key");
            charge(con, "key", form, "COST 6 HOLD a 5m", 1000);
            assert_eq!(settle(con, "key", form, actual, 2000)[5], 1, "{form}");
            let before = written(con, "key");
            for repeated in [actual, 0, 7, 50] {
                let shown = look(con, "key", form, 3000);
                assert_eq!(settle(con, "key", form, repeated, 3000), and(shown, 0), "{form}");
            }
            assert_eq!(written(con, "key"), before, "{form}");
        }
        // Nor does that of a hold that never was, on a key or on none.
        let before = written(con, "key");
        let never = format!("RL.SETTLE key never {form} COST 1 AT {}", after(3000));
        assert_eq!(ints(con, &never), and(look(con, "key", form, 3000), 0), "{form}");
        assert_eq!(settle(con, "missing", form, 1, 0), [0, 10, 10, 0, 0, 0], "{form}");
        assert_eq!(text(con, "EXISTS missing"), "0", "{form}");
        assert_eq!(written(con, "key"), before, "{form}");
    }
}

#[test]
fn after_its_time_a_hold_is_forgotten_and_the_charge_stands() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        for key in ["held", "other"] {
            charge(con, key, form, "COST 3 HOLD a 10s", 1000);
        }
        charge(con, "plain", form, "COST 3", 1000);
        // It is held until ten seconds have passed, and not any longer.
        let last = format!("RL.SETTLE other a {form} COST 3 AT {}", after(11_000) - 1);
        assert_eq!(ints(con, &last)[5], 1, "{form}");
        let before = written(con, "held");
        assert_eq!(settle(con, "held", form, 1, 11_000), and(look(con, "plain", form, 11_000), 0), "{form}");
        assert_eq!(written(con, "held"), before, "{form}");
        // A charge drops it, so the key is as one that never held any.
        for key in ["held", "plain"] {
            charge(con, key, form, "COST 2", 12_000);
        }
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
        // Its id can be held again. The new hold has nothing of the old one.
        text(con, "DEL held plain");
        charge(con, "held", form, "COST 3 HOLD a 10s", 1000);
        charge(con, "held", form, "COST 4 HOLD a 10s", 11_000);
        charge(con, "plain", form, "COST 3", 1000);
        charge(con, "plain", form, "COST 2", 11_000);
        assert_eq!(settle(con, "held", form, 2, 11_000), and(look(con, "plain", form, 11_000), 1), "{form}");
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
    }
}

#[test]
fn holds_that_ended_leave_with_the_next_charge_of_any_limit() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "GCRA 99 1 1m";
    for id in 0..30 {
        charge(con, "held", p, &format!("HOLD {id} {}s", 10 + id), 0);
        charge(con, "plain", p, "", 0);
    }
    assert_eq!(holds(con, "held").as_deref(), Some("30"));
    // Looks, probes and refusals leave them.
    let before = dump(con, "held");
    look(con, "held", p, 100_000);
    ints(con, &format!("RL.PEEK held {p} AT {}", after(100_000)));
    assert_eq!(charge(con, "held", p, "COST 99", 100_000)[0], 1);
    assert_eq!(dump(con, "held"), before);
    charge(con, "held", p, "", 24_000);
    charge(con, "plain", p, "", 24_000);
    assert_eq!(holds(con, "held").as_deref(), Some("15"), "those of 25 s and more");
    for key in ["held", "plain"] {
        multi(con, &format!("RL.MULTI 1 {key} AT {} LIMIT FIXEDWINDOW 9 1h", after(100_000)));
    }
    assert_eq!((holds(con, "held"), dump(con, "held")), (None, dump(con, "plain")));
}

#[test]
fn a_settlement_leaves_no_holds_that_ended() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        charge(con, "held", form, "COST 2 HOLD b 10s", 0);
        charge(con, "held", form, "COST 3 HOLD a 5m", 0);
        charge(con, "plain", form, "COST 5", 0);
        assert_eq!(settle(con, "held", form, 3, 10_000)[5], 1, "{form}");
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
    }
}

#[test]
fn a_limit_that_left_its_key_is_settled_as_a_fresh_one() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        // Two hours later each of them is fully reset, and a charge of another limit drops it.
        for (actual, remaining) in [(0, 10), (5, 10), (6, 10), (9, 7), (20, 0)] {
            text(con, "DEL key");
            charge(con, "key", form, "COST 6 HOLD a 1d", 0);
            multi(con, &format!("RL.MULTI 1 key AT {} LIMIT UNIFORM 1h", after(7_200_000)));
            assert!(!text(con, "RL.INFO key").contains(form.split(' ').next().unwrap()), "{form}");
            let settled = settle(con, "key", form, actual, 7_200_000);
            assert_eq!((settled[2], settled[5]), (remaining, 1), "{form} {actual}");
            assert_eq!(holds(con, "key"), None, "{form} {actual}");
            let dropped = remaining == 10;
            assert_eq!(text(con, "RL.INFO key").starts_with("[limiter, UNIFORM"), dropped, "{form} {actual}");
        }
    }
}

#[test]
fn a_hold_may_last_a_century_and_begin_with_the_last_instant_of_9999() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        for at in [1_000_000_000_000_000, LATEST] {
            text(con, "DEL key");
            let (limiter, parameters) = form.split_once(' ').unwrap();
            let hold = format!("RL.{limiter} key {parameters} COST 6 HOLD a 36500d AT {at}");
            let charged = ints(con, &hold);
            assert_eq!(charged[..4], [0, 10, 4, 0], "{form}");
            assert_eq!(text(con, "DEBUG RELOAD"), "OK");
            assert_eq!(ints(con, &hold), charged, "{form}");
            let settled = ints(con, &format!("RL.SETTLE key a {form} COST 2 AT {at}"));
            assert_eq!((settled[2], settled[5]), (8, 1), "{form}");
        }
    }
}

#[test]
fn a_key_is_not_deleted_while_it_has_holds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        charge(con, "key", form, "COST 3 HOLD a 5m", 0);
        assert_eq!(refund(con, "key", form, 9, 0), [0, 10, 10, 0, 0], "{form}");
        assert_eq!(holds(con, "key").as_deref(), Some("1"), "{form}");
        // Nothing is left to give back.
        assert_eq!(settle(con, "key", form, 1, 0), [0, 10, 10, 0, 0, 1], "{form}");
        assert_eq!(holds(con, "key"), None, "{form}");
        text(con, "DEL key");
        // All that it held given back.
        charge(con, "key", form, "COST 3 HOLD a 5m", 0);
        charge(con, "key", form, "COST 4 HOLD b 5m", 0);
        assert_eq!(settle(con, "key", form, 0, 0)[2..], [6, 0, look(con, "key", form, 0)[4], 1], "{form}");
        assert_eq!(text(con, "EXISTS key"), "1", "{form}");
        let last = ints(con, &format!("RL.SETTLE key b {form} COST 0 AT {T0}"));
        assert_eq!(last, [0, 10, 10, 0, 0, 1], "{form}");
        assert_eq!(text(con, "EXISTS key"), "0", "{form}");
        // And as ever where the hold has ended.
        charge(con, "key", form, "COST 3 HOLD a 1s", 0);
        assert_eq!(refund(con, "key", form, 9, 1000), [0, 10, 10, 0, 0], "{form}");
        assert_eq!(text(con, "EXISTS key"), "0", "{form}");
    }
}

#[test]
fn the_expiry_covers_the_holds_and_reset_does_not_speak_of_them() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // The year 2100: by the server's clock nothing expires. The slack is half as long as what it is added to.
    let at = |seconds: u64| (4_102_444_800 + seconds) * SECOND;
    let expires =
        |con: &mut Connection| text(con, "PEXPIRETIME key").parse::<u64>().unwrap() / 1000 - 4_102_444_800;
    let call = |options: &str, seconds: u64| format!("RL.GCRA key 9 10 1m {options} AT {}", at(seconds));
    assert_eq!(ints(con, &call("COST 5 HOLD a 1h", 0)), [0, 10, 5, 0, 30_000]);
    assert_eq!(expires(con), 3600 + 1800);
    // A shorter hold, and a plain charge, leave it where it is.
    assert_eq!(ints(con, &call("HOLD b 1m", 0))[4], 36_000);
    ints(con, &call("", 0));
    assert_eq!(expires(con), 5400);
    // A longer one moves it.
    ints(con, &call("HOLD c 10h", 0));
    assert_eq!(expires(con), 36_000 + 18_000);
    let settle = |id: &str| format!("RL.SETTLE key {id} GCRA 9 10 1m COST 1 AT {}", at(20));
    for id in ["a", "b"] {
        assert_eq!(ints(con, &settle(id))[5], 1);
        assert_eq!(expires(con), 54_000);
    }
    // Without holds it is that of the limit: four seconds, and ten of slack.
    assert_eq!(ints(con, &settle("c")), [0, 10, 9, 0, 4000, 1]);
    assert_eq!(expires(con), 20 + 4 + 10);
    // And by the server's clock.
    text(con, "DEL key");
    ints(con, "RL.GCRA key 9 10 1m HOLD a 10h");
    assert!(ints(con, "PTTL key")[0] > 36_000_000);
}

#[test]
fn info_counts_the_holds_of_a_key() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "TOKENBUCKET 10 10 1m";
    charge(con, "key", p, "", 0);
    assert_eq!(holds(con, "key"), None);
    for (id, count) in [("a", "1"), ("b", "2"), ("b", "2"), ("c", "3")] {
        charge(con, "key", p, &format!("HOLD {id} 5m"), 0);
        assert_eq!(holds(con, "key").as_deref(), Some(count), "{id}");
    }
    let expires = text(con, "PEXPIRETIME key");
    let told = format!(
        "[limiter, MULTI, mode, several, stored_limits, 1, holds, 3, last_charge_us, {T0}, limits, [[limiter, TOKENBUCKET, \
         mode, continuous, length_ms, 60000, tokens, 6, last_charge_us, {T0}]], expires_at_ms, {expires}, waiting, 0]"
    );
    assert_eq!(text(con, "RL.INFO key"), told);
    settle(con, "key", p, 1, 0);
    assert_eq!(holds(con, "key").as_deref(), Some("2"));
}

#[test]
fn a_limit_whose_length_of_time_changed_is_settled_under_either() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        let other = match form {
            "GCRA 9 10 1m" => "GCRA 9 10 90s",
            "CALENDAR 10 HOUR" => "CALENDAR 10 DAY",
            _ => &form.replacen("1m", "90s", 1),
        };
        for (renamed, settled_as) in [(false, other), (true, other), (true, form)] {
            for actual in [1, 3, 5, 7] {
                text(con, "FLUSHALL");
                let less = if gives_back_as_refund(form) { 5 } else { actual.min(5) };
                for (key, options) in [("held", "COST 5 HOLD a 5m"), ("plain", &format!("COST {less}"))] {
                    charge(con, key, form, "", 0);
                    charge(con, key, form, options, 1000);
                    if renamed {
                        // Its own command gives a limit the new length.
                        charge(con, key, other, "", 2000);
                    }
                }
                assert_eq!(settle(con, "held", settled_as, actual, 3000)[5], 1, "{form} as {settled_as}");
                if actual < less {
                    refund(con, "plain", settled_as, less - actual, 3000);
                } else if actual > less {
                    charge(con, "plain", settled_as, &format!("FORCE COST {}", actual - less), 3000);
                }
                for millis in [3000, 20_000, 59_999, 60_000, 90_000, 92_000] {
                    let looks = ["held", "plain"].map(|key| look(con, key, settled_as, millis));
                    assert_eq!(looks[0], looks[1], "{form} to {actual} as {settled_as} at {millis}");
                }
            }
        }
    }
}

#[test]
fn less_goes_back_to_where_another_length_or_zone_moved_the_counts() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (form, other, held, last, settled) in [
        // In the new windows the estimate lies before the last charge, to which all counts move.
        ("FIXEDWINDOW 10 1m ALIGNED", "FIXEDWINDOW 10 40s ALIGNED", 30_000, 45_000, 50_000),
        ("SLIDINGWINDOW 10 1m", "SLIDINGWINDOW 10 20s", 30_000, 45_000, 50_000),
        ("SLIDINGWINDOW 10 1m PRECISION 10s", "SLIDINGWINDOW 10 20s PRECISION 5s", 30_000, 45_000, 50_000),
        // Hours that begin at a quarter past.
        ("CALENDAR 10 HOUR", "CALENDAR 10 HOUR TZ +05:45", 600_000, 1_200_000, 1_500_000),
    ] {
        for renamed in [false, true] {
            text(con, "DEL key");
            charge(con, "key", form, "COST 5 HOLD a 1h", held);
            charge(con, "key", form, "", last);
            if renamed {
                charge(con, "key", other, "", last);
            }
            let left = if renamed { 6 } else { 7 };
            assert_eq!(settle(con, "key", other, 2, settled)[2..4], [left, 0], "{form} as {other}");
            assert_eq!(look(con, "key", other, settled)[2], left, "{form} as {other}");
        }
    }
}

#[test]
fn a_settlement_finds_its_limit_by_the_whole_name_else_by_limiter_and_mode() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 10 1m COST 3 LIMIT FIXEDWINDOW 100 1h COST 5 LIMIT GCRA 9 10 1m COST 2";
    multi(con, &format!("RL.MULTI 1 key HOLD a 5m AT {T0} {limits}"));
    let before = dump(con, "key");
    // Of two windows, neither has this length. And other limiters and modes hold nothing.
    for form in ["FIXEDWINDOW 10 2m", "TOKENBUCKET 10 10 1m", "FIXEDWINDOW 10 1m ALIGNED", "SLIDINGLOG 10 1m"]
    {
        let told = ints(con, &format!("RL.SETTLE key a {form} COST 1 AT {T0}"));
        assert_eq!((&told[..3], told[5]), (&[0, 10, 10][..], 0), "{form}");
    }
    assert_eq!(dump(con, "key"), before);
    assert_eq!(settle(con, "key", "FIXEDWINDOW 100 1h", 1, 0), [0, 100, 99, 0, 3_600_000, 1]);
    // It ended the hold. The other limits keep their charges.
    assert_eq!(settle(con, "key", "FIXEDWINDOW 10 1m", 1, 0), [0, 10, 7, 0, 60_000, 0]);
    assert_eq!(settle(con, "key", "GCRA 9 10 1m", 1, 0), [0, 10, 8, 0, 12_000, 0]);
    // The only one of its kind is found under another length.
    charge(con, "key", "GCRA 9 10 1m", "COST 2 HOLD a 5m", 0);
    assert_eq!(settle(con, "key", "GCRA 9 10 2m", 1, 0)[5], 1);
}

#[test]
fn a_hold_for_other_limits_only_is_not_settled() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    charge(con, "key", "GCRA 9 10 1m", "COST 4 HOLD a 5m", 0);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 10 1m COST 3"));
    let before = written(con, "key");
    assert_eq!(settle(con, "key", "FIXEDWINDOW 10 1m", 0, 0), [0, 10, 7, 0, 60_000, 0]);
    // The repeated id charges nothing, also where it was held for another limit.
    let repeated = charge(con, "key", "FIXEDWINDOW 10 1m", "COST 2 PARTIAL HOLD a 5m", 0);
    assert_eq!(repeated, [0, 10, 7, 0, 60_000, 0]);
    assert_eq!(written(con, "key"), before);
    assert_eq!(settle(con, "key", "GCRA 9 10 1m", 1, 0), [0, 10, 9, 0, 6000, 1]);
    // Nor is it for a limit of another length, if the key has that one, too.
    text(con, "DEL key");
    charge(con, "key", "FIXEDWINDOW 10 1m", "COST 5 HOLD a 5m", 0);
    multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT FIXEDWINDOW 100 1h COST 7"));
    let before = written(con, "key");
    let hour = "FIXEDWINDOW 100 1h";
    assert_eq!(settle(con, "key", hour, 1, 0), [0, 100, 93, 0, 3_600_000, 0]);
    let repeated = charge(con, "key", hour, "COST 2 PARTIAL HOLD a 5m", 0);
    assert_eq!(repeated, [0, 100, 93, 0, 3_600_000, 0]);
    let several = format!("RL.MULTISETTLE 1 key a COST 1 AT {T0} LIMIT {hour}");
    assert!(text(con, &several).ends_with(", 0]"));
    assert_eq!(written(con, "key"), before);
    assert_eq!(settle(con, "key", "FIXEDWINDOW 10 1m", 1, 0), [0, 10, 9, 0, 60_000, 1]);
}

#[test]
fn a_caller_that_lags_holds_and_settles_at_the_last_charge() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        text(con, "FLUSHALL");
        for key in ["held", "plain"] {
            charge(con, key, form, "", 5000);
        }
        // Two seconds behind the last charge. The hold counts from there, too.
        assert_eq!(
            charge(con, "held", form, "COST 4 HOLD a 10s", 3000),
            charge(con, "plain", form, "COST 4", 3000),
            "{form}"
        );
        for key in ["sooner", "later"] {
            text(con, &format!("COPY held {key}"));
        }
        let at = after(15_000);
        assert_eq!(ints(con, &format!("RL.SETTLE sooner a {form} COST 1 AT {}", at - 1))[5], 1, "{form}");
        assert_eq!(ints(con, &format!("RL.SETTLE later a {form} COST 1 AT {at}"))[5], 0, "{form}");
        // The reply is that of the caller's next look.
        let settled = settle(con, "held", form, 3, 4000);
        assert_eq!(settled, and(look(con, "held", form, 4000), 1), "{form}");
        refund(con, "plain", form, 1, 4000);
        assert_eq!(dump(con, "held"), dump(con, "plain"), "{form}");
    }
}

#[test]
fn a_clock_that_was_set_back_moves_holds_and_their_charges() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for form in FORMS {
        // By two days, which is more than any reset and the hold's time.
        let back = 172_800_000;
        for actual in [0, 2, 6, 8] {
            text(con, "FLUSHALL");
            for (key, options) in [("held", "COST 6 HOLD a 5m".into()), ("plain", format!("COST {actual}"))] {
                let start = back + 3_600_000;
                charge(con, key, form, "", start);
                charge(con, key, form, &options, start + 1000);
                charge(con, key, form, "", start + 2000);
            }
            // Some other call is the first after the step, or the settlement itself.
            if actual % 4 == 0 {
                for key in ["held", "plain"] {
                    charge(con, key, form, "FORCE", 10_000);
                }
            }
            let settled = settle(con, "held", form, actual, 11_000);
            assert_eq!(settled[5], 1, "{form} {actual}");
            if actual > 6 {
                continue;
            }
            // The first call of the other key moves it.
            charge(con, "plain", form, "FORCE", 11_000);
            charge(con, "held", form, "FORCE", 11_000);
            for millis in [11_000, 12_000, 59_999, 68_999, 69_000, 71_000, 130_000, 3_600_000] {
                let looks = ["held", "plain"].map(|key| look(con, key, form, millis));
                assert_eq!(looks[0], looks[1], "{form} {actual} at {millis}");
            }
        }
        // The hold lasts as long after the step as it would have lasted before it.
        for (millis, held) in [(309_999, 1), (310_000, 0)] {
            text(con, "DEL key");
            charge(con, "key", form, "COST 6 HOLD a 5m", back);
            charge(con, "key", form, "FORCE", 10_000);
            assert_eq!(settle(con, "key", form, 1, millis)[5], held, "{form} at {millis}");
        }
    }
}

/// A limit whose reset is longer than the lag is not moved, so neither are its holds.
#[test]
fn a_caller_that_lags_by_less_than_the_reset_ends_no_holds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "TOKENBUCKET 1000 1 1s";
    for options in ["", "HOLD b 10s"] {
        text(con, "DEL key");
        charge(con, "key", p, "COST 900 HOLD a 10s", 200_000);
        // Its clock is 100 s behind: more than the hold's time, and less than the reset of 900 s.
        assert_eq!(charge(con, "key", p, options, 100_000), [0, 1000, 99, 0, 1_001_000], "{options}");
        assert_eq!(settle(con, "key", p, 800, 201_000)[5], 1, "after {options:?}");
    }
}

#[test]
fn a_log_that_merges_its_oldest_entries_moves_what_is_held() {
    let server = Server::start(&["--ratelimit.max-log-entries", "3"]);
    let con = &mut server.connection();
    let p = "SLIDINGLOG 3 1m";
    charge(con, "key", p, "HOLD a 5m COST 2", 0);
    charge(con, "key", p, "FORCE", 1000);
    charge(con, "key", p, "FORCE", 2000);
    // The oldest of four entries goes: its weight of 2 moves to the newest one.
    charge(con, "key", p, "FORCE", 3000);
    assert!(text(con, "RL.INFO key").contains("stored_entries, 3, stored_cost, 5"));
    // The settled 2 are gone. One request leaves at 61 s, one at 62 s and the newest at 63 s.
    assert_eq!(settle(con, "key", p, 0, 4000), [0, 3, 0, 0, 59_000, 1]);
    assert!(text(con, "RL.INFO key").contains("stored_entries, 3, stored_cost, 3"));
    let remaining = [60_000, 61_000, 62_000, 63_000].map(|millis| look(con, "key", p, millis)[2]);
    assert_eq!(remaining, [0, 1, 2, 3]);
}

#[test]
fn ids_are_any_1_to_256_bytes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let at = T0.to_string();
    let (long, too_long) = ([b'x'; 256], [b'x'; 257]);
    let ids: [&[u8]; 9] = [b"\0", b"a\0b", b"a\0c", b"\n", b"\xff\xfe", b"COST", b"HOLD", b"LIMIT", &long];
    let hold = |con: &mut Connection, id: &[u8]| {
        let start = [&b"RL.FIXEDWINDOW"[..], b"key", b"100", b"1m", b"COST", b"5", b"HOLD", id, b"5m", b"AT"];
        call_bytes(con, &[&start[..], &[at.as_bytes()]].concat())
    };
    let settle = |con: &mut Connection, id: &[u8]| {
        let start = [&b"RL.SETTLE"[..], b"key", id, b"FIXEDWINDOW", b"100", b"1m", b"COST", b"1", b"AT"];
        call_bytes(con, &[&start[..], &[at.as_bytes()]].concat())
    };
    for id in ids {
        assert!(hold(con, id).is_ok(), "{}", id.escape_ascii());
    }
    assert_eq!(holds(con, "key").as_deref(), Some("9"));
    for id in ids {
        for held in [1, 0] {
            let Value::Array(reply) = settle(con, id).unwrap() else { panic!("no array") };
            assert_eq!(reply[5], Value::Int(held), "{}", id.escape_ascii());
        }
    }
    let before = dump(con, "key");
    for id in [&b""[..], &too_long, &[0; 10_000]] {
        for reply in [hold(con, id), settle(con, id)] {
            let error = error_line(&reply.unwrap_err());
            assert_eq!(error, "ERR id must be 1 to 256 bytes");
        }
    }
    assert_eq!(dump(con, "key"), before);
}

#[test]
fn a_settlement_disturbs_who_watches_the_key_and_one_of_nothing_does_not() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let other = &mut server.connection();
    for form in FORMS {
        text(con, "DEL key");
        charge(con, "key", form, "COST 6 HOLD a 5m", 0);
        charge(con, "key", form, "COST 1 HOLD b 5m", 0);
        // A settlement at the estimate changes no count, but it ends the hold.
        let lines = [
            (own("key", form, "COST 6 HOLD a 5m", 0), false),
            (format!("RL.SETTLE key never {form} COST 1 AT {T0}"), false),
            (format!("RL.SETTLE key a {form} COST 6 AT {T0}"), true),
            (format!("RL.SETTLE key a {form} COST 6 AT {T0}"), false),
            (format!("RL.SETTLE key b {form} COST 3 AT {T0}"), true),
            (format!("RL.SETTLE key b {form} COST 0 AT {T0}"), false),
        ];
        for (line, disturbs) in lines {
            text(other, "WATCH key");
            ints(con, &line);
            text(other, "MULTI");
            text(other, "PING");
            let expected = if disturbs { "(nil)" } else { "[PONG]" };
            assert_eq!(text(other, "EXEC"), expected, "{line}");
        }
    }
}

#[test]
fn a_key_has_at_most_as_many_holds_as_the_setting_allows() {
    const TOO_MANY: &str = "ERR too many holds";
    let server = Server::start(&["--ratelimit.max-holds", "2", "--appendonly", "yes", "--appendfsync", "no"]);
    let con = &mut server.connection();
    assert_eq!(text(con, "CONFIG GET ratelimit.max-holds"), "[ratelimit.max-holds, 2]");
    for form in FORMS {
        text(con, "FLUSHALL");
        charge(con, "key", form, "HOLD a 5s", 0);
        charge(con, "key", form, "HOLD b 1m", 0);
        let before = written(con, "key");
        // Also where it would be refused, or has nothing that would fit.
        for options in ["", "COST 9", "COST 11", "FORCE", "COST 99 PARTIAL"] {
            let line = own("key", form, &format!("{options} HOLD c 1m"), 0);
            assert_eq!(error(con, &line), TOO_MANY, "{line}");
        }
        let line = format!("RL.MULTI 2 other key HOLD c 1m AT {T0} LIMIT {form} COST 11");
        assert_eq!(error(con, &line), TOO_MANY, "{line}");
        assert_eq!(written(con, "key"), before, "{form}");
        assert_eq!(text(con, "EXISTS other"), "0", "{form}");
        // Not for an id that is held, nor without a hold, nor on another key.
        assert_eq!(charge(con, "key", form, "HOLD a 1m", 0), look(con, "key", form, 0), "{form}");
        assert_eq!(charge(con, "key", form, "", 0)[0], 0, "{form}");
        assert_eq!(charge(con, "other", form, "HOLD c 1m", 0)[0], 0, "{form}");
        // Holds that ended do not count, nor do settled ones.
        assert_eq!(error(con, &own("key", form, "HOLD c 1m", 4999)), TOO_MANY);
        assert_eq!(charge(con, "key", form, "HOLD c 1m", 5000)[0], 0, "{form}");
        assert_eq!(error(con, &own("key", form, "HOLD d 1m", 5000)), TOO_MANY);
        assert_eq!(ints(con, &format!("RL.SETTLE key b {form} COST 1 AT {}", after(5000)))[5], 1);
        assert_eq!(charge(con, "key", form, "HOLD d 1m", 5000)[0], 0, "{form}");
    }
    text(con, "CONFIG SET ratelimit.max-holds 3");
    assert_eq!(charge(con, "key", FORMS[9], "HOLD e 1m", 5000)[0], 0);
    // Those above a lower bound stay.
    text(con, "CONFIG SET ratelimit.max-holds 1");
    assert_eq!(error(con, &own("key", FORMS[9], "HOLD f 1m", 5000)), TOO_MANY);
    for id in ["c", "d", "e"] {
        assert_eq!(ints(con, &format!("RL.SETTLE key {id} {} COST 1 AT {}", FORMS[9], after(5000)))[5], 1);
    }
    for bound in ["0", "1000001", "-1"] {
        assert!(error(con, &format!("CONFIG SET ratelimit.max-holds {bound}")).starts_with("ERR"), "{bound}");
    }
}

#[test]
fn a_key_of_another_type_is_refused() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for other in ["SET key value", "RPUSH key a", "RL.SHED key 0.5"] {
        text(con, "DEL key");
        text(con, other);
        let before = dump(con, "key");
        for form in FORMS {
            for line in [
                own("key", form, "HOLD a 5m", 0),
                format!("RL.SETTLE key a {form} COST 1 AT {T0}"),
                format!("RL.SETTLE key a {form} COST 0 AT {T0}"),
            ] {
                assert_eq!(kind_of_error(error(con, &line)), WRONG_TYPE, "{line} after {other}");
            }
        }
        assert_eq!(dump(con, "key"), before);
    }
}
