//! A model of fair lines: callers of several tenants that wait for limits, or ask again and again.
//!
//! Everything is computed anew from lists for each question. `limit.rs` has a limit with its leases and tags, `order.rs` who
//! comes before whom, and `steps.rs` what happens.

mod call;
mod limit;
mod order;
mod steps;

pub use call::{Call, Comer, Outcome, Tenant, Waiting, Wish};
pub use limit::{Hunger, Kind, Lease, Limit};
pub use order::{Fair, Kept};
