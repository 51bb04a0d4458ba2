//! Who asks when: traffic by its shape, thrown from a seed, the same on every machine.
//!
//! A shape says how many requests a user sends per second at each moment; each millisecond then has so many, or one
//! more, as the dice fall, at some microsecond of it. So arrivals are as independent as strangers' are.

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
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Microseconds from the start.
    pub at: u64,
    pub user: u64,
}

/// The caller that hammers, if the shape has one.
pub const ABUSER: u64 = 0;
const NORMAL_USERS: u64 = 5;

/// Of a burst, in milliseconds.
const BURST: u64 = 250;
const BETWEEN_BURSTS: u64 = 10_000;
/// How long before a window's edge, and after it, the stampede lasts, in milliseconds.
const NEAR: u64 = 100;

impl Shape {
    pub const ALL: [Shape; 6] =
        [Shape::Steady, Shape::Bursts, Shape::Edge, Shape::Abuser, Shape::Slow, Shape::Rising];

    pub fn of(id: &str) -> Option<Shape> {
        Shape::ALL.into_iter().find(|shape| shape.id() == id)
    }

    pub fn id(self) -> &'static str {
        match self {
            Shape::Steady => "steady",
            Shape::Bursts => "bursts",
            Shape::Edge => "edge",
            Shape::Abuser => "abuser",
            Shape::Slow => "slow",
            Shape::Rising => "rising",
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
        }
    }

    pub fn users(self) -> u64 {
        if self == Shape::Abuser { 1 + NORMAL_USERS } else { 1 }
    }

    /// Whether what the backend does is a part of the story.
    pub fn is_about_the_backend(self) -> bool {
        matches!(self, Shape::Slow | Shape::Rising)
    }
}

impl Settings {
    /// Milliseconds.
    pub fn duration(&self) -> u64 {
        match self.shape {
            Shape::Steady | Shape::Bursts | Shape::Abuser => 60_000,
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
                let within = (0..count).map(|_| Arrival { at: millisecond * 1000 + dice.below(1000), user });
                arrivals.extend(within);
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
            Shape::Steady | Shape::Slow => average,
            Shape::Bursts => {
                let bursting = (millisecond + BETWEEN_BURSTS / 2) % BETWEEN_BURSTS < BURST;
                average / 5 + if bursting { average * 4 / 5 * BETWEEN_BURSTS / BURST } else { 0 }
            }
            Shape::Edge => {
                let near = (millisecond + self.period + NEAR) % (2 * self.period) < 2 * NEAR;
                average / 10 + if near { average * 9 / 10 * self.period / NEAR } else { 0 }
            }
            // Seven of ten requests are the abuser's.
            Shape::Abuser if user == ABUSER => {
                if (25..75).contains(&share) {
                    average * 14 / 10
                } else {
                    0
                }
            }
            Shape::Abuser => average * 3 / 10 / NORMAL_USERS,
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
