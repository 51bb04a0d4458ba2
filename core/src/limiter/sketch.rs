//! A GCRA for each of unboundedly many items, in constant memory.
//!
//! A key per item costs memory for each item that comes, so an attack from ever new addresses fills the memory. A sketch
//! has a fixed number of cells. Each cell holds an arrival time, as a key of GCRA does, and many items share it. An item
//! has a cell in each of several rows, and its arrival time counts as the least of them.
//!
//! ```text
//! RL.SKETCH key alice 0 1 1s     one per second; 2 rows
//!
//!             alice's cells    bob's cells
//! t = 0       0 s    0 s       0 s    0 s      fresh
//! t = 0       1 s    1 s       1 s    0 s      alice is admitted; the first row has one cell for both
//! t = 0       1 s    1 s       1 s    1 s      bob is admitted: his least cell is 0 s
//! t = 0.5     1 s    1 s       1 s    1 s      both are refused; retry in 500 ms
//! ```
//!
//! Admitted if `max(TAT, now) + cost * interval <= now + (max_burst + 1) * interval`, where TAT is the least of the
//! item's cells. The left side, rounded up to the microsecond, is the new arrival time. Each of the item's cells becomes
//! the greater of itself and the new arrival time.
//!
//! # Never too much
//!
//! An item's admitted requests conform to a GCRA of its own on the sketch's clock: replayed through one, each is admitted.
//!
//! Proof. Let t be the arrival time of the item's own GCRA after the requests that the sketch admitted. The claim is that
//! t is at or before each of the item's cells. At first all are zero. No request of another item lowers a cell. An admitted
//! request of the item sets t to `max(t, now) + cost * interval`. Each of its cells becomes at least the same expression
//! with the least of its cells in place of t, rounded up. The expression grows with t, so the claim still holds. And if
//! the sketch admits, the item's own GCRA does: the left side of the condition grows with the arrival time, too.
//!
//! # Rarely too little
//!
//! Say that an item is refused although its own GCRA would admit it. Apart from rounding, this happens only if other items
//! have moved *all* of its cells ahead. If a share p of the cells is ahead of now, a new item finds all of its d cells ahead
//! with a chance of p^d. With a burst, it is refused only if they are ahead by more than the burst. If n items each hold all
//! their cells ahead, then p = 1 - (1 - 1/w)^n, about n/w as long as that is small.
//!
//! Rounding: each charge takes less than a microsecond more than its share. If the interval is no whole number of
//! microseconds, the last request of a burst at one instant is refused for that long.
//!
//! Source: Estan and Varghese, "New Directions in Traffic Measurement and Accounting", SIGCOMM 2002, section 3.2, has
//! counters in rows, and raises only the least (conservative update). Here the counters are arrival times, which need no
//! reset: time itself makes them small.
//!
//! When not to use it: where an item must never be refused because of others, or where there are few items. A key per
//! item is exact.

use super::debt::Debt;
use super::gcra::{Arrival, Gcra};
use super::{Limiter, TooLong};
use crate::answer::{Answer, Verdict};
use crate::clock::{Reading, read_clock};
use crate::decide::judge;
use crate::state::{Blueprint, Cells, CellsChange as Change, Places};
use crate::time::{Period, Span, Time};
use core::num::NonZeroU64;

/// The parameters of each item's GCRA.
#[derive(Clone, Copy, Debug)]
pub struct Sketch {
    gcra: Gcra,
}

/// The decision on a request.
#[derive(Clone, Copy, Debug)]
pub struct Sketched {
    pub answer: Answer,
    /// `None` if the call changes nothing.
    pub change: Option<Change<'static>>,
    /// The instant of the decision, on the callers' clock.
    pub now: Time,
    /// The time from `now` until all items are fully reset.
    pub reset: Span,
}

/// The clock of a sketch as a call reads it.
#[derive(Clone, Copy)]
struct Clock {
    /// On the shifted clock.
    now: Time,
    /// How far the caller's time is behind `now`.
    lag: Span,
    /// What is added to a caller's time.
    shift: Span,
}

impl Sketch {
    /// `limit` is `max_burst` + 1.
    ///
    /// # Errors
    ///
    /// If an item would take over 100 years to be fully reset.
    pub fn new(limit: NonZeroU64, count: NonZeroU64, period: Period) -> Result<Sketch, TooLong> {
        Ok(Sketch { gcra: Debt::new(limit, count, period)? })
    }

    /// Decides on a request of a cost above 0. `cells` is `None` if the key is missing; `begin` then makes the sketch, if the
    /// request is admitted.
    pub fn decide(
        &self,
        cells: Option<&Cells>,
        begin: impl FnOnce() -> Blueprint,
        item: &[u8],
        cost: u64,
        at: Time,
    ) -> Sketched {
        let found = Found::of(cells, item, at);
        let verdict = self.judge(&found, cost);
        if !verdict.admits() {
            return self.decided(verdict, &found, found.due, found.moved());
        }
        let Clock { now, shift, .. } = found.clock;
        let due = self.gcra.charge(&found.arrival(), now, cost).rounded_up();
        let (begun, places) = if let Some(places) = found.places {
            (None, places)
        } else {
            let blueprint = cells.map_or_else(begin, |cells| *cells.blueprint());
            (Some(blueprint), blueprint.places(item))
        };
        let change = Change::Charged { begun, last: now, shift, places, arrival: due };
        self.decided(verdict, &found, due, Some(change))
    }

    /// The answer that a request would get. It changes nothing. A cost of 0 is always admitted.
    pub fn peek(&self, cells: Option<&Cells>, item: &[u8], cost: u64, at: Time) -> Answer {
        let found = Found::of(cells, item, at);
        let verdict = if cost == 0 { Verdict::ADMIT } else { self.judge(&found, cost) };
        self.answer(verdict, &found.clock, found.due)
    }

    fn judge(&self, found: &Found<'_>, cost: u64) -> Verdict {
        judge(&self.gcra, &found.arrival(), found.clock.now, found.clock.lag, cost)
    }

    /// The decision, after which the item is due at `due`.
    fn decided(
        &self,
        verdict: Verdict,
        found: &Found<'_>,
        due: Time,
        change: Option<Change<'static>>,
    ) -> Sketched {
        let Found { clock, .. } = found;
        Sketched {
            answer: self.answer(verdict, clock, due),
            change,
            now: clock.now.minus(clock.shift),
            reset: found.latest().max(due).since(clock.now),
        }
    }

    fn answer(&self, verdict: Verdict, clock: &Clock, due: Time) -> Answer {
        let gauge = self.gcra.gauge(&Arrival::due_at(due, clock.now), clock.now);
        Answer { verdict, gauge: gauge.delayed(clock.lag) }
    }
}

/// An item as a call finds it.
struct Found<'c> {
    /// `None` if there is no sketch, or if it begins anew.
    cells: Option<&'c Cells>,
    /// The item's cells, if there is a sketch.
    places: Option<Places>,
    clock: Clock,
    /// The item's arrival time.
    due: Time,
}

impl<'c> Found<'c> {
    #[inline(always)]
    fn of(cells: Option<&'c Cells>, item: &[u8], at: Time) -> Found<'c> {
        let read = |cells| (cells, Clock::of(cells, at));
        match cells.map(read).filter(|(cells, clock)| !clock.is_over(cells)) {
            Some((cells, clock)) => {
                let places = cells.blueprint().places(item);
                Found { cells: Some(cells), places: Some(places), clock, due: cells.arrival(&places) }
            }
            None => Found { cells: None, places: None, clock: Clock::unshifted(at), due: Time::EPOCH },
        }
    }

    fn arrival(&self) -> Arrival {
        Arrival::due_at(self.due, self.clock.now)
    }

    fn latest(&self) -> Time {
        self.cells.map_or(Time::EPOCH, Cells::latest)
    }

    /// The change of a refused call: the shift, if the clock was set back.
    fn moved(&self) -> Option<Change<'static>> {
        let cells = self.cells.filter(|cells| cells.shift() != self.clock.shift)?;
        let (last, arrival) = (cells.last_shifted(), cells.latest());
        Some(Change::Charged { begun: None, last, shift: self.clock.shift, places: Places::NONE, arrival })
    }
}

impl Clock {
    fn unshifted(at: Time) -> Clock {
        Clock { now: at, lag: Span::ZERO, shift: Span::ZERO }
    }

    /// After a small step back, no time passes. A step back by more than the reset of all items is added to the shift, as if
    /// all cells and the last charge moved.
    fn of(cells: &Cells, at: Time) -> Clock {
        let (last, shift) = (cells.last_shifted(), cells.shift());
        let now = at.plus(shift);
        match read_clock(last, now, || cells.latest().since(last)) {
            Reading::At(then) => Clock { now: then, lag: then.since(now), shift },
            Reading::SetBack => Clock { now: last, lag: Span::ZERO, shift: shift.plus(last.since(now)) },
        }
    }

    /// Whether the sketch begins anew, so that its clock does not overflow. This needs a shift of thousands of years, which
    /// only a caller's `AT` makes. The sketch begins anew once it is fully reset, which is the same as going on. Without a
    /// full reset in 144,000 years of its clock, it begins anew at the end of these.
    fn is_over(&self, cells: &Cells) -> bool {
        self.now > Time::LATEST && (self.now >= cells.latest() || self.now > Cells::LATEST)
    }
}
