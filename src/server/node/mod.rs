//! This server: its load, settings, clock, counters and events.

pub mod clock;
pub mod cron;
pub mod dice;
pub mod info;
pub mod load;
pub mod memory;
pub mod receivers;
pub mod settings;
pub mod stats;
pub mod top;
