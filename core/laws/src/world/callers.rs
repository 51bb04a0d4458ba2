//! The callers that wait, and what they were told.

use std::collections::BTreeMap;
use std::fmt;

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};
use ratelimit_engine::memory::Memory;

/// The callers that wait at the primary, with their calls and when they give up.
#[derive(Default)]
pub(super) struct Callers {
    pub(super) waiting: BTreeMap<Caller, (String, Option<Time>)>,
    /// Those that waited alone, with the key, and when its limit has room if nothing touches it until then.
    pub(super) promises: BTreeMap<Caller, (String, Time)>,
}

impl Callers {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.promises.clear();
    }

    /// Whether any waits for several limits.
    pub(super) fn has_of_several(&self) -> bool {
        self.waiting
            .values()
            .any(|(line, _)| ["RL.MULTI", "RL.ASK"].iter().any(|name| line.starts_with(name)))
    }

    /// Something has touched this key, or any.
    pub(super) fn touch(&mut self, is_touched: impl Fn(&str) -> bool) {
        self.promises.retain(|_, (key, _)| !is_touched(key));
    }

    /// Checks that no one waits beyond its time.
    pub(super) fn leave_in_time(&self, now: Time, moment: Span) -> Result<(), String> {
        let is_late = |deadline: &Time| deadline.plus(moment) < now;
        let late = self.waiting.values().find(|(_, deadline)| deadline.as_ref().is_some_and(is_late));
        late.map_or(Ok(()), |(line, _)| Err(format!("{line}: it waits beyond its time")))
    }

    /// Checks that no one waits for longer than a look returned, although its key was left alone.
    pub(super) fn keep_promises(&mut self, now: Time, moment: Span) -> Result<(), String> {
        while let Some((caller, (_, at))) = self.promises.iter().find(|(_, (_, at))| at.plus(moment) <= now) {
            let (caller, at) = (*caller, *at);
            self.promises.remove(&caller);
            if let Some((line, deadline)) = self.waiting.get(&caller)
                && deadline.is_none_or(|deadline| deadline > at.plus(moment))
            {
                return Err(format!("{line}: its limit had room {:?} ago", now.since(at)));
            }
        }
        Ok(())
    }

    /// The node has as many.
    pub(super) fn count(&self, memory: &Memory) -> Result<(), String> {
        let [waiting, ..] = memory.node().waiting.counts();
        if waiting == self.len() as u64 { Ok(()) } else { Err(format!("{waiting} callers wait: {self}")) }
    }
}

impl fmt::Display for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.waiting.values().try_for_each(|(line, _)| write!(f, "{line}; "))
    }
}
