//! What the thinking costs without a server: each limiter's decisions and bytes, logs and lease tables by length.

// What is wrong with a bench is found by the person who runs it, at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

// The library is a cdylib, which no Rust program can be linked against. So the core is compiled into this one, which
// uses a part of it; with its tests, as cargo has it for benches.
#[allow(dead_code, unused_imports, clippy::wildcard_imports)]
#[path = "../src/limit/mod.rs"]
mod limit;
#[allow(dead_code, unused_imports)]
#[path = "../src/time.rs"]
mod time;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

use limit::codec::Reader;
use limit::{
    AnyLimiter, Bounds, CATALOG, Concurrent, Leases, Limiter, Log, Request, Several, State, Words, find,
    parse_shed, with_limiter,
};
use time::{Span, Time};

/// The first admits a request every ten milliseconds, for ever; the second a single one, by `holder`.
const ROWS: &[(&str, &str)] = &[
    ("RL.TOKENBUCKET 500 100 1000", "RL.TOKENBUCKET 1 1 3600000"),
    ("RL.TOKENBUCKET 500 100 1000 BATCH", "RL.TOKENBUCKET 1 1 3600000 BATCH"),
    ("RL.LEAKYBUCKET 500 100 1000", "RL.LEAKYBUCKET 1 1 3600000"),
    ("RL.GCRA 500 100 1000", "RL.GCRA 0 1 3600000"),
    ("RL.FIXEDWINDOW 1000000 60000", "RL.FIXEDWINDOW 1 3600000"),
    ("RL.FIXEDWINDOW 1000000 60000 ALIGNED", "RL.FIXEDWINDOW 1 3600000 ALIGNED"),
    ("RL.SLIDINGWINDOW 1000000 60000", "RL.SLIDINGWINDOW 1 3600000"),
    ("RL.SLIDINGWINDOW 1000000 60000 PRECISION 1000", "RL.SLIDINGWINDOW 1 3600000 PRECISION 60000"),
    ("RL.SLIDINGLOG 1000000 1000", "RL.SLIDINGLOG 1 3600000"),
    ("RL.UNIFORM 10", "RL.UNIFORM 3600000"),
    ("RL.SMOOTH 100 1000", "RL.SMOOTH 1 3600000 MAXWAIT 0"),
    ("RL.SMOOTH 100 1000 WARMUP 4000", "RL.SMOOTH 1 3600000 WARMUP 4000 MAXWAIT 0"),
    ("RL.CONCURRENT 1000000 1000 holder", "RL.CONCURRENT 1 3600000 other"),
];
const LENGTHS: [u64; 4] = [1, 100, 10_000, 100_000];
const BOUNDS: Bounds = Bounds { leases: 1_000_000, log_entries: 1_000_000 };

/// So many milliseconds after the start of an hour in 2023.
fn at(millis: u64) -> Time {
    Time::from_millis(1_700_002_800_000 + millis)
}

fn parse(line: &str) -> AnyLimiter<'_> {
    let (name, parameters) = line.strip_prefix("RL.").and_then(|line| line.split_once(' ')).expect("a call");
    let words: Vec<&[u8]> = parameters.split(' ').map(str::as_bytes).collect();
    let row = find(name.as_bytes()).expect("a limiter");
    (row.parse)(&mut Words::new(&words, BOUNDS), &mut Request::default()).expect(line)
}

/// What a command does between opening its key and its reply: judge; charge, by way of the bytes that replicas get;
/// gauge. Whether it admitted.
fn decide<L: Limiter>(limiter: &L, state: &mut L::State, now: Time, journal: &mut Vec<u8>) -> bool {
    let verdict = limiter.judge(state, now, 1);
    if verdict.admits() {
        journal.clear();
        L::State::encode_change(&limiter.charge(state, now, 1), journal);
        state.apply(L::State::decode_change(&mut Reader::new(journal)).expect("a change"));
    }
    black_box((verdict, limiter.gauge(state, now)));
    verdict.admits()
}

fn decisions(c: &mut Criterion) {
    assert!(CATALOG.iter().all(|row| ROWS.iter().any(|(line, _)| line[3..].starts_with(row.name))));
    for (line, _) in ROWS {
        with_limiter!(parse(line), limiter => admit(c, line, &limiter));
    }
    for (_, line) in ROWS {
        let taken = line.replace("other", "holder");
        let taken = with_limiter!(parse(&taken), limiter => written(&state_after(&limiter, 1)));
        with_limiter!(parse(line), limiter => refuse(c, line, &limiter, &taken));
    }
}

fn admit<L: Limiter>(c: &mut Criterion, line: &str, limiter: &L) {
    let (mut state, mut journal, mut millis) = (limiter.fresh(at(0)), Vec::new(), 0);
    c.benchmark_group("admitted").bench_function(line, |b| {
        b.iter(|| {
            millis += 10;
            assert!(decide(limiter, &mut state, at(millis), &mut journal));
        });
    });
}

fn refuse<L: Limiter>(c: &mut Criterion, line: &str, limiter: &L, taken: &[u8]) {
    let (mut state, mut journal) = (read::<L::State>(taken), Vec::new());
    c.benchmark_group("refused").bench_function(line, |b| {
        b.iter(|| assert!(!decide(limiter, &mut state, black_box(at(20)), &mut journal)));
    });
}

/// The state after so many calls, one every ten milliseconds.
fn state_after<L: Limiter>(limiter: &L, calls: u64) -> L::State {
    let mut state = limiter.fresh(at(0));
    for call in 1..=calls {
        assert!(decide(limiter, &mut state, at(10 * call), &mut Vec::new()));
    }
    state
}

fn codings(c: &mut Criterion) {
    for (line, _) in ROWS {
        with_limiter!(parse(line), limiter => code(c, line, &state_after(&limiter, 100)));
    }
    let (shed, busy, _) = parse_shed(&mut Words::new(&[b"0.9"], BOUNDS)).expect("a shedder");
    code(c, "RL.SHED 0.9", &shed.report(&shed.fresh(at(0)), at(10), busy));
    let mut several = Several::blank();
    for (line, _) in &ROWS[..3] {
        with_limiter!(parse(line), limiter => join(&mut several, &limiter));
    }
    code(c, "RL.MULTI of three", &several);
}

fn join<L: Limiter>(several: &mut Several, limiter: &L) {
    let fresh = limiter.fresh(at(0));
    several.apply_to::<L::State>(limiter.span(), limiter.charge(&fresh, at(0), 1), |_| at(1));
}

fn code<S: State>(c: &mut Criterion, line: &str, state: &S) {
    let mut bytes = written(state);
    c.benchmark_group("encode").bench_function(line, |b| {
        b.iter(|| {
            bytes.clear();
            black_box(state).encode(&mut bytes);
        });
    });
    c.benchmark_group("decode").bench_function(line, |b| b.iter(|| read::<S>(black_box(&bytes))));
}

fn written<S: State>(state: &S) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

fn read<S: State>(bytes: &[u8]) -> S {
    S::decode(&mut Reader::new(bytes)).expect("what was just encoded")
}

/// A log stays as long as its window is in milliseconds: with each entry that comes one goes.
fn logs(c: &mut Criterion) {
    let mut group = c.benchmark_group("RL.SLIDINGLOG");
    for length in LENGTHS {
        let line = format!("RL.SLIDINGLOG 1000000 {length}");
        let AnyLimiter::SlidingLog(limiter) = parse(&line) else { panic!("{line} is no log") };
        let (mut log, mut journal) = (limiter.fresh(at(0)), Vec::new());
        let mut millis = 0..;
        let mut charge = |log: &mut Log| {
            let now = at(millis.next().expect("time goes on"));
            assert!(decide(&limiter, log, now, &mut journal));
        };
        (0..length).for_each(|_| charge(&mut log));
        let full = written(&log);
        assert_eq!(log.entries(log.start()), length);
        group.bench_function(BenchmarkId::new("count", length), |b| {
            b.iter(|| limiter.gauge(&log, black_box(at(length))));
        });
        group.bench_function(BenchmarkId::new("charge", length), |b| b.iter(|| charge(&mut log)));
        group.bench_function(BenchmarkId::new("drop after the end of all", length), |b| {
            let charge = |log: &mut Log| decide(&limiter, log, at(2 * length), &mut Vec::new());
            b.iter_batched_ref(|| read(&full), charge, BatchSize::LargeInput);
        });
    }
}

/// A table holds as many leases as they last milliseconds: with each that is taken one ends.
fn leases(c: &mut Criterion) {
    let mut group = c.benchmark_group("RL.CONCURRENT");
    for length in LENGTHS {
        let ttl = Span::from_millis(length);
        let mut journal = Vec::new();
        let mut ask = |leases: &mut Leases, id: u64, millis: u64, limit: u64, ttl: Span| {
            decide(&Concurrent { limit, ttl, id: &id.to_be_bytes() }, leases, at(millis), &mut journal)
        };
        let mut table = Leases::blank();
        for id in 0..length {
            assert!(ask(&mut table, id, id, length, ttl));
        }
        let full = written(&table);
        group.bench_function(BenchmarkId::new("refuse", length), |b| {
            b.iter(|| assert!(!ask(&mut table, u64::MAX, length - 1, length, ttl)));
        });
        let mut next = length..;
        group.bench_function(BenchmarkId::new("acquire", length), |b| {
            b.iter(|| {
                let id = next.next().expect("no end of ids");
                assert!(ask(&mut table, id, id, length, ttl));
            });
        });
        // The ids go round: what would end next is renewed to end last. There is no room: only who holds is admitted.
        let mut table: Leases = read(&full);
        let mut next = 0..;
        group.bench_function(BenchmarkId::new("renew", length), |b| {
            b.iter(|| {
                let turn: u64 = next.next().expect("no end of turns");
                assert!(ask(
                    &mut table,
                    turn % length,
                    length - 1 + turn,
                    length,
                    ttl.plus(Span::from_millis(1))
                ));
            });
        });
    }
}

/// A tenth of the usual time: what is looked for is an order of growth, and what costs twice as much as it did.
fn brief() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = brief(); targets = decisions, codings, logs, leases }
criterion_main!(benches);
