//! The door for the page: JSON goes in and comes out, through a place in memory that both sides see.
//!
//! The page asks for room with `room`, writes its request there, calls `choices`, `trials` or `history`, and reads as
//! many bytes as `told` says from where that pointed to.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::chart;
use crate::figures::{Figures, Series};
use crate::memory::Memory;
use crate::reply::{Reply, Server};
use crate::settings::{RANGES, Range, Settings};
use crate::strategies::{Asker, STRATEGIES, Strategy, find};
use crate::traffic::Shape;
use crate::trial;

static ROOM: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Room for so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *const u8 {
    let Ok(mut room) = ROOM.lock() else { return std::ptr::null() };
    room.clear();
    room.resize(bytes, 0);
    room.as_ptr()
}

/// How many bytes were told last.
#[unsafe(no_mangle)]
pub extern "C" fn told() -> usize {
    ROOM.lock().map_or(0, |room| room.len())
}

/// What can be chosen: shapes of traffic, ranges, defaults.
#[unsafe(no_mangle)]
pub extern "C" fn choices() -> *const u8 {
    tell(|_| Ok(choose()))
}

/// Every strategy on the traffic of the settings that stand in the room.
#[unsafe(no_mangle)]
pub extern "C" fn trials() -> *const u8 {
    tell(|given| {
        let settings = Settings::from_json(given)?;
        let width = given["width"].as_u64().unwrap_or(chart::WIDTH);
        let arrivals = settings.arrivals();
        let trial = |strategy| {
            let mut told = introduce(&settings, strategy);
            match trial::run(&settings, strategy, &arrivals, &mut Memory::new()) {
                Err(error) => told["error"] = json!(error),
                Ok(outcomes) => {
                    let series = Series::of(&settings, &outcomes);
                    told["figures"] = Figures::of(&settings, &outcomes).to_json();
                    told["series"] = series.to_json();
                    told["svg"] = json!(chart::draw(&settings, strategy, &series, width));
                }
            }
            told
        };
        let trials: Vec<Value> = STRATEGIES.iter().map(trial).collect();
        Ok(json!({ "settings": settings.to_json(), "trials": trials }))
    })
}

/// Each call that a strategy makes on that traffic, and its reply: to be compared with a server's.
#[unsafe(no_mangle)]
pub extern "C" fn history() -> *const u8 {
    tell(|given| {
        let settings = Settings::from_json(given)?;
        let strategy = given["strategy"].as_str().and_then(find).ok_or("there is no such strategy")?;
        let mut recorder = Recorder { memory: Memory::new(), calls: Vec::new() };
        trial::run(&settings, strategy, &settings.arrivals(), &mut recorder)?;
        Ok(Value::Array(recorder.calls))
    })
}

/// A server that keeps what was said.
struct Recorder {
    memory: Memory,
    calls: Vec<Value>,
}

impl Server for Recorder {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        let reply = self.memory.call(line)?;
        self.calls.push(json!([line, reply.to_json()]));
        Ok(reply)
    }
}

fn choose() -> Value {
    let shape = |shape: Shape| json!({ "id": shape.id(), "title": shape.title(), "story": shape.story() });
    let range = |Range { name, label, unit, least, most, .. }: &Range| json!({ "name": name, "label": label, "unit": unit, "least": least, "most": most });
    json!({
        "shapes": Shape::ALL.map(shape),
        "ranges": RANGES.iter().map(range).collect::<Vec<_>>(),
        "defaults": Settings::default().to_json(),
    })
}

fn introduce(settings: &Settings, strategy: &Strategy) -> Value {
    let example = Asker { key: "user:1", id: "request-1", utilization: 0.9 };
    json!({
        "id": strategy.id,
        "name": strategy.name(),
        "family": strategy.family,
        "command": strategy.line(settings, &example),
        "tradeOff": strategy.trade_off,
        "page": strategy.page,
        "limitsRate": strategy.limits_rate(),
    })
}

/// Puts what is made of the request in the room in its place.
fn tell(make: impl FnOnce(&Value) -> Result<Value, String>) -> *const u8 {
    let Ok(mut room) = ROOM.lock() else { return std::ptr::null() };
    let given = serde_json::from_slice(&room).unwrap_or(Value::Null);
    let told = make(&given).unwrap_or_else(|error| json!({ "error": error }));
    *room = told.to_string().into_bytes();
    room.as_ptr()
}
