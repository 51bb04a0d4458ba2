//! A request to one limit of a key, in steps.
//!
//! ```text
//! plan       reads the clock, decides               changes nothing
//! catch up   moves the state to now if the clock was set back
//! charge     charges the granted cost
//! gauge      computes limit, remaining and reset    changes nothing
//! ```
//!
//! A limiter's own command runs the steps one after the other in [`Ask::take`], which gauges a refusal when it judges. `RL.MULTI`
//! plans all its limits before it charges one.

mod held;

use alloc::vec::Vec;
use core::iter::once;

use crate::answer::{Answer, Gauge, Manner, Verdict};
use crate::clock::Reading;
use crate::decide::{self, judge, rule};
use crate::hold;
use crate::limiter::{Limiter, TooLong};
use crate::limits::{Error, Limits, Place, move_to_now};
use crate::line::Claim;
use crate::state::{Leases, Name, Pool, State, Tenant, hash_of_id};
use crate::time::{Span, Time};

/// A request to one limit.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub place: Place,
    /// The caller's time.
    at: Time,
    /// The instant at which the request is decided: `at`, or the last charge if `at` is before it.
    now: Time,
    pub cost: u64,
    pub manner: Manner,
    /// Whether the clock was set back, and the state has not moved yet.
    moves: bool,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The verdict as the caller's clock sees it.
    pub verdict: Verdict,
    /// The part of the cost that is charged if the request is admitted.
    pub granted: u64,
    /// At the instant of the decision; the reset does not include the lag.
    pub gauge: Gauge,
    lag: Span,
}

/// A decision before it is carried out.
struct Decided {
    verdict: Verdict,
    granted: u64,
    /// The gauge of a refusal, if it is known.
    gauge: Option<Gauge>,
}

impl Taken {
    /// The answer as the caller's clock sees it.
    pub fn answer(&self) -> Answer {
        Answer { verdict: self.verdict, gauge: self.gauge.delayed(self.lag) }
    }
}

impl Ask {
    pub fn new(place: Place, at: Time, cost: u64, manner: Manner) -> Ask {
        Ask { place, at, now: at, cost, manner, moves: false }
    }

    /// The instant at which the request is decided. Before the clock is read, the caller's time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The caller's time.
    pub fn at(&self) -> Time {
        self.at
    }

    /// How far the caller's time is behind the instant of the decision.
    pub fn lag(&self) -> Span {
        self.now.since(self.at)
    }

    /// Runs all steps, for a request to one limit only.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] is found before anything is changed.
    #[inline(always)]
    pub fn take<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<Taken, Error> {
        let decided = match limits.state::<L::State>(self.place.stored) {
            None => Some(self.decide(limiter, &limiter.fresh(self.at))?),
            Some(state) => match decide::reading(limiter, state, self.at) {
                Reading::At(now) => {
                    self.now = now;
                    Some(self.decide(limiter, state)?)
                }
                Reading::SetBack => None,
            },
        };
        let Decided { mut verdict, granted, gauge } = if let Some(decided) = decided {
            decided
        } else {
            let decided;
            (*self, decided) = self.move_and_decide(limits, limiter)?;
            decided
        };
        let capabilities = limiter.capabilities();
        // The strike that bans is recorded, and none during a ban.
        let strikes = capabilities.bans && gauge.unwrap_or_else(|| self.gauge(limits, limiter)).remaining > 0;
        // A request that can never be admitted is not counted.
        let counts_refused = capabilities.counts_refused && verdict != Verdict::NEVER || strikes;
        if verdict.admits() || counts_refused {
            limits.drop_faded(self.at, once(Name::of::<L::State>(self.place.stored)))?;
            hold::pass(limits, self.now)?;
            self.charge(limits, limiter, granted)?;
        } else if let Some(gauge) = gauge {
            return Ok(Taken { verdict, granted, gauge, lag: self.lag() });
        }
        if counts_refused && !verdict.admits() {
            // The request was refused and counted, so its retry must include its own cost, or the ban that it brings.
            verdict = self.verdict(limits, limiter, granted);
        }
        Ok(Taken { verdict, granted, gauge: self.gauge(limits, limiter), lag: self.lag() })
    }

    /// Decides after the clock was set back.
    #[cold]
    fn move_and_decide<L: Limiter>(
        mut self,
        limits: &mut impl Limits,
        limiter: &L,
    ) -> Result<(Ask, Decided), Error> {
        let (verdict, granted) = self.judge(limits, limiter)?;
        Ok((self, Decided { verdict, granted, gauge: None }))
    }

    /// Decides on a state that need not be moved.
    #[inline(always)]
    fn decide<L: Limiter>(&self, limiter: &L, state: &L::State) -> Result<Decided, Error> {
        let (verdict, granted) = self.judge_state(limiter, state)?;
        // A charge changes the gauge, so only that of a refusal is kept.
        let gauge = (!verdict.admits()).then(|| limiter.gauge(state, self.now));
        Ok(Decided { verdict, granted, gauge })
    }

    /// Returns the error that `judge` would return, and changes nothing.
    pub fn check<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Result<(), TooLong> {
        if !limiter.capabilities().can_be_too_long(self.manner) {
            return Ok(());
        }
        self.foresee(limits, limiter).map(drop)
    }

    /// Returns what `judge` would return, and changes nothing.
    pub fn foresee<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Result<(Verdict, u64), TooLong> {
        self.with_state(limits, limiter, |state| {
            decide::foresee(limiter, state, self.at, self.cost, self.manner)
        })
    }

    /// Reads the clock and judges. Returns the verdict as the caller's clock sees it, and the cost to charge if it admits. If the clock
    /// was set back, it judges as if the state had moved; [`Ask::catch_up`] moves it.
    #[inline(always)]
    pub fn plan<L: Limiter>(&mut self, limits: &impl Limits, limiter: &L) -> Result<(Verdict, u64), TooLong> {
        let Some(state) = limits.state::<L::State>(self.place.stored) else {
            return self.judge_state(limiter, &limiter.fresh(self.at));
        };
        match decide::reading(limiter, state, self.at) {
            Reading::At(now) => {
                self.now = now;
                self.judge_state(limiter, state)
            }
            Reading::SetBack => {
                self.moves = true;
                let at = |then| Ask { at: then, now: then, ..*self };
                limiter.if_moved(state, self.at, |state, then| at(then).judge_state(limiter, state))
            }
        }
    }

    /// Moves the state to the caller's time, if [`Ask::plan`] found that the clock was set back.
    #[inline(always)]
    pub fn catch_up<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<(), Error> {
        if self.moves { self.read_clock(limits, limiter) } else { Ok(()) }
    }

    /// Plans, and catches up.
    #[inline(always)]
    pub fn judge<L: Limiter>(
        &mut self,
        limits: &mut impl Limits,
        limiter: &L,
    ) -> Result<(Verdict, u64), Error> {
        let judged = self.plan(limits, limiter)?;
        self.catch_up(limits, limiter)?;
        Ok(judged)
    }

    #[inline(always)]
    fn judge_state<L: Limiter>(&self, limiter: &L, state: &L::State) -> Result<(Verdict, u64), TooLong> {
        let Ask { now, cost, manner, .. } = *self;
        match manner {
            Manner::Strict if !limiter.capabilities().books => {
                Ok((judge(limiter, state, now, self.lag(), cost), cost))
            }
            _ => rule(limiter, state, now, self.lag(), cost, manner),
        }
    }

    /// The verdict on a cost at the instant of the decision. It changes nothing.
    #[inline(always)]
    pub fn verdict<L: Limiter>(&self, limits: &impl Limits, limiter: &L, cost: u64) -> Verdict {
        self.with_state(limits, limiter, |state| judge(limiter, state, self.now, self.lag(), cost))
    }

    /// Charges the granted cost. The clock must have been read.
    #[inline(always)]
    pub fn charge<L: Limiter>(
        &mut self,
        limits: &mut impl Limits,
        limiter: &L,
        granted: u64,
    ) -> Result<(), Error> {
        let now = self.now;
        self.move_charges(limits, limiter, |state| limiter.overflows(state, now))?;
        let write = |state: &L::State, out: &mut Vec<u8>| {
            L::State::encode_change(&limiter.charge(state, now, granted), out);
        };
        limits.change(&mut self.place, || limiter.fresh(now), write).map(drop)
    }

    /// Gives the cost back. Returns whether the key has the limit.
    pub fn refund<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<bool, Error> {
        if limits.state::<L::State>(self.place.stored).is_none() {
            return Ok(false);
        }
        self.read_clock(limits, limiter)?;
        self.move_charges(limits, limiter, |_| false)?;
        let Ask { now, cost, .. } = *self;
        let write = |state: &L::State, out: &mut Vec<u8>| {
            if let Some(change) = limiter.refund(state, now, cost) {
                L::State::encode_change(&change, out);
            }
        };
        limits.change(&mut self.place, L::State::blank, write)
    }

    /// The answer to a refund, which is that of the caller's next look.
    ///
    /// It is not the gauge of the decision, delayed by the lag. The refund may have made the reset shorter than the lag.
    /// The next look then finds that the clock was set back, and does not add the lag.
    pub fn refunded<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Answer {
        Ask::new(self.place, self.at, 0, Manner::Strict).peek(limits, limiter)
    }

    /// The gauge at the instant of the decision.
    #[inline(always)]
    pub fn gauge<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Gauge {
        match limits.state(self.place.stored) {
            Some(state) => limiter.gauge(state, self.now),
            None => limiter.gauge(&limiter.fresh(self.now), self.now),
        }
    }

    /// Whether the caller already has what it requests.
    pub fn is_held<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> bool {
        let state = limits.state(self.place.stored);
        state.is_some_and(|state| limiter.is_held(state, self.at.max(state.last())))
    }

    /// Calls `look` with what the request asks of the limit's line, of which it can be critical although the limiter is not. Of
    /// leases also with the table, and the instant of the decision.
    pub fn claim<'t, L: Limiter, T>(
        &self,
        limits: &impl Limits,
        limiter: &L,
        tenant: Option<Tenant<'t>>,
        critical: bool,
        look: impl FnOnce(Claim<&'t [u8]>, Option<(&Leases, Time)>) -> T,
    ) -> T {
        self.with_state(limits, limiter, |state| {
            decide::when_decided(limiter, state, self.at, |state, now, _| {
                let leases = limiter.leases(state);
                let (name, weight) = tenant.map_or((&[][..], None), |tenant| (tenant.name, tenant.weight));
                let most = limiter.gauge(state, now).limit;
                let id = limiter.lease_id().map_or(0, hash_of_id);
                let pool = leases.map(|leases| Pool { most, share: leases.share(name, now), id });
                let critical = critical || limiter.is_critical();
                let claim = Claim { tenant: name, weight, cost: self.cost, critical, pool };
                look(claim, leases.map(|leases| (leases, now)))
            })
        })
    }

    /// The answer that the request would get. It changes nothing.
    pub fn peek<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Answer {
        self.with_state(limits, limiter, |state| decide::peek(limiter, state, self.at, self.cost))
    }

    /// As [`peek`](Self::peek), but with the gauge of the ban if the request is the strike that brings it. The limit records that
    /// strike although it refuses the request.
    pub fn peek_strike<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Answer {
        let answer = self.peek(limits, limiter);
        let bans = limiter.capabilities().bans && !answer.verdict.admits() && answer.gauge.remaining > 0;
        if !bans {
            return answer;
        }
        self.with_state(limits, limiter, |state| {
            decide::when_decided(limiter, state, self.at, |state, now, lag| {
                let mut banned = state.clone();
                banned.apply(limiter.charge(state, now, self.cost));
                Answer { gauge: limiter.gauge(&banned, now).delayed(lag), ..answer }
            })
        })
    }

    /// Moves what the key's holds charged to the limit, if the next change moves its counts.
    #[inline(always)]
    fn move_charges<L: Limiter>(
        &self,
        limits: &mut impl Limits,
        limiter: &L,
        overflows: impl Fn(&L::State) -> bool,
    ) -> Result<(), Error> {
        let stored = self.place.stored;
        let moves = |state: &L::State| limiter.moves_charges(state, stored.span()) || overflows(state);
        if hold::any(limits) && limits.state(stored).is_some_and(moves) {
            hold::move_charges(limits, limiter, stored, self.now)?;
        }
        Ok(())
    }

    /// Sets the instant of the decision. If the clock was set back, the state is moved to the caller's time.
    #[inline(always)]
    pub fn read_clock<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<(), Error> {
        let at = self.at;
        self.moves = false;
        if hold::any(limits) && self.set_back(limits, limiter).is_some() {
            hold::move_charges(limits, limiter, self.place.stored, at)?;
        }
        self.now = move_to_now::<L::State>(
            limits,
            &mut self.place,
            at,
            |state| limiter.gauge(state, state.last()).reset,
            |state, out| L::State::encode_change(&limiter.rebase(state, at), out),
        )?;
        Ok(())
    }

    /// The limit's state, if the clock was set back so that the state must move.
    pub(crate) fn set_back<'l, L: Limiter>(
        &self,
        limits: &'l impl Limits,
        limiter: &L,
    ) -> Option<&'l L::State> {
        let state = limits.state::<L::State>(self.place.stored)?;
        (decide::reading(limiter, state, self.at) == Reading::SetBack).then_some(state)
    }

    /// Calls `read` with the limit's state, or with a fresh one if the key does not have the limit.
    #[inline(always)]
    fn with_state<L: Limiter, T>(
        &self,
        limits: &impl Limits,
        limiter: &L,
        read: impl FnOnce(&L::State) -> T,
    ) -> T {
        match limits.state(self.place.stored) {
            Some(state) => read(state),
            None => read(&limiter.fresh(self.now)),
        }
    }
}
