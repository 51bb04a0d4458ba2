//! `RL.THROTTLE` and `CL.THROTTLE key max_burst count period [quantity [AT at]]`: the command of redis-cell.
//!
//! Limiter and state are those of `RL.GCRA`. Durations are in whole seconds. The `retry_after` of an admitted request
//! is -1.

use ratelimit_core::Manner;
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{CellCall, Error, cell};

use super::entry::Command;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::plan::own::{Done, Wish, peek, request, take};
use crate::reply::Reply;

pub struct Throttle;
pub struct CellThrottle;

impl Command for Throttle {
    const DOCUMENTATION: Documentation = docs::THROTTLE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let CellCall { gcra, quantity, at } = call.parse(2.., cell)?;
        if quantity == 0 {
            return peek(call, &gcra, 0, at).map(Reply::Cell);
        }
        if call.somebody_waits() {
            let wish = Wish { cost: quantity, at, ..Wish::default() };
            return Ok(match request(call, Counter::Throttle, &gcra, &wish)? {
                Done::Decided(answer, _) => Reply::Cell(answer),
                Done::Waits(wait) => Reply::Wait(wait),
            });
        }
        let taken =
            take(call, &gcra, quantity, Manner::Strict, at, |key, at| key.place_to_charge(&gcra, at))?;
        call.record(1, Counter::Throttle, Outcome::of(taken.verdict));
        Ok(Reply::Cell(taken.answer()))
    }
}

impl Command for CellThrottle {
    const DOCUMENTATION: Documentation = docs::CL_THROTTLE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        Throttle::run(call)
    }
}
