//! `RL.TOP [COUNT count] [PREVIOUS] | RESET`: the keys that are refused most, on this node.

use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, top};

use crate::server::{Call, Command, Reply, counts_refusals, forget_top, top_keys};

pub struct Top;

impl Command for Top {
    const DOCUMENTATION: Documentation = docs::TOP;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        Ok(match call.parse(1.., top)? {
            None => {
                forget_top();
                Reply::Ok
            }
            Some(_) if !counts_refusals() => {
                let why = "RL.TOP is off: CONFIG SET ratelimit.top to a number of keys, such as 1000";
                return Err(Error::Invalid(why.into()));
            }
            Some(asked) => Reply::Top(top_keys(asked)),
        })
    }
}
