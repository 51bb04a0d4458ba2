//! What the engine needs to try callers that wait.

use ratelimit_core::Time;
use ratelimit_core::line::Caller;
use ratelimit_value::Value;

use super::{Turn, WaitedKey};
use crate::node::Node;
use crate::reply::Reply;

/// The clients that wait on a node, and what lies around them when the alarm rings.
pub trait Clients {
    fn node(&self) -> &Node;

    fn clock(&self) -> Time;

    /// The instant on a clock that is never set back.
    fn now(&self) -> Time;

    /// Whether the node may write now. If not, callers whose time has passed leave all the same.
    fn may_write(&self) -> bool;

    /// Runs the call of a caller again. `None` if it cannot be tried now.
    fn run(&self, caller: Caller, turn: Turn) -> Option<Reply>;

    /// Ends the wait of a caller with this reply. It has left the lines.
    fn end(&self, caller: Caller, reply: Reply);

    /// Passes the value of a key; `None` if the key is missing or of another type. The key does not expire, and what `look` changes
    /// is not sent to copies.
    fn value_of<T>(&self, key: &WaitedKey, look: impl FnOnce(Option<&mut Value>) -> T) -> T;
}
