//! `RL.HELP`: lists the commands, each with its syntax and summary.

use ratelimit_language::Error;

use crate::server::{Call, Command, Keys, Reply, help};

pub struct Help;

impl Command for Help {
    const NAME: &'static str = "HELP";
    const SYNTAX: &'static str = "";
    const SUMMARY: &'static str = "Lists the commands";
    const COMPLEXITY: &'static str = "O(1)";
    const FLAGS: &'static str = "readonly fast allow-loading allow-stale";
    const KEYS: Keys = Keys::None;
    const VARIES: bool = false;

    fn run(_: &Call<'_>) -> Result<Reply, Error> {
        Ok(Reply::Lines(help()))
    }
}
