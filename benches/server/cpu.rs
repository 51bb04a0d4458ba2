//! CPU time of the server's main thread per call, next to `INCR` and `SET key value PX ms`.
//!
//! CPU times wander by a quarter from minute to minute. So each row is measured right after the two that it is
//! compared with, in rounds over all rows, and the table gives medians of the ratios, with the lowest and the highest.

use super::load::{Size, put};
use super::rows::{INCR, ROWS, Row, SET_PX};
use super::support::{Server, call};
use super::{Result, Selection};

const SIZE: Size = Size { connections: 50, keys: 100_000, calls: 200_000, most: 200_000 };

/// One row in one round.
struct Figures {
    micros: f64,
    to_incr: f64,
    to_set_px: f64,
}

/// Prints the table; returns how many rows failed.
pub fn run(rounds: usize, selection: &Selection<'_>) -> usize {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| selection.has(row.name)).collect();
    let mut measured: Vec<Result<Vec<Figures>>> = rows.iter().map(|_| Ok(Vec::new())).collect();
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

    println!("Server CPU per call: median (lowest to highest) of {rounds} rounds");
    println!("{:<36} {:>8}  {:<24} x SET PX", "call", "us", "x INCR");
    for (row, figures) in rows.iter().zip(&measured) {
        match figures {
            Ok(figures) => {
                let (us, _, _) = spread(figures, |figures| figures.micros);
                let incr = ratio(figures, |figures| figures.to_incr);
                let set_px = ratio(figures, |figures| figures.to_set_px);
                println!("{:<36} {us:>8.2}  {incr:<24} {set_px}", row.name);
            }
            Err(error) => println!("{:<36} ERROR, not measured: {error}", row.name),
        }
    }
    measured.iter().filter(|figures| figures.is_err()).count()
}

fn measure(row: &Row) -> Result<Figures> {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let mut alone = |row: &Row| -> Result<f64> {
        call(&mut con, &["FLUSHALL", "SYNC"])?;
        put(&server, row, SIZE)
    };
    let (incr, set_px, micros) = (alone(&INCR)?, alone(&SET_PX)?, alone(row)?);
    Ok(Figures { micros, to_incr: micros / incr, to_set_px: micros / set_px })
}

fn ratio(figures: &[Figures], part: impl Fn(&Figures) -> f64) -> String {
    let (median, lowest, highest) = spread(figures, part);
    format!("{median:.2} ({lowest:.2} to {highest:.2})")
}

/// The median, the lowest, the highest.
fn spread(figures: &[Figures], part: impl Fn(&Figures) -> f64) -> (f64, f64, f64) {
    let mut numbers: Vec<f64> = figures.iter().map(part).collect();
    numbers.sort_by(f64::total_cmp);
    (numbers[numbers.len() / 2], numbers[0], numbers[numbers.len() - 1])
}
