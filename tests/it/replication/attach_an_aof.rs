//! An AOF that is switched on amid calls brings back what the server held, although effects are not sent before.

use redis::Connection;

use crate::support::callers::{Tally, finish, propagates, unsent_calls, wait_for_a_check, wait_until_unsent};
use crate::support::contents::{Contents, contents, expect_same};
use crate::support::load::Load;
use crate::support::machine::{Machine, persistence};
use crate::support::{AOF_AT_ONCE, call, error_line, rewrites_aof, text, wait_for};

/// The file is off at first, and then written at once.
const ALONE: [&str; 2] = ["--appendfsync", "always"];
/// Makes the server write each key so slowly, in microseconds, that calls go on meanwhile.
const SLOWLY: [&str; 2] = ["--rdb-key-save-delay", "2000"];

#[test]
fn an_aof_switched_on_amid_calls_holds_what_came_before_and_after() {
    let machine = Machine::start(&[&ALONE[..], &SLOWLY].concat());
    let con = &mut machine.server.connection();
    let calls = unsent_calls(&machine.server, "a");

    text(con, "CONFIG SET appendonly yes");
    wait_for("the rewrite's begin", || persistence(con, "aof_rewrite_in_progress") == "1");
    calls.goes_on(50);
    assert!(rewrites_aof(con), "the rewrite was too fast");
    end_rewrite(con);
    wait_for_a_check(&machine.server);
    assert!(propagates(con));
    calls.goes_on(100);
    must_come_back(&machine, calls);
}

#[test]
fn an_aof_switched_on_while_a_save_runs_holds_what_came_before_and_after() {
    let machine = Machine::start(&[&ALONE[..], &SLOWLY, &["--aof-use-rdb-preamble", "no"]].concat());
    let con = &mut machine.server.connection();
    let calls = unsent_calls(&machine.server, "a");

    text(con, "BGSAVE");
    text(con, "CONFIG SET appendonly yes");
    assert_eq!(persistence(con, "aof_rewrite_scheduled"), "1", "the save was too fast");
    calls.goes_on(100);
    end_rewrite(con);
    wait_for_a_check(&machine.server);
    must_come_back(&machine, calls);
}

#[test]
fn an_aof_switched_off_and_on_again_holds_what_came_meanwhile() {
    let machine = Machine::start(&ALONE);
    let con = &mut machine.server.connection();
    let calls = unsent_calls(&machine.server, "a");

    for _ in 0..2 {
        text(con, "CONFIG SET appendonly yes");
        end_rewrite(con);
        calls.goes_on(100);
        text(con, "CONFIG SET appendonly no");
        wait_until_unsent(&machine.server);
        calls.goes_on(200);
    }
    text(con, "CONFIG SET appendonly yes");
    end_rewrite(con);
    wait_for_a_check(&machine.server);
    must_come_back(&machine, calls);
}

#[test]
fn an_aof_switched_on_in_a_transaction_holds_its_calls_before_and_after() {
    let machine = Machine::start(&ALONE);
    let con = &mut machine.server.connection();
    let calls = unsent_calls(&machine.server, "a");
    assert!(!propagates(con));

    let script = "for i = 1, 9 do redis.call('RL.GCRA', KEYS[1] .. i, 9, 1, '1h') end";
    text(con, "MULTI");
    text(con, "RL.SLIDINGLOG inside 9 1h");
    text(con, "RL.GCRA before 9 1 1h");
    call(con, &["EVAL", script, "1", "scripted:before:"]).unwrap();
    text(con, "CONFIG SET appendonly yes");
    text(con, "RL.SLIDINGLOG inside 9 1h");
    text(con, "RL.GCRA after 9 1 1h");
    call(con, &["EVAL", script, "1", "scripted:after:"]).unwrap();
    let done = call(con, &["EXEC"]).unwrap_or_else(|error| panic!("EXEC: {}", error_line(&error)));
    assert!(!format!("{done:?}").contains("ServerError"), "{done:?}");
    end_rewrite(con);
    calls.goes_on(100);
    wait_for_a_check(&machine.server);
    let found = must_come_back(&machine, calls);
    for key in ["inside", "before", "after", "scripted:before:9", "scripted:after:9"] {
        assert!(found.contains_key(&(0, key.to_string())), "{key}");
    }
}

fn end_rewrite(con: &mut Connection) {
    wait_for("the rewrite", || !rewrites_aof(con));
    assert_eq!(persistence(con, "aof_last_bgrewrite_status"), "ok");
}

/// Ends the calls, kills the server, and returns what its file brings back, which must be all.
fn must_come_back(machine: &Machine, calls: Load<Tally>) -> Contents {
    finish(calls);
    let expected = contents(&machine.server);
    assert!(expected.len() > 100, "{} keys", expected.len());
    machine.kill();
    let found = contents(&machine.successor(&AOF_AT_ONCE));
    expect_same(&found, &expected, "from the AOF");
    found
}
