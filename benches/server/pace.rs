//! The traffic that users have, on the real clock: 50,000 calls a second, by how often one key is asked.
//!
//! The calls come at a fixed pace, in pipelines, to one key after another. The CPU time of the server's main thread
//! includes its cron, which expires keys. What a replica is sent is measured in a second pass.

use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Connection;

use super::audience::Audience;
use super::cpu::{against_set_px, hundredths, in_rounds};
use super::load::{PIPELINE, Tally, check, fill, loaded, pipeline};
use super::lua;
use super::row::{Answer, PLAIN, Row};
use super::{Result, Selection, grouped, median_and_range, spread};
use ratelimit_testing::{info, main_thread_seconds};

/// Calls a second.
const PACE: u32 = 50_000;
/// No key is asked twice.
const NO_KEY_TWICE: u32 = u32::MAX;

/// How often each key is asked.
struct Traffic {
    keys: u32,
    /// Seconds before the measurement. By then the server expires as many keys as the calls make.
    warm_up: u32,
    /// The first is what the others are compared with. The script's keys never expire.
    rows: [Row; 3],
    /// The most that the limiter may cost, next to `SET PX`.
    most: Option<f64>,
}

const fn row(name: &'static str, call: &'static str) -> Row {
    Row { name, call, ..PLAIN }
}

const fn gcra(name: &'static str, call: &'static str) -> Row {
    Row { answer: Answer::Admitted, ..row(name, call) }
}

const fn script(name: &'static str, call: &'static str) -> Row {
    // It replies how long to wait.
    Row { script: lua::GCRA, ..row(name, call) }
}

const TRAFFIC: [Traffic; 4] = [
    // A thousand keys, each asked fifty times a second.
    Traffic {
        keys: 1000,
        warm_up: 4,
        rows: [
            row("SET PX hot", "SET key:# 1 PX 1100"),
            gcra("RL.GCRA hot", "RL.GCRA key:# 500 100 1s"),
            script("Lua GCRA hot", "EVALSHA $SHA 1 key:# 10000"),
        ],
        most: None,
    },
    // Each key is asked every two seconds. Between two calls the limit is fully reset.
    Traffic {
        keys: 2 * PACE,
        warm_up: 4,
        rows: [
            row("SET PX sporadic", "SET key:# 1 PX 1100"),
            gcra("RL.GCRA sporadic", "RL.GCRA key:# 9 10 1s"),
            script("Lua GCRA sporadic", "EVALSHA $SHA 1 key:# 100000"),
        ],
        most: Some(0.9),
    },
    // Ten an hour, each key asked every two seconds. So the reset grows by six minutes a call.
    Traffic {
        keys: 2 * PACE,
        warm_up: 4,
        rows: [
            row("SET PX slow", "SET key:# 1 PX 3600000"),
            gcra("RL.GCRA slow", "RL.GCRA key:# 100000 10 1h"),
            script("Lua GCRA slow", "EVALSHA $SHA 1 key:# 360000000"),
        ],
        most: None,
    },
    Traffic {
        keys: NO_KEY_TWICE,
        warm_up: 12,
        rows: [
            row("SET PX cold", "SET key:# 1 PX 1100"),
            gcra("RL.GCRA cold", "RL.GCRA key:# 9 10 1s"),
            script("Lua GCRA cold", "EVALSHA $SHA 1 key:# 100000"),
        ],
        most: None,
    },
];

/// One row in one round.
struct Figures {
    micros: f64,
    expired_per_second: f64,
    calls_per_second: f64,
    /// What a replica is sent for each call, if there is one.
    bytes: f64,
}

/// Prints the table; returns how many rows failed.
pub fn run(rounds: usize, seconds: u32, selection: &Selection<'_>) -> usize {
    let selected = |traffic: &&Traffic| traffic.rows.iter().any(|row| selection.has(row.name));
    let traffic: Vec<&Traffic> = TRAFFIC.iter().filter(selected).collect();
    if traffic.is_empty() {
        return 0;
    }
    println!(
        "\nServer CPU per call at {} calls a second for {seconds} s: median (lowest to highest) of {rounds} rounds",
        grouped(PACE.into())
    );
    println!(
        "{:<20} {:>8}  {:<24} {:<26} {:>14} {:>16}  calls a second",
        "call", "us", "x SET PX", "target", "expired a second", "bytes to replica"
    );
    traffic.into_iter().map(|traffic| lines(rounds, seconds, traffic)).sum()
}

/// Measures and prints the rows of one traffic; returns how many failed.
fn lines(rounds: usize, seconds: u32, traffic: &Traffic) -> usize {
    let rows = traffic.rows.each_ref();
    let alone = in_rounds(rounds, &rows, |row| measure(row, traffic, seconds, Audience::Nobody));
    let with_replica = in_rounds(1, &rows, |row| measure(row, traffic, seconds, Audience::ReplicaAndAof));
    let mut failed = 0;
    for ((row, own), sent) in rows.iter().zip(&alone).zip(&with_replica) {
        match (&alone[0], own, sent) {
            (Ok(set_px), Ok(own), Ok(sent)) => {
                let most = traffic.most.filter(|_| row.name.starts_with("RL."));
                println!("{:<20} {}", row.name, columns(most, set_px, own, &sent[0]));
            }
            (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => {
                failed += 1;
                println!("{:<20} ERROR, not measured: {error}", row.name);
            }
        }
    }
    failed
}

fn columns(most: Option<f64>, set_px: &[Figures], own: &[Figures], sent: &Figures) -> String {
    let median = |part: fn(&Figures) -> f64| spread(own.iter().map(part).collect()).0;
    let ratios: Vec<f64> = own.iter().zip(set_px).map(|(own, set_px)| own.micros / set_px.micros).collect();
    let target = against_set_px(&ratios, most);
    let pace = |figures: &Figures| whole(figures.calls_per_second);
    // The slowest of both passes. A hundredth less is still the pace.
    let slowest = own.iter().chain([sent]).map(pace).min().unwrap_or_default();
    let late = if slowest < u64::from(PACE) * 99 / 100 {
        format!(", not {}", grouped(PACE.into()))
    } else {
        String::new()
    };
    format!(
        "{:>8.2}  {:<24} {target:<26} {:>14} {:>16.1}  {}{late}",
        median(|figures| figures.micros),
        median_and_range(ratios, hundredths),
        grouped(whole(median(|figures| figures.expired_per_second))),
        sent.bytes,
        grouped(slowest),
    )
}

fn measure(row: &Row, traffic: &Traffic, seconds: u32, audience: Audience<'_>) -> Result<Figures> {
    let (server, _replica) = audience.start()?;
    let mut con = server.connection();
    let call = row.call.replace("$SHA", &loaded(&mut con, row.script)?);
    let (first, calls) = (traffic.warm_up * PACE, seconds * PACE);
    make(&mut con, row, &call, traffic.keys, 0..first)?;

    let tally = Tally::read(&mut con, row)?;
    let before = counters(&mut con)?;
    let took = make(&mut con, row, &call, traffic.keys, first..first + calls)?.as_secs_f64();
    let after = counters(&mut con)?;
    Tally::read(&mut con, row)?.check_since(&tally, row, calls)?;
    audience.check(&server)?;
    let [cpu, expired, bytes] = [0, 1, 2].map(|place| after[place] - before[place]);
    let count = f64::from(calls);
    Ok(Figures {
        micros: cpu * 1e6 / count,
        expired_per_second: expired / took,
        calls_per_second: count / took,
        bytes: bytes / count,
    })
}

/// Makes the calls of these numbers at their pace, or as fast as the server replies; returns how long that took.
fn make(con: &mut Connection, row: &Row, call: &str, keys: u32, calls: Range<u32>) -> Result<Duration> {
    let started = Instant::now();
    for first in calls.clone().step_by(PIPELINE as usize) {
        let due = started + Duration::from_secs((first - calls.start).into()) / PACE;
        sleep(due.saturating_duration_since(Instant::now()));
        let batch = PIPELINE.min(calls.end - first);
        pipeline(con, batch, |i| fill(call, first + i, keys), |reply| check(row, reply))?;
    }
    Ok(started.elapsed())
}

/// Seconds of the main thread, expired keys, bytes of the replication stream.
fn counters(con: &mut Connection) -> Result<[f64; 3]> {
    let mut counter = |section, field| -> Result<f64> {
        Ok(info(con, section, field).ok_or_else(|| format!("no {field}"))?.parse()?)
    };
    let (expired, bytes) = (counter("stats", "expired_keys")?, counter("replication", "master_repl_offset")?);
    Ok([main_thread_seconds(con), expired, bytes])
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and far below 2^53"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
