//! What the arithmetic costs without a server: each limiter's decisions and bytes, logs and lease tables by length.

// A bench that goes wrong panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{Leases, Log};
use ratelimit_core::{AnyLimiter, LimitSet, Limiter, Period, Span, State, Time, with_limiter};
use ratelimit_language::{Arguments, Bounds, FORMS, Request, find, shed};

const LENGTHS: [u64; 4] = [1, 100, 10_000, 100_000];
const BOUNDS: Bounds = Bounds::DEFAULT;

/// Calls of each form that admit a request every ten milliseconds, for ever.
fn generous() -> Vec<String> {
    let lines = lines(30_000, 60_000, "holder", "SLIDINGWINDOW 30000 1m PRECISION 1s");
    // A calendar has no shorter window than an hour.
    lines.into_iter().map(|line| line.replace(" 30000 HOUR", " 360000 HOUR")).collect()
}

/// Calls of each form that admit one request an hour, by this id.
fn strict(id: &str) -> Vec<String> {
    lines(1, 3_600_000, id, "SLIDINGWINDOW 1 1h PRECISION 1m")
}

/// Each form, and a window of 60 sub-buckets: the form has ten.
fn lines(limit: u64, period: u64, id: &str, precise: &str) -> Vec<String> {
    let forms = FORMS.iter().map(|form| form.words(limit, period, id));
    forms.chain([precise.into()]).map(|words| format!("RL.{words}")).collect()
}

/// This many milliseconds after the start of an hour in 2023.
fn at(millis: u64) -> Time {
    Time::from_millis(1_700_002_800_000 + millis)
}

fn parse(line: &str) -> AnyLimiter<'_> {
    let (name, parameters) = line.strip_prefix("RL.").and_then(|line| line.split_once(' ')).expect("a call");
    let words: Vec<&[u8]> = parameters.split(' ').map(str::as_bytes).collect();
    let row = find(name.as_bytes()).expect("a limiter");
    (row.parse)(&mut Arguments::new(&words, BOUNDS), &mut Request::default()).expect(line)
}

/// What a command does between opening its key and its reply: judge; charge, by way of the bytes that replicas get;
/// gauge. Returns whether it admitted.
fn decide<L: Limiter>(limiter: &L, state: &mut L::State, now: Time, journal: &mut Vec<u8>) -> bool {
    let verdict = limiter.judge(state, now, 1);
    if verdict.admits() || limiter.capabilities().counts_refused {
        charge(limiter, state, now, journal);
    }
    black_box((verdict, limiter.gauge(state, now)));
    verdict.admits()
}

fn charge<L: Limiter>(limiter: &L, state: &mut L::State, now: Time, journal: &mut Vec<u8>) {
    journal.clear();
    L::State::encode_change(&limiter.charge(state, now, 1), journal);
    state.apply(L::State::decode_change(&mut Reader::new(journal)).expect("a change"));
}

fn decisions(c: &mut Criterion) {
    for line in generous() {
        with_limiter!(parse(&line), limiter => admit(c, &line, &limiter));
    }
    for (line, holder) in strict("other").iter().zip(strict("holder")) {
        let taken = with_limiter!(parse(&holder), limiter => written(&state_after(&limiter, 1)));
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

/// The state after this many calls, one every ten milliseconds. They are charged also by a penalty that then bans.
fn state_after<L: Limiter>(limiter: &L, calls: u64) -> L::State {
    let mut state = limiter.fresh(at(0));
    for call in 1..=calls {
        charge(limiter, &mut state, at(10 * call), &mut Vec::new());
    }
    state
}

fn codings(c: &mut Criterion) {
    for line in generous() {
        with_limiter!(parse(&line), limiter => code(c, &line, &state_after(&limiter, 100)));
    }
    let report = shed(&mut Arguments::new(&[b"0.9"], BOUNDS)).expect("a report");
    let amount = report.shed.report(&report.shed.fresh(at(0)), at(10), report.utilization);
    code(c, "RL.SHED 0.9", &amount);
    let mut set = LimitSet::blank();
    for line in &generous()[..3] {
        with_limiter!(parse(line), limiter => join(&mut set, &limiter));
    }
    code(c, "RL.MULTI of three", &set);
}

fn join<L: Limiter>(set: &mut LimitSet, limiter: &L) {
    let fresh = limiter.fresh(at(0));
    set.apply_to::<L::State>(limiter.name().length, limiter.charge(&fresh, at(0), 1));
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

/// A log stays as long as its window in milliseconds: each new entry drops an old one.
fn logs(c: &mut Criterion) {
    let mut group = c.benchmark_group("RL.SLIDINGLOG");
    for length in LENGTHS {
        let line = format!("RL.SLIDINGLOG 1000000 {length}ms");
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

/// A table holds as many leases as each lasts milliseconds: whenever one is taken, another one ends.
fn leases(c: &mut Criterion) {
    let mut group = c.benchmark_group("RL.CONCURRENT");
    for length in LENGTHS {
        let ttl = |millis| Period::of(Span::from_millis(millis)).expect("a length above zero");
        let (ttl, longer) = (ttl(length), ttl(length + 1));
        let mut journal = Vec::new();
        let mut ask = |leases: &mut Leases, id: u64, millis: u64, limit: u64, ttl: Period| {
            decide(&Concurrent::plain(limit, ttl, &id.to_be_bytes()), leases, at(millis), &mut journal)
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
        // The ids go round: the lease that would end next is renewed and ends last. There is no room for another id.
        let mut table: Leases = read(&full);
        let mut next = 0..;
        group.bench_function(BenchmarkId::new("renew", length), |b| {
            b.iter(|| {
                let turn: u64 = next.next().expect("no end of turns");
                assert!(ask(&mut table, turn % length, length - 1 + turn, length, longer));
            });
        });
    }
}

/// A tenth of the usual time: enough to see how costs grow, and what costs twice as much as before.
fn brief() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = brief(); targets = decisions, codings, logs, leases }
criterion_main!(benches);
