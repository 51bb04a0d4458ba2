//! The arithmetic of rate limiters, without a server, a clock, I/O or randomness. `now` is always an argument.
//!
//! A *limiter* is an algorithm with its parameters, which come with each call. A key stores the limiter's *state*. Only
//! a *change* modifies a state. A change is encoded as bytes first, and applied from these bytes. So the node that
//! decides does exactly what its replicas do.
//!
//! ```text
//! limiter, state --judge--> verdict
//!           |
//!           +--charge--> change --encode, apply--> state --gauge--> gauge
//! ```
//!
//! Files import from those of earlier rows, so there is no circle of imports:
//!
//! | file | contents |
//! |---|---|
//! | `time`, `count`, [`clock`] | instants and durations, the bounds of counts, how a clock is read that was set back |
//! | [`answer`] | the reply to a caller: verdict, gauge, answer; and the manners of a request |
//! | [`adapt`] | the rules by which a limit of leases adapts |
//! | `kind` | the table of all kinds of state and their limiters |
//! | [`state`] | what keys store: a file or folder per collection, its bytes in `stored.rs`; names of limits; [`codec`](state::codec) |
//! | [`limiter`] | one file per algorithm, with its state if that is small, and the trait [`Limiter`] |
//! | [`decide`] | how a limiter judges a request, in any manner and at any reading of the clock |
//! | `any` | any limiter, and any state that a set stores; macros that run the same code for each |
//! | `limits` | the limits of a key, as requests find and change them; `state/set/` imports it, and is such a key in memory |
//! | [`hold`], [`lease`] | what a key holds until it is settled; releasing and renewing a lease |
//! | [`ask`] | a request to one limit of a key: judge, charge, refund, peek; `held.rs` holds a charge and settles it |
//! | [`joint`] | a request to several limits on several keys, all or nothing; `held.rs` holds its charges and settles them |
//! | [`line`](mod@line), [`top`] | callers that wait, a line for each limit of a key; the keys that are refused most |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
mod kind;
#[macro_use]
mod any;
pub mod adapt;
pub mod answer;
pub mod ask;
pub mod clock;
mod count;
pub mod decide;
pub mod hold;
pub mod joint;
pub mod lease;
pub mod limiter;
mod limits;
pub mod line;
pub mod state;
#[cfg(test)]
mod testing;
mod time;
pub mod top;

pub use answer::{Answer, Gauge, Manner, Verdict};
pub use any::{AnyLimiter, AnyState};
pub use ask::{Ask, Taken};
pub use clock::Reading;
pub use count::{MAX_COUNT, MAX_DEBT};
pub use hold::Hold;
pub use joint::{Act, Joint, JointError, MAX_PAIRS, Part};
pub use kind::Kind;
pub use limiter::{Capabilities, Limiter};
pub use limits::{Error, Limits, Place};
pub use line::{Lines, Stand};
pub use state::{Figure, Length, LimitSet, LimitState, Name, State};
pub use time::{Period, Span, Time};

/// Every limiter and every state by its name, for the macros.
pub mod types {
    pub use crate::limiter::*;
    pub use crate::state::*;
}
