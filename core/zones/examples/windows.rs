//! Prints the windows of days: for each line `zone hour microseconds` of the input, the start and the end in microseconds.
//! `core/zones/tests/compare_days.py` compares them with Python's own.

use std::io::{BufWriter, Write, stdin, stdout};

use ratelimit_core::Time;
use ratelimit_core::limiter::Unit;
use ratelimit_zones::find;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let [name, hour, at] = words[..] else { return Err("not three words".into()) };
        let (hour, at) = (hour.parse()?, Time::from_micros(at.parse()?));
        match find(name.as_bytes()) {
            Some(zone) => {
                let (start, end) = zone.window(Unit::Day(hour), at);
                writeln!(out, "{} {}", start.as_micros(), end.as_micros())?;
            }
            None => writeln!(out, "unknown")?,
        }
    }
    Ok(())
}
