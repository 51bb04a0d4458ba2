//! An exact GCRA for each item, and a sketch beside them.

use ratelimit_core::limiter::{Rate, Sketch, Sketched};
use ratelimit_core::state::{Blueprint, Cells};
use ratelimit_core::{Span, Time, Verdict};

use super::common::apply;

pub const ITEMS: u64 = 1_000_000;
/// The start of an hour, in 2023.
const T0: Time = Time::from_micros(1_700_002_800_000_000);

/// The arrival time of each item. It counts parts of a microsecond, `count` to one, so it is a whole number.
pub struct Exact {
    rate: Rate,
    due: Vec<u128>,
}

impl Exact {
    fn new(rate: Rate) -> Exact {
        Exact { rate, due: vec![0; usize::try_from(ITEMS).expect("a number")] }
    }

    /// The arrival time after a request of 1, and whether the request is admitted.
    fn judge(&self, item: usize, now: u64) -> (u128, bool) {
        let [limit, count, period] =
            [self.rate.limit, self.rate.count, self.rate.period.micros()].map(|part| u128::from(part.get()));
        let now = u128::from(now) * count;
        let after = self.due[item].max(now) + period;
        (after, after <= now + limit * period)
    }

    /// The number of items whose arrival time is ahead.
    fn ahead(&self, now: u64) -> u64 {
        let now = u128::from(now) * u128::from(self.rate.count.get());
        self.due.iter().filter(|due| **due > now).count() as u64
    }
}

/// What a sketch decided, beside an item's own GCRA.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Admitted,
    /// The item's own GCRA refuses, too.
    Rightly,
    /// The item's own GCRA would admit.
    Falsely,
}

/// A sketch, and the exact GCRAs, which count what the sketch admits.
pub struct Pair {
    sketch: Sketch,
    blueprint: Blueprint,
    cells: Option<Cells>,
    exact: Exact,
    change: Vec<u8>,
}

impl Pair {
    pub fn new(rate: Rate, blueprint: Blueprint) -> Pair {
        let sketch = Sketch::new(rate.limit, rate.count, rate.period).expect("a rate");
        Pair { sketch, blueprint, cells: None, exact: Exact::new(rate), change: Vec::new() }
    }

    /// A request for an item, this many microseconds after the start. Panics if the sketch admits what the item's own
    /// GCRA refuses.
    #[inline(always)]
    pub fn ask(&mut self, item: usize, micros: u64) -> Outcome {
        let admits = self.ask_sketch(item, micros);
        let (after, own) = self.exact.judge(item, micros);
        match (admits, own) {
            (true, true) => {
                self.exact.due[item] = after;
                Outcome::Admitted
            }
            (false, false) => Outcome::Rightly,
            (false, true) => Outcome::Falsely,
            (true, false) => panic!("the sketch admitted item {item} at {micros}, and its own GCRA does not"),
        }
    }

    /// A request to the sketch alone. Returns whether it is admitted.
    #[inline(always)]
    pub fn ask_sketch(&mut self, item: usize, micros: u64) -> bool {
        let (at, blueprint) = (T0.plus(Span::from_micros(micros)), self.blueprint);
        let Sketched { answer, change, .. } =
            self.sketch.decide(self.cells.as_ref(), || blueprint, &item.to_le_bytes(), 1, at);
        if let Some(change) = change {
            apply(&mut self.cells, &change, &mut self.change);
        }
        matches!(answer.verdict, Verdict::Admit { .. })
    }

    /// The share of cells that are ahead.
    pub fn cells_ahead(&self, micros: u64) -> f64 {
        self.cells.as_ref().map_or(0.0, |cells| cells.ahead(T0.plus(Span::from_micros(micros))))
    }

    /// The number of items whose own arrival time is ahead.
    pub fn items_ahead(&self, micros: u64) -> u64 {
        self.exact.ahead(micros)
    }
}
