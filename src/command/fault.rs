//! `RL.PANIC NOW | LOAD | SAVE | RIVAL key | TWICE key`: faults, for tests that check that the server survives them.

use ratelimit_engine::host::Host;
use ratelimit_engine::key::Key;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::slot::Access;
use ratelimit_language::help::{Documentation, OWN_PREFIX};
use ratelimit_language::{Error, Keys};

use crate::server::{Call, Command, arm_load, arm_save, delete_on_events};

pub struct Panic;

impl Command for Panic {
    const DOCUMENTATION: Documentation = Documentation {
        prefix: OWN_PREFIX,
        name: "PANIC",
        syntax: "when [key]",
        summary: "Panics on purpose",
        complexity: "O(1)",
        arguments: &[],
        reply: &[],
        example: "",
        flags: "readonly",
        keys: Keys::None,
        varies: true,
    };

    #[allow(clippy::panic, reason = "the command panics on purpose")]
    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let words: Vec<&[u8]> = call.arguments(1).collect();
        match words.as_slice() {
            [b"LOAD"] => arm_load(),
            // The next save of the policies dies in the middle of the file.
            [b"SAVE"] => arm_save(),
            // Acts as a module that deletes the key while another one is opened.
            [b"RIVAL", victim] => delete_on_events(call, victim),
            // Two references to one value.
            [b"TWICE", _] => {
                let _key = Key::open(call, 2, Access::Read)?;
                Key::open(call, 2, Access::Read)?;
            }
            _ => panic!("on purpose"),
        }
        Ok(Reply::Ok)
    }
}
