//! The parameters of an adaptive limit, and what it learns from.

/// Which rule a limit follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    Failures,
    Latency,
}

/// The parameters of a call, which its charge stores. `reserved` < `floor` <= `ceiling`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub rule: Rule,
    /// The largest limit.
    pub ceiling: u32,
    /// The least limit.
    pub floor: u32,
    /// The part of the limit that only critical callers get.
    pub reserved: u32,
    /// By how many percent a failure lowers the limit, at most 90.
    pub backoff: u8,
    /// A lease that was held longer than these microseconds has failed. 0: none has.
    pub slow: u64,
}

/// What a call asks of an adaptive limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adapt {
    pub settings: Settings,
    /// The limit of a new table.
    pub start: u32,
}

/// How a request ended, as its caller reports.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Ending {
    #[default]
    Well,
    /// As in an overload: by a time-out, or the backend refused it.
    Failed,
    /// It says nothing of the load: it was malformed, or the caller gave up.
    Unknown,
}

/// A lease that ends. Its instants are microseconds of the table's clock modulo 2^64; only their differences matter.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub taken: u64,
    pub now: u64,
    pub cost: u64,
    /// The cost of all leases that were held, this one included.
    pub held: u64,
}

impl Ended {
    /// The time since an instant.
    pub(super) fn since(&self, instant: u64) -> u64 {
        self.now.wrapping_sub(instant)
    }

    pub(super) fn lasted(&self) -> u64 {
        self.since(self.taken)
    }
}

impl Settings {
    /// The nearest exact limit that these parameters allow.
    pub(super) fn nearest(&self, exact: u128) -> u64 {
        let [floor, ceiling] = [self.floor, self.ceiling].map(exactly);
        u64::try_from(exact).unwrap_or(u64::MAX).min(ceiling).max(floor)
    }

    /// Whether callers hold at least half of what this limit offers them.
    pub(super) fn are_tested(&self, exact: u64, held: u64) -> bool {
        let offered = exact.saturating_sub(exactly(self.reserved));
        2 * u128::from(held) * u128::from(ONE) >= offered.into()
    }
}

/// The exact limit for a whole one. It is below 2^62.
pub(super) fn exactly(limit: u32) -> u64 {
    u64::from(limit) * ONE
}

/// Exact limits are in billionths.
pub const ONE: u64 = 1_000_000_000;
