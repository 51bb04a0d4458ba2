//! `RL.PEEK key LIMITER <parameters> [COST cost] [AT at]`: replies as the limiter's command would, and charges nothing.

use ratelimit_core::with_limiter;
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, NamedCall, Peeked};

use super::entry::Command;
use super::sketch::look;
use crate::host::Host;
use crate::plan::own::peek;
use crate::reply::Reply;

pub struct Peek;

impl Command for Peek {
    const DOCUMENTATION: Documentation = docs::PEEK;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        match call.parse(2.., ratelimit_language::peek)? {
            Peeked::Sketch(sketching) => look(call, &sketching).map(Reply::Answer),
            Peeked::Limit(NamedCall { limiter, request }) => with_limiter!(&limiter, limiter => {
                peek(call, limiter, request.cost(), request.at).map(Reply::Answer)
            }),
        }
    }
}
