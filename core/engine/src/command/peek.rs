//! `RL.PEEK key LIMITER <parameters> [COST cost] [AT at]`: replies as the limiter's command would, and charges nothing.

use ratelimit_core::{Capabilities, with_limiter};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, Request, named};

use super::entry::Command;
use super::sketch;
use crate::host::Host;
use crate::plan::own::peek;
use crate::reply::Reply;

pub struct Peek;

impl Command for Peek {
    const DOCUMENTATION: Documentation = docs::PEEK;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        if let Some(limiter) = call.arguments(2).next() {
            if limiter.eq_ignore_ascii_case(b"SKETCH") {
                return sketch::peek(call);
            }
            if limiter.eq_ignore_ascii_case(b"RL.SKETCH") {
                return Err(Error::near_because(limiter, "the limiter's name is SKETCH"));
            }
        }
        let mut request = Request::default();
        let (_, limiter) = call.parse(2.., |arguments| named(arguments, &mut request))?;
        request.check(Capabilities::NONE)?;
        with_limiter!(&limiter, limiter => {
            peek(call, limiter, request.cost(), request.at).map(Reply::Answer)
        })
    }
}
