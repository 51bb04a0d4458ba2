//! The command language of rate limiters: the arguments of a call, the catalog of limiters, the texts of errors.
//!
//! It stands between the arithmetic in `ratelimit-core`, which knows no words, and whoever takes calls: the module in a
//! server, the demo in a browser, the fuzzers, the benches. It touches no server either.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arguments;
mod catalog;
mod error;
mod forms;
mod limiters;
mod multi;
mod request;

pub use arguments::{Arguments, Bounds};
pub use catalog::{CATALOG, Row, find};
pub use error::Error;
pub use forms::{FORMS, Form};
pub use limiters::{Cell, Report, cell, lease_id, shed};
pub use multi::{Multi, Purpose, multi};
pub use request::Request;
