//! A history of random calls on a server, and what its copies must hold then.

use std::collections::BTreeMap;

use redis::{Connection, Value};

use crate::contents::{Contents, contents, held};
use crate::traffic::{POLICIES, Step, Traffic};
use crate::{Server, call, call_bytes, dump, error_line, simple, sync, text, wait_for};

/// Errors that random calls meet. Any other is a defect, of the test or of the module.
const EXPECTED: [&str; 4] = [
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "WRONGTYPE the key holds ",
    "ERR no such key",
    "ERR source and destination objects are the same",
];

/// Calls each of the lines that it is given.
pub const SCRIPT: &str = "for _, line in ipairs(ARGV) do \
                        local words = {} \
                        for word in line:gmatch('%S+') do words[#words + 1] = word end \
                        redis.pcall(unpack(words)) \
                      end";

/// How many of the calls that concern a key are printed if it differs.
const RECENT: usize = 60;

pub struct History {
    seed: u64,
    traffic: Traffic,
    con: Connection,
    somebody: Connection,
    port: u16,
    db: u8,
    /// Where keys are migrated to, and back from.
    elsewhere: Server,
    calls: Vec<String>,
    /// Admitted and refused calls by command; of settlements, those that found a hold and those that did not.
    pub outcomes: BTreeMap<String, (u64, u64)>,
}

impl History {
    pub fn new(seed: u64, server: &Server) -> History {
        let con = server.connection();
        let (traffic, somebody, elsewhere) = (Traffic::new(seed), server.connection(), Server::start(&[]));
        let (calls, outcomes) = (Vec::new(), BTreeMap::new());
        let port = server.port;
        let mut history = History { seed, traffic, con, somebody, port, db: 0, elsewhere, calls, outcomes };
        history.begin(server);
        let function = format!(
            "#!lua name=traffic\nredis.register_function('drive', function(KEYS, ARGV) {SCRIPT} end)"
        );
        call(&mut history.con, &["FUNCTION", "LOAD", &function]).unwrap();
        history
    }

    /// Goes on with a server that was started again.
    pub fn begin(&mut self, server: &Server) {
        (self.con, self.somebody) = (server.connection(), server.connection());
        self.db = 0;
        for policy in POLICIES {
            text(&mut self.con, &format!("RL.POLICY SET {policy}"));
        }
        // Expired keys are left to the calls that meet them.
        text(&mut self.con, "DEBUG SET-ACTIVE-EXPIRE 0");
    }

    pub fn go_on(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.traffic.step() {
                Step::Call(line) => self.plain(&line),
                Step::Transaction(lines) => self.transaction(&lines),
                Step::Script(lines) => self.script(&["EVAL", SCRIPT, "0"], &lines),
                Step::Function(lines) => self.script(&["FCALL", "drive", "0"], &lines),
                Step::Watched { key, call } => self.watched(&key, &call),
                Step::Expired { key, call } => self.expired(&key, &call),
            }
        }
    }

    fn plain(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["MIGRATE", _, key] => self.migrate(key),
            ["RESTORE", key, ttl, from, options @ ..] => {
                let Value::BulkString(bytes) = dump(&mut self.con, &from[1..]) else { return };
                let mut words = vec![b"RESTORE", key.as_bytes(), ttl.as_bytes(), &bytes];
                words.extend(options.iter().map(|option| option.as_bytes()));
                self.note(line);
                call_bytes(&mut self.con, &words).unwrap();
                self.outcomes.entry("RESTORE".into()).or_default().0 += 1;
            }
            _ => {
                if let ["SELECT", db] = words.as_slice() {
                    self.db = db.parse().unwrap();
                }
                self.call(line);
            }
        }
    }

    /// There and back, in the database that is selected.
    fn migrate(&mut self, key: &str) {
        let (port, other, db) = (self.port, self.elsewhere.port, self.db);
        self.note(&format!("MIGRATE there and back {key}"));
        let there = format!("MIGRATE 127.0.0.1 {other} {key} 0 60000 REPLACE");
        if text(&mut self.con, &there) == "OK" {
            let back = format!("MIGRATE 127.0.0.1 {port} {key} {db} 60000 REPLACE");
            assert_eq!(text(&mut self.elsewhere.connection(), &back), "OK");
            self.outcomes.entry("MIGRATE".into()).or_default().0 += 1;
        }
    }

    fn transaction(&mut self, lines: &[String]) {
        self.call("MULTI");
        for line in lines {
            assert_eq!(self.call(line), Value::SimpleString("QUEUED".into()), "{line}");
        }
        let Value::Array(replies) = self.call("EXEC") else { panic!("a transaction that nobody disturbs") };
        for (line, reply) in lines.iter().zip(replies) {
            if let Value::ServerError(_) = reply {
                self.expect_error(line, &simple(&reply));
            }
        }
    }

    fn script(&mut self, words: &[&str], lines: &[String]) {
        let mut words = words.to_vec();
        words.extend(lines.iter().map(String::as_str));
        call(&mut self.con, &words).unwrap_or_else(|error| panic!("{lines:?}: {error}"));
        self.note(&format!("{} {lines:?}", words[0]));
    }

    /// Who watches a key is disturbed if it changes, and not by a refusal.
    fn watched(&mut self, key: &str, line: &str) {
        text(&mut self.somebody, &format!("SELECT {}", self.db));
        let before = held(&mut self.somebody, key);
        text(&mut self.somebody, &format!("WATCH {key}"));
        let reply = self.call(line);
        let after = held(&mut self.con, key);
        text(&mut self.somebody, "MULTI");
        text(&mut self.somebody, line);
        let done = call(&mut self.somebody, &["EXEC"]).unwrap();
        self.note(&format!("WATCHED {line}"));
        if before != after {
            assert_eq!(done, Value::Nil, "seed {}: {line} did not disturb who watches", self.seed);
            assert_eq!(held(&mut self.con, key), after, "seed {}: {line} in vain", self.seed);
        } else if limited(&reply) != Some(0) {
            assert_ne!(done, Value::Nil, "seed {}: {line} disturbed who watches", self.seed);
        }
    }

    /// No call looks at the key between its expiry and this call.
    fn expired(&mut self, key: &str, line: &str) {
        self.call(&format!("PEXPIRE {key} 1"));
        let server = |con: &mut Connection| text(con, "TIME");
        let ends = server(&mut self.con);
        wait_for("the expiry", || millis(&server(&mut self.con)) > millis(&ends) + 1);
        self.call(line);
    }

    fn call(&mut self, line: &str) -> Value {
        self.note(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match call(&mut self.con, &words) {
            Ok(reply) => {
                let outcomes = self.outcomes.entry(words[0].to_string()).or_default();
                let settles = words[0].ends_with("SETTLE");
                match if settles { not_held(&reply) } else { limited(&reply) } {
                    Some(0) => outcomes.0 += 1,
                    Some(_) => outcomes.1 += 1,
                    None => {}
                }
                reply
            }
            Err(error) => {
                self.expect_error(line, &error_line(&error));
                Value::Nil
            }
        }
    }

    fn expect_error(&self, line: &str, error: &str) {
        assert!(
            EXPECTED.iter().any(|start| error.starts_with(start)),
            "seed {}, call {}: {line}: {error}",
            self.seed,
            self.calls.len()
        );
    }

    fn note(&mut self, line: &str) {
        self.calls.push(line.to_string());
    }

    /// Waits until each of the copies has what the one before it has, the first the server's, and compares.
    pub fn agree(&self, server: &Server, copies: &[&Server]) -> Contents {
        let expected = contents(server);
        let mut from = server;
        for (number, copy) in copies.iter().enumerate() {
            sync(from, copy);
            self.compare(&expected, copy, &format!("copy {number}"));
            from = copy;
        }
        expected
    }

    /// Panics with all that it takes to have the difference again.
    pub fn compare(&self, expected: &Contents, server: &Server, name: &str) {
        let found = contents(server);
        if found == *expected {
            return;
        }
        let keys = expected.keys().chain(found.keys());
        let Some((db, key)) = keys.clone().find(|key| expected.get(*key) != found.get(*key)) else { return };
        let concerns = |line: &str| {
            line.contains(key.as_str()) || ["SELECT", "SWAPDB"].iter().any(|word| line.starts_with(word))
        };
        for (index, line) in
            self.calls.iter().enumerate().rev().filter(|(_, line)| concerns(line)).take(RECENT)
        {
            eprintln!("{index}: {line}");
        }
        let place = (*db, key.clone());
        panic!(
            "seed {}, call {}, {name}: {key} of database {db}\n  is {:?}\n not {:?}",
            self.seed,
            self.calls.len(),
            found.get(&place),
            expected.get(&place),
        );
    }
}

/// Of a settlement: 1 if nothing was held.
fn not_held(reply: &Value) -> Option<i64> {
    match reply {
        Value::Array(elements) => elements.last().and_then(not_held),
        Value::Int(held) => Some(i64::from(*held == 0)),
        _ => None,
    }
}

/// The first of all integers: 0 admitted, 1 refused; nil is refused, too.
fn limited(reply: &Value) -> Option<i64> {
    match reply {
        Value::Array(elements) => elements.first().and_then(limited),
        Value::Int(limited @ 0..=1) => Some(*limited),
        Value::Nil => Some(1),
        Value::Int(_) | Value::BulkString(_) => Some(0),
        _ => None,
    }
}

/// Of `[seconds, microseconds]`.
fn millis(time: &str) -> u64 {
    let (seconds, micros) = time.trim_matches(['[', ']']).split_once(", ").unwrap();
    seconds.parse::<u64>().unwrap() * 1000 + micros.parse::<u64>().unwrap() / 1000
}
