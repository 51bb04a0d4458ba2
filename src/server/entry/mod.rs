//! How a call comes in and how its reply goes out.

pub mod call;
pub mod command;
pub mod docs;
pub mod enter;
pub mod forward;
pub mod help;
pub mod register;
pub mod reply;
pub mod syntax;
