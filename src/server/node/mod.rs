//! This server, whatever the call. What the engine knows of it is [`NODE`].
//!
//! - `load.rs` loads the module; `settings.rs` has the settings `ratelimit.*`.
//! - `copies.rs` knows whether a replica, a backlog or an AOF may exist that receives effects.
//! - `cron.rs` is called some times a second, for `copies.rs` and for callers that wait.
//! - `info.rs` shows what the engine counts in `INFO`.
//! - `clock.rs`, `dice.rs` and `memory.rs` read the server's clock, random numbers and free memory.

pub mod clock;
pub mod copies;
pub mod cron;
pub mod dice;
pub mod info;
pub mod load;
pub mod memory;
pub mod settings;
pub mod version;

use ratelimit_engine::node::Node;

/// The engine's node. The server has one, and runs one call at a time.
pub static NODE: Node = Node::new();
