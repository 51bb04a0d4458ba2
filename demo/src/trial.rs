//! A strategy is tried on traffic: each request asks, what is admitted goes to the backend, which works on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::reply::{Reply, Server};
use crate::settings::Settings;
use crate::strategies::{Asker, Strategy};
use crate::traffic::{Arrival, Shape};
use ratelimit_dice::Dice;

/// What became of a request; instants in microseconds from the start.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub asked: u64,
    pub user: u64,
    pub cost: u64,
    pub fate: Fate,
    /// The last one, if it asked again.
    pub reply: Reply,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// When it got through, after its wait if it had one, and when the backend was done with it.
    Admitted { from: u64, until: u64 },
    /// When it may ask again, in milliseconds; none is never.
    Refused { retry: Option<u64> },
}

/// Where a trial begins: the start of an hour, so an edge of every window on the clock.
pub const START: u64 = 1_700_002_800_000_000;

/// How often a caller asks again that is refused, and for how long, if callers poll; in microseconds.
const POLL: u64 = 200_000;
const PATIENCE: u64 = 2_000_000;

/// What the throws against a chance are made from, here and in memory.
pub(crate) const SEED: u64 = 2;

/// A lease that is to be released.
struct Lease {
    key: String,
    id: String,
}

/// What the backend has taken on.
#[derive(Default)]
struct Backend {
    /// From when it will work on requests that wait, until when, and their places.
    booked: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// When it will be done, and with which.
    at_work: BinaryHeap<Reverse<(u64, usize)>>,
    /// What each holds until then.
    leases: Vec<Option<Lease>>,
}

/// The outcome of every request, in the order in which they came.
pub fn run(
    settings: &Settings,
    strategy: &Strategy,
    arrivals: &[Arrival],
    server: &mut dyn Server,
) -> Result<Vec<Outcome>, String> {
    let mut backend = Backend::default();
    let mut dice = Dice::new(SEED);
    let mut outcomes = vec![None; arrivals.len()];
    let mut calls: BinaryHeap<_> =
        arrivals.iter().enumerate().map(|(number, arrival)| Reverse((arrival.at, number))).collect();
    while let Some(Reverse((at, number))) = calls.pop() {
        let arrival = &arrivals[number];
        backend.work_until(at, server)?;
        let key = settings.key(arrival.user);
        let id = format!("request-{number}");
        let (tenant, cost) = (format!("tenant-{}", arrival.user), arrival.cost);
        let utilization = backend.utilization(settings);
        let asker = Asker { key: &key, id: &id, tenant: &tenant, cost, utilization };
        let reply = ask(settings, strategy, &asker, at, server)?;
        let fate = if is_refused(reply, &mut dice) {
            if settings.shape.polls() && at + POLL <= arrival.at + PATIENCE {
                calls.push(Reverse((at + POLL, number)));
            }
            Fate::Refused { retry: reply.retry_after() }
        } else {
            let from = at + reply.retry_after().unwrap_or(0) * 1000;
            let until = from + settings.service_at(from) * 1000;
            backend.take(at, from, until, strategy.holds().then_some(Lease { key, id }));
            Fate::Admitted { from, until }
        };
        outcomes[number] = Some(Outcome { asked: arrival.at, user: arrival.user, cost, fate, reply });
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// Of the shedder's reply only the chance counts, and the throw is the trial's own: a server's dice have no seed, and a
/// trial must come out the same each time.
fn is_refused(reply: Reply, dice: &mut Dice) -> bool {
    if let Reply::Chance(_, chance) = reply { falls(dice, chance) } else { reply.limited() }
}

/// Whether something with this chance happens, as the server decides it by its random bytes.
#[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
fn falls(dice: &mut Dice, chance: f64) -> bool {
    chance > 0.0 && ((dice.any() >> 11) as f64 / 2f64.powi(53)) < chance
}

fn ask(
    settings: &Settings,
    strategy: &Strategy,
    asker: &Asker<'_>,
    at: u64,
    server: &mut dyn Server,
) -> Result<Reply, String> {
    server.call(&timed(&strategy.line(settings, asker), at))
}

/// A call with its instant. Where several limits follow one another, what is said of all of them stands before the first.
fn timed(line: &str, at: u64) -> String {
    match line.split_once(" LIMIT ") {
        Some((before, after)) => format!("{before} AT {} LIMIT {after}", START + at),
        None => format!("{line} AT {}", START + at),
    }
}

impl Settings {
    /// How long the backend works on a request that it takes on at this instant, in milliseconds.
    pub(crate) fn service_at(&self, at: u64) -> u64 {
        let third = self.duration() * 1000 / 3;
        let slow = self.shape == Shape::Slow && (third..2 * third).contains(&at);
        if slow { self.service * 10 } else { self.service }
    }
}

impl Backend {
    /// Passes the time up to an instant.
    fn work_until(&mut self, now: u64, server: &mut dyn Server) -> Result<(), String> {
        while let Some(Reverse((from, until, place))) = self.booked.peek().copied()
            && from <= now
        {
            self.booked.pop();
            self.at_work.push(Reverse((until, place)));
        }
        while let Some(Reverse((until, place))) = self.at_work.peek().copied()
            && until <= now
        {
            self.at_work.pop();
            if let Some(Lease { key, id }) = self.leases[place].take() {
                server.call(&format!("RL.RELEASE {key} {id} AT {}", START + until))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, now: u64, from: u64, until: u64, lease: Option<Lease>) {
        let place = self.leases.len();
        self.leases.push(lease);
        if from > now {
            self.booked.push(Reverse((from, until, place)));
        } else {
            self.at_work.push(Reverse((until, place)));
        }
    }

    /// The part of the workers that are busy.
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    fn utilization(&self, settings: &Settings) -> f64 {
        (self.at_work.len() as f64 / settings.workers as f64).min(1.0)
    }
}
