//! Bytes per key: what a million keys with names of 16 bytes take, each touched once; and per entry of one log.

use super::load::{fill, loaded, pipeline};
use super::{Result, Selection, against, grouped, lua};
use ratelimit_testing::{Server, info, used_memory};

const KEYS: u32 = 1_000_000;

struct Row {
    name: &'static str,
    /// As in the table of calls.
    call: &'static str,
    calls: u32,
    script: &'static str,
    target: Option<u64>,
    elsewhere: &'static str,
}

const PLAIN: Row = Row { name: "", call: "", calls: KEYS, script: "", target: None, elsewhere: "" };

/// 1.26 times `SET PX`, and 1.4 times.
const SMALL: Option<u64> = Some(162);
const OTHER: Option<u64> = Some(180);

/// Periods of an hour: no key may go before the last one has come.
const ROWS: &[Row] = &[
    Row { name: "INCR", call: "INCR key:#", elsewhere: "72 when designed", ..PLAIN },
    Row {
        name: "SET of 19 digits",
        call: "SET key:# 1234567890123456789",
        elsewhere: "88 when designed",
        ..PLAIN
    },
    Row {
        name: "SET PX of 19 digits",
        call: "SET key:# 1234567890123456789 PX 3600000",
        elsewhere: "129 when designed",
        ..PLAIN
    },
    Row {
        name: "RL.TOKENBUCKET",
        call: "RL.TOKENBUCKET key:# 100 1 1h",
        target: OTHER,
        elsewhere: "Lua 258",
        ..PLAIN
    },
    Row { name: "RL.TOKENBUCKET BATCH", call: "RL.TOKENBUCKET key:# 100 1 1h BATCH", target: OTHER, ..PLAIN },
    Row {
        name: "RL.GCRA",
        call: "RL.GCRA key:# 100 1 1h",
        target: SMALL,
        elsewhere: "redis-cell 161",
        ..PLAIN
    },
    Row { name: "RL.UNIFORM", call: "RL.UNIFORM key:# 1h", target: SMALL, ..PLAIN },
    Row { name: "RL.FIXEDWINDOW", call: "RL.FIXEDWINDOW key:# 100 1h", target: SMALL, ..PLAIN },
    Row {
        name: "RL.FIXEDWINDOW ALIGNED",
        call: "RL.FIXEDWINDOW key:# 100 1d ALIGNED",
        target: SMALL,
        ..PLAIN
    },
    Row { name: "RL.CALENDAR", call: "RL.CALENDAR key:# 100 MONTH TZ Europe/Lisbon", target: OTHER, ..PLAIN },
    Row { name: "RL.PENALTY", call: "RL.PENALTY key:# 3 1h 1h", target: OTHER, ..PLAIN },
    Row { name: "RL.LEAKYBUCKET", call: "RL.LEAKYBUCKET key:# 100 1 1h", target: OTHER, ..PLAIN },
    Row { name: "RL.SMOOTH", call: "RL.SMOOTH key:# 1 1h", target: OTHER, ..PLAIN },
    Row { name: "RL.SMOOTH WARMUP", call: "RL.SMOOTH key:# 1 1h WARMUP 2h", target: OTHER, ..PLAIN },
    Row { name: "RL.SHED", call: "RL.SHED key:# 0.5 DELAY 1h", target: OTHER, ..PLAIN },
    Row { name: "RL.SLIDINGWINDOW", call: "RL.SLIDINGWINDOW key:# 100 1h", target: OTHER, ..PLAIN },
    Row {
        name: "RL.SLIDINGWINDOW PRECISION",
        call: "RL.SLIDINGWINDOW key:# 100 1h PRECISION 1m",
        elsewhere: "Lua, three windows 289",
        ..PLAIN
    },
    Row {
        name: "RL.MULTI, three windows on one key",
        call: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 100 1m LIMIT SLIDINGWINDOW 100 1h LIMIT SLIDINGWINDOW 100 1d",
        elsewhere: "Lua, three windows 289",
        ..PLAIN
    },
    Row { name: "RL.SLIDINGLOG, one entry", call: "RL.SLIDINGLOG key:# 100 1h", ..PLAIN },
    Row {
        name: "RL.SLIDINGLOG COUNTREFUSED, one entry",
        call: "RL.SLIDINGLOG key:# 100 1h COUNTREFUSED",
        ..PLAIN
    },
    Row { name: "RL.CONCURRENT, one lease", call: "RL.CONCURRENT key:# 100 1h id:#", ..PLAIN },
    Row { name: "RL.CONCURRENT ADAPT, one lease", call: "RL.CONCURRENT key:# 100 1h id:# ADAPT", ..PLAIN },
    Row { name: "RL.TOKENBUCKET, one hold", call: "RL.TOKENBUCKET key:# 100 1 1h HOLD id:# 1h", ..PLAIN },
    Row {
        name: "Lua token bucket",
        call: "EVALSHA $SHA 2 tok:# tim:# 10 100000 1700000000 1",
        script: lua::TOKEN_BUCKET,
        elsewhere: "258 when designed",
        ..PLAIN
    },
];

/// One key, entered into as fast as the server can.
const ENTRIES: Row = Row { calls: 100_000, ..PLAIN };
const LOGS: &[Row] = &[
    Row { name: "RL.SLIDINGLOG, an entry", call: "RL.SLIDINGLOG key 1000000 1h", target: Some(4), ..ENTRIES },
    // As many as the setting allows.
    Row {
        name: "RL.TOKENBUCKET, a hold",
        call: "RL.TOKENBUCKET key 1000000 1000 1h HOLD id:# 1h",
        calls: 10_000,
        ..ENTRIES
    },
    Row { name: "sorted set, an entry", call: "ZADD key # #", elsewhere: "about 90", ..ENTRIES },
];

/// Prints the table; returns how many rows failed.
pub fn run(selection: &Selection<'_>) -> usize {
    println!("\nBytes per key");
    println!("{:<36} {:>8}  {:<24} elsewhere", "call", "bytes", "target");
    let mut failed = 0;
    for row in ROWS.iter().chain(LOGS).filter(|row| selection.has(row.name)) {
        match per_key(row) {
            Ok(bytes) => {
                let target = against(bytes, row.target);
                println!("{:<36} {:>8}  {target:<24} {}", row.name, grouped(bytes), row.elsewhere);
            }
            Err(error) => {
                failed += 1;
                println!("{:<36} ERROR, not measured: {error}", row.name);
            }
        }
    }
    failed
}

fn per_key(row: &Row) -> Result<u64> {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let call = row.call.replace("$SHA", &loaded(&mut con, row.script)?);
    let used = || used_memory(&mut server.connection());
    let before = used();
    pipeline(&mut con, row.calls, |i| fill(&call, i, row.calls), |_| Ok(()))?;
    let grown = u64::try_from(used() - before)?;
    // "keys=1000000,expires=..."; a limiter of two keys has twice as many.
    let names = row.call.matches(":#").count() - row.call.matches(" id:#").count();
    let keys = if names == 0 { 1 } else { u64::from(row.calls) * u64::try_from(names)? };
    let expected = format!("keys={keys},");
    let keyspace = info(&mut con, "keyspace", "db0").unwrap_or_default();
    if !keyspace.starts_with(&expected) {
        return Err(format!("{keyspace} instead of {expected}").into());
    }
    // To the nearest byte.
    Ok((grown + u64::from(row.calls) / 2) / u64::from(row.calls))
}
