//! The commands that only a server can have: those that forward to its own commands, and faults for tests. The others are the
//! engine's.

#![forbid(unsafe_code)]

#[cfg(feature = "fault-injection")]
pub mod fault;
mod queue;

pub use queue::{LPush, RPush, XAdd};
