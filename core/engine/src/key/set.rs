//! What a key does only for a set of limits.

use std::iter::once;
use std::mem::take;

use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{MAX_LIMITS, SetChange, StoredLimit, faded, fits};
use ratelimit_core::{
    Error as CoreError, Kind, Length, LimitSet, LimitState, Limiter, Limits, Name, Place, Span, State, Time,
};
use ratelimit_language::Error;

use super::content::Content;
use super::{Form, Key};
use crate::slot::Slot;

impl<O: Slot> Key<O> {
    /// Finds the limit that a limiter's own command charges at `now`. If the key lacks it, the key is prepared for one more limit.
    ///
    /// # Errors
    ///
    /// As [`Key::own_place`], or if the key would hold too many limits.
    #[inline(always)]
    pub fn place_to_charge<L: Limiter>(&mut self, limiter: &L, now: Time) -> Result<Place, Error> {
        let (place, adds) = self.locate(limiter)?;
        if adds {
            self.prepare_to_add(Name::of::<L::State>(place.length), now)?;
        }
        Ok(place)
    }

    #[cold]
    #[inline(never)]
    fn prepare_to_add(&mut self, name: Name, now: Time) -> Result<(), Error> {
        self.prepare(now, once(name), once(name), &once(name))
    }

    /// Prepares the key for a call that gives limits by their whole names.
    ///
    /// `at_once` are the limits that it charges if it is admitted, `charged` all that it may charge, and `named` those that it
    /// names at all. A key of another kind is an error, and so are more than [`MAX_LIMITS`] limits.
    pub fn prepare(
        &mut self,
        now: Time,
        mut at_once: impl Iterator<Item = Name>,
        charged: impl Iterator<Item = Name> + Clone,
        named: &(impl Iterator<Item = Name> + Clone),
    ) -> Result<(), Error> {
        let lone = self.slot.lone_limit();
        let stays_lone = match (self.form, lone, self.slot.value()) {
            (Form::Set, ..) => false,
            (Form::Lone, Some((lone, _)), _) => at_once.all(|name| name == lone),
            (Form::Lone, None, None) => at_once.next().is_some() && at_once.next().is_none(),
            (Form::Lone, None, Some(_)) => return Err(self.holds_no_limits(None)),
        };
        if !stays_lone {
            self.form = Form::Set;
        } else if charged.clone().nth(1).is_none() {
            return Ok(());
        }
        let limits = self.slot.set().into_iter().flat_map(LimitSet::limits);
        let stored = limits.map(|limit| (limit.name, limit.until())).chain(lone);
        let count = charged.clone().count();
        // The exact count takes longer; it is needed only near the bound.
        let near_bound = count > 0 && stored.clone().count() + count > MAX_LIMITS;
        if near_bound && !fits(&stored, charged, named, now) { Err(Error::TooManyLimits) } else { Ok(()) }
    }

    /// Returns whether all limits of a set are fully reset at `now`; true if the key holds no set.
    pub fn set_is_reset(&self, now: Time) -> bool {
        self.slot.set().is_none_or(|set| set.until() <= now)
    }

    /// The limits of a set, and the holds beside them; empty if the key stores none.
    fn stored(&self) -> &[StoredLimit] {
        self.slot.set().map_or(&[], LimitSet::stored)
    }

    /// Changes a limit of the set, and returns whether `write` wrote a change. `blank` makes a missing limit.
    pub fn change_in_set<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, CoreError> {
        let start = self.payload.len();
        self.begin(Kind::LimitSet, Length::NONE);
        let [from, to] = [place.stored, place.length].map(Name::of::<S>);
        let renamed = (from != to).then_some(SetChange::Renamed { from, to });
        if let Some(renamed) = &renamed {
            LimitSet::encode_change(renamed, &mut self.payload);
        }
        SetChange::begin(to, &mut self.payload);
        let body = self.payload.len();
        // `write` needs the payload and a state of the key at the same time.
        let mut payload = take(&mut self.payload);
        match self.state(from.length) {
            Some(state) => write(state, &mut payload),
            None => write(&blank(), &mut payload),
        }
        self.payload = payload;
        if self.payload.len() == body {
            self.payload.truncate(start);
            return Ok(false);
        }
        let change = S::decode_change(&mut Reader::new(self.payload.get(body..).unwrap_or(&[])));
        let Some((set, change)) = self.slot.make_set().zip(change) else {
            // Bytes that were written and cannot be decoded are a defect.
            self.payload.truncate(start);
            return Err(CoreError::Defect);
        };
        if let Some(renamed) = renamed {
            set.apply(renamed);
        }
        set.apply_to::<S>(to.length, change);
        place.stored = to.length;
        Ok(true)
    }

    /// Drops the limits that are fully reset at `now` and that no call would miss.
    pub fn drop_faded_of_set(
        &mut self,
        now: Time,
        named: &(impl Iterator<Item = Name> + Clone),
    ) -> Result<(), CoreError> {
        // A call with a second limit finds the first one lone.
        let of_set = self.stored().iter().map(|limit| (limit.name, limit.until()));
        let dropped = faded(&of_set.chain(self.slot.lone_limit()), named, now);
        self.drop(dropped)
    }

    /// Drops the holds, if all have ended at `now`.
    pub fn drop_holds_of_set(&mut self, now: Time) -> Result<(), CoreError> {
        let holds = self.stored().iter().filter(|limit| !limit.name.kind.is_limit() && limit.until() <= now);
        self.drop(holds.map(|limit| limit.name).collect())
    }

    fn drop(&mut self, dropped: Vec<Name>) -> Result<(), CoreError> {
        if !dropped.is_empty() {
            self.begin(Kind::LimitSet, Length::NONE);
            let set = self.slot.make_set().ok_or(CoreError::Defect)?;
            for name in dropped {
                let change = SetChange::Dropped { name };
                LimitSet::encode_change(&change, &mut self.payload);
                set.apply_and_take(change).into_iter().for_each(O::discard);
            }
        }
        Ok(())
    }

    /// Returns the duration from `latest` until all limits of the set are fully reset. A set of one becomes lone.
    pub fn commit_set(&mut self, latest: Time) -> Span {
        let reset = self.slot.set().map(|set| set.until().since(latest)).unwrap_or_default();
        self.slot.make_lone();
        reset
    }
}

/// Sends the payloads of several keys to replicas and the AOF, in one command.
pub fn publish<O: Slot>(keys: &mut [Key<O>]) {
    let changed = || keys.iter().filter(|key| !key.payload.is_empty());
    if changed().count() > 1 {
        O::send_all(changed().map(|key| (&key.slot, key.payload.as_slice())));
        for key in keys {
            key.payload.clear();
        }
    } else {
        keys.iter_mut().for_each(Key::publish);
    }
}
