//! `RL.HELP [command]`: lists the commands, or explains one.

use ratelimit_language::Error;
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;

use super::entry::Command;
use crate::host::Host;
use crate::reply::Reply;

pub struct Help;

impl Command for Help {
    const DOCUMENTATION: Documentation = docs::HELP;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let mut names = call.arguments(1);
        match (names.next(), names.next()) {
            (None, _) => Ok(Reply::Lines(docs::all().flat_map(Documentation::heading).collect())),
            (Some(name), None) => {
                let command = docs::find(name)
                    .ok_or_else(|| Error::near_because(name, "RL.HELP lists the commands"))?;
                Ok(Reply::Lines(command.explained()))
            }
            (_, Some(word)) => Err(Error::near(word)),
        }
    }
}
