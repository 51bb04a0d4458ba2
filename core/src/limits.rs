//! The limits of a key, as requests find and change them.

use alloc::vec::Vec;

use crate::clock::{Reading, read_clock};
use crate::limiter::TooLong;
use crate::state::{Length, LimitState, Name};
use crate::time::{Span, Time};

/// The limits of one key, in a server or in memory.
pub trait Limits {
    /// The state of the limit of this type and length of time; `None` if the key has no such limit.
    fn state<S: LimitState>(&self, length: Length) -> Option<&S>;

    /// Applies the change that `write` writes to the limit at `place`, and gives the limit the place's new length.
    /// Returns whether `write` wrote a change. `blank` makes the state that a missing limit stands for.
    ///
    /// # Errors
    ///
    /// [`Error::Defect`] if the written change cannot be read back.
    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, Error>;

    /// The number of limits that can be added.
    fn room(&self) -> usize;

    /// Makes room for limits that the key may lack.
    fn make_room(&mut self, _names: impl Iterator<Item = Name>) {}

    /// Drops the limits that are fully reset at `now` and that no call would miss: see [`faded`](crate::state::faded). `named` are
    /// those that the call names.
    fn drop_faded(&mut self, now: Time, named: impl Iterator<Item = Name> + Clone) -> Result<(), Error>;

    /// Drops the holds of the key, if all have ended at `now`.
    fn drop_holds(&mut self, now: Time) -> Result<(), Error>;
}

/// Where a key stores a limit.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The length of time under which the limit is stored, if it is stored.
    pub stored: Length,
    /// The length of time that a change gives the limit.
    pub length: Length,
}

impl Place {
    /// The place of a limit whose length of time does not change.
    pub fn of(length: Length) -> Place {
        Place { stored: length, length }
    }
}

/// Why a request fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The debt or booking would take over 100 years to be paid off. Nothing was changed.
    TooLong,
    /// The key has no room for another limit. Nothing was changed.
    TooManyLimits,
    /// A change that was just written cannot be read back. This is a bug.
    Defect,
}

impl From<TooLong> for Error {
    fn from(TooLong: TooLong) -> Error {
        Error::TooLong
    }
}

/// Returns the instant at which to decide on the limit at `place`.
///
/// `reset` is the limit's reset at its last charge. If the clock was set back, the state is moved to `at`: `rebase`
/// writes that change.
#[inline(always)]
pub(crate) fn move_to_now<S: LimitState>(
    limits: &mut impl Limits,
    place: &mut Place,
    at: Time,
    reset: impl FnOnce(&S) -> Span,
    rebase: impl FnOnce(&S, &mut Vec<u8>),
) -> Result<Time, Error> {
    let Some(state) = limits.state::<S>(place.stored) else {
        return Ok(at);
    };
    match read_clock(state.last(), at, || reset(state)) {
        Reading::At(now) => Ok(now),
        Reading::SetBack => {
            limits.change(place, S::blank, rebase)?;
            Ok(at)
        }
    }
}
