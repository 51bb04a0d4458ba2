//! Trials on a real server: for `make demo`, and for the tests of it.

pub mod line;
pub mod record;
mod told;
pub mod trials;
mod wire;
