//! Memory: all of it is freed however a key ends, and `MEMORY USAGE` reports it. `RATELIMIT_MEMORY=long` takes a million
//! keys instead of a hundred thousand.

use std::thread;

use redis::Connection;

use crate::support::kinds::{KINDS, charge, flood, settled};
use crate::support::{Server, T0, info, ints, text, used_memory, wait_for};

/// The life of one key: charged twice, refused, joined by another limit and parted from it, given back.
fn live(number: usize) -> Vec<String> {
    let (kind, key) = (number % KINDS.len(), format!("key:{number:08}"));
    let (limiter, parameters) = KINDS[kind];
    let at = |millis: u64| format!("AT {}", T0 + 1000 * millis);
    if limiter == "MULTI" {
        let call = |cost: u64| format!("RL.MULTI 1 {key} COST {cost} {} {parameters}", at(0));
        return vec![call(1), call(8), call(8)];
    }
    let (first, now) = (charge(kind, &key, number), at(0));
    if parameters.contains("HOLD") {
        return held(&key, &first, number, at);
    }
    if limiter == "SHED" {
        return vec![format!("{first} {now}"), format!("{first} {}", at(60_000))];
    }
    let mut calls =
        vec![format!("{first} {now}"), format!("{first} COST 8 {now}"), format!("{first} COST 8 {now}")];
    if limiter == "SKETCH" {
        // It has a key to itself, and gives nothing back.
        calls.push(format!("{} {}", charge(kind, &key, number + 1), at(7_200_000)));
        return calls;
    }
    if limiter == "CONCURRENT" {
        calls.push(format!("{} {now}", charge(kind, &key, number + 1)));
        calls.push(format!("RL.RENEW {key} 2h lease:{number:08} {now}"));
        calls.push(format!("RL.RELEASE {key} lease:{:08} {now}", number + 1));
    }
    if !parameters.contains("COUNTREFUSED") {
        // The gate has faded a millisecond later, and the next charge leaves the first limit alone.
        let parameters = parameters.replace('#', &format!("{number:08}"));
        calls.push(format!("RL.MULTI 1 {key} {now} LIMIT UNIFORM 1ms"));
        // A penalty is charged when another limit of the call refuses.
        let refuses = if limiter == "PENALTY" { "LIMIT FIXEDWINDOW 1 1ms COST 2 " } else { "" };
        calls.push(format!("RL.MULTI 1 {key} {} {refuses}LIMIT {limiter} {parameters}", at(7_200_000)));
        if !["SMOOTH", "CONCURRENT"].contains(&limiter) {
            calls.push(format!("RL.REFUND {key} {limiter} {parameters} {}", at(7_200_000)));
            calls.push(format!("{first} {}", at(7_200_000)));
        }
    }
    calls
}

/// A key with holds of one limit and of two. One is settled, one ends, and the key is lone for a while.
fn held(key: &str, first: &str, number: usize, at: impl Fn(u64) -> String) -> Vec<String> {
    let several = "LIMIT FIXEDWINDOW 9 1h LIMIT SLIDINGLOG 9 1h";
    vec![
        format!("{first} {}", at(0)),
        format!("RL.MULTI 1 {key} COST 2 HOLD joined 5s {} {several}", at(0)),
        format!("RL.SETTLE {key} hold:{number:08} FIXEDWINDOW 9 1h COST 3 {}", at(1000)),
        format!("RL.MULTI 1 {key} {} {several}", at(5000)),
        format!("RL.MULTI 1 {key} COST 2 HOLD again 2h {} {several}", at(6000)),
        format!("RL.MULTISETTLE 1 {key} again COST 0 {} {several}", at(7000)),
        format!("RL.FIXEDWINDOW {key} 9 1h {}", at(7_200_000)),
        format!("RL.FIXEDWINDOW {key} 9 1h HOLD last 1m {}", at(7_200_000)),
    ]
}

/// How a key ends; `None` waits for the flush.
fn end(number: usize) -> Option<String> {
    let key = format!("key:{number:08}");
    match number / KINDS.len() % 5 {
        0 => Some(format!("DEL {key}")),
        1 => Some(format!("UNLINK {key}")),
        2 => Some(format!("PEXPIRE {key} 1")),
        3 => Some(format!("PEXPIREAT {key} 1000")),
        _ => None,
    }
}

#[test]
fn all_memory_comes_back_however_a_key_ends() {
    let keys = if std::env::var("RATELIMIT_MEMORY").as_deref() == Ok("long") { 1_000_000 } else { 100_000 };
    // A busy machine makes calls slow, and the server keeps the arguments of slow ones.
    let server =
        Server::start(&["--active-expire-effort", "10", "--hz", "100", "--slowlog-log-slower-than", "-1"]);
    let round = |keys: usize| {
        let con = &mut server.connection();
        flood(con, (0..keys).flat_map(live));
        assert_eq!(text(con, "DBSIZE"), keys.to_string());
        flood(con, (0..keys).filter_map(end));
        // What has expired goes by itself.
        let left = (0..keys).filter(|number| end(*number).is_none()).count();
        wait_for("what expired", || text(con, "DBSIZE") == left.to_string());
        text(con, "FLUSHALL ASYNC");
        wait_for("the freeing", || info(con, "memory", "lazyfree_pending_objects").unwrap() == "0");
    };
    // The first round leaves what is made once: tables, scripts of the server's, spare buffers.
    round(keys / 10);
    // The module asks for a setting within the first second, and the server keeps statistics of each command for good.
    wait_for("the look at the setting", || {
        info(&mut server.connection(), "ratelimit", "ratelimit_propagates").unwrap() == "0"
    });
    let before = settled(&server);
    round(keys);
    let after = settled(&server);
    println!("{keys} keys: {before} bytes used before, {after} after");
    // The least that a key could leave is a block of 8 bytes: 50 kB, were it those of one kind only, and 160 kB, were it
    // those that end in one way only. What the server keeps for itself, like statistics and the buffers of a
    // connection, is some kilobytes whatever the number of keys.
    assert!((after - before).abs() < 16 * 1024, "{before} before, {after} after");
}

#[test]
fn memory_usage_of_many_small_keys_is_what_the_allocator_gave() {
    let mut cases: Vec<Case> = Vec::new();
    for (kind, name) in KINDS.iter().enumerate() {
        let make = move |key: &str, number: usize| vec![charge(kind, key, number)];
        cases.push((format!("{name:?}"), 6000, Box::new(make)));
    }
    let log = |entries: u64| {
        move |key: &str, _: usize| -> Vec<String> {
            let line = |i: u64| format!("RL.SLIDINGLOG {key} 1000000 1h AT {}", T0 + 1000 * i);
            (0..entries).map(line).collect()
        }
    };
    // Ids come in no order, as those of requests do, or in theirs.
    let leases = |entries: u64, step: u64, width: usize| {
        move |key: &str, number: usize| -> Vec<String> {
            let id = |i: u64| format!("{:0>width$}", (i * step + number as u64) % 1_000_003);
            let line = |i: u64| format!("RL.CONCURRENT {key} 1000000 1h {} AT {}", id(i), T0 + 1000 * i);
            (0..entries).map(line).collect()
        }
    };
    let holds = |entries: u64, limits: u64| {
        move |key: &str, _: usize| -> Vec<String> {
            let limits = (1..=limits).map(|hours| format!(" LIMIT GCRA 9999 1 {hours}h"));
            let limits = limits.collect::<Vec<_>>().concat();
            let line = |i: u64| format!("RL.MULTI 1 {key} HOLD hold:{i:013} 1h AT {}{limits}", T0 + 1000 * i);
            (0..entries).map(line).collect()
        }
    };
    for (keys, entries, limits) in [(3000, 2, 1), (300, 50, 1), (50, 500, 3), (50, 300, 16), (1, 9000, 2)] {
        let what = format!("{entries} holds of {limits} limits");
        cases.push((what, keys, Box::new(holds(entries, limits))));
    }
    for (keys, entries) in [(4000, 1), (1000, 17), (300, 100), (50, 1000), (1, 100_000)] {
        cases.push((format!("a log of {entries}"), keys, Box::new(log(entries))));
        for (step, width) in
            [(7919, 18), (1, 18), (7919, 256)].into_iter().take(if keys == 1 { 1 } else { 3 })
        {
            let what = format!("a table of {entries} leases, ids of {width} bytes, steps of {step}");
            cases.push((what, keys, Box::new(leases(entries, step, width))));
        }
    }
    // The servers are at rest most of the time.
    let wrong: Vec<String> = thread::scope(|scope| {
        let cases = &cases;
        let part = |first| scope.spawn(move || wrong_of(cases.iter().skip(first).step_by(SERVERS)));
        let parts: Vec<_> = (0..SERVERS).map(part).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What it is, the number of keys, and the calls that make one.
type Case = (String, usize, Box<dyn Fn(&str, usize) -> Vec<String> + Sync>);

const SERVERS: usize = 4;

/// What is wrong in these cases, on a server of their own.
fn wrong_of<'c>(cases: impl Iterator<Item = &'c Case>) -> Vec<String> {
    let server = Server::start(&[]);
    // What the server takes for a key, its expiry and a module's value, and does not report: the same for all keys of the
    // module. (That of the smallest has bounds of its own below.)
    let uniform = || grown_and_told(&server, 6000, |key, _| vec![format!("RL.UNIFORM {key} 1h")]);
    // The first keys of a server also make its tables.
    uniform();
    let (grown, told) = uniform();
    let servers_own = grown - told;
    cases
        .filter_map(|(what, keys, make)| {
            let (grown, told) = grown_and_told(&server, *keys, make);
            within_a_tenth(what, told, grown - servers_own)
        })
        .collect()
}

/// Bytes per key by the allocator's account and by the key's own.
fn grown_and_told(server: &Server, keys: usize, make: impl Fn(&str, usize) -> Vec<String>) -> (i64, i64) {
    let before = settled(server);
    // A connection keeps room for requests as large as the last ones: it must be gone.
    let lines = (0..keys).flat_map(|number| make(&format!("key:{number:08}"), number));
    flood(&mut server.connection(), lines);
    let con = &mut server.connection();
    let grown = settled(server) - before;
    assert_eq!(text(con, "DBSIZE"), keys.to_string());
    let keys = i64::try_from(keys).unwrap();
    // Ids differ only in their digits.
    let told: i64 = text(con, "MEMORY USAGE key:00000000 SAMPLES 0").parse().unwrap();
    text(con, "FLUSHALL SYNC");
    (grown / keys, told)
}

/// What is wrong with what a key tells.
fn within_a_tenth(what: &str, told: i64, taken: i64) -> Option<String> {
    let line = format!("{what}: told {told}, took {taken}");
    println!("{line}");
    ((told - taken).abs() * 10 > taken).then_some(line)
}

#[test]
fn the_memory_of_large_tables_comes_back() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // The value of the smallest key is 64 bytes; servers differ in what they add for the key.
    ints(con, "RL.GCRA key 15 30 1m");
    let small: i64 = text(con, "MEMORY USAGE key").parse().unwrap();
    assert!((64..=64 + 64).contains(&small), "{small}");
    let round = |con: &mut Connection| {
        for i in 0..3000 {
            ints(con, &format!("RL.CONCURRENT table 100000 1h {i:0>256}"));
            ints(con, &format!("RL.RENEW table 1h {i:0>256}"));
            ints(con, &format!("RL.SLIDINGWINDOW swp:{} 100 1s PRECISION 10ms", i % 50));
        }
        text(con, "FLUSHALL SYNC");
    };
    round(con);
    let before = used_memory(con);
    round(con);
    let after = used_memory(con);
    assert!((after - before).abs() < 100_000, "{before} before, {after} after");
}
