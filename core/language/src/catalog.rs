//! The catalog: a row for every limiter.

use ratelimit_core::AnyLimiter;

use crate::arguments::{Arguments, is};
use crate::error::Error;
use crate::limiters;
use crate::request::Request;

/// A limiter's command.
pub struct Row {
    /// The command's name without the prefix `RL.`.
    pub name: &'static str,
    pub syntax: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    /// The command's flags in the server. It is `fast` if every call is O(1), with any options.
    pub flags: &'static str,
    /// Parses the arguments after the key. The options that all limiters share go into the [`Request`].
    pub parse: for<'a> fn(&mut Arguments<'_, 'a>, &mut Request) -> Result<AnyLimiter<'a>, Error>,
}

/// Every limiter, once.
pub const CATALOG: [Row; 9] = [
    Row {
        name: "TOKENBUCKET",
        syntax: "key capacity refill period [BATCH] [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]]",
        summary: "Takes tokens from a bucket that is refilled at a steady rate",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: limiters::token_bucket,
    },
    Row {
        name: "LEAKYBUCKET",
        syntax: "key capacity leak period [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Queues requests in a bucket that drains at a steady rate, and replies the wait",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: limiters::leaky_bucket,
    },
    Row {
        name: "GCRA",
        syntax: "key max_burst count period [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]]",
        summary: "Limits a rate by the generic cell rate algorithm",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: limiters::gcra,
    },
    Row {
        name: "FIXEDWINDOW",
        syntax: "key limit window [ALIGNED] [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Limits a count over windows that follow one another",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: limiters::fixed_window,
    },
    Row {
        name: "SLIDINGWINDOW",
        syntax: "key limit window [PRECISION precision] [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Limits a count over a window that slides with the clock",
        complexity: "O(1), with PRECISION O(N) where N is the number of sub-buckets in use",
        flags: "write deny-oom",
        parse: limiters::sliding_window,
    },
    Row {
        name: "SLIDINGLOG",
        syntax: "key limit window [GAP gap] [COUNTREFUSED] [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Limits a count over any window exactly, with a log of requests",
        complexity: "O(log(N)) where N is the number of entries in the log",
        flags: "write deny-oom",
        parse: limiters::sliding_log,
    },
    Row {
        name: "UNIFORM",
        syntax: "key interval [COST cost] [AT at] [FORCE | RESERVE [MAXWAIT maxwait]]",
        summary: "Admits one request per interval",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: limiters::uniform,
    },
    Row {
        name: "SMOOTH",
        syntax: "key permits period [BURST burst | WARMUP warmup [COLDFACTOR factor]] [MAXWAIT maxwait] [COST cost] [AT at]",
        summary: "Spaces requests as Guava's RateLimiter does, and replies the wait",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: limiters::smooth,
    },
    Row {
        name: "CONCURRENT",
        syntax: "key capacity ttl id [RESERVED reserved] [CRITICAL] [COST cost] [AT at]",
        summary: "Takes or renews one of a bounded number of leases",
        complexity: "O(log(N)) where N is the number of leases",
        flags: "write deny-oom",
        parse: limiters::concurrent,
    },
];

/// The row of the limiter of this name, in upper or lower case.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    const ROWS: &[Row] = &CATALOG;
    ROWS.iter().find(|row| is(name, row.name))
}
