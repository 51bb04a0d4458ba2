//! Calls on a node in memory, in the forms in which the tests of a server read replies.

use ratelimit_engine::memory::{Called, Memory};
use redis::Value;

use super::{as_read, on_memory};
use crate::support::{integers, simple};

/// Calls a line of words, as typed into redis-cli; `Err` is the line of the error.
pub fn call(memory: &Memory, line: &str) -> Result<Value, String> {
    match on_memory(memory, line) {
        Called::Replied(reply) => as_read(&reply),
        Called::Waits(caller) => panic!("{line}: caller {caller} waits"),
    }
}

/// Any reply but an error, as `crate::support::text`.
pub fn text(memory: &Memory, line: &str) -> String {
    simple(&call(memory, line).unwrap_or_else(|error| panic!("{line}: {error}")))
}

/// The integers of a reply.
pub fn ints(memory: &Memory, line: &str) -> Vec<i64> {
    integers(line, &call(memory, line).unwrap_or_else(|error| panic!("{line}: {error}")))
}

/// The bytes of a key and its expiry; `None` if it is missing.
pub fn stored(memory: &Memory, key: &str) -> Option<(Vec<u8>, Option<u64>)> {
    let mut keys = memory.dump().into_iter();
    keys.find(|(name, ..)| *name.name == *key.as_bytes()).map(|(_, bytes, expiry)| (bytes, expiry))
}
