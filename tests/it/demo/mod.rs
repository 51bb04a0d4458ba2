//! The demo of `make demo` and `make page`: its figures, its charts, and what its memory lets a reader try.

mod charts;
mod examples;
mod lessons;
mod scenes;
mod time_series;

use ratelimit_demo_drive::{record, trials};
