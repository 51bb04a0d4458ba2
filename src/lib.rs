//! `ratelimit`: rate limiting as native Redis commands.
//!
//! This file is the table of commands. The crate `ratelimit-engine` runs nearly all of them, each from its arguments to its reply,
//! on a host; the server is that host. `command/` has the few that only a server can have. `policy_file.rs` reads and writes the
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

use ratelimit_language::CATALOG;
use redis_module::{Context, RedisString, Status, redis_module};

use command::{LPush, RPush, XAdd};
use ratelimit_engine::command::{
    Apply, Ask, AskPeek, AskRefund, AskSettle, CellThrottle, Explain, Help, Info, Limit, Multi, MultiPeek,
    MultiRefund, MultiRelease, MultiSettle, Peek, Policy, Refund, Release, Renew, Settle, Shed, Sketch,
    Throttle, Top,
};
use server::{Allocator, Entry};

/// One command for each row of the catalog of limiters.
const LIMITERS: [Entry; CATALOG.len()] = [
    Entry::of::<Limit<0>>(),
    Entry::of::<Limit<1>>(),
    Entry::of::<Limit<2>>(),
    Entry::of::<Limit<3>>(),
    Entry::of::<Limit<4>>(),
    Entry::of::<Limit<5>>(),
    Entry::of::<Limit<6>>(),
    Entry::of::<Limit<7>>(),
    Entry::of::<Limit<8>>(),
    Entry::of::<Limit<9>>(),
    Entry::of::<Limit<10>>(),
];

/// The other commands.
const OTHERS: &[Entry] = &[
    Entry::of::<Sketch>(),
    Entry::of::<Shed>(),
    Entry::of::<Throttle>(),
    Entry::of::<CellThrottle>(),
    Entry::of::<XAdd>(),
    Entry::of::<LPush>(),
    Entry::of::<RPush>(),
    Entry::of::<Refund>(),
    Entry::of::<Multi>(),
    Entry::of::<MultiPeek>(),
    Entry::of::<MultiRefund>(),
    Entry::of::<MultiRelease>(),
    Entry::of::<Settle>(),
    Entry::of::<MultiSettle>(),
    Entry::of::<Ask>(),
    Entry::of::<AskPeek>(),
    Entry::of::<AskRefund>(),
    Entry::of::<AskSettle>(),
    Entry::of::<Policy>(),
    Entry::of::<Release>(),
    Entry::of::<Renew>(),
    // These look, and change nothing.
    Entry::of::<Peek>(),
    // It takes a whole call, and says what that would return and why.
    Entry::of::<Explain>(),
    Entry::of::<Info>(),
    Entry::of::<Top>(),
    Entry::of::<Help>(),
    // What replicas and the AOF receive.
    Entry::of::<Apply>(),
    #[cfg(feature = "fault-injection")]
    Entry::of::<command::fault::Panic>(),
];

fn load(context: &Context, arguments: &[RedisString]) -> Status {
    server::load(context, arguments, &[&LIMITERS, OTHERS])
}

redis_module! {
    name: "ratelimit",
    version: server::version(), // Evaluated before the server is asked whether the name is free.
    allocator: (Allocator, Allocator),
    data_types: [],
    init: load,
    commands: [],
}
