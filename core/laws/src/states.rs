//! A state as nodes have it: only the bytes of a change change it, and a copy is made of its bytes.

use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Limiter, State, Time};

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

/// Applies the bytes of one change; twice is once.
pub fn apply<S: State>(state: &mut S, change: &[u8]) {
    let read = || {
        let mut reader = Reader::new(change);
        S::decode_change(&mut reader).filter(|_| reader.is_empty()).expect("a change that can be read back")
    };
    let (first, mut again) = (read(), Vec::new());
    S::encode_change(&first, &mut again);
    assert_eq!(again, change, "a change is written in one way");
    state.apply(first);
    let once = encoded(state);
    state.apply(read());
    assert_eq!(encoded(state), once, "twice is once");
    copy(state);
}

/// Applies the bytes of one change, and checks nothing.
pub fn obey<S: State>(state: &mut S, change: &[u8]) {
    state.apply(S::decode_change(&mut Reader::new(change)).expect("a change"));
}

/// Charges a state with a change that is encoded and decoded as on a replica, and checks nothing.
pub fn charge<L: Limiter>(limiter: &L, state: &mut L::State, now: Time, cost: u64) {
    let mut change = Vec::new();
    L::State::encode_change(&limiter.charge(state, now, cost), &mut change);
    obey(state, &change);
}

/// The state after a charge.
pub fn charged<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> L::State {
    after(state, &limiter.charge(state, now, cost))
}

/// The state after a refund; `None` if the limiter has no refunds.
pub fn refunded<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Option<L::State> {
    limiter.refund(state, now, cost).map(|change| after(state, &change))
}

/// The state after the clock was set back to `now`.
pub fn rebased<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> L::State {
    after(state, &limiter.rebase(state, now))
}

fn after<S: State>(state: &S, change: &S::Change<'_>) -> S {
    let (mut after, mut bytes) = (copy(state), Vec::new());
    S::encode_change(change, &mut bytes);
    apply(&mut after, &bytes);
    after
}
