//! What must come of calls on keys that have one limit with the same parameters throughout: each has a model in rational numbers. A
//! key that something else touches has none until it is missing again.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use ratelimit_core::limiter::{AlignedWindow, FixedWindow, Rate, SlidingWindow, Unit};
use ratelimit_core::{Manner, Period, Span, Time};
use ratelimit_engine::memory::Memory;
use ratelimit_engine::reply::Reply;

use super::told::Told;
use crate::ledger::{Action, Book, Ledger, charges, missing_batches, opened_windows, owed};
use crate::{in_recent_parts, in_same_window, in_window, on_same_dates, overlap};

/// A limit, and its model.
struct Tame {
    key: &'static str,
    /// The limiter and its parameters.
    limit: &'static str,
    model: fn() -> Box<dyn Ledger>,
}

const MINUTE: Span = Span::from_millis(60_000);

fn rate(limit: u64, count: u64, seconds: u64) -> Rate {
    Rate { limit: number(limit), count: number(count), period: period(Span::from_millis(1000 * seconds)) }
}

fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("a number")
}

fn period(span: Span) -> Period {
    Period::of(span).expect("a period")
}

fn minute() -> Period {
    period(MINUTE)
}

const LIMITS: [Tame; 11] = [
    Tame { key: "gcra", limit: "GCRA 5 6 60s", model: || Box::new(owed(rate(6, 6, 60))) },
    Tame { key: "bucket", limit: "TOKENBUCKET 6 1 10s", model: || Box::new(owed(rate(6, 1, 10))) },
    Tame { key: "leaky", limit: "LEAKYBUCKET 6 1 10s", model: || Box::new(owed(rate(6, 1, 10))) },
    Tame {
        key: "batch",
        limit: "TOKENBUCKET 6 2 20s BATCH",
        model: || Box::new(missing_batches(rate(6, 2, 20))),
    },
    Tame {
        key: "window",
        limit: "FIXEDWINDOW 6 60s",
        model: || Box::new(opened_windows(FixedWindow { limit: number(6), window: minute() })),
    },
    Tame {
        key: "aligned",
        limit: "FIXEDWINDOW 6 60s ALIGNED",
        model: || {
            Box::new(charges(6, in_same_window(AlignedWindow { limit: number(6), window: minute() }.window)))
        },
    },
    Tame {
        key: "calendar",
        limit: "CALENDAR 6 HOUR",
        model: || Box::new(charges(6, on_same_dates(Unit::Hour, 0))),
    },
    Tame {
        key: "slide",
        limit: "SLIDINGWINDOW 6 60s",
        model: || Box::new(charges(6, overlap(SlidingWindow { limit: number(6), window: minute() }.window))),
    },
    Tame {
        key: "parts",
        limit: "SLIDINGWINDOW 6 60s PRECISION 10s",
        model: || Box::new(charges(6, in_recent_parts(MINUTE, Span::from_millis(10_000)))),
    },
    Tame { key: "log", limit: "SLIDINGLOG 6 60s", model: || Box::new(charges(6, in_window(MINUTE))) },
    Tame { key: "gate", limit: "UNIFORM 10s", model: || Box::new(owed(rate(1, 1, 10))) },
];

/// The keys with a model, and their limits.
pub(super) fn limits() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIMITS.iter().map(|tame| (tame.key, tame.limit))
}

type Model = Book<Box<dyn Ledger>, String>;

/// What is believed of the keys of the primary.
#[derive(Default)]
pub(super) struct Beliefs {
    books: BTreeMap<&'static str, Model>,
}

impl Beliefs {
    /// Forgets all.
    pub(super) fn forget(&mut self) {
        *self = Beliefs::default();
    }

    /// Forgets what is believed of a key.
    pub(super) fn forget_key(&mut self, key: &str) {
        self.books.remove(key);
    }

    /// The number of holds.
    pub(super) fn held(&self) -> usize {
        self.books.values().map(Model::held).sum()
    }

    /// A call is about to run. What it is about is believed from now on if the key is missing.
    pub(super) fn begin(&mut self, told: &Told<'_>, memory: &Memory) {
        let is_missing = |key: &str| memory.stored(&(0, key.as_bytes())).is_none();
        if told.is_look() {
            return;
        }
        for tame in LIMITS.iter().filter(|tame| told.names(tame.key)) {
            if !told.is_of(tame.key, tame.limit) {
                self.books.remove(tame.key);
            } else if !self.books.contains_key(tame.key) && is_missing(tame.key) {
                self.books.insert(tame.key, Book::new((tame.model)()));
            }
        }
        if told.name == "FLUSHALL" {
            self.forget();
        }
    }

    /// A call has replied at this instant. `is_alone` is whether no line stood before it. Returns whether it was checked.
    pub(super) fn check(
        &mut self,
        told: &Told<'_>,
        reply: &Reply,
        now: Time,
        is_alone: bool,
    ) -> Result<bool, String> {
        if matches!(reply, Reply::Error(_)) || told.is_look() {
            return Ok(false);
        }
        let Some(book) = self.books.get_mut(told.key()) else { return Ok(false) };
        let id = || told.id.map(String::from);
        if told.name == "RL.SETTLE" {
            book.call(now, told.cost, Action::Settle(id().unwrap_or_default()));
            let room = book.room(now);
            return same("remaining after a settlement", remaining(reply), Some(room.min(6)));
        }
        if !reply.is_admission() {
            let room = book.room(now);
            let least = if told.manner == Manner::Partial { 1 } else { told.cost };
            let is_wrong = is_alone && room >= least;
            return if is_wrong { Err(format!("refused, and a cost of {room} has room")) } else { Ok(true) };
        }
        let (admitted, granted, room) =
            book.call(now, told.cost, Action::Charge(told.manner, id().zip(told.ttl)));
        if !admitted {
            return Err(format!("admitted, and only a cost of {room} has room"));
        }
        if let Reply::Six(_, sixth) = reply {
            same("granted", Some(*sixth), Some(granted))?;
        }
        same("remaining", remaining(reply), Some(room))
    }

    /// A caller that the model of its key would admit now is still refused.
    pub(super) fn waits(&mut self, told: &Told<'_>, now: Time) -> Result<(), String> {
        let Some(book) = self.books.get_mut(told.key()) else { return Ok(()) };
        let (room, least) = (book.room(now), if told.manner == Manner::Partial { 1 } else { told.cost });
        if room >= least { Err(format!("it waits, and a cost of {room} has room")) } else { Ok(()) }
    }
}

fn same<T: PartialEq + std::fmt::Debug + Copy>(what: &str, real: T, model: T) -> Result<bool, String> {
    if real == model { Ok(true) } else { Err(format!("{what}: {real:?}, by the model {model:?}")) }
}

fn remaining(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Answer(answer) | Reply::Six(answer, _) => Some(answer.gauge.remaining),
        _ => None,
    }
}
