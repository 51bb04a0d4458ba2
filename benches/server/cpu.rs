//! CPU time of the server's main thread per call, next to `INCR` and `SET key value PX ms`: of a server alone, and of
//! one that writes an AOF and feeds a replica.
//!
//! CPU times wander by a quarter from minute to minute. So each row is measured right after the two that it is
//! compared with, in rounds over all rows, and the table gives medians of the ratios, with the lowest and the highest.

use super::baselines::{INCR, SET_PX};
use super::load::{PIPELINE, Size, put};
use super::row::{Answer, Row};
use super::rows;
use super::support::{Server, call};
use super::{Result, Selection};

const SIZE: Size = Size { connections: 50, pipeline: PIPELINE, keys: 100_000, calls: 200_000, most: 200_000 };

/// Who else hears of what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Nobody,
    /// A replica, and an AOF that is synced every second. A rewrite would be measured with whatever it falls on.
    ReplicaAndAof,
}

/// The most that a row may cost: by its name the ratio to `INCR`, and with an audience that of all to `SET PX`.
const TO_INCR: &[(&str, f64)] = &[("RL.GCRA admitted", 2.0), ("RL.GCRA refused", 1.5)];
const TO_SET_PX_WITH_AUDIENCE: f64 = 1.0;

/// One row in one round.
struct Figures {
    micros: f64,
    to_incr: f64,
    to_set_px: f64,
}

/// Prints both tables; returns how many rows failed.
pub fn run(rounds: usize, selection: &Selection<'_>) -> usize {
    let rows: Vec<&Row> = rows::all().filter(|row| row.module.is_none() && selection.has(row.name)).collect();
    // Who hears of it makes a difference only for what is written, once, by one command.
    let told = |row: &&Row| {
        row.name.starts_with("RL.")
            && [Answer::Admitted, Answer::AllAdmitted].contains(&row.answer)
            && !row.name.contains("PEEK")
    };
    let writers: Vec<&Row> = rows.iter().copied().filter(told).collect();
    table(rounds, &rows, Audience::Nobody) + table(rounds, &writers, Audience::ReplicaAndAof)
}

fn table(rounds: usize, rows: &[&Row], audience: Audience) -> usize {
    if rows.is_empty() {
        return 0;
    }
    let mut measured: Vec<Result<Vec<Figures>>> = rows.iter().map(|_| Ok(Vec::new())).collect();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (row, figures) in rows.iter().zip(&mut measured) {
            let Ok(so_far) = figures else { continue };
            match measure(row, audience) {
                Ok(one) => so_far.push(one),
                Err(error) => *figures = Err(error),
            }
        }
    }

    let with = match audience {
        Audience::Nobody => "",
        Audience::ReplicaAndAof => ", with a replica and an AOF",
    };
    println!("\nServer CPU per call{with}: median (lowest to highest) of {rounds} rounds");
    println!("{:<36} {:>8}  {:<24} {:<24} target", "call", "us", "x INCR", "x SET PX");
    for (row, figures) in rows.iter().zip(&measured) {
        match figures {
            Ok(figures) => {
                let (us, _, _) = spread(figures, |figures| figures.micros);
                let incr = ratio(figures, |figures| figures.to_incr);
                let set_px = ratio(figures, |figures| figures.to_set_px);
                let target = target(row, figures, audience);
                println!("{:<36} {us:>8.2}  {incr:<24} {set_px:<24} {target}", row.name);
            }
            Err(error) => println!("{:<36} ERROR, not measured: {error}", row.name),
        }
    }
    measured.iter().filter(|figures| figures.is_err()).count()
}

fn measure(row: &Row, audience: Audience) -> Result<Figures> {
    let args: &[&str] = match audience {
        Audience::Nobody => &[],
        Audience::ReplicaAndAof => {
            &["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
        }
    };
    let server = Server::start(args);
    let _replica = (audience == Audience::ReplicaAndAof).then(|| server.replica(&[]));
    let mut con = server.connection();
    let mut alone = |row: &Row| -> Result<f64> {
        call(&mut con, &["FLUSHALL", "SYNC"])?;
        put(&server, row, SIZE)
    };
    let (incr, set_px, micros) = (alone(&INCR)?, alone(&SET_PX)?, alone(row)?);
    Ok(Figures { micros, to_incr: micros / incr, to_set_px: micros / set_px })
}

/// The median against the target, if the row has one.
fn target(row: &Row, figures: &[Figures], audience: Audience) -> String {
    let (name, most, (median, _, _)) = match audience {
        Audience::Nobody => {
            let Some((_, most)) = TO_INCR.iter().find(|(name, _)| *name == row.name) else {
                return String::new();
            };
            ("INCR", *most, spread(figures, |figures| figures.to_incr))
        }
        Audience::ReplicaAndAof => {
            ("SET PX", TO_SET_PX_WITH_AUDIENCE, spread(figures, |figures| figures.to_set_px))
        }
    };
    let told = if median <= most { "met" } else { "missed" };
    format!("<= {most:.1} x {name}: {told}")
}

fn ratio(figures: &[Figures], part: impl Fn(&Figures) -> f64) -> String {
    let (median, lowest, highest) = spread(figures, part);
    format!("{median:.2} ({lowest:.2} to {highest:.2})")
}

fn spread(figures: &[Figures], part: impl Fn(&Figures) -> f64) -> (f64, f64, f64) {
    super::spread(figures.iter().map(part).collect())
}
