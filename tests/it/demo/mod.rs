//! The demo of `make demo` and `make page`: its figures, its charts, and the memory that stands in for a server.

mod charts;
mod lessons;
mod memory;
mod time_series;

#[path = "../../../demo/drive/record.rs"]
mod record;
#[path = "../../../demo/drive/told.rs"]
mod told;
#[path = "../../../demo/drive/trials.rs"]
mod trials;
#[path = "../../../demo/drive/wire.rs"]
mod wire;
