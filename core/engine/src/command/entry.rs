//! What a command is.

use std::ops::Range;

use ratelimit_language::Error;
use ratelimit_language::help::Documentation;

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
