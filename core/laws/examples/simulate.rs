//! `make simulate`: worlds of new seeds for some time. Prints what happened and what was reached, or a history that breaks a law.
//!
//! The arguments are the number of seconds, and the first seed if it is not to be new; or a file with a history to run again.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ratelimit_laws::world::{Event, Tally, replay, simulate};

/// The events of a world.
const EVENTS: usize = 2000;

fn main() -> ExitCode {
    if let Some(history) = std::env::args().nth(1).and_then(|path| std::fs::read_to_string(path).ok()) {
        return run_again(&history);
    }
    let mut arguments = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let seconds = arguments.next().unwrap_or(10);
    let new = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let first = arguments.next().unwrap_or_else(|| new() << 20);
    std::panic::set_hook(Box::new(|_| {}));
    let (begun, mut tally, mut seed) = (Instant::now(), Tally::default(), first);
    while begun.elapsed() < Duration::from_secs(seconds) {
        match simulate(seed, EVENTS) {
            Ok(more) => tally.add(&more),
            Err(failure) => {
                println!("after {} events\n{failure}", tally.count() + failure.events as u64);
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    let events = tally.count();
    let pace = u128::from(events) * 1000 / begun.elapsed().as_millis().max(1);
    print!("{tally}");
    println!(
        "{events} events of {} worlds, seeds {first} to {}, {pace} a second: no difference",
        seed - first,
        seed - 1
    );
    ExitCode::SUCCESS
}

/// Runs the lines of a history.
fn run_again(history: &str) -> ExitCode {
    let mut events = Vec::new();
    for line in history.lines().filter(|line| !line.is_empty()) {
        let Some(event) = Event::of(line) else {
            println!("not an event: {line}");
            return ExitCode::FAILURE;
        };
        events.push(event);
    }
    match replay(&events) {
        Ok(tally) => {
            println!("{tally}no difference");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}
