//! How far counts go.

/// The largest count that a caller may name, 2^53 - 1: every client language holds it exactly, JavaScript too.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// The largest count that a window stores: one limit's worth was admitted, and as much again forced or moved.
pub(crate) const MAX_STORED: u64 = 2 * MAX_COUNT;

/// The largest debt that a state stores. A request that would exceed it is an error.
pub const MAX_DEBT: u64 = 1 << 60;
