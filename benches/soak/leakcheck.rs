//! A server with the module under valgrind's memcheck, while everything is done to it that can be done: calls of all
//! commands, valid and not, damaged dumps and effects, files written and read, everything thrown away.

use redis::Connection;

use super::damage::Vandal;
use super::memcheck::Memcheck;
use ratelimit_testing::histories::History;
use ratelimit_testing::{Server, T0, call, info, module, text, wait_for};

const SEED: u64 = 20_261_120;
const ROUNDS: u32 = 6;
/// So many more entries and leases than fit into one block of a table.
const CROWD: u64 = 300;

/// Returns what is wrong, each in a line or some.
pub fn run(calls: u32) -> Vec<String> {
    let memcheck = Memcheck::new();
    let launcher = memcheck.launcher();
    let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
    // The compression of strings in a dump reads what was never written, and knows it.
    let args = ["--rdbcompression", "no", "--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
    let mut server = Server::try_start_under(&launcher, Some(&module()), &[], &args)
        .unwrap_or_else(|log| panic!("the server did not start under valgrind:\n{log}"));
    let mut history = History::new(SEED, &server);
    let mut vandal = Vandal::new(SEED + 1, &server);
    for round in 0..ROUNDS {
        history.go_on((calls / ROUNDS / 2) as usize);
        crowd(&mut server.connection());
        vandal.go_on(calls / ROUNDS / 2);
        keep_house(&server, round);
        println!("round {} of {ROUNDS}: {} commands in all", round + 1, commands(&server));
    }
    let (made, pid) = (commands(&server), server.pid());
    text(&mut server.connection(), "FLUSHALL SYNC");
    server.stop();
    drop(history);
    let mut faults = memcheck.faults(pid);
    if made < u64::from(calls) / 2 {
        faults.push(format!("only {made} commands were run"));
    }
    faults
}

fn commands(server: &Server) -> u64 {
    info(&mut server.connection(), "stats", "total_commands_processed").unwrap().parse().unwrap()
}

/// Large tables that are then emptied by later calls, by release, and by a clock that is set back.
fn crowd(con: &mut Connection) {
    text(con, "SELECT 3");
    for i in 0..CROWD {
        let at = T0 + 1000 * i;
        text(con, &format!("RL.CONCURRENT leases 100000 2s request:{} AT {at}", i * 7919 % CROWD));
        text(con, &format!("RL.SLIDINGLOG log 100000 2s COST {} AT {at}", 1 + i % 3));
        text(con, &format!("RL.SLIDINGLOG hammered 90 2s COUNTREFUSED AT {at}"));
        text(con, &format!("RL.SLIDINGWINDOW precise 100000 1s PRECISION 1ms AT {at}"));
    }
    for i in 0..CROWD / 2 {
        text(con, &format!("RL.RELEASE leases request:{i} AT {}", T0 + 1000 * CROWD));
        text(con, &format!("RL.REFUND log SLIDINGLOG 100000 2s COST 3 AT {}", T0 + 1000 * CROWD));
    }
    for instant in [T0 + 1000 * CROWD, T0 - 3_600_000_000, T0 + 3_600_000_000] {
        for i in 0..4 {
            let at = instant + i;
            text(
                con,
                &format!(
                    "RL.MULTI 3 leases log new AT {at} LIMIT CONCURRENT 9 2s one ON 1 LIMIT SLIDINGLOG 9 2s ON 2 LIMIT GCRA 1 1 9ms ON 3"
                ),
            );
            text(con, &format!("RL.MULTI 1 leases AT {at} LIMIT GCRA 9 1 {}ms", 5 + i));
            text(con, &format!("RL.SLIDINGWINDOW precise 9 1s PRECISION {}ms AT {at}", 1 << i));
        }
    }
}

/// What a server does beside calls: files, copies, digests, looks, an end to it all.
fn keep_house(server: &Server, round: u32) {
    let con = &mut server.connection();
    text(con, &format!("CONFIG SET ratelimit.events {}", if round.is_multiple_of(2) { "yes" } else { "no" }));
    text(con, "CONFIG SET notify-keyspace-events KEAd");
    for line in
        ["INFO everything", "RL.HELP", "COMMAND DOCS rl.multi rl.gcra", "COMMAND GETKEYS RL.APPLY a b c d"]
    {
        text(con, line);
    }
    for db in 0..4 {
        text(con, &format!("SELECT {db}"));
        let keys = text(con, "KEYS *");
        for key in
            keys.trim_matches(['[', ']']).split(", ").filter(|key| !key.is_empty() && !key.contains(' '))
        {
            for line in
                ["RL.INFO KEY", "MEMORY USAGE KEY", "DEBUG DIGEST-VALUE KEY", "COPY KEY copied REPLACE"]
            {
                // Of a queue there is nothing to tell.
                _ = call(con, &line.replace("KEY", key).split(' ').collect::<Vec<_>>());
            }
        }
    }
    assert_eq!(text(con, "DEBUG RELOAD"), "OK");
    text(con, "BGREWRITEAOF");
    wait_for("the rewrite of the AOF", || {
        info(con, "persistence", "aof_rewrite_in_progress").unwrap() == "0"
            && info(con, "persistence", "aof_rewrite_scheduled").unwrap() == "0"
    });
    assert_eq!(info(con, "persistence", "aof_last_bgrewrite_status").unwrap(), "ok");
    assert_eq!(text(con, "DEBUG LOADAOF"), "OK");
    text(con, if round.is_multiple_of(2) { "FLUSHALL ASYNC" } else { "FLUSHALL SYNC" });
}
