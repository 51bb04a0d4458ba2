//! What there is: every limiter by its name, and every kind of state.

use super::words::{Manner, Request, Words, is};
use super::{
    AlignedWindow, BatchBucket, Bursty, Concurrent, Error, FixedWindow, Gcra, LeakyBucket, SlidingBuckets,
    SlidingLog, SlidingWindow, TokenBucket, Uniform, Warming, concurrent, fixed_window, gcra, leaky_bucket,
    sliding_log, sliding_window, smooth, token_bucket, uniform,
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
    pub allows: Allows,
    pub parse: for<'a> fn(&mut Words<'_, 'a>, &mut Request) -> Result<AnyLimiter<'a>, Error>,
}

/// What a limiter can do beside admitting and refusing.
#[derive(Clone, Copy)]
pub struct Allows {
    /// Charge what does not fit, and give back what was charged.
    pub debt: bool,
    partial: bool,
    reserve: bool,
}

const NOTHING: Allows = Allows { debt: false, partial: false, reserve: false };
const DEBT: Allows = Allows { debt: true, partial: true, reserve: false };

impl Allows {
    pub fn manner(self, manner: Manner) -> bool {
        match manner {
            Manner::Strict => true,
            Manner::Partial => self.partial,
            Manner::Force => self.debt,
            Manner::Reserve { .. } => self.reserve,
        }
    }
}

/// Every limiter, once.
pub const CATALOG: [Row; 9] = [
    Row {
        name: "TOKENBUCKET",
        syntax: "key capacity refill period [BATCH] [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]]",
        summary: "Takes tokens from a bucket that is refilled at a steady rate",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        allows: Allows { reserve: true, ..DEBT },
        parse: token_bucket::parse,
    },
    Row {
        name: "LEAKYBUCKET",
        syntax: "key capacity leak period [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Queues in a bucket that drains at a steady rate, and tells the wait",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        allows: DEBT,
        parse: leaky_bucket::parse,
    },
    Row {
        name: "GCRA",
        syntax: "key max_burst count period [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]]",
        summary: "Limits a rate by the generic cell rate algorithm",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        allows: Allows { reserve: true, ..DEBT },
        parse: gcra::parse,
    },
    Row {
        name: "FIXEDWINDOW",
        syntax: "key limit window [ALIGNED] [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Limits a count over windows that follow one another",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        allows: DEBT,
        parse: fixed_window::parse,
    },
    Row {
        name: "SLIDINGWINDOW",
        syntax: "key limit window [PRECISION precision] [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Limits a count over a window that slides with the clock",
        complexity: "O(1), with PRECISION O(N) where N is the number of sub-buckets in use",
        flags: "write deny-oom",
        allows: DEBT,
        parse: sliding_window::parse,
    },
    Row {
        name: "SLIDINGLOG",
        syntax: "key limit window [GAP gap] [COUNTREFUSED] [COST cost] [AT at] [PARTIAL | FORCE]",
        summary: "Limits a count over any window, exactly, by a log of requests",
        complexity: "O(log(N)) where N is the number of entries in the log, and O(N/64) when the clock was set back",
        flags: "write deny-oom",
        allows: DEBT,
        parse: sliding_log::parse,
    },
    Row {
        name: "UNIFORM",
        syntax: "key interval [COST cost] [AT at] [FORCE | RESERVE [MAXWAIT maxwait]]",
        summary: "Admits one request per interval",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        allows: Allows { partial: false, reserve: true, ..DEBT },
        parse: uniform::parse,
    },
    Row {
        name: "SMOOTH",
        syntax: "key permits period [BURST burst | WARMUP warmup [COLDFACTOR factor]] [MAXWAIT maxwait] [COST cost] [AT at]",
        summary: "Spaces requests as Guava's RateLimiter does, and tells the wait",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        allows: NOTHING,
        parse: smooth::parse,
    },
    Row {
        name: "CONCURRENT",
        syntax: "key capacity ttl id [RESERVED reserved] [CRITICAL] [COST cost] [AT at]",
        summary: "Takes or renews a lease, of which so many may be held at once",
        complexity: "O(log(N)) where N is the number of leases, and O(N/64) after many of them ended at once",
        flags: "write deny-oom",
        allows: NOTHING,
        parse: concurrent::parse,
    },
];

/// The row of a limiter's name, case-insensitive.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    const ROWS: &[Row] = &CATALOG;
    ROWS.iter().find(|row| is(name, row.name))
}

/// A state that can be kept among those of other kinds.
pub trait Kept: Sized {
    fn of(any: &AnyState) -> Option<&Self>;
    fn of_mut(any: &mut AnyState) -> Option<&mut Self>;
    fn kept(self) -> AnyState;
}

/// From one table: `AnyLimiter`, a parsed limiter of any kind; `Kind`, what a key holds; and what takes each apart
/// again, by running the same code for every type.
macro_rules! kinds {
    ($dollar:tt $($number:literal $State:ident $(of $Limiter:ident $(<$life:lifetime>)?)?: $title:expr;)*) => {
        /// A parsed limiter of any kind.
        pub enum AnyLimiter<'a> {
            $($($Limiter($Limiter $(<$life>)?),)?)*
        }

        /// What a key holds.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Kind {
            $($State = $number,)*
        }

        impl Kind {
            pub fn from_byte(byte: u8) -> Option<Kind> {
                match byte {
                    $($number => Some(Kind::$State),)*
                    _ => None,
                }
            }

            /// The limiter whose state it is, and its mode, as `RL.INFO` tells them.
            pub fn title(self) -> (&'static str, &'static str) {
                match self {
                    $(Kind::$State => $title,)*
                }
            }
        }

        /// A state of any kind.
        #[derive(Debug)]
        pub enum AnyState {
            $($State(Box<$crate::limit::$State>),)*
        }

        $(
            impl Kept for $crate::limit::$State {
                fn of(any: &AnyState) -> Option<&Self> {
                    if let AnyState::$State(state) = any { Some(state) } else { None }
                }

                fn of_mut(any: &mut AnyState) -> Option<&mut Self> {
                    if let AnyState::$State(state) = any { Some(state) } else { None }
                }

                fn kept(self) -> AnyState {
                    AnyState::$State(Box::new(self))
                }
            }
        )*

        /// Runs the body with the name bound to the box of the state inside, of its own type.
        macro_rules! with_kept {
            ($dollar any:expr, $dollar state:ident => $dollar body:expr) => {
                match $dollar any {
                    $($crate::limit::AnyState::$State($dollar state) => $dollar body,)*
                }
            };
        }

        /// Runs the body with the name bound to the limiter inside, of its own type.
        macro_rules! with_limiter {
            ($dollar any:expr, $dollar limiter:ident => $dollar body:expr) => {
                match $dollar any {
                    $($($crate::limit::AnyLimiter::$Limiter($dollar limiter) => $dollar body,)?)*
                }
            };
        }

        /// Runs the body with the name standing for the type of state of this kind.
        macro_rules! with_state {
            ($dollar kind:expr, $dollar Type:ident => $dollar body:expr) => {
                match $dollar kind {
                    $($crate::limit::Kind::$State => {
                        type $dollar Type = $crate::limit::$State;
                        $dollar body
                    })*
                }
            };
        }
    };
}

// The numbers are part of the encoding: never change or reuse one.
kinds! { $
    1 Level of TokenBucket: ("TOKENBUCKET", "continuous");
    2 Batch of BatchBucket: ("TOKENBUCKET", "batch");
    3 Arrival of Gcra: ("GCRA", "plain");
    4 Counts of SlidingWindow: ("SLIDINGWINDOW", "weighted");
    5 Buckets of SlidingBuckets: ("SLIDINGWINDOW", "precision");
    6 Leases of Concurrent<'a>: ("CONCURRENT", "leases");
    7 Water of LeakyBucket: ("LEAKYBUCKET", "queue");
    8 Opened of FixedWindow: ("FIXEDWINDOW", "opened");
    9 Tally of AlignedWindow: ("FIXEDWINDOW", "aligned");
    10 Gate of Uniform: ("UNIFORM", "gate");
    11 Amount: ("SHED", "utilization");
    12 BurstStore of Bursty: ("SMOOTH", "bursty");
    13 WarmStore of Warming: ("SMOOTH", "warming");
    14 Log of SlidingLog: ("SLIDINGLOG", "log");
    15 Several: ("MULTI", "several");
}

#[allow(clippy::single_component_path_imports, reason = "gives macros that a macro made a path")]
pub(crate) use {with_kept, with_limiter, with_state};
