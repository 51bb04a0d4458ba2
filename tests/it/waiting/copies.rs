//! What the grants of callers that waited leave on replicas and in the AOF.

use std::fs;

use redis::Connection;

use super::{PATIENT, Waiting, count, pipeline, until_waiting, waiting};
use crate::support::callers::{propagates, wait_until_unsent};
use crate::support::client::Client;
use crate::support::contents::contents;
use crate::support::replicas::{STRICT, follow, is_up, replication};
use crate::support::{AOF_AT_ONCE, Server, error, info, ints, refused, simple, sync, text, wait_for};

/// A client that makes a call in a database, and waits.
fn enter(server: &Server, database: usize, line: &str) -> Client {
    let mut client = Client::connect(server.port);
    client.call(&format!("SELECT {database}"));
    Waiting::enter_on(server, client, line).client
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
const DATABASES: [usize; 2] = [1, 0];
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
    // One for several keys, and one for a lease that ends by itself.
    for line in ["RL.MULTI 2 a b LIMIT FIXEDWINDOW 1 2h", "RL.CONCURRENT c 1 50ms holder"] {
        text(con, line);
    }
    let several = "RL.MULTI 2 a b HOLD own 2h BLOCK 1d LIMIT FIXEDWINDOW 1 2h LIMIT GCRA 9 1 1h LIMIT PENALTY 9 2h 2h ON 1";
    let several = enter(&primary, DATABASES[1], several);
    let mut last = Client::connect(primary.port);
    last.send_all(&[&format!("SELECT {}", DATABASES[1]), "RL.CONCURRENT c 1 3h caller BLOCK 1d"]);
    assert_eq!([last.reply(), last.reply()].map(|reply| simple(&reply)), ["OK", "[0, 1, 0, 0, 10800000]"]);
    let before = count(con, "waited_granted");
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
    text(con, "RL.MULTIREFUND 2 a b LIMIT FIXEDWINDOW 1 2h");
    text(con, "EXEC");
    callers.push(several);
    for caller in &mut callers {
        let reply = caller.reply();
        assert!(!simple(&reply).trim_start_matches('[').starts_with('1'), "{}", simple(&reply));
    }
    assert_eq!((waiting(con), count(con, "waited_granted") - before), (0, callers.len() as u64));

    let written = aof(&primary);
    for database in DATABASES {
        let start = format!("db{database}:caller");
        let ids: Vec<&str> = written.match_indices(&start).map(|(at, _)| &written[at..at + 12]).collect();
        assert_eq!(ids.len(), LEASES, "each grant is sent once");
        assert!(ids.is_sorted(), "{ids:?}");
    }
    sync(&primary, &replica);
    let expected = contents(&primary);
    assert_eq!(expected.len(), DATABASES.len() + 3);
    assert_eq!(contents(&replica), expected);
    drop(replica);
    primary.kill();
    primary.start_again();
    assert_eq!(contents(&primary), expected);
}

/// What is in the AOF, as text.
fn aof(server: &Server) -> String {
    let files = fs::read_dir(server.dir().join("appendonlydir")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let path = paths.into_iter().find(|path| path.to_string_lossy().ends_with(".incr.aof")).unwrap();
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
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
    let blocks = "RL.CONCURRENT lease 1 1h late BLOCK 1d";
    assert!(error(other, blocks).starts_with("READONLY"));
    // A replica that may be written makes no caller wait.
    text(other, "CONFIG SET replica-read-only no");
    assert_eq!(ints(other, blocks)[..3], [1, 1, 0]);
    assert!(text(other, "RL.MULTI 1 lease BLOCK 1d LIMIT CONCURRENT 1 1h late").starts_with("[[1, 1, 0, "));
    assert_eq!(waiting(other), 0);
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
fn no_caller_is_granted_anything_during_a_failover_and_all_go_on_if_it_is_given_up() {
    let primary = Server::start(&PATIENT);
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let con = &mut primary.connection();
    text(con, "RL.CONCURRENT lease 1 1h holder");
    let mut first = enter(&primary, 0, "RL.CONCURRENT lease 1 1h first BLOCK 1d");
    let mut second = Client::connect(primary.port);
    second.send("RL.CONCURRENT lease 1 1h second BLOCK 2s");
    wait_for("the second caller", || waiting(con) + count(con, "waited_timeout") == 2);
    // The replica does not get what it needs for the failover.
    signal(&replica, libc::SIGSTOP);
    pipeline(con, &["RL.RENEW lease 50ms holder", "RL.GCRA unsent 9 1 1h", "FAILOVER"]);
    assert_eq!(replication(con, "master_failover_state"), "waiting-for-sync");
    // The lease ends, and then the second caller's time.
    let reply = second.reply();
    assert!(refused(&reply), "{}", simple(&reply));
    wait_for("the lease's end", || ints(con, "RL.PEEK lease CONCURRENT 1 1h first")[0] == 0);
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
    const LEASES: u64 = 1000;
    let mut primary = Server::start(&[&PATIENT[..], &AOF_AT_ONCE].concat());
    let replica = primary.replica(&[&STRICT[..], &PATIENT].concat());
    let con = &mut primary.connection();
    let take = |i| format!("RL.CONCURRENT lease {LEASES} 1h {i} TENANT tenant{}", i % 500);
    pipeline(con, &(0..LEASES).map(take).collect::<Vec<_>>());
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
    let end = (0..LEASES).filter(|i| i % 3 > 0).map(|i| format!("RL.RENEW lease 50ms {i}"));
    pipeline(con, &end.collect::<Vec<_>>());
    assert!(!refused(&caller.reply()));
    let peek = format!("RL.PEEK lease CONCURRENT {LEASES} 1h peek");
    wait_for("leases that end", || ints(con, &peek)[2] > 650);
    // What had ended at a charge is freed by the alarm, as no call follows.
    text(con, &format!("RL.CONCURRENT lease {LEASES} 1h charge TENANT new"));
    wait_for("leases are freed", || {
        sync(&primary, &replica);
        assert_eq!(digest(&primary), digest(&replica));
        usage(con) < filled / 2
    });
    for i in 0..8 {
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
