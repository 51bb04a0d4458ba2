//! What the commands do, on a host that has keys, clocks and dice: the server, or memory.
//!
//! - `command/` has the commands, each from its arguments to its reply.
//! - `host.rs` has the trait of a host, `slot.rs` that of an open key; `node.rs` has what belongs to a node and to no key.
//! - `key/` has a key of limits, how a call changes it, and the payload that its copies receive.
//! - `policies/` has the limits that calls ask for by name, `waiting/` the callers that wait.
//! - `settings.rs` has a node's settings; `count.rs` and `top.rs` count its decisions. `reply.rs` has the replies.

#![forbid(unsafe_code)]

pub mod command;
pub mod count;
pub mod host;
pub mod key;
pub mod node;
pub mod policies;
pub mod reply;
pub mod settings;
pub mod slot;
pub mod top;
pub mod waiting;
