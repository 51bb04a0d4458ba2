//! A fleet of processes that call a backend, and a limit of requests in progress between them: what comes of it.
//!
//! Requests arrive at random. A refused one is lost. The caller of an admitted one gives up at its deadline, which the
//! backend does not notice: it serves the request in vain. The same seed gives the same trial.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a trial takes hours at most, and one that goes wrong fails its test"
)]

mod limits;

pub use limits::{Aimd, Each, Fixed, Found, Gradient2, Limit, SECOND};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use ratelimit_core::adapt::Ending;
use ratelimit_dice::Dice;

/// How long a request is served, in microseconds.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    Fixed(u64),
    /// With this mean.
    Exponential(u64),
    /// Nine of ten take the first, the tenth takes the second.
    Bimodal(u64, u64),
}

/// What serves requests.
#[derive(Clone, Debug)]
pub struct Backend {
    pub service: Service,
    /// How many are served at a time; others wait, first come first served.
    pub workers: usize,
    /// From this number in service on, service takes longer with the square of the number: a disk that seeks.
    pub crowded: Option<usize>,
    /// In these seconds service takes three times as long.
    pub slow: Range<u64>,
}

/// What is tried.
#[derive(Clone, Debug)]
pub struct World {
    pub backend: Backend,
    /// Seconds, and the number of processes that the fleet has from then on.
    pub fleet: Vec<(u64, usize)>,
    /// The requests of a process in a second.
    pub rate: f64,
    /// When a caller gives up, in microseconds.
    pub deadline: u64,
    pub seconds: u64,
    /// Whether callers report their deadlines as failures.
    pub reports: bool,
    pub seed: u64,
}

/// What a trial came to, second by second.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    pub limits: Vec<f64>,
    /// Requests that ended before their deadlines.
    pub good: Vec<u32>,
    /// How long admitted requests took until they were served or given up, with the second of their end.
    took: Vec<(u32, u32)>,
}

impl Trial {
    /// The mean number of good requests a second.
    pub fn goodput(&self, seconds: Range<usize>) -> f64 {
        self.good[seconds.clone()].iter().copied().map(f64::from).sum::<f64>() / seconds.len() as f64
    }

    /// The time within which 99 % of admitted requests ended, in milliseconds.
    pub fn p99(&self, seconds: Range<usize>) -> f64 {
        let mut took: Vec<u32> = self
            .took
            .iter()
            .filter(|(second, _)| seconds.contains(&(*second as usize)))
            .map(|(_, took)| *took)
            .collect();
        if took.is_empty() {
            return 0.0;
        }
        let at = (took.len() - 1) * 99 / 100;
        let (_, p99, _) = took.select_nth_unstable(at);
        f64::from(*p99) / 1000.0
    }

    /// The least and the largest limit.
    pub fn range(&self, seconds: Range<usize>) -> (f64, f64) {
        let limits = || self.limits[seconds.clone()].iter().copied();
        (limits().fold(f64::MAX, f64::min), limits().fold(0.0, f64::max))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Second(u64),
    Arrives(usize),
    GivesUp(usize),
    Served(usize),
}

#[derive(Clone, Copy)]
struct Request {
    process: usize,
    taken: u64,
    ended: bool,
}

impl World {
    /// Runs the trial.
    pub fn run(&self, limit: &mut dyn Limit) -> Trial {
        let mut run = Run {
            world: self,
            dice: Dice::new(self.seed),
            events: BinaryHeap::new(),
            requests: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            serving: 0,
            trial: Trial::default(),
        };
        for (since, until, processes) in self.spans() {
            for process in processes {
                let at = since * SECOND + run.pause();
                if at < until * SECOND {
                    run.at(at, Event::Arrives(process));
                }
            }
        }
        run.trial.good.push(0);
        (1..=self.seconds).for_each(|second| run.at(second * SECOND, Event::Second(second)));
        while let Some(Reverse((now, event))) = run.events.pop() {
            if now > self.seconds * SECOND {
                break;
            }
            run.step(limit, now, event);
        }
        run.trial
    }

    /// Which processes join in a second.
    fn spans(&self) -> impl Iterator<Item = (u64, u64, Range<usize>)> {
        let before = [0].into_iter().chain(self.fleet.iter().map(|(_, processes)| *processes));
        self.fleet
            .iter()
            .zip(before)
            .map(|((since, processes), before)| (*since, self.seconds, before..*processes))
    }

    fn processes(&self, second: u64) -> usize {
        self.fleet
            .iter()
            .filter(|(since, _)| *since < second)
            .map(|(_, processes)| *processes)
            .max()
            .unwrap_or(0)
    }
}

struct Run<'w> {
    world: &'w World,
    dice: Dice,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    requests: Vec<Request>,
    free: Vec<usize>,
    queue: VecDeque<usize>,
    serving: usize,
    trial: Trial,
}

impl Run<'_> {
    fn at(&mut self, at: u64, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn step(&mut self, limit: &mut dyn Limit, now: u64, event: Event) {
        match event {
            Event::Second(second) => {
                self.trial.limits.push(limit.limit(self.world.processes(second)));
                self.trial.good.push(0);
            }
            Event::Arrives(process) => {
                let next = now + self.pause();
                self.at(next, Event::Arrives(process));
                if limit.admits(process) {
                    self.begin(process, now);
                }
            }
            Event::GivesUp(number) => {
                let Request { process, taken, ended } = self.requests[number];
                if ended {
                    self.free.push(number);
                } else {
                    let ending = if self.world.reports { Ending::Failed } else { Ending::Unknown };
                    limit.ends(process, taken, now, ending);
                    self.end(number, now);
                }
            }
            Event::Served(number) => {
                let Request { process, taken, ended } = self.requests[number];
                if ended {
                    self.free.push(number);
                } else {
                    limit.ends(process, taken, now, Ending::Well);
                    let second = self.end(number, now);
                    self.trial.good[second] += 1;
                }
                self.serving -= 1;
                self.serve(now);
            }
        }
    }

    fn begin(&mut self, process: usize, now: u64) {
        let request = Request { process, taken: now, ended: false };
        let number = if let Some(number) = self.free.pop() {
            self.requests[number] = request;
            number
        } else {
            self.requests.push(request);
            self.requests.len() - 1
        };
        self.at(now + self.world.deadline, Event::GivesUp(number));
        self.queue.push_back(number);
        self.serve(now);
    }

    /// Returns the second in which the request ended.
    fn end(&mut self, number: usize, now: u64) -> usize {
        let request = &mut self.requests[number];
        request.ended = true;
        let took = u32::try_from(now - request.taken).unwrap();
        let second = self.trial.limits.len();
        self.trial.took.push((u32::try_from(second).unwrap(), took));
        second
    }

    fn serve(&mut self, now: u64) {
        while self.serving < self.world.backend.workers
            && let Some(number) = self.queue.pop_front()
        {
            self.serving += 1;
            let time = self.service(now);
            self.at(now + time, Event::Served(number));
        }
    }

    fn service(&mut self, now: u64) -> u64 {
        let Backend { service, crowded, slow, .. } = &self.world.backend;
        let time = match *service {
            Service::Fixed(time) => time as f64,
            Service::Exponential(mean) => self.exponential(mean as f64),
            Service::Bimodal(_, long) if self.dice.one_in(10) => long as f64,
            Service::Bimodal(short, _) => short as f64,
        };
        let crowd = crowded.map_or(1.0, |knee| (self.serving as f64 / knee as f64).max(1.0));
        let slower = if slow.contains(&(now / SECOND)) { 3.0 } else { 1.0 };
        (time * crowd * crowd * slower).max(1.0) as u64
    }

    fn pause(&mut self) -> u64 {
        self.exponential(SECOND as f64 / self.world.rate).max(1.0) as u64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        let part = (self.dice.any() >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - part).ln() * mean
    }
}
