//! Models that remember each charge for itself, so that it can be settled later.

use num_rational::BigRational;
use num_traits::{Signed, Zero};

use ratelimit_core::limiter::{FixedWindow, Rate};

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

/// All charges, of which each counts with a weight.
struct Charges<W> {
    limit: u64,
    weight: W,
    /// Instants and costs.
    charges: Vec<(u64, u64)>,
}

/// Charges that count with the weight that a charge at the first instant has at the second.
pub fn charges(limit: u64, weight: impl Fn(u64, u64) -> BigRational) -> impl Ledger {
    Charges { limit, weight, charges: Vec::new() }
}

impl<W: Fn(u64, u64) -> BigRational> Ledger for Charges<W> {
    fn room(&mut self, now: u64) -> BigRational {
        let weights = self.charges.iter().map(|(then, cost)| ratio(*cost) * (self.weight)(*then, now));
        ratio(self.limit) - weights.sum::<BigRational>()
    }

    fn charge(&mut self, now: u64, cost: u64) -> usize {
        self.charges.push((now, cost));
        self.charges.len() - 1
    }

    fn give_back(&mut self, charge: usize, _now: u64, cost: u64) {
        if let Some((_, charged)) = self.charges.get_mut(charge) {
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
