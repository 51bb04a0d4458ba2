//! A key as the server keeps it: a limit that only changes by the bytes of a change, here and on every replica.

use ratelimit_core::limiter::Uniform;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{SetChange, StoredLimit, faded};
use ratelimit_core::{
    AnyState, Error, Length, LimitSet, LimitState, Limiter, Limits, Name, Period, Place, Span, State, Time,
    with_kept,
};

pub fn encoded<S: State>(state: &S) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

pub fn encoded_any(state: &AnyState) -> Vec<u8> {
    with_kept!(state, state => encoded(state.as_ref()))
}

/// A state from all of these bytes.
pub fn decoded<S: State>(bytes: &[u8]) -> Option<S> {
    let mut reader = Reader::new(bytes);
    S::decode(&mut reader).filter(|_| reader.is_empty())
}

pub fn copy<S: State>(state: &S) -> S {
    let bytes = encoded(state);
    let copy = decoded(&bytes).expect("a state that can be read back");
    assert_eq!(encoded(&copy), bytes, "the bytes depend on the logical state alone");
    copy
}

/// Applies a change by its bytes; twice is once. Returns whether the bytes are one change, to the last byte.
pub fn apply<S: State>(state: &mut S, change: &[u8]) -> bool {
    let mut reader = Reader::new(change);
    let Some(first) = S::decode_change(&mut reader).filter(|_| reader.is_empty()) else { return false };
    let mut again = Vec::new();
    S::encode_change(&first, &mut again);
    assert_eq!(again, change, "a change is written in one way");
    state.apply(first);
    let once = encoded(state);
    if let Some(second) = S::decode_change(&mut Reader::new(change)) {
        state.apply(second);
    }
    assert_eq!(encoded(state), once, "twice is once");
    copy(state);
    true
}

/// The state after a charge; `None` if the charge cannot be written down.
pub fn charged<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Option<L::State> {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.charge(state, now, cost), &mut change);
    let mut after = copy(state);
    apply(&mut after, &change).then_some(after)
}

/// The state after a refund; `None` if the limiter has no refunds.
pub fn refunded<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Option<L::State> {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.refund(state, now, cost)?, &mut change);
    let mut after = copy(state);
    assert!(apply(&mut after, &change), "a refund can be written down");
    Some(after)
}

/// The state after the clock was set back to `now`.
pub fn rebased<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> L::State {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.rebase(state, now), &mut change);
    let mut moved = copy(state);
    assert!(apply(&mut moved, &change), "a rebase can be written down");
    moved
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
        let bystander = charged(&BYSTANDER, &BYSTANDER.fresh(now), now, 1).expect("a charge");
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
        assert!(apply(&mut self.set, &bytes), "a set's change can be read back");
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
        if !apply(state, &change) {
            return Err(Error::Defect);
        }
        let after = encoded(state);
        // A replica begins with a blank state, and may have loaded a dump since.
        let replica = self.replica.get_or_insert_with(|| any(S::blank()));
        let replica = replica.get_mut::<S>().expect("the same kind");
        assert!(apply(replica, &change));
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
