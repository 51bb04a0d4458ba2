//! Keys of the module among the server's commands for keys of any kind: copies, dumps, expiry, digests.

use redis::Connection;

use crate::support::{SECOND, Server, T0, call_bytes, dump_bytes, ints, multi, text, wait_for};

/// An instant in 2049, in microseconds: later than any server's clock.
const LATE: u64 = 2_500_000_000_000_000;

/// One key of each kind, by its name, made as of now.
const KEYS: [(&str, &str, &str); 10] = [
    ("tb", "RL.TOKENBUCKET tb 10 1 1m COST 4", "TOKENBUCKET 10 1 1m"),
    ("batch", "RL.TOKENBUCKET batch 10 2 1m BATCH COST 4", "TOKENBUCKET 10 2 1m BATCH"),
    ("gcra", "RL.GCRA gcra 9 1 1m COST 4", "GCRA 9 1 1m"),
    ("sw", "RL.SLIDINGWINDOW sw 10 1h COST 4", "SLIDINGWINDOW 10 1h"),
    ("swp", "RL.SLIDINGWINDOW swp 10 1h PRECISION 1m COST 4", "SLIDINGWINDOW 10 1h PRECISION 1m"),
    ("water", "RL.LEAKYBUCKET water 10 1 1m COST 4", "LEAKYBUCKET 10 1 1m"),
    ("window", "RL.FIXEDWINDOW window 10 1h COST 4", "FIXEDWINDOW 10 1h"),
    ("aligned", "RL.FIXEDWINDOW aligned 10 10000d ALIGNED COST 4", "FIXEDWINDOW 10 10000d ALIGNED"),
    ("log", "RL.SLIDINGLOG log 10 1h COST 4", "SLIDINGLOG 10 1h"),
    ("lease", "RL.CONCURRENT lease 10 1h a COST 4", "CONCURRENT 10 1h b"),
];

fn make_all(con: &mut Connection) {
    for (_, make, _) in KEYS {
        assert_eq!(ints(con, make)[0], 0);
    }
}

fn remaining(con: &mut Connection, key: &str, limiter: &str) -> i64 {
    ints(con, &format!("RL.PEEK {key} {limiter}"))[2]
}

#[test]
fn copies_renamed_moved_and_restored_keys_are_the_same_limiter() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    make_all(con);
    for (key, _, limiter) in KEYS {
        let before = remaining(con, key, limiter);
        let bytes = dump_bytes(con, key);
        let digest = text(con, &format!("DEBUG DIGEST-VALUE {key}"));

        text(con, &format!("COPY {key} copy"));
        assert_eq!(dump_bytes(con, "copy"), bytes, "{key}");
        assert_eq!(text(con, "PEXPIRETIME copy"), text(con, &format!("PEXPIRETIME {key}")));
        assert_eq!(text(con, "DEBUG DIGEST-VALUE copy"), digest);
        // A charge of the copy leaves the original alone.
        ints(con, &format!("RL.{}", limiter.replacen(' ', " copy ", 1)));
        assert_ne!(dump_bytes(con, "copy"), bytes);
        assert_ne!(text(con, "DEBUG DIGEST-VALUE copy"), digest);
        assert_eq!(dump_bytes(con, key), bytes);

        call_bytes(con, &[b"RESTORE", b"restored", b"0", &bytes]).unwrap();
        assert_eq!(dump_bytes(con, "restored"), bytes);
        assert_eq!(remaining(con, "restored", limiter), before);
        // Restored without a time to live, it gets one by its next charge.
        assert_eq!(text(con, "PTTL restored"), "-1");
        ints(con, &format!("RL.{}", limiter.replacen(' ', " restored ", 1)));
        assert_ne!(text(con, "PTTL restored"), "-1", "{key}");

        text(con, &format!("RENAME {key} renamed"));
        text(con, "MOVE renamed 5");
        text(con, "SELECT 5");
        assert_eq!(dump_bytes(con, "renamed"), bytes);
        assert_eq!(remaining(con, "renamed", limiter), before);
        text(con, "SELECT 0");
        text(con, "FLUSHALL");
        make_all(con);
    }
}

/// A limit of every kind, all on one key.
#[test]
fn a_key_with_limits_of_all_kinds_is_told_of_and_restored_as_it_is() {
    let limits = [
        ("TOKENBUCKET 10 1 1h", "TOKENBUCKET, mode, continuous"),
        ("TOKENBUCKET 10 2 1h BATCH", "TOKENBUCKET, mode, batch"),
        ("GCRA 9 1 1h", "GCRA, mode, plain"),
        ("SLIDINGWINDOW 10 1h", "SLIDINGWINDOW, mode, weighted"),
        ("SLIDINGWINDOW 10 1h PRECISION 1m", "SLIDINGWINDOW, mode, precision"),
        ("CONCURRENT 10 1h id", "CONCURRENT, mode, leases"),
        ("LEAKYBUCKET 10 1 1h", "LEAKYBUCKET, mode, queue"),
        ("FIXEDWINDOW 10 1h", "FIXEDWINDOW, mode, opened"),
        ("FIXEDWINDOW 10 1h ALIGNED", "FIXEDWINDOW, mode, aligned"),
        ("UNIFORM 1h", "UNIFORM, mode, gate"),
        ("SMOOTH 10 1h", "SMOOTH, mode, bursty"),
        ("SMOOTH 10 1h WARMUP 1h", "SMOOTH, mode, warming"),
        ("SLIDINGLOG 10 1h", "SLIDINGLOG, mode, log"),
    ];
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let named = limits.map(|(limit, _)| format!(" LIMIT {limit}")).concat();
    let (all, each) = multi(con, &format!("RL.MULTI 1 all AT {T0}{named}"));
    assert_eq!((all[0], each.len()), (0, limits.len()));
    let told = text(con, "RL.INFO all");
    assert!(told.starts_with("[limiter, MULTI, mode, several, stored_limits, 13, "), "{told}");
    for (limit, kind) in limits {
        // Each lease has a length of its own.
        let length = if kind.starts_with("CONCURRENT") { "" } else { "length_ms, 3600000, " };
        let limiter = format!("[limiter, {kind}, {length}");
        assert_eq!(told.matches(&limiter).count(), 1, "{limit}: {told}");
    }
    let usage: i64 = text(con, "MEMORY USAGE all").parse().unwrap();
    assert!((1000..2000).contains(&usage), "{usage}");

    let bytes = dump_bytes(con, "all");
    call_bytes(con, &[b"RESTORE", b"two", b"0", &bytes]).unwrap();
    assert_eq!(dump_bytes(con, "two"), bytes);
    assert_eq!(text(con, "MEMORY USAGE two SAMPLES 0"), text(con, "MEMORY USAGE all SAMPLES 0"));
    let told_of = |told: &str| told.split(", expires_at_ms").next().unwrap().to_string();
    assert_eq!(told_of(&text(con, "RL.INFO two")), told_of(&told));
    let probe = |key: &str| format!("RL.MULTIPEEK 1 {key} AT {T0}{named}");
    assert_eq!(multi(con, &probe("two")), multi(con, &probe("all")));
}

#[test]
fn an_expiry_moves_seldom_and_no_key_in_use_expires() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (limit, step, expected) in [
        // Every two seconds: the slack of ten seconds lasts for four calls. Every 2.4 seconds: for the next one, too.
        ("RL.GCRA sporadic 9 10 1s", 2 * SECOND, 15),
        ("RL.GCRA seldom 9 10 1s", 12 * SECOND / 5, 15),
        // 1,000 a day and 10 an hour, asked every ten seconds: each move makes the expiry half as long again.
        ("RL.GCRA daily 999 1000 1d", 10 * SECOND, 10),
        ("RL.GCRA hourly 99 10 1h", 10 * SECOND, 9),
        // A window of a minute, asked every twenty seconds; a log and a lease of an hour, once a minute.
        ("RL.FIXEDWINDOW window 100 1m", 20 * SECOND, 20),
        ("RL.SLIDINGLOG log 100 1h", 60 * SECOND, 2),
        ("RL.CONCURRENT lease 1 1h a", 60 * SECOND, 2),
    ] {
        let key = limit.split(' ').nth(1).unwrap();
        let (mut moves, mut expiry) = (0, 0);
        for call in 0..60 {
            let now = LATE + call * step;
            assert!(call == 0 || expiry * 1000 > now, "{limit}: call {call} would find the key expired");
            assert_eq!(ints(con, &format!("{limit} AT {now}"))[0], 0, "{limit}: call {call}");
            let after: u64 = text(con, &format!("PEXPIRETIME {key}")).parse().unwrap();
            moves += u32::from(after != expiry);
            expiry = after;
        }
        assert_eq!(moves, expected, "{limit}");
    }
}

#[test]
fn what_was_loaded_remembers_no_expiry_and_an_aof_brings_back_the_same() {
    let server = Server::start(&["--appendonly", "yes"]);
    let con = &mut server.connection();
    let expires = |con: &mut Connection, key: &str| text(con, &format!("PEXPIRETIME {key}"));
    // The expiry is a window and half a window away. In the window no charge moves it.
    let charge =
        |key: &str, second: u64| format!("RL.FIXEDWINDOW {key} 100 1m AT {}", LATE + second * SECOND);
    ints(con, &charge("key", 0));
    let dump = dump_bytes(con, "key");
    call_bytes(con, &[b"RESTORE", b"loaded", b"0", &dump]).unwrap();
    ints(con, &charge("loaded", 59));
    assert_eq!(expires(con, "loaded"), (LATE / 1000 + 70_000).to_string());
    text(con, "PERSIST key");
    ints(con, &charge("key", 59));
    text(con, "DEBUG LOADAOF");
    ints(con, &charge("key", 59));
    assert_eq!(expires(con, "key"), "-1");
    assert_eq!(expires(con, "loaded"), (LATE / 1000 + 70_000).to_string());
}

#[test]
fn a_key_expires_by_the_servers_clock_whatever_the_caller_says() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // The events are years old. The reset is 100 ms, and the slack ten seconds.
    let event = |micros: u64| format!("RL.GCRA key 0 1 100ms AT {}", T0 + micros);
    assert_eq!(ints(con, &event(0))[0], 0);
    assert_eq!(ints(con, &event(50_000))[0], 1);
    let ttl: i64 = text(con, "PTTL key").parse().unwrap();
    assert!((0..=10_101).contains(&ttl), "{ttl}");
    text(con, "PEXPIRE key 1");
    wait_for("the expiry", || text(con, "EXISTS key") == "0");
    assert_eq!(ints(con, &event(50_000))[0], 0, "a fresh limiter");
}
