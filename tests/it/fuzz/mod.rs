//! Random input: over the wire calls, dumps, effects, and copies of a whole primary; without a server the core.

mod commands;
mod copies;
mod core;
mod payloads;
