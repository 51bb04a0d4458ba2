//! Commands about one limit of a key.

use ratelimit_core::answer::clamped;
use ratelimit_core::hold::{find, has_room, held};
use ratelimit_core::line::{Comer, Cost};
use ratelimit_core::state::hash_of_id;
use ratelimit_core::{
    Answer, Ask, Capabilities, Hold, LimitSet, Limiter, Manner, Place, Span, Time, Verdict, with_limiter,
};
use ratelimit_language::vocabulary::{BLOCK, SETTLED};
use ratelimit_language::{CellCall, Error, Request, Row, SketchCall, cell, lease_id, named, sketch};

use super::{Answered, MOST_HOLDS, Memory, first, forget_if_reset, is, needs_server};
use crate::reply::Reply;

/// The module's default.
const MOST_HUNGRY: usize = 10_000;

impl Memory {
    /// `RL.<LIMITER> key <parameters> [options]`.
    pub(super) fn limit(&mut self, row: &Row, words: &[&[u8]]) -> Answered {
        let mut request = Request::default();
        let (key, mut arguments) = first(words)?;
        let limiter = (row.parse)(&mut arguments, &mut request)?;
        with_limiter!(&limiter, limiter => {
            request.check(limiter.capabilities())?;
            if request.block().is_some() {
                return Err(needs_server(BLOCK.name));
            }
            let (cost, manner) = (request.cost(), request.manner());
            let (answer, granted) = self.ask(key, limiter, (cost, manner, request.at), request.hold())?;
            Ok(match manner {
                Manner::Partial => Reply::Granted(answer.integers(), clamped(granted)),
                _ => Reply::Five(answer.integers()),
            }.into())
        })
    }

    /// Asks a limiter, and charges it if it admits. Returns the granted cost too. What is charged is held if `hold` is given.
    fn ask<L: Limiter>(
        &mut self,
        key: &[u8],
        limiter: &L,
        (cost, manner, at): (u64, Manner, Option<Time>),
        hold: Option<(&[u8], Span)>,
    ) -> Answered<(Answer, u64)> {
        let at = self.at(at)?;
        let hold = hold.map(|(id, ttl)| Hold { id, ttl, most: MOST_HOLDS });
        self.with_limits(key, Some(limiter.name()), |memory, limits| {
            let mut ask = Ask::new(place(limits, limiter), at, cost, manner);
            if let Some(hold) = &hold {
                if let Some(charges) = held(limits, hold.id, at) {
                    let granted = find(limits, charges, limiter).map_or(0, |charge| charge.cost);
                    return Ok((look(limits, limiter, 0, at), granted));
                }
                if !has_room(limits, hold, at, 1) {
                    return Err(Error::TooManyHolds.into());
                }
            }
            if cost == 0 {
                return Ok((ask.peek(limits, limiter), 0));
            }
            if let Some(id) = limiter.lease_id() {
                if ask.is_held(limits, limiter) {
                    memory.lines.serve(key, limiter.name(), hash_of_id(id), ask.at());
                } else if let Some(refused) = memory.line_up(key, limits, limiter, &ask) {
                    return Ok((refused, 0));
                }
            }
            let taken = ask.take(limits, limiter)?;
            if let Some(hold) = &hold {
                ask.hold(limits, limiter, &taken, hold)?;
            }
            Ok((taken.answer(), taken.granted))
        })
    }

    /// Others may come before a call for leases that tenants share: then it is refused.
    fn line_up<L: Limiter>(
        &mut self,
        key: &[u8],
        limits: &LimitSet,
        limiter: &L,
        ask: &Ask,
    ) -> Option<Answer> {
        let (lines, at) = (&mut self.lines, ask.at());
        let mut has_tenants = limiter.tenant().is_some();
        let claim = ask.claim(limits, limiter, limiter.tenant(), |claim, leases| {
            has_tenants |= leases.is_some_and(|(leases, _)| leases.has_tenants());
            lines.follow(key, limiter.name(), leases.map(|(leases, _)| leases), at, at);
            claim
        });
        let ahead = lines.ahead(key, limiter.name(), &claim, Comer::Passes, at);
        let answer = ask.peek(limits, limiter);
        let refused = !answer.verdict.admits();
        if ahead.is_none() && !refused {
            lines.grant(key, limiter.name(), &claim, Cost::Known, at);
        }
        if has_tenants
            && (ahead.is_some() || refused)
            && claim.pool.is_some_and(|pool| claim.cost <= pool.most)
        {
            lines.starve(&key.to_vec(), limiter.name(), &claim.into_owned(), at, self.hunger, MOST_HUNGRY);
        }
        ahead.map(|first| answer.behind(first))
    }

    /// `RL.PEEK key LIMITER <parameters> [COST cost] [AT at]`.
    pub(super) fn peek(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        if words.get(1).is_some_and(|name| is(name, SketchCall::NAME)) {
            arguments.word(SketchCall::NAME)?;
            return self.look_at_item(key, &sketch(&mut arguments)?);
        }
        let mut request = Request::default();
        let (_, limiter) = named(&mut arguments, &mut request)?;
        request.check(Capabilities::NONE)?;
        let at = self.at(request.at)?;
        with_limiter!(&limiter, limiter => self.with_limits(key, Some(limiter.name()), |_, limits| {
            let answer = look(limits, limiter, request.cost(), at);
            Ok(Reply::Five(answer.integers()).into())
        }))
    }

    /// `RL.REFUND key LIMITER <parameters> [COST cost] [AT at]`.
    pub(super) fn refund(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let mut request = Request::default();
        let (row, limiter) = named(&mut arguments, &mut request)?;
        request.check(Capabilities::NONE)?;
        let at = self.at(request.at)?;
        with_limiter!(&limiter, limiter => {
            let capabilities = limiter.capabilities();
            if !capabilities.refund {
                return Err(row.lacks(capabilities).into());
            }
            self.with_limits(key, Some(limiter.name()), |_, limits| {
                let mut ask = Ask::new(place(limits, limiter), at, request.cost(), Manner::Strict);
                let gave_back = ask.cost > 0 && ask.refund(limits, limiter)?;
                let answer = finish(limits, limiter, &ask, gave_back);
                Ok(Reply::Five(Answer { verdict: Verdict::ADMIT, ..answer }.integers()).into())
            })
        })
    }

    /// `RL.SETTLE key id LIMITER <parameters> COST actual [AT at]`.
    pub(super) fn settle(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let mut request = Request::default();
        let id = lease_id(&mut arguments)?;
        let (row, limiter) = named(&mut arguments, &mut request)?;
        request.check_settlement()?;
        let at = self.at(request.at)?;
        with_limiter!(&limiter, limiter => {
            let capabilities = limiter.capabilities();
            if !capabilities.hold {
                return Err(row.lacks(capabilities).into());
            }
            let actual = request.own_cost().ok_or_else(|| Error::absent(SETTLED.name))?;
            self.with_limits(key, Some(limiter.name()), |_, limits| {
                let (answer, settled) = match Ask::settle_held(limits, limiter, id, at, actual)? {
                    Some((ask, gave_back)) => (finish(limits, limiter, &ask, gave_back), 1),
                    None => (look(limits, limiter, 0, at), 0),
                };
                Ok(Reply::Settled(answer.integers(), settled).into())
            })
        })
    }

    /// `RL.THROTTLE key max_burst count period [quantity [AT at]]`.
    pub(super) fn throttle(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let CellCall { gcra, quantity, at } = cell(&mut arguments)?;
        let (answer, _) = self.ask(key, &gcra, (quantity, Manner::Strict, at), None)?;
        Ok(Reply::Cell(answer.integers_of_cell()).into())
    }
}

/// Where the limit is that a limiter's own command is about.
fn place<L: Limiter>(limits: &LimitSet, limiter: &L) -> Place {
    limits.find(limiter.name()).unwrap_or(Place::of(limiter.name().length))
}

/// The answer that a request would get. It changes nothing.
fn look<L: Limiter>(limits: &LimitSet, limiter: &L, cost: u64, at: Time) -> Answer {
    Ask::new(place(limits, limiter), at, cost, Manner::Strict).peek_strike(limits, limiter)
}

/// The answer after a change that may have given something back.
fn finish<L: Limiter>(limits: &mut LimitSet, limiter: &L, ask: &Ask, gave_back: bool) -> Answer {
    let reset = ask.gauge(limits, limiter).reset;
    forget_if_reset(limits, gave_back.then_some(ask.at()), reset);
    ask.refunded(limits, limiter)
}
