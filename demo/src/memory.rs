//! The module's commands on a node in memory: the engine, with the clocks of a page or a trial.

mod elsewhere;

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use ratelimit_core::Time;
use ratelimit_engine::memory::{Called, Ended, Memory as Node};
use ratelimit_engine::reply::Reply as Whole;

use crate::reply::{Reply, Server};
use crate::trial::SEED;

pub struct Memory(Node);

/// A call that only a server can answer, for it needs this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeedsServer(pub String);

/// The entries of a window of `RL.TOP`. A server counts no refusals by default.
const TOP: i64 = 1000;

/// How often a caller can be tried before its wait ends, which is more often than any is.
const MOST_TRIES: usize = 100_000;

impl Memory {
    pub fn new() -> Memory {
        let node = Node::new(SEED);
        node.node().settings.top.value.store(TOP, Relaxed);
        Memory(node)
    }

    /// The instant on a clock that is never set back.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Lets time pass until an instant, in microseconds of Unix time, or sets the clock back to it.
    pub fn move_to(&self, at: u64) -> Vec<Ended> {
        let at = Time::from_micros(at);
        let ended = self.0.advance(at.since(self.0.clock()));
        self.0.set_clock(at);
        ended
    }

    /// Lets time pass until no caller waits.
    pub fn wait(&self) {
        for _ in 0..MOST_TRIES {
            let [waiting, ..] = self.0.node().waiting.counts();
            let Some(due) = self.0.next_ring().filter(|_| waiting > 0) else { return };
            self.0.advance(due.since(self.now()));
        }
    }

    /// Runs a command at this instant, its words between spaces.
    pub fn run(&self, line: &str) -> Result<Called, NeedsServer> {
        let words: Vec<&str> = line.split(' ').collect();
        let needs = |what: &str| Err(NeedsServer(what.to_ascii_uppercase()));
        if let Some(what) = only_server(&words) {
            return needs(&what);
        }
        let called = self.0.call(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        // There are no copies.
        self.0.take_effects();
        match (&called, words.first()) {
            (Called::Replied(Whole::Error(_)), Some(name)) if elsewhere::has(name) => needs(name),
            _ => Ok(called),
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Server for Memory {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        if let Some((_, at, _)) = instant(line) {
            self.move_to(at);
        }
        match self.run(line).map_err(|needs| needs.to_string())? {
            Called::Replied(reply) => Reply::of(&reply),
            Called::Waits(_) => Err(format!("{line}: a trial does not wait")),
        }
    }
}

impl fmt::Display for NeedsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} needs a server: it cannot be tried on this page", self.0)
    }
}

/// The `AT` of a call: its place, its instant in microseconds of Unix time, and what follows.
pub fn instant(line: &str) -> Option<(usize, u64, &str)> {
    const AT: &str = " AT ";
    /// Unix time in microseconds has this number of digits until the year 2286.
    const DIGITS: usize = 16;
    line.match_indices(AT).find_map(|(place, _)| {
        let (digits, rest) = line.get(place + AT.len()..)?.split_at_checked(DIGITS)?;
        Some((place, digits.parse().ok()?, rest))
    })
}

/// What a call needs that this node lacks, although it has the command: a file, or the time zones of calendars, which are too large
/// for a page.
fn only_server(words: &[&str]) -> Option<String> {
    let is = |word: &str, name: &str| word.eq_ignore_ascii_case(name);
    let (name, arguments) = words.split_first()?;
    // The first argument is a key, but of RL.EXPLAIN a command.
    let may_be_limiter = |place: usize| place != 1 || is(name, "RL.EXPLAIN");
    let is_calendar = |word: &str| is(word, "CALENDAR") || is(word, "RL.CALENDAR");
    let mut limiters = words.iter().enumerate().filter(|(place, _)| may_be_limiter(*place));
    if !is(name, "RL.HELP") && limiters.any(|(_, word)| is_calendar(word)) {
        return Some("CALENDAR".into());
    }
    let of_file = arguments.first().filter(|word| is(word, "LOAD") || is(word, "SAVE"));
    of_file.filter(|_| is(name, "RL.POLICY")).map(|word| format!("RL.POLICY {word}"))
}
