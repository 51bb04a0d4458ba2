//! What a lesson measures over time.

use crate::chart::real;
use crate::figures::{from, within, work};
use crate::settings::Settings;
use crate::slots::{Slots, at_once};
use crate::trial::{Fate, Outcome};

#[derive(Clone, Copy)]
pub enum Measure {
    /// Requests per second, counted in slots of so many milliseconds.
    Rate { slot: u64 },
    /// How many got through within the last period.
    Within,
    /// How many the backend works on.
    AtWork,
    /// How many of the leases each of three tenants holds, one above the other. Their users are 0, 1 and 2.
    Held { tenants: [&'static str; 3] },
    /// How long each request must wait: until it acts, or, if refused, until it asks again.
    Wait,
}

/// What is drawn, each with its class: areas, and dots by instant.
#[derive(Default)]
pub struct Drawn {
    pub areas: Vec<(&'static str, Vec<f64>)>,
    pub dots: Vec<(&'static str, u64, f64)>,
}

/// Steps across a plot where they may be as narrow as a line.
const FINE: usize = 128;

/// The classes of tenants, from the uppermost one down.
pub const TENANTS: [&str; 3] = ["offered", "through", "refused"];

impl Measure {
    pub fn unit(self, settings: &Settings) -> String {
        match self {
            Measure::Rate { .. } => "requests per second".into(),
            Measure::Within => format!("in the last {} s", settings.period / 1000),
            Measure::AtWork => "at work at a time".into(),
            Measure::Held { .. } => "leases held".into(),
            Measure::Wait => "ms until it acts, or may ask again".into(),
        }
    }

    /// What happened between two instants, in milliseconds. One user may have a colour apart.
    pub fn of(
        self,
        settings: &Settings,
        outcomes: &[Outcome],
        view: (u64, u64),
        apart: Option<u64>,
    ) -> Drawn {
        let (begin, length) = (view.0 * 1000, (view.1 - view.0) * 1000);
        let fine = Slots { from: begin, length: length / FINE as u64, count: FINE };
        let areas = match self {
            Measure::Rate { slot } => {
                #[allow(clippy::cast_possible_truncation, reason = "a few dozen")]
                let slots =
                    Slots { from: begin, length: slot * 1000, count: (length / 1000 / slot) as usize };
                let rate = |counts: Vec<u64>| scaled(&counts, 1000.0 / real(slot));
                let asked = outcomes.iter().map(|outcome| outcome.asked);
                let (offered, through) =
                    (slots.counts(asked), slots.counts(outcomes.iter().filter_map(from)));
                let mut areas = vec![("offered", rate(offered)), ("through", rate(through))];
                if apart.is_some() {
                    let own = outcomes.iter().filter(|outcome| Some(outcome.user) == apart);
                    areas.push(("apart", rate(slots.counts(own.filter_map(from)))));
                }
                areas
            }
            Measure::Within => {
                vec![("through", scaled(&fine.most(&within(settings, outcomes, from)), 1.0))]
            }
            Measure::AtWork => {
                let at_work = [at_once(outcomes.iter().filter_map(work))];
                vec![("through", scaled(&fine.most(&at_work), 1.0))]
            }
            Measure::Held { .. } => {
                // Each area covers those of the tenants below it.
                let upwards = TENANTS.iter().zip(0..).map(|(class, user)| {
                    let below = outcomes.iter().filter(|outcome| outcome.user >= user);
                    (*class, scaled(&fine.most(&[at_once(below.filter_map(work))]), 1.0))
                });
                upwards.collect()
            }
            Measure::Wait => {
                return Drawn { dots: outcomes.iter().filter_map(waited).collect(), areas: vec![] };
            }
        };
        Drawn { areas, dots: vec![] }
    }
}

impl Drawn {
    pub fn most(&self) -> f64 {
        let areas = self.areas.iter().flat_map(|(_, values)| values).copied();
        areas.chain(self.dots.iter().map(|(.., value)| *value)).fold(0.0, f64::max)
    }
}

/// When a request came, and how many milliseconds it must wait.
fn waited(outcome: &Outcome) -> Option<(&'static str, u64, f64)> {
    match outcome.fate {
        Fate::Admitted { from, .. } => Some(("through", outcome.asked, real(from - outcome.asked) / 1e3)),
        Fate::Refused { retry } => retry.map(|retry| ("refused", outcome.asked, real(retry))),
    }
}

fn scaled(counts: &[u64], by: f64) -> Vec<f64> {
    counts.iter().map(|count| real(*count) * by).collect()
}
