//! The fuzz targets of the core, the engine and the command language: each takes any bytes, and panics if a law is broken.
//!
//! `tools/fuzz` runs them under libFuzzer. `tests/it/fuzz/core.rs` runs them on the committed corpus, and on inputs from
//! a fixed seed.

// A panic is how a target reports a finding.
#![allow(clippy::missing_panics_doc, clippy::must_use_candidate)]

mod bytes;
pub mod decode;
pub mod history;
mod lines;
mod nodes;
mod oracle;
pub mod seeds;
pub mod words;
