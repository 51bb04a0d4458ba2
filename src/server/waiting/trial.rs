//! A command that runs again while its caller waits.

use std::cell::Cell;

use ratelimit_core::line::Caller;
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::Turn;

/// A command that runs again while its caller waits.
pub struct Trial {
    pub caller: Caller,
    pub turn: Turn,
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
