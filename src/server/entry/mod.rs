//! How a call comes in and how its reply goes out.
//!
//! - `command.rs` says what a command is, `register.rs` registers the table of commands, `enter.rs` runs one.
//! - `call.rs` has the context and the arguments of a call, `reply.rs` its reply. `forward.rs` runs commands of the server.
//! - `docs.rs` makes `COMMAND DOCS` from what a command says of itself.

pub mod call;
pub mod command;
pub mod docs;
pub mod enter;
pub mod forward;
pub mod register;
pub mod reply;
