//! `RL.REFUND key LIMITER <parameters> [COST cost] [AT at]`: gives a charged cost back to a limit.

use ratelimit_core::{Answer, Ask, Limiter, Manner, Time, Verdict, with_limiter};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, NamedCall};

use super::entry::Command;
use crate::host::Host;
use crate::key::Key;
use crate::plan::own::peek;
use crate::reply::Reply;
use crate::slot::{Access, Slot};

pub struct Refund;

impl Command for Refund {
    const DOCUMENTATION: Documentation = docs::REFUND;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let NamedCall { limiter, request } = call.parse(2.., ratelimit_language::refund)?;
        with_limiter!(&limiter, limiter => {
            let answer = match request.cost() {
                0 => peek(call, limiter, 0, request.at)?,
                cost => refund(call, limiter, cost, request.at)?,
            };
            // A refund returns no ban.
            Ok(Reply::Answer(Answer { verdict: Verdict::ADMIT, ..answer }))
        })
    }
}

/// Gives the cost back. A key that is then fully reset is deleted, and a missing key stays missing.
fn refund<L: Limiter>(call: &impl Host, limiter: &L, cost: u64, at: Option<Time>) -> Result<Answer, Error> {
    let clock = call.clock();
    let mut key = Key::open(call, 1, Access::Write)?;
    let place = key.own_place(limiter)?;
    let at = at.unwrap_or(clock);
    let mut ask = Ask::new(place, at, cost, Manner::Strict);
    let refunded = ask.refund(&mut key, limiter)?;
    Ok(finish(&mut key, &ask, limiter, refunded, clock))
}

/// Commits the change of a key that may have got something back, and returns the answer after it.
pub(super) fn finish<L: Limiter>(
    key: &mut Key<impl Slot>,
    ask: &Ask,
    limiter: &L,
    gave_back: bool,
    clock: Time,
) -> Answer {
    let gauge = ask.gauge(key, limiter);
    key.settle(gave_back.then_some(ask.at()), clock, ask.now(), gauge.reset);
    key.publish();
    ask.refunded(key, limiter)
}
