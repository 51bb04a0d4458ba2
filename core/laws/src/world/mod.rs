//! A world in memory: a primary, its copies, its log, its clock and its clients, to which all happens that can go wrong.
//!
//! The nodes are the engine's hosts in memory, so their commands are those of the module. Everything is drawn from one seed. A
//! failure prints a history of [events](event::Event), which was shortened, and which runs again as a test.
//!
//! - `draw.rs` draws what happens next, `event.rs` has the events; `state.rs` has the world, and `run.rs` lets an event happen.
//! - `calls.rs` makes calls, and tries those that wait; `callers.rs` has them. `believed.rs` and `fair_lines.rs` have models of keys, `tokens.rs` knows the fencing tokens, and `agreed.rs` compares a call with looks.
//! - `copies.rs` sends effects to copies and the log, and compares nodes. `settings.rs` has what an operator changes.
//! - `shorten.rs` runs whole histories and shortens those that fail. `broken_once.rs` has those that failed once. `tally.rs` counts.
//!
//! # What is checked
//!
//! | law | when |
//! |---|---|
//! | a limit admits what its model admits, and leaves what its model leaves | each call on a key that has one |
//! | at most as many leases are held as the limit allows; a lease is held once | the same |
//! | a hold is settled or expires once | the same, by the model |
//! | a later lease of a key has a greater fencing token, also after a failover or a crash, unless a clock is behind | each call with `FENCE` |
//! | a copy that has all effects has the same bytes and expiry | after each delivery, for the keys that were sent |
//! | all nodes, a full copy and the log are the same | when all is quiet |
//! | no caller waits for what would be admitted now | `try`: all callers are tried once more, and none is admitted |
//! | who waits alone is admitted at the instant that a look returned | each span of time, unless something has touched its key |
//! | no caller waits beyond its time, or is refused before it | each span of time |
//! | each caller is served when all others have gone | the end of a history |
//! | `RL.EXPLAIN` and the looks say what the call then does | one call in sixteen |
//! | an error changes nothing and sends nothing | each error; the bytes one time in sixteen |

#![allow(clippy::indexing_slicing, reason = "the nodes of a world and its tables of calls do not change")]

mod agreed;
mod believed;
mod broken_once;
mod callers;
mod calls;
mod copies;
mod draw;
mod event;
mod fair_lines;
mod run;
mod settings;
mod shorten;
mod state;
mod tally;
mod tokens;
mod told;

pub use broken_once::BROKEN_ONCE;
pub use event::Event;
pub use shorten::{Failure, replay, simulate};
pub use tally::Tally;
