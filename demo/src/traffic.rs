//! Who asks when: traffic by its shape, thrown from a seed, the same on every machine.
//!
//! A shape says how many requests a user sends per second at each moment; each millisecond then has so many, or one
//! more, as the dice fall, at some microsecond of it. So arrivals are as independent as strangers' are.

use crate::scenes::SCENES;
use crate::settings::Settings;
use ratelimit_dice::Dice;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Steady,
    Bursts,
    Edge,
    Abuser,
    Slow,
    Rising,
    Crowd,
    Tenants,
    Budget,
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Microseconds from the start.
    pub at: u64,
    pub user: u64,
    /// In tokens; 1 unless the traffic is about costs.
    pub cost: u64,
}

/// The caller that hammers, if the shape has one.
pub const ABUSER: u64 = 0;
const NORMAL_USERS: u64 = 5;

/// Of a burst, in milliseconds.
const BURST: u64 = 250;
const BETWEEN_BURSTS: u64 = 10_000;
/// How long before a window's edge, and after it, the stampede lasts, in milliseconds.
const NEAR: u64 = 100;
/// The users of a crowd, and how long after one another they begin, in milliseconds.
const CROWD: u64 = 20;
const APART: u64 = 500;
/// The most tokens that a request costs.
const DEAREST: u64 = 20;

impl Shape {
    /// Those on which `make demo` tries every strategy.
    pub const ALL: [Shape; 6] =
        [Shape::Steady, Shape::Bursts, Shape::Edge, Shape::Abuser, Shape::Slow, Shape::Rising];

    pub fn of(id: &str) -> Option<Shape> {
        SCENES.iter().map(|scene| scene.shape).find(|shape| shape.id() == id)
    }

    pub fn id(self) -> &'static str {
        match self {
            Shape::Steady => "steady",
            Shape::Bursts => "bursts",
            Shape::Edge => "edge",
            Shape::Abuser => "abuser",
            Shape::Slow => "slow",
            Shape::Rising => "rising",
            Shape::Crowd => "crowd",
            Shape::Tenants => "tenants",
            Shape::Budget => "budget",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Shape::Steady => "Steady traffic",
            Shape::Bursts => "Bursts",
            Shape::Edge => "Stampede at the window's edge",
            Shape::Abuser => "An abuser among normal users",
            Shape::Slow => "A backend that becomes slow",
            Shape::Rising => "Rising utilization",
            Shape::Crowd => "Users who begin one after another",
            Shape::Tenants => "A greedy tenant of a shared pool",
            Shape::Budget => "Requests of 1 to 20 tokens",
        }
    }

    pub fn story(self) -> &'static str {
        match self {
            Shape::Steady => "Requests come at the same rate all the time, independent of one another.",
            Shape::Bursts => {
                "A fifth of the requests come all the time; the others in a quarter of a second, every ten seconds."
            }
            Shape::Edge => {
                "Nine of ten requests come within a tenth of a second, before or after, of every other edge of the windows on the clock."
            }
            Shape::Abuser => {
                "Five users ask now and then. In the middle half of the time a sixth one sends over four times as much as all of them together."
            }
            Shape::Slow => {
                "Requests come at the same rate all the time. In the middle third, the backend needs ten times as long for each."
            }
            Shape::Rising => {
                "Requests become seven times as many over four minutes, stay so for two, and recede; every worker that is busy counts as utilization."
            }
            Shape::Crowd => {
                "Twenty users begin half a second after one another. Each sends three requests per second, and has a limit of its own."
            }
            Shape::Tenants => {
                "Six tenants share the workers. In the middle half of the time one of them sends over four times as much as the others together. A refused caller asks again every 200 ms, for 2 s."
            }
            Shape::Budget => "Each request costs 1 to 20 tokens. The limit is meant for tokens.",
        }
    }

    pub fn users(self) -> u64 {
        match self {
            Shape::Abuser | Shape::Tenants => 1 + NORMAL_USERS,
            Shape::Crowd => CROWD,
            _ => 1,
        }
    }

    /// Whether a refused caller asks again.
    pub fn polls(self) -> bool {
        self == Shape::Tenants
    }

    /// Whether one of the users sends far more than the others.
    pub fn has_abuser(self) -> bool {
        matches!(self, Shape::Abuser | Shape::Tenants)
    }

    /// Whether what the backend does is a part of the story.
    pub fn is_about_the_backend(self) -> bool {
        matches!(self, Shape::Slow | Shape::Rising | Shape::Tenants)
    }
}

impl Settings {
    /// Milliseconds.
    pub fn duration(&self) -> u64 {
        match self.shape {
            Shape::Steady | Shape::Bursts | Shape::Abuser | Shape::Crowd | Shape::Tenants | Shape::Budget => {
                60_000
            }
            // Three times the edge between two windows.
            Shape::Edge => 6 * self.period,
            Shape::Slow => 120_000,
            // The shedder thinks in minutes.
            Shape::Rising => 600_000,
        }
    }

    /// All requests, in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let mut dice = Dice::new(1);
        let mut arrivals = Vec::new();
        for millisecond in 0..self.duration() {
            for user in 0..self.shape.users() {
                let millionths = self.millionths(user, millisecond);
                let count =
                    millionths / 1_000_000 + u64::from(dice.below(1_000_000) < millionths % 1_000_000);
                for _ in 0..count {
                    let at = millisecond * 1000 + dice.below(1000);
                    let cost = if self.shape == Shape::Budget { 1 + dice.below(DEAREST) } else { 1 };
                    arrivals.push(Arrival { at, user, cost });
                }
            }
        }
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }

    /// How many requests this user sends in this millisecond on average, in millionths: a thousand for each one per
    /// second.
    fn millionths(&self, user: u64, millisecond: u64) -> u64 {
        let average = self.rate * 1000;
        let share = millisecond * 100 / self.duration();
        match self.shape {
            Shape::Steady | Shape::Slow | Shape::Budget => average,
            Shape::Crowd if millisecond < user * APART => 0,
            Shape::Crowd => average / CROWD,
            Shape::Bursts => {
                let bursting = (millisecond + BETWEEN_BURSTS / 2) % BETWEEN_BURSTS < BURST;
                average / 5 + if bursting { average * 4 / 5 * BETWEEN_BURSTS / BURST } else { 0 }
            }
            Shape::Edge => {
                let near = (millisecond + self.period + NEAR) % (2 * self.period) < 2 * NEAR;
                average / 10 + if near { average * 9 / 10 * self.period / NEAR } else { 0 }
            }
            // Seven of ten requests are the abuser's.
            Shape::Abuser | Shape::Tenants if user == ABUSER => {
                if (25..75).contains(&share) {
                    average * 14 / 10
                } else {
                    0
                }
            }
            Shape::Abuser | Shape::Tenants => average * 3 / 10 / NORMAL_USERS,
            // To seven times as many and back; the height is 0.55 on average, so this is as many as it should be.
            Shape::Rising => {
                let height = match share {
                    0..10 => 0,
                    10..50 => (millisecond - self.duration() / 10) * 1000 / (self.duration() * 4 / 10),
                    50..70 => 1000,
                    _ => (self.duration() - millisecond) * 1000 / (self.duration() * 3 / 10),
                };
                average * 10 / 43 + average * 60 / 43 * height / 1000
            }
        }
    }
}
