//! Holding what a request to one limit charges, and settling it.

use alloc::vec::Vec;

use super::{Ask, Taken};
use crate::answer::Manner;
use crate::hold::{Hold, begin, end, find, held, move_charges};
use crate::limiter::Limiter;
use crate::limits::{Error, Limits, Place};
use crate::state::{Charge, Length, Name, State};
use crate::time::Time;

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
        self.hold(limits, limiter, &taken, hold)?;
        Ok(taken)
    }

    /// Holds what [`Ask::take`] has charged.
    ///
    /// # Errors
    ///
    /// [`Error::Defect`] if the change cannot be applied.
    pub fn hold<L: Limiter>(
        &self,
        limits: &mut impl Limits,
        limiter: &L,
        taken: &Taken,
        hold: &Hold<'_>,
    ) -> Result<(), Error> {
        if !taken.verdict.admits() {
            return Ok(());
        }
        let charge = self.charged(limits, limiter, taken.granted);
        begin(limits, hold, self.now(), [charge].into())
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
