//! What only these tests share, beside what they share with benches and the demo.

pub mod called;
pub mod callers;
pub mod cluster;
pub mod events;
pub mod fuzz;
pub mod harmless;
pub mod kinds;
pub mod load;
pub mod machine;
pub mod one_slot;
pub mod preload;
pub mod replicas;
pub mod sentinel;
pub mod wall_clock;

pub use ratelimit_testing::*;

/// What redis-cli shows before a command.
pub const PROMPT: &str = "127.0.0.1:6379> ";
