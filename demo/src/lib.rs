//! What each limiter lets through of traffic of many shapes: for the page, which has this compiled for the browser, and
//! for `make demo`, which asks a real server. Both generate the same traffic, make the same calls and draw the same charts.
//!
//! ```text
//! Settings --traffic--> requests --trial, call by call--> outcomes --figures, chart--> JSON, SVG
//!                                    |        ^
//!                                    v        |
//!                         a server, or this memory
//! ```

pub mod chart;
pub mod example;
pub mod figures;
pub mod headline;
pub mod lesson;
pub mod memory;
pub mod page;
pub mod picture;
pub mod replay;
pub mod reply;
pub mod scenes;
pub mod settings;
pub mod shape;
pub mod shown;
pub mod slots;
pub mod strategies;
pub mod traffic;
pub mod trial;
