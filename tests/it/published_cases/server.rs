//! What other rate limiters test with a real clock, many clients, a restart or a replica, on these commands.

use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use crate::support::{Server, call, call_bytes, error, ints, rewrite_aof, sync, text, wait_for};

// Redis gcra.tcl: "1 10000 1" leaves a key, and it has a deadline; Losant: it is gone when its reset has elapsed.
#[test]
fn a_key_lives_until_its_reset_and_not_for_ever() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let reset = ints(&mut con, "RL.GCRA k 0 1 2s")[4];
    let left = ints(&mut con, "PTTL k")[0];
    // The two calls are some time apart, but surely not this long.
    assert!(reset == 2000 && (1000..=12_001).contains(&left), "{left} of {reset} ms left");
    text(&mut con, "PEXPIRE k 1");
    wait_for("the key's end", || ints(&mut con, "EXISTS k") == [0]);
    assert_eq!(ints(&mut con, "RL.GCRA k 0 1 2s"), [0, 1, 0, 0, 2000]);
}

// redis_rate and Losant call it reset: the next request is a first one.
#[test]
fn deleting_the_key_makes_it_as_good_as_new() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for line in [
        "RL.GCRA k 9 10 1h",
        "RL.TOKENBUCKET k 10 10 1h",
        "RL.TOKENBUCKET k 10 10 1h BATCH",
        "RL.LEAKYBUCKET k 10 10 1h",
        "RL.FIXEDWINDOW k 10 1h",
        "RL.SLIDINGLOG k 10 1h",
        "RL.SLIDINGWINDOW k 10 1h",
        "RL.SLIDINGWINDOW k 10 1h PRECISION 1h",
        "RL.CONCURRENT k 10 1h id",
    ] {
        for _ in 0..2 {
            assert_eq!(ints(&mut con, line)[..4], [0, 10, 9, 0], "{line}");
            assert_eq!(ints(&mut con, "DEL k"), [1], "{line}");
        }
        assert_eq!(ints(&mut con, "DEL k"), [0]);
    }
}

// Losant: a peek never creates the key.
#[test]
fn a_probe_and_a_look_create_no_key() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    assert_eq!(ints(&mut con, "RL.PEEK k GCRA 4 10 1m"), [0, 5, 5, 0, 0]);
    assert_eq!(ints(&mut con, "RL.PEEK k GCRA 4 10 1m COST 6"), [1, 5, 5, -1, 0]);
    assert_eq!(ints(&mut con, "RL.GCRA k 4 10 1m COST 0"), [0, 5, 5, 0, 0]);
    assert_eq!(ints(&mut con, "DBSIZE"), [0]);
}

// redis_rate: one per millisecond never asks for more than a millisecond.
#[test]
fn a_limit_of_one_per_millisecond_waits_a_millisecond_at_most() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    for _ in 0..1000 {
        let reply = ints(&mut con, "RL.GCRA k 0 1 1ms");
        assert!(matches!(reply[..], [0, 1, 0, 0, 1] | [1, 1, 0, 1, 1]), "{reply:?}");
    }
}

// Redis gcra.tcl: WRONGTYPE for a list and a set. The other types are in `commands/keys_and_ids.rs`.
#[test]
fn a_list_and_a_set_are_no_limiters() {
    const WRONG: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let server = Server::start(&[]);
    let mut con = server.connection();
    text(&mut con, "RPUSH list a");
    text(&mut con, "SADD set a");
    assert_eq!(error(&mut con, "RL.GCRA list 1 1 1s"), WRONG);
    assert_eq!(error(&mut con, "RL.GCRA set 1 1 1s"), WRONG);
}

// Redis gcra.tcl: DEBUG RELOAD, BGREWRITEAOF, DUMP and RESTORE, DEBUG DIGEST.
#[test]
fn a_reload_a_rewritten_aof_and_a_restored_copy_hold_the_same() {
    let server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let mut con = server.connection();
    assert_eq!(ints(&mut con, "RL.GCRA k 10 5 1h COST 4")[..3], [0, 11, 7]);
    let before = facts(&mut con);

    text(&mut con, "DEBUG RELOAD");
    assert_eq!(facts(&mut con), before, "after DEBUG RELOAD");

    rewrite_aof(&mut con);
    text(&mut con, "DEBUG LOADAOF");
    assert_eq!(facts(&mut con), before, "after BGREWRITEAOF");

    let Value::BulkString(dump) = call(&mut con, &["DUMP", "k"]).unwrap() else { panic!("no dump") };
    call_bytes(&mut con, &[b"RESTORE", b"copy", b"0", &dump]).unwrap();
    assert_eq!(call(&mut con, &["DUMP", "copy"]).unwrap(), Value::BulkString(dump));
    // A restored key has no expiry until it is next charged, and a digest depends on whether a key has one.
    assert_eq!(ints(&mut con, "PTTL copy"), [-1]);
    text(&mut con, "PEXPIRE copy 3600000");
    let digest = text(&mut con, "DEBUG DIGEST-VALUE k copy");
    let (one, other) = digest.trim_matches(['[', ']']).split_once(", ").unwrap();
    assert_eq!(one, other);
    text(&mut con, "PERSIST copy");
    assert_eq!(ints(&mut con, "RL.GCRA copy 10 5 1h")[..3], [0, 11, 6]);
    assert!(ints(&mut con, "PTTL copy")[0] > 0);
}

/// What Redis' own test compares: the value, its deadline, and the digest of all.
fn facts(con: &mut Connection) -> [Value; 3] {
    [["DUMP", "k"], ["PEXPIRETIME", "k"], ["DEBUG", "DIGEST"]].map(|words| call(con, &words).unwrap())
}

// Redis gcra.tcl: the replica runs an internal command that sets the value, never the one that decides.
#[test]
fn a_replica_is_told_the_effect_and_never_decides() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&["--propagation-error-behavior", "panic"]);
    let mut con = primary.connection();
    assert_eq!(ints(&mut con, "RL.GCRA k 2 1 1000s COST 2")[..3], [0, 3, 1]);
    assert_eq!(ints(&mut con, "RL.GCRA k 2 1 1000s COST 2")[..3], [1, 3, 1]);
    sync(&primary, &replica);

    let mut copy = replica.connection();
    let counts = text(&mut copy, "INFO commandstats").to_lowercase();
    assert!(counts.contains("cmdstat_rl.apply:calls=1,"), "{counts}");
    assert!(!counts.contains("cmdstat_rl.gcra"), "{counts}");
    assert_eq!(facts(&mut copy)[..2], facts(&mut con)[..2]);
}

// throttled-py: limit ≤ admitted ≤ limit + (elapsed + 2) · rate, whatever the clients do.
#[test]
fn many_clients_at_once_get_what_the_limit_allows() {
    const CLIENTS: u32 = 4;
    const CALLS_EACH: u32 = 1_000;
    let server = Server::start(&[]);
    for per_minute in [1_u32, 10, 100, 1000] {
        let line = format!("RL.TOKENBUCKET k{per_minute} {per_minute} {per_minute} 1m");
        let began = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (mut con, line) = (server.connection(), line.clone());
                thread::spawn(move || (0..CALLS_EACH).filter(|_| ints(&mut con, &line)[0] == 0).count())
            })
            .collect();
        let admitted: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        // A token that was being earned when the clock started is the source's allowance, and not needed here.
        let earned =
            began.elapsed().max(Duration::from_millis(1)).as_secs_f64() * f64::from(per_minute) / 60.0;
        let most = f64::from(per_minute) + earned;
        let admitted = f64::from(u32::try_from(admitted).unwrap());
        assert!(
            f64::from(per_minute) <= admitted && admitted <= most,
            "{admitted} of {per_minute} a minute, at most {most}"
        );
    }
}
