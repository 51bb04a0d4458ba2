//! Callers that wait in the server: `BLOCK`. Their order, turns and replies are in `tests/sessions/waiting_*.txt`.

mod between;
mod clients;
mod clock;
mod cluster;
mod copies;
mod crowd;
mod ends;
mod events;
mod idle;
mod pauses;
mod tenants;
mod wakes;
mod within;

use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use crate::support::client::Client;
use crate::support::{PATIENCE, Server, info, pool, simple, text, wait_for};

/// Settings with which a caller may wait for a limit of an hour: `BLOCK 1d`.
const PATIENT: [&str; 2] = ["--ratelimit.max-block", "86400000"];

/// A call that may wait, on a connection of its own. If it is dropped, the client disconnects.
struct Waiting {
    line: String,
    client: Client,
    /// The server's number of the client.
    id: i64,
    reply: Option<Value>,
}

impl Waiting {
    /// Makes a call.
    fn start(server: &Server, line: &str) -> Waiting {
        Waiting::on(Client::connect(server.port), line)
    }

    /// Makes a call on this connection.
    fn on(mut client: Client, line: &str) -> Waiting {
        let id = client.id();
        client.send(line);
        Waiting { line: line.to_string(), client, id, reply: None }
    }

    /// Makes a call, and returns when its caller waits.
    fn enter(server: &Server, line: &str) -> Waiting {
        Waiting::enter_on(server, Client::connect(server.port), line)
    }

    /// Makes a call on this connection, and returns when its caller waits.
    fn enter_on(server: &Server, client: Client, line: &str) -> Waiting {
        let con = &mut server.connection();
        let before = waiting(con);
        let mut caller = Waiting::on(client, line);
        wait_for(&format!("a caller that waits: {line}"), || {
            assert!(caller.waits(), "{line}: {:?}", caller.reply.as_ref().map(simple));
            waiting(con) > before
        });
        caller
    }

    /// Whether no reply has come yet.
    fn waits(&mut self) -> bool {
        self.reply = self.reply.take().or_else(|| self.client.poll());
        self.reply.is_none()
    }

    /// Waits for the reply; `None` if the server closes the connection.
    fn outcome(&mut self) -> Option<Value> {
        let deadline = Instant::now() + PATIENCE;
        while self.waits() && !self.client.is_closed() {
            assert!(Instant::now() < deadline, "{}: no reply", self.line);
            sleep(Duration::from_micros(100));
        }
        self.reply.take()
    }

    /// The reply, as `support::text` returns it.
    fn text(mut self) -> String {
        let reply = self.outcome().unwrap_or_else(|| panic!("{}: the connection is closed", self.line));
        assert!(!matches!(reply, Value::ServerError(_)), "{}: {}", self.line, simple(&reply));
        simple(&reply)
    }

    /// The integers of the reply.
    fn ints(self) -> Vec<i64> {
        let line = self.line.clone();
        let text = self.text();
        let integers = text.trim_matches(['[', ']']).split(", ").map(str::parse);
        integers.collect::<Result<_, _>>().unwrap_or_else(|_| panic!("{line}: {text}"))
    }

    /// The error, as the server sends it.
    fn error(mut self) -> String {
        match self.outcome() {
            Some(error @ Value::ServerError(_)) => simple(&error),
            other => panic!("{}: no error but {:?}", self.line, other.as_ref().map(simple)),
        }
    }
}

/// The number of callers that wait.
fn waiting(con: &mut Connection) -> u64 {
    count(con, "waiting")
}

/// A number of the module's section of `INFO`.
fn count(con: &mut Connection, field: &str) -> u64 {
    info(con, "ratelimit", &format!("ratelimit_{field}")).expect(field).parse().unwrap()
}

/// Polls until this number of callers wait.
fn until_waiting(con: &mut Connection, callers: u64) {
    wait_for(&format!("{callers} callers that wait"), || waiting(con) == callers);
}

/// Returns when the server has tried all callers that were due before.
fn until_tried(server: &Server) {
    pool::until_tried(server, &mut server.connection());
}

/// Replaces the key `k` by its copy, and returns when the server has tried those who wait for it.
fn try_in_vain(server: &Server) {
    let con = &mut server.connection();
    text(con, "COPY k copy REPLACE");
    text(con, "RENAME copy k");
    until_tried(server);
}

/// Sends lines at once, so that the server tries no caller between them.
fn pipeline(con: &mut Connection, lines: &[impl AsRef<str>]) -> Vec<Value> {
    let mut calls = redis::pipe();
    for line in lines {
        let mut words = line.as_ref().split_whitespace();
        calls.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
    }
    calls.query(con).unwrap()
}

/// An instant in the year 2100.
const AHEAD: u64 = 4_102_444_800_000_000;

/// A field of a reply of `RL.INFO`.
fn figure(fields: &str, name: &str) -> u64 {
    let value = fields.split(&format!("{name}, ")).nth(1).unwrap_or_else(|| panic!("{name}: {fields}"));
    value.split([',', ']']).next().unwrap().parse().unwrap()
}
