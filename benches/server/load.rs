//! Putting a row's load on a server, and making sure that it was what the row says.

use std::process::Command;

use redis::{Connection, Value};

use super::Result;
use super::row::{Answer, Load, Row};
use ratelimit_testing::{Server, call, info, ints, main_thread_seconds, simple, wait_for};

/// Calls per pipeline, if nothing else is said, and ours.
pub const PIPELINE: u32 = 64;
/// How many replies are looked at after a load.
const SAMPLE: u32 = 50;
const MOST_PREPARED: u32 = 1_000_000;

#[derive(Clone, Copy)]
pub struct Size {
    pub connections: u32,
    /// How many calls a connection sends before it waits for their answers.
    pub pipeline: u32,
    pub keys: u32,
    pub calls: u32,
    /// The calls of the largest load that this one is compared with: both prepare for that one.
    pub most: u32,
}

/// Prepares the keys, makes the calls, checks them; returns the CPU time of the server's main thread, in
/// microseconds per call.
pub fn put(server: &Server, row: &Row, size: Size) -> Result<f64> {
    prepare(server, row, size)?.put(server, size.calls)
}

/// Prepares the keys.
pub fn prepare<'a>(server: &Server, row: &'a Row, size: Size) -> Result<Prepared<'a>> {
    let mut con = server.connection();
    store_policy(&mut con, row.policy)?;
    set(&mut con, "ratelimit.top", row.top)?;
    set(&mut con, "ratelimit.record", row.record)?;
    let call = row.call.replace("$SHA", &loaded(&mut con, row.script)?);
    let prepare = if row.prepare.is_empty() { &call } else { row.prepare };
    // Where each key is prepared often there are fewer of them, or preparing would take longer than all else.
    let most_keys = if row.times == 1 { size.keys } else { MOST_PREPARED / row.times };
    let size = Size { keys: size.keys.min(most_keys), ..size };
    let prepared = match row.load {
        Load::Random => size.keys * row.times,
        Load::Once => size.most.max(size.keys * row.times),
        Load::Fresh => 0,
    };
    pipeline(&mut con, prepared, |i| fill(prepare, i, size.keys), |_| Ok(()))?;
    Ok(Prepared { row, call, size })
}

/// A row whose keys are on a server.
pub struct Prepared<'a> {
    row: &'a Row,
    call: String,
    size: Size,
}

impl Prepared<'_> {
    /// The call, with the script's digest.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// Makes so many calls on that server, or one that has loaded its keys; returns as [`put`] does.
    pub fn put(&self, server: &Server, calls: u32) -> Result<f64> {
        let mut con = server.connection();
        let (row, call, size) = (self.row, &self.call, Size { calls, ..self.size });
        let before = Tally::read(&mut con, row)?;
        let started = main_thread_seconds(&mut con);
        match row.load {
            Load::Random => benchmark(server, call, size)?,
            Load::Once => {
                // In no order that the server could know: the step shares no factor with any load's size.
                let shuffled =
                    |i: u32| u32::try_from(u64::from(i) * 7919 % u64::from(size.most)).unwrap_or(0);
                let nth = |i| fill(call, shuffled(i), size.keys);
                pipeline(&mut con, calls, nth, |reply| check(row, reply))?;
            }
            Load::Fresh => {
                let nth = |i| fill(call, i, u32::MAX);
                pipeline(&mut con, calls, nth, |reply| check(row, reply))?;
            }
        }
        let cpu = (main_thread_seconds(&mut con) - started) * 1e6;
        Tally::read(&mut con, row)?.check_since(&before, row, calls)?;
        if row.load == Load::Random {
            let spread = size.keys / SAMPLE;
            pipeline(&mut con, SAMPLE, |i| fill(call, i * spread, size.keys), |reply| check(row, reply))?;
        }
        Ok(cpu / f64::from(calls))
    }
}

/// Changes a setting. One that changes makes a server send effects for a second, so this waits until it no longer does.
fn set(con: &mut Connection, setting: &str, value: u32) -> Result<()> {
    let value = &value.to_string();
    let sends = |con: &mut Connection| info(con, "ratelimit", "ratelimit_propagates");
    if simple(&call(con, &["CONFIG", "GET", setting])?) == format!("[{setting}, {value}]") {
        return Ok(());
    }
    let sent = sends(con);
    call(con, &["CONFIG", "SET", setting, value])?;
    wait_for("effects to be sent as before", || sends(con) == sent);
    Ok(())
}

/// Stores a policy, if there is one.
fn store_policy(con: &mut Connection, policy: &str) -> Result<()> {
    if !policy.is_empty() {
        let words = ["RL.POLICY", "SET"].into_iter().chain(policy.split(' '));
        call(con, &words.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Loads a script, if there is one, and returns its digest.
pub fn loaded(con: &mut Connection, script: &str) -> Result<String> {
    if script.is_empty() {
        return Ok(String::new());
    }
    Ok(simple(&call(con, &["SCRIPT", "LOAD", script])?))
}

/// Makes `count` calls in pipelines. An error reply ends it.
pub fn pipeline(
    con: &mut Connection,
    count: u32,
    line: impl Fn(u32) -> String,
    check: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    pipelines(con, PIPELINE, count, line, check)
}

/// Makes `count` calls in pipelines of `batch` calls each.
pub fn pipelines(
    con: &mut Connection,
    batch: u32,
    count: u32,
    line: impl Fn(u32) -> String,
    mut check: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut next = 0;
    while next < count {
        let end = count.min(next + batch);
        let mut pipe = redis::Pipeline::with_capacity(batch as usize);
        for i in next..end {
            let mut cmd = redis::Cmd::new();
            for word in line(i).split(' ') {
                cmd.arg(word);
            }
            pipe.add_command(cmd);
        }
        let replies: Vec<Value> = pipe.query(con)?;
        replies.iter().try_for_each(&mut check)?;
        next = end;
    }
    Ok(())
}

/// The first `#` becomes one of the keys, any other the number itself, as redis-benchmark writes numbers.
pub fn fill(line: &str, i: u32, keys: u32) -> String {
    line.replacen('#', &format!("{:012}", i % keys), 1).replace('#', &format!("{i:012}"))
}

fn benchmark(server: &Server, call: &str, size: Size) -> Result<()> {
    let output = Command::new("redis-benchmark")
        .args(["-q", "-h", "127.0.0.1", "-p", &server.port.to_string(), "-P", &size.pipeline.to_string()])
        .args(["-c", &size.connections.to_string(), "-r", &size.keys.to_string()])
        .args(["-n", &size.calls.to_string()])
        .args(call.replace('#', "__rand_int__").split(' '))
        .output()?;
    if !output.status.success() {
        return Err(format!("redis-benchmark: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}

pub fn check(row: &Row, reply: &Value) -> Result<()> {
    let first = |reply: &Value| match reply {
        Value::Int(number) => Some(*number),
        Value::Array(elements) => match elements.first() {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    };
    let first_of_all = || match reply {
        Value::Array(elements) => elements.first().and_then(first),
        _ => None,
    };
    let right = match row.answer {
        Answer::Any => true,
        Answer::Full => *reply == Value::Nil,
        Answer::Admitted => first(reply) == Some(0),
        Answer::AllAdmitted => first_of_all() == Some(0),
        Answer::AllRefused => first_of_all() == Some(1),
        Answer::Refused | Answer::Done => first(reply) == Some(1),
    };
    if right { Ok(()) } else { Err(format!("answered {}", simple(reply)).into()) }
}

/// What the server has counted.
pub struct Tally {
    /// Calls of the row's command.
    calls: u64,
    errors: u64,
    /// Of keys, as the server counts them for its save points.
    changes: u64,
    keys: u64,
    /// By all our limiters.
    admitted: u64,
    refused: u64,
}

impl Tally {
    pub fn read(con: &mut Connection, row: &Row) -> Result<Tally> {
        let command = row.call.split(' ').next().unwrap_or_default().to_lowercase();
        // "calls=12,usec=..."; nothing before the first call.
        let stats = info(con, "commandstats", &format!("cmdstat_{command}")).unwrap_or_default();
        let calls = stats.strip_prefix("calls=").and_then(|rest| rest.split(',').next()).unwrap_or("0");
        let ours = simple(&call(con, &["INFO", "ratelimit"])?);
        let sum = |suffix: &str| -> u64 {
            let counters = ours.lines().filter_map(|line| line.split_once(':'));
            let counters = counters.filter(|(name, _)| name.ends_with(suffix));
            counters.filter_map(|(_, number)| number.parse::<u64>().ok()).sum()
        };
        let mut number = |section, field| -> Result<u64> {
            Ok(info(con, section, field).ok_or_else(|| format!("no {field}"))?.parse()?)
        };
        Ok(Tally {
            calls: calls.parse()?,
            errors: number("stats", "total_error_replies")?,
            changes: number("persistence", "rdb_changes_since_last_save")?,
            keys: u64::try_from(ints(con, "DBSIZE")[0])?,
            admitted: sum("_admitted"),
            refused: sum("_refused"),
        })
    }

    pub fn check_since(&self, before: &Tally, row: &Row, calls: u32) -> Result<()> {
        let calls = u64::from(calls);
        let counted = |what: &str, number: u64, expected: u64| {
            if number == expected {
                return Ok(());
            }
            Err(format!("{number} {what} instead of {expected}"))
        };
        counted("calls", self.calls - before.calls, calls)?;
        counted("errors", self.errors - before.errors, 0)?;
        // A script may change several keys with a call, or nothing with an id that came before.
        let changes = self.changes - before.changes;
        counted("changes", changes, if row.writes { changes.max(calls * 9 / 10) } else { 0 })?;
        if row.load == Load::Fresh {
            counted("new keys", self.keys.saturating_sub(before.keys), calls)?;
        }
        let (admitted, refused) = match row.answer {
            _ if !row.consumes() => (0, 0),
            Answer::Refused | Answer::AllRefused | Answer::Full => (0, calls),
            _ => (calls, 0),
        };
        counted("admitted", self.admitted - before.admitted, admitted)?;
        counted("refused", self.refused - before.refused, refused)?;
        Ok(())
    }
}
