//! Who stands in a line, and what a row of them takes together.

use alloc::sync::Arc;

use super::claim::Caller;
use crate::time::Time;

/// Who stands at a place: a caller that waits, or a hungry tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) tenant: Arc<[u8]>,
    pub(super) caller: Caller,
    pub(super) cost: u64,
    /// Of leases: the most that may be held with its own.
    pub(super) most: u64,
    /// When a hunger ends; `None` for a caller that waits.
    pub(super) until: Option<Time>,
}

impl Entry {
    pub(super) fn waits(&self) -> bool {
        self.until.is_none()
    }
}

/// How much may be held so that some entries still fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// What the entries cost together.
    cost: u64,
    /// So that each fits beside those before it.
    pub(super) joint: u64,
    /// So that each fits alone.
    pub(super) alone: u64,
}

impl Room {
    const NOTHING: Room = Room { cost: 0, joint: u64::MAX, alone: u64::MAX };

    /// That of a cost, with which at most `most` may be held.
    pub(super) fn of(cost: u64, most: u64) -> Room {
        let room = most.saturating_sub(cost);
        Room { cost, joint: room, alone: room }
    }

    fn then(self, later: Room) -> Room {
        Room {
            cost: self.cost.saturating_add(later.cost),
            joint: self.joint.min(later.joint.saturating_sub(self.cost)),
            alone: self.alone.min(later.alone),
        }
    }
}

/// What there is to know of a row of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sum {
    /// The number of callers that wait.
    pub(super) waiting: usize,
    pub(super) of_waiting: Room,
    pub(super) of_all: Room,
    /// When the first hunger ends.
    pub(super) end: Option<Time>,
}

impl Sum {
    pub(super) const NOTHING: Sum =
        Sum { waiting: 0, of_waiting: Room::NOTHING, of_all: Room::NOTHING, end: None };

    pub(super) fn of(entry: &Entry) -> Sum {
        let of_all = Room::of(entry.cost, entry.most);
        let of_waiting = if entry.waits() { of_all } else { Room::NOTHING };
        Sum { waiting: usize::from(entry.waits()), of_waiting, of_all, end: entry.until }
    }

    /// The sum of this row and of one behind it.
    pub(super) fn then(self, later: Sum) -> Sum {
        Sum {
            waiting: self.waiting + later.waiting,
            of_waiting: self.of_waiting.then(later.of_waiting),
            of_all: self.of_all.then(later.of_all),
            end: self.end.into_iter().chain(later.end).min(),
        }
    }
}
