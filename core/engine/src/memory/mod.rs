//! A node in memory: a host of keys, with clocks that stand still until they are set.
//!
//! - `state.rs` has what it holds, `slot.rs` an open key, `call.rs` a call.
//! - `table.rs` has the commands, `server.rs` those of the server, `run.rs` runs them, and `pass.rs` lets time pass for callers that wait.
//! - `replay.rs` replays what a node has recorded.
//! - `element.rs` has a reply as a client reads it.

mod call;
mod element;
mod pass;
mod replay;
mod run;
mod server;
mod slot;
mod state;
mod table;

pub use element::Element;
pub use pass::Ended;
pub use run::Called;
pub use state::{Dumped, Effect, Memory, Role};
