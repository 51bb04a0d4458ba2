//! `RL.PEEK key LIMITER <parameters> [COST cost] [AT at]`: asks, and takes nothing.

use super::limit::glance;
use crate::limit::with_limiter;
use crate::limit::{AnyLimiter, Error, Manner, Request, Row, Words, find};
use crate::server::{Access, Call, Command, Key, Keys, Reply, clock};

pub struct Peek;

impl Command for Peek {
    const NAME: &'static str = "PEEK";
    const SYNTAX: &'static str = "key limiter parameter ...";
    const SUMMARY: &'static str = "Tells what a limiter's command would reply, and charges nothing";
    const COMPLEXITY: &'static str = "As the limiter's command";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::Read;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut request = Request::default();
        let (_, limiter) = call.parse(2.., |words| parse(words, &mut request))?;
        if request.manner() != Manner::Strict {
            return Err(Error::Syntax);
        }
        let now = request.at.unwrap_or_else(clock);
        with_limiter!(limiter, limiter => {
            let key = Key::open(call, 1, Access::Look)?;
            Ok(Reply::Answer(glance(&key, &limiter, now, request.cost())))
        })
    }
}

/// Reads a limiter's name and what its command takes.
pub fn parse<'a>(
    words: &mut Words<'_, 'a>,
    request: &mut Request,
) -> Result<(&'static Row, AnyLimiter<'a>), Error> {
    let row = find(words.word()?).ok_or(Error::Syntax)?;
    Ok((row, (row.parse)(words, request)?))
}
