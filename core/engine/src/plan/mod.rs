//! What a call would do, and why: whether it only looks, who comes before it, what each limit says, and whether it waits.
//!
//! A plan only changes what the lines have read of the leases. Acting consumes it, and `RL.EXPLAIN` renders it.
//!
//! - `own.rs` has the request to one limit of a key by its own command. One for which no one waits, and that neither waits nor holds,
//!   is taken without a plan.
//! - `several.rs` has the request to several limits on several keys.

pub mod own;
pub mod several;
