//! What tests, benches and the demo share: real servers, calls to them, and random traffic. What fails here panics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on has failed"
)]

pub mod client;
pub mod contents;
pub mod families;
pub mod histories;
pub mod pool;
mod server;
pub mod soak;
pub mod traffic;

pub use ratelimit_dice as dice;
pub use server::*;
