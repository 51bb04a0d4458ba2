//! `RL.HELP [command]`: lists the commands, or explains one.

use ratelimit_engine::host::Host;
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use ratelimit_language::docs;
use ratelimit_language::help::{Documentation, explain, list};

use crate::server::{Call, Command, documentation};

pub struct Help;

impl Command for Help {
    const DOCUMENTATION: Documentation = docs::HELP;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut names = call.arguments(1);
        match (names.next(), names.next()) {
            (None, _) => Ok(Reply::Lines(list(documentation()))),
            (Some(name), None) => {
                let lines = explain(documentation(), name)
                    .ok_or_else(|| Error::near_because(name, "RL.HELP lists the commands"))?;
                Ok(Reply::Lines(lines))
            }
            _ => Err(Error::Arity),
        }
    }
}
