//! The commands. Each parses its arguments, opens its keys, decides, changes the keys, and replies.

mod apply;
mod ask;
mod entry;
mod explain;
mod help;
mod holding;
mod info;
mod lease;
mod limit;
mod multi;
mod peek;
mod policy;
mod refund;
mod settle;
mod shed;
mod sketch;
mod throttle;
mod top;

pub use apply::Apply;
pub use ask::{Ask, AskPeek, AskRefund, AskSettle};
pub use entry::{Command, told};
pub use explain::Explain;
pub use help::Help;
pub use info::Info;
pub use lease::{MultiRelease, Release, Renew};
pub use limit::Limit;
pub use multi::{Multi, MultiPeek, MultiRefund};
pub use peek::Peek;
pub use policy::Policy;
pub(crate) use policy::limit_and_counts;
pub use refund::Refund;
pub use settle::{MultiSettle, Settle};
pub use shed::Shed;
pub use sketch::Sketch;
pub use throttle::{CellThrottle, Throttle};
pub use top::Top;
