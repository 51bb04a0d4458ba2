//! This server, whatever the call. What the engine knows of it is [`NODE`].
//!
//! - `load.rs` loads the module with `options.rs`, what it asks of the server; `settings.rs` has the settings `ratelimit.*`.
//! - `copies.rs` knows whether a replica, a backlog or an AOF may exist that receives effects.
//! - `policies.rs` brings policies to copies, and from the data and the file. `replay.rs` runs `RL.POLICY TRY`.
//! - `events.rs` passes the server's events on to these two and to callers that wait. `ask.rs` asks the server.
//! - `info.rs` shows what the engine counts in `INFO`.
//! - `clock.rs`, `dice.rs` and `memory.rs` read the server's clock, random numbers and free memory.

pub mod ask;
pub mod clock;
pub mod copies;
pub mod dice;
pub mod events;
pub mod info;
pub mod load;
pub mod memory;
pub mod options;
pub mod policies;
pub mod replay;
pub mod settings;
pub mod version;

use ratelimit_engine::node::Node;

/// The engine's node. The server has one, and runs one call at a time.
pub static NODE: Node = Node::new();
