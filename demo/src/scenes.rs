//! The scenes of the page: which traffic comes, which two strategies are shown with it, and which part of the time is played.

use serde_json::{Value, json};

use crate::settings::Settings;
use crate::shape::Shape;

pub struct Scene {
    pub shape: Shape,
    /// In a few words.
    pub title: &'static str,
    pub pair: [&'static str; 2],
    /// The part of the time that is played first: where it begins and ends, of 1.
    pub plays: (f64, f64),
}

/// The scenes that make up the story, in order. Then other traffic.
pub const STORY: usize = 6;
pub const SCENES: [Scene; 9] = [
    Scene {
        shape: Shape::Edge,
        title: "A burst at the edge",
        pair: ["fixed-window-aligned", "sliding-log"],
        plays: (9.89 / 60.0, 10.09 / 60.0),
    },
    Scene {
        shape: Shape::Crowd,
        title: "The stampede",
        pair: ["fixed-window-aligned", "fixed-window"],
        plays: (9.5 / 60.0, 22.0 / 60.0),
    },
    Scene {
        shape: Shape::Slow,
        title: "A slow backend",
        pair: ["token-bucket", "concurrent"],
        plays: (39.0 / 120.0, 56.0 / 120.0),
    },
    Scene {
        shape: Shape::Tenants,
        title: "Fair shares",
        pair: ["concurrent", "concurrent-tenant"],
        plays: (14.5 / 60.0, 30.0 / 60.0),
    },
    Scene {
        shape: Shape::Abuser,
        title: "A ban for an abuser",
        pair: ["sliding-window", "penalty"],
        plays: (14.5 / 60.0, 40.0 / 60.0),
    },
    Scene {
        shape: Shape::Budget,
        title: "A budget of tokens",
        pair: ["sliding-log", "sliding-log-cost"],
        plays: (0.0, 15.0 / 60.0),
    },
    Scene {
        shape: Shape::Rising,
        title: "Rising utilization",
        pair: ["token-bucket", "shed"],
        plays: (0.2, 0.6),
    },
    Scene {
        shape: Shape::Steady,
        title: "Steady traffic",
        pair: ["uniform", "leaky-bucket"],
        plays: (0.0, 0.25),
    },
    Scene {
        shape: Shape::Bursts,
        title: "Bursts",
        pair: ["token-bucket", "leaky-bucket"],
        plays: (4.9 / 60.0, 11.0 / 60.0),
    },
];

impl Scene {
    pub fn to_json(&self, place: usize) -> Value {
        json!({
            "id": self.shape.id(),
            "number": (place < STORY).then_some(place + 1),
            "title": self.title,
            "traffic": self.shape.title(),
            "story": self.shape.story(),
            "users": self.shape.users(),
            "pair": self.pair,
            "plays": self.plays,
            "defaults": Settings::from(self.shape).to_json(),
        })
    }
}
