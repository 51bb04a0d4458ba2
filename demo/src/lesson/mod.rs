//! A lesson: one sentence about two strategies, and the picture that shows it.
//!
//! Both get the same traffic, and the picture has the same measure of both on the same scale. The traffic is made for
//! the lesson; every number in the picture comes from the replies.

mod drawing;
mod measure;
mod table;
mod verdict;

use crate::settings::{Keys, Settings};
use crate::strategies::{Strategy, find};
use crate::traffic::Arrival;
use crate::trial::Outcome;
use drawing::Picture;
use measure::Measure;
pub use table::{FAIRNESS, LESSONS};

pub struct Lesson {
    pub id: &'static str,
    /// The lesson itself, in the two lines of the caption.
    title: [&'static str; 2],
    /// What comes, and what is allowed.
    story: &'static str,
    pub settings: fn() -> Settings,
    pub arrivals: fn(&Settings) -> Vec<Arrival>,
    /// Which part of the time is shown, in milliseconds.
    view: (u64, u64),
    measure: Measure,
    /// A line across the plots, and its name.
    mark: Option<(&'static str, u64)>,
    /// Where windows on the clock end, in milliseconds.
    edges: &'static [u64],
    /// A user whose requests have a colour of their own.
    apart: Option<u64>,
    panels: [Panel; 2],
}

/// One strategy of a lesson.
struct Panel {
    strategy: &'static str,
    /// Follows the strategy's name.
    note: &'static str,
    keys: Keys,
    /// What came of it, in a few words.
    verdict: fn(&Settings, &[Outcome]) -> String,
}

/// What a panel says and shows.
struct Tried {
    name: String,
    verdict: String,
    outcomes: Vec<Outcome>,
}

impl Lesson {
    pub fn caption(&self) -> String {
        self.title.join(" ").trim_end().into()
    }

    /// The picture as an SVG. `trial` returns the outcomes of the arrivals.
    pub fn picture<T>(&self, mut trial: T) -> Result<String, String>
    where
        T: FnMut(&Settings, &'static Strategy, &[Arrival]) -> Result<Vec<Outcome>, String>,
    {
        let settings = (self.settings)();
        let arrivals = (self.arrivals)(&settings);
        let mut outcomes = |panel: &Panel| {
            let settings = Settings { keys: panel.keys, ..settings };
            trial(&settings, panel.strategy()?, &arrivals)
        };
        let [first, second] = &self.panels;
        self.drawn([outcomes(first)?, outcomes(second)?])
    }

    /// The picture of these outcomes of the two panels.
    pub fn drawn(&self, outcomes: [Vec<Outcome>; 2]) -> Result<String, String> {
        let settings = (self.settings)();
        let tried = self.panels.iter().zip(outcomes).map(|(panel, outcomes)| {
            let verdict = (panel.verdict)(&Settings { keys: panel.keys, ..settings }, &outcomes);
            Ok(Tried { name: format!("{}{}", panel.strategy()?.name(), panel.note), verdict, outcomes })
        });
        let tried = tried.collect::<Result<Vec<_>, String>>()?;
        Ok(Picture { lesson: self, settings: &settings, tried: &tried }.draw())
    }
}

impl Panel {
    fn strategy(&self) -> Result<&'static Strategy, String> {
        find(self.strategy).ok_or_else(|| format!("no strategy {}", self.strategy))
    }
}
