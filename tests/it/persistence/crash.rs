//! Servers that are killed, or that end because their disk fails: what was answered is not forgotten.

use std::fs;

use redis::Connection;

use crate::support::called::{CALLED, CALLERS, LIMIT, remaining, set_policy, words};
use crate::support::contents::contents;
use crate::support::load::{Course, Load};
use crate::support::machine::{Machine, size};
use crate::support::{AOF_AT_ONCE, Server, call, ints, refused, rewrite_aof, simple, text, wait_for};

#[test]
fn a_kill_loses_no_answered_call_if_the_aof_is_written_always() {
    for preamble in ["yes", "no"] {
        let machine = Machine::start(&[&AOF_AT_ONCE[..], &["--aof-use-rdb-preamble", preamble]].concat());
        let load = begin(&machine);
        load.all_go_on(50);
        // So that what is found stands partly in the rewritten file and partly behind it.
        let con = &mut machine.server.connection();
        rewrite_aof(con);
        load.all_go_on(50);
        machine.kill();
        must_be_found_by(machine.successor(&AOF_AT_ONCE), load, &format!("preamble {preamble}"));
    }
}

#[test]
fn nor_does_a_kill_while_the_aof_is_rewritten() {
    for preamble in ["yes", "no"] {
        // A minute a key.
        let slow = ["--aof-use-rdb-preamble", preamble, "--rdb-key-save-delay", "60000000"];
        let machine = Machine::start(&[&AOF_AT_ONCE[..], &slow].concat());
        let load = begin(&machine);
        load.all_go_on(50);
        let con = &mut machine.server.connection();
        text(con, "BGREWRITEAOF");
        // The server says that it rewrites as soon as it has forked. The file is there once the child has begun.
        let rewritten = || size(machine.server.dir(), "temp-rewriteaof-").is_some();
        wait_for("the rewrite's start", rewritten);
        load.all_go_on(50);
        machine.kill();
        // It is renamed when it is done.
        assert!(rewritten(), "too fast to be killed");
        let when = format!("amid a rewrite, preamble {preamble}");
        must_be_found_by(machine.successor(&AOF_AT_ONCE), load, &when);
    }
}

#[test]
fn a_kill_amid_a_save_leaves_the_old_rdb() {
    let machine = Machine::start(&[]);
    let con = &mut machine.server.connection();
    fill(con);
    text(con, "SAVE");
    let dump = machine.server.dir().join("dump.rdb");
    let (digest, bytes) = (text(con, "DEBUG DIGEST"), fs::read(&dump).unwrap());
    fill(con);
    assert_ne!(text(con, "DEBUG DIGEST"), digest);
    // Twenty seconds for all of them.
    text(con, "CONFIG SET rdb-key-save-delay 1000");
    text(con, "BGSAVE");
    let saving = || size(machine.server.dir(), "temp-");
    wait_for("some keys to be written", || saving().is_some_and(|size| size > 0));
    machine.kill();
    println!("killed with {} of {} bytes written", saving().expect("too fast to be killed"), bytes.len());
    assert!(fs::read(&dump).unwrap() == bytes);

    let successor = machine.successor(&[]);
    let con = &mut successor.connection();
    assert_eq!(text(con, "DBSIZE"), "20000");
    assert_eq!(text(con, "DEBUG DIGEST"), digest);
    fill(con);
}

#[test]
fn a_disk_that_fails_ends_a_server_that_writes_always_and_what_it_answered_is_there() {
    for when in ["full disk", "broken disk"] {
        let machine = Machine::start(&AOF_AT_ONCE);
        let load = begin(&machine);
        load.all_go_on(50);
        match when {
            "full disk" => machine.may_write(&(machine.aof_size() + 5000).to_string()),
            _ => machine.break_fsync(true),
        }
        wait_for("its end", || machine.server.log().contains("AOF fsync policy is 'always'"));
        must_be_found_by(machine.successor(&AOF_AT_ONCE), load, when);
    }
}

/// Clients that call a line each until the server is gone.
fn begin(machine: &Machine) -> Load<Vec<String>> {
    set_policy(&machine.server);
    let callers = CALLED.iter().flat_map(|line| (0..CALLERS).map(move |caller| (line, caller)));
    Load::start(callers.map(|(line, caller)| {
        let con = machine.server.connection();
        move |course: &Course| call_until_cut_off(con, line, caller, course)
    }))
}

/// The names of the calls that were answered.
fn call_until_cut_off(mut con: Connection, line: &str, caller: usize, course: &Course) -> Vec<String> {
    let names = (0..).map(|number| format!("{caller}-{number}"));
    let answered = names.take_while(|name| match call(&mut con, &words(&line.replace('#', name))) {
        Ok(reply) => {
            assert!(!refused(&reply), "{line}");
            course.goes_on();
            true
        }
        Err(error) => {
            assert!(error.code().is_none(), "{line}: {error}");
            false
        }
    });
    answered.collect()
}

/// All that was answered must be there, and at most the call that was under way with each client besides.
fn must_be_found_by(mut successor: Server, load: Load<Vec<String>>, when: &str) {
    let acknowledged = load.finish();
    let con = &mut successor.connection();
    for (line, names) in CALLED.iter().zip(acknowledged.chunks(CALLERS)) {
        let names = names.concat();
        let found = usize::try_from(LIMIT - remaining(con, line)).unwrap();
        println!("{when}: {line}: acknowledged {}, found {found}", names.len());
        assert!((names.len()..=names.len() + CALLERS).contains(&found), "{line}");
        for lease in names.iter().filter(|_| line.contains('#')) {
            let key = if line.contains("MULTI") { "all" } else { "lease" };
            assert_eq!(ints(con, &format!("RL.RENEW {key} 1h {lease}")), [1], "{line}");
        }
    }
    // And it is as sound as any.
    let kept = contents(&successor);
    assert_eq!(kept.len(), CALLED.len());
    successor.restart();
    assert_eq!(contents(&successor), kept);
}

/// Charges 20,000 keys of five kinds.
fn fill(con: &mut Connection) {
    let script = "for i = 1, 4000 do \
        redis.call('RL.GCRA', 'gcra' .. i, 99, 1, '1h') \
        redis.call('RL.SLIDINGLOG', 'log' .. i, 99, '1h') \
        redis.call('RL.CONCURRENT', 'lease' .. i, 99, '1h', redis.call('DBSIZE') .. ':' .. i) \
        redis.call('RL.SLIDINGWINDOW', 'precise' .. i, 99, '1h', 'PRECISION', '3600ms') \
        redis.call('RL.MULTI', 1, 'all' .. i, 'LIMIT', 'GCRA', 99, 1, '1h', 'LIMIT', 'FIXEDWINDOW', 99, '1h') \
    end return 'filled'";
    assert_eq!(simple(&call(con, &["EVAL", script, "0"]).unwrap()), "filled");
}
