//! The module inside a server: its keys, memory, events, settings and faults.

mod events;
mod faults;
mod keyspace;
mod memory;
mod memory_limit;
mod settings;
