//! The examples of the documentation, as a reader tries them: the commands of a session of redis-cli, each at its instant.

use std::collections::{BTreeMap, BTreeSet};

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};
use ratelimit_engine::memory::{Called, Ended};
use ratelimit_engine::reply::Reply;

use crate::memory::{Memory, NeedsServer, instant};

/// What stands before a command.
const PROMPT: &str = "127.0.0.1:6379> ";
/// The server's clock. It is far from any `AT`.
const CLOCK: u64 = 1_800_000_000_000_000;

/// No caller waits longer, by the default of `ratelimit.max-block`; in microseconds.
pub(crate) const LONGEST_WAIT: u64 = 60_000_000;

/// A command, and its instant in microseconds of Unix time.
pub type Call = (u64, String);

/// The commands of the examples before, and those of an example. One client makes all of them, so each is made when the wait of the
/// one before has ended.
///
/// The examples before are made by the server's clock. Those of the example are without their `AT`, and have the instant of it. One
/// without `AT` has the instant of the one before.
pub fn calls(before: &[String], example: &str) -> (Vec<Call>, Vec<Call>) {
    let memory = Memory::new();
    let mut clock = CLOCK;
    let before = before.iter().flat_map(|text| commands(text));
    let before = before.map(|line| made(&memory, &mut clock, line.to_owned())).collect();
    let first = commands(example).find_map(instant);
    let mut at = first.map_or(clock, |(_, at, _)| at);
    let own = commands(example).map(|line| match instant(line) {
        None => made(&memory, &mut at, line.to_owned()),
        Some((place, given, rest)) => {
            at = given;
            made(&memory, &mut at, format!("{}{rest}", &line[..place]))
        }
    });
    (before, own.collect())
}

fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix(PROMPT))
}

/// Makes a call, and moves its instant to when its caller has a reply.
fn made(memory: &Memory, at: &mut u64, line: String) -> Call {
    let call = (*at, line);
    memory.move_to(call.0);
    let began = memory.now();
    _ = memory.run(&call.1);
    memory.wait();
    *at += memory.now().since(began).as_micros();
    call
}

/// What has come of a call.
pub enum Attempt {
    NeedsServer(NeedsServer),
    /// Its reply, and how long its caller waited for it, if it waited.
    Replied(Reply, Option<Span>),
    Waits,
}

/// Makes calls, each at its instant and by a client of its own, and lets time pass until another instant.
pub fn attempt(calls: &[Call], until: u64) -> Vec<Attempt> {
    let memory = Memory::new();
    let mut attempts = Vec::new();
    let mut waiting = BTreeMap::new();
    for (at, line) in calls {
        take(&mut attempts, &waiting, memory.move_to(*at));
        attempts.push(match memory.run(line) {
            Err(needs) => Attempt::NeedsServer(needs),
            Ok(Called::Replied(reply)) => Attempt::Replied(reply, None),
            Ok(Called::Waits(caller)) => {
                waiting.insert(caller, (attempts.len(), memory.now()));
                Attempt::Waits
            }
        });
    }
    let last = calls.last().map_or(0, |(at, _)| *at);
    take(&mut attempts, &waiting, memory.move_to(until.max(last)));
    attempts
}

/// Takes the replies of callers that have waited. `waiting` has the place of each call, and when it began to wait.
fn take(attempts: &mut [Attempt], waiting: &BTreeMap<Caller, (usize, Time)>, ended: Vec<Ended>) {
    for Ended { caller, reply, at } in ended {
        if let Some((place, began)) = waiting.get(&caller)
            && let Some(attempt) = attempts.get_mut(*place)
        {
            *attempt = Attempt::Replied(reply, Some(at.since(*began)));
        }
    }
}

/// What has come of the examples of a page so far.
#[derive(Default)]
pub struct Page {
    /// Those that can be tried.
    before: Vec<String>,
    /// The names in the others, which only a server knows.
    unknown: BTreeSet<String>,
}

impl Page {
    /// The commands of the next example, and what has come of them. `None` if it cannot be tried without a server, or begins with
    /// an error: errors alone are not worth trying.
    pub fn next(&mut self, example: &str) -> Option<Vec<(Call, Attempt)>> {
        let (before, own) = calls(&self.before, example);
        let until = own.last().map_or(0, |(at, _)| at + LONGEST_WAIT);
        let attempts = attempt(&[&before[..], &own].concat(), until);
        let tried: Vec<(Call, Attempt)> =
            own.into_iter().zip(attempts.into_iter().skip(before.len())).collect();
        let lines = || tried.iter().map(|((_, line), _)| line);
        let needs_server = |(_, attempt): &(Call, Attempt)| matches!(attempt, Attempt::NeedsServer(_));
        if lines().flat_map(|line| line.split(' ')).any(|word| self.unknown.contains(word))
            || tried.iter().any(needs_server)
        {
            self.unknown.extend(lines().flat_map(|line| names(line)).map(str::to_owned));
            return None;
        }
        if let (_, Attempt::Replied(Reply::Error(_), _)) = tried.first()? {
            return None;
        }
        self.before.push(example.to_owned());
        Some(tried)
    }
}

/// The keys of a call: the word after its name, or as many as that word says. No key is a number. Of `RL.POLICY`, the name of the
/// policy.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is = |name: &str| line.to_ascii_uppercase().starts_with(name);
    let mut words = line.split(' ').skip(if is("RL.POLICY") { 2 } else { 1 }).peekable();
    let number = words.next_if(|word| word.parse::<usize>().is_ok());
    let count = match number.map(str::parse) {
        None => 1,
        Some(Ok(count)) if is("RL.MULTI") => count,
        Some(_) => 0,
    };
    words.take(count)
}

/// A page of the documentation. The fences of the examples that can be tried say so: `redis-cli` becomes `redis-cli,tryable`.
pub fn mark(text: &str) -> String {
    const FENCE: &str = "```redis-cli\n";
    let mut parts = text.split(FENCE);
    let mut marked = parts.next().unwrap_or_default().to_owned();
    let mut page = Page::default();
    for part in parts {
        let example = part.split("```").next().unwrap_or_default();
        marked += if page.next(example).is_some() { "```redis-cli,tryable\n" } else { FENCE };
        marked += part;
    }
    marked
}
