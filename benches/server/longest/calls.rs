//! Random calls on a copy of a state: all commands, with instants that step to and fro and parameters that change.

use ratelimit_language::FORMS;

use super::states::{BACK, HOUR, LATEST, SECOND, State, id, multi, own};
use ratelimit_testing::dice::Dice;

/// The largest limit of a log, and the largest capacity of leases.
const LARGEST: u64 = 1_000_000;
/// The ids that are in no state.
const NEW_IDS: u64 = 300;
const YEAR: u64 = 8766 * HOUR;

/// Calls on one state, in the order in which they are made.
pub struct Calls<'s> {
    dice: Dice,
    state: &'s State,
    /// The instant of the last call.
    now: u64,
}

impl<'s> Calls<'s> {
    pub fn new(seed: u64, number: usize, state: &'s State) -> Calls<'s> {
        Calls { dice: Dice::of(seed, number), state, now: state.last }
    }

    /// A sequence of 20 to 200 calls.
    pub fn sequence(&mut self) -> Vec<String> {
        // Some sequences begin when half of the entries have left.
        if self.dice.one_in(3) {
            self.now = self.state.half;
        }
        let length = 20 + self.dice.below(181);
        (0..length).map(|_| self.call()).collect()
    }

    fn call(&mut self) -> String {
        self.step();
        let at = self.now;
        let id = self.id();
        let line = match self.dice.below(28) {
            0..=6 => format!("{}{}{} AT {at}", own(&self.limit()), self.cost(), self.manner()),
            7 => format!("{} COST 0 AT {at}", own(&self.limit())),
            8..=10 => format!("RL.PEEK work {}{} AT {at}", self.limit(), self.cost()),
            11..=12 => format!("RL.REFUND work {}{} AT {at}", self.limit(), self.cost()),
            13..=15 => format!("RL.MULTI 1 work AT {at}{} {}", self.cost(), self.several()),
            16 => format!("RL.MULTI 1 work AT {at}{} FORCE {}", self.cost(), self.several()),
            17 => format!("RL.MULTIPEEK 1 work AT {at}{} {}", self.cost(), self.several()),
            18 => format!("RL.MULTIREFUND 1 work AT {at}{} {}", self.cost(), self.several()),
            19..=20 => format!("RL.RELEASE work {id} AT {at}"),
            21 => format!("RL.RENEW work {}ms {id} AT {at}", 1 + self.dice.below(7_200_000)),
            22 => format!("RL.MULTIRELEASE 2 work other {id} AT {at}"),
            23 => format!(
                "{}{} HOLD {id} {} AT {at}",
                own(&self.limit()),
                self.cost(),
                1 + self.dice.below(7_200_000)
            ),
            24..=25 => format!("RL.SETTLE work {id} {} COST {} AT {at}", self.limit(), self.dice.below(20)),
            26 => {
                format!("RL.MULTISETTLE 1 work {id} COST {} AT {at} {}", self.dice.below(20), self.several())
            }
            _ => "RL.INFO work".to_string(),
        };
        line.replace('#', &self.id())
    }

    /// Moves the instant: by little in most steps, by more than a reset in some, and by years in a few.
    fn step(&mut self) {
        let (forward, back) = match self.dice.below(40) {
            0..=19 => (self.dice.below(1000), 0),
            20..=25 => (self.dice.below(10 * SECOND), 0),
            26..=28 => (self.dice.below(HOUR), 0),
            29..=31 => (0, self.dice.below(SECOND)),
            32..=33 => (0, self.dice.below(HOUR)),
            34..=35 => (0, HOUR + self.dice.below(3 * HOUR)),
            36 => (0, YEAR * self.dice.below(20)),
            37 => (YEAR * self.dice.below(100), 0),
            38 => (LATEST, 0),
            _ => (0, LATEST),
        };
        self.now = self.now.saturating_add(forward).saturating_sub(back).clamp(BACK, LATEST);
    }

    /// A limit of the state, in one of four calls with other parameters, in one of ten another limiter.
    fn limit(&mut self) -> String {
        let another = self.dice.one_in(10);
        let limit = if another {
            self.dice.pick(&FORMS).words(100, 3_600_000, "#")
        } else {
            self.dice.pick(&self.state.limits).clone()
        };
        if !self.dice.one_in(4) {
            return limit;
        }
        let words: Vec<String> =
            limit.split(' ').enumerate().map(|(place, word)| self.changed(place, word)).collect();
        words.join(" ")
    }

    /// Halves or doubles a number, in one of two calls.
    fn changed(&mut self, place: usize, word: &str) -> String {
        let Ok(number) = word.parse::<u64>() else { return word.to_string() };
        let changed = match self.dice.below(8) {
            0..=1 => number / 2,
            2..=3 => number * 2,
            _ => number,
        };
        let largest = if place == 1 { LARGEST } else { u64::MAX };
        changed.clamp(1, largest).to_string()
    }

    /// One to four limits, which may be the same.
    fn several(&mut self) -> String {
        let count = 1 + self.dice.below(4);
        let limits: Vec<String> = (0..count).map(|_| self.limit()).collect();
        multi(&limits)
    }

    fn cost(&mut self) -> String {
        let most = self.state.most;
        match self.dice.below(10) {
            0 => format!(" COST {most}"),
            1 => format!(" COST {}", most / 2),
            2 => format!(" COST {}", 1 + self.dice.below(most)),
            3 => format!(" COST {}", self.dice.below(5)),
            _ => String::new(),
        }
    }

    fn manner(&mut self) -> &'static str {
        match self.dice.below(10) {
            0 => " FORCE",
            1 => " PARTIAL",
            2 => " RESERVE",
            _ => "",
        }
    }

    /// The id of a lease of the state, or a new one.
    fn id(&mut self) -> String {
        if self.dice.one_in(2) {
            let held = self.dice.below(self.state.entries);
            (self.state.id)(u32::try_from(held).unwrap())
        } else {
            id(u32::MAX - u32::try_from(self.dice.below(NEW_IDS)).unwrap())
        }
    }
}
