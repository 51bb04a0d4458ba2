//! `ratelimit`: rate limiting as native Redis commands.
//!
//! The crate `ratelimit-engine` has the table of commands, and runs them, each from its arguments to its reply, on a host; the server
//! is that host. `command/` has the few that only a server can have. `policy_file.rs` reads and writes the
//! file of the setting `ratelimit.policy-file`.
//!
//! `server/` calls the server, and has all unsafe code:
//!
//! | folder | contents |
//! |---|---|
//! | `host.rs` | the server as the engine's host |
//! | `entry/` | how a call comes in and its reply goes out; registration and `COMMAND DOCS` |
//! | `store/` | how keys are opened, changed and sent to replicas; their values in RDB |
//! | `waiting/` | clients that wait, and the timer that tries them |
//! | `node/` | what belongs to no key: settings, clock, `INFO`, and whether it may have copies, which receive effects |
//!
//! Four crates do not depend on Redis: `ratelimit-core` has the limiters, `ratelimit-value` the value of a key,
//! `ratelimit-language` parses arguments, and `ratelimit-engine` has the commands.

mod command;
mod policy_file;
mod server;

use redis_module::{Context, RedisString, Status, redis_module};

use command::{LPush, RPush, XAdd};
use server::{Allocator, Entry};

/// The commands of the engine.
const OF_ENGINE: &[Entry] = &ratelimit_engine::commands!(Entry);

/// Those of the server alone.
const OF_SERVER: &[Entry] = &[
    Entry::of::<XAdd>(),
    Entry::of::<LPush>(),
    Entry::of::<RPush>(),
    #[cfg(feature = "fault-injection")]
    Entry::of::<command::fault::Panic>(),
];

fn load(context: &Context, arguments: &[RedisString]) -> Status {
    server::load(context, arguments, &[OF_ENGINE, OF_SERVER])
}

redis_module! {
    name: "ratelimit",
    version: server::version(), // Evaluated before the server is asked whether the name is free.
    allocator: (Allocator, Allocator),
    data_types: [],
    init: load,
    commands: [],
}
