//! What tests share: servers to start, calls to make, and tables of limiters.

pub mod called;
pub mod callers;
pub mod client;
pub mod cluster;
pub mod contents;
pub mod debt;
pub mod dice;
pub mod families;
pub mod fuzz;
pub mod harmless;
pub mod histories;
pub mod kinds;
pub mod load;
pub mod machine;
pub mod one_slot;
pub mod preload;
pub mod replicas;
pub mod sentinel;
mod server;
pub mod traffic;
pub mod wall_clock;

pub use server::*;

/// What redis-cli shows before a command.
pub const PROMPT: &str = "127.0.0.1:6379> ";
