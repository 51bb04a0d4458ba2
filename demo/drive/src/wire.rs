//! A real server as a trial sees it: words go out, a reply comes back.

use std::collections::BTreeSet;

use ratelimit_demo::reply::{Reply, Server};
use redis::{Connection, Value};

use super::told::read;

/// A connection whose keys stand apart from everybody else's.
pub struct Wire<'c> {
    con: &'c mut Connection,
    prefix: &'c str,
    made: BTreeSet<String>,
}

impl<'c> Wire<'c> {
    /// `prefix` begins no key that is there.
    pub fn new(con: &'c mut Connection, prefix: &'c str) -> Wire<'c> {
        Wire { con, prefix, made: BTreeSet::new() }
    }

    /// Deletes the keys that calls went to, and no others.
    pub fn clear(self) -> Result<(), String> {
        if self.made.is_empty() {
            return Ok(());
        }
        redis::cmd("DEL").arg(self.made).exec(self.con).map_err(|error| error.to_string())
    }
}

impl Server for Wire<'_> {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        let mut command = redis::Cmd::new();
        for (place, word) in line.split(' ').enumerate() {
            if place == key_place(line) {
                let key = format!("{}{word}", self.prefix);
                command.arg(&key);
                self.made.insert(key);
            } else {
                command.arg(word);
            }
        }
        let reply: Value = command.query(self.con).map_err(|error| format!("{line}: {error}"))?;
        read(&reply).ok_or_else(|| format!("{line}: {reply:?} is no reply of this module's"))
    }
}

/// At which word of the call its key stands.
fn key_place(line: &str) -> usize {
    // Behind how many there are.
    if line.starts_with("RL.MULTI ") { 2 } else { 1 }
}
