//! `RL.THROTTLE` and `CL.THROTTLE key max_burst count period [quantity [AT at]]`: the command of redis-cell.
//!
//! Limiter and state are those of `RL.GCRA`. Durations are in whole seconds. The `retry_after` of an admitted request
//! is -1.

use ratelimit_core::Manner;
use ratelimit_language::vocabulary::{AT, Argument, KEY, MAX_BURST, QUANTITY, RATE, SECONDS};
use ratelimit_language::{CellCall, Error, cell};

use super::limit::{peek, take};
use super::wait::{InLine, Wish, line_up};
use crate::count::Outcome;
use crate::server::{Call, Command, Counter, KeyUse, Keys, Reply, somebody_waits};

pub struct Throttle;
pub struct CellThrottle;

impl Command for Throttle {
    const NAME: &'static str = CellCall::NAME;
    const SYNTAX: &'static str = "key max_burst count period [quantity [AT at]]";
    const SUMMARY: &'static str = "Limits a rate by the generic cell rate algorithm, as redis-cell does";
    const COMPLEXITY: &'static str = "O(1)";
    const ARGUMENTS: &'static [Argument] = &[KEY, MAX_BURST, RATE, SECONDS, QUANTITY, AT];
    const REPLY: &'static [&'static str] = &[
        "Five integers: limited (1 if refused, else 0), limit, remaining, retry_after in s (-1 if admitted or never), and reset_after in s.",
    ];
    const EXAMPLE: &'static str = "RL.THROTTLE user:1 14 30 60 1";
    const FLAGS: &'static str = "write deny-oom fast";
    const KEYS: Keys = Keys::First(KeyUse::Update);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let CellCall { gcra, quantity, at } = call.parse(2.., cell)?;
        if quantity == 0 {
            return peek(call, &gcra, 0, at).map(Reply::Cell);
        }
        if somebody_waits() {
            let wish =
                Wish { cost: quantity, manner: Manner::Strict, at, hold: None, block: None, tenant: None };
            if let InLine::IsBehind(answer) = line_up(call, &gcra, &wish)? {
                call.record(1, Counter::Throttle, Outcome::Refused);
                return Ok(Reply::Cell(answer));
            }
        }
        let taken = take(
            call,
            &gcra,
            quantity,
            Manner::Strict,
            at,
            |key, at| key.place_to_charge(&gcra, at),
            |_, _| (),
        )?;
        call.record(1, Counter::Throttle, Outcome::of(taken.verdict));
        Ok(Reply::Cell(taken.answer()))
    }
}

impl Command for CellThrottle {
    const PREFIX: &'static str = "CL.";
    const NAME: &'static str = Throttle::NAME;
    const SYNTAX: &'static str = Throttle::SYNTAX;
    const SUMMARY: &'static str = Throttle::SUMMARY;
    const COMPLEXITY: &'static str = Throttle::COMPLEXITY;
    const ARGUMENTS: &'static [Argument] = Throttle::ARGUMENTS;
    const REPLY: &'static [&'static str] = Throttle::REPLY;
    const EXAMPLE: &'static str = "CL.THROTTLE user:1 14 30 60 1";
    const FLAGS: &'static str = Throttle::FLAGS;
    const KEYS: Keys = Throttle::KEYS;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        Throttle::run(call)
    }
}
