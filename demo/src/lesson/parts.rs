//! What a lesson consists of.

use super::measure::Measure;
use crate::settings::{Keys, Settings};
use crate::traffic::Arrival;
use crate::trial::Outcome;

pub struct Lesson {
    pub id: &'static str,
    /// The lesson itself, in the two lines of the caption.
    pub(super) title: [&'static str; 2],
    /// What comes, and what is allowed.
    pub(super) story: &'static str,
    pub settings: fn() -> Settings,
    pub arrivals: fn(&Settings) -> Vec<Arrival>,
    /// Which part of the time is shown, in milliseconds.
    pub(super) view: (u64, u64),
    pub(super) measure: Measure,
    /// A line across the plots, and its name.
    pub(super) mark: Option<(&'static str, u64)>,
    /// Where windows on the clock end, in milliseconds.
    pub(super) edges: &'static [u64],
    /// A user whose requests have a colour of their own.
    pub(super) apart: Option<u64>,
    pub(super) panels: [Panel; 2],
}

/// One strategy of a lesson.
pub(super) struct Panel {
    pub(super) strategy: &'static str,
    /// Follows the strategy's name.
    pub(super) note: &'static str,
    pub(super) keys: Keys,
    /// What came of it, in a few words.
    pub(super) verdict: fn(&Settings, &[Outcome]) -> String,
}

/// What a panel says and shows.
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) verdict: String,
    pub(super) outcomes: Vec<Outcome>,
}
