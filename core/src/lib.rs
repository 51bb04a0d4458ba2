//! The arithmetic of rate limiters, without a server, a clock, I/O or chance: `now` is always an argument.
//!
//! A *limiter* is an algorithm with its parameters, which come with each call. Its *state* is what a key stores. A
//! state changes only by a *change*, which is written as bytes first and applied from those bytes: so the node that
//! decides does exactly what its replicas do.
//!
//! ```text
//! limiter, state --judge--> verdict
//!           |
//!           +--charge--> change --encode, apply--> state --gauge--> gauge
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`limiter`] | one file per algorithm, and the questions that all of them answer |
//! | [`state`] | what keys store: codecs, logs, leases, and several limits under one key |
//! | [`decide`] | verdicts and answers, and how the clock is read |
//! | [`ask`] | a request to one limit of a key: judge, charge, refund, peek |
//! | [`lease`] | ending and extending a lease |
//! | [`joint`] | requests to several limits on several keys, all or nothing |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
mod kind;
pub mod ask;
mod count;
pub mod decide;
pub mod joint;
pub mod lease;
pub mod limiter;
pub mod state;
#[cfg(test)]
mod testing;
mod time;

pub use ask::{Ask, Error, Limits, Place, Taken};
pub use count::{MAX_COUNT, MAX_DEBT};
pub use decide::{Answer, Gauge, Manner, Reading, Verdict};
pub use joint::{Joint, MAX_PAIRS, PairError, Part};
pub use kind::{AnyLimiter, AnyState, Kept, Kind};
pub use limiter::{Capabilities, Limiter};
pub use state::{Figure, LimitSet, LimitState, Name, State};
pub use time::{Period, Span, Time};
