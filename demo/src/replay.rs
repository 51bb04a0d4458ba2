//! One trial, request by request, which the page plays: when each request came, when it got through, and what the reply
//! said. Requests that the visitor sends are part of the traffic.

use serde_json::{Value, json};

use crate::figures::Figures;
use crate::headline::Headline;
use crate::memory::Memory;
use crate::reply::{Reply, Server};
use crate::settings::Settings;
use crate::strategies::Strategy;
use crate::traffic::{Arrival, Shape};
use crate::trial::{self, Fate, Outcome};

/// The traffic of a replay, in order.
pub struct Traffic {
    arrivals: Vec<Arrival>,
    /// The places of the requests that the visitor sent.
    sent: Vec<usize>,
}

/// A server that keeps every call and its reply.
#[derive(Default)]
pub struct Recorder {
    memory: Memory,
    pub calls: Vec<(String, Reply)>,
}

impl Traffic {
    /// The settings' own traffic, and a request at each instant of `sent`, in microseconds from the start.
    pub fn of(settings: &Settings, sent: &[u64]) -> Traffic {
        let user = sender(settings.shape);
        let own = settings.arrivals().into_iter().map(|arrival| (arrival, false));
        let more = sent.iter().map(|&at| (Arrival { at, user, cost: 1 }, true));
        let mut all: Vec<(Arrival, bool)> = own.chain(more).collect();
        all.sort_by_key(|(arrival, _)| arrival.at);
        let places = all.iter().enumerate().filter(|(_, (_, sent))| *sent).map(|(place, _)| place);
        Traffic { sent: places.collect(), arrivals: all.into_iter().map(|(arrival, _)| arrival).collect() }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "asked": self.arrivals.iter().map(|arrival| arrival.at).collect::<Vec<_>>(),
            "users": self.arrivals.iter().map(|arrival| arrival.user).collect::<Vec<_>>(),
            "costs": self.arrivals.iter().map(|arrival| arrival.cost).collect::<Vec<_>>(),
            "sent": self.sent,
        })
    }

    /// What a strategy replies to this traffic. Instants are in microseconds, other times in milliseconds; −1 is never.
    pub fn replay(&self, settings: &Settings, strategy: &Strategy) -> Result<(Value, Vec<Outcome>), String> {
        let headline = Headline::of(settings.shape);
        let outcomes = trial::run(settings, strategy, &self.arrivals, &mut Memory::new())?;
        let told = json!({
            "from": outcomes.iter().map(from).collect::<Vec<_>>(),
            "until": outcomes.iter().map(until).collect::<Vec<_>>(),
            "retry": outcomes.iter().map(retry).collect::<Vec<_>>(),
            "remaining": outcomes.iter().map(|outcome| remaining(outcome.reply)).collect::<Vec<_>>(),
            "limit": outcomes.iter().map(|outcome| limit(outcome.reply)).collect::<Vec<_>>(),
            "figures": Figures::of(settings, &outcomes).to_json(),
            "headline": headline.over_time(settings, &outcomes),
            "bound": headline.bound(settings, strategy),
            "unit": headline.unit(settings, &outcomes),
        });
        Ok((told, outcomes))
    }
}

impl Server for Recorder {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        let reply = self.memory.call(line)?;
        self.calls.push((line.into(), reply));
        Ok(reply)
    }
}

/// The visitor is one of the normal users where there is an abuser.
fn sender(shape: Shape) -> u64 {
    if shape.has_abuser() { shape.users() - 1 } else { 0 }
}

fn from(outcome: &Outcome) -> i64 {
    match outcome.fate {
        Fate::Admitted { from, .. } => integer(from),
        Fate::Refused { .. } => -1,
    }
}

/// When the backend was done with it.
fn until(outcome: &Outcome) -> i64 {
    match outcome.fate {
        Fate::Admitted { until, .. } => integer(until),
        Fate::Refused { .. } => -1,
    }
}

fn retry(outcome: &Outcome) -> i64 {
    match outcome.fate {
        Fate::Admitted { .. } => 0,
        Fate::Refused { retry } => retry.map_or(-1, integer),
    }
}

/// The shedder has a chance instead.
fn remaining(reply: Reply) -> Option<i64> {
    if let Reply::Five([_, _, remaining, ..]) = reply { Some(remaining) } else { None }
}

/// At that instant: it may adapt.
fn limit(reply: Reply) -> Option<i64> {
    if let Reply::Five([_, limit, ..]) = reply { Some(limit) } else { None }
}

fn integer(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
