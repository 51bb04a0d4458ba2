//! What a caller asks of a line.

use alloc::sync::Arc;

use crate::state::Pool;

/// The number of a caller. Later callers have greater numbers.
pub type Caller = u64;

/// What a caller asks of a limit, as the limit's line sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim<T = Arc<[u8]>> {
    /// The name of its tenant; empty if it gave none.
    pub tenant: T,
    /// The weight that the call gives its tenant.
    pub weight: Option<u32>,
    pub cost: u64,
    /// Whether the caller comes before those that are not critical.
    pub critical: bool,
    /// `None` if the limit is a rate.
    pub pool: Option<Pool>,
}

impl Claim<&[u8]> {
    /// A claim without a tenant.
    pub fn plain(cost: u64, critical: bool) -> Self {
        Claim { tenant: &[], weight: None, cost, critical, pool: None }
    }

    pub fn into_owned(self) -> Claim {
        let Claim { tenant, weight, cost, critical, pool } = self;
        Claim { tenant: tenant.into(), weight, cost, critical, pool }
    }
}

/// Who comes to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comer {
    /// A call that does not wait.
    Passes,
    /// A call that can wait.
    Arrives,
    /// A caller that waits, in this line or in others.
    Waits(Caller),
}

/// Whether the cost of a call is known when it is granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    Known,
    /// The call has `HOLD`: the cost is an estimate, which a settlement corrects.
    Estimated,
}
