//! The command language of rate limiters: the arguments of calls, the catalog of limiters, and the texts of errors.
//!
//! It parses calls into the types of `ratelimit-core`. The module, the demo, the fuzzers and the benchmarks use it. It
//! needs no server.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod adaptive;
mod argument;
mod arguments;
mod calls;
mod catalog;
mod check;
pub mod docs;
mod error;
mod explanation;
mod forms;
mod guess;
pub mod help;
mod holding;
mod keys;
mod limiters;
mod meant;
mod multi;
mod named;
mod number;
mod policy;
mod request;

mod shown;
pub mod syntax;
mod told;
pub mod vocabulary;
mod words;

pub use arguments::{Arguments, Bounds, lease_id, without_prefix};
pub use calls::{
    CellCall, ReleaseCall, ShedCall, SketchCall, TopCall, cell, info, release, renew, shed, sketch, top,
};
pub use catalog::{CATALOG, Row, find, named};
pub use check::{WrongCall, explains, helped};
pub use error::Error;
pub use explanation::{Decision, Line, Rough, Seen, Wait};
pub use forms::{FORMS, Form};
pub use holding::Held;
pub use keys::{KeyUse, Keys};
pub use multi::{MultiCall, miscounted, multi};
pub use named::{NamedCall, Peeked, peek, refund, settle};
pub use number::{Duration, duration, integer};
pub use policy::{Policy, PolicyCall, TryCall, policy_name};
pub use request::{Purpose, Request, option_of};
pub use shown::{Shown, shown};
pub use told::{MOST_WORDS, told};
pub use words::{of_request, own_words, sketch_words, words_of_limits};
