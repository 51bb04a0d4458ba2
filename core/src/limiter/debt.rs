//! A debt that is paid off at a rate: the token bucket, the leaky bucket and GCRA have this in common.
//!
//! A full token bucket, an empty leaky bucket and an arrival time in the past all mean the same: no debt. Each
//! admitted request adds its cost to the debt, and `count` of it are paid off per `period`. A request fits if the debt
//! with its cost is at most `limit`.
//!
//! The three limiters store different things: tokens, a level or an arrival time. A change of parameters keeps what is
//! stored. [`Debtor`] is this difference.
//!
//! To be exact, debt is counted in units. A cost of 1 is `period` units (`period` in microseconds), and `count` units
//! are paid off per microsecond. So both numbers are integers.
//!
//! ```text
//! RL.GCRA key 2 1 1s      limit 3, one per second: a request is 1,000,000 units, one is paid off per microsecond
//!
//! t = 0     debt 0          + 1,000,000 fits into 3,000,000
//! t = 0.5 s debt   500,000  2 requests fit, 3 after 500,000 us
//! ```

use core::marker::PhantomData;
use core::num::NonZeroU64;

use super::fraction::{divide, divide_up};
use super::{Capabilities, Limiter, TooLong};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_DEBT;
use crate::state::{LimitState, Move, Small, State};
use crate::time::{Period, Span, Time};

/// The largest debt, and how fast it is paid off.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// The largest debt, as a cost: the most that is admitted at once.
    pub limit: NonZeroU64,
    /// The cost that is paid off per period.
    pub count: NonZeroU64,
    pub period: Period,
}

/// A limiter whose debt is paid off at a rate; `S` is its state.
#[derive(Debug)]
pub struct Debt<S> {
    rate: Rate,
    state: PhantomData<S>,
}

/// A state that represents a debt.
pub trait Debtor: Small + LimitState + for<'a> State<Change<'a> = Self> {
    const CAPABILITIES: Capabilities;

    /// The debt at `now`, in units.
    fn debt(&self, rate: &Rate, now: Time) -> u128;

    /// The state that represents a debt of `debt` units at `now`.
    fn owing(debt: u128, rate: &Rate, now: Time) -> Self;

    /// The state with the same debt at `now`, after the clock was set back.
    fn moved(&self, now: Time) -> Self;

    /// How long a request waits that is admitted on top of this debt.
    fn wait(_debt: u128, _rate: &Rate) -> Span {
        Span::ZERO
    }
}

impl Rate {
    /// The debt that a request of this cost adds, in units.
    pub fn price(&self, cost: u64) -> u128 {
        u128::from(cost) * u128::from(self.period.micros().get())
    }

    /// How long a debt takes to be paid off, rounded up.
    pub fn time_for(&self, debt: u128) -> Span {
        Span::from_wide(divide_up(debt, self.count))
    }

    /// The debt that is paid off in a time, in units.
    pub fn paid_in(&self, time: Span) -> u128 {
        u128::from(time.as_micros()) * u128::from(self.count.get())
    }

    /// When a debt at `now` is paid off, at the latest [`Time::HORIZON`]; the epoch if there is no debt.
    pub fn paid_off(&self, debt: u128, now: Time) -> Time {
        if debt == 0 { Time::EPOCH } else { now.plus(self.time_for(debt)).min(Time::HORIZON) }
    }

    /// The largest debt, in units.
    fn most(&self) -> u128 {
        self.price(self.limit.get())
    }
}

impl<S> Clone for Debt<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Debt<S> {}

impl<S> Debt<S> {
    /// # Errors
    ///
    /// If the largest debt takes over 100 years to be paid off.
    pub fn new(limit: NonZeroU64, count: NonZeroU64, period: Period) -> Result<Debt<S>, TooLong> {
        let rate = Rate { limit, count, period };
        // There is no division here, so nothing is rounded.
        if rate.most() > rate.paid_in(Span::CENTURY) {
            return Err(TooLong);
        }
        Ok(Debt { rate, state: PhantomData })
    }

    pub fn rate(&self) -> &Rate {
        &self.rate
    }
}

impl<S: Debtor> Limiter for Debt<S> {
    type State = S;

    fn capabilities(&self) -> Capabilities {
        S::CAPABILITIES
    }

    fn length(&self) -> Span {
        self.rate.period.span()
    }

    fn fresh(&self, now: Time) -> S {
        S::owing(0, &self.rate, now)
    }

    #[inline(always)]
    fn judge(&self, state: &S, now: Time, cost: u64) -> Verdict {
        let before = state.debt(&self.rate, now);
        let (after, most) = (before + self.rate.price(cost), self.rate.most());
        if after <= most {
            Verdict::Admit { wait: S::wait(before, &self.rate) }
        } else if cost > self.rate.limit.get() {
            Verdict::NEVER
        } else {
            Verdict::refuse(self.rate.time_for(after - most))
        }
    }

    #[inline(always)]
    fn charge(&self, state: &S, now: Time, cost: u64) -> S {
        S::owing(state.debt(&self.rate, now) + self.rate.price(cost), &self.rate, now)
    }

    fn reset_after(&self, state: &S, now: Time, cost: u64) -> Span {
        let debt = state.debt(&self.rate, now) + self.rate.price(cost);
        if debt > self.rate.price(MAX_DEBT) { Span::FOREVER } else { self.rate.time_for(debt) }
    }

    fn refund<'a>(&'a self, state: &'a S, now: Time, cost: u64) -> Option<S> {
        let debt = state.debt(&self.rate, now).saturating_sub(self.rate.price(cost));
        Some(S::owing(debt, &self.rate, now))
    }

    fn moved_charges(&self, _: &S, _: Span, _: Time) -> Option<Move> {
        None
    }

    #[inline(always)]
    fn gauge(&self, state: &S, now: Time) -> Gauge {
        let debt = state.debt(&self.rate, now);
        let (room, _) = divide(self.rate.most().saturating_sub(debt), self.rate.period.micros());
        Gauge {
            limit: self.rate.limit.get(),
            remaining: u64::try_from(room).unwrap_or(self.rate.limit.get()),
            reset: self.rate.time_for(debt),
        }
    }

    fn rebase<'a>(&'a self, state: &'a S, now: Time) -> S {
        state.moved(now)
    }
}
