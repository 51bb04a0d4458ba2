//! The demo of `make demo` and `make page`: its figures, its charts, and the memory that stands in for a server.

mod charts;
mod lessons;
mod memory;
mod scenes;
mod time_series;

use ratelimit_demo_drive::{record, told, trials};
