//! A request to one limit of a key, in steps. A limiter's own command takes them one after the other; `RL.MULTI` takes
//! each step for all limits before the next. Both are the same code.
//!
//! ```text
//! check    would the request be an error?          nothing has changed yet
//! judge    reads the clock, decides                a state whose clock was set back is moved to now
//! charge   takes what was granted
//! gauge    limit, remaining and reset afterwards
//! ```

use alloc::vec::Vec;

use crate::decide::{self, Answer, Gauge, Manner, Reading, Verdict, read_clock, rule};
use crate::limiter::{Limiter, TooLong};
use crate::state::codec::Reader;
use crate::state::{LimitSet, LimitState, Name, SetChange, State};
use crate::time::{Span, Time};

/// The limits of one key, wherever they are kept.
pub trait Limits {
    fn state<S: LimitState>(&self, length: Span) -> Option<&S>;

    /// Applies the change that `write` writes, if it writes one, to the limit at `place`, and returns whether it did.
    /// The limit then has the place's new length. `blank` makes what a missing limit stands for.
    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, Error>;

    /// Drops the limits that are fully reset at `now` and that the call does not name.
    fn drop_faded(&mut self, now: Time, named: impl Fn(Name) -> bool) -> Result<(), Error>;
}

/// Where a key stores a limit.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The length of time under which it is stored, if it is.
    pub stored: Span,
    /// The length of time that a change gives it.
    pub length: Span,
}

impl Place {
    pub fn of(length: Span) -> Place {
        Place { stored: length, length }
    }
}

/// Why a request came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Its debt or booking would take over 100 years to be worked off. Found before anything is changed.
    TooLong,
    /// A change that was written cannot be read back: a defect.
    Defect,
}

impl From<TooLong> for Error {
    fn from(TooLong: TooLong) -> Error {
        Error::TooLong
    }
}

/// A request to one limit.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub place: Place,
    /// The instant at which the caller asks.
    at: Time,
    /// The instant that counts: `at`, or that of the last charge if `at` is before it.
    now: Time,
    pub cost: u64,
    pub manner: Manner,
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub verdict: Verdict,
    /// How much of the cost was charged, if it was admitted.
    pub granted: u64,
    /// As of the instant that counts; the reset includes no lag.
    pub gauge: Gauge,
    lag: Span,
}

impl Taken {
    /// The answer as the caller's clock sees it.
    pub fn answer(&self) -> Answer {
        Answer { verdict: self.verdict, gauge: self.gauge.delayed(self.lag) }
    }
}

impl Ask {
    pub fn new(place: Place, at: Time, cost: u64, manner: Manner) -> Ask {
        Ask { place, at, now: at, cost, manner }
    }

    /// The instant that counts, once the clock was read.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How far the caller's clock is behind the instant that counts.
    pub fn lag(&self) -> Span {
        self.now.since(self.at)
    }

    /// All steps at once, for a limit that is asked by itself.
    #[inline(always)]
    pub fn take<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<Taken, Error> {
        if let Some(state) = limits.state::<L::State>(self.place.stored)
            && self.at < state.last()
        {
            // The clock may have been set back. Then reading it moves the state, and an error must change nothing.
            self.check(limits, limiter)?;
        }
        let (mut verdict, granted) = self.judge(limits, limiter)?;
        // A cost that can never be admitted is not counted either.
        let counts_refused = limiter.capabilities().counts_refused && verdict != Verdict::NEVER;
        if verdict.admits() || counts_refused {
            limits.drop_faded(self.at, |name| name == Name::of::<L::State>(self.place.stored))?;
            self.charge(limits, limiter, granted)?;
        }
        if counts_refused && !verdict.admits() {
            // The verdict counts this very refusal.
            let judge = |state: &L::State| limiter.judge(state, self.now, granted).delayed(self.lag());
            verdict = self.with_state(limits, limiter, judge);
        }
        Ok(Taken { verdict, granted, gauge: self.gauge(limits, limiter), lag: self.lag() })
    }

    /// Whether the request is an error, before anything is changed.
    pub fn check<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Result<(), TooLong> {
        if !limiter.capabilities().can_be_too_long(self.manner) {
            return Ok(());
        }
        self.with_state(limits, limiter, |state| {
            decide::check(limiter, state, self.at, self.cost, self.manner)
        })
    }

    /// Reads the clock and judges: the verdict as the caller's clock sees it, and how much would be charged.
    #[inline(always)]
    pub fn judge<L: Limiter>(
        &mut self,
        limits: &mut impl Limits,
        limiter: &L,
    ) -> Result<(Verdict, u64), Error> {
        self.read_clock(limits, limiter)?;
        let Ask { now, cost, manner, .. } = *self;
        let lag = self.lag();
        let judged = self.with_state(limits, limiter, |state| match manner {
            Manner::Strict if !limiter.capabilities().books => {
                Ok((limiter.judge(state, now, cost).delayed(lag), cost))
            }
            _ => rule(limiter, state, now, lag, cost, manner),
        });
        Ok(judged?)
    }

    #[inline(always)]
    pub fn charge<L: Limiter>(
        &mut self,
        limits: &mut impl Limits,
        limiter: &L,
        granted: u64,
    ) -> Result<(), Error> {
        let now = self.now;
        let write = |state: &L::State, out: &mut Vec<u8>| {
            L::State::encode_change(&limiter.charge(state, now, granted), out);
        };
        limits.change(&mut self.place, || limiter.fresh(now), write).map(drop)
    }

    /// Gives the cost back; returns whether there was a limit to give it to.
    pub fn refund<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<bool, Error> {
        if limits.state::<L::State>(self.place.stored).is_none() {
            return Ok(false);
        }
        self.read_clock(limits, limiter)?;
        let Ask { now, cost, .. } = *self;
        let write = |state: &L::State, out: &mut Vec<u8>| {
            if let Some(change) = limiter.refund(state, now, cost) {
                L::State::encode_change(&change, out);
            }
        };
        limits.change(&mut self.place, L::State::blank, write)
    }

    /// The gauge at the instant that counts.
    #[inline(always)]
    pub fn gauge<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Gauge {
        self.with_state(limits, limiter, |state| limiter.gauge(state, self.now))
    }

    /// The answer that a request of this cost would get.
    pub fn peek<L: Limiter>(&self, limits: &impl Limits, limiter: &L) -> Answer {
        self.with_state(limits, limiter, |state| decide::peek(limiter, state, self.at, self.cost))
    }

    /// Finds the instant that counts. If the clock was set back, the state is moved to `at`.
    #[inline(always)]
    fn read_clock<L: Limiter>(&mut self, limits: &mut impl Limits, limiter: &L) -> Result<(), Error> {
        let at = self.at;
        self.now = move_to_now::<L::State>(
            limits,
            &mut self.place,
            at,
            |state| limiter.gauge(state, state.last()).reset,
            |state, out| L::State::encode_change(&limiter.rebase(state, at), out),
        )?;
        Ok(())
    }

    #[inline(always)]
    fn with_state<L: Limiter, T>(
        &self,
        limits: &impl Limits,
        limiter: &L,
        ask: impl FnOnce(&L::State) -> T,
    ) -> T {
        match limits.state(self.place.stored) {
            Some(state) => ask(state),
            None => ask(&limiter.fresh(self.now)),
        }
    }
}

/// The instant at which to decide on the limit at `place`. If the clock was set back, `rebase` writes the change that
/// moves the state to `at`.
#[inline(always)]
pub(crate) fn move_to_now<S: LimitState>(
    limits: &mut impl Limits,
    place: &mut Place,
    at: Time,
    reset: impl FnOnce(&S) -> Span,
    rebase: impl FnOnce(&S, &mut Vec<u8>),
) -> Result<Time, Error> {
    let Some(state) = limits.state::<S>(place.stored) else {
        return Ok(at);
    };
    match read_clock(state.last(), at, || reset(state)) {
        Reading::At(now) => Ok(now),
        Reading::SetBack => {
            limits.change(place, S::blank, rebase)?;
            Ok(at)
        }
    }
}

/// In memory.
impl Limits for LimitSet {
    fn state<S: LimitState>(&self, length: Span) -> Option<&S> {
        self.get(length)
    }

    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, Error> {
        let mut bytes = Vec::new();
        match self.get(place.stored) {
            Some(state) => write(state, &mut bytes),
            None => write(&blank(), &mut bytes),
        }
        if bytes.is_empty() {
            return Ok(false);
        }
        if place.stored != place.length {
            let [from, to] = [place.stored, place.length].map(Name::of::<S>);
            self.apply(SetChange::Renamed { from, to });
            place.stored = place.length;
        }
        let change = S::decode_change(&mut Reader::new(&bytes)).ok_or(Error::Defect)?;
        self.apply_to::<S>(place.length, change);
        Ok(true)
    }

    fn drop_faded(&mut self, now: Time, named: impl Fn(Name) -> bool) -> Result<(), Error> {
        self.retain(|limit| !limit.faded(&named, now));
        Ok(())
    }
}
