//! Sporadic traffic, on the real clock: 100,000 keys, each asked every two seconds under "10 per second". Between two
//! calls a limit is fully reset, and its key may expire.
//!
//! The calls come at a fixed pace, in pipelines, to one key after another. The CPU time of the server's main thread
//! includes its cron, which expires keys. What a replica is sent is measured in a second pass.

use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Connection;

use super::audience::Audience;
use super::cpu::{against_set_px, hundredths, in_rounds};
use super::load::{PIPELINE, Tally, check, fill, loaded, pipeline};
use super::lua;
use super::row::{Answer, PLAIN, Row};
use super::support::{info, main_thread_seconds};
use super::{Result, Selection, grouped, median_and_range, spread};

const KEYS: u32 = 100_000;
/// Calls a second.
const PACE: u32 = KEYS / 2;

/// The first is what the others are compared with. The script's keys never expire.
const ROWS: [&Row; 3] = [
    &Row { name: "SET PX sporadic", call: "SET key:# 1 PX 1100", ..PLAIN },
    &Row { name: "RL.GCRA sporadic", call: "RL.GCRA key:# 9 10 1000", answer: Answer::Admitted, ..PLAIN },
    &Row {
        name: "Lua GCRA sporadic",
        call: "EVALSHA $SHA 1 key:# 100000",
        script: lua::GCRA,
        answer: Answer::Admitted,
        ..PLAIN
    },
];
/// The row with a target: the most that it may cost, next to `SET PX`.
const AIMED: (&str, f64) = ("RL.GCRA sporadic", 0.9);

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
    if !ROWS.iter().any(|row| selection.has(row.name)) {
        return 0;
    }
    let alone = in_rounds(rounds, &ROWS, |row| measure(row, seconds, Audience::Nobody));
    let with_replica = in_rounds(1, &ROWS, |row| measure(row, seconds, Audience::ReplicaAndAof));

    println!(
        "\nServer CPU per call, sporadic traffic for {seconds} s: median (lowest to highest) of {rounds} rounds"
    );
    println!(
        "{:<20} {:>8}  {:<24} {:<26} {:>14} {:>16}  calls a second",
        "call", "us", "x SET PX", "target", "expired a second", "bytes to replica"
    );
    let mut failed = 0;
    for ((row, own), sent) in ROWS.iter().zip(&alone).zip(&with_replica) {
        match (&alone[0], own, sent) {
            (Ok(set_px), Ok(own), Ok(sent)) => {
                println!("{:<20} {}", row.name, columns(row, set_px, own, &sent[0]));
            }
            (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => {
                failed += 1;
                println!("{:<20} ERROR, not measured: {error}", row.name);
            }
        }
    }
    failed
}

fn columns(row: &Row, set_px: &[Figures], own: &[Figures], sent: &Figures) -> String {
    let median = |part: fn(&Figures) -> f64| spread(own.iter().map(part).collect()).0;
    let ratios: Vec<f64> = own.iter().zip(set_px).map(|(own, set_px)| own.micros / set_px.micros).collect();
    let (aimed, most) = AIMED;
    let target = against_set_px(&ratios, (row.name == aimed).then_some(most));
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

fn measure(row: &Row, seconds: u32, audience: Audience<'_>) -> Result<Figures> {
    let (server, _replica) = audience.start()?;
    let mut con = server.connection();
    let call = row.call.replace("$SHA", &loaded(&mut con, row.script)?);
    // Twice each key: by then the server expires as many keys as the calls make.
    ask(&mut con, row, &call, 2 * KEYS)?;

    let calls = seconds * PACE;
    let tally = Tally::read(&mut con, row)?;
    let before = counters(&mut con)?;
    let took = ask(&mut con, row, &call, calls)?.as_secs_f64();
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

/// Makes the calls at their pace, or as fast as the server replies; returns how long that took.
fn ask(con: &mut Connection, row: &Row, call: &str, calls: u32) -> Result<Duration> {
    let started = Instant::now();
    for first in (0..calls).step_by(PIPELINE as usize) {
        let due = started + Duration::from_secs(first.into()) / PACE;
        sleep(due.saturating_duration_since(Instant::now()));
        let batch = PIPELINE.min(calls - first);
        pipeline(con, batch, |i| fill(call, first + i, KEYS), |reply| check(row, reply))?;
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
