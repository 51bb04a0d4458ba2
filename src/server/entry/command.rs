//! What a command is: its documentation, its keys and the function that runs it.

use std::ops::Range;

use ratelimit_language::Error;
use ratelimit_language::help::Documentation;
use redis_module::raw::{
    REDISMODULE_CMD_KEY_ACCESS, REDISMODULE_CMD_KEY_DELETE, REDISMODULE_CMD_KEY_INSERT,
    REDISMODULE_CMD_KEY_RO, REDISMODULE_CMD_KEY_RW, REDISMODULE_CMD_KEY_UPDATE,
};

use super::call::Call;
use super::reply::Reply;

/// A command: its documentation and the function that runs it.
pub trait Command {
    const DOCUMENTATION: Documentation;
    /// As `RedisModule_CreateCommand` takes them.
    const FLAGS: &'static str;
    const KEYS: Keys;
    /// Whether equal calls on equal keys can get different replies: those that read the clock or random numbers.
    const VARIES: bool = true;

    fn run(call: &Call<'_>) -> Result<Reply, Error>;

    /// The places of the keys, if a call must be parsed to find them. For a malformed call, those that it has in any case:
    /// the command itself then returns the error.
    fn keys(call: &Call<'_>) -> [Range<usize>; 2] {
        [call.counted_keys(), 0..0]
    }
}

/// The arguments that are keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    None,
    /// The first argument.
    First(KeyUse),
    /// The first argument is the number of keys; the keys follow it.
    Counted(KeyUse),
    /// The first argument, and those behind the word `KEYS`.
    FirstAndBehind(KeyUse),
    /// Those of a call whose words are the arguments.
    OfInner(KeyUse),
    /// The first argument and every second one after it. Each key is overwritten.
    Pairs,
}

/// What a command does with a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    Read,
    /// Reads and changes it.
    Update,
    /// May delete it.
    Delete,
    /// Adds to it.
    Insert,
}

impl KeyUse {
    pub(super) const fn flags(self) -> u32 {
        match self {
            KeyUse::Read => REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS,
            KeyUse::Update => {
                REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE
            }
            KeyUse::Delete => REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_DELETE,
            KeyUse::Insert => REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT,
        }
    }
}
