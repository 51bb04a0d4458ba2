//! Trials on a real server: for `make demo`, and for the tests that compare the page's memory with a server.

pub mod line;
pub mod record;
pub mod told;
pub mod trials;
mod wire;
