//! Callers that wait in the server until their requests are admitted.
//!
//! A command replies [`Reply::Wait`] if its caller is to wait. The client is then blocked, and the command runs
//! again whenever one of its limits may have room. `ratelimit_core::line` has the order in which callers are tried.
//!
//! ```text
//! call --refused--> blocked: stands in lines --granted, refused at last, or an error--> replied
//!                      |  ^
//!                      +--+ tried: still refused
//! ```
//!
//! - `state.rs` has the lines and all else that changes; `turns.rs` is what a running command asks of them and notes in them,
//!   `call.rs` how it waits.
//! - `wait.rs` has the limits for which a call waits, `waiter.rs` a caller and its call, `trial.rs` a call that runs again.
//! - `client.rs` blocks and unblocks clients, and has the three ways in which a wait ends. `alarm.rs` sets the timer.
//! - `serve.rs` tries callers: it runs their commands again, in the callback of a timer and nowhere else.
//! - `look.rs` frees leases that have ended, and lets lines read what tenants hold then.
//! - `events.rs` marks the lines of limits that may have room after an event of the server.
//! - `slot.rs` finds a name in the slot of a cluster's key.

mod alarm;
mod call;
mod client;
mod events;
mod look;
mod serve;
mod slot;
mod state;
mod trial;
mod turns;
mod wait;
mod waiter;

pub use client::block;
pub use events::{by_this_module, end_hungers, left, nudge, subscribe};
pub use serve::prepare;
pub use state::{counts, somebody_waits};
pub use trial::Trial;
pub use wait::{Wait, Wanted};
