//! What a call costs the server: instructions under callgrind, CPU time next to `INCR` and `SET PX`, bytes per key,
//! the longest single call, and how all that grows.
//!
//! ```text
//! cargo bench -p ratelimit-benches --bench server -- instructions [--runs=1] [words]
//! cargo bench -p ratelimit-benches --bench server -- profile [words]
//! cargo bench -p ratelimit-benches --bench server -- cpu [--rounds=5] [--seconds=8] [words]
//! cargo bench -p ratelimit-benches --bench server -- capacity [words]
//! cargo bench -p ratelimit-benches --bench server -- tails [--rate=20000] [--rounds=5] [--seconds=5] [words]
//! cargo bench -p ratelimit-benches --bench server -- growth [--most=10000000] [keys] [log] [leases] [limits]
//! cargo bench -p ratelimit-benches --bench server -- waiting [--clients=1000] [--seconds=10]
//! cargo bench -p ratelimit-benches --bench server -- fairness [--seconds=20]
//! cargo bench -p ratelimit-benches --bench server -- longest [--most-us=1000] [--seed=1] [--seconds=120] [memory] [turns] [states]
//! ```
//!
//! With words, only the rows whose names hold one of them. `=` before a whole name means that row
//! alone. The module is taken from `target/release`: build it first.
//! A row that turns out not to have measured what its name says is printed as an error, never as a figure.

// What is wrong with a bench is found by the person who runs it, at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod audience;
mod baselines;
mod capacity;
mod cpu;
mod fairness;
mod figures;
mod growth;
mod instructions;
mod keys;
mod load;
mod longest;
mod lua;
mod memory;
mod pace;
mod plot;
mod profile;
mod row;
mod rows;
mod tails;
mod traffic;
mod waiting;

use std::process::ExitCode;

use figures::{Result, Selection, against, grouped, median_and_range, spread};

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (options, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.starts_with("--"));
    let failed = match words.split_first() {
        Some((mode, names)) if mode == "instructions" => {
            let runs = number(&options, "--runs=").unwrap_or(1).max(1);
            instructions::run(runs as usize, &Selection(names))
        }
        Some((mode, names)) if mode == "profile" => profile::run(&Selection(names)),
        Some((mode, names)) if mode == "cpu" => {
            let rounds = number(&options, "--rounds=").unwrap_or(5).max(1);
            let (rounds, seconds) = (rounds as usize, number(&options, "--seconds=").unwrap_or(8).max(1));
            cpu::run(rounds, &Selection(names))
                + pace::run(rounds.min(3), seconds, &Selection(names))
                + memory::run(&Selection(names))
        }
        Some((mode, names)) if mode == "capacity" => capacity::run(&Selection(names)),
        Some((mode, names)) if mode == "tails" => {
            let option = |option, otherwise| number(&options, option).unwrap_or(otherwise).max(1);
            let [rounds, rate, seconds] =
                [option("--rounds=", 5), option("--rate=", 20_000), option("--seconds=", 5)];
            tails::run(rounds as usize, rate, seconds, &Selection(names))
        }
        Some((mode, names)) if mode == "growth" => {
            keys::run(number(&options, "--most=").unwrap_or(10_000_000), &Selection(names))
                + growth::run(&Selection(names))
        }
        Some((mode, names)) if mode == "longest" => {
            let option = |option, otherwise| u64::from(number(&options, option).unwrap_or(otherwise));
            let [most, seed, seconds] =
                [option("--most-us=", 1000), option("--seed=", 1), option("--seconds=", 120)];
            longest::run(&longest::Options { most, seed, seconds }, &Selection(names))
        }
        Some((mode, _)) if mode == "waiting" => {
            let clients = number(&options, "--clients=").unwrap_or(1000).max(100);
            waiting::run(clients as usize, number(&options, "--seconds=").unwrap_or(10).max(1).into())
        }
        Some((mode, _)) if mode == "fairness" => {
            fairness::run(number(&options, "--seconds=").unwrap_or(20).max(1).into())
        }
        _ => {
            eprintln!(
                "usage: cargo bench -p ratelimit-benches --bench server -- instructions|profile|cpu|capacity|tails|growth|longest|waiting|fairness [--runs=1] [--rounds=5] [--rate=20000] [--most=10000000] [--most-us=1000] [--seed=1] [--clients=1000] [--seconds=120, of cpu 8, of tails 5, of waiting 10, of fairness 20] [words of the rows]"
            );
            return ExitCode::SUCCESS;
        }
    };
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What an option that ends with a number says.
fn number(options: &[String], option: &str) -> Option<u32> {
    let number = options.iter().find_map(|word| word.strip_prefix(option))?;
    Some(number.parse().unwrap_or_else(|_| panic!("{option}{number} is no number")))
}
