//! A lesson: one sentence about two strategies, and the picture that shows it.
//!
//! Both get the same traffic, and the picture has the same measure of both on the same scale. The traffic is made for
//! the lesson; every number in the picture comes from the replies.

mod drawing;
mod measure;
mod parts;
mod table;
mod verdict;

use crate::settings::Settings;
use crate::strategies::{Strategy, find};
use crate::traffic::Arrival;
use crate::trial::Outcome;
use drawing::Picture;
pub use parts::Lesson;
use parts::{Panel, Tried};
pub use table::{FAIRNESS, LESSONS};

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
