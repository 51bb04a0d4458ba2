//! Two sets of equal keys on one server, on which the same calls are made in two ways.

use std::collections::BTreeMap;

use redis::{Connection, Value};

use super::random::RandomPolicy;
use crate::support::dice::Dice;
use crate::support::families::FAMILIES;
use crate::support::{SECOND, call, dump, error_line, text};

/// In the year 2100, so that no key expires within the test.
const START: u64 = 4_102_444_800 * SECOND;
/// Of each set: `x:0` to `x:2`, and `y:0` to `y:2`.
const KEYS: u64 = 3;
const SIDES: [&str; 2] = ["x", "y"];

pub struct Twins {
    pub dice: Dice,
    pub con: Connection,
    now: u64,
    /// What was called, for a test that fails.
    calls: Vec<String>,
    /// How often each outcome came.
    pub outcomes: BTreeMap<String, u64>,
}

/// The parts of a reply.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    /// The combined integers, or all if there are no others.
    pub combined: Vec<i64>,
    /// The integers of each pair.
    pub each: Option<Vec<Vec<i64>>>,
    /// The number of keys that a settlement found.
    pub settled: Option<i64>,
}

/// A call of a policy, and the same call with all words.
pub struct Calls {
    pub ask: String,
    /// `None` for a policy with leases, if the call has no id.
    pub multi: Option<String>,
    pub keys: u64,
    pub full: bool,
}

impl Twins {
    pub fn new(dice: Dice, con: Connection) -> Twins {
        Twins { dice, con, now: START, calls: Vec::new(), outcomes: BTreeMap::new() }
    }

    /// A random call of a policy. Each way of asking has a set of keys.
    pub fn calls_of(&mut self, name: &str, policy: &RandomPolicy) -> Calls {
        let purpose = *self.dice.pick(&["", "", "", "", "PEEK", "REFUND", "SETTLE", "SETTLE"]);
        // Rarely there are too few.
        let least = if self.dice.one_in(12) { 1 } else { policy.least_keys() };
        let keys = least + self.dice.below(KEYS + 1 - least);
        let mut sides = SIDES;
        self.dice.shuffle(&mut sides);
        let [asked, all] = sides.map(|side| (0..keys).map(|key| format!("{side}:{key}")).collect::<Vec<_>>());
        let (id, hold) = (format!("id{}", self.dice.below(6)), format!("held{}", self.dice.below(3)));

        let mut options = self.options(purpose, &hold);
        let for_all = options.join(" ");
        let with_id = if policy.has_leases() { !self.dice.one_in(30) } else { self.dice.one_in(5) };
        if with_id {
            options.push(format!("ID {id}"));
        }
        let full = self.dice.one_in(2);
        if full {
            options.push("FULL".into());
        }
        self.dice.shuffle(&mut options);
        if self.dice.one_in(10) {
            options = options.iter().map(|option| option.to_lowercase()).collect();
        }
        let held = if purpose == "SETTLE" { &hold } else { "" };
        let others = if keys > 1 { format!("KEYS {}", asked[1..].join(" ")) } else { String::new() };
        let ask = format!("RL.ASK{purpose} {} {name} {held} {} {others}", asked[0], options.join(" "));
        // A settlement only looks at leases: without an id, at one that is not held.
        let id = match (with_id || !policy.has_leases(), purpose) {
            (true, _) => Some(id.as_str()),
            (false, "SETTLE") => Some("nobody"),
            (false, _) => None,
        };
        let multi = id.map(|id| {
            format!("RL.MULTI{purpose} {keys} {} {held} {for_all} {}", all.join(" "), policy.for_multi(id))
        });
        Calls { ask, multi, keys, full }
    }

    /// The options that both ways of asking have.
    fn options(&mut self, purpose: &str, hold: &str) -> Vec<String> {
        let mut options = vec![format!("AT {}", self.instant())];
        let cost = match self.dice.below(12) {
            0 => 0,
            1 => 40,
            _ => 1 + self.dice.below(3),
        };
        if purpose == "SETTLE" || self.dice.one_in(2) {
            options.push(format!("COST {cost}"));
        }
        let charges = purpose.is_empty();
        if self.dice.one_in(if charges { 8 } else { 60 }) {
            options.push("FORCE".into());
        }
        if self.dice.one_in(if charges { 4 } else { 60 }) {
            options.push(format!("HOLD {hold} {}", self.dice.pick(&["60", "1m", "1h"])));
        }
        options
    }

    /// Makes a limiter's own command on a key of each set.
    pub fn own_command(&mut self) {
        let family = self.dice.pick(&FAMILIES);
        let (parameters, manner) = (self.dice.pick(family.parameters), self.dice.pick(family.manners));
        let (key, cost, at) = (self.dice.below(KEYS), self.dice.below(4), self.instant());
        let line = |side: &str| {
            let line =
                format!("RL.{} {side}:{key} {parameters} {manner} COST {cost} AT {at}", family.limiter);
            line.replace('#', "id0")
        };
        let replies = SIDES.map(|side| self.call(&line(side)));
        assert_eq!(replies[0], replies[1], "{}", self.told());
        self.compare_keys();
    }

    /// Deletes a key of each set, or rarely makes it one of another type.
    pub fn replace(&mut self) {
        let key = self.dice.below(KEYS);
        let line = match self.dice.below(20) {
            0 => format!("MSET x:{key} text y:{key} text"),
            _ => format!("DEL x:{key} y:{key}"),
        };
        text(&mut self.con, &line);
        self.calls.push(line);
    }

    pub fn compare_keys(&mut self) {
        for key in 0..KEYS {
            let [x, y] = SIDES.map(|side| {
                let key = format!("{side}:{key}");
                (dump(&mut self.con, &key), text(&mut self.con, &format!("PEXPIRETIME {key}")))
            });
            assert_eq!(x, y, "key {key}: {}", self.told());
        }
    }

    pub fn call(&mut self, line: &str) -> Result<Parts, String> {
        self.calls.push(line.into());
        let words: Vec<&str> = line.split_whitespace().collect();
        match call(&mut self.con, &words) {
            Ok(reply) => Ok(parts_of(&reply)),
            Err(error) => Err(error_line(&error)),
        }
    }

    /// Time goes on in small steps, and now and then back.
    fn instant(&mut self) -> u64 {
        self.now += match self.dice.below(100) {
            0 => self.dice.below(20 * SECOND),
            1..=40 => 0,
            _ => self.dice.below(40_000),
        };
        match self.dice.below(40) {
            0 => self.now - (1 + self.dice.below(36_000)) * SECOND,
            1 => self.now - self.dice.below(300_000),
            _ => self.now,
        }
    }

    pub fn count(&mut self, outcome: &str, times: u64) {
        *self.outcomes.entry(outcome.into()).or_default() += times;
    }

    /// The last calls.
    pub fn told(&self) -> String {
        let recent = self.calls.len().saturating_sub(40);
        self.calls[recent..].join("\n")
    }
}

fn parts_of(reply: &Value) -> Parts {
    let integer = |value: &Value| match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no integer"),
    };
    let integers = |value: &Value| match value {
        Value::Array(integers) => integers.iter().map(integer).collect(),
        value => vec![integer(value)],
    };
    let Value::Array(elements) = reply else {
        return Parts { combined: integers(reply), each: None, settled: None };
    };
    match elements.as_slice() {
        [all @ Value::Array(_), Value::Array(each), settled @ ..] => Parts {
            combined: integers(all),
            each: Some(each.iter().map(integers).collect()),
            settled: settled.first().map(integer),
        },
        _ => Parts { combined: integers(reply), each: None, settled: None },
    }
}
