//! What a command is.

use std::ops::Range;

use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, MOST_WORDS, PolicyCall, Purpose, WrongCall};

use crate::host::Host;
use crate::reply::Reply;

/// A command: its documentation, and the function that runs it on a host.
pub trait Command {
    const DOCUMENTATION: Documentation;

    fn run<H: Host>(call: &H) -> Result<Reply, Error>;

    /// The places of the keys, if a call must be parsed to find them. For a malformed call, those that it has in any case:
    /// the command itself then returns the error.
    fn keys<H: Host>(call: &H) -> [Range<usize>; 2] {
        [call.counted_keys(), 0..0]
    }
}

/// The error that a call replies.
#[cold]
pub fn told(call: &impl Host, command: &Documentation, error: Error) -> Error {
    let words: Vec<&[u8]> = call.arguments(1).take(MOST_WORDS + 1).collect();
    let bounds = call.node().settings.bounds();
    let asks = |name: &[u8], asked: &PolicyCall<'_>, purpose: Purpose| {
        let stored = call.node().policies().get(name);
        stored.is_some_and(|stored| stored.policy.parts(name, asked, purpose).is_ok())
    };
    ratelimit_language::told(error, &WrongCall { command, words: &words, bounds, asks: &asks })
}
