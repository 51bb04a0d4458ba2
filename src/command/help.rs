//! `RL.HELP [command]`: lists the commands, or explains one.

use ratelimit_language::Error;
use ratelimit_language::help::{explain, list};
use ratelimit_language::vocabulary::Argument;

use crate::server::{Call, Command, Keys, Reply, documentation};

pub struct Help;

impl Command for Help {
    const NAME: &'static str = "HELP";
    const SYNTAX: &'static str = "[command]";
    const SUMMARY: &'static str = "Lists the commands, or explains one";
    const COMPLEXITY: &'static str = "O(1)";
    const ARGUMENTS: &'static [Argument] =
        &[Argument::word("command", "a command or a limiter, with or without RL.")];
    const REPLY: &'static [&'static str] = &["An array of lines."];
    const EXAMPLE: &'static str = "RL.HELP gcra";
    const FLAGS: &'static str = "readonly fast allow-loading allow-stale";
    const KEYS: Keys = Keys::None;
    const VARIES: bool = false;

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
