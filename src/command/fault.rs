//! `RL.PANIC NOW | LOAD`: panics, or makes the next load of a value panic. Tests check with it that panics are caught.

use ratelimit_language::Error;

use crate::server::{Call, Command, Keys, Reply, arm_load};

pub struct Panic;

impl Command for Panic {
    const NAME: &'static str = "PANIC";
    const SYNTAX: &'static str = "when";
    const SUMMARY: &'static str = "Panics on purpose";
    const COMPLEXITY: &'static str = "O(1)";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::None;

    #[allow(clippy::panic, reason = "the command panics on purpose")]
    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        if call.arguments(1).any(|word| word == b"LOAD") {
            arm_load();
            return Ok(Reply::Ok);
        }
        panic!("on purpose");
    }
}
