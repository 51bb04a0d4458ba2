//! What was offered and what got through as time series, on a server that has them: `RedisTimeSeries`.

use ratelimit_demo::figures::Series;
use ratelimit_demo::traffic::Shape;
use ratelimit_demo::trial::START;
use redis::{Connection, Value};

/// Whether this server has them.
pub fn is_possible(con: &mut Connection) -> Result<bool, String> {
    let known: Value = redis::cmd("COMMAND").arg("INFO").arg("TS.ADD").query(con).map_err(said)?;
    Ok(!matches!(known, Value::Array(each) if matches!(each.as_slice(), [] | [Value::Nil])))
}

/// What came, to `ratelimit-demo:<shape>:offered`.
pub fn offered(con: &mut Connection, shape: Shape, series: &Series) -> Result<(), String> {
    let key = format!("ratelimit-demo:{}:offered", shape.id());
    record(con, &key, &["shape", shape.id(), "data", "offered"], series.slot, &series.offered)
}

/// What a strategy let through, to `ratelimit-demo:<shape>:<strategy>:through`.
pub fn through(con: &mut Connection, shape: Shape, strategy: &str, series: &Series) -> Result<(), String> {
    let key = format!("ratelimit-demo:{}:{strategy}:through", shape.id());
    let labels = ["shape", shape.id(), "strategy", strategy, "data", "through"];
    record(con, &key, &labels, series.slot, &series.through)
}

/// One sample for each slot of so many milliseconds, at its beginning.
fn record(con: &mut Connection, key: &str, labels: &[&str], slot: u64, counts: &[u64]) -> Result<(), String> {
    let mut create = redis::cmd("TS.CREATE");
    create.arg(key).arg("LABELS").arg(labels);
    match create.exec(con) {
        Err(error) if !error.to_string().contains("already exists") => return Err(said(error)),
        _ => {}
    }
    let mut samples = redis::pipe();
    for (place, count) in (0..).zip(counts) {
        let sample = samples.cmd("TS.ADD").arg(key).arg(START / 1000 + place * slot).arg(count);
        // Another run replaces the samples of the last one.
        sample.arg("ON_DUPLICATE").arg("LAST").ignore();
    }
    samples.exec(con).map_err(said)
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
fn said(error: redis::RedisError) -> String {
    format!("time series: {error}")
}
