//! `RL.REFUND key LIMITER <parameters> [COST cost] [AT at]`: gives back what was charged and not used.

use super::limit::{glance, read_clock};
use super::peek::parse;
use crate::limit::with_limiter;
use crate::limit::{Answer, Error, Limiter, Manner, Request, State, Verdict};
use crate::server::{Access, Call, Command, Key, Keys, Reply, clock};
use crate::time::Span;

pub struct Refund;

impl Command for Refund {
    const NAME: &'static str = "REFUND";
    const SYNTAX: &'static str = "key limiter parameter ...";
    const SUMMARY: &'static str = "Gives back to a limiter what was charged and not used";
    const COMPLEXITY: &'static str = "As the limiter's command";
    const FLAGS: &'static str = "write fast";
    const KEYS: Keys = Keys::Update;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut request = Request::default();
        let (row, limiter) = call.parse(2.., |words| parse(words, &mut request))?;
        if !row.allows.debt || request.manner() != Manner::Strict {
            return Err(Error::Syntax);
        }
        with_limiter!(limiter, limiter => give_back(call, &limiter, &request)).map(Reply::Answer)
    }
}

/// A key that is as good as new afterwards is deleted; a missing one stays missing.
fn give_back<L: Limiter>(call: &Call<'_>, limiter: &L, request: &Request) -> Result<Answer, Error> {
    if limiter.counts_refused() {
        return Err(Error::Syntax);
    }
    let clock = clock();
    let asked = request.at.unwrap_or(clock);
    if request.cost() == 0 {
        let key = Key::<L::State>::open(call, 1, Access::Look)?;
        return Ok(glance(&key, limiter, asked, 0));
    }
    let mut key = Key::<L::State>::open(call, 1, Access::Change)?;
    if key.state().is_none() {
        return Ok(glance(&key, limiter, asked, 0));
    }
    let now = read_clock(&mut key, limiter, asked)?;
    let refunded = key.change(limiter.fresh(now), |state, out| {
        if let Some(change) = limiter.refund(state, now, request.cost()) {
            L::State::encode_change(&change, out);
        }
    });
    let gauge = key.with_state(|| limiter.fresh(now), |state| limiter.gauge(state, now));
    // What the reading of the clock has moved is made known, whatever came of the rest.
    if refunded == Ok(true) && gauge.reset == Span::ZERO {
        key.delete();
    } else {
        key.commit(clock.max(now), gauge.reset);
    }
    refunded?;
    Ok(Answer { verdict: Verdict::ADMIT, gauge }.delayed(now.since(asked)))
}
