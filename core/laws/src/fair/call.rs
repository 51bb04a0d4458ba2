//! Calls, and what becomes of them.

/// The number of a tenant. The tenant 0 has the empty name.
pub type Tenant = u32;

/// What a call wants of one limit.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The index of the limit.
    pub limit: usize,
    pub tenant: Tenant,
    pub weight: Option<u64>,
    pub cost: u64,
    /// The capacity for this call: what is reserved for critical callers is subtracted.
    pub most: u64,
    pub critical: bool,
}

/// A call of several limits, each of them once.
#[derive(Clone, Debug)]
pub struct Call {
    pub wishes: Vec<Wish>,
    /// The id of its leases.
    pub id: u64,
    /// How long its leases last, in microseconds.
    pub ttl: u64,
    /// Whether its costs are estimates, which settlements correct.
    pub estimated: bool,
}

/// A caller that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its place by arrival.
    pub caller: u64,
    pub call: Call,
    /// The limits that refused when it was last tried.
    pub stands: Vec<usize>,
    /// The limits for which its tenant waits: it stands in their lines, or did before.
    pub waits_for: Vec<usize>,
    /// How often in a row it was refused and moved to another line, although all its limits had room.
    pub moves: u32,
}

/// What becomes of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Admitted,
    /// The caller waits. Its number.
    Waits(u64),
    /// The limits that refuse.
    Refused(Vec<usize>),
}

/// Who comes to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comer {
    /// A call that does not wait.
    Passes,
    /// A call that can wait.
    Arrives,
    /// A caller that waits. Its number.
    Waits(u64),
}

impl Comer {
    /// The number of a caller that waits.
    pub fn waiting(self) -> Option<u64> {
        match self {
            Comer::Waits(caller) => Some(caller),
            Comer::Passes | Comer::Arrives => None,
        }
    }
}
