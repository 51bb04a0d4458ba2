//! The states that keys store, and the changes that calls make to them.

mod cells;
pub mod codec;
mod holds;
mod leases;
pub(crate) mod log;
mod name;
mod set;
pub(crate) mod sub_buckets;
mod table;
mod timeline;

use alloc::vec::Vec;

pub use cells::{Blueprint, Cells, Change as CellsChange, MAX_CELLS, MAX_DEPTH, Places, Shape};
pub use holds::{Begun, Change as HoldChange, Charge, Holds, MAX_CHARGES, Move, Moved};
pub use leases::{
    Change as LeaseChange, Leases, MAX_TENANT, MAX_TOKEN, MAX_WEIGHT, Moment, Notes, Pool, Share, Tenant,
};
pub use log::{Entry, Log};
pub use name::{Length, Name};
pub use set::{Change as SetChange, LimitSet, MAX_LIMITS, StoredLimit, faded, fits};
pub use sub_buckets::{Buckets, MAX_BUCKETS};
pub use table::{MAX_ID, hash_of_id};

use crate::kind::Kind;
use crate::time::{Span, Time};
use codec::Reader;

/// A state that a key can store.
pub trait State: Clone {
    const KIND: Kind;

    /// A change of the state, which replicas repeat. Applying it twice has the same effect as applying it once. The
    /// change of a small state is the new state; that of a collection contains only the difference.
    type Change<'a>;

    /// The instant of the last charge.
    fn last(&self) -> Time;

    /// The state to which the first change of a missing key is applied.
    fn blank() -> Self;

    fn apply(&mut self, change: Self::Change<'_>);

    fn encode_change(change: &Self::Change<'_>, out: &mut Vec<u8>);

    /// Reads what `encode_change` wrote; `None` if it is malformed. Every change that it returns is safe to apply to
    /// every state.
    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Self::Change<'a>>;

    /// Writes the state. Equal states are written as equal bytes, however they came about.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what `encode` wrote; `None` if it is malformed.
    fn decode(reader: &mut Reader<'_>) -> Option<Self>;

    /// The bytes that the state has allocated.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// The number of allocations that must be freed with the state, roughly.
    fn effort(&self) -> usize {
        1
    }

    /// Calls `figure` with the name and the value of each stored figure, for display.
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));

    /// As `describe`, for figures that depend on the clock.
    fn describe_at(&self, _now: Time, _figure: &mut dyn FnMut(&'static str, Figure)) {}
}

/// The state of one limit, which can share a key with others.
pub trait LimitState: State + 'static {
    /// When the limit is fully reset and remembers nothing, given its length of time. The epoch if it already was at its last
    /// charge.
    fn until(&self, length: Span) -> Time;

    /// How long the limit remembers something after its last charge, even if it is fully reset.
    fn memory(&self) -> Span {
        Span::ZERO
    }
}

impl Name {
    #[inline(always)]
    pub fn of<S: LimitState>(length: Length) -> Name {
        Name { kind: S::KIND, length }
    }
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

/// A state of a few words, which is its own change. The methods are those of [`State`].
pub trait Small: Copy {
    const KIND: Kind;

    fn last(&self) -> Time;
    fn encode(&self, out: &mut Vec<u8>);
    fn decode(reader: &mut Reader<'_>) -> Option<Self>;
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
    /// The blank state: all zeros.
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
