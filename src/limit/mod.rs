//! The thinking: what limiters there are, and the few questions that all of them answer.
//!
//! Everything here is arithmetic. There is no server, no clock and no chance: `now` is an argument. A limiter is
//! its parameters; they come with each call. What a key stores is the limiter's state, and a state is only ever
//! changed by applying a *change*, which is bytes: the same bytes on the node that decided, on its replicas, and
//! when an append-only file is read.
//!
//! ```text
//! words --parse--> limiter          state --judge--> verdict
//!                                     |
//!                                     +--charge--> change --apply--> state --gauge--> gauge
//! ```

mod batch_bucket;
mod catalog;
pub mod codec;
pub mod concurrent;
mod decide;
#[cfg(test)]
mod differential;
mod error;
mod five;
mod fixed_window;
mod fraction;
mod gcra;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod laws;
mod leaky_bucket;
mod lease_change;
mod leases;
mod log;
mod log_change;
#[cfg(test)]
mod models;
mod multi;
mod several;
mod several_change;
mod shed;
#[cfg(test)]
mod simulation;
mod sliding_buckets;
mod sliding_log;
mod sliding_window;
mod smooth;
mod token_bucket;
mod uniform;
mod words;

pub use batch_bucket::{Batch, BatchBucket};
pub use catalog::{AnyLimiter, AnyState, CATALOG, Kept, Kind, Row, find};
pub(crate) use catalog::{with_kept, with_limiter, with_state};
use codec::{Reader, put};
pub use concurrent::Concurrent;
pub use decide::{Answer, Gauge, Reading, Verdict, check, look, may_err, read_clock, rule};
pub use error::Error;
pub use five::integer;
pub use fixed_window::{AlignedWindow, FixedWindow, Opened, Tally};
pub use gcra::{Arrival, Gcra, parse_cell};
pub use leaky_bucket::{LeakyBucket, Water};
pub use leases::Leases;
pub use log::Log;
pub use multi::{MOST_PAIRS, Part, Purpose, parse as parse_multi};
pub use several::{MOST_LIMITS, Name, Several, Stored};
pub use several_change::Change as SeveralChange;
pub use shed::{Amount, parse as parse_shed};
pub use sliding_buckets::{Buckets, SlidingBuckets};
pub use sliding_log::SlidingLog;
pub use sliding_window::{Counts, SlidingWindow};
pub use smooth::{BurstStore, Bursty, WarmStore, Warming};
pub use token_bucket::{Level, TokenBucket};
pub use uniform::{Gate, Uniform};
pub use words::{Bounds, Manner, Request, Words};

use crate::time::{Span, Time};

/// An algorithm with its parameters.
///
/// Instants never go backwards: [`reading`] sees to it that `now` is at or after the state's last charge. `judge`
/// and `gauge` take a state as it was left, however long ago.
pub trait Limiter {
    type State: State + Kept;
    /// Whether it books ahead whatever is asked for, so that a request may be too much to book.
    const BOOKS: bool = false;

    /// Its period, window, interval or ttl: what tells it from another limit of this limiter on the same key.
    fn span(&self) -> Span;

    /// The state of a key that nobody has asked about.
    fn fresh(&self, now: Time) -> Self::State;

    /// Would a request of this cost be admitted?
    fn judge(&self, state: &Self::State, now: Time, cost: u64) -> Verdict;

    /// What admitting that request changes; time passes up to `now` on the way.
    fn charge<'a>(
        &'a self,
        state: &'a Self::State,
        now: Time,
        cost: u64,
    ) -> <Self::State as State>::Change<'a>;

    /// How long the state would take to be as good as new after a charge of this cost, whether it fits or not. For
    /// limiters that can be in debt; a window forgets in its own time.
    fn reset_after(&self, _state: &Self::State, _now: Time, _cost: u64) -> Span {
        Span::ZERO
    }

    /// What giving back so much that was charged and not used changes, never above full; `None` if nothing can be
    /// given back to this limiter.
    fn refund<'a>(
        &'a self,
        _state: &'a Self::State,
        _now: Time,
        _cost: u64,
    ) -> Option<<Self::State as State>::Change<'a>> {
        None
    }

    /// Whether a refused request is charged as well, so that whoever keeps asking stays out. It can then neither be
    /// forced nor given back.
    fn counts_refused(&self) -> bool {
        false
    }

    /// How the state looks at `now`.
    fn gauge(&self, state: &Self::State, now: Time) -> Gauge;

    /// What moves the state back to `now`, when the clock was set back.
    fn rebase<'a>(&'a self, state: &'a Self::State, now: Time) -> <Self::State as State>::Change<'a>;
}

/// What a key stores for a limiter.
pub trait State: Sized {
    const KIND: Kind;

    /// What a charge does to the state, in a form that replicas can repeat. For a small state it is the new state;
    /// for a collection only what changed, in absolute terms: applied twice it does no more than once.
    type Change<'a>;

    /// The instant of the last charge.
    fn last(&self) -> Time;

    /// The window that it belongs to, if it knows it.
    fn span(&self) -> Option<Span> {
        None
    }

    /// When it is as good as new, if it tells that without a limiter's parameters.
    fn settles(&self) -> Option<Time> {
        None
    }

    /// What a change to a missing key is applied to.
    fn blank() -> Self;

    fn apply(&mut self, change: Self::Change<'_>);

    fn encode_change(change: &Self::Change<'_>, out: &mut Vec<u8>);

    /// Reads what `encode_change` wrote. `None` if it is malformed: nothing that it returns can harm a state.
    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Self::Change<'a>>;

    /// Writes the state; the bytes depend on the logical state alone.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what `encode` wrote, or is `None`.
    fn decode(reader: &mut Reader<'_>) -> Option<Self>;

    /// Bytes that the state holds outside itself.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// How many pieces must be freed with it.
    fn effort(&self) -> usize {
        1
    }

    /// Names the stored figures, for people.
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
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
    /// How many of the words count.
    const WORDS: usize;

    fn last(&self) -> Time;
    fn span(&self) -> Option<Span> {
        None
    }
    fn settles(&self) -> Option<Time> {
        None
    }
    fn words(&self) -> [u64; 4];
    fn from_reader(reader: &mut Reader<'_>) -> Option<Self>;
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
    /// All zeros; only there to be replaced by the first change.
    fn zero() -> Self;
}

impl<S: Small> State for S {
    const KIND: Kind = S::KIND;
    type Change<'a> = S;

    fn last(&self) -> Time {
        Small::last(self)
    }

    fn span(&self) -> Option<Span> {
        Small::span(self)
    }

    fn settles(&self) -> Option<Time> {
        Small::settles(self)
    }

    fn blank() -> S {
        S::zero()
    }

    fn apply(&mut self, change: S) {
        *self = change;
    }

    fn encode_change(change: &S, out: &mut Vec<u8>) {
        change.encode(out);
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<S> {
        S::from_reader(reader)
    }

    #[inline(always)]
    fn encode(&self, out: &mut Vec<u8>) {
        for word in self.words().iter().take(S::WORDS) {
            put(out, *word);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<S> {
        S::from_reader(reader)
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        Small::describe(self, figure);
    }
}

/// The most that a window's stored count may say: a limit's worth that was admitted, and one that was moved or forced.
const MOST_COUNT: u64 = 2 * words::MAX_COUNT;

/// More than any count that a state holds, also one in debt; what could come near it is an error.
const MOST_DEBT: u64 = 1 << 60;

/// Later than any instant a state can hold: the year 9999 and the longest that a limiter may take from there.
const HORIZON: Time = Time::LATEST.plus(Span::CENTURY).plus(Span::CENTURY).plus(Span::CENTURY);

fn instant(reader: &mut Reader<'_>) -> Option<Time> {
    reader.word_up_to(Time::LATEST.as_micros()).map(Time::from_micros)
}

fn duration(reader: &mut Reader<'_>) -> Option<Span> {
    reader.word_up_to(Span::CENTURY.as_micros()).filter(|micros| *micros > 0).map(Span::from_micros)
}
