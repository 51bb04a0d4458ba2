//! What can be set: the traffic, the limit, and the backend that is to be protected.

use serde_json::{Value, json};

use crate::shape::Shape;

/// Whether each user has a key, or all share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    Each,
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub shape: Shape,
    /// Requests per second, on average.
    pub rate: u64,
    /// So many per period.
    pub limit: u64,
    /// Milliseconds.
    pub period: u64,
    /// What a bucket holds.
    pub burst: u64,
    /// How many requests the backend works on at a time.
    pub workers: u64,
    /// Milliseconds that it works on one.
    pub service: u64,
    pub keys: Keys,
}

/// A number that can be set, and how far.
pub struct Range {
    pub name: &'static str,
    /// As the page calls it.
    pub label: &'static str,
    pub unit: &'static str,
    pub least: u64,
    pub most: u64,
    of: fn(&mut Settings) -> &mut u64,
}

#[rustfmt::skip]
pub const RANGES: [Range; 6] = [
    Range { name: "rate", label: "Traffic", unit: "per second", least: 1, most: 60, of: |all| &mut all.rate },
    Range { name: "limit", label: "Limit", unit: "per period", least: 1, most: 600, of: |all| &mut all.limit },
    Range { name: "period", label: "Period", unit: "ms", least: 1000, most: 30_000, of: |all| &mut all.period },
    Range { name: "burst", label: "Burst", unit: "at once", least: 1, most: 600, of: |all| &mut all.burst },
    Range { name: "workers", label: "Backend", unit: "workers", least: 1, most: 100, of: |all| &mut all.workers },
    Range { name: "service", label: "Each takes", unit: "ms", least: 10, most: 5000, of: |all| &mut all.service },
];

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            shape: Shape::Edge,
            rate: 15,
            limit: 100,
            period: 10_000,
            burst: 50,
            workers: 10,
            service: 500,
            keys: Keys::Each,
        }
    }
}

/// The defaults for a shape.
impl From<Shape> for Settings {
    fn from(shape: Shape) -> Settings {
        let plain = Settings { shape, ..Settings::default() };
        match shape {
            Shape::Crowd => Settings { rate: 60, limit: 10, ..plain },
            Shape::Tenants => Settings { rate: 30, keys: Keys::Shared, ..plain },
            _ => plain,
        }
    }
}

impl Settings {
    /// The defaults of the shape, except those that `given` replaces: numbers by their names, the shape's id, and whether keys are shared.
    pub fn from_json(given: &Value) -> Result<Settings, String> {
        let mut settings = Settings::default();
        if let Some(id) = given.get("shape") {
            let shape = id.as_str().and_then(Shape::of);
            settings = shape.ok_or_else(|| format!("there is no traffic of the shape {id}"))?.into();
        }
        for range in &RANGES {
            let number = (range.of)(&mut settings);
            *number = match given.get(range.name) {
                None => continue,
                Some(value) => {
                    value.as_u64().filter(|value| (range.least..=range.most).contains(value)).ok_or_else(
                        || format!("{} must be from {} to {}", range.name, range.least, range.most),
                    )?
                }
            };
        }
        if given.get("shared").and_then(Value::as_bool) == Some(true) {
            settings.keys = Keys::Shared;
        }
        Ok(settings)
    }

    /// The key that a user's requests name.
    pub fn key(&self, user: u64) -> String {
        match self.keys {
            Keys::Each => format!("user:{user}"),
            Keys::Shared => "everybody".into(),
        }
    }

    pub fn to_json(&self) -> Value {
        let mut all = json!({ "shape": self.shape.id(), "shared": self.keys == Keys::Shared });
        let mut copy = *self;
        for range in &RANGES {
            all[range.name] = json!(*(range.of)(&mut copy));
        }
        all
    }
}
