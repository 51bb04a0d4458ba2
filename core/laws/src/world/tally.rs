//! What has happened in worlds, and how often.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by name.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// The events, by kind.
    pub events: BTreeMap<&'static str, u64>,
    /// What they hit: states that were reached, and checks that were made.
    pub reached: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(super) fn event(&mut self, name: &'static str) {
        *self.events.entry(name).or_default() += 1;
    }

    pub(super) fn reach(&mut self, name: &'static str, count: usize) {
        if count > 0 {
            *self.reached.entry(name).or_default() += count as u64;
        }
    }

    /// The number of events.
    pub fn count(&self) -> u64 {
        self.events.values().sum()
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Tally) {
        for (counts, more) in [(&mut self.events, &other.events), (&mut self.reached, &other.reached)] {
            for (name, count) in more {
                *counts.entry(name).or_default() += count;
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, counts) in [("events", &self.events), ("reached", &self.reached)] {
            writeln!(f, "{title}:")?;
            for (name, count) in counts {
                writeln!(f, "{count:>12}  {name}")?;
            }
        }
        Ok(())
    }
}
