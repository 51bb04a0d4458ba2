//! What the commands do, on a host that has keys, clocks and dice: the server, or memory.
//!
//! This file is the table of commands.
//!
//! - `command/` runs them, each from its arguments to its reply. `reply.rs` has the replies.
//! - `plan/` is what a call would do and why, and acting on it.
//! - `host.rs` has the trait of a host, `slot.rs` that of an open key; `memory/` is a host in memory.
//! - `key/` has a key of limits, how a call changes it, and the payload that its copies receive.
//! - `node.rs` has what belongs to a node and to no key: `settings.rs`; `policies/`, the limits that calls ask for by name; `waiting/`,
//!   the callers that wait; `count.rs` and `top.rs`, which count decisions; `record.rs`, the last calls of policies.

#![forbid(unsafe_code)]

pub mod command;
pub mod count;
pub mod host;
pub mod key;
pub mod memory;
pub mod node;
pub mod plan;
pub mod policies;
pub mod record;
pub mod reply;
pub mod settings;
pub mod slot;
pub mod top;
pub mod waiting;

/// The table: an array of `$Entry::of::<C>()` for each command `C`.
#[macro_export]
macro_rules! commands {
    ($Entry:ident) => {
        $crate::commands! { $Entry:
            // One for each row of the catalog of limiters.
            Limit<0> Limit<1> Limit<2> Limit<3> Limit<4> Limit<5> Limit<6> Limit<7> Limit<8> Limit<9> Limit<10>
            Sketch Shed Throttle CellThrottle
            Refund Settle Release Renew
            Multi MultiPeek MultiRefund MultiRelease MultiSettle
            Ask AskPeek AskRefund AskSettle Policy
            // These look, and change nothing.
            Peek Explain Info Top Help
            // What replicas and the AOF receive.
            Apply
        }
    };
    ($Entry:ident: $($Command:ident $(<$ROW:literal>)?)*) => {
        [$($Entry::of::<$crate::command::$Command$(<$ROW>)?>()),*]
    };
}

/// A row without its command does not compile.
const _: () = assert!(ratelimit_language::CATALOG.len() == 11);
