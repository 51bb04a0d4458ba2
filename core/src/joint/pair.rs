//! A limit of a call on one of its keys, and how far its decision is.

use super::part::Part;
use crate::answer::{Answer, Gauge, Manner, Verdict};
use crate::ask::Ask;
use crate::limits::Limits;
use crate::state::Charge;

/// A limit on a key.
pub(super) struct Pair<'p, 'a> {
    pub(super) part: &'p Part<'a>,
    /// The place of `part` in the call.
    pub(super) place: usize,
    pub(super) key: usize,
    pub(super) ask: Ask,
    /// Whether the request can be [`Error::TooLong`], which is found before anything is charged.
    pub(super) can_be_too_long: bool,
    pub(super) verdict: Option<Verdict>,
    /// At the instant of the decision; the reset does not include the lag.
    pub(super) gauge: Option<Gauge>,
    /// The gauge after a refund, as the caller's clock sees it.
    pub(super) refunded_gauge: Option<Gauge>,
    /// Whether a cost was given back.
    pub(super) refunded: bool,
    /// What the call settles for this limit.
    pub(super) held: Option<Charge>,
}

impl Pair<'_, '_> {
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
        self.verdict.is_none_or(Verdict::admits)
    }

    /// Whether the call can wait for the limit.
    pub(super) fn can_be_behind(&self) -> bool {
        self.part.is_strict() && self.charges() && self.ask.manner != Manner::Force
    }

    /// The answer as the caller's clock sees it; `None` before the call is decided.
    pub(super) fn answer(&self) -> Option<Answer> {
        let gauge = self.refunded_gauge.or_else(|| Some(self.gauge?.delayed(self.ask.lag())))?;
        Some(Answer { verdict: self.verdict?, gauge })
    }

    pub(super) fn peek(&mut self, limits: &impl Limits) {
        let answer = with_limiter!(&self.part.limiter, limiter => self.ask.peek(limits, limiter));
        // With FORCE, a penalty does not refuse.
        let forced = self.ask.manner == Manner::Force && self.part.is_penalty();
        self.verdict = Some(if forced { Verdict::ADMIT } else { answer.verdict });
        self.gauge = Some(answer.gauge);
    }
}
