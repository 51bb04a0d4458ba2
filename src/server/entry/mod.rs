//! How a call comes in and how its reply goes out.

pub mod call;
pub mod docs;
pub mod forward;
pub mod help;
pub mod register;
pub mod reply;
pub mod syntax;
