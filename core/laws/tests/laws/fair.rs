//! Laws of fair lines:
//!
//! - Each tenant that waits holds its fair share, or less than one cost below it. Progressive filling gives the shares.
//! - No waiting tenant is below another one after its next lease.
//! - A tenant that waits and holds nothing becomes the first while others' leases end. Meanwhile no other tenant gets more
//!   grants than its weight and cost allow, however many tenants come.
//! - When no caller is due, a caller that fits is not the first, or room is kept for a hungry tenant before it.
//! - Who waits for another limit keeps no one from this one.
//! - Simpler rules break one of these.
//!
//! `fair/shop.rs` has tenants whose callers take leases again and again.

mod cases;
mod dice;
mod filling;
mod found;
mod hungry;
mod pair;
mod real;
mod settled;
mod shop;
mod simpler;
mod turns;
mod world;
