//! How large the world is that is searched, and what its callers can ask.

use super::event::Event;

/// The limit that is a pool of leases, and the one that is a rate.
pub const POOL: usize = 0;
pub const RATE: usize = 1;

/// How a call comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Waits,
    /// It does not wait. While its tenant is hungry, it has the id that was refused last.
    Polls,
    /// It does not wait, and has an id of its own.
    PollsAnew,
}

/// A call that any caller can make for any tenant.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// What it costs at each limit; zero where it asks nothing.
    pub costs: [u64; 2],
    /// The limit at which it has a tenant: one, as `TENANT` belongs to one `LIMIT`.
    pub fair: usize,
    pub manner: Manner,
    /// That of its tenant; `None` for the one that the tenant has.
    pub weight: Option<u32>,
    pub critical: bool,
    /// Whether the cost of the rate is an estimate, which is settled.
    pub holds: bool,
}

/// The size of a world.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub title: &'static str,
    /// How many callers wait or hold something at most.
    pub callers: usize,
    pub tenants: usize,
    pub capacities: [u64; 2],
    pub asks: &'static [Ask],
    /// How many settlements a history has at most.
    pub settlements: u8,
}

const POOL_OF_ONE: Ask =
    Ask { costs: [1, 0], fair: POOL, manner: Manner::Waits, weight: None, critical: false, holds: false };
const POOL_OF_TWO: Ask = Ask { costs: [2, 0], ..POOL_OF_ONE };
const POLL_OF_ONE: Ask = Ask { manner: Manner::Polls, ..POOL_OF_ONE };
const POLL_OF_TWO: Ask = Ask { costs: [2, 0], ..POLL_OF_ONE };
const POLL_ANEW: Ask = Ask { manner: Manner::PollsAnew, ..POOL_OF_ONE };
const CRITICAL: Ask = Ask { critical: true, ..POOL_OF_ONE };
const HEAVY: Ask = Ask { weight: Some(2), ..POOL_OF_ONE };
const BOTH: Ask = Ask { costs: [1, 1], ..POOL_OF_ONE };
const RATE_OF_ONE: Ask = Ask { costs: [0, 1], fair: RATE, ..POOL_OF_ONE };
const RATE_OF_TWO: Ask = Ask { costs: [0, 2], holds: true, ..RATE_OF_ONE };
const CRITICAL_RATE: Ask = Ask { critical: true, ..RATE_OF_ONE };
const POLL_RATE: Ask = Ask { manner: Manner::Polls, ..RATE_OF_ONE };

const LEASES: &[Ask] = &[POOL_OF_ONE, POOL_OF_TWO, POLL_OF_ONE, POLL_OF_TWO];
const ALL_LEASES: &[Ask] = &[POOL_OF_ONE, POOL_OF_TWO, POLL_OF_ONE, POLL_OF_TWO, POLL_ANEW, CRITICAL, HEAVY];

impl Size {
    /// Two callers who ask for leases in all ways: also critically, with new ids and by a weight of two.
    pub const TWO: Size = Size {
        title: "2 callers, 2 tenants, 1 pool, all calls",
        callers: 2,
        tenants: 2,
        capacities: [2, 2],
        asks: ALL_LEASES,
        settlements: 0,
    };

    pub const THREE: Size =
        Size { title: "3 callers, 2 tenants, 1 pool", callers: 3, asks: LEASES, ..Size::TWO };

    /// Polls of a pool of three: room is kept for two tenants together only if there is more of it than for each of them.
    pub const POLLS: Size = Size {
        title: "3 callers, 3 tenants, a pool of 3, polls",
        tenants: 3,
        capacities: [3, 2],
        asks: &[POLL_OF_ONE, POLL_OF_TWO],
        ..Size::THREE
    };

    /// A rate alone, of which calls hold estimates, and which some ask critically.
    pub const RATE: Size = Size {
        title: "3 callers, 2 tenants, 1 rate, 2 settlements",
        asks: &[RATE_OF_ONE, RATE_OF_TWO, CRITICAL_RATE, POLL_RATE],
        settlements: 2,
        ..Size::THREE
    };

    /// A pool and a rate, which some calls ask together.
    pub const BOTH: Size = Size {
        title: "3 callers, 2 tenants, a pool and a rate, 1 settlement",
        asks: &[POOL_OF_ONE, POLL_OF_ONE, BOTH, RATE_OF_TWO],
        settlements: 1,
        ..Size::THREE
    };

    /// The sizes of `make every-order`.
    pub const ALL: [Size; 9] = [
        Size::TWO,
        Size::THREE,
        Size::POLLS,
        Size::RATE,
        Size::BOTH,
        Size { title: "3 callers, 2 tenants, 1 pool, all calls", asks: ALL_LEASES, ..Size::THREE },
        Size { title: "3 callers, 3 tenants, 1 pool", tenants: 3, ..Size::THREE },
        Size {
            title: "3 callers, 2 tenants, a pool and a rate, 2 settlements",
            settlements: 2,
            ..Size::BOTH
        },
        Size { title: "4 callers, 3 tenants, 1 pool", callers: 4, tenants: 3, ..Size::THREE },
    ];

    /// What is about to happen, in words.
    pub fn text(&self, event: Event) -> String {
        match event {
            Event::Call { ask, tenant } => {
                let Ask { costs, fair, manner, weight, critical, .. } = self.asks[usize::from(ask)];
                let fair = if fair == POOL { "pool" } else { "rate" };
                let tenant = tenant + 1;
                format!(
                    "tenant {tenant} of the {fair} asks for {costs:?}: {manner:?}, {weight:?}, critical {critical}"
                )
            }
            event => format!("{event:?}"),
        }
    }
}
