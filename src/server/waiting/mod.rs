//! Clients that wait in the server until their requests are admitted. The engine has their lines, and `ratelimit_core::line` the
//! order in which callers are tried.
//!
//! A command replies `Reply::Wait` if its caller is to wait. The client is then blocked, and the command runs
//! again whenever one of its limits may have room.
//!
//! - `state.rs` has the clients that wait and the alarm: all that changes.
//! - `waiter.rs` has a caller and its call, `trial.rs` a call that runs again.
//! - `client.rs` blocks and unblocks clients, and has the three ways in which a wait ends. `alarm.rs` sets the timer.
//! - `timer.rs` lets the engine try callers, in the callback of a timer and nowhere else.
//! - `events.rs` marks the lines of limits that may have room after an event of the server.
//! - `slot.rs` finds a name in the slot of a cluster's key.

mod alarm;
mod client;
mod events;
mod slot;
mod state;
mod timer;
mod trial;
mod waiter;

pub use alarm::set_alarm;
pub use client::block;
pub use events::{by_this_module, end_hungers, left, mark, nudge, subscribe};
pub use state::{now, somebody_waits};
pub use timer::prepare;
pub use trial::Trial;
