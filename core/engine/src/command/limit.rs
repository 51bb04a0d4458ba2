//! `RL.<LIMITER> key <parameters> [options]`: makes a request to a limit, which is charged if it admits.

use ratelimit_core::{Answer, Limiter, Manner, with_limiter};
use ratelimit_language::help::Documentation;
use ratelimit_language::{CATALOG, Error, Request};

use super::entry::Command;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::plan::lone::{Done, Wish, peek, request, take};
use crate::reply::Reply;

/// The command of a limiter, by its row in the catalog.
pub struct Limit<const ROW: usize>;

#[allow(clippy::indexing_slicing, reason = "checked at compile time")]
impl<const ROW: usize> Command for Limit<ROW> {
    const DOCUMENTATION: Documentation = CATALOG[ROW].documentation;

    #[inline(always)]
    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let mut asked = Request::default();
        let limiter = call.parse(2.., |arguments| (CATALOG[ROW].parse)(arguments, &mut asked))?;
        let (counter, limiter) = (Counter::Row(ROW), &limiter);
        with_limiter!(limiter, limiter => {
            asked.check(limiter.capabilities())?;
            let (cost, manner) = (asked.cost(), asked.manner());
            if cost == 0 {
                return Ok(reply(peek(call, limiter, 0, asked.at)?, 0, manner));
            }
            if asked.block().is_some() || asked.hold().is_some() || call.somebody_waits() {
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
}

#[inline(always)]
fn reply(answer: Answer, granted: u64, manner: Manner) -> Reply {
    match manner {
        Manner::Partial => Reply::Six(answer, granted),
        _ => Reply::Answer(answer),
    }
}
