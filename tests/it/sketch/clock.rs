//! A clock that is set back grants nothing, and no item waits until the old time comes again.

use redis::Connection;

use super::{START, ask, ask_at, peek_at, written};
use crate::support::{AOF_AT_ONCE, LATEST, SECOND, Server, dump_bytes, info, ints, sync, text};

/// The first instant that `AT` takes, in microseconds.
const EARLY: u64 = 1_000_000_000_000_000;

/// Ten at once, and then one a second.
const ALICE: &str = "key alice 9 10 10s";
const BOB: &str = "key bob 9 10 10s";

/// The instant of the last charge that `RL.INFO` replies, on the callers' clock.
fn last_charge(con: &mut Connection) -> u64 {
    let info = text(con, "RL.INFO key");
    let rest = info.split("last_charge_us, ").nth(1).unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_small_step_back_stands_still() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, &format!("{ALICE} COST 5"), 0);
    // No time passes. A caller's retry grows by its lag of a second.
    let back = START - SECOND;
    let before = written(con);
    assert_eq!(peek_at(con, &format!("{ALICE} COST 0"), back), [0, 10, 5, 0, 6000]);
    assert_eq!(peek_at(con, &format!("{ALICE} COST 6"), back), [1, 10, 5, 2000, 6000]);
    assert_eq!(ask_at(con, &format!("{ALICE} COST 6"), back), [1, 10, 5, 2000, 6000]);
    assert_eq!(ask_at(con, &format!("{ALICE} COST 11"), back), [1, 10, 5, -1, 6000]);
    assert_eq!(written(con), before, "a refusal after a small step writes nothing");
    assert_eq!(ask_at(con, ALICE, back), [0, 10, 4, 0, 7000]);
    assert_eq!(last_charge(con), START);
    // Other items stand still with it. One that is fully reset stays so.
    assert_eq!(ask_at(con, &format!("{BOB} COST 0"), back), [0, 10, 10, 0, 0]);
    assert_eq!(ask_at(con, BOB, back), [0, 10, 9, 0, 2000]);
    // A caller that waits for its retry is admitted.
    assert_eq!(ask_at(con, &format!("{ALICE} COST 5"), back + 2 * SECOND - 1)[0], 1);
    assert_eq!(ask_at(con, &format!("{ALICE} COST 5"), back + 2 * SECOND), [0, 10, 0, 0, 10_000]);
}

#[test]
fn a_step_back_by_exactly_the_reset_of_the_whole_sketch_still_stands_still() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, ALICE, 0);
    ask(con, &format!("{BOB} COST 6"), 0);
    // Alice is reset a second after the last charge. The sketch as a whole takes six.
    for (back, reply) in
        [(1, [0, 10, 9, 0, 1001]), (SECOND + 1, [0, 10, 9, 0, 2001]), (6 * SECOND, [0, 10, 9, 0, 7000])]
    {
        assert_eq!(peek_at(con, ALICE, START - back), reply, "{back} us");
    }
    // One microsecond more, and the state moves.
    assert_eq!(peek_at(con, ALICE, START - 6 * SECOND - 1), [0, 10, 9, 0, 1000]);
    assert_eq!(peek_at(con, BOB, START - 6 * SECOND - 1), [0, 10, 4, 0, 6000]);
    assert_eq!(last_charge(con), START, "a probe moves nothing");
}

#[test]
fn a_greater_step_back_moves_all_items_even_by_a_refusal() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    ask(con, &format!("{ALICE} COST 10"), 0);
    ask(con, &format!("{BOB} COST 4"), 0);
    let size = |con: &mut Connection| info(con, "persistence", "aof_current_size").unwrap();
    let back = START - 3600 * SECOND;

    // Looks answer as if the sketch had moved, and leave it where it is.
    let before = (written(con), size(con));
    assert_eq!(peek_at(con, ALICE, back), [1, 10, 0, 1000, 10_000]);
    assert_eq!(ask_at(con, &format!("{ALICE} COST 0"), back), [0, 10, 0, 0, 10_000]);
    assert_eq!((written(con), size(con)), before);

    assert_eq!(ask_at(con, ALICE, back), [1, 10, 0, 1000, 10_000]);
    let later = (written(con), size(con));
    assert!(later.0.0 != before.0.0 && later.0.2 != before.0.2 && later.1 != before.1, "the step is written");
    assert_eq!(last_charge(con), back);
    // From there time runs as ever, for all items.
    assert_eq!(ask_at(con, ALICE, back + SECOND - 1), [1, 10, 0, 1, 9001]);
    assert_eq!(ask_at(con, ALICE, back + SECOND), [0, 10, 0, 0, 10_000]);
    assert_eq!(ask_at(con, BOB, back + SECOND), [0, 10, 6, 0, 4000]);
    assert_eq!(ask_at(con, &format!("{BOB} COST 0"), back + 5 * SECOND), [0, 10, 10, 0, 0]);
    // A refusal that finds the clock as it is writes nothing.
    let before = written(con);
    assert_eq!(ask_at(con, &format!("{ALICE} COST 5"), back + 2 * SECOND)[0], 1);
    assert_eq!(written(con), before);
}

#[test]
fn an_admitted_call_moves_all_items_too() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ask(con, &format!("{ALICE} COST 10"), 0);
    let back = START - 3600 * SECOND;
    assert_eq!(ask_at(con, BOB, back), [0, 10, 9, 0, 1000]);
    assert_eq!(last_charge(con), back);
    assert_eq!(ask_at(con, ALICE, back), [1, 10, 0, 1000, 10_000]);
    assert_eq!(ask_at(con, &format!("{ALICE} COST 10"), back + 10 * SECOND), [0, 10, 0, 0, 10_000]);
}

/// Years in which the clock is set back, one after the other, in seconds since the epoch.
const STEPS: [u64; 5] = [4_000_000_000, 3_500_000_000, 3_499_999_000, 3_000_000_000, 2_900_000_000];

#[test]
fn several_steps_add_up_and_are_the_same_in_all_copies() {
    let primary = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = primary.replica(&["--propagation-error-behavior", "panic"]);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    ask(con, &format!("{ALICE} COST 10"), 0);
    ask(con, &format!("{BOB} COST 7"), 0);
    for (number, seconds) in STEPS.into_iter().enumerate() {
        let at = seconds * SECOND;
        // A second passes between two steps.
        let left = i64::try_from(number).unwrap();
        assert_eq!(ask_at(con, ALICE, at), [1, 10, 0, 1000, 10_000], "{seconds}");
        assert_eq!(ask_at(con, ALICE, at + SECOND), [0, 10, 0, 0, 10_000], "{seconds}");
        let bob = [0, 10, 4 + left, 0, 6000 - 1000 * left];
        assert_eq!(ask_at(con, &format!("{BOB} COST 0"), at + SECOND), bob, "{seconds}");
        sync(&primary, &replica);
        assert_eq!(dump_bytes(copy, "key"), dump_bytes(con, "key"), "{seconds}");
        assert_eq!(text(copy, "PEXPIRETIME key"), text(con, "PEXPIRETIME key"));
        for at in [at, at + 2 * SECOND, at - 3600 * SECOND] {
            for item in [ALICE, BOB] {
                assert_eq!(peek_at(copy, item, at), peek_at(con, item, at), "{item} at {at}");
            }
        }
        let before = dump_bytes(con, "key");
        for reload in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
            text(con, reload);
            assert_eq!(dump_bytes(con, "key"), before, "{reload} after {seconds}");
        }
    }
}

#[test]
fn instants_8000_years_apart_are_answered_as_by_a_key_for_each_item() {
    let server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let (con, copy) = (&mut server.connection(), &mut replica.connection());
    let latest = LATEST.unsigned_abs();
    for round in 0..50 {
        let (far, near) = (latest - (50 - round) * 10 * SECOND, EARLY + round * 10 * SECOND);
        let mut admitted = 0;
        for at in [far, near, near + SECOND / 2, near + SECOND, near + 3 * SECOND / 2] {
            for item in ["alice", "bob", "carol"] {
                let sketch = ask_at(con, &format!("sketch {item} 0 1 1s"), at);
                let gcra = ints(con, &format!("RL.GCRA gcra:{item} 0 1 1s AT {at}"));
                assert_eq!(sketch, gcra, "round {round}: {item} at {at}");
                admitted += usize::from(sketch[0] == 0);
            }
        }
        // Each item in the year 9999, and a second after the step back.
        assert_eq!(admitted, 6, "round {round}");
        let dump = dump_bytes(con, "sketch");
        sync(&server, &replica);
        assert_eq!(dump_bytes(copy, "sketch"), dump, "round {round}");
        if round % 10 == 0 {
            for reload in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
                text(con, reload);
                assert_eq!(dump_bytes(con, "sketch"), dump, "{reload} in round {round}");
            }
        }
    }
    assert_eq!(ask_at(con, "sketch new 0 1 1s", latest), [0, 1, 0, 0, 1000]);
}

#[test]
fn debts_of_a_century_at_both_ends_of_time_are_no_error() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let latest = LATEST.unsigned_abs();
    let century = 3_153_600_000_000;
    for at in [latest, EARLY, latest, EARLY, EARLY + 1, latest - 1] {
        for item in ["a", "b"] {
            let reply = ask_at(con, &format!("key {item} 0 1 36500d"), at);
            assert!((0..=1).contains(&reply[0]) && (0..=2 * century).contains(&reply[4]), "{at}: {reply:?}");
            text(con, "DEBUG RELOAD");
            text(con, "RL.INFO key");
        }
    }
}
