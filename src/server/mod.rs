//! Everything that touches the server. All unsafe code is here; nothing here decides about a limit.

mod api;
mod call;
mod clock;
mod dice;
mod docs;
#[cfg(feature = "fault-injection")]
mod fault;
mod forward;
mod guard;
mod handle;
mod info;
mod key;
mod load;
mod native_type;
mod payload;
mod register;
mod reply;
mod stats;
mod value;

pub use call::Call;
pub use clock::clock;
pub use dice::chance;
#[cfg(feature = "fault-injection")]
pub use fault::arm_load;
pub use handle::{Access, Queue, queue_length};
pub use key::{Described, Key, describe, publish};
pub use load::{help, load};
pub use payload::Payload;
pub use register::{Command, Entry, Keys};
pub use reply::{Reply, Value};
pub use stats::{Counter, Outcome};
