//! `RL.TOP [COUNT count] [PREVIOUS] | RESET`: the keys that are refused most, on this node.

use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, top};

use super::entry::Command;
use crate::host::Host;
use crate::reply::Reply;

pub struct Top;

impl Command for Top {
    const DOCUMENTATION: Documentation = docs::TOP;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        Ok(match call.parse(1.., top)? {
            None => {
                call.node().top().forget();
                Reply::Ok
            }
            Some(_) if !call.node().settings.counts_refusals() => {
                let why = "RL.TOP is off: CONFIG SET ratelimit.top to a number of keys, such as 1000";
                return Err(Error::Invalid(why.into()));
            }
            Some(asked) => Reply::Top(call.node().top().keys(call.clock(), asked)),
        })
    }
}
