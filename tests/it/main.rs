//! Tests that talk to real Redis servers with the module loaded: a folder for each subject, a file for each property.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod cluster;
mod commands;
mod demo;
mod docs;
mod engine;
mod explain;
mod forms;
mod fuzz;
mod limiters;
mod multi;
mod persistence;
mod policies;
mod replication;
mod security;
mod server;
mod sessions;
mod sketch;
mod soak;
mod support;
mod top;
mod waiting;
