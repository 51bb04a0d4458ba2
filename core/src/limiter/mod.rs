//! The limiters, one file each, and the trait [`Limiter`].
//!
//! All but two implement it: a [`Sketch`] decides on one of its items, and [`Shed`] returns a chance.

mod batch_bucket;
mod calendar;
mod concurrent;
mod debt;
mod fixed_window;
mod fraction;
mod gcra;
mod leaky_bucket;
mod penalty;
mod shed;
mod sketch;
mod sliding_buckets;
mod sliding_log;
mod sliding_window;
mod smooth;
mod token_bucket;
mod uniform;

pub use batch_bucket::{Batch, BatchBucket};
pub use calendar::{Calendar, Local, Page, Unit, Zone};
pub use concurrent::{Concurrent, rebase, release, renew};
pub use debt::{Debt, Rate};
pub use fixed_window::{AlignedWindow, FixedWindow, Opened, Tally};
pub use gcra::{Arrival, Gcra};
pub use leaky_bucket::{LeakyBucket, Water};
pub use penalty::{Penalty, Strikes};
pub use shed::{Amount, Shed, Tier};
pub use sketch::{Sketch, Sketched};
pub use sliding_buckets::SlidingBuckets;
pub use sliding_log::{Refused, SlidingLog};
pub use sliding_window::{Counts, SlidingWindow};
pub use smooth::{BurstStore, Bursty, Smooth, Store, WarmStore, Warming};
pub use token_bucket::{Level, TokenBucket};
pub use uniform::{Gate, Uniform};

use crate::answer::{Gauge, Manner, Verdict};
use crate::state::{Leases, Length, LimitState, Move, Name, State, Tenant};
use crate::time::{Span, Time};

/// A limiter, a debt or a booking would take over 100 years to be fully reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// An algorithm with its parameters.
///
/// In all methods but `rebase`, `now` is at or after the state's last charge;
/// [`read_clock`](crate::clock::read_clock) makes sure of it. The state may be of any age.
pub trait Limiter {
    type State: LimitState;

    /// What the limiter can do beside admitting and refusing.
    fn capabilities(&self) -> Capabilities;

    /// Whether the caller comes before others that wait for the limit.
    fn is_critical(&self) -> bool {
        false
    }

    /// Whether the caller already has what it requests, so that it is admitted even if others wait.
    fn is_held(&self, _state: &Self::State, _now: Time) -> bool {
        false
    }

    /// The tenant that is to hold what is requested; `None` if the request names none, or if the limit is a rate.
    fn tenant(&self) -> Option<Tenant<'_>> {
        None
    }

    /// The id under which a lease is held; `None` if the limit is a rate.
    fn lease_id(&self) -> Option<&[u8]> {
        None
    }

    /// The table of leases; `None` if the limit is a rate.
    fn leases<'s>(&self, _state: &'s Self::State) -> Option<&'s Leases> {
        None
    }

    /// The fencing token that the caller's lease has; `None` if the caller asks for none.
    fn token(&self, _state: Option<&Self::State>) -> Option<u64> {
        None
    }

    /// The length of time in the limit's name: period, window or interval. Zero for leases, each of which has its own.
    fn length(&self) -> Span;

    /// The name that distinguishes the limit from the others of its key.
    fn name(&self) -> Name {
        Name::of::<Self::State>(Length::of(self.length()))
    }

    /// The state that a missing key stands for: fully reset.
    fn fresh(&self, now: Time) -> Self::State;

    /// The longest wait of an admission. A caller whose clock lags waits for the lag too, so this is checked again after
    /// the lag is added.
    fn longest_wait(&self) -> Span {
        Span::FOREVER
    }

    /// The verdict on a request of this cost.
    fn judge(&self, state: &Self::State, now: Time, cost: u64) -> Verdict;

    /// The verdict on a request that is refused, and counted all the same: its retry includes its own cost.
    fn judge_counted(&self, state: &Self::State, now: Time, cost: u64) -> Verdict {
        self.judge(state, now, cost)
    }

    /// The change that charges this cost, whether the cost fits or not. It also brings the state up to `now`.
    fn charge<'a>(
        &'a self,
        state: &'a Self::State,
        now: Time,
        cost: u64,
    ) -> <Self::State as State>::Change<'a>;

    /// How long this cost would take to be paid off if it were charged, whether it fits or not. [`Span::FOREVER`]
    /// stands for a debt that is too large to store. Zero for limiters whose reset is bounded, such as windows.
    fn reset_after(&self, _state: &Self::State, _now: Time, _cost: u64) -> Span {
        Span::ZERO
    }

    /// The change that gives this cost back, at most until the limit is fully reset. `None` if the limiter has no
    /// refunds.
    fn refund<'a>(
        &'a self,
        _state: &'a Self::State,
        _now: Time,
        _cost: u64,
    ) -> Option<<Self::State as State>::Change<'a>> {
        None
    }

    /// The instant under which a hold remembers a charge that was just made at `now`.
    fn charged_at(&self, _state: &Self::State, now: Time) -> Time {
        now
    }

    /// The change that gives back a part of what was charged at `at`, where it was charged. `None` if that no longer
    /// counts.
    fn give_back<'a>(
        &'a self,
        state: &'a Self::State,
        now: Time,
        _at: Time,
        cost: u64,
    ) -> Option<<Self::State as State>::Change<'a>> {
        self.refund(state, now, cost)
    }

    /// Whether the next change moves older counts to another instant, because parameters changed. `stored` is the length of
    /// time under which the limit is stored.
    fn moves_charges(&self, _state: &Self::State, _stored: Span) -> bool {
        false
    }

    /// Whether a charge at `now` moves older counts to another instant, because the state is full.
    fn overflows(&self, _state: &Self::State, _now: Time) -> bool {
        false
    }

    /// How such a change at `now` moves what was charged, or a clock that was set back to `now`. `None` if `give_back` does
    /// not depend on when a charge was made.
    ///
    /// By default, it moves with the state's last charge.
    fn moved_charges(&self, state: &Self::State, _stored: Span, now: Time) -> Option<Move> {
        Some(Move::Step { from: state.last(), to: now })
    }

    /// Limit, remaining and reset at `now`.
    fn gauge(&self, state: &Self::State, now: Time) -> Gauge;

    /// The largest cost that the limiter, which has this gauge, can ever admit.
    fn most(&self, gauge: Gauge) -> u64 {
        gauge.limit
    }

    /// The change that moves the state to `now` after the clock was set back: `now` is before the last charge.
    fn rebase<'a>(&'a self, state: &'a Self::State, now: Time) -> <Self::State as State>::Change<'a>;

    /// The answer of the state if it were moved to `now`. It copies no collection.
    ///
    /// By default the move is applied to a blank state. This suffices for a change that contains all of the new state.
    fn if_moved<T>(&self, state: &Self::State, now: Time, answer: impl FnOnce(&Self::State, Time) -> T) -> T {
        let mut moved = Self::State::blank();
        moved.apply(self.rebase(state, now));
        answer(&moved, now)
    }
}

/// What a limiter can do beside admitting and refusing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct Capabilities {
    /// Supports `PARTIAL`: grants a part of the cost.
    pub partial: bool,
    /// Supports `FORCE`: charges a cost that does not fit, as debt.
    pub force: bool,
    /// Supports `RESERVE`: books a request ahead.
    pub reserve: bool,
    /// Supports `RL.REFUND`: gives back what was charged.
    pub refund: bool,
    /// Supports `HOLD`: settles later what was charged.
    pub hold: bool,
    /// Admits any cost at once and makes later requests wait for it. So even a plain request can be [`TooLong`].
    pub books: bool,
    /// Charges refused requests as well.
    pub counts_refused: bool,
    /// Bans after repeated strikes. The strike that bans is refused and recorded. A cost of 0 is refused during a ban. In
    /// a call with several limits, it is struck when another limit refuses.
    pub bans: bool,
    /// Supports `BLOCK`: the caller waits until its request is admitted.
    pub block: bool,
    /// There is often room before the retry, because leases are released.
    pub early: bool,
    /// A request normally costs 1: of the default cost of a call with several limits, the limiter takes at most 1.
    pub one_each: bool,
}

impl Capabilities {
    pub const NONE: Capabilities = Capabilities {
        partial: false,
        force: false,
        reserve: false,
        refund: false,
        hold: false,
        books: false,
        counts_refused: false,
        bans: false,
        block: false,
        early: false,
        one_each: false,
    };

    /// The capabilities of most buckets and windows.
    pub const DEBT: Capabilities = Capabilities {
        partial: true,
        force: true,
        refund: true,
        hold: true,
        block: true,
        ..Capabilities::NONE
    };

    /// Whether the limiter supports requests in this manner.
    pub fn allows(self, manner: Manner) -> bool {
        match manner {
            Manner::Strict => true,
            Manner::Partial => self.partial,
            Manner::Force => self.force,
            Manner::Reserve { .. } => self.reserve,
        }
    }

    /// Whether the limiter can be among several whose request is in this manner. With `FORCE`, a penalty is only looked at.
    pub fn allows_jointly(self, manner: Manner) -> bool {
        self.allows(manner) || self.bans
    }

    /// Whether a request in this manner can be [`TooLong`].
    pub fn can_be_too_long(self, manner: Manner) -> bool {
        self.books || matches!(manner, Manner::Force | Manner::Reserve { .. })
    }
}
