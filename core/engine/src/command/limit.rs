//! `RL.<LIMITER> key <parameters> [options]`: makes a request to a limit, which is charged if it admits.

use ratelimit_core::{Answer, AnyLimiter, Limiter, Manner, with_limiter};
use ratelimit_language::help::Documentation;
use ratelimit_language::{Arguments, CATALOG, Error, Request};

use super::entry::Command;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::plan::own::{Done, Wish, peek, request, take};
use crate::reply::Reply;

/// The command of a limiter, by its row in the catalog.
pub struct Limit<const ROW: usize>;

#[allow(clippy::indexing_slicing, reason = "checked at compile time")]
impl<const ROW: usize> Command for Limit<ROW> {
    const DOCUMENTATION: Documentation = CATALOG[ROW].documentation;

    #[inline(always)]
    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        if H::IS_SMALL {
            run_any(call, ROW)
        } else {
            // A closure of its own for each row, so that the compiler leaves out all other limiters.
            run(call, ROW, |arguments, asked| (CATALOG[ROW].parse)(arguments, asked))
        }
    }
}

/// Runs the command of any limiter, by its row in the catalog.
#[inline(never)]
fn run_any<H: Host>(call: &H, row: usize) -> Result<Reply, Error> {
    let parse = CATALOG.get(row).ok_or(Error::Internal)?.parse;
    run(call, row, parse)
}

/// Runs the command of the limiter that `parse` returns.
#[inline(always)]
fn run<H: Host>(
    call: &H,
    row: usize,
    parse: impl for<'a> Fn(&mut Arguments<'_, 'a>, &mut Request<'a>) -> Result<AnyLimiter<'a>, Error>,
) -> Result<Reply, Error> {
    let mut asked = Request::default();
    let mut limiter = call.parse(2.., |arguments| parse(arguments, &mut asked))?;
    with_limiter!(&limiter, limiter => asked.check(limiter.capabilities()))?;
    if let AnyLimiter::Concurrent(leases) = &mut limiter
        && asked.is_fenced()
    {
        leases.token = Some(call.node().next_token(call.clock())?);
    }
    let (counter, limiter) = (Counter::Row(row), &limiter);
    with_limiter!(limiter, limiter => {
        let (cost, manner, fenced) = (asked.cost(), asked.manner(), asked.is_fenced());
        let has_sixth = manner == Manner::Partial || fenced;
        if cost == 0 {
            return Ok(reply(peek(call, limiter, 0, asked.at)?, 0, has_sixth));
        }
        if H::IS_SMALL || fenced || asked.block().is_some() || asked.hold().is_some() || call.somebody_waits() {
            return Ok(match request(call, counter, limiter, &Wish::of(&asked, call))? {
                Done::Decided(answer, sixth) => {
                    if fenced {
                        call.node().pass_token(sixth);
                    }
                    reply(answer, sixth, has_sixth)
                }
                Done::Waits(wait) => Reply::Wait(wait),
            });
        }
        let taken = take(call, limiter, cost, manner, asked.at, |key, at| key.place_to_charge(limiter, at))?;
        call.record(1, counter, Outcome::of(taken.verdict));
        Ok(reply(taken.answer(), taken.granted, has_sixth))
    })
}

#[inline(always)]
fn reply(answer: Answer, sixth: u64, has_sixth: bool) -> Reply {
    if has_sixth { Reply::Six(answer, sixth) } else { Reply::Answer(answer) }
}
