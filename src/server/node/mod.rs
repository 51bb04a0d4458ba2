//! This server, whatever the call.
//!
//! - `load.rs` loads the module; `settings.rs` has the settings `ratelimit.*`.
//! - `copies.rs` knows whether a replica, a backlog or an AOF may exist that receives effects.
//! - `cron.rs` is called some times a second, for `copies.rs` and for callers that wait.
//! - `stats.rs` counts decisions, `top.rs` the keys that are refused most, and `info.rs` shows them in `INFO`.
//! - `clock.rs`, `dice.rs` and `memory.rs` read the server's clock, random numbers and free memory.

pub mod clock;
pub mod copies;
pub mod cron;
pub mod dice;
pub mod info;
pub mod load;
pub mod memory;
pub mod settings;
pub mod stats;
pub mod top;
pub mod version;
