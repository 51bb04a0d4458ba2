//! The holds of a key: what calls charged for work whose cost is known later.
//!
//! A hold has an id that the caller chooses. It remembers what was charged to which limit, and when. It is settled with
//! the actual cost, or it ends after its time to live. Then the charge stands.
//!
//! Holds are not a limit, but a set of limits stores them beside its limits. So a key with holds stores a set, even if it
//! has one limit only.
//!
//! A hold that has ended no longer belongs to the state: it is neither counted nor encoded. Its memory is freed later, as
//! that of expired leases is.

mod change;
mod stored;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

pub use change::{Begun, Change, Charge, Move, Moved};

use super::name::Name;
use super::table::{Lease, Table};
use super::timeline::Timeline;
use crate::clock::{Reading, read_clock};
use crate::time::{Span, Time};

/// The most charges of a hold.
pub const MAX_CHARGES: usize = 16;

/// The most ended holds that one change frees. A change adds at most one, so later changes free the rest.
const FREED: usize = 16;

/// The most charges that are read at once.
const READ: usize = 5000;

/// The holds of a key.
#[derive(Clone, Default, Debug)]
pub struct Holds {
    timeline: Timeline,
    /// How often what was charged to a limit was moved in time.
    moves: u64,
    /// The charges of each hold are in the order of their limits' names, and no two have the same name.
    table: Table<Box<[Charge]>>,
}

impl Holds {
    /// What is held under this id at `now`. An instant before the last charge counts as that one.
    pub fn get(&self, id: &[u8], now: Time) -> Option<&[Charge]> {
        let hold = self.table.find(id).and_then(|slot| self.table.get(slot))?;
        (hold.deadline() > self.timeline.tick_at(now)).then_some(&*hold.kept)
    }

    /// The number of holds at `now`. An instant before the last charge counts as that one.
    pub fn count(&self, now: Time) -> u64 {
        self.table.held(self.timeline.tick_at(now)).0
    }

    /// For each limit that holds have charged: the number of holds at `now`, and what they charged to it; `None` if there are too
    /// many charges to read them all.
    pub fn charged(&self, now: Time) -> Option<BTreeMap<Name, (u64, u64)>> {
        let now = self.timeline.tick_at(now);
        let mut charged = BTreeMap::new();
        let holds = self.table.iter().filter(|hold| hold.deadline() > now);
        for (number, charge) in holds.flat_map(|hold| &hold.kept).enumerate() {
            if number == READ {
                return None;
            }
            let (count, cost): &mut (u64, u64) = charged.entry(charge.name).or_default();
            *count += 1;
            *cost = cost.saturating_add(charge.cost);
        }
        Some(charged)
    }

    /// The time from `now` until the last hold ends.
    pub fn reset(&self, now: Time) -> Span {
        self.table.reset(self.timeline.tick_at(now))
    }

    /// How the clock is read, as for a limit.
    pub fn reading(&self, at: Time) -> Reading {
        let last = self.timeline.last;
        read_clock(last, at, || self.reset(last))
    }

    /// The change that a charge at `at` makes: a hold has ended, or the clock was set back.
    pub fn passed(&self, at: Time) -> Option<Change<'static>> {
        let last = match self.reading(at) {
            Reading::At(now) if self.count(now) == self.count(self.timeline.last) => return None,
            Reading::At(now) => now,
            Reading::SetBack => at,
        };
        Some(Change::passed(last))
    }

    /// The change that moves what the holds charged to a limit; `None` if it moves nothing.
    pub fn moved(&self, name: Name, by: Move) -> Option<Change<'static>> {
        let mut held = self.table.iter().filter(|hold| hold.deadline() > self.timeline.tick);
        let moves =
            held.any(|hold| charge(&hold.kept, name).is_some_and(|charge| by.of(charge.at) != charge.at));
        let moved = Moved { name, number: self.moves.wrapping_add(1), by };
        moves.then(|| Change { moved: Some(moved), ..Change::passed(self.timeline.last) })
    }

    /// Moves what the holds charged to a limit, unless it was moved already.
    fn set_moved(&mut self, moved: Moved) {
        if moved.number != self.moves.wrapping_add(1) {
            return;
        }
        self.moves = moved.number;
        self.table.each_kept(|charges| {
            for charge in charges.iter_mut().filter(|charge| charge.name == moved.name) {
                charge.at = moved.by.of(charge.at);
            }
        });
    }

    /// Gives the charges of a limit its new name. What was charged to an earlier limit of that name no longer counts.
    pub(super) fn rename(&mut self, from: Name, to: Name) {
        self.table.each_kept(|charges| {
            let has_from = charge(charges, from).is_some();
            if has_from && charge(charges, to).is_some() {
                *charges = charges.iter().copied().filter(|charge| charge.name != to).collect();
            }
            for charge in charges.iter_mut() {
                if charge.name == from {
                    charge.name = to;
                } else if charge.name == to {
                    charge.at = Time::EPOCH;
                }
            }
            charges.sort_unstable_by_key(|charge| charge.name);
        });
    }

    /// Begins a hold.
    fn begin(&mut self, Begun { id, ends, charges }: Begun<'_>) {
        self.end(id);
        self.table.add(Lease::new(id, self.timeline.tick_at(ends), 0, charges.into()));
    }

    /// Ends the hold of this id.
    fn end(&mut self, id: &[u8]) {
        if let Some(slot) = self.table.find(id) {
            self.table.remove(slot);
        }
    }

    /// Frees a few holds that have ended.
    fn tidy(&mut self) {
        self.table.remove_expired(self.timeline.tick, FREED);
    }
}

fn charge(charges: &[Charge], name: Name) -> Option<&Charge> {
    charges.iter().find(|charge| charge.name == name)
}
