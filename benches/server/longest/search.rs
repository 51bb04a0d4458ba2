//! The random search: sequences of calls on copies of the states.
//!
//! A sequence with a slow call is made twice more, and the shortest time of each call counts. If a call then takes over
//! the limit, the search leaves out as many of the first calls as it can without making that call much faster.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::calls::Calls;
use super::report::{Findings, Found, command};
use super::states::State;
use super::trial::Trial;
use crate::Result;

pub struct Options {
    /// No call may take more microseconds, unless it is linear by nature.
    pub most: u64,
    /// The seed of the random search.
    pub seed: u64,
    /// How long the random search takes, in seconds.
    pub seconds: u64,
}

const REPETITIONS: usize = 3;
/// A sequence ends when its calls have taken so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Searches until the time is up. Each family of states gets the same share of it.
pub fn run(trial: &mut Trial, states: &[State], options: &Options, findings: &mut Findings) -> Result<()> {
    let states: Vec<&State> = states.iter().filter(|state| !state.limits.is_empty()).collect();
    let mut spent: HashMap<&str, Duration> = HashMap::new();
    let mut sequences = vec![0; states.len()];
    let (started, budget) = (Instant::now(), Duration::from_secs(options.seconds));
    eprintln!("random calls, seed {}", options.seed);
    while started.elapsed() < budget && !states.is_empty() {
        let turn = |place: &usize| {
            (spent.get(states[*place].family).copied().unwrap_or_default(), sequences[*place])
        };
        let next = (0..states.len()).min_by_key(turn).unwrap_or_default();
        let begun = Instant::now();
        let calls = Calls::new(options.seed, sequences.iter().sum(), states[next]).sequence();
        Sequence { state: states[next], calls }.search(trial, options.most, findings)?;
        *spent.entry(states[next].family).or_default() += begun.elapsed();
        sequences[next] += 1;
    }
    let sequences: usize = sequences.iter().sum();
    println!("Random search: {sequences} sequences in {} s, --seed={}", options.seconds, options.seed);
    Ok(())
}

/// Calls on a fresh copy of a state.
struct Sequence<'s> {
    state: &'s State,
    calls: Vec<String>,
}

impl Sequence<'_> {
    /// Makes the calls, and records those that are the longest of their command.
    fn search(&self, trial: &mut Trial, most: u64, findings: &mut Findings) -> Result<()> {
        let family = self.state.family;
        let mut times = self.times(trial, &self.calls)?;
        findings.made += times.len() as u64;
        for _ in 1..REPETITIONS {
            let is_long = |(call, time): (&String, &u64)| {
                *time > findings.longest(family, command(call)).max(most / 10)
            };
            if !self.calls.iter().zip(&times).any(is_long) {
                break;
            }
            let again = self.times(trial, &self.calls)?;
            times = times.into_iter().zip(again).map(|(time, again)| time.min(again)).collect();
        }
        for (place, micros) in times.into_iter().enumerate() {
            let call = &self.calls[place];
            if micros <= findings.longest(family, command(call)) {
                continue;
            }
            let first = if micros > most { self.first_needed(trial, place, micros)? } else { 0 };
            let after = self.calls[first..place].to_vec();
            findings.record(family, Found { micros, call: call.clone(), after });
        }
        Ok(())
    }

    fn times(&self, trial: &mut Trial, calls: &[String]) -> Result<Vec<u64>> {
        trial.refresh(&self.state.name)?;
        trial.timed_all(calls, PATIENCE)
    }

    /// The first of the calls that are needed for the call at `place` to take almost as long.
    fn first_needed(&self, trial: &mut Trial, place: usize, micros: u64) -> Result<usize> {
        let mut kept = 0;
        while kept < place {
            let first = place - kept;
            let times = self.times(trial, &self.calls[first..=place])?;
            if times.len() == kept + 1 && times.last().is_some_and(|time| *time > micros / 10 * 8) {
                return Ok(first);
            }
            kept = 2 * kept + 1;
        }
        Ok(0)
    }
}
