//! A server on which calls are timed.
//!
//! States are kept in database 0. Calls are made in database 1, on the key `work`, which is a fresh copy of a state.

use std::time::{Duration, Instant};

use redis::{Connection, ConnectionLike, Value};

use super::payload::{Aof, crafted};
use super::states::SMALL;
use crate::Result;
use crate::load::pipelines;
use ratelimit_testing::{Server, call, call_bytes, command_names, dump_bytes, text};

/// The calls that are sent before their replies are read.
const BATCH: u32 = 10_000;
/// A call on a million entries can take longer than a minute.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most calls of which the slow log is read.
const SLOW_LOG: &str = "1000";

pub struct Trial {
    server: Server,
    con: Connection,
    aof: Option<Aof>,
    /// The state that `work` was copied from, and what was written by then.
    copied: Option<(String, u64)>,
}

/// The words of a call.
pub type Words = Vec<Vec<u8>>;

impl Trial {
    pub fn start() -> Result<Trial> {
        let server = Server::start(&["--slowlog-max-len", SLOW_LOG, "--auto-aof-rewrite-percentage", "0"]);
        let mut con = server.connection();
        con.set_read_timeout(Some(PATIENCE))?;
        // Keys that have expired are deleted only by the calls that find them.
        text(&mut con, "DEBUG SET-ACTIVE-EXPIRE 0");
        Ok(Trial { server, con, aof: None, copied: None })
    }

    pub fn command_names(&mut self) -> Vec<String> {
        command_names(&mut self.con)
    }

    /// Makes `work` missing, or a copy of a state, and returns with database 1 selected.
    pub fn copy(&mut self, state: Option<&str>) -> Result<()> {
        self.copied = None;
        for line in ["SELECT 1", "FLUSHDB SYNC", "SELECT 0"] {
            self.call(line)?;
        }
        if let Some(state) = state {
            let copied = self.call(&format!("COPY state:{state} work DB 1"))?;
            if copied != Value::Int(1) {
                return Err(format!("state:{state} is missing").into());
            }
        }
        self.call("SELECT 1")?;
        Ok(())
    }

    /// Makes `work` a copy of a state, unless it already is an unchanged one.
    pub fn refresh(&mut self, state: &str) -> Result<()> {
        // The settings that a call of `hard.rs` may change.
        self.call("CONFIG SET lazyfree-lazy-expire no lazyfree-lazy-server-del no")?;
        if self.copied != Some((state.to_string(), self.written())) {
            self.copy(Some(state))?;
            self.copied = Some((state.to_string(), self.written()));
        }
        Ok(())
    }

    /// Keeps `work` as a state.
    pub fn keep(&mut self, state: &str) -> Result<()> {
        for line in ["PERSIST work", &format!("RENAME work state:{state}"), &format!("MOVE state:{state} 0")]
        {
            self.call(line)?;
        }
        Ok(())
    }

    /// Has all writes appended to a file from now on.
    pub fn begin_aof(&mut self) -> Result<()> {
        self.aof = Some(Aof::begin(&self.server, &mut self.con)?);
        Ok(())
    }

    /// The length of that file. It stands still as long as no call writes.
    pub fn written(&self) -> u64 {
        self.aof.as_ref().map_or(0, Aof::length)
    }

    /// The call that replicas received since the file had this length; `None` if they received none.
    pub fn replicated(&self, since: u64) -> Result<Option<Words>> {
        let Some(aof) = &self.aof else { return Ok(None) };
        let applied = aof.applied(since)?;
        let command = vec![b"RL.APPLY".to_vec()];
        Ok((!applied.is_empty()).then(|| [command, applied].concat()))
    }

    /// The words of a call on a state. A word that begins with `$` is replaced with a payload.
    pub fn words(&mut self, state: &str, line: &str) -> Result<Words> {
        line.split(' ').map(|word| self.word(state, word)).collect()
    }

    fn word(&mut self, state: &str, word: &str) -> Result<Vec<u8>> {
        let Some(payload) = word.strip_prefix('$') else { return Ok(word.as_bytes().to_vec()) };
        if payload == "dump" {
            return Ok(dump_bytes(&mut self.con, "work"));
        }
        let name = if payload == "small" { SMALL } else { state };
        let whole = self.aof.as_ref().and_then(|aof| aof.whole(&format!("state:{name}")));
        crafted(payload, whole.ok_or("a payload is missing")?)
    }

    pub fn call(&mut self, line: &str) -> Result<Value> {
        Ok(call(&mut self.con, &line.split(' ').collect::<Vec<_>>())?)
    }

    pub fn time_every_call(&mut self) -> Result<()> {
        self.call("CONFIG SET slowlog-log-slower-than 0").map(drop)
    }

    /// Makes a call, and returns how long it took, in microseconds. An error reply is an error.
    pub fn timed(&mut self, words: &Words) -> Result<u64> {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        call_bytes(&mut self.con, &words)?;
        let slow = self.slow_calls(1)?;
        slow.first().map(|(_, micros)| *micros).ok_or_else(|| "the slow log is empty".into())
    }

    /// Makes calls until they have taken `patience`, and returns how long each took. An error reply is a reply.
    pub fn timed_all(&mut self, lines: &[String], patience: Duration) -> Result<Vec<u64>> {
        let started = Instant::now();
        let mut made = 0;
        for line in lines {
            let mut command = redis::Cmd::new();
            line.split(' ').for_each(|word| _ = command.arg(word));
            if let Err(error) = self.con.req_command(&command)
                && error.code().is_none()
            {
                return Err(error.into());
            }
            made += 1;
            if started.elapsed() > patience {
                break;
            }
        }
        let mut slow = self.slow_calls(made)?;
        slow.reverse();
        if slow.len() == made {
            Ok(slow.into_iter().map(|(_, micros)| micros).collect())
        } else {
            Err("a call is not in the slow log".into())
        }
    }

    /// Makes calls in pipelines, and returns those that took more than `most` microseconds. An error reply is an error.
    pub fn pipelined(
        &mut self,
        calls: u32,
        line: impl Fn(u32) -> String,
        most: u64,
    ) -> Result<Vec<(String, u64)>> {
        self.call(&format!("CONFIG SET slowlog-log-slower-than {most}"))?;
        self.call("SLOWLOG RESET")?;
        pipelines(&mut self.con, BATCH, calls, line, |reply| match reply {
            Value::ServerError(error) => Err(format!("{error:?}").into()),
            _ => Ok(()),
        })?;
        self.call("CONFIG SET slowlog-log-slower-than -1")?;
        self.slow_calls(SLOW_LOG.parse()?)
    }

    /// The last calls of the slow log, the newest first: their words and microseconds.
    fn slow_calls(&mut self, count: usize) -> Result<Vec<(String, u64)>> {
        let Value::Array(entries) = self.call(&format!("SLOWLOG GET {count}"))? else {
            return Err("no slow log".into());
        };
        entries.iter().map(|entry| slow_call(entry).ok_or_else(|| "a malformed slow log".into())).collect()
    }
}

/// An entry of the slow log: its number, when the call was made, how long it took, and its words.
pub fn slow_call(entry: &Value) -> Option<(String, u64)> {
    let Value::Array(fields) = entry else { return None };
    let [_, _, Value::Int(micros), Value::Array(words), ..] = fields.as_slice() else { return None };
    let words = words.iter().map(|word| match word {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    });
    Some((words.collect::<Vec<_>>().join(" "), u64::try_from(*micros).ok()?))
}
