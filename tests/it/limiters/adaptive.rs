//! `RL.CONCURRENT … ADAPT`: the limit finds itself from what releases report.

use redis::Connection;

use crate::support::client::Client;
use crate::support::{Server, T0, call, dump, error, info, ints, rewrite_aof, simple, sync, text, wait_for};
use ratelimit_testing::dice::Dice;

/// Microseconds.
const MILLI: u64 = 1000;
const SECOND: u64 = 1_000_000;

fn take(con: &mut Connection, options: &str, id: u64, at: u64) -> Vec<i64> {
    ints(con, &format!("RL.CONCURRENT k {options} AT {at}").replace("ID", &id.to_string()))
}

fn release(con: &mut Connection, id: u64, outcome: &str, at: u64) -> Vec<i64> {
    ints(con, &format!("RL.RELEASE k {id} {outcome} AT {at}"))
}

/// The limit that a call would find.
fn limit(con: &mut Connection, options: &str, at: u64) -> i64 {
    let options = options.replace("ID", "nobody");
    ints(con, &format!("RL.PEEK k CONCURRENT {options} AT {at}"))[1]
}

/// Fields of the key.
fn fields(con: &mut Connection, names: &[&str]) -> Vec<String> {
    let all = text(con, "RL.INFO k");
    let all: Vec<&str> = all.trim_matches(['[', ']']).split(", ").collect();
    let value = |name: &&str| {
        let place = all.iter().position(|word| word.trim_start_matches('[') == *name);
        all[place.unwrap_or_else(|| panic!("no {name} in {all:?}")) + 1].trim_end_matches(']').to_string()
    };
    names.iter().map(value).collect()
}

#[test]
fn a_limit_of_20_that_is_half_used_is_21_after_20_leases_that_ended_well() {
    const OPTIONS: &str = "1000 1m ID ADAPT";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    (0..10).for_each(|id| assert_eq!(take(con, OPTIONS, id, T0)[..3], [0, 20, 19 - id.cast_signed()]));
    for id in 10..30 {
        assert_eq!(limit(con, OPTIONS, T0), 20, "lease {id}");
        release(con, id - 10, "", T0);
        take(con, OPTIONS, id, T0);
    }
    assert_eq!(limit(con, OPTIONS, T0), 21);
    // At the ceiling it stays.
    let low = "21 1m ID ADAPT START 21";
    text(con, "DEL k");
    (0..42).for_each(|id| drop(take(con, low, id, T0)));
    (0..21).for_each(|id| assert_eq!(release(con, id, "OUTCOME OK", T0), [1]));
    assert_eq!(limit(con, low, T0), 21);
    assert_eq!(fields(con, &["limit", "floor", "ceiling"]), ["21", "1", "21"]);
}

#[test]
fn a_burst_of_failures_lowers_a_limit_of_30_once_to_27() {
    const OPTIONS: &str = "1000 1m ID ADAPT START 30";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    (0..22).for_each(|id| drop(take(con, OPTIONS, id, T0)));
    assert_eq!(release(con, 0, "OUTCOME IGNORE", T0 + SECOND), [1]);
    assert_eq!(limit(con, OPTIONS, T0), 30);
    (1..22).for_each(|id| assert_eq!(release(con, id, "outcome drop", T0 + SECOND), [1]));
    assert_eq!(limit(con, OPTIONS, T0), 27);
    let lowered = (T0 + SECOND).to_string();
    assert_eq!(fields(con, &["limit", "credit", "last_decrease_us"]), ["27", "0", lowered.as_str()]);
    // One that was taken at that very moment is of the burst; a later one is not.
    take(con, OPTIONS, 30, T0 + SECOND);
    take(con, OPTIONS, 31, T0 + SECOND + 1);
    release(con, 30, "OUTCOME DROP", T0 + 2 * SECOND);
    assert_eq!(limit(con, OPTIONS, T0 + 2 * SECOND), 27);
    release(con, 31, "OUTCOME DROP", T0 + 2 * SECOND);
    assert_eq!(limit(con, OPTIONS, T0 + 2 * SECOND), 24);
    // A worker that died is no overload.
    take(con, OPTIONS, 32, T0 + 3 * SECOND);
    assert_eq!(limit(con, OPTIONS, T0 + 100 * SECOND), 24);
    assert_eq!(release(con, 32, "OUTCOME DROP", T0 + 100 * SECOND), [0]);
    assert_eq!(limit(con, OPTIONS, T0 + 100 * SECOND), 24);
}

#[test]
fn a_slow_request_has_failed_and_renewing_its_lease_does_not_make_it_younger() {
    const OPTIONS: &str = "1000 1m ID ADAPT START 40 SLOW 1500ms BACKOFF 50";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    take(con, OPTIONS, 1, T0);
    take(con, OPTIONS, 2, T0);
    take(con, OPTIONS, 2, T0 + SECOND);
    ints(con, &format!("RL.RENEW k 1m 2 AT {}", T0 + SECOND));
    release(con, 1, "", T0 + 1500 * MILLI);
    assert_eq!(limit(con, OPTIONS, T0 + 1500 * MILLI), 40);
    release(con, 2, "", T0 + 1500 * MILLI + 1);
    assert_eq!(limit(con, OPTIONS, T0 + 2 * SECOND), 20);
}

#[test]
fn five_windows_of_equal_durations_raise_a_limit_of_20_to_24() {
    const OPTIONS: &str = "1000 1m ID ADAPT GRADIENT";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    (0..20).for_each(|id| drop(take(con, OPTIONS, id, T0)));
    let (mut at, mut next, mut limits) = (T0, 100, Vec::new());
    for _ in 0..5 {
        for _ in 0..11 {
            at += 100 * MILLI;
            // It makes room for itself, since 19 others are held.
            release(con, next - 100, "OUTCOME IGNORE", at - 10 * MILLI);
            take(con, OPTIONS, next, at - 10 * MILLI);
            release(con, next, "", at);
            take(con, OPTIONS, next - 100, at);
            next = if next == 110 { 100 } else { next + 1 };
        }
        limits.push(limit(con, OPTIONS, at));
    }
    assert_eq!(limits, [20, 21, 22, 23, 24]);
    assert_eq!(fields(con, &["long_us", "short_us"]), ["10000", "10000"]);
}

#[test]
fn a_cost_above_the_limit_is_admitted_alone_and_only_one_above_the_ceiling_never() {
    const OPTIONS: &str = "100 1m ID RESERVED 10 ADAPT START 20";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(limit(con, OPTIONS, T0), 10);
    assert_eq!(take(con, &format!("{OPTIONS} COST 91"), 1, T0)[..4], [1, 10, 10, -1]);
    assert_eq!(take(con, &format!("{OPTIONS} COST 90"), 1, T0)[..3], [0, 10, 0]);
    assert_eq!(take(con, &format!("{OPTIONS} COST 11"), 2, T0), [1, 10, 0, 60_000, 60_000]);
    release(con, 1, "OUTCOME IGNORE", T0);
    take(con, OPTIONS, 3, T0 + SECOND);
    // Everything must end before a cost above the limit is admitted.
    take(con, "100 2m ID RESERVED 10 ADAPT START 20", 4, T0 + SECOND);
    assert_eq!(take(con, &format!("{OPTIONS} COST 12"), 2, T0 + SECOND)[3], 120_000);
    assert_eq!(take(con, &format!("{OPTIONS} CRITICAL COST 12"), 2, T0 + SECOND)[..3], [0, 20, 6]);
}

#[test]
fn an_admitted_call_stores_its_parameters_and_a_refused_one_nothing() {
    const OPTIONS: &str = "1000 1m ID ADAPT START 50";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    (0..10).for_each(|id| drop(take(con, OPTIONS, id, T0)));
    let before = dump(con, "k");
    // The lower ceiling counts for this call, and only for it.
    assert_eq!(take(con, "10 1m ID ADAPT", 99, T0)[..3], [1, 10, 0]);
    assert_eq!(dump(con, "k"), before);
    assert_eq!(take(con, "11 1m ID ADAPT", 99, T0)[..3], [0, 11, 0]);
    assert_eq!(limit(con, OPTIONS, T0), 11, "the limit has been clamped");
    assert_eq!(take(con, "1000 1m ID ADAPT FLOOR 30", 100, T0)[..3], [0, 30, 18]);
    assert_eq!(fields(con, &["floor", "ceiling"]), ["30", "1000"]);
    // Fewer than are held: no one is interrupted.
    assert_eq!(take(con, "5 1m ID ADAPT", 0, T0)[..3], [0, 5, 0]);
    assert_eq!(fields(con, &["stored_leases", "limit"]), ["12", "5"]);
}

#[test]
fn an_outcome_is_taken_and_ignored_where_nothing_finds_itself() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    take(con, "30 1m ID", 1, T0);
    take(con, "30 1m ID", 2, T0);
    let plain = dump(con, "k");
    assert_eq!(release(con, 1, "OUTCOME DROP", T0), [1]);
    take(con, "30 1m ID", 1, T0);
    assert_eq!(dump(con, "k"), plain);
    // A lease from before is no measure of the limit that is found now.
    take(con, "30 1m ID ADAPT START 30", 3, T0);
    assert_eq!(release(con, 1, "OUTCOME DROP", T0 + 1), [1]);
    assert_eq!(limit(con, "30 1m ID ADAPT", T0 + 1), 30);
    // A call without ADAPT has the limit that it says, and its lease tells nothing either.
    assert_eq!(take(con, "5 1m ID", 4, T0 + 1)[..3], [0, 5, 2]);
    release(con, 4, "OUTCOME DROP", T0 + 2);
    release(con, 3, "OUTCOME DROP", T0 + 2);
    assert_eq!(limit(con, "30 1m ID ADAPT", T0 + 2), 27);
}

#[test]
fn wrong_outcomes_are_errors() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (line, expected) in [
        ("RL.RELEASE k a OUTCOME BAD", "ERR OUTCOME must be OK, DROP or IGNORE; got 'BAD'"),
        ("RL.RELEASE k a OUTCOME", "ERR syntax error: OUTCOME needs a value"),
        ("RL.RELEASE k a OUTCOME OK OUTCOME OK", "ERR syntax error: OUTCOME is given twice"),
        ("RL.MULTIRELEASE 1 k a OUTCOME WELL", "ERR OUTCOME must be OK, DROP or IGNORE; got 'WELL'"),
        ("RL.RENEW k 1m a OUTCOME OK", "ERR syntax error: OUTCOME is not for RL.RENEW"),
        ("RL.CONCURRENT k 5 1m a GRADIENT", "ERR syntax error: GRADIENT needs ADAPT"),
        ("RL.GCRA k 5 1 1m ADAPT", "ERR syntax error: ADAPT is not for RL.GCRA"),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
    }
}

#[test]
fn a_table_is_kept_for_an_hour_after_its_last_lease() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ttl = |con: &mut Connection| ints(con, "PTTL k")[0];
    ints(con, "RL.CONCURRENT k 100 30s a ADAPT START 30");
    let kept = 3_600_000..3_600_000 + 1_900_000;
    assert!(kept.contains(&ttl(con)), "{}", ttl(con));
    ints(con, "RL.RELEASE k a OUTCOME DROP");
    assert!(kept.contains(&ttl(con)), "{}", ttl(con));
    assert_eq!(ints(con, "RL.PEEK k CONCURRENT 100 30s a ADAPT START 30"), [0, 27, 27, 0, 0]);
    // The key of a plain table goes with its last lease.
    ints(con, "RL.CONCURRENT plain 100 30s a");
    ints(con, "RL.RELEASE plain a OUTCOME DROP");
    assert_eq!(text(con, "EXISTS plain k"), "1");
    // Beside another limit it is kept as long.
    ints(con, "RL.RELEASE k nobody");
    text(con, "RL.MULTI 1 both LIMIT CONCURRENT 100 30s a ADAPT START 30 LIMIT FIXEDWINDOW 9 1s");
    ints(con, "RL.RELEASE both a OUTCOME DROP");
    assert_eq!(ints(con, "RL.PEEK both CONCURRENT 100 30s a ADAPT START 30")[1], 27);
    assert!(ints(con, "PTTL both")[0] >= 3_500_000);
}

#[test]
fn an_hour_after_its_last_change_a_table_begins_anew() {
    const OPTIONS: &str = "100 1m ID ADAPT START 30";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    take(con, OPTIONS, 1, T0);
    release(con, 1, "OUTCOME DROP", T0);
    assert_eq!(limit(con, OPTIONS, T0 + 3599 * SECOND), 27);
    assert_eq!(limit(con, OPTIONS, T0 + 3600 * SECOND), 30);
    assert_eq!(take(con, OPTIONS, 2, T0 + 3600 * SECOND)[..3], [0, 30, 29]);
    assert_eq!(fields(con, &["limit", "last_decrease_us"]), ["30", "0"]);
}

#[test]
fn a_clock_that_is_set_back_moves_leases_and_decreases_alike() {
    const OPTIONS: &str = "100 1m ID ADAPT START 40 BACKOFF 50 SLOW 10s";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    take(con, OPTIONS, 1, T0);
    take(con, OPTIONS, 2, T0);
    release(con, 1, "OUTCOME DROP", T0 + SECOND);
    take(con, OPTIONS, 3, T0 + 2 * SECOND);
    // A day earlier: no time has passed. The lease of before the decrease stays one, and the other one stays young.
    let back = T0 - 86_400 * SECOND;
    release(con, 2, "OUTCOME DROP", back);
    assert_eq!(limit(con, OPTIONS, back), 20);
    release(con, 3, "", back + 9 * SECOND);
    assert_eq!(limit(con, OPTIONS, back + 9 * SECOND), 20);
    assert_eq!(fields(con, &["last_decrease_us"]), [(back - SECOND).to_string()]);
}

#[test]
fn in_calls_with_several_limits_and_in_policies_a_shadow_tells_what_the_limit_would_be() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(
        con,
        "RL.POLICY SET p LIMIT CONCURRENT 50 1m LIMIT CONCURRENT 100 1m ADAPT START 30 BACKOFF 20 SHADOW",
    );
    for id in 0..4 {
        assert_eq!(ints(con, &format!("RL.ASK k p ID {id} AT {T0}"))[..3], [0, 50, 49 - id]);
    }
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 2 k other 0 OUTCOME DROP AT {}", T0 + SECOND)), [1]);
    let each = text(con, &format!("RL.ASKPEEK k p ID x FULL AT {}", T0 + SECOND));
    assert!(each.contains("[0, 24, 21, 0, "), "{each}");
    text(con, "DEL k");
    text(con, "RL.MULTI 1 k LIMIT CONCURRENT 100 1m a ADAPT START 30 LIMIT GCRA 9 10 1s");
    ints(con, "RL.RELEASE k a OUTCOME DROP");
    let reply = text(con, "RL.MULTI 1 k LIMIT CONCURRENT 100 1m a ADAPT START 30 LIMIT GCRA 9 10 1s");
    assert!(reply.contains("[0, 27, 26, 0, "), "{reply}");
    assert_eq!(
        error(con, "RL.POLICY SET q LIMIT CONCURRENT 50 1m ADAPT COST 51"),
        "ERR COST 51 is above the limit 50 (LIMIT 1)"
    );
    text(con, "RL.POLICY SET q LIMIT CONCURRENT 50 1m ADAPT COST 50");
}

#[test]
fn a_limit_that_grows_admits_the_first_in_line() {
    let server = Server::start(&["--ratelimit.max-block", "86400000", "--hz", "1"]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 100 1h a ADAPT START 2");
    ints(con, "RL.CONCURRENT k 100 1h b ADAPT");
    let mut wait = |number: usize, id: &str| {
        let mut client = Client::connect(server.port);
        client.send(&format!("RL.CONCURRENT k 100 1h {id} ADAPT BLOCK 1d"));
        wait_for("a caller that waits", || {
            info(con, "ratelimit", "ratelimit_waiting").as_deref() == Some(&number.to_string())
        });
        client
    };
    let mut callers = [wait(1, "c"), wait(2, "d"), wait(3, "e")];
    // Two good endings give room for two leases, and one more.
    ints(con, "RL.RELEASE k a");
    assert_eq!(simple(&callers[0].reply()), "[0, 2, 0, 0, 3600000]");
    ints(con, "RL.RELEASE k b");
    assert_eq!(simple(&callers[1].reply()), "[0, 3, 1, 0, 3600000]");
    assert_eq!(simple(&callers[2].reply()), "[0, 3, 0, 0, 3600000]");
}

#[test]
fn tenants_share_the_limit_that_is_found() {
    let server = Server::start(&["--ratelimit.max-block", "86400000", "--ratelimit.hunger", "86400000"]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 100 1h a ADAPT START 20 BACKOFF 50 COST 9 TENANT large");
    ints(con, "RL.CONCURRENT k 100 1h b ADAPT BACKOFF 50 COST 9 TENANT other");
    let mut client = Client::connect(server.port);
    client.send("RL.CONCURRENT k 100 1h c ADAPT BACKOFF 50 COST 5 TENANT new BLOCK 1d");
    wait_for("a caller that waits", || info(con, "ratelimit", "ratelimit_waiting").as_deref() == Some("1"));
    // The limit falls to 10, of which 9 are held. So a small request of the large tenant would pass the one that waits.
    ints(con, "RL.RELEASE k b OUTCOME DROP");
    let small = "RL.CONCURRENT k 100 1h d ADAPT BACKOFF 50 TENANT large";
    assert_eq!(ints(con, small)[..3], [1, 10, 0]);
    let tenants = text(con, "RL.INFO k");
    let expected =
        "[name, large, weight, 1, held, 9, waiting, 0], [name, new, weight, 1, held, 0, waiting, 1]";
    assert!(tenants.contains(expected), "{tenants}");
    ints(con, "RL.RELEASE k a OUTCOME IGNORE");
    assert_eq!(simple(&client.reply()), "[0, 10, 5, 0, 3600000]");
    assert_eq!(ints(con, small)[..3], [0, 10, 4]);
}

#[test]
fn explain_says_how_the_limit_finds_itself() {
    const OPTIONS: &str = "100 1m ID ADAPT START 30";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    (0..20).for_each(|id| drop(take(con, OPTIONS, id, T0)));
    release(con, 0, "OUTCOME DROP", T0 + SECOND);
    release(con, 1, "", T0 + SECOND);
    let line = format!("RL.EXPLAIN RL.CONCURRENT k 100 1m x ADAPT START 30 AT {}", T0 + 3 * SECOND);
    let explained = text(con, &line);
    let expected = "18 of 27 held; the next ends in 57 s; it finds itself, from 1 to 100; 1 of 27 until it grows; lowered 2 s ago";
    assert!(explained.contains(expected), "{explained}");
    let line = format!("RL.EXPLAIN RL.CONCURRENT k 100 1m x ADAPT COST 101 AT {T0}");
    let explained = text(con, &line);
    assert!(
        explained.starts_with("[refused for good by limit 1: a cost of 101 is above the limit 100,"),
        "{explained}"
    );
}

/// A random call of the key, at a random instant.
fn random(con: &mut Connection, at: u64, dice: &mut Dice) {
    let id = dice.below(40);
    let line = match dice.below(10) {
        0..5 => {
            let options = ["ADAPT", "ADAPT", "ADAPT GRADIENT", "ADAPT SLOW 900ms BACKOFF 20", ""];
            let gradient = ["ADAPT GRADIENT", "ADAPT GRADIENT FLOOR 3"];
            let option =
                if at / SECOND % 100 < 60 { dice.pick(&options[..]) } else { dice.pick(&gradient[..]) };
            let cost = 1 + dice.below(3);
            let tenant = if dice.one_in(3) { format!("TENANT t{}", dice.below(3)) } else { String::new() };
            let ttl = 1 + dice.below(5000);
            format!("RL.CONCURRENT k 50 {ttl}ms {id} {option} COST {cost} AT {at} {tenant}")
        }
        5 => format!("RL.RENEW k 1s {id} AT {at}"),
        6 => format!("RL.RELEASE k {id} OUTCOME DROP AT {at}"),
        _ => format!("RL.RELEASE k {id} AT {at}"),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    call(con, &words).unwrap_or_else(|error| panic!("{line}: {error}"));
}

#[test]
fn copies_hold_the_same_after_random_calls() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let mut dice = Dice::new(5);
    let mut at = T0;
    for round in 0..6 {
        let con = &mut server.connection();
        for _ in 0..700 {
            at = if dice.one_in(50) { at - dice.below(3 * SECOND) } else { at + dice.below(100 * MILLI) };
            random(con, at, &mut dice);
        }
        sync(&server, &replica);
        let ours = dump(con, "k");
        assert_eq!(dump(&mut replica.connection(), "k"), ours, "round {round}");
        match round % 3 {
            0 => drop(text(con, "DEBUG RELOAD")),
            1 => rewrite_aof(con),
            _ => {
                text(con, "COPY k other REPLACE");
                assert_eq!(dump(con, "other"), ours);
            }
        }
        assert_eq!(dump(con, "k"), ours, "round {round}");
    }
    let ours = dump(&mut server.connection(), "k");
    server.restart();
    assert_eq!(dump(&mut server.connection(), "k"), ours);
}
