//! Disks that are full or fail: the server refuses what writes, answers what looks, and nothing is half done.

use std::ops::Range;

use redis::Connection;

use crate::support::called::{CALLED, LIMIT, remaining, set_policy, words};
use crate::support::contents::contents;
use crate::support::machine::{Machine, persistence};
use crate::support::{Server, call, error, error_line, refused, text, wait_for};

/// What is called while the disk fails, so that the others stay countable.
const ONCE_MORE: &str = "RL.GCRA more 999999 1 30m";
/// What may write besides, also where it would not: the server cannot know.
const WRITES: [&str; 14] = [
    "RL.GCRA gcra 999999 1 30m COST 0",
    "RL.LEAKYBUCKET fresh 9 1 1h",
    "RL.UNIFORM fresh 1h",
    "RL.SMOOTH fresh 9 1h",
    "RL.SHED fresh 0.95",
    "RL.THROTTLE fresh 9 1 3600",
    "CL.THROTTLE fresh 9 1 3600",
    "RL.REFUND gcra GCRA 999999 1 30m",
    "RL.MULTIREFUND 1 gcra LIMIT GCRA 999999 1 30m",
    "RL.RELEASE lease 0",
    "RL.RENEW lease 2h 0",
    "RL.XADD fresh 9 * field value",
    "RL.RPUSH fresh 9 element",
    "RL.LPUSH fresh 9 element",
];

#[test]
fn a_full_disk_refuses_what_writes_and_forgets_nothing() {
    let mut machine = Machine::start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let con = &mut machine.server.connection();
    set_policy(&machine.server);
    call_all(con, 0..100);
    // The next effect fits in half.
    machine.may_write(&(machine.aof_size() + 10).to_string());
    let (told, refusal) = call_until_refused(con);
    refuses_what_writes_and_answers_what_looks(&machine.server, &refusal);

    machine.may_write("unlimited");
    wait_for("the next try to write", || call(con, &["PING"]).is_ok());
    goes_on(&mut machine, told);
}

#[test]
fn an_fsync_that_fails_refuses_what_writes_and_forgets_nothing() {
    let mut machine = Machine::start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let con = &mut machine.server.connection();
    set_policy(&machine.server);
    call_all(con, 0..100);
    machine.break_fsync(true);
    let (told, refusal) = call_until_refused(con);
    assert_eq!(refusal, "MISCONF Errors writing to the AOF file: Input/output error");
    refuses_what_writes_and_answers_what_looks(&machine.server, &refusal);

    machine.break_fsync(false);
    // The server does not try again by itself.
    text(con, "CONFIG SET appendonly no");
    text(con, "CONFIG SET appendonly yes");
    wait_for("a new file", || persistence(con, "aof_rewrite_in_progress") == "0");
    goes_on(&mut machine, told);
}

#[test]
fn a_save_that_fails_refuses_what_writes_and_forgets_nothing() {
    let mut machine = Machine::start(&["--save", "3600 1"]);
    let con = &mut machine.server.connection();
    set_policy(&machine.server);
    call_all(con, 0..100);
    machine.may_write("1000");
    text(con, "BGSAVE");
    wait_for("the save to fail", || persistence(con, "rdb_last_bgsave_status") == "err");
    let refusal = error(con, CALLED[0]);
    // Redis or Valkey.
    let told =
        refusal.starts_with("MISCONF ") && refusal.contains(" is configured to save RDB snapshots, but");
    assert!(told, "{refusal}");
    refuses_what_writes_and_answers_what_looks(&machine.server, &refusal);

    machine.may_write("unlimited");
    text(con, "BGSAVE");
    wait_for("a save", || persistence(con, "rdb_last_bgsave_status") == "ok");
    goes_on(&mut machine, 0);
}

/// How many are admitted before the server has noticed, for it may write behind the callers' backs; and what it says.
fn call_until_refused(con: &mut Connection) -> (i64, String) {
    let (mut told, mut refusal) = (0, String::new());
    wait_for("the refusal", || {
        match call(con, &words(ONCE_MORE)) {
            Ok(reply) => told += i64::from(!refused(&reply)),
            Err(error) => refusal = error_line(&error),
        }
        !refusal.is_empty()
    });
    assert!(refusal.starts_with("MISCONF Errors writing to the AOF file: "), "{refusal}");
    (told, refusal)
}

fn refuses_what_writes_and_answers_what_looks(server: &Server, refusal: &str) {
    let con = &mut server.connection();
    let before = contents(server);
    for line in CALLED.iter().chain(&WRITES) {
        assert_eq!(error(con, line), refusal, "{line}");
        let script = format!("return redis.call('{}')", words(line).join("','"));
        let scripted = error_line(&call(con, &["EVAL", &script, "0"]).unwrap_err());
        assert!(scripted.starts_with(refusal), "{line}: {scripted}");
    }
    for line in CALLED {
        assert_eq!(LIMIT - remaining(con, line), 100, "{line}");
    }
    assert!(text(con, "RL.INFO lease").starts_with("[limiter, CONCURRENT"));
    assert_eq!(contents(server), before);
}

/// Ten more calls of each line, and a restart that finds all of them, and those that met the fault.
fn goes_on(machine: &mut Machine, told: i64) {
    let con = &mut machine.server.connection();
    call_all(con, 100..110);
    let kept = contents(&machine.server);
    machine.server.restart();
    let con = &mut machine.server.connection();
    for line in CALLED {
        assert_eq!(LIMIT - remaining(con, line), 110, "{line}");
    }
    let found = LIMIT - remaining(con, ONCE_MORE);
    println!("acknowledged while the disk failed {told}, found {found}");
    assert_eq!(found, told);
    assert_eq!(contents(&machine.server), kept);
}

fn call_all(con: &mut Connection, names: Range<u32>) {
    for name in names {
        for line in CALLED {
            assert!(!refused(&call(con, &words(&line.replace('#', &name.to_string()))).unwrap()), "{line}");
        }
    }
}
