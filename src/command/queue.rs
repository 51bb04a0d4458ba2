//! `RL.XADD key maxlen id field value [field value ...]`, `RL.LPUSH` and `RL.RPUSH key maxlen element [element ...]`:
//! add to a stream or a list, unless it would then hold more than `maxlen` entries.
//!
//! The stream or list is a bounded queue. Its consumers make room, and an entry that does not fit is refused. The
//! server's own command adds to it, so any other command works on it too.

use std::ffi::CStr;

use ratelimit_engine::count::{Counter, Outcome};
use ratelimit_engine::host::Host;
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;

use crate::server::{Call, Command, Queue, queue_length};

pub struct XAdd;
pub struct LPush;
pub struct RPush;

/// The places of the key, and of the first argument after `maxlen`.
const KEY: usize = 1;
const REST: usize = 3;

impl Command for XAdd {
    const DOCUMENTATION: Documentation = docs::XADD;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        // In place of the id, the server would accept an option of `XADD`, such as another bound on the length.
        if call.arguments(REST).next().is_some_and(|word| !may_be_id(word)) {
            return Err(Error::StreamId);
        }
        let pairs = call.len().saturating_sub(REST + 1);
        if pairs == 0 || !pairs.is_multiple_of(2) {
            return Err(Error::absent("value"));
        }
        add(call, c"XADD", Queue::Stream, 1, Counter::XAdd)
    }
}

impl Command for LPush {
    const DOCUMENTATION: Documentation = docs::LPUSH;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        push(call, c"LPUSH", Counter::LPush)
    }
}

impl Command for RPush {
    const DOCUMENTATION: Documentation = docs::RPUSH;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        push(call, c"RPUSH", Counter::RPush)
    }
}

fn push(call: &Call<'_>, command: &CStr, counter: Counter) -> Result<Reply, Error> {
    match call.len().saturating_sub(REST) {
        0 => Err(Error::absent("element")),
        elements => add(call, command, Queue::List, elements as u64, counter),
    }
}

/// Adds all entries or none. Returns the reply of the server's own command, or nil if the entries do not fit.
fn add(
    call: &Call<'_>,
    command: &CStr,
    queue: Queue,
    entries: u64,
    counter: Counter,
) -> Result<Reply, Error> {
    let longest: u64 = call.parse(KEY + 1..REST, |arguments| arguments.read(docs::MAXLEN))?;
    if queue_length(call, KEY, queue)?.saturating_add(entries) > longest {
        call.record(KEY, counter, Outcome::Refused);
        return Ok(Reply::Null);
    }
    let reply = call.forward(command, KEY, REST)?;
    if !reply.is_error() {
        call.record(KEY, counter, Outcome::Admitted);
    }
    Ok(call.pass_on(&reply))
}

/// Returns whether a word has the form of a new entry's id: `*`, `1700000000000`, `1700000000000-1` or
/// `1700000000000-*`.
fn may_be_id(word: &[u8]) -> bool {
    let number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let mut parts = word.splitn(2, |byte| *byte == b'-');
    match (parts.next(), parts.next()) {
        (Some(b"*"), None) => true,
        (Some(millis), None | Some(b"*")) => number(millis),
        (Some(millis), Some(sequence)) => number(millis) && number(sequence),
        (None, _) => false,
    }
}
