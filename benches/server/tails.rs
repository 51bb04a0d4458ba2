//! How long callers wait for a reply while calls come at a fixed rate, from the time at which each call was due.
//!
//! A generator that waits for a reply before it sends the next call sends fewer while the server is late, and so leaves out
//! just the calls that would have waited (*coordinated omission*). Here each call has its time beforehand and is sent then,
//! whatever came back, and its wait begins at that time even if the generator itself is late. One thread sends and reads
//! without ever sleeping, so the server has the other cores.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::audience::Audience;
use super::cpu::in_rounds;
use super::load::{Size, Tally, check, fill, prepare};
use super::row::Row;
use super::rows;
use super::{Result, Selection, grouped, median_and_range};
use ratelimit_testing::client::Client;

const CONNECTIONS: u32 = 20;
const KEYS: u32 = 100_000;
/// The first calls of a round, which are not counted: the server's memory and caches fill meanwhile.
const WARM_UP: u32 = 5_000;
/// The waits that are shown, by how many of a thousand are at most as long.
const PARTS: [(&str, usize); 4] = [("p50", 500), ("p99", 990), ("p99.9", 999), ("longest", 1000)];
/// The rows that are shown by default.
const TOLD: &[&str] = &[
    "INCR",
    "SET PX",
    "RL.GCRA admitted",
    "RL.GCRA admitted, one hot key",
    "RL.GCRA refused",
    "RL.MULTI, three windows on one key",
    "Lua GCRA booking",
];
/// The most that the last replies may be late.
const PATIENCE: Duration = Duration::from_secs(30);

/// Prints the tables; returns how many rows failed.
pub fn run(rounds: usize, rate: u32, seconds: u32, selection: &Selection<'_>) -> usize {
    let rows: Vec<&Row> =
        rows::hot().filter(|row| TOLD.contains(&row.name) && selection.has(row.name)).collect();
    table("", Audience::Nobody, rounds, rate, seconds, &rows)
        + table(", with a replica and an AOF", Audience::ReplicaAndAof, rounds, rate, seconds, &rows)
}

fn table(with: &str, audience: Audience<'_>, rounds: usize, rate: u32, seconds: u32, rows: &[&Row]) -> usize {
    let measured = in_rounds(rounds, rows, |row| measure(row, audience, rate, seconds));
    println!(
        "\nMicroseconds from when a call was due to its reply, at {} calls a second for {seconds} s on {CONNECTIONS} connections{with}: median (lowest to highest) of {rounds} rounds",
        grouped(rate.into())
    );
    let heads = PARTS.map(|(head, _)| format!("{head:<26}")).concat();
    println!("{:<36} {}", "call", heads.trim_end());
    for (row, rounds) in rows.iter().zip(&measured) {
        match rounds {
            Ok(rounds) => {
                let column = |place: usize| {
                    let figures = rounds.iter().map(|round| round[place]).collect();
                    format!("{:<26}", median_and_range(figures, grouped))
                };
                let columns: String = (0..PARTS.len()).map(column).collect();
                println!("{:<36} {}", row.name, columns.trim_end());
            }
            Err(error) => println!("{:<36} ERROR, not measured: {error}", row.name),
        }
    }
    measured.iter().filter(|rounds| rounds.is_err()).count()
}

/// The parts of one round's waits, in microseconds.
fn measure(row: &Row, audience: Audience<'_>, rate: u32, seconds: u32) -> Result<[u64; PARTS.len()]> {
    let (server, _replica) = audience.start()?;
    let size = Size { connections: CONNECTIONS, pipeline: 1, keys: KEYS, calls: 0, most: 0 };
    let prepared = prepare(&server, row, size)?;
    let tally = Tally::read(&mut server.connection(), row)?;
    // With each connection, when the calls were due to which it has no reply yet.
    let mut clients: Vec<(Client, VecDeque<Instant>)> =
        (0..CONNECTIONS).map(|_| (Client::connect(server.port), VecDeque::new())).collect();
    let calls = WARM_UP + rate * seconds;
    // In no order that the server could know.
    let call = |i: u32| fill(prepared.call(), i.wrapping_mul(7919), KEYS);
    let started = Instant::now();
    let due = |i: u32| started + Duration::from_secs(1) * i / rate;
    let mut waits = Vec::with_capacity(calls as usize);
    let mut next = 0;
    while waits.len() < calls as usize {
        while next < calls && due(next) <= Instant::now() {
            let (client, waiting) = &mut clients[(next % CONNECTIONS) as usize];
            client.send(&call(next));
            waiting.push_back(due(next));
            next += 1;
        }
        for (client, waiting) in &mut clients {
            while let Some(due) = waiting.front()
                && let Some(reply) = client.poll()
            {
                waits.push(u64::try_from(due.elapsed().as_micros())?);
                waiting.pop_front();
                check(row, &reply)?;
            }
        }
        if due(calls) + PATIENCE < Instant::now() {
            return Err("replies are missing".into());
        }
    }
    Tally::read(&mut server.connection(), row)?.check_since(&tally, row, calls)?;
    audience.check(&server)?;
    let mut waits = waits.split_off(WARM_UP as usize);
    waits.sort_unstable();
    Ok(PARTS.map(|(_, part)| waits[(waits.len() - 1) * part / 1000]))
}
