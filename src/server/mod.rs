//! Everything that calls the server, and all unsafe code. Nothing here decides on a request.

mod allocator;
mod api;
mod buffer;
mod call;
mod clock;
mod dice;
mod discard;
mod docs;
#[cfg(feature = "fault-injection")]
mod fault;
mod forward;
mod guard;
mod handle;
mod help;
mod info;
mod key;
mod load;
mod memory;
mod native_type;
mod open_key;
mod payload;
mod propagation;
mod register;
mod reply;
mod settings;
mod stats;
mod syntax;
mod top;
mod value;
mod waiting;

pub use allocator::Allocator;
pub use call::Call;
pub use clock::clock;
pub use dice::{chance, random_words};
#[cfg(feature = "fault-injection")]
pub use fault::{arm_load, arm_save, delete_on_events, die_if_armed};
pub use handle::{Access, Queue, queue_length};
pub use help::{explain, list};
pub use key::{Description, Key, SeveralKeys, describe, publish};
pub use load::load;
pub use payload::Payload;
pub use register::{Command, Entry, KeyUse, Keys};
pub use reply::{FieldValue, Fields, Reply};
pub use settings::{bounds, counts_refusals, most_holds, sends_events};
pub use stats::{Counter, Outcome, count_refused_in_shadow};
pub use top::{MOST_TOP, forget_top, top_keys};
pub use waiting::{Wait, Wanted, somebody_waits};
