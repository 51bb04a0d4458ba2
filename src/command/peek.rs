//! `RL.PEEK key LIMITER <parameters> [COST cost] [AT at]`: replies as the limiter's command would, and charges nothing.

use ratelimit_core::{AnyLimiter, Manner, with_limiter};
use ratelimit_language::{Arguments, Error, Request, find};

use super::limit::peek;
use crate::server::{Call, Command, KeyUse, Keys, Reply};

pub struct Peek;

impl Command for Peek {
    const NAME: &'static str = "PEEK";
    const SYNTAX: &'static str = "key limiter parameter ...";
    const SUMMARY: &'static str = "Replies what a limiter's command would reply, and charges nothing";
    const COMPLEXITY: &'static str = "As the limiter's command";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::First(KeyUse::Read);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut request = Request::default();
        let limiter = call.parse(2.., |arguments| parse(arguments, &mut request))?;
        if request.manner() != Manner::Strict {
            return Err(Error::Syntax);
        }
        with_limiter!(&limiter, limiter => {
            peek(call, limiter, request.cost(), request.at).map(Reply::Answer)
        })
    }
}

/// Parses a limiter's name and the arguments of its command.
pub fn parse<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Result<AnyLimiter<'a>, Error> {
    let row = find(arguments.word()?).ok_or(Error::Syntax)?;
    (row.parse)(arguments, request)
}
