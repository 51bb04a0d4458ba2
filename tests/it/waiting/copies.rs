//! What the grants of callers that waited leave on replicas and in the AOF.

use std::time::Duration;
use std::{fs, thread::sleep};

use redis::Connection;

use super::{PATIENT, count, until_waiting, waiting};
use crate::support::callers::{propagates, wait_until_unsent};
use crate::support::client::Client;
use crate::support::contents::contents;
use crate::support::replicas::{STRICT, follow, is_up, replication};
use crate::support::{
    AOF_AT_ONCE, Server, error, info, ints, refused, rewrite_aof, simple, sync, text, wait_for,
};

/// A call that uses a limit up, one that waits, and the calls that make room for it. `K` is a key.
const CASES: [(&str, &str, &[&str]); 21] = [
    (
        "RL.TOKENBUCKET K 9 1 1h COST 9",
        "RL.TOKENBUCKET K 9 1 1h BLOCK 1d",
        &["RL.REFUND K TOKENBUCKET 9 1 1h"],
    ),
    (
        "RL.TOKENBUCKET K 9 3 1h BATCH COST 9",
        "RL.TOKENBUCKET K 9 3 1h BATCH COST 2 BLOCK 1d",
        &["RL.REFUND K TOKENBUCKET 9 3 1h BATCH COST 4"],
    ),
    (
        "RL.LEAKYBUCKET K 9 1 1h COST 9",
        "RL.LEAKYBUCKET K 9 1 1h BLOCK 1d",
        &["RL.REFUND K LEAKYBUCKET 9 1 1h"],
    ),
    ("RL.GCRA K 8 1 1h COST 9", "RL.GCRA K 8 1 1h COST 2 BLOCK 1d", &["RL.REFUND K GCRA 8 1 1h COST 3"]),
    ("RL.FIXEDWINDOW K 9 2h COST 9", "RL.FIXEDWINDOW K 9 2h BLOCK 1d", &["RL.REFUND K FIXEDWINDOW 9 2h"]),
    (
        "RL.FIXEDWINDOW K 9 1d ALIGNED COST 9",
        "RL.FIXEDWINDOW K 9 1d ALIGNED BLOCK 1d",
        &["RL.REFUND K FIXEDWINDOW 9 1d ALIGNED"],
    ),
    (
        "RL.CALENDAR K 9 DAY TZ +05:45 COST 9",
        "RL.CALENDAR K 9 DAY TZ +05:45 BLOCK 1d",
        &["RL.REFUND K CALENDAR 9 DAY TZ +05:45"],
    ),
    (
        "RL.SLIDINGWINDOW K 9 2h COST 9",
        "RL.SLIDINGWINDOW K 9 2h BLOCK 1d",
        &["RL.REFUND K SLIDINGWINDOW 9 2h COST 3"],
    ),
    (
        "RL.SLIDINGWINDOW K 9 2h PRECISION 1m COST 9",
        "RL.SLIDINGWINDOW K 9 2h PRECISION 1m BLOCK 1d",
        &["RL.REFUND K SLIDINGWINDOW 9 2h PRECISION 1m"],
    ),
    ("RL.SLIDINGLOG K 9 2h COST 9", "RL.SLIDINGLOG K 9 2h BLOCK 1d", &["RL.REFUND K SLIDINGLOG 9 2h COST 2"]),
    ("RL.UNIFORM K 2h", "RL.UNIFORM K 2h BLOCK 1d", &["RL.REFUND K UNIFORM 2h"]),
    ("RL.CONCURRENT K 1 2h holder", "RL.CONCURRENT K 1 3h caller BLOCK 1d", &["RL.RELEASE K holder"]),
    (
        "RL.CONCURRENT K 3 2h holder COST 3 TENANT a WEIGHT 5",
        "RL.CONCURRENT K 3 3h caller COST 2 TENANT b WEIGHT 2 BLOCK 1d",
        &["RL.RELEASE K holder"],
    ),
    (
        "RL.CONCURRENT K 3 2h holder COST 3",
        "RL.CONCURRENT K 3 2h caller RESERVED 1 CRITICAL BLOCK 1d",
        &["DEL K"],
    ),
    // A lease that ends by itself.
    ("RL.CONCURRENT K 1 50ms holder", "RL.CONCURRENT K 1 3h caller BLOCK 1d", &[]),
    // Tokens that come by themselves, thousands of them a second.
    (
        "RL.TOKENBUCKET K 36000000 10 1ms COST 36000000",
        "RL.TOKENBUCKET K 36000000 10 1ms COST 500 BLOCK 1d",
        &[],
    ),
    (
        "RL.GCRA K 8 1 1h COST 9 HOLD other 2h",
        "RL.GCRA K 8 1 1h COST 2 HOLD own 2h BLOCK 1d",
        &["RL.SETTLE K other GCRA 8 1 1h COST 4"],
    ),
    (
        "RL.MULTI 2 K K:2 HOLD other 2h COST 9 LIMIT SLIDINGLOG 9 2h LIMIT TOKENBUCKET 9 1 1h ON 2",
        "RL.MULTI 2 K K:2 HOLD own 2h BLOCK 1d LIMIT SLIDINGLOG 9 2h LIMIT TOKENBUCKET 9 1 1h ON 2",
        &["RL.MULTISETTLE 2 K K:2 other COST 7 LIMIT SLIDINGLOG 9 2h LIMIT TOKENBUCKET 9 1 1h ON 2"],
    ),
    // One limit after the other has room. The others charge what a caller without `BLOCK` would.
    (
        "RL.MULTI 2 K K:2 COST 9 LIMIT FIXEDWINDOW 9 2h LIMIT GCRA 9 1 1h LIMIT CONCURRENT 9 2h holder ON 2 COST 9",
        "RL.MULTI 2 K K:2 BLOCK 1d LIMIT FIXEDWINDOW 9 2h LIMIT GCRA 9 1 1h LIMIT CONCURRENT 9 2h caller ON 2 \
         LIMIT UNIFORM 1h SHADOW LIMIT PENALTY 9 2h 2h ON 1",
        &["RL.REFUND K FIXEDWINDOW 9 2h", "RL.REFUND K:2 FIXEDWINDOW 9 2h COST 2", "RL.RELEASE K:2 holder"],
    ),
    (
        "RL.ASK K two COST 9 ID holder KEYS K:2",
        "RL.ASK K two ID caller BLOCK 1d KEYS K:2",
        &["RL.MULTIREFUND 2 K K:2 COST 2 LIMIT SLIDINGWINDOW 9 2h"],
    ),
    (
        "RL.ASK K held COST 9 HOLD other 2h",
        "RL.ASK K held COST 3 HOLD own 2h BLOCK 1d",
        &["RL.ASKSETTLE K held other COST 1"],
    ),
];

const POLICIES: [&str; 2] = [
    "RL.POLICY SET two LIMIT SLIDINGWINDOW 9 2h LIMIT CONCURRENT 9 2h ON 1",
    "RL.POLICY SET held LIMIT SLIDINGWINDOW 9 2h PRECISION 1m",
];

/// Runs all cases in a database, each with keys of its own.
fn run_cases(server: &Server, database: usize) {
    let con = &mut server.connection();
    for policy in POLICIES {
        text(con, policy);
    }
    text(con, &format!("SELECT {database}"));
    for (number, (uses_up, waits, makes_room)) in CASES.into_iter().enumerate() {
        let on = |line: &str| {
            let words = line.split_whitespace().map(|word| match word {
                "K" => format!("case{number}"),
                "K:2" => format!("case{number}:2"),
                word => word.to_string(),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        text(con, &on(uses_up));
        // What comes by itself may come before the caller.
        let mut caller = if makes_room.is_empty() {
            let mut caller = Client::connect(server.port);
            caller.call(&format!("SELECT {database}"));
            caller.send(&on(waits));
            caller
        } else {
            enter(server, database, &on(waits))
        };
        for line in makes_room {
            assert_eq!(caller.poll(), None, "{waits}");
            text(con, &on(line));
        }
        let reply = caller.reply();
        assert!(!refused(&reply), "{waits}: {}", simple(&reply));
    }
    assert_eq!(waiting(con), 0);
}

/// A client that makes a call in a database, and waits.
fn enter(server: &Server, database: usize, line: &str) -> Client {
    let con = &mut server.connection();
    let mut client = Client::connect(server.port);
    assert_eq!(simple(&client.call(&format!("SELECT {database}"))), "OK");
    let before = waiting(con);
    client.send(line);
    wait_for(&format!("a caller that waits: {line}"), || {
        if let Some(reply) = client.poll() {
            panic!("{line}: replied at once {}", simple(&reply));
        }
        waiting(con) > before
    });
    client
}

#[test]
fn what_was_waited_for_is_the_same_on_replicas_and_after_a_restart() {
    let args = [&PATIENT[..], &AOF_AT_ONCE, &["--aof-use-rdb-preamble", "no"]].concat();
    let mut primary = Server::start(&args);
    let replica = primary.replica(&STRICT);
    let chained = replica.replica(&[&STRICT[..], &["--appendonly", "yes"]].concat());
    run_cases(&primary, 0);
    run_cases(&primary, 1);
    sync(&primary, &replica);
    sync(&replica, &chained);
    let expected = contents(&primary);
    assert!(expected.len() >= 2 * CASES.len(), "{} keys", expected.len());
    let digest = text(&mut primary.connection(), "DEBUG DIGEST");
    for copy in [&replica, &chained] {
        assert_eq!(contents(copy), expected);
        assert_eq!(text(&mut copy.connection(), "DEBUG DIGEST"), digest);
    }
    drop((chained, replica));
    primary.restart();
    assert_eq!(contents(&primary), expected);
    rewrite_aof(&mut primary.connection());
    primary.restart();
    assert_eq!(contents(&primary), expected);
}

#[test]
fn a_grant_counts_as_one_change_whether_its_effect_is_sent_or_not() {
    let (alone, sending) = (Server::start(&PATIENT), Server::start(&[&PATIENT[..], &AOF_AT_ONCE].concat()));
    wait_until_unsent(&alone);
    for server in [&alone, &sending] {
        let con = &mut server.connection();
        for line in ["RL.CONCURRENT lease 1 1h holder", "RL.MULTI 2 a b LIMIT SLIDINGLOG 1 1h"] {
            text(con, line);
        }
        for (waits, makes_room) in [
            ("RL.CONCURRENT lease 1 1h caller BLOCK 1d", "RL.RELEASE lease holder"),
            ("RL.MULTI 2 a b BLOCK 1d LIMIT SLIDINGLOG 1 1h", "RL.MULTIREFUND 2 a b LIMIT SLIDINGLOG 1 1h"),
        ] {
            let changes = |con: &mut Connection| -> u64 {
                info(con, "persistence", "rdb_changes_since_last_save").unwrap().parse().unwrap()
            };
            let before = changes(con);
            let mut caller = enter(server, 0, waits);
            assert_eq!(changes(con), before, "{waits}");
            text(con, makes_room);
            assert!(!refused(&caller.reply()), "{waits}");
            assert_eq!(changes(con), before + 2, "{waits}");
        }
    }
    assert!(!propagates(&mut alone.connection()));
}

/// The databases of the next test, and the leases of each.
const DATABASES: [usize; 3] = [0, 3, 1];
const LEASES: usize = 6;

#[test]
fn grants_of_one_event_are_replicated_in_the_order_of_arrival_and_into_their_databases() {
    let mut primary = Server::start(&[&PATIENT[..], &AOF_AT_ONCE].concat());
    let replica = primary.replica(&STRICT);
    let con = &mut primary.connection();
    for database in DATABASES {
        text(con, &format!("SELECT {database}"));
        for number in 0..LEASES {
            text(con, &format!("RL.CONCURRENT lease {LEASES} 1h holder{number}"));
        }
    }
    let mut callers: Vec<Client> = (0..LEASES * DATABASES.len())
        .map(|number| {
            let database = DATABASES[number % DATABASES.len()];
            let line = format!("RL.CONCURRENT lease {LEASES} 1h db{database}:caller{number:02} BLOCK 1d");
            enter(&primary, database, &line)
        })
        .collect();
    text(con, "MULTI");
    for database in DATABASES {
        text(con, &format!("SELECT {database}"));
        for number in 0..LEASES {
            text(con, &format!("RL.RELEASE lease holder{number}"));
        }
    }
    text(con, "EXEC");
    for caller in &mut callers {
        let reply = caller.reply();
        assert!(!refused(&reply), "{}", simple(&reply));
    }
    assert_eq!((waiting(con), count(con, "waited_granted")), (0, callers.len() as u64));

    let written = aof(&primary);
    for database in DATABASES {
        let start = format!("db{database}:caller");
        let ids: Vec<&str> = written.match_indices(&start).map(|(at, _)| &written[at..at + 12]).collect();
        assert_eq!(ids.len(), LEASES, "each grant is sent once");
        assert!(ids.is_sorted(), "{ids:?}");
    }
    sync(&primary, &replica);
    let held = |server: &Server| {
        let con = &mut server.connection();
        DATABASES.map(|database| {
            text(con, &format!("SELECT {database}"));
            (text(con, "RL.INFO lease"), text(con, "DEBUG DIGEST-VALUE lease"))
        })
    };
    let expected = held(&primary);
    for (told, _) in &expected {
        assert!(told.contains(&format!("stored_leases, {LEASES}")), "{told}");
    }
    assert_eq!(held(&replica), expected);
    drop(replica);
    primary.kill();
    primary.start_again();
    assert_eq!(held(&primary), expected);
}

/// What is in the AOF, as text.
fn aof(server: &Server) -> String {
    let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let path = paths.into_iter().find(|path| path.to_string_lossy().ends_with(".incr.aof")).unwrap();
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

#[test]
fn who_was_granted_a_lease_has_it_after_a_crash() {
    let mut server = Server::start(&[&PATIENT[..], &AOF_AT_ONCE].concat());
    text(&mut server.connection(), "RL.CONCURRENT lease 1 1h caller0");
    for number in 1..=5 {
        let mut caller = enter(&server, 0, &format!("RL.CONCURRENT lease 1 1h caller{number} BLOCK 1d"));
        assert_eq!(text(&mut server.connection(), &format!("RL.RELEASE lease caller{}", number - 1)), "1");
        assert!(!refused(&caller.reply()));
        server.kill();
        server.start_again();
        let con = &mut server.connection();
        assert_eq!(waiting(con), 0);
        assert_eq!(text(con, &format!("RL.RENEW lease 1h caller{number}")), "1");
        assert!(text(con, "RL.INFO lease").contains("stored_leases, 1"));
    }
}

#[test]
fn a_promoted_replica_knows_no_lines_and_makes_its_own() {
    let primary = Server::start(&PATIENT);
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let (con, other) = (&mut primary.connection(), &mut replica.connection());
    text(con, "RL.CONCURRENT lease 1 1h holder");
    let mut callers =
        [1, 2].map(|number| enter(&primary, 0, &format!("RL.CONCURRENT lease 1 1h caller{number} BLOCK 1d")));
    sync(&primary, &replica);
    assert_eq!(waiting(other), 0);
    assert!(text(other, "RL.INFO lease").contains("waiting, 0"));
    assert!(error(other, "RL.CONCURRENT lease 1 1h nobody BLOCK 1d").starts_with("READONLY"));
    // A probe on the primary is not refused by the line: only by what is held.
    assert_eq!(ints(other, "RL.PEEK lease CONCURRENT 2 1h probe")[0], 0);

    text(other, "REPLICAOF NO ONE");
    assert_eq!(text(other, "RL.RELEASE lease holder"), "1");
    assert_eq!(ints(other, "RL.CONCURRENT lease 1 1h new")[0], 0);
    let mut caller = enter(&replica, 0, "RL.CONCURRENT lease 1 1h caller3 BLOCK 1d");
    assert_eq!(text(other, "RL.RELEASE lease new"), "1");
    assert!(!refused(&caller.reply()));
    // The old primary has not noticed anything.
    assert_eq!(waiting(con), 2);
    for (number, caller) in callers.iter_mut().enumerate() {
        let id = ["holder", "caller1"][number];
        assert_eq!(text(con, &format!("RL.RELEASE lease {id}")), "1");
        assert!(!refused(&caller.reply()));
    }
}

/// The tenants of a key, as `RL.INFO` shows them.
fn tenants(server: &Server) -> String {
    let shown = text(&mut server.connection(), "RL.INFO lease");
    shown.split_once("tenants, ").map_or_else(String::new, |(_, tenants)| tenants.to_string())
}

#[test]
fn what_tenants_hold_is_the_same_on_a_replica_that_is_promoted_and_after_a_restart() {
    let args = [&PATIENT[..], &AOF_AT_ONCE, &["--aof-use-rdb-preamble", "no"]].concat();
    let mut primary = Server::start(&args);
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let mut without_aof = Server::start(&PATIENT);
    for line in [
        "RL.CONCURRENT lease 9 1h 1 COST 4 TENANT a WEIGHT 4",
        "RL.CONCURRENT lease 9 1h 2 COST 2 TENANT b WEIGHT 7",
        "RL.CONCURRENT lease 9 1h 3 TENANT b",
        "RL.CONCURRENT lease 9 1h 4",
        "RL.RELEASE lease 2",
    ] {
        text(&mut primary.connection(), line);
        text(&mut without_aof.connection(), line);
    }
    let expected = tenants(&primary);
    assert_eq!(expected.matches("name, ").count(), 3, "{expected}");
    sync(&primary, &replica);
    assert_eq!(tenants(&replica), expected);
    // A replica that loads the whole file has the same.
    let late = primary.replica(&STRICT);
    sync(&primary, &late);
    assert_eq!(tenants(&late), expected);
    drop(late);
    primary.restart();
    assert_eq!(tenants(&primary), expected);
    rewrite_aof(&mut primary.connection());
    primary.restart();
    assert_eq!(tenants(&primary), expected);
    let saved = tenants(&without_aof);
    text(&mut without_aof.connection(), "SAVE");
    without_aof.restart();
    assert_eq!(tenants(&without_aof), saved);
    // Turns go by what is held there: b holds least for its weight.
    let con = &mut replica.connection();
    text(con, "REPLICAOF NO ONE");
    let mut a = enter(&replica, 0, "RL.CONCURRENT lease 9 1h 5 COST 4 TENANT a BLOCK 1d");
    let mut b = enter(&replica, 0, "RL.CONCURRENT lease 9 1h 6 COST 5 TENANT b BLOCK 1d");
    text(con, "RL.RELEASE lease 1");
    assert!(!refused(&b.reply()));
    assert!(a.poll().is_none());
}

#[test]
fn who_waits_at_a_primary_that_becomes_a_replica_is_unblocked_and_granted_nothing() {
    let primary = Server::start(&PATIENT);
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let con = &mut primary.connection();
    for line in
        ["RL.CONCURRENT lease 1 1h holder", "RL.SLIDINGLOG log 1 1h", "RL.MULTI 2 a b LIMIT GCRA 0 1 1h"]
    {
        text(con, line);
    }
    let callers = [
        "RL.CONCURRENT lease 1 1h caller BLOCK 1d",
        "RL.CONCURRENT lease 1 1h other BLOCK 1d",
        "RL.SLIDINGLOG log 1 1h BLOCK 1d",
        "RL.MULTI 2 a b BLOCK 1d LIMIT GCRA 0 1 1h",
    ]
    .map(|line| enter(&primary, 0, line));
    sync(&primary, &replica);
    text(&mut replica.connection(), "REPLICAOF NO ONE");
    // There is room for all of them a moment before. Both are read at once, so no caller is tried in between.
    let mut operator = Client::connect(primary.port);
    operator.send_all(&["DEL lease log a b", &format!("REPLICAOF 127.0.0.1 {}", replica.port)]);
    assert_eq!([operator.reply(), operator.reply()].map(|reply| simple(&reply)), ["4", "OK"]);
    for mut caller in callers {
        unblocked(&mut caller);
    }
    wait_for("the link", || is_up(&primary));
    assert_eq!((waiting(con), count(con, "waited_granted")), (0, 0));
    sync(&replica, &primary);
    assert_eq!(contents(&primary), contents(&replica));
    assert_eq!(contents(&primary).len(), 4);
}

/// The client gets the error that the server has become a replica, and is then disconnected.
fn unblocked(caller: &mut Client) {
    let error = simple(&caller.reply());
    assert!(error.starts_with("UNBLOCKED force unblock"), "{error}");
    assert_eq!(caller.outcome(), None);
}

#[test]
fn nobody_is_granted_anything_during_a_failover_and_all_go_on_if_it_is_given_up() {
    let primary = Server::start(&PATIENT);
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let con = &mut primary.connection();
    // Longer on a machine on which a lease ends before the failover begins.
    let (mut first, mut second) = [2000, 8000, 32_000]
        .into_iter()
        .find_map(|ttl| {
            text(con, "DEL lease");
            text(con, &format!("RL.CONCURRENT lease 1 {ttl}ms holder"));
            let first = enter(&primary, 0, "RL.CONCURRENT lease 1 1h first BLOCK 1d");
            let second =
                enter(&primary, 0, &format!("RL.CONCURRENT lease 1 1h second BLOCK {}ms", ttl + 1000));
            // It does not get what it needs for the failover.
            signal(&replica, libc::SIGSTOP);
            text(con, "RL.GCRA unsent 9 1 1h");
            text(con, "FAILOVER");
            if waiting(con) == 2 {
                return Some((first, second));
            }
            text(con, "FAILOVER ABORT");
            signal(&replica, libc::SIGCONT);
            None
        })
        .expect("a failover that begins in time");
    assert_eq!(replication(con, "master_failover_state"), "waiting-for-sync");
    // The lease ends, and then the second caller's time.
    let reply = second.reply();
    assert!(refused(&reply), "{}", simple(&reply));
    sleep(Duration::from_millis(300));
    assert_eq!((first.poll(), waiting(con)), (None, 1));
    text(con, "FAILOVER ABORT");
    assert!(!refused(&first.reply()));
    signal(&replica, libc::SIGCONT);
    sync(&primary, &replica);
    assert_eq!(contents(&replica), contents(&primary));

    // And now to the end.
    let mut third = enter(&primary, 0, "RL.CONCURRENT lease 1 1h third BLOCK 1d");
    let granted = count(con, "waited_granted");
    text(con, "FAILOVER");
    unblocked(&mut third);
    wait_for("the failover", || {
        let role = |server: &Server| info(&mut server.connection(), "replication", "role").unwrap();
        role(&replica) == "master" && is_up(&primary)
    });
    let new = &mut replica.connection();
    assert_eq!((waiting(con), waiting(new), count(con, "waited_granted")), (0, 0, granted));
    let mut third = enter(&replica, 0, "RL.CONCURRENT lease 1 1h third BLOCK 1d");
    assert_eq!(text(new, "RL.RELEASE lease first"), "1");
    assert!(!refused(&third.reply()));
    sync(&replica, &primary);
    assert_eq!(contents(&primary), contents(&replica));
}

fn signal(server: &Server, signal: i32) {
    let pid = i32::try_from(server.pid()).unwrap();
    // SAFETY: a bare system call. The process is a child of this one, and its end has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn a_replica_that_attaches_while_callers_wait_has_all_that_they_are_granted() {
    let primary = Server::start(&PATIENT);
    let con = &mut primary.connection();
    text(con, "RL.CONCURRENT lease 1 1h caller0");
    let mut callers: Vec<Client> = (1..=20)
        .map(|number| enter(&primary, 0, &format!("RL.CONCURRENT lease 1 1h caller{number} BLOCK 1d")))
        .collect();
    let replica = Server::start(&STRICT);
    for (number, caller) in callers.iter_mut().enumerate() {
        if number == 5 {
            follow(&replica, primary.port);
        }
        assert_eq!(text(con, &format!("RL.RELEASE lease caller{number}")), "1");
        assert!(!refused(&caller.reply()));
        if number == 15 {
            wait_for("the link", || is_up(&replica));
        }
    }
    until_waiting(con, 0);
    sync(&primary, &replica);
    assert_eq!(contents(&replica), contents(&primary));
    assert!(text(con, "RL.INFO lease").contains("stored_leases, 1"));
}

#[test]
fn what_is_freed_of_leases_that_expired_changes_no_copy() {
    const LEASES: u64 = 2000;
    let mut primary = Server::start(&[&PATIENT[..], &AOF_AT_ONCE].concat());
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let con = &mut primary.connection();
    for i in 0..LEASES {
        text(con, &format!("RL.CONCURRENT lease {LEASES} 1h {i} TENANT tenant{}", i % 1000));
    }
    let usage = |con: &mut Connection| ints(con, "MEMORY USAGE lease")[0];
    let filled = usage(con);
    let digest = |server: &Server| text(&mut server.connection(), "DEBUG DIGEST-VALUE lease");
    // One caller is admitted as soon as a lease expires. The other one waits on, so the line stays.
    let mut caller =
        enter(&primary, 0, &format!("RL.CONCURRENT lease {LEASES} 1h caller TENANT new BLOCK 1d"));
    let _waits = enter(
        &primary,
        0,
        &format!("RL.CONCURRENT lease {LEASES} 1h large COST {LEASES} TENANT large BLOCK 1d"),
    );
    for i in (0..LEASES).filter(|i| i % 3 > 0) {
        text(con, &format!("RL.RENEW lease 50ms {i}"));
    }
    assert!(!refused(&caller.reply()));
    sleep(Duration::from_millis(100));
    // What had ended at a charge is freed by the alarm, as no call follows.
    text(con, &format!("RL.CONCURRENT lease {LEASES} 1h charge TENANT new"));
    wait_for("leases are freed", || {
        sync(&primary, &replica);
        assert_eq!(digest(&primary), digest(&replica));
        usage(con) < filled / 2
    });
    for i in 0..50 {
        for line in [
            format!("RL.CONCURRENT lease {LEASES} 1h again{i} TENANT tenant{i}"),
            format!(
                "RL.CONCURRENT lease {LEASES} {}ms soon{i} COST 2 TENANT soon WEIGHT {}",
                1 + i % 7,
                1 + i
            ),
            format!("RL.RELEASE lease {}", 3 * i),
            format!("RL.RENEW lease 2h {}", 3 * i + 150),
        ] {
            text(con, &line);
        }
        sync(&primary, &replica);
        assert_eq!(digest(&primary), digest(&replica), "after step {i}");
    }
    let expected = digest(&primary);
    drop(replica);
    primary.kill();
    primary.start_again();
    assert_eq!(digest(&primary), expected);
}
