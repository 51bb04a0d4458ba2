//! `make demo` on a server that exists already: it leaves time series there, and no other key.

use std::collections::BTreeMap;

use ratelimit_demo::memory::Memory;
use ratelimit_demo::settings::{Keys, Settings};
use ratelimit_demo::strategies::find;
use ratelimit_demo::traffic::Shape;
use ratelimit_demo::trial;
use redis::{Connection, Value};

use super::record;
use super::trials::{Recording, Trial, drive};
use crate::support::{Server, call, dump, ints, simple, text};

/// A hash takes a field and a value where a series takes a time and a count, so these stand in for a server that has
/// time series.
const TIME_SERIES: [&str; 6] =
    ["--rename-command", "HSET", "TS.ADD", "--rename-command", "TOUCH", "TS.CREATE"];

#[test]
fn time_series_hold_what_got_through_and_nothing_else_is_left() {
    let server = Server::start(&TIME_SERIES);
    let con = &mut server.connection();
    assert_eq!(record::is_possible(con), Ok(true));
    move_in(con);
    let mut expected = everything(con);
    let settings = Settings { keys: Keys::Shared, ..Shape::Abuser.into() };
    let arrivals = settings.arrivals();
    for id in ["fixed-window-aligned", "gcra-reserve", "concurrent", "multi"] {
        let memory = Trial::of(&settings, find(id).unwrap(), &arrivals, &mut Memory::new()).unwrap();
        // The second time replaces what the first one recorded.
        for _ in 0..2 {
            let trial = drive(con, &settings, find(id).unwrap(), &arrivals, Recording::TimeSeries).unwrap();
            assert_eq!(trial.figures, memory.figures, "{id}");
        }
        let key = format!("ratelimit-demo:abuser:{id}:through");
        let late = memory.figures.late;
        assert_eq!(points(con, &key), (120, memory.figures.all.admitted - late), "{id}");
        expected.insert(key.clone(), dump(con, &key));
    }
    let key = "ratelimit-demo:abuser:offered".to_string();
    assert_eq!(points(con, &key), (120, arrivals.len() as u64));
    expected.insert(key.clone(), dump(con, &key));
    assert_eq!(everything(con), expected);
}

#[test]
fn a_server_without_time_series_keeps_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(record::is_possible(con), Ok(false));
    move_in(con);
    let before = everything(con);
    let settings = Settings::from(Shape::Abuser);
    let arrivals = settings.arrivals();
    drive(con, &settings, find("sliding-log").unwrap(), &arrivals, Recording::No).unwrap();
    assert_eq!(everything(con), before);
    // A trial that breaks off leaves as little.
    text(con, "ACL SETUSER default -rl.release");
    let Err(error) = drive(con, &settings, find("concurrent").unwrap(), &arrivals, Recording::No) else {
        panic!()
    };
    assert!(error.starts_with("RL.RELEASE user:") && error.contains("no permissions"), "{error}");
    assert_eq!(everything(con), before);
}

#[test]
fn series_of_somebody_elses_kind_are_left_alone() {
    let server = Server::start(&TIME_SERIES);
    let con = &mut server.connection();
    text(con, "SET ratelimit-demo:steady:offered mine");
    let before = everything(con);
    let settings = Settings::from(Shape::Steady);
    let drove = drive(con, &settings, find("uniform").unwrap(), &settings.arrivals(), Recording::TimeSeries);
    let Err(error) = drove else { panic!() };
    assert!(error.contains("WRONGTYPE") || error.contains("WrongType"), "{error}");
    assert_eq!(everything(con), before);
}

/// Every key and what it holds.
fn everything(con: &mut Connection) -> BTreeMap<String, Value> {
    let Value::Array(keys) = call(con, &["KEYS", "*"]).unwrap() else { panic!("KEYS") };
    keys.iter().map(|key| (simple(key), dump(con, &simple(key)))).collect()
}

/// A stranger's keys: with the names that trials use, and with the demo's own beginning.
fn move_in(con: &mut Connection) {
    text(con, "SET everybody mine");
    text(con, "SET ratelimit-demo:mine 1");
    text(con, "RPUSH user:0 mine");
    ints(con, "RL.CONCURRENT user:1 10 10m request-1");
}

/// How many there are in what stands in for a series, and their sum; the first and the last where they belong.
fn points(con: &mut Connection, key: &str) -> (usize, u64) {
    let Value::Array(all) = call(con, &["HGETALL", key]).unwrap() else { panic!("{key}") };
    let number = |value: &Value| simple(value).parse::<u64>().unwrap();
    // What is an option to a series is a field to a hash.
    let samples = all.chunks(2).filter(|pair| simple(&pair[0]) != "ON_DUPLICATE");
    let points: BTreeMap<u64, u64> = samples.map(|point| (number(&point[0]), number(&point[1]))).collect();
    let (first, last) = (points.keys().next().unwrap(), points.keys().last().unwrap());
    assert_eq!((*first, *last), (trial::START / 1000, trial::START / 1000 + 59_500), "{key}");
    (points.len(), points.values().sum())
}
