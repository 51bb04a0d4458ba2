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
pub use entry::register::{Entry, documentation};
pub use entry::reply::{FieldValue, Fields, Reply};
#[cfg(feature = "fault-injection")]
pub use fault::{arm_load, arm_save, delete_on_events, die_if_armed};
pub use host::{Key, SeveralKeys};
pub use node::clock::clock;
pub use node::dice::{chance, random_words};
pub use node::load::{load, version};
pub use node::settings::{bounds, counts_refusals, most_holds, sends_events};
pub use node::stats::{Counter, count_refused_in_shadow};
pub use node::top::{forget_top, top_keys};
pub use store::handle::{Queue, queue_length};
pub use waiting::{Wait, Wanted, somebody_waits};
