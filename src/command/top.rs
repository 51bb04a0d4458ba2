//! `RL.TOP [COUNT count] [PREVIOUS] | RESET`: the keys that are refused most, on this node.

use ratelimit_language::vocabulary::{Argument, TOP};
use ratelimit_language::{Error, top};

use crate::server::{Call, Command, Keys, Reply, counts_refusals, forget_top, top_keys};

pub struct Top;

impl Command for Top {
    const NAME: &'static str = "TOP";
    const SYNTAX: &'static str = "[RESET | {[COUNT count] [PREVIOUS]}]";
    const SUMMARY: &'static str = "Returns the keys that are refused most on this node";
    const COMPLEXITY: &'static str =
        "O(N*log(N)) where N is the number of entries that have a key, at most ratelimit.top";
    const ARGUMENTS: &'static [Argument] = TOP;
    const REPLY: &'static [&'static str] = &[
        "An array in descending order; each element has a key, its database, its refusals, and by how much these may be too many.",
        "An error if the setting ratelimit.top is 0. RESET: OK.",
    ];
    const EXAMPLE: &'static str = "RL.TOP COUNT 3";
    const FLAGS: &'static str = "admin allow-stale";
    const KEYS: Keys = Keys::None;

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
