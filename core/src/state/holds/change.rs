//! A change to the holds of a key, as a value: a hold begins, one ends, or charges move in time with the state of their
//! limit, so that a settlement still finds them there. `stored.rs` applies a change, and has its bytes.

use alloc::vec::Vec;

use crate::state::name::Name;
use crate::time::Time;

/// What a hold charged to a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charge {
    pub name: Name,
    pub cost: u64,
    /// When it was charged, in the time of the limit's state. The epoch if it no longer counts.
    pub at: Time,
}

/// The change that a call makes to the holds of a key. Applying it twice has the same effect as applying it once.
///
/// If `last` is before that of the holds, they move: each ends as long after `last` as it would have ended after the old
/// one.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    pub last: Time,
    /// The hold of this id ends.
    pub ended: Option<&'a [u8]>,
    pub begun: Option<Begun<'a>>,
    pub moved: Option<Moved>,
}

/// A hold that begins.
#[derive(Clone, Debug)]
pub struct Begun<'a> {
    pub id: &'a [u8],
    pub ends: Time,
    pub charges: Vec<Charge>,
}

/// The state of a limit moved in time, and with it what was charged to it.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub name: Name,
    /// The number of this move, by which the holds know whether it was applied.
    pub number: u64,
    pub by: Move,
}

/// How a state moves what was charged to it in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// All instants move by the same step.
    Step { from: Time, to: Time },
    /// What was charged from `since` to `until` counts as charged at `to`. The rest stays, or counts no more.
    Gather { since: Time, until: Time, to: Time, keeps_others: bool },
}

impl Move {
    /// Nothing counts any more.
    pub const NOWHERE: Move =
        Move::Gather { since: Time::LATEST, until: Time::EPOCH, to: Time::EPOCH, keeps_others: false };

    /// All that was charged since an instant moves to the last charge, or to `now` if the clock was set back.
    pub fn all_since(since: Time, last: Time, now: Time) -> Move {
        Move::Gather { since, until: last, to: now.min(last), keeps_others: false }
    }

    /// When what was charged at an instant counts as charged; the epoch if it counts no more.
    pub fn of(self, at: Time) -> Time {
        match self {
            _ if at == Time::EPOCH => at,
            Move::Step { from, to } => to.minus(from.since(at)),
            Move::Gather { since, until, to, .. } if (since..=until).contains(&at) => to,
            Move::Gather { keeps_others: true, .. } => at,
            Move::Gather { .. } => Time::EPOCH,
        }
    }
}

impl Change<'static> {
    /// Time passes, or goes back.
    pub fn passed(last: Time) -> Change<'static> {
        Change { last, ended: None, begun: None, moved: None }
    }
}
