//! The bounds of counts.

/// The largest count that an argument may have, 2^53 - 1. Every client language represents it exactly, even JavaScript.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// The largest count that a window stores: a full limit, and the largest cost charged on top of it with `FORCE`. Larger
/// counts are cut.
pub(crate) const MAX_STORED: u64 = 2 * MAX_COUNT;

/// The largest debt that a state stores, as a cost. A request that would exceed it is an error.
pub const MAX_DEBT: u64 = 1 << 60;
