//! A limit on a key, one of several that are asked together: what a limiter's own command does, in steps.

use crate::limit::{Answer, Error, Gauge, Limiter, Manner, State, Verdict, check, look, may_err, rule};
use crate::server::Limits;
use crate::time::{Span, Time};

/// A limit on a key, and what is said of it.
pub struct Pair {
    pub part: usize,
    pub key: usize,
    pub cost: u64,
    pub now: Time,
    /// How far the caller's clock is behind that.
    pub lag: Span,
    /// Something was given back.
    pub changed: bool,
    pub answer: Answer,
}

impl Pair {
    /// Not asked yet.
    pub fn new(part: usize, key: usize, cost: u64, now: Time) -> Pair {
        let gauge = Gauge { limit: 0, remaining: 0, reset: Span::ZERO };
        let answer = Answer { verdict: Verdict::ADMIT, gauge };
        Pair { part, key, cost, now, lag: Span::ZERO, changed: false, answer }
    }

    /// The answer as the caller sees it; the verdict already is that.
    pub fn told(&self) -> Answer {
        Answer { gauge: self.answer.gauge.delayed(self.lag), ..self.answer }
    }

    pub fn look<L: Limiter>(&mut self, limiter: &L, limits: &Limits<'_, '_>, now: Time, cost: u64) {
        let ask = |state: &L::State| look(limiter, state, now, cost);
        self.answer = limits.with_state(limiter.span(), || limiter.fresh(now), ask);
    }

    /// How the limit stands now.
    pub fn gauge<L: Limiter>(&mut self, limiter: &L, limits: &Limits<'_, '_>) {
        let ask = |state: &L::State| limiter.gauge(state, self.now);
        self.answer.gauge = limits.with_state(limiter.span(), || limiter.fresh(self.now), ask);
    }

    /// Reads the clock for the limit; one that was set back moves its state.
    pub fn read_clock<L: Limiter>(
        &mut self,
        limiter: &L,
        limits: &mut Limits<'_, '_>,
        asked: Time,
    ) -> Result<(), Error> {
        self.now = limits.read_clock::<L::State>(
            limiter.span(),
            asked,
            |state| limiter.gauge(state, state.last()).reset,
            |state, out| L::State::encode_change(&limiter.rebase(state, asked), out),
        )?;
        self.lag = self.now.since(asked);
        Ok(())
    }

    /// Whether the limit can be asked for that at all; to be known before any is moved.
    pub fn check<L: Limiter>(
        &self,
        limiter: &L,
        limits: &Limits<'_, '_>,
        asked: Time,
        manner: Manner,
    ) -> Result<(), Error> {
        if !may_err::<L>(manner) {
            return Ok(());
        }
        let checked = |state: &L::State| check(limiter, state, asked, self.cost, manner);
        limits.with_state(limiter.span(), || limiter.fresh(asked), checked)
    }

    pub fn judge<L: Limiter>(
        &mut self,
        limiter: &L,
        limits: &mut Limits<'_, '_>,
        asked: Time,
        manner: Manner,
    ) -> Result<(), Error> {
        self.read_clock(limiter, limits, asked)?;
        let ruled = |state: &L::State| rule(limiter, state, self.now, self.lag, self.cost, manner);
        let (verdict, _) = limits.with_state(limiter.span(), || limiter.fresh(self.now), ruled)?;
        self.answer.verdict = verdict;
        Ok(())
    }

    pub fn charge<L: Limiter>(&mut self, limiter: &L, limits: &mut Limits<'_, '_>) -> Result<(), Error> {
        let Pair { now, cost, .. } = *self;
        limits.change(
            limiter.span(),
            limiter.fresh(now),
            |state, out| L::State::encode_change(&limiter.charge(state, now, cost), out),
            |state| now.plus(limiter.gauge(state, now).reset),
        )?;
        Ok(())
    }

    pub fn refund<L: Limiter>(
        &mut self,
        limiter: &L,
        limits: &mut Limits<'_, '_>,
        asked: Time,
    ) -> Result<(), Error> {
        if limits.state::<L::State>(limiter.span()).is_none() {
            return Ok(());
        }
        self.read_clock(limiter, limits, asked)?;
        let Pair { now, cost, .. } = *self;
        let write = |state: &L::State, out: &mut Vec<u8>| {
            if let Some(change) = limiter.refund(state, now, cost) {
                L::State::encode_change(&change, out);
            }
        };
        let until = |state: &L::State| Limits::settled_at(now, limiter.gauge(state, now).reset);
        self.changed = limits.change(limiter.span(), limiter.fresh(now), write, until)?;
        Ok(())
    }
}
