//! Several limits under one key, each with its own name and state.
//!
//! A limit's name is its limiter, its mode and its length of time: period, window or interval. So "10 per second" and
//! "240 per hour" are two limits, and "12 per second" is the first of them with another parameter. Leases have no
//! length of time, as a key has one table of leases. `SHADOW` is part of the name.
//!
//! A server stores a key of one limit without a set. Holds are in the same list, but they are no limit and do not count.
//!
//! A limit that the key lacks is as one that is fully reset. A charge adds it, so no call fails because of what else the key holds. A
//! limiter's own command, which names one limit, takes the limit of its name. If there is none, but one other limit of its limiter and
//! mode that is no shadow, it takes that one and renames it: so a period can be changed without starting anew.
//!
//! A limit that a call does not name stays in the key until it is fully reset. Then the next charge of the key drops
//! it, unless a call would see the difference ([`faded`]). The call that decides says in its effect what it drops.
//!
//! ```text
//! RL.MULTI 1 u LIMIT GCRA 0 1 1s LIMIT GCRA 9 10 1h   {GCRA 1 s, GCRA 1 h}
//! RL.GCRA u 0 1 1s                                    charges GCRA 1 s
//! RL.GCRA u 0 1 2s                                    {GCRA 1 s, GCRA 2 s, GCRA 1 h}: none is GCRA 2 s, and two are GCRA
//! RL.UNIFORM u 1s                                     {GCRA 1 s, GCRA 2 s, GCRA 1 h, UNIFORM 1 s}
//! a minute later, RL.GCRA u 0 1 2s                    {GCRA 1 s, GCRA 2 s, GCRA 1 h}: UNIFORM 1 s is fully reset
//! two hours later, RL.GCRA u 0 1 2s                   {GCRA 1 s, GCRA 2 s, GCRA 1 h}
//! two hours later, RL.UNIFORM u 1s                    {UNIFORM 1 s}
//! ```

mod stored;

use alloc::vec::Vec;
use core::mem::take;

pub use stored::Change;

use super::codec::Reader;
use super::{Holds, Leases, Length, LimitState, Name};
use crate::any::AnyState;
use crate::limits::{Error, Limits, Place};
use crate::time::Time;

/// The most limits of a key.
pub const MAX_LIMITS: usize = 64;

/// A limit of a set.
#[derive(Clone, Debug)]
pub struct StoredLimit {
    pub name: Name,
    pub state: AnyState,
}

impl StoredLimit {
    /// When the limit is fully reset.
    pub fn until(&self) -> Time {
        with_kept!(&self.state, state => state.until(self.name.length.span()))
    }
}

/// The limits of a key, ordered by name, so that the bytes do not depend on the order of the charges.
#[derive(Clone, Default, Debug)]
pub struct LimitSet {
    limits: Vec<StoredLimit>,
}

impl LimitSet {
    /// A set of one limit, to which another will be added.
    pub fn of_one(name: Name, state: AnyState) -> LimitSet {
        let mut limits = Vec::with_capacity(2);
        limits.push(StoredLimit { name, state });
        LimitSet { limits }
    }

    /// The limits, and the holds beside them.
    pub fn stored(&self) -> &[StoredLimit] {
        &self.limits
    }

    /// The limits without the holds.
    pub fn limits(&self) -> impl Iterator<Item = &StoredLimit> + Clone {
        self.limits.iter().filter(|limit| limit.name.kind.is_limit())
    }

    /// Whether there is no limit.
    pub fn is_empty(&self) -> bool {
        self.limits().next().is_none()
    }

    #[inline]
    pub fn get<S: LimitState>(&self, length: Length) -> Option<&S> {
        let name = Name::of::<S>(length);
        self.limits.iter().find(|limit| limit.name == name).and_then(|limit| limit.state.get())
    }

    /// The place of the limit that a limiter's own command names. If no limit has the name, the only limit of its kind that
    /// is no shadow.
    pub fn find(&self, name: Name) -> Option<Place> {
        let found = name.find_among(self.limits.iter().map(|limit| limit.name))?;
        Some(Place { stored: found.length, length: name.length })
    }

    /// The number of limits that can be added.
    pub fn room(&self) -> usize {
        MAX_LIMITS.saturating_sub(self.limits().count())
    }

    /// When all limits are fully reset.
    pub fn until(&self) -> Time {
        self.limits.iter().map(StoredLimit::until).max().unwrap_or_default()
    }

    /// Takes the only limit out of the set; `None` if there are several, or holds beside it.
    pub fn take_only(&mut self) -> Option<StoredLimit> {
        match &*self.limits {
            [only] if only.name.kind.is_limit() => take(&mut self.limits).pop(),
            _ => None,
        }
    }

    /// The index of the limit of this name, or as an error the index at which it would be.
    #[inline]
    fn search(&self, name: Name) -> Result<usize, usize> {
        // Most sets have two or three limits, for which this is faster than a binary search.
        let index = self.limits.iter().position(|limit| limit.name >= name).unwrap_or(self.limits.len());
        let found = self.limits.get(index).is_some_and(|limit| limit.name == name);
        if found { Ok(index) } else { Err(index) }
    }

    /// Adds a limit, unless the set has one of this name or is full.
    fn insert(&mut self, limit: StoredLimit) {
        if let Err(index) = self.search(limit.name)
            && (!limit.name.kind.is_limit() || self.room() > 0)
        {
            self.limits.reserve_exact(1);
            self.limits.insert(index, limit);
        }
    }

    /// As [`LimitSet::insert`], with a blank state.
    fn add_blank(&mut self, name: Name) {
        if let Some(state) = AnyState::blank(name.kind) {
            self.insert(StoredLimit { name, state });
        }
    }

    fn remove(&mut self, name: Name) -> Option<StoredLimit> {
        self.search(name).ok().map(|index| self.limits.remove(index))
    }

    /// Gives a limit another length of time, unless another limit has the new name.
    fn rename(&mut self, from: Name, to: Name) {
        if from.kind == to.kind
            && from.length.is_shadow() == to.length.is_shadow()
            && self.search(to).is_err()
            && let Some(limit) = self.remove(from)
        {
            self.insert(StoredLimit { name: to, ..limit });
            if let Some(holds) = self.holds_mut() {
                holds.rename(from, to);
            }
        }
    }

    fn holds_mut(&mut self) -> Option<&mut Holds> {
        self.limits.iter_mut().find_map(|limit| limit.state.get_mut())
    }

    /// Applies a change to the limit of this type and length. A missing limit is added unless the set is full.
    /// [`SetChange::Limit`](super::SetChange::Limit) does the same for a type that is known only at run time.
    pub fn apply_to<S: LimitState>(&mut self, length: Length, change: S::Change<'_>) {
        let name = Name::of::<S>(length);
        let index = self.search(name).or_else(|_| {
            self.add_blank(name);
            self.search(name)
        });
        let limit = index.ok().and_then(|index| self.limits.get_mut(index));
        if let Some(state) = limit.and_then(|limit| limit.state.get_mut::<S>()) {
            state.apply(change);
        }
    }

    /// Frees leases of the limit that had ended at the last charge, at most this many.
    pub fn free_ended_leases(&mut self, most: usize) {
        let leases =
            self.search(Name::of::<Leases>(Length::NONE)).ok().and_then(|index| self.limits.get_mut(index));
        if let Some(leases) = leases.and_then(|limit| limit.state.get_mut::<Leases>()) {
            leases.free_ended(most);
        }
    }
}

/// A key in memory, without a server.
impl Limits for LimitSet {
    fn state<S: LimitState>(&self, length: Length) -> Option<&S> {
        self.get(length)
    }

    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, Error> {
        let mut bytes = Vec::new();
        match self.get(place.stored) {
            Some(state) => write(state, &mut bytes),
            None => write(&blank(), &mut bytes),
        }
        if bytes.is_empty() {
            return Ok(false);
        }
        if place.stored != place.length {
            let [from, to] = [place.stored, place.length].map(Name::of::<S>);
            self.rename(from, to);
            place.stored = place.length;
        }
        let change = S::decode_change(&mut Reader::new(&bytes)).ok_or(Error::Defect)?;
        self.apply_to::<S>(place.length, change);
        Ok(true)
    }

    fn room(&self) -> usize {
        self.room()
    }

    fn drop_faded(&mut self, now: Time, named: impl Iterator<Item = Name> + Clone) -> Result<(), Error> {
        let dropped = faded(&self.limits.iter().map(|limit| (limit.name, limit.until())), &named, now);
        self.limits.retain(|limit| !dropped.contains(&limit.name));
        Ok(())
    }

    fn drop_holds(&mut self, now: Time) -> Result<(), Error> {
        self.limits.retain(|limit| limit.name.kind.is_limit() || limit.until() > now);
        Ok(())
    }
}

/// The limits of a key that a charge at `now` drops. `stored` are their names, and when each is fully reset; `named` are the limits
/// that the call names.
///
/// They are fully reset, and not named. A limit stays all the same if it is no shadow and the key has, or gets, another one of its
/// limiter and mode that is no shadow and stays. Without it, a limiter's own command would take that other one for it. But if there is no
/// room for all of them, none stays.
pub fn faded(
    stored: &(impl Iterator<Item = (Name, Time)> + Clone),
    named: &(impl Iterator<Item = Name> + Clone),
    now: Time,
) -> Vec<Name> {
    let is_named = |name: Name| named.clone().any(|other| other == name);
    let is_faded = |(name, until): &(Name, Time)| *until <= now && !is_named(*name);
    let mut dropped: Vec<Name> = stored.clone().filter(is_faded).map(|(name, _)| name).collect();
    if dropped.is_empty() {
        return dropped;
    }
    let limits = stored.clone().filter(|(name, _)| name.kind.is_limit());
    let new = named.clone().filter(|name| !stored.clone().any(|(other, _)| other == *name));
    if limits.count() + new.count() <= MAX_LIMITS {
        let stays = stored.clone().filter(|limit| !is_faded(limit)).map(|(name, _)| name);
        let taken: Vec<Name> = stays.chain(named.clone()).filter(|name| !name.length.is_shadow()).collect();
        let is_missed =
            |name: &Name| !name.length.is_shadow() && taken.iter().any(|other| other.kind == name.kind);
        dropped.retain(|name| !is_missed(name));
    }
    dropped
}

/// Whether a key would hold at most [`MAX_LIMITS`] limits after a charge at `now`.
///
/// `stored` are the names of its limits, and when each is fully reset. `charged` are the names that the call charges.
/// `named` are those that it names, also without a charge.
pub fn fits(
    stored: &(impl Iterator<Item = (Name, Time)> + Clone),
    charged: impl Iterator<Item = Name>,
    named: &(impl Iterator<Item = Name> + Clone),
    now: Time,
) -> bool {
    let kept = stored.clone().count() - faded(stored, named, now).len();
    let new = charged.filter(|name| !stored.clone().any(|(other, _)| other == *name)).count();
    kept + new <= MAX_LIMITS
}

#[cfg(test)]
mod tests {
    use super::super::{SetChange, State};
    use super::*;
    use crate::kind::Kind;
    use crate::limiter::{Arrival, Counts, Gcra, Limiter};
    use crate::testing::{T0, debt, millis};
    use crate::time::Span;

    fn name(length: u64) -> Name {
        Name::of::<Arrival>(Length::of(Span::from_millis(length)))
    }

    /// Encodes a change, and applies it twice from the bytes.
    fn apply(set: &mut LimitSet, change: SetChange<'_>) {
        let mut bytes = Vec::new();
        LimitSet::encode_change(&change, &mut bytes);
        for _ in 0..2 {
            let mut reader = Reader::new(&bytes);
            set.apply(LimitSet::decode_change(&mut reader).unwrap());
            assert!(reader.is_empty());
        }
    }

    fn charge(set: &mut LimitSet, length: u64) {
        let gcra: Gcra = debt(10, 1, millis(length));
        let mut change = Vec::new();
        Arrival::encode_change(&gcra.charge(&gcra.fresh(T0), T0, 1), &mut change);
        apply(set, SetChange::Limit { name: name(length), change: &change });
    }

    fn charged(lengths: impl IntoIterator<Item = u64>) -> LimitSet {
        let mut set = LimitSet::blank();
        lengths.into_iter().for_each(|length| charge(&mut set, length));
        set
    }

    fn encoded(set: &LimitSet) -> Vec<u8> {
        let mut bytes = Vec::new();
        set.encode(&mut bytes);
        bytes
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_order_of_the_charges() {
        let set = charged([3000, 1000, 2000]);
        assert_eq!(encoded(&set), encoded(&charged([1000, 2000, 3000])));
        let again = LimitSet::decode(&mut Reader::new(&encoded(&set))).unwrap();
        assert_eq!(encoded(&again), encoded(&set));
    }

    #[test]
    fn a_limiters_own_command_finds_the_limit_of_its_name_or_the_only_one_of_its_kind() {
        let mut set = charged([1000]);
        let stored = |set: &LimitSet, name| set.find(name).map(|place| place.stored.span().as_millis_up());
        assert_eq!(stored(&set, name(1000)), Some(1000));
        assert_eq!(stored(&set, name(5000)), Some(1000));
        assert_eq!(stored(&set, Name::of::<Counts>(Length::of(Span::from_millis(1000)))), None);
        charge(&mut set, 2000);
        assert_eq!(stored(&set, name(2000)), Some(2000));
        assert_eq!(stored(&set, name(5000)), None);
    }

    #[test]
    fn a_renamed_limit_keeps_its_state_and_replaces_no_other_limit() {
        let mut set = charged([1000]);
        apply(&mut set, SetChange::Renamed { from: name(1000), to: name(5000) });
        assert_eq!(set.limits().map(|limit| limit.name).collect::<Vec<_>>(), [name(5000)]);
        assert_eq!(set.until(), T0.plus(Span::from_millis(1000)));
        charge(&mut set, 2000);
        let before = encoded(&set);
        apply(&mut set, SetChange::Renamed { from: name(5000), to: name(2000) });
        assert_eq!(encoded(&set), before);
    }

    #[test]
    fn only_a_single_limit_can_be_taken_out() {
        let mut set = charged([1000, 2000]);
        assert!(set.take_only().is_none());
        apply(&mut set, SetChange::Dropped { name: name(1000) });
        assert_eq!(set.take_only().map(|limit| limit.name), Some(name(2000)));
        assert!(set.stored().is_empty());
    }

    #[test]
    fn a_charge_drops_limits_that_are_fully_reset_and_that_no_call_would_miss() {
        let other = Name::of::<Counts>(Length::of(Span::from_millis(1000)));
        let shadow = Name { length: name(1000).length.in_shadow(), ..name(1000) };
        let stored = [name(1000), name(2000), shadow, other].map(|name| (name, T0.plus(name.length.span())));
        let dropped_at = |millis, named: &[Name]| {
            faded(&stored.into_iter(), &named.iter().copied(), T0.plus(Span::from_millis(millis)))
        };
        assert_eq!(dropped_at(999, &[]), []);
        // Without it, a call of the one would take the other, which is not fully reset or which the call names.
        assert_eq!(dropped_at(1000, &[]), [shadow, other]);
        assert_eq!(dropped_at(2000, &[name(1000)]), [shadow, other]);
        assert_eq!(dropped_at(2000, &[name(3000), other]), [shadow]);
        assert_eq!(dropped_at(2000, &[other]), [name(1000), name(2000), shadow]);
        assert_eq!(dropped_at(2000, &[]), [name(1000), name(2000), shadow, other]);
        // A shadow is taken for no other limit.
        let in_shadow = Name { length: name(3000).length.in_shadow(), ..name(3000) };
        assert_eq!(dropped_at(2000, &[in_shadow]), [name(1000), name(2000), shadow, other]);
    }

    #[test]
    fn a_key_without_room_for_the_limits_of_a_call_keeps_none_that_is_fully_reset() {
        let stored = (1..=MAX_LIMITS as u64).map(|length| (name(length), T0));
        let dropped = |new: u64| faded(&stored, &(60..=MAX_LIMITS as u64 + new).map(name), T0).len();
        assert_eq!((dropped(0), dropped(1)), (0, 59));
    }

    #[test]
    fn a_key_holds_at_most_64_limits_after_a_charge() {
        let set = charged(1..=70);
        assert_eq!(set.limits().count(), MAX_LIMITS);
        let stored = || set.limits().map(|limit| (limit.name, limit.until()));
        let fits_at = |millis, new: u64| {
            let now = T0.plus(Span::from_millis(millis));
            let named = (1000..1000 + new).map(name);
            fits(&stored(), named.clone(), &named, now)
        };
        assert!(fits_at(0, 0) && !fits_at(0, 1));
        assert!(fits_at(1, 1) && !fits_at(1, 2));
        let named = core::iter::once(name(5));
        assert!(fits(&stored(), named.clone(), &named, T0), "the key already holds the limit");
    }

    #[test]
    fn a_set_within_a_set_and_a_limit_twice_in_a_set_are_malformed() {
        for kind in [Kind::LimitSet, Kind::Amount] {
            let nested = Name { kind, length: Length::NONE };
            for change in
                [SetChange::Dropped { name: nested }, SetChange::Renamed { from: nested, to: nested }]
            {
                let mut bytes = Vec::new();
                LimitSet::encode_change(&change, &mut bytes);
                assert!(LimitSet::decode_change(&mut Reader::new(&bytes)).is_none());
            }
        }
        let one = encoded(&charged([1000]));
        let mut twice = encoded(&LimitSet::blank());
        twice[0] = 2;
        twice.extend_from_slice(&one[8..]);
        twice.extend_from_slice(&one[8..]);
        assert!(LimitSet::decode(&mut Reader::new(&twice)).is_none());
    }
}
