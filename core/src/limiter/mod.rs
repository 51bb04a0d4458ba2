//! The limiters, one file each, and the questions that all of them answer.

mod batch_bucket;
mod concurrent;
mod debt;
mod fixed_window;
mod fraction;
mod gcra;
mod leaky_bucket;
mod shed;
mod sliding_buckets;
mod sliding_log;
mod sliding_window;
mod smooth;
mod token_bucket;
mod uniform;

pub use batch_bucket::{Batch, BatchBucket};
pub use concurrent::{Concurrent, rebase, release, renew, reset};
pub use debt::{Debt, Rate};
pub use fixed_window::{AlignedWindow, FixedWindow, Opened, Tally};
pub use gcra::{Arrival, Gcra};
pub use leaky_bucket::{LeakyBucket, Water};
pub use shed::{Amount, Shed, Tier};
pub use sliding_buckets::{Buckets, MAX_BUCKETS, SlidingBuckets};
pub use sliding_log::{Refused, SlidingLog};
pub use sliding_window::{Counts, SlidingWindow};
pub use smooth::{BurstStore, Bursty, Smooth, Store, WarmStore, Warming};
pub use token_bucket::{Level, TokenBucket};
pub use uniform::{Gate, Uniform};

use crate::decide::{Gauge, Manner, Verdict};
use crate::state::{LimitState, Name, State};
use crate::time::{Span, Time};

/// The parameters would take over 100 years to refill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// An algorithm with its parameters.
///
/// Instants never go backwards: [`read_clock`](crate::decide::read_clock) makes sure that `now` is at or after the
/// state's last charge. `judge` and `gauge` take a state as it was left, however long ago.
pub trait Limiter {
    type State: LimitState;

    /// What it can do beside admitting and refusing.
    fn capabilities(&self) -> Capabilities;

    /// The length of time in the limit's name: period, window or interval; zero for leases, which have one each.
    fn length(&self) -> Span;

    /// What tells the limit from others of its key.
    fn name(&self) -> Name {
        Name::of::<Self::State>(self.length())
    }

    /// The state of a missing key.
    fn fresh(&self, now: Time) -> Self::State;

    /// Would a request of this cost be admitted?
    fn judge(&self, state: &Self::State, now: Time, cost: u64) -> Verdict;

    /// The change that admitting this request makes; the state is brought up to `now` on the way.
    fn charge<'a>(
        &'a self,
        state: &'a Self::State,
        now: Time,
        cost: u64,
    ) -> <Self::State as State>::Change<'a>;

    /// The reset after a charge of this cost, whether the cost fits or not. Zero for limiters whose reset has a bound
    /// of its own, such as a window's length.
    fn reset_after(&self, _state: &Self::State, _now: Time, _cost: u64) -> Span {
        Span::ZERO
    }

    /// The change that giving back this cost makes, never above full; `None` if the limiter has no refunds.
    fn refund<'a>(
        &'a self,
        _state: &'a Self::State,
        _now: Time,
        _cost: u64,
    ) -> Option<<Self::State as State>::Change<'a>> {
        None
    }

    /// Limit, remaining and reset at `now`.
    fn gauge(&self, state: &Self::State, now: Time) -> Gauge;

    /// The change that moves the state to `now` after the clock was set back.
    fn rebase<'a>(&'a self, state: &'a Self::State, now: Time) -> <Self::State as State>::Change<'a>;
}

/// What a limiter can do beside admitting and refusing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct Capabilities {
    /// `PARTIAL`: grants a part of the cost.
    pub partial: bool,
    /// `FORCE`: charges a cost that does not fit, into debt.
    pub force: bool,
    /// `RESERVE`: books ahead.
    pub reserve: bool,
    /// `RL.REFUND`: takes back what was charged.
    pub refund: bool,
    /// Admits any cost and charges the next caller, so that even a plain request can be too large to book.
    pub books: bool,
    /// Charges refused requests as well.
    pub counts_refused: bool,
    /// A request takes one, whatever the default cost of several limits is.
    pub one_each: bool,
}

impl Capabilities {
    pub const NONE: Capabilities = Capabilities {
        partial: false,
        force: false,
        reserve: false,
        refund: false,
        books: false,
        counts_refused: false,
        one_each: false,
    };

    /// Of most buckets and windows.
    pub const DEBT: Capabilities =
        Capabilities { partial: true, force: true, refund: true, ..Capabilities::NONE };

    pub fn allows(self, manner: Manner) -> bool {
        match manner {
            Manner::Strict => true,
            Manner::Partial => self.partial,
            Manner::Force => self.force,
            Manner::Reserve { .. } => self.reserve,
        }
    }

    /// Whether a request in this manner can be an error because its debt or booking would take too long.
    pub fn can_be_too_long(self, manner: Manner) -> bool {
        self.books || matches!(manner, Manner::Force | Manner::Reserve { .. })
    }
}
