//! Helpers for the unit tests of several files.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::limiter::{Debt, Limiter, TooLong};
use crate::state::State;
use crate::state::codec::Reader;
use crate::time::{Period, Span, Time};

/// The start of an hour, in 2023.
pub(crate) const T0: Time = Time::from_micros(1_700_002_800_000_000);

pub(crate) const fn n(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

pub(crate) const fn millis(millis: u64) -> Period {
    Period::of(Span::from_millis(millis)).unwrap()
}

/// A token bucket, leaky bucket or GCRA with this rate.
pub(crate) fn debt<S>(limit: u64, count: u64, period: Period) -> Debt<S> {
    Debt::new(n(limit), n(count), period).unwrap_or_else(|TooLong| panic!("too long"))
}

/// The state after a charge, which is encoded and decoded as on a replica.
pub(crate) fn charged<L: Limiter>(limiter: &L, state: Option<L::State>, now: Time, cost: u64) -> L::State {
    let mut state = state.unwrap_or_else(|| limiter.fresh(now));
    let mut bytes = Vec::new();
    L::State::encode_change(&limiter.charge(&state, now, cost), &mut bytes);
    let mut reader = Reader::new(&bytes);
    state.apply(L::State::decode_change(&mut reader).expect("a change that was just encoded"));
    assert!(reader.is_empty());
    state
}
