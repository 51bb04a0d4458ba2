//! The door for the page: JSON goes in and comes out, through a place in memory that both sides see.
//!
//! The page asks for room with `room`, writes its request there, calls `trials`, `replay`, `history`, `example` or
//! `attempts`, and reads as many bytes as `told` says from where that pointed to.

use std::sync::Mutex;

use ratelimit_core::Span;
use ratelimit_engine::reply::Reply;
use serde_json::{Value, json};

use crate::chart;
use crate::example::{self, Attempt, Call};
use crate::figures::{Figures, Series};
use crate::headline::Headline;
use crate::memory::Memory;
use crate::replay::{Recorder, Traffic};
use crate::scenes::SCENES;
use crate::settings::{RANGES, Range, Settings};
use crate::shown;
use crate::strategies::{Asker, STRATEGIES, Strategy, find};
use crate::trial::{self, Outcome};

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

/// The strategies that are asked for, or all of them, on the traffic of the settings that stand in the room.
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
        let trials: Vec<Value> = chosen(given)?.into_iter().map(trial).collect();
        Ok(json!({ "settings": settings.to_json(), "trials": trials }))
    })
}

/// Every request, and what the strategies that are asked for reply to it.
#[unsafe(no_mangle)]
pub extern "C" fn replay() -> *const u8 {
    tell(replayed)
}

/// Each call that a strategy makes on that traffic, and its reply: to be compared with a server's.
#[unsafe(no_mangle)]
pub extern "C" fn history() -> *const u8 {
    tell(|given| {
        let settings = Settings::from_json(given)?;
        let strategy = given["strategy"].as_str().and_then(find).ok_or("there is no such strategy")?;
        let mut recorder = Recorder::default();
        trial::run(&settings, strategy, &settings.arrivals(), &mut recorder)?;
        let calls = recorder.calls.iter().map(|(line, reply)| json!([line, reply.to_json()]));
        Ok(calls.collect())
    })
}

/// The calls of the examples before, and those of an example, each with its microsecond of Unix time.
#[unsafe(no_mangle)]
pub extern "C" fn example() -> *const u8 {
    tell(|given| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let before: Vec<String> = given["before"].as_array().into_iter().flatten().map(text).collect();
        Ok(json!(example::calls(&before, &text(&given["text"]))))
    })
}

/// What comes of such calls until the instant `at`: what a reader of the documentation tries. With how long after `start` each was
/// made, and how long after it `at` is.
#[unsafe(no_mangle)]
pub extern "C" fn attempts() -> *const u8 {
    tell(|given| {
        let start = given["start"].as_u64().unwrap_or_default();
        let since = |at: u64| shown::duration(at.saturating_sub(start).cast_signed() / 1000);
        let calls = given["calls"].as_array().into_iter().flatten();
        let call = |call: &Value| Some((call[0].as_u64()?, call[1].as_str()?.to_owned()));
        let calls: Vec<Call> = calls.filter_map(call).collect();
        let at = given["at"].as_u64();
        let attempts = example::attempt(&calls, at.unwrap_or_default());
        let replies = calls.iter().zip(&attempts).map(|((at, line), attempt)| {
            let mut told = tell_attempt(line, attempt);
            told["since"] = json!(since(*at));
            told
        });
        Ok(json!({ "since": at.map(since), "replies": replies.collect::<Vec<_>>() }))
    })
}

/// What has come of a call, in words, and when the limit is fully reset or the wait has ended, in milliseconds.
fn tell_attempt(line: &str, attempt: &Attempt) -> Value {
    let after = |waited: &Option<Span>| {
        let after =
            |waited: &Span| format!("after {}: ", shown::duration(waited.as_millis_up().cast_signed()));
        waited.as_ref().map(after).unwrap_or_default()
    };
    match attempt {
        Attempt::NeedsServer(needs) => json!({ "elsewhere": needs.to_string() }),
        Attempt::Waits => json!({ "said": "waits", "reset": example::LONGEST_WAIT / 1000 }),
        Attempt::Replied(Reply::Error(error), waited) => {
            json!({ "error": format!("{}{error}", after(waited)) })
        }
        Attempt::Replied(reply, waited) => {
            let [limited, .., reset] = shown::five(reply).unwrap_or_default();
            let said = format!("{}{}", after(waited), shown::shown(line, reply));
            json!({ "said": said, "refused": limited != 0, "reset": reset })
        }
    }
}

/// What the page shows before this engine has arrived in the browser: what can be chosen, and the first scene.
pub fn first() -> Result<Value, String> {
    let [scene, ..] = &SCENES;
    let given = json!({ "shape": scene.shape.id(), "strategies": scene.pair });
    Ok(json!({ "choices": choices(), "replay": replayed(&given)? }))
}

fn replayed(given: &Value) -> Result<Value, String> {
    let settings = Settings::from_json(given)?;
    let sent = given["sent"].as_array().into_iter().flatten();
    let traffic = Traffic::of(&settings, &sent.filter_map(Value::as_u64).collect::<Vec<_>>());
    let mut tried = Vec::new();
    let mut lane = |strategy: &'static Strategy| {
        let mut told = introduce(&settings, strategy);
        match traffic.replay(&settings, strategy) {
            Err(error) => told["error"] = json!(error),
            Ok((replay, outcomes)) => {
                told["replay"] = replay;
                tried.push((strategy.name(), outcomes));
            }
        }
        told
    };
    let lanes: Vec<Value> = chosen(given)?.into_iter().map(&mut lane).collect();
    Ok(json!({
        "settings": settings.to_json(),
        "duration": settings.duration(),
        "traffic": traffic.to_json(),
        "lanes": lanes,
        "lesson": lesson(&settings, &tried),
    }))
}

/// What can be chosen: scenes, strategies, ranges.
fn choices() -> Value {
    let range = |Range { name, label, unit, least, most, .. }: &Range| json!({ "name": name, "label": label, "unit": unit, "least": least, "most": most });
    let strategy = |strategy: &Strategy| json!({ "id": strategy.id, "name": strategy.name(), "family": strategy.family });
    json!({
        "scenes": SCENES.iter().enumerate().map(|(place, scene)| scene.to_json(place)).collect::<Vec<_>>(),
        "strategies": STRATEGIES.iter().map(strategy).collect::<Vec<_>>(),
        "ranges": RANGES.iter().map(range).collect::<Vec<_>>(),
    })
}

/// The sentence about two strategies; empty for others.
fn lesson(settings: &Settings, tried: &[(String, Vec<Outcome>)]) -> String {
    let [(one, outcomes), (two, others)] = tried else { return String::new() };
    let headline = Headline::of(settings.shape);
    let number = |outcomes| headline.over_time(settings, outcomes).last().map_or(0, |(_, number)| *number);
    headline.sentence(settings, outcomes, [(one, number(outcomes)), (two, number(others))])
}

/// The strategies whose ids are listed, in that order; all where there is no list.
fn chosen(given: &Value) -> Result<Vec<&'static Strategy>, String> {
    let Some(ids) = given["strategies"].as_array() else { return Ok(STRATEGIES.iter().collect()) };
    let one = |id: &Value| id.as_str().and_then(find).ok_or_else(|| format!("there is no strategy {id}"));
    ids.iter().map(one).collect()
}

fn introduce(settings: &Settings, strategy: &Strategy) -> Value {
    let key = settings.key(1);
    let example = Asker { key: &key, id: "request-1", tenant: "tenant-1", cost: 7, utilization: 0.9 };
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
