//! The cells of a sketch: arrival times that unboundedly many items share.
//!
//! Each item has `depth` cells, one in each row of `width` cells. A keyed hash of the item chooses them. The hash key is
//! random and part of the state, so no client can prepare items that share cells.
//!
//! The algorithm is in `limiter/sketch.rs`. `places.rs` finds the cells of an item, and `stored.rs` has the bytes, and the
//! change, which alone modifies cells.
//!
//! A cell is never lowered. Each item's true arrival time is at or before all of its cells.
//!
//! # The clock
//!
//! When the clock is set back, other limits move their state to the new instant. A sketch cannot move all cells at once.
//! Instead it adds the step to `shift`, and reads the clock as the caller's time plus `shift`. All instants in the state
//! are on this shifted clock.

mod places;
mod stored;

use alloc::vec;
use alloc::vec::Vec;

pub use places::{Blueprint, MAX_CELLS, MAX_DEPTH, Places, Shape};
pub use stored::Change;

use crate::time::{Span, Time};

/// The cells, row by row, and the clock of the sketch.
#[derive(Clone, PartialEq, Debug)]
pub struct Cells {
    blueprint: Blueprint,
    last: Time,
    latest: Time,
    shift: Span,
    /// In microseconds since the epoch; 0 if no charge has reached the cell.
    cells: Vec<u64>,
}

impl Cells {
    /// The latest instant on the shifted clock, 146,000 years from the epoch.
    pub const LATEST: Time = Time::from_micros(1 << 62);

    /// A sketch without charges.
    pub fn new(blueprint: Blueprint) -> Cells {
        let count = usize::try_from(blueprint.shape.cells()).unwrap_or(0);
        let (last, latest, shift) = (Time::EPOCH, Time::EPOCH, Span::ZERO);
        Cells { blueprint, last, latest, shift, cells: vec![0; count] }
    }

    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The last charge, on the shifted clock.
    pub fn last_shifted(&self) -> Time {
        self.last
    }

    /// The greatest arrival time of an item.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// What is added to a caller's time.
    pub fn shift(&self) -> Span {
        self.shift
    }

    /// The least of an item's cells, which is at or after the item's true arrival time.
    pub fn arrival(&self, places: &Places) -> Time {
        let cells = places.iter().filter_map(|place| self.cells.get(place));
        Time::from_micros(cells.min().copied().unwrap_or(0))
    }

    /// The share of cells that are ahead of a caller's time: of all cells, or of the first [`SAMPLE`].
    pub fn ahead(&self, now: Time) -> f64 {
        let now = now.plus(self.shift).max(self.last).as_micros();
        let ahead = self.cells.iter().take(SAMPLE).filter(|cell| **cell > now).count();
        #[allow(clippy::cast_precision_loss, reason = "there are at most 2^25 cells")]
        let share = ahead as f64 / self.cells.len().min(SAMPLE) as f64;
        share
    }
}

/// The cells that [`Cells::ahead`] reads at most: 8 MiB, which takes some milliseconds. The hash makes them a sample, whose
/// share differs from that of all cells by less than 0.2 percentage points.
pub const SAMPLE: usize = 1 << 20;
