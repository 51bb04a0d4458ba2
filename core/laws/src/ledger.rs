//! Models that remember each charge for itself, so that it can be settled later.

use std::collections::{BTreeMap, VecDeque};

use num_rational::BigRational;
use num_traits::{Signed, Zero};

use ratelimit_core::limiter::{FixedWindow, Rate};
use ratelimit_core::{Manner, Span, Time};

use super::{micros, ratio};

/// A model whose charges can be settled.
pub trait Ledger {
    /// How much fits at `now`, in microseconds; below zero in debt.
    fn room(&mut self, now: u64) -> BigRational;

    /// Charges a cost, and returns the number of the charge.
    fn charge(&mut self, now: u64, cost: u64) -> usize;

    /// Gives back a part of a charge.
    fn give_back(&mut self, charge: usize, now: u64, cost: u64);
}

impl<M: Ledger + ?Sized> Ledger for Box<M> {
    fn room(&mut self, now: u64) -> BigRational {
        (**self).room(now)
    }

    fn charge(&mut self, now: u64, cost: u64) -> usize {
        (**self).charge(now, cost)
    }

    fn give_back(&mut self, charge: usize, now: u64, cost: u64) {
        (**self).give_back(charge, now, cost);
    }
}

/// All charges that still count, each with a weight.
struct Charges<W> {
    limit: u64,
    weight: W,
    /// Instants and costs.
    charges: VecDeque<(u64, u64)>,
    /// The number of charges before them.
    past: usize,
}

/// Charges that count with the weight that a charge at the first instant has at the second.
pub fn charges(limit: u64, weight: impl Fn(u64, u64) -> BigRational) -> impl Ledger {
    Charges { limit, weight, charges: VecDeque::new(), past: 0 }
}

impl<W: Fn(u64, u64) -> BigRational> Ledger for Charges<W> {
    fn room(&mut self, now: u64) -> BigRational {
        // What has no weight any more never gets one again.
        while self.charges.front().is_some_and(|(then, _)| (self.weight)(*then, now).is_zero()) {
            self.charges.pop_front();
            self.past += 1;
        }
        let weights = self.charges.iter().map(|(then, cost)| ratio(*cost) * (self.weight)(*then, now));
        ratio(self.limit) - weights.sum::<BigRational>()
    }

    fn charge(&mut self, now: u64, cost: u64) -> usize {
        self.charges.push_back((now, cost));
        self.past + self.charges.len() - 1
    }

    fn give_back(&mut self, charge: usize, _now: u64, cost: u64) {
        let place = charge.checked_sub(self.past);
        if let Some((_, charged)) = place.and_then(|place| self.charges.get_mut(place)) {
            *charged -= cost;
        }
    }
}

/// A window that opens with a charge, and closes when all of them were given back.
struct Windows {
    window: FixedWindow,
    /// The number of the window of each charge, and its cost.
    charges: Vec<(usize, u64)>,
    windows: usize,
    ends: u64,
}

/// Windows that open at the first charge.
pub fn opened_windows(window: FixedWindow) -> impl Ledger {
    Windows { window, charges: Vec::new(), windows: 0, ends: 0 }
}

impl Windows {
    fn count(&self, now: u64) -> u64 {
        let in_window = self.charges.iter().filter(|(window, _)| now < self.ends && *window == self.windows);
        in_window.map(|(_, cost)| cost).sum()
    }
}

impl Ledger for Windows {
    fn room(&mut self, now: u64) -> BigRational {
        ratio(self.window.limit.get()) - ratio(self.count(now))
    }

    fn charge(&mut self, now: u64, cost: u64) -> usize {
        if self.count(now) == 0 {
            self.windows += 1;
            self.ends = now + self.window.window.micros().get();
        }
        self.charges.push((self.windows, cost));
        self.charges.len() - 1
    }

    fn give_back(&mut self, charge: usize, _now: u64, cost: u64) {
        if let Some((_, charged)) = self.charges.get_mut(charge) {
            *charged -= cost;
        }
    }
}

/// A debt that is paid off at a rate. What is given back is paid off at once.
struct Owed {
    rate: Rate,
    debt: BigRational,
    last: u64,
}

/// The debt of a token bucket, a leaky bucket or GCRA.
pub fn owed(rate: Rate) -> impl Ledger {
    Owed { rate, debt: BigRational::zero(), last: 0 }
}

impl Owed {
    fn pay(&mut self, now: u64, cost: BigRational) {
        let paid = ratio(now - self.last) * ratio(self.rate.count.get()) / micros(self.rate.period);
        self.last = now;
        self.debt -= paid + cost;
        if self.debt.is_negative() {
            self.debt = BigRational::zero();
        }
    }
}

impl Ledger for Owed {
    fn room(&mut self, now: u64) -> BigRational {
        self.pay(now, BigRational::zero());
        ratio(self.rate.limit.get()) - &self.debt
    }

    fn charge(&mut self, now: u64, cost: u64) -> usize {
        self.pay(now, BigRational::zero());
        self.debt += ratio(cost);
        0
    }

    fn give_back(&mut self, _charge: usize, now: u64, cost: u64) {
        self.pay(now, BigRational::zero());
        self.pay(now, ratio(cost));
    }
}

/// A bucket that adds the batch of every period, one by one.
struct Batches {
    rate: Rate,
    missing: u64,
    /// When the next batch is added; `None` while the bucket is full.
    next: Option<u64>,
}

/// The tokens that are missing from a bucket that is refilled in batches.
pub fn missing_batches(rate: Rate) -> impl Ledger {
    Batches { rate, missing: 0, next: None }
}

impl Batches {
    fn add(&mut self, tokens: u64) {
        self.missing = self.missing.saturating_sub(tokens);
        self.next = self.next.filter(|_| self.missing > 0);
    }

    fn refill(&mut self, now: u64) {
        while let Some(next) = self.next.filter(|next| *next <= now) {
            self.next = Some(next + self.rate.period.micros().get());
            self.add(self.rate.count.get());
        }
    }
}

impl Ledger for Batches {
    fn room(&mut self, now: u64) -> BigRational {
        self.refill(now);
        ratio(self.rate.limit.get()) - ratio(self.missing)
    }

    fn charge(&mut self, now: u64, cost: u64) -> usize {
        self.refill(now);
        self.missing += cost;
        self.next.get_or_insert(now + self.rate.period.micros().get());
        0
    }

    fn give_back(&mut self, _charge: usize, now: u64, cost: u64) {
        self.refill(now);
        self.add(cost);
    }
}

/// What is done to a limit with holds.
#[derive(Clone, Copy, Debug)]
pub enum Action<I> {
    /// Charges, and holds under an id for a time.
    Charge(Manner, Option<(I, Span)>),
    /// Settles an id at the cost.
    Settle(I),
}

/// What a caller sees of a call: whether it was admitted or held, the part of the cost that was granted, what remains.
pub type Seen = (bool, u64, u64);

/// A model of a limit and of the holds of its key.
pub struct Book<M, I> {
    model: M,
    /// When each hold ends, the number of its charge, and its cost.
    holds: BTreeMap<I, (Time, usize, u64)>,
}

impl<M: Ledger, I: Ord> Book<M, I> {
    pub fn new(model: M) -> Self {
        Book { model, holds: BTreeMap::new() }
    }

    /// The number of holds.
    pub fn held(&self) -> usize {
        self.holds.len()
    }

    /// The whole cost that fits.
    pub fn room(&mut self, now: Time) -> u64 {
        u64::try_from(self.model.room(now.as_micros()).floor().to_integer()).unwrap_or(0)
    }

    pub fn call(&mut self, now: Time, cost: u64, action: Action<I>) -> Seen {
        self.holds.retain(|_, (ends, ..)| *ends > now);
        let micros = now.as_micros();
        let (admitted, granted) = match action {
            Action::Settle(id) => {
                let held = self.holds.remove(&id);
                if let Some((_, charge, before)) = held {
                    if cost < before {
                        self.model.give_back(charge, micros, before - cost);
                    } else if cost > before {
                        self.model.charge(micros, cost - before);
                    }
                }
                (held.is_some(), 0)
            }
            Action::Charge(manner, hold) => {
                if let Some((_, _, cost)) = hold.as_ref().and_then(|(id, _)| self.holds.get(id)) {
                    return (true, *cost, self.room(now));
                }
                let room = self.room(now);
                let granted = if manner == Manner::Partial { cost.min(room) } else { cost };
                let admitted = manner == Manner::Force || granted.max(1) <= room;
                if admitted {
                    let charge = self.model.charge(micros, granted);
                    if let Some((id, ttl)) = hold {
                        self.holds.insert(id, (now.plus(ttl), charge, granted));
                    }
                }
                (admitted, granted)
            }
        };
        (admitted, granted, self.room(now))
    }
}
