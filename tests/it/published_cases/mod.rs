//! The published tests of other rate limiters, as cases for the commands of this one.

mod buckets_and_gcra;
mod case;
mod partial_force_reserve_refund;
mod redis_and_throttlecrab;
mod server;
mod windows_and_logs;
