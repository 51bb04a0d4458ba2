//! A node in memory: a host of keys, with clocks that stand still until they are set.
//!
//! - `state.rs` has what it holds, `slot.rs` an open key, `call.rs` a call.
//! - `table.rs` has the commands, `run.rs` runs them, and tries callers that wait.

mod call;
mod run;
mod slot;
mod state;
mod table;

pub use run::Called;
pub use state::{Effect, Memory, Role};
