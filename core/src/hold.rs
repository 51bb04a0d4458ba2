//! The holds of a key: what calls charged, to be settled. `ask/held.rs` and `joint/held.rs` charge and settle it.
//!
//! ```text
//! RL.TOKENBUCKET llm 1000 1000 1m COST 600 HOLD r1 5m     charges 600, and holds it as r1
//! RL.SETTLE llm r1 TOKENBUCKET 1000 1000 1m COST 450      gives 150 back, and ends r1
//! RL.SETTLE llm r1 TOKENBUCKET 1000 1000 1m COST 450      r1 is not held: changes nothing
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::clock::Reading;
use crate::limiter::Limiter;
use crate::limits::{Error, Limits, Place};
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

/// For each limit of a key that holds have charged: their number, and what they charged to it.
pub fn charged(limits: &impl Limits, at: Time) -> BTreeMap<Name, (u64, u64)> {
    holds(limits).and_then(|holds| holds.charged(at)).unwrap_or_default()
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
    limits.drop_holds(last)
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
    if holds.count(now) > 0 { write(limits, &passed) } else { limits.drop_holds(now) }
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
