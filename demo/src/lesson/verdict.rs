//! What came of a strategy, in a few words: what a lesson says above a plot.

use crate::figures::{Figures, Share, from};
use crate::settings::{Keys, Settings};
use crate::trial::Outcome;

pub fn in_one_second(settings: &Settings, outcomes: &[Outcome]) -> String {
    let second = Settings { period: 1000, keys: Keys::Shared, ..*settings };
    format!("{} in one second", Figures::of(&second, outcomes).peak)
}

pub fn in_a_period(settings: &Settings, outcomes: &[Outcome]) -> String {
    format!("{} in {}", Figures::of(settings, outcomes).peak, seconds(settings.period))
}

pub fn at_work(settings: &Settings, outcomes: &[Outcome]) -> String {
    format!("{} at work at a time", Figures::of(settings, outcomes).at_work)
}

pub fn got_through(settings: &Settings, outcomes: &[Outcome]) -> String {
    let Share { offered, admitted } = Figures::of(settings, outcomes).all;
    format!("{admitted} of {offered} through")
}

/// Of the others, if one caller hammers.
pub fn others(settings: &Settings, outcomes: &[Outcome]) -> String {
    let Share { offered, admitted } = Figures::of(settings, outcomes).normal.unwrap_or_default();
    format!("{admitted} of the others' {offered}")
}

/// And the longest wait, if any had to.
pub fn refused(settings: &Settings, outcomes: &[Outcome]) -> String {
    let Figures { all, wait, .. } = Figures::of(settings, outcomes);
    let refused = all.offered - all.admitted;
    if wait > 0 {
        format!("{refused} refused, {} of wait", seconds(wait))
    } else {
        format!("{refused} of {} refused", all.offered)
    }
}

/// The longest time between two that got through.
pub fn pause(_: &Settings, outcomes: &[Outcome]) -> String {
    let through: Vec<u64> = outcomes.iter().filter_map(from).collect();
    let longest = through.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    format!("pauses of {}", seconds(longest / 1000))
}

/// How long the last of three tenants waits.
pub fn last_waits(_: &Settings, outcomes: &[Outcome]) -> String {
    let own = outcomes.iter().filter(|outcome| outcome.user == 2);
    let longest = own.filter_map(|outcome| Some(from(outcome)? - outcome.asked)).max().unwrap_or(0);
    format!("Cid waits up to {}", seconds(longest / 1000))
}

/// How many got through in the first second.
pub fn at_first(_: &Settings, outcomes: &[Outcome]) -> String {
    let first = outcomes.iter().filter_map(from).filter(|at| *at < 1_000_000).count();
    format!("{first} in the first second")
}

fn seconds(millis: u64) -> String {
    let tenths = (millis + 50) / 100;
    if tenths.is_multiple_of(10) {
        format!("{} s", tenths / 10)
    } else {
        format!("{}.{} s", tenths / 10, tenths % 10)
    }
}
