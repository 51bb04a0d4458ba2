//! All orders of events in a small world, on the lines and tables that are shipped.

#![allow(
    clippy::indexing_slicing,
    reason = "limits, callers and states are numbered by the search itself"
)]

mod event;
mod form;
mod graph;
mod kept;
mod node;
mod rules;
mod search;
mod size;
mod starve;
mod step;
mod trial;

pub use event::{Broken, Event, PROPERTIES};
pub use search::{Failure, Report, search};
pub use size::{Ask, Manner, Size};
