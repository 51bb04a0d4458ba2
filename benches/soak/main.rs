//! What only time and hostile company bring out: leaks and wild reads under valgrind, and a long run with a thousand
//! connections.
//!
//! ```text
//! cargo bench -p ratelimit-benches --bench soak -- leakcheck [--calls=20000]
//! cargo bench -p ratelimit-benches --bench soak -- soak [--seconds=600] [--connections=1000]
//! ```
//!
//! The module is taken from `target/release`: build it first. What is found is printed, and the program fails.

// What is wrong here is found by the person who runs it, at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod damage;
mod leakcheck;
mod memcheck;

use std::process::ExitCode;

use ratelimit_testing::soak;

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (options, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.starts_with("--"));
    let number =
        |option: &str, otherwise: u32| match options.iter().find_map(|word| word.strip_prefix(option)) {
            Some(number) => number.parse().unwrap_or_else(|_| panic!("{option}{number} is no number")),
            None => otherwise,
        };
    let faults = match words.first().map(String::as_str) {
        Some("leakcheck") => leakcheck::run(number("--calls=", 20_000)),
        Some("soak") => soak::run(number("--seconds=", 600), number("--connections=", 1000)),
        _ => {
            eprintln!(
                "usage: cargo bench -p ratelimit-benches --bench soak -- leakcheck|soak [--calls=20000] [--seconds=600] [--connections=1000]"
            );
            return ExitCode::SUCCESS;
        }
    };
    for fault in &faults {
        println!("FAULT: {fault}");
    }
    println!("{}", if faults.is_empty() { "no faults" } else { "failed" });
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
