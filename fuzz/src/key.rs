//! A key as the server keeps it: a state that is only changed by a change's bytes, here and on every replica.

use crate::limit::codec::Reader;
use crate::limit::{AnyState, Kept, Limiter, Name, Several, SeveralChange, State};
use crate::time::{Span, Time};

pub fn encoded<S: State>(state: &S) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
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

/// Applies a change by its bytes; twice is once. Tells whether the bytes are a change, to their last one.
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

/// The state after a charge; `None` if the charge is not one that can be written down.
pub fn charged<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Option<L::State> {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.charge(state, now, cost), &mut change);
    let mut after = copy(state);
    apply(&mut after, &change).then_some(after)
}

/// The state after so much was given back; `None` if nothing can be.
pub fn refunded<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Option<L::State> {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.refund(state, now, cost)?, &mut change);
    let mut after = copy(state);
    assert!(apply(&mut after, &change), "what is given back can be written down");
    Some(after)
}

/// A key with one limit; beside it one with the same limit among several, and a replica of the first.
pub struct Key {
    pub state: AnyState,
    replica: AnyState,
    several: Several,
}

/// The name of the limit among several, whatever its parameters.
const SPAN: Span = Span::from_millis(1);

impl Key {
    pub fn of<S: State + Kept>(fresh: S) -> Key {
        let copies = (copy(&fresh), copy(&fresh));
        let several = Several::adopting(Name::of::<S>(SPAN), Time::default(), copies.1.kept());
        Key { state: fresh.kept(), replica: copies.0.kept(), several }
    }

    /// Applies what `write` puts down, which must be a change.
    pub fn change<S: State + Kept>(&mut self, until: Time, write: impl FnOnce(&S, &mut Vec<u8>)) {
        let state = S::of_mut(&mut self.state).expect("the kind was checked");
        let mut change = Vec::new();
        write(state, &mut change);
        assert!(apply(state, &change), "not an internal error");
        // The replica reads from the stream what it had from a dump.
        let replica = S::of_mut(&mut self.replica).expect("the same kind");
        *replica = copy(replica);
        assert!(apply(replica, &change));
        assert_eq!(encoded(replica), encoded(state));
        let (until, mut told) = (SeveralChange::writable(until), Vec::new());
        SeveralChange::begin(Name::of::<S>(SPAN), &mut told);
        told.extend_from_slice(&change);
        SeveralChange::finish(until, &mut told);
        assert!(apply(&mut self.several, &told));
        assert_eq!(self.several.get::<S>(SPAN).map(encoded), Some(encoded(state)));
    }
}
