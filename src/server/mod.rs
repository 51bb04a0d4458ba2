//! The rooms that touch Redis: nothing outside them is `unsafe`, nothing inside them decides anything.

mod api;
mod call;
mod clock;
mod dice;
mod docs;
#[cfg(feature = "fault-injection")]
mod fault;
mod form;
mod forward;
mod guard;
mod handle;
mod info;
mod load;
mod payload;
mod register;
mod reply;
mod several;
mod stats;
mod store;
mod value;

pub use call::Call;
pub use clock::clock;
pub use dice::chance;
#[cfg(feature = "fault-injection")]
pub use fault::arm_load;
pub use form::Named;
pub use handle::{Access, Queue, queue_length};
pub use load::{help, load};
pub use payload::Payload;
pub use register::{Command, Entry, Keys};
pub use reply::{Reply, Value};
pub use several::{Held, Limits, When};
pub use stats::{Counter, Outcome};
pub use store::{Key, describe};
