//! `RL.<LIMITER> key <parameters> [options]`: makes a request to a limit, which is charged if it admits.

use ratelimit_core::{Answer, Limiter, Manner, with_limiter};
use ratelimit_language::help::Documentation;
use ratelimit_language::{CATALOG, Error, Request, Row};

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
        if H::IS_SMALL { run_any(call, ROW, &CATALOG[ROW]) } else { run(call, ROW, &CATALOG[ROW]) }
    }
}

/// As [`run`], in one copy for all limiters.
#[inline(never)]
fn run_any<H: Host>(call: &H, place: usize, row: &Row) -> Result<Reply, Error> {
    run(call, place, row)
}

/// Runs the command of the limiter whose row is at `place` in the catalog.
#[inline(always)]
fn run<H: Host>(call: &H, place: usize, row: &Row) -> Result<Reply, Error> {
    let mut asked = Request::default();
    let limiter = call.parse(2.., |arguments| (row.parse)(arguments, &mut asked))?;
    let (counter, limiter) = (Counter::Row(place), &limiter);
    with_limiter!(limiter, limiter => {
        asked.check(limiter.capabilities())?;
        let (cost, manner) = (asked.cost(), asked.manner());
        if cost == 0 {
            return Ok(reply(peek(call, limiter, 0, asked.at)?, 0, manner));
        }
        if H::IS_SMALL || asked.block().is_some() || asked.hold().is_some() || call.somebody_waits() {
            return Ok(match request(call, counter, limiter, &Wish::of(&asked, call))? {
                Done::Decided(answer, granted) => reply(answer, granted, manner),
                Done::Waits(wait) => Reply::Wait(wait),
            });
        }
        let taken = take(call, limiter, cost, manner, asked.at, |key, at| key.place_to_charge(limiter, at))?;
        call.record(1, counter, Outcome::of(taken.verdict));
        Ok(reply(taken.answer(), taken.granted, manner))
    })
}

#[inline(always)]
fn reply(answer: Answer, granted: u64, manner: Manner) -> Reply {
    match manner {
        Manner::Partial => Reply::Six(answer, granted),
        _ => Reply::Answer(answer),
    }
}
