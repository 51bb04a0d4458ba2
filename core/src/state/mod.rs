//! What keys store.

pub mod codec;
mod lease_change;
mod leases;
mod limit_set;
pub(crate) mod log;
pub(crate) mod log_change;
mod set_change;

use alloc::vec::Vec;

pub use lease_change::{Change as LeaseChange, MAX_ID};
pub use leases::Leases;
pub use limit_set::{LimitSet, MAX_LIMITS, Name, StoredLimit, fits};
pub use log::{Entry, Log};
pub use set_change::Change as SetChange;

use crate::kind::{Kept, Kind};
pub use crate::limiter::{
    Amount, Arrival, Batch, Buckets, BurstStore, Counts, Gate, Level, Opened, Tally, WarmStore, Water,
};
use crate::time::{Span, Time};
use codec::Reader;

/// What a key can store.
pub trait State: Sized {
    const KIND: Kind;

    /// What a charge does to the state, in a form that replicas can repeat. For a small state it is the new state; for
    /// a collection only what changed, in absolute terms, so that applying it twice is applying it once.
    type Change<'a>;

    /// The instant of the last charge.
    fn last(&self) -> Time;

    /// The state that the first change of a missing key is applied to.
    fn blank() -> Self;

    fn apply(&mut self, change: Self::Change<'_>);

    fn encode_change(change: &Self::Change<'_>, out: &mut Vec<u8>);

    /// Reads what `encode_change` wrote; `None` if it is malformed. No change that it returns can harm a state.
    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Self::Change<'a>>;

    /// Writes the state; the bytes depend on the logical state alone.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what `encode` wrote; `None` if it is malformed.
    fn decode(reader: &mut Reader<'_>) -> Option<Self>;

    /// The bytes that the state has allocated.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// The number of allocations to free.
    fn effort(&self) -> usize {
        1
    }

    /// Names the stored figures, for people.
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
}

/// The state of one limit, which can share a key with others.
pub trait LimitState: State + Kept {
    /// When a limit of this length of time is fully reset, as of its last charge; the epoch if it already was then.
    fn until(&self, length: Span) -> Time;
}

/// A stored figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Figure {
    Count(u64),
    Signed(i64),
    Length(Span),
    At(Time),
    Real(f64),
}

/// A state of a few words, which is its own change.
pub trait Small: Copy {
    const KIND: Kind;

    fn last(&self) -> Time;
    fn encode(&self, out: &mut Vec<u8>);
    fn decode(reader: &mut Reader<'_>) -> Option<Self>;
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
    /// All zeros; the first change replaces it.
    fn zero() -> Self;
}

impl<S: Small> State for S {
    const KIND: Kind = S::KIND;
    type Change<'a> = S;

    fn last(&self) -> Time {
        Small::last(self)
    }

    fn blank() -> S {
        S::zero()
    }

    fn apply(&mut self, change: S) {
        *self = change;
    }

    #[inline(always)]
    fn encode_change(change: &S, out: &mut Vec<u8>) {
        Small::encode(change, out);
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<S> {
        Small::decode(reader)
    }

    #[inline(always)]
    fn encode(&self, out: &mut Vec<u8>) {
        Small::encode(self, out);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<S> {
        Small::decode(reader)
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        Small::describe(self, figure);
    }
}
