//! No item gets more than its own GCRA admits.

use std::time::Instant;

use ratelimit_core::Period;
use ratelimit_core::limiter::Rate;
use ratelimit_core::state::{Blueprint, Shape};

use super::common::{grouped, hash_key, number, percent, progress};
use super::exact::{Outcome, Pair};
use super::traffic::{Spread, Traffic};

/// Microseconds between two requests.
const APART: u64 = 40;
/// The requests that are timed without the replay.
const TIMED: u64 = 5_000_000;

/// Three requests a second, so the interval of 333,333 1/3 us is rounded, and up to two early.
fn rate() -> Rate {
    Rate {
        limit: 3.try_into().expect("above zero"),
        count: 3.try_into().expect("above zero"),
        period: Period::from_millis(1000.try_into().expect("above zero")),
    }
}

/// Replays what a sketch admits.
pub fn run(seed: u64, requests: u64) {
    println!(
        "\nEach admitted request is replayed through its item's own GCRA, in whole numbers: all are admitted"
    );
    println!(
        "{:<8} {:>12} {:>12} {:>12} {:>12} {:>9} {:>8} {:>10} {:>10}",
        "items", "requests", "admitted", "rightly", "falsely", "of fair", "seconds", "ns", "alone ns"
    );
    for spread in [Spread::Zipf, Spread::Uniform] {
        row(spread, seed, requests / 2);
    }
    println!(
        "rightly, falsely: refusals that the item's own GCRA makes, too, and those that it would admit;"
    );
    println!("of fair: false refusals as a share of what the items' own GCRAs would admit;");
    println!("ns: for each request, with its replay and with drawing its item; alone: of the sketch only.");
}

fn row(spread: Spread, seed: u64, requests: u64) {
    let blueprint = Blueprint { shape: Shape::DEFAULT, hash_key: hash_key(seed) };
    let mut pair = Pair::new(rate(), blueprint);
    let mut traffic = Traffic::new(spread, seed);
    let [mut admitted, mut rightly, mut falsely] = [0_u64; 3];
    let began = Instant::now();
    for i in 0..requests {
        match pair.ask(traffic.next(), i * APART) {
            Outcome::Admitted => admitted += 1,
            Outcome::Rightly => rightly += 1,
            Outcome::Falsely => falsely += 1,
        }
        if i > 0 && i % 10_000_000 == 0 {
            progress(format_args!("{spread:?}: {} of {} replayed", grouped(i), grouped(requests)));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{:<8} {:>12} {:>12} {:>12} {:>12} {:>9} {:>8.1} {:>10.0} {:>10.0}",
        format!("{spread:?}"),
        grouped(requests),
        grouped(admitted),
        grouped(rightly),
        grouped(falsely),
        percent(number(falsely) / number((admitted + falsely).max(1))),
        seconds,
        1e9 * seconds / number(requests.max(1)),
        alone(&mut pair, &mut traffic, requests),
    );
}

/// The time of a request to the sketch without the replay, in nanoseconds.
fn alone(pair: &mut Pair, traffic: &mut Traffic, from: u64) -> f64 {
    let items: Vec<usize> = (0..TIMED).map(|_| traffic.next()).collect();
    let began = Instant::now();
    for (i, item) in (from..).zip(&items) {
        std::hint::black_box(pair.ask_sketch(*item, i * APART));
    }
    1e9 * began.elapsed().as_secs_f64() / number(TIMED)
}
