//! What the fuzzer asks of the core: a function for each target that takes any bytes, and panics if a law is broken.
//!
//! `tools/fuzz` runs them under libFuzzer; `tests/fuzz_core.rs` runs the same ones on the committed corpus and on bytes
//! from a fixed seed.

// What is wrong here is to be found by whoever runs it.
#![allow(clippy::missing_panics_doc, clippy::must_use_candidate)]

pub mod bytes;
pub mod decode;
pub mod history;
pub mod key;
pub mod laws;
pub mod lines;
mod oracle;
pub mod seeds;
pub mod words;

// The library is a cdylib, which no Rust program can be linked against. So the core is compiled into this one, which
// uses a part of it.
#[allow(dead_code, unused_imports, clippy::pedantic)]
#[path = "../../src/limit/mod.rs"]
mod limit;
#[allow(dead_code, clippy::pedantic)]
#[path = "../../src/time.rs"]
mod time;
