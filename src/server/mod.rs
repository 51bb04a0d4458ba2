//! Everything that calls the server, and all unsafe code. Nothing here decides on a request.

mod allocator;
mod api;
mod entry;
#[cfg(feature = "fault-injection")]
mod fault;
mod guard;
mod host;
mod node;
mod store;
mod waiting;

pub use allocator::Allocator;
pub use entry::call::Call;
pub use entry::command::Command;
pub use entry::register::Entry;
#[cfg(feature = "fault-injection")]
pub use fault::{arm_load, arm_save, delete_on_events, die_if_armed};
pub use node::load::{load, version};
pub use node::{NODE, policies};
pub use store::handle::{Queue, queue_length};
