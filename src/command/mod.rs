//! The commands that only a server can have: those that forward to its own commands, help, and faults for tests. The others are the
//! engine's.

#![forbid(unsafe_code)]

#[cfg(feature = "fault-injection")]
pub mod fault;
mod help;
mod queue;

pub use help::Help;
pub use queue::{LPush, RPush, XAdd};
