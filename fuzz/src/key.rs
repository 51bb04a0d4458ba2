//! A key as the server keeps it: a limit that only changes by the bytes of a change, here and on every replica.

use ratelimit_core::limiter::Uniform;
use ratelimit_core::state::{SetChange, StoredLimit, faded};
use ratelimit_core::{
    AnyState, Error, Length, LimitSet, LimitState, Limiter, Limits, Name, Period, Place, Span, State, Time,
    with_kept,
};
use ratelimit_laws::{apply, charged, copy, encoded};

pub fn encoded_any(state: &AnyState) -> Vec<u8> {
    with_kept!(state, state => encoded(state.as_ref()))
}

pub fn any<S: LimitState>(state: S) -> AnyState {
    AnyState::of(state).expect("the state of a limit")
}

/// A key with one limit; beside it a replica, and a key that holds the same limit in a set.
pub struct Key {
    limit: Option<StoredLimit>,
    replica: Option<AnyState>,
    /// With the same limit, and one that no call names.
    set: LimitSet,
}

/// A limit of an hour and a microsecond, which no caller can name.
const BYSTANDER: Uniform = Uniform { interval: Period::of(Span::from_micros(3_600_000_001)).unwrap() };

impl Key {
    /// A missing key, and a set whose other limit is charged at `now`.
    pub fn missing(now: Time) -> Key {
        let bystander = charged(&BYSTANDER, &BYSTANDER.fresh(now), now, 1);
        Key { limit: None, replica: None, set: LimitSet::of_one(BYSTANDER.name(), any(bystander)) }
    }

    /// Where the limit is that a limiter's own command is about; `None` if the key holds another kind.
    pub fn find<S: LimitState>(&self, length: Length) -> Option<Place> {
        match &self.limit {
            None => Some(Place::of(length)),
            Some(limit) if limit.name.kind == S::KIND => Some(Place { stored: limit.name.length, length }),
            Some(_) => None,
        }
    }

    pub fn any(&self) -> Option<&AnyState> {
        self.limit.as_ref().map(|limit| &limit.state)
    }

    fn apply_to_set(&mut self, change: SetChange<'_>) {
        let mut bytes = Vec::new();
        LimitSet::encode_change(&change, &mut bytes);
        apply(&mut self.set, &bytes);
    }
}

impl Limits for Key {
    fn room(&self) -> usize {
        usize::from(self.limit.is_none())
    }

    fn state<S: LimitState>(&self, length: Length) -> Option<&S> {
        let limit = self.limit.as_ref().filter(|limit| limit.name == Name::of::<S>(length))?;
        limit.state.get()
    }

    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, Error> {
        let (mut change, blank) = (Vec::new(), blank());
        write(self.state(place.stored).unwrap_or(&blank), &mut change);
        if change.is_empty() {
            return Ok(false);
        }
        let [from, to] = [place.stored, place.length].map(Name::of::<S>);
        let limit = self.limit.get_or_insert_with(|| StoredLimit { name: to, state: any(blank) });
        limit.name = to;
        let state = limit.state.get_mut::<S>().expect("the kind that was found");
        apply(state, &change);
        let after = encoded(state);
        // A replica begins with a blank state, and may have loaded a dump since.
        let replica = self.replica.get_or_insert_with(|| any(S::blank()));
        let replica = replica.get_mut::<S>().expect("the same kind");
        apply(replica, &change);
        assert_eq!(encoded(replica), after, "a replica has the same state");
        *replica = copy(replica);
        if from != to {
            self.apply_to_set(SetChange::Renamed { from, to });
        }
        self.apply_to_set(SetChange::Limit { name: to, change: &change });
        assert_eq!(self.set.get::<S>(to.length).map(encoded), Some(after), "so has a limit of a set");
        let others = self.set.limits().filter(|limit| limit.name != to);
        assert!(
            others.map(|limit| limit.name).all(|name| name == BYSTANDER.name()),
            "a renamed limit has one name"
        );
        place.stored = to.length;
        Ok(true)
    }

    /// Of the set. A key with one limit, which the call names, has none to drop.
    fn drop_faded(&mut self, now: Time, named: impl Iterator<Item = Name> + Clone) -> Result<(), Error> {
        let dropped = faded(&self.set.limits().map(|limit| (limit.name, limit.until())), &named, now);
        for name in dropped {
            self.apply_to_set(SetChange::Dropped { name });
        }
        // The other limit stays if it is of the limiter that the call names.
        let is_missed = |name: Name| named.clone().any(|other| other.kind == name.kind);
        assert!(self.set.limits().all(|limit| limit.until() > now || is_missed(limit.name)));
        Ok(())
    }

    /// No call of this key has holds.
    fn drop_holds(&mut self, _: Time) -> Result<(), Error> {
        Ok(())
    }
}
