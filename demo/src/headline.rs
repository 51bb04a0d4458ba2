//! What a scene is about: one number of each strategy, as it grows over time, and the sentence that compares two of them.
//! The words name the number that is shown, so they are true of whatever is set.

use crate::figures::{from, within, work};
use crate::settings::{Keys, Settings};
use crate::slots::{Changes, at_once};
use crate::strategies::Strategy;
use crate::traffic::{ABUSER, Shape};
use crate::trial::Outcome;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Headline {
    /// The most that got through with one key within any period.
    Within,
    /// The most of all keys within any second.
    Together,
    /// The most at work at a time.
    AtWork,
    /// How many got through of those who do not hammer, of the one who does, and of all.
    Others,
    Abuser,
    All,
}

impl Headline {
    pub fn of(shape: Shape) -> Headline {
        match shape {
            Shape::Edge | Shape::Steady | Shape::Bursts | Shape::Budget => Headline::Within,
            Shape::Crowd => Headline::Together,
            Shape::Slow => Headline::AtWork,
            Shape::Tenants => Headline::Others,
            Shape::Abuser => Headline::Abuser,
            Shape::Rising => Headline::All,
        }
    }

    /// The number so far, from each instant at which it grew.
    pub fn over_time(self, settings: &Settings, outcomes: &[Outcome]) -> Changes {
        match self {
            Headline::Within => grown(within(settings, outcomes, from).concat()),
            Headline::Together => {
                let second = Settings { period: 1000, keys: Keys::Shared, ..*settings };
                grown(within(&second, outcomes, from).concat())
            }
            Headline::AtWork => grown(at_once(outcomes.iter().filter_map(work))),
            Headline::Others | Headline::Abuser | Headline::All => {
                let mut own: Vec<u64> =
                    outcomes.iter().filter(|outcome| self.counts(outcome)).filter_map(from).collect();
                own.sort_unstable();
                own.into_iter().zip(1..).collect()
            }
        }
    }

    fn counts(self, outcome: &Outcome) -> bool {
        match self {
            Headline::Others => outcome.user != ABUSER,
            Headline::Abuser => outcome.user == ABUSER,
            _ => true,
        }
    }

    /// What the number should not exceed.
    pub fn bound(self, settings: &Settings, strategy: &Strategy) -> Option<u64> {
        match self {
            Headline::Within => strategy.limits_rate().then_some(settings.limit),
            Headline::AtWork => Some(settings.workers),
            _ => None,
        }
    }

    /// What follows the number.
    pub fn unit(self, settings: &Settings, outcomes: &[Outcome]) -> String {
        match self {
            Headline::Within => {
                format!("{} through within {}", requests(settings), seconds(settings.period))
            }
            Headline::Together => "requests of all users through within one second".into(),
            Headline::AtWork => format!("requests at work at a time, for {} workers", settings.workers),
            Headline::Others | Headline::Abuser | Headline::All => {
                format!("of {} through", self.offered(outcomes))
            }
        }
    }

    /// Compares two strategies, by their names and numbers. The outcomes of either say what came.
    pub fn sentence(
        self,
        settings: &Settings,
        outcomes: &[Outcome],
        [(one, first), (two, second)]: [(&str, u64); 2],
    ) -> String {
        let (first, second) = (count(first), count(second));
        match self {
            Headline::Within => format!(
                "{one} lets {first} {} through within {}, and {two} lets {second} through. The limit is {}.",
                requests(settings),
                seconds(settings.period),
                count(settings.limit)
            ),
            Headline::Together => {
                format!(
                    "{one} lets {first} requests of all users through within one second, and {two} lets {second} through."
                )
            }
            Headline::AtWork => format!(
                "With {one} up to {first} requests are at work at a time, and with {two} up to {second} are. There are {} workers.",
                settings.workers
            ),
            Headline::Others | Headline::Abuser | Headline::All => {
                let offered = self.offered(outcomes);
                format!("{one} lets {first} of {offered} through, and {two} lets {second} through.")
            }
        }
    }

    fn offered(self, outcomes: &[Outcome]) -> String {
        let came = outcomes.iter().filter(|outcome| self.counts(outcome)).count();
        let whose = match self {
            Headline::Others => "the other tenants' ",
            Headline::Abuser => "the abuser's ",
            _ => "",
        };
        format!("{whose}{} requests", count(came as u64))
    }
}

/// Only where it grew above all before.
fn grown(mut changes: Changes) -> Changes {
    changes.sort_unstable();
    let mut most = 0;
    changes.retain(|(_, count)| {
        let grew = *count > most;
        most = most.max(*count);
        grew
    });
    changes
}

fn requests(settings: &Settings) -> String {
    let what = if settings.shape == Shape::Budget { "tokens" } else { "requests" };
    let each = settings.shape.users() > 1 && settings.keys == Keys::Each;
    format!("{what}{}", if each { " of the same user" } else { "" })
}

fn seconds(millis: u64) -> String {
    format!("{} s", millis / 1000)
}

/// With a comma before the thousands.
fn count(number: u64) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}
