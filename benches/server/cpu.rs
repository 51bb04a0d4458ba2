//! CPU time of the server's main thread per call, next to `INCR` and `SET key value PX ms`: of a server alone, and of
//! one that writes an AOF and feeds a replica.
//!
//! CPU times wander by a quarter from minute to minute. So each row is measured right after the two that it is
//! compared with, in rounds over all rows, and the table gives medians of the ratios, with the lowest and the highest.

use super::audience::Audience;
use super::baselines::{INCR, SET_PX};
use super::load::{PIPELINE, Size, put};
use super::row::Row;
use super::rows;
use super::{Result, Selection, median_and_range, spread};
use ratelimit_testing::call;

const SIZE: Size = Size { connections: 50, pipeline: PIPELINE, keys: 100_000, calls: 200_000, most: 200_000 };

/// The row with targets: the most that it may cost, next to `SET PX`.
const AIMED: &str = "RL.GCRA admitted";
const ALONE: f64 = 0.9;
const WITH_REPLICA_AND_AOF: f64 = 0.95;

/// One row in one round.
struct Figures {
    micros: f64,
    to_incr: f64,
    to_set_px: f64,
}

/// Prints both tables; returns how many rows failed.
pub fn run(rounds: usize, selection: &Selection<'_>) -> usize {
    let rows: Vec<&Row> = rows::hot().filter(|row| row.module.is_none() && selection.has(row.name)).collect();
    let writers: Vec<&Row> =
        rows.iter().copied().filter(|row| row.writes && row.name.starts_with("RL.")).collect();
    table("", rounds, &rows, Audience::Nobody, ALONE)
        + table(
            ", with a replica and an AOF",
            rounds,
            &writers,
            Audience::ReplicaAndAof,
            WITH_REPLICA_AND_AOF,
        )
}

fn table(with: &str, rounds: usize, rows: &[&Row], audience: Audience<'_>, aim: f64) -> usize {
    if rows.is_empty() {
        return 0;
    }
    let measured = in_rounds(rounds, rows, |row| measure(row, audience));
    println!("\nServer CPU per call{with}: median (lowest to highest) of {rounds} rounds");
    println!("{:<36} {:>8}  {:<24} {:<24} target", "call", "us", "x INCR", "x SET PX");
    for (row, figures) in rows.iter().zip(&measured) {
        match figures {
            Ok(figures) => {
                let part = |part: fn(&Figures) -> f64| figures.iter().map(part).collect::<Vec<f64>>();
                let (us, _, _) = spread(part(|figures| figures.micros));
                let incr = median_and_range(part(|figures| figures.to_incr), hundredths);
                let to_set_px = part(|figures| figures.to_set_px);
                let target = against_set_px(&to_set_px, (row.name == AIMED).then_some(aim));
                let set_px = median_and_range(to_set_px, hundredths);
                println!("{:<36} {us:>8.2}  {incr:<24} {set_px:<24} {target}", row.name);
            }
            Err(error) => println!("{:<36} ERROR, not measured: {error}", row.name),
        }
    }
    measured.iter().filter(|figures| figures.is_err()).count()
}

fn measure(row: &Row, audience: Audience<'_>) -> Result<Figures> {
    let (server, _replica) = audience.start()?;
    let mut con = server.connection();
    let mut fresh = |row: &Row| -> Result<f64> {
        call(&mut con, &["FLUSHALL", "SYNC"])?;
        put(&server, row, SIZE)
    };
    let (incr, set_px, micros) = (fresh(&INCR)?, fresh(&SET_PX)?, fresh(row)?);
    audience.check(&server)?;
    Ok(Figures { micros, to_incr: micros / incr, to_set_px: micros / set_px })
}

/// Measures all rows once in each round. The first error of a row is its result.
pub fn in_rounds<T>(
    rounds: usize,
    rows: &[&Row],
    measure: impl Fn(&Row) -> Result<T>,
) -> Vec<Result<Vec<T>>> {
    let mut measured: Vec<Result<Vec<T>>> = rows.iter().map(|_| Ok(Vec::new())).collect();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (row, figures) in rows.iter().zip(&mut measured) {
            let Ok(so_far) = figures else { continue };
            match measure(row) {
                Ok(one) => so_far.push(one),
                Err(error) => *figures = Err(error),
            }
        }
    }
    measured
}

/// The median of ratios to `SET PX` against a target, if there is one.
pub fn against_set_px(ratios: &[f64], most: Option<f64>) -> String {
    let Some(most) = most else { return String::new() };
    let (median, _, _) = spread(ratios.to_vec());
    let verdict = if median <= most { "met" } else { "missed" };
    format!("<= {most:.2} x SET PX: {verdict}")
}

pub fn hundredths(number: f64) -> String {
    format!("{number:.2}")
}
