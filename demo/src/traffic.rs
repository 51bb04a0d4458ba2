//! Who asks when: traffic by its shape, thrown from a seed, the same on every machine.
//!
//! A shape says how many requests a user sends per second at each moment; each millisecond then has so many, or one
//! more, as the dice fall, at some microsecond of it. So arrivals are as independent as strangers' are.

use crate::settings::Settings;
pub use crate::shape::Shape;
use crate::shape::{CROWD, NORMAL_USERS};
use ratelimit_dice::Dice;

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

/// Of a burst, in milliseconds.
const BURST: u64 = 250;
const BETWEEN_BURSTS: u64 = 10_000;
/// How long before a window's edge, and after it, the stampede lasts, in milliseconds.
const NEAR: u64 = 100;
/// How long after one another the users of a crowd begin, in milliseconds.
const APART: u64 = 500;
/// The most tokens that a request costs.
const DEAREST: u64 = 20;

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
