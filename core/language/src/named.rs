//! The parsers of the commands that take any limiter by its name: `RL.PEEK`, `RL.REFUND`, `RL.SETTLE`.

use ratelimit_core::{AnyLimiter, Capabilities, Limiter, with_limiter};

use crate::arguments::{Arguments, is, lease_id};
use crate::calls::{SketchCall, sketch};
use crate::catalog::{Row, named};
use crate::error::Error;
use crate::request::Request;
use crate::vocabulary::SETTLED;

/// A call that names its limiter.
pub struct NamedCall<'a> {
    pub limiter: AnyLimiter<'a>,
    pub request: Request<'a>,
}

/// What `RL.PEEK` looks at.
pub enum Peeked<'a> {
    Limit(NamedCall<'a>),
    Sketch(SketchCall<'a>),
}

/// `limiter parameter ... [COST cost] [AT at]`, or `SKETCH` and the arguments of `RL.SKETCH`
pub fn peek<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<Peeked<'a>, Error> {
    match arguments.peek() {
        Some(word) if is(word, SketchCall::NAME) => {
            arguments.next_section();
            sketch(arguments).map_err(|error| error.of_limiter(SketchCall::NAME)).map(Peeked::Sketch)
        }
        Some(word) if word.eq_ignore_ascii_case(b"RL.SKETCH") => {
            arguments.next_section();
            Err(Error::near_because(word, "the limiter's name is SKETCH"))
        }
        _ => {
            let (_, call) = read(arguments)?;
            call.request.check(Capabilities::NONE)?;
            Ok(Peeked::Limit(call))
        }
    }
}

/// `limiter parameter ... [COST cost] [AT at]`
pub fn refund<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<NamedCall<'a>, Error> {
    let (row, call) = read(arguments)?;
    call.request.check(Capabilities::NONE)?;
    let capabilities = capabilities(&call.limiter);
    if capabilities.refund { Ok(call) } else { Err(row.lacks(capabilities)) }
}

/// `id limiter parameter ... COST cost [AT at] [TENANT tenant]`: the id, the limit and the actual cost.
pub fn settle<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<(&'a [u8], NamedCall<'a>, u64), Error> {
    let id = lease_id(arguments)?;
    let (row, call) = read(arguments)?;
    call.request.check_settlement()?;
    let capabilities = capabilities(&call.limiter);
    if !capabilities.hold {
        return Err(row.lacks(capabilities));
    }
    let absent = || Error::absent(SETTLED.name).of_limiter(row.name());
    let actual = call.request.own_cost().ok_or_else(absent)?;
    Ok((id, call, actual))
}

fn read<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<(&'static Row, NamedCall<'a>), Error> {
    let mut request = Request::default();
    let (row, limiter) = named(arguments, &mut request)?;
    Ok((row, NamedCall { limiter, request }))
}

fn capabilities(limiter: &AnyLimiter<'_>) -> Capabilities {
    with_limiter!(limiter, limiter => limiter.capabilities())
}
