//! `RL.HELP [command]`: lists the commands, or explains one.

use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, helped};

use super::entry::Command;
use crate::host::Host;
use crate::reply::Reply;

pub struct Help;

impl Command for Help {
    const DOCUMENTATION: Documentation = docs::HELP;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        Ok(Reply::Lines(match call.parse(1.., helped)? {
            None => docs::all().flat_map(Documentation::heading).collect(),
            Some(command) => command.explained(),
        }))
    }
}
