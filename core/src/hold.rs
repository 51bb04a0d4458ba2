//! Holding what a call charges, and settling it.
//!
//! ```text
//! RL.TOKENBUCKET llm 1000 1000 1m COST 600 HOLD r1 5m     charges 600, and holds it as r1
//! RL.SETTLE llm r1 TOKENBUCKET 1000 1000 1m COST 450      gives 150 back, and ends r1
//! RL.SETTLE llm r1 TOKENBUCKET 1000 1000 1m COST 450      r1 is not held: changes nothing
//! ```

use alloc::vec::Vec;

use crate::answer::Manner;
use crate::ask::{Ask, Error, Limits, Place, Taken};
use crate::clock::Reading;
use crate::limiter::Limiter;
use crate::state::{Begun, Charge, HoldChange, Holds, Length, MAX_CHARGES, Name, State};
use crate::time::{Span, Time};

/// A request to hold what a call charges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold<'a> {
    pub id: &'a [u8],
    /// How long the charge can be settled.
    pub ttl: Span,
    /// The most holds of a key.
    pub most: u64,
}

/// The name under which a set stores the holds.
const HOLDS: Length = Length::NONE;

fn holds(limits: &impl Limits) -> Option<&Holds> {
    limits.state::<Holds>(HOLDS)
}

/// What a key holds under this id. `at` is the caller's time.
pub fn held<'l>(limits: &'l impl Limits, id: &[u8], at: Time) -> Option<&'l [Charge]> {
    holds(limits)?.get(id, at)
}

/// Finds what is held for a limit, as the limiter's own command finds the limit: by its name; else the only one of its
/// kind, if the key has no limit of that name.
pub fn find<L: Limiter>(limits: &impl Limits, charges: &[Charge], limiter: &L) -> Option<Charge> {
    let name = limiter.name();
    let found = name.find_among(charges.iter().map(|charge| charge.name))?;
    let is_free = || limits.state::<L::State>(name.length).is_none();
    let found = (found == name || is_free()).then_some(found)?;
    charges.iter().find(|charge| charge.name == found).copied()
}

/// Whether a key has room for a hold of this number of charges.
pub fn has_room(limits: &impl Limits, hold: &Hold<'_>, at: Time, charges: usize) -> bool {
    let count = holds(limits).map_or(0, |holds| holds.count(at));
    count < hold.most && charges <= MAX_CHARGES
}

/// Begins a hold. `now` is the latest instant at which its charges were decided.
///
/// # Errors
///
/// [`Error::Defect`] if the change cannot be applied.
pub fn begin(
    limits: &mut impl Limits,
    hold: &Hold<'_>,
    now: Time,
    mut charges: Vec<Charge>,
) -> Result<(), Error> {
    charges.sort_unstable_by_key(|charge| charge.name);
    change(limits, now, |now, change| {
        change.begun = Some(Begun { id: hold.id, ends: now.plus(hold.ttl), charges });
    })
}

/// Ends the hold of this id. Without other holds, the key then stores none.
///
/// # Errors
///
/// [`Error::Defect`] if the change cannot be applied.
pub fn end(limits: &mut impl Limits, id: &[u8], now: Time) -> Result<(), Error> {
    change(limits, now, |_, change| change.ended = Some(id))?;
    let last = holds(limits).map_or(now, State::last);
    drop_if_ended(limits, last)
}

/// Drops the holds that have ended at `now`, as a charge does, and moves the others if the clock was set back.
///
/// # Errors
///
/// [`Error::Defect`] if the change cannot be applied.
#[inline(always)]
pub(crate) fn pass(limits: &mut impl Limits, now: Time) -> Result<(), Error> {
    if any(limits) { pass_all(limits, now) } else { Ok(()) }
}

#[cold]
fn pass_all(limits: &mut impl Limits, now: Time) -> Result<(), Error> {
    let Some((holds, passed)) = holds(limits).and_then(|holds| Some((holds, holds.passed(now)?))) else {
        return Ok(());
    };
    if holds.count(now) > 0 { write(limits, &passed) } else { drop_if_ended(limits, now) }
}

/// Drops the holds if all have ended at `now`.
fn drop_if_ended(limits: &mut impl Limits, now: Time) -> Result<(), Error> {
    limits.drop_faded(now, |name| name.kind.is_limit())
}

/// Changes the holds at `now`, or at the instant that counts as now.
fn change<'a>(
    limits: &mut impl Limits,
    now: Time,
    part: impl FnOnce(Time, &mut HoldChange<'a>),
) -> Result<(), Error> {
    let now = match holds(limits).map(|holds| holds.reading(now)) {
        Some(Reading::At(later)) => later,
        Some(Reading::SetBack) | None => now,
    };
    let mut change = HoldChange::passed(now);
    part(now, &mut change);
    write(limits, &change)
}

fn write(limits: &mut impl Limits, change: &HoldChange<'_>) -> Result<(), Error> {
    let place = &mut Place::of(HOLDS);
    limits.change(place, Holds::blank, |_, out| Holds::encode_change(change, out)).map(drop)
}

/// Whether a key has holds.
#[inline(always)]
pub(crate) fn any(limits: &impl Limits) -> bool {
    holds(limits).is_some()
}

/// Moves what the holds of a key charged to a limit, as its next change at `now` moves its counts.
#[cold]
pub(crate) fn move_charges<L: Limiter>(
    limits: &mut impl Limits,
    limiter: &L,
    stored: Length,
    now: Time,
) -> Result<(), Error> {
    let Some((holds, state)) = holds(limits).zip(limits.state::<L::State>(stored)) else {
        return Ok(());
    };
    let by = limiter.moved_charges(state, stored.span(), now);
    match by.and_then(|by| holds.moved(Name::of::<L::State>(stored), by)) {
        Some(moved) => write(limits, &moved),
        None => Ok(()),
    }
}

impl Ask {
    /// As [`Ask::take`], and holds what it charges. The key must have room for holds.
    ///
    /// # Errors
    ///
    /// As [`Ask::take`].
    pub fn take_and_hold<L: Limiter>(
        &mut self,
        limits: &mut impl Limits,
        limiter: &L,
        hold: &Hold<'_>,
    ) -> Result<Taken, Error> {
        let taken = self.take(limits, limiter)?;
        if taken.verdict.admits() {
            let charge = self.charged(limits, limiter, taken.granted);
            begin(limits, hold, self.now(), [charge].into())?;
        }
        Ok(taken)
    }

    /// Settles what is held under an id for this limit, and ends the hold. Returns whether something was given back; `None` if
    /// nothing is held for it.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] and [`Error::TooManyLimits`] are found before anything is changed.
    pub fn settle_held<L: Limiter>(
        limits: &mut impl Limits,
        limiter: &L,
        id: &[u8],
        at: Time,
        actual: u64,
    ) -> Result<Option<(Ask, bool)>, Error> {
        let charge = held(limits, id, at).and_then(|charges| find(limits, charges, limiter));
        let Some(charge) = charge else { return Ok(None) };
        let mut ask = Ask::new(Place::of(Length::of(limiter.length())), at, 0, Manner::Force);
        ask.prepare_to_settle(limits, limiter, &charge, actual);
        if ask.cost > 0 {
            ask.check(limits, limiter)?;
        }
        if ask.adds(limits, limiter) && limits.room() == 0 {
            return Err(Error::TooManyLimits);
        }
        let gave_back = ask.settle(limits, limiter, &charge, actual)?;
        end(limits, id, ask.now())?;
        Ok(Some((ask, gave_back)))
    }

    /// What a hold remembers of a charge that was just made.
    pub(crate) fn charged<L: Limiter>(&self, limits: &impl Limits, limiter: &L, cost: u64) -> Charge {
        let now = self.now();
        let at = limits.state(self.place.stored).map_or(now, |state| limiter.charged_at(state, now));
        Charge { name: Name::of::<L::State>(self.place.stored), cost, at }
    }

    /// Prepares to settle a charge: finds the limit's place. If the actual cost is above the held one, the difference becomes
    /// the cost to charge.
    pub(crate) fn prepare_to_settle<L: Limiter>(
        &mut self,
        limits: &impl Limits,
        limiter: &L,
        charge: &Charge,
        actual: u64,
    ) {
        let (stored, length) = (charge.name.length, Length::of(limiter.length()));
        let is_stored = limits.state::<L::State>(stored).is_some();
        self.place = if is_stored { Place { stored, length } } else { Place::of(length) };
        (self.cost, self.manner) = (actual.saturating_sub(charge.cost), Manner::Force);
    }

    /// Whether a settlement that was prepared adds the limit to the key, which has dropped it.
    pub(crate) fn adds<L: Limiter>(&self, limits: &impl Limits, _limiter: &L) -> bool {
        self.cost > 0 && limits.state::<L::State>(self.place.stored).is_none()
    }

    /// Settles a charge that was prepared. If the actual cost is below the held one, the difference goes back to where it was
    /// charged. If it is above, the difference is charged now. Returns whether something was given back.
    pub(crate) fn settle<L: Limiter>(
        &mut self,
        limits: &mut impl Limits,
        limiter: &L,
        charge: &Charge,
        actual: u64,
    ) -> Result<bool, Error> {
        // A clock that was set back moves the charge.
        let at = match self.set_back(limits, limiter) {
            Some(state) => moved(limiter, state, self.place.stored, self.at(), charge.at),
            None => charge.at,
        };
        self.read_clock(limits, limiter)?;
        if self.cost > 0 {
            return self.charge(limits, limiter, self.cost).map(|()| false);
        }
        let (now, rest, stored) = (self.now(), charge.cost.saturating_sub(actual), self.place.stored);
        let Some(state) = limits.state::<L::State>(stored).filter(|_| rest > 0) else {
            return Ok(false);
        };
        let moves = limiter.moves_charges(state, stored.span());
        let at = if moves { moved(limiter, state, stored, now, at) } else { at };
        if at == Time::EPOCH {
            return Ok(false);
        }
        // Other charges move only if the state changes.
        if moves && limiter.give_back(state, now, at, rest).is_some() {
            move_charges(limits, limiter, stored, now)?;
        }
        let write = |state: &L::State, out: &mut Vec<u8>| {
            if let Some(change) = limiter.give_back(state, now, at, rest) {
                L::State::encode_change(&change, out);
            }
        };
        limits.change(&mut self.place, L::State::blank, write)
    }
}

/// When a charge counts after the next change of its limit.
fn moved<L: Limiter>(limiter: &L, state: &L::State, stored: Length, now: Time, at: Time) -> Time {
    limiter.moved_charges(state, stored.span(), now).map_or(at, |by| by.of(at))
}
