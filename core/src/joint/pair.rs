//! A limit of a call on one of its keys, and how far its decision is.

use super::part::Part;
use crate::answer::{Answer, Gauge, Manner, Verdict};
use crate::ask::Ask;
use crate::limiter::TooLong;
use crate::limits::Limits;
use crate::line::Claim;
use crate::state::{Charge, Leases};
use crate::time::{Span, Time};

/// A limit on a key.
pub(super) struct Pair<'p, 'a> {
    pub(super) part: &'p Part<'a>,
    /// The index of `part` in the call.
    pub(super) limit: usize,
    pub(super) key: usize,
    pub(super) ask: Ask,
    /// Whether what a settlement charges can be too long, which is found before anything is charged.
    pub(super) can_be_too_long: bool,
    pub(super) stage: Stage,
    /// Whether a cost was given back.
    pub(super) refunded: bool,
    /// Whether the call can stand in the line of the limit: others wait for it or for another one, and it is not held already.
    pub(super) stands: bool,
    /// What the call settles for this limit.
    pub(super) held: Option<Charge>,
}

/// How far the decision on a pair is.
///
/// A tag of its own is read faster than one in the spare values of a verdict.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Stage {
    Asked,
    /// A request is judged before any is charged.
    Judged(Verdict),
    /// Charged, refused or peeked. At the instant of the decision: the reset does not include the lag.
    Decided(Answer),
    /// Refunded or settled, which refuses nothing. The gauge is as the caller's clock sees it.
    Settled {
        gauge: Gauge,
        /// At the instant of the decision.
        reset: Span,
    },
}

impl<'a> Pair<'_, 'a> {
    /// Whether the pair changes its limit, and does not only peek.
    pub(super) fn charges(&self) -> bool {
        self.part.cost > 0
    }

    /// Whether the pair changes its limit, or settles a charge.
    pub(super) fn changes(&self) -> bool {
        self.charges() || self.held.is_some()
    }

    /// Whether the pair enters the combined answer.
    pub(super) fn enters(&self) -> bool {
        self.part.is_strict() || !self.part.is_shadow() && !self.admits()
    }

    /// Whether the limit admits the call, or only peeks. For a call that charges, once it is judged.
    pub(super) fn admits(&self) -> bool {
        match self.stage {
            Stage::Judged(verdict) => verdict.admits(),
            Stage::Decided(answer) => answer.verdict.admits(),
            Stage::Asked | Stage::Settled { .. } => true,
        }
    }

    /// Whether the limit is a shadow that refuses the call.
    pub(super) fn refuses_in_shadow(&self) -> bool {
        self.part.is_shadow() && self.charges() && !self.admits()
    }

    /// Whether the call can wait for the limit.
    pub(super) fn can_be_behind(&self) -> bool {
        self.part.is_strict() && self.charges() && self.ask.manner != Manner::Force
    }

    /// Calls `look` with what the call asks of the limit's line, as [`Ask::claim`].
    pub(super) fn claim<T>(
        &self,
        limits: &impl Limits,
        look: impl FnOnce(Claim<&'a [u8]>, Option<(&Leases, Time)>) -> T,
    ) -> T {
        let Part { limiter, tenant, critical, .. } = self.part;
        with_limiter!(limiter, limiter => self.ask.claim(limits, limiter, *tenant, *critical, look))
    }

    /// The answer as the caller's clock sees it; `None` before the call is decided.
    pub(super) fn answer(&self) -> Option<Answer> {
        match self.stage {
            Stage::Asked | Stage::Judged(_) => None,
            Stage::Decided(answer) => Some(Answer { gauge: answer.gauge.delayed(self.ask.lag()), ..answer }),
            Stage::Settled { gauge, .. } => Some(Answer { verdict: Verdict::ADMIT, gauge }),
        }
    }

    /// The verdict, once the pair is judged.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        match self.stage {
            Stage::Asked => None,
            Stage::Judged(verdict) | Stage::Decided(Answer { verdict, .. }) => Some(verdict),
            Stage::Settled { .. } => Some(Verdict::ADMIT),
        }
    }

    /// The reset at the instant of the decision; zero before it.
    pub(super) fn reset(&self) -> Span {
        match self.stage {
            Stage::Asked | Stage::Judged(_) => Span::ZERO,
            Stage::Decided(answer) => answer.gauge.reset,
            Stage::Settled { reset, .. } => reset,
        }
    }

    /// A refund or a settlement has changed the limit, which now has this gauge.
    pub(super) fn give_back(&mut self, refunded: bool, gauge: Gauge) {
        self.refunded = refunded;
        self.stage = Stage::Decided(Answer { verdict: Verdict::ADMIT, gauge });
    }

    /// Looks at the limit after a refund or a settlement.
    pub(super) fn settle(&mut self, limits: &impl Limits) {
        let answer = with_limiter!(&self.part.limiter, limiter => self.ask.refunded(limits, limiter));
        self.stage = Stage::Settled { gauge: answer.gauge, reset: self.reset() };
    }

    /// Returns the error that a charge would return.
    #[inline(always)]
    pub(super) fn check(&self, limits: &impl Limits) -> Result<(), TooLong> {
        with_limiter!(&self.part.limiter, limiter => self.ask.check(limits, limiter))
    }

    /// Judges a pair that charges, and changes nothing.
    #[inline(always)]
    pub(super) fn plan(&mut self, limits: &impl Limits) -> Result<(), TooLong> {
        let (verdict, _) = with_limiter!(&self.part.limiter, limiter => self.ask.plan(limits, limiter))?;
        self.stage = Stage::Judged(verdict);
        Ok(())
    }

    pub(super) fn peek(&mut self, limits: &impl Limits) {
        self.ask = Ask::new(self.ask.place, self.ask.at(), self.ask.cost, self.ask.manner);
        let answer = with_limiter!(&self.part.limiter, limiter => self.ask.peek(limits, limiter));
        // With FORCE, a penalty does not refuse.
        let forced = self.ask.manner == Manner::Force && self.part.is_penalty();
        let verdict = if forced { Verdict::ADMIT } else { answer.verdict };
        self.stage = Stage::Decided(Answer { verdict, ..answer });
    }
}
