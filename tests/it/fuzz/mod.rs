//! Random input over the wire: calls, dumps, effects, and copies of a whole primary.

mod commands;
mod copies;
mod payloads;
