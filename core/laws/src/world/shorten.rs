//! Whole histories: from a seed, again from their lines, and shortened.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ratelimit_dice::Dice;

use super::draw::{Style, draw};
use super::event::Event;
use super::state::World;
use super::tally::Tally;

/// A history in which a law was broken.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    /// The number of events until the law was broken.
    pub events: usize,
    /// What is wrong, in the whole history.
    pub why: String,
    /// The history, shortened, and what is wrong in it.
    pub history: Vec<Event>,
    pub shortened: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, event {}: {}", self.seed, self.events, self.why)?;
        writeln!(f, "shortened: {}", self.shortened)?;
        self.history.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

/// Draws a history of `count` events from a seed, and runs it.
///
/// # Errors
///
/// If a law is broken.
pub fn simulate(seed: u64, count: usize) -> Result<Tally, Box<Failure>> {
    let (mut dice, mut world) = (Dice::new(seed), World::new(false));
    let style = Style::of(&mut dice);
    let mut history = Vec::with_capacity(count);
    for _ in 0..count {
        let event = draw(&mut dice, style, &world.fair_lines.ids());
        let outcome = guarded(|| world.run(&event));
        history.push(event);
        if let Err(why) = outcome {
            return Err(Box::new(failure(seed, why, history)));
        }
    }
    match guarded(|| world.end()) {
        Ok(()) => Ok(world.tally),
        Err(why) => Err(Box::new(failure(seed, why, history))),
    }
}

/// Runs a history of lines again, and checks all at each event.
///
/// # Errors
///
/// What is wrong.
pub fn replay(history: &[Event]) -> Result<Tally, String> {
    let mut world = World::new(true);
    guarded(|| history.iter().try_for_each(|event| world.run(event)).and_then(|()| world.end()))?;
    Ok(world.tally)
}

/// A panic is a broken law too.
fn guarded(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without a message")))
    })
}

/// The most replays by which a history is shortened.
const MOST_REPLAYS: usize = 20_000;

fn failure(seed: u64, why: String, history: Vec<Event>) -> Failure {
    let events = history.len();
    let (history, shortened) = shortened(history, why.clone());
    Failure { seed, events, why, history, shortened }
}

/// Leaves out what a history does not need to break a law: halves of it first, then ever smaller pieces.
fn shortened(mut history: Vec<Event>, mut why: String) -> (Vec<Event>, String) {
    let mut piece = history.len().div_ceil(2);
    let mut replays = 0;
    while piece > 0 && replays < MOST_REPLAYS {
        let (mut start, mut is_shorter) = (0, false);
        while start < history.len() && replays < MOST_REPLAYS {
            let mut without = history.clone();
            without.drain(start..history.len().min(start + piece));
            replays += 1;
            match replay(&without) {
                Err(other) => (history, why, is_shorter) = (without, other, true),
                Ok(_) => start += piece,
            }
        }
        if !is_shorter || piece > 1 {
            piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
        }
    }
    (history, why)
}
