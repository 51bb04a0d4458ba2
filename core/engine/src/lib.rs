//! What the commands do, on a host that has keys, clocks and dice: the server, or memory.
//!
//! - `host.rs` has the trait of a host, `slot.rs` that of an open key.
//! - `key/` has a key of limits, how a call changes it, and the payload that its copies receive.

#![forbid(unsafe_code)]

pub mod host;
pub mod key;
pub mod slot;
