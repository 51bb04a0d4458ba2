//! What there is: every limiter by its name, and every kind of state.

use super::words::{Request, Words, is};
use super::{
    BatchBucket, Concurrent, Error, Gcra, SlidingBuckets, SlidingWindow, TokenBucket, concurrent, gcra,
    sliding_window, token_bucket,
};

/// A limiter as callers know it.
pub struct Row {
    /// The command is `RL.` and this.
    pub name: &'static str,
    pub syntax: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    /// What the server should know; `fast` only where a call is O(1) whatever its options.
    pub flags: &'static str,
    pub parse: for<'a> fn(&mut Words<'_, 'a>, &mut Request) -> Result<AnyLimiter<'a>, Error>,
}

/// Every limiter, once.
pub const CATALOG: [Row; 4] = [
    Row {
        name: "TOKENBUCKET",
        syntax: "key capacity refill period [BATCH] [COST cost] [AT at]",
        summary: "Takes tokens from a bucket that is refilled at a steady rate",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: token_bucket::parse,
    },
    Row {
        name: "GCRA",
        syntax: "key max_burst count period [COST cost] [AT at]",
        summary: "Limits a rate by the generic cell rate algorithm",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: gcra::parse,
    },
    Row {
        name: "SLIDINGWINDOW",
        syntax: "key limit window [PRECISION precision] [COST cost] [AT at]",
        summary: "Limits a count over a window that slides with the clock",
        complexity: "O(1), with PRECISION O(N) where N is the number of sub-buckets in use",
        flags: "write deny-oom",
        parse: sliding_window::parse,
    },
    Row {
        name: "CONCURRENT",
        syntax: "key capacity ttl id [RESERVED reserved] [CRITICAL] [COST cost] [AT at]",
        summary: "Takes or renews a lease, of which so many may be held at once",
        complexity: "O(log(N)) where N is the number of leases, and O(N/64) after many of them ended at once",
        flags: "write deny-oom",
        parse: concurrent::parse,
    },
];

/// The row of a limiter's name, case-insensitive.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    const ROWS: &[Row] = &CATALOG;
    ROWS.iter().find(|row| is(name, row.name))
}

/// A parsed limiter of any kind. `with_limiter!` takes it apart again.
pub enum AnyLimiter<'a> {
    TokenBucket(TokenBucket),
    BatchBucket(BatchBucket),
    Gcra(Gcra),
    SlidingWindow(SlidingWindow),
    SlidingBuckets(SlidingBuckets),
    Concurrent(Concurrent<'a>),
}

/// Runs `$body` with `$limiter` bound to the limiter inside, of its own type.
#[macro_export]
macro_rules! with_limiter {
    ($any:expr, $limiter:ident => $body:expr) => {
        match $any {
            $crate::limit::AnyLimiter::TokenBucket($limiter) => $body,
            $crate::limit::AnyLimiter::BatchBucket($limiter) => $body,
            $crate::limit::AnyLimiter::Gcra($limiter) => $body,
            $crate::limit::AnyLimiter::SlidingWindow($limiter) => $body,
            $crate::limit::AnyLimiter::SlidingBuckets($limiter) => $body,
            $crate::limit::AnyLimiter::Concurrent($limiter) => $body,
        }
    };
}

/// What a key holds. The numbers are part of the encoding: never change or reuse one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Level = 1,
    Batch = 2,
    Arrival = 3,
    Counts = 4,
    Buckets = 5,
    Leases = 6,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Option<Kind> {
        let kinds = [Kind::Level, Kind::Batch, Kind::Arrival, Kind::Counts, Kind::Buckets, Kind::Leases];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The limiter whose state it is, and its mode, as `RL.INFO` tells them.
    pub fn title(self) -> (&'static str, &'static str) {
        match self {
            Kind::Level => ("TOKENBUCKET", "continuous"),
            Kind::Batch => ("TOKENBUCKET", "batch"),
            Kind::Arrival => ("GCRA", "plain"),
            Kind::Counts => ("SLIDINGWINDOW", "weighted"),
            Kind::Buckets => ("SLIDINGWINDOW", "precision"),
            Kind::Leases => ("CONCURRENT", "leases"),
        }
    }
}

/// Runs `$body` with `$State` standing for the type of state of this kind.
#[macro_export]
macro_rules! with_state {
    ($kind:expr, $State:ident => $body:expr) => {{
        macro_rules! run {
            ($type:ty) => {{
                type $State = $type;
                $body
            }};
        }
        match $kind {
            $crate::limit::Kind::Level => run!($crate::limit::Level),
            $crate::limit::Kind::Batch => run!($crate::limit::Batch),
            $crate::limit::Kind::Arrival => run!($crate::limit::Arrival),
            $crate::limit::Kind::Counts => run!($crate::limit::Counts),
            $crate::limit::Kind::Buckets => run!($crate::limit::Buckets),
            $crate::limit::Kind::Leases => run!($crate::limit::Leases),
        }
    }};
}
