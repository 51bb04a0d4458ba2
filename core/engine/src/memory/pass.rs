//! How time passes on a node in memory: its alarm rings at each instant at which it would ring on a server.

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};

use super::state::Memory;
use crate::reply::Reply;

/// A caller whose wait has ended.
pub struct Ended {
    pub caller: Caller,
    pub reply: Reply,
    /// When, on the clock that is never set back.
    pub at: Time,
}

/// How often the alarm rings at one instant at most. Each time it serves the callers that are due, a few dozen at once. A node
/// that may not write serves none, so its alarm would never end.
const MOST_RINGS: usize = 1000;

impl Memory {
    /// Moves both clocks forward, and tries callers whenever they are due.
    pub fn advance(&self, span: Span) -> Vec<Ended> {
        let end = self.now().plus(span);
        let mut ended = Vec::new();
        let mut rings = 0;
        while let Some(due) = self.next_ring().filter(|due| *due <= end)
            && rings < MOST_RINGS
        {
            rings = if due > self.now() { 1 } else { rings + 1 };
            self.move_both(due.since(self.now()));
            let at = self.now();
            ended.extend(self.ring().into_iter().map(|(caller, reply)| Ended { caller, reply, at }));
        }
        self.move_both(end.since(self.now()));
        ended
    }

    fn move_both(&self, span: Span) {
        self.set_clock(self.clock.get().plus(span));
        self.pass(span);
    }
}
