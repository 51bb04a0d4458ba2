//! A command that runs again while its caller waits.

use std::cell::Cell;

use ratelimit_core::line::Caller;

use crate::server::entry::reply::Reply;

/// Why a command runs again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// A caller is tried. It goes on waiting if it is refused.
    IsTried,
    /// A caller is tried for the last time, because its time has passed.
    Leaves,
    /// A caller leaves, and nothing may be written: the command only looks.
    Looks,
}

/// A command that runs again while its caller waits.
pub struct Trial {
    pub(super) caller: Caller,
    pub(super) turn: Turn,
    reply: Cell<Option<Reply>>,
}

impl Trial {
    pub(super) fn new(caller: Caller, turn: Turn) -> Trial {
        Trial { caller, turn, reply: Cell::new(None) }
    }

    /// Notes the reply.
    #[cold]
    #[inline(never)]
    pub fn end(&self, reply: Reply) {
        self.reply.set(Some(reply));
    }

    /// The reply; `None` if the command panicked.
    pub(super) fn into_reply(self) -> Option<Reply> {
        self.reply.into_inner()
    }
}
