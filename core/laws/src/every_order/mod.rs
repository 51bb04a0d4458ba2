//! All orders of events in a small world, on the lines and tables that are shipped.
//!
//! Tests by cases and by chance try some orders. Here all of them are tried: by breadth, so that what breaks a property is a
//! shortest history. States are merged when they are equal, so there are finitely many, although histories have no end.
//!
//! A world (`size.rs`) has some callers and tenants, a pool of two or three leases and a token bucket of two, to which a tick adds one. What
//! can happen:
//!
//! | event | |
//! |---|---|
//! | a call | of any tenant, by a caller that neither waits nor holds something. It waits if it must, or it polls |
//! | a release | of a lease; else it ends after two ticks |
//! | a settlement | of an estimate of two, at nothing or at three |
//! | giving up | a caller waits no longer, or a tenant that polled releases the id that was refused |
//! | a tick | leases and hungers end (a hunger lasts a tick), the bucket gets a token |
//!
//! After each event all callers that are due are tried (`serve.rs`, `trial.rs`), and the model of `fair/` does the same. What is then
//! checked is in `rules.rs`, and in `event.rs` as a list. `starve.rs` looks for cycles when all states are known.
//!
//! # When states are equal
//!
//! Two states are equal if the same can happen after them (`form.rs`, and `core/src/line/form.rs`). Instants are relative to now, the
//! numbers of callers are their order, and tags are relative to V. Tenants may change their names with one another. Ids of leases
//! do not count, except the one that a hungry tenant repeats. Of tags far below V only the order counts, and of `open` and F only as
//! much as the settlements that are left can move. A state is then known by a hash of 128 bits.
//!
//! The model is not part of the form: it goes with the first state of a form that was found.
//!
//! # What is not in it
//!
//! - The bound of sixteen hungers that are removed in a millisecond: each event begins with all sixteen (`Lines::rest`).
//! - A look at a table is done at the end of its event, and not a millisecond later.
//! - Time passes in whole ticks, and no clock is set back. No one waits for a limited time: callers give up.
//! - No lease is renewed, and no tenant asks under the id of another one.
//! - A settlement moves a turn, but returns no tokens to the bucket.
//! - Each kind of call is tried in some of the sizes only, as the lists in `size.rs` say.

#![allow(clippy::indexing_slicing, reason = "limits, callers and states are numbered by the search itself")]

mod event;
mod form;
mod graph;
mod kept;
mod node;
mod rules;
mod search;
mod serve;
mod size;
mod starve;
mod step;
mod trial;

pub use event::{Broken, Event, PROPERTIES};
pub use search::{Failure, Report, search};
pub use size::{Ask, Manner, Size};
