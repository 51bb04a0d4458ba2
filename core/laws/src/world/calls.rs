//! Calls, and trying callers that wait.

use ratelimit_core::line::Caller;
use ratelimit_core::{Kind, Span, Time};
use ratelimit_engine::memory::{Called, Effect};
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::{OfDatabase, State};

use super::agreed::reply;
use super::draw::keys;
use super::state::{LATEST, MOMENT, World};
use super::told::{Told, retry_of};

/// How often the alarm rings at one instant at most.
const MOST_RINGS: usize = 2000;
/// The longest time within which a line does what is due.
const SOON: Span = Span::from_millis(2);

impl World {
    /// A client calls the primary.
    pub(super) fn call(&mut self, line: &str) -> Result<(), String> {
        let told = Told::of(line);
        let words: Vec<&[u8]> = told.words.iter().map(|word| word.as_bytes()).collect();
        self.beliefs.begin(&told, self.copies.primary());
        let is_checked = self.is_checked(16);
        let memory = self.copies.primary();
        let is_alone = memory.node().waiting.with(|State { lines, .. }| {
            let waits = |word: &&str| lines.at_key::<dyn OfDatabase>(&(0, word.as_bytes())) > 0;
            lines.hungry() == 0 && !told.words.iter().skip(1).any(waits)
        });
        // A call in a transaction does not wait, and is not explained so.
        let is_explained = is_checked && !(self.copies.primary().is_in_unit() && told.block.is_some());
        let is_usual = self.settings.are_usual() && !self.copies.primary().is_in_unit();
        self.fair_lines.begin(&told, self.copies.primary(), is_usual, !is_alone);
        if !told.is_look() {
            self.callers.touch(|key| told.names(key) || told.name == "FLUSHALL");
        }
        let looks = if is_explained { self.look(&told, is_alone)? } else { None };
        let memory = self.copies.primary();
        let before = is_checked.then(|| memory.all());
        let (now, steady, longest) = (memory.clock(), memory.now(), memory.node().settings.longest_block());
        let called = memory.call(&words);
        if let Some(looks) = looks {
            looks.agree(&called).map_err(|why| format!("{line}: {why}"))?;
            self.tally.reach("calls that were explained before", 1);
        }
        let fair = self.fair_lines.check(&told, &called, self.copies.primary());
        self.tally.reach(
            "calls that the model of fair lines decided too",
            usize::from(fair.map_err(|why| format!("{line}: {why}"))?),
        );
        match called {
            Called::Waits(caller) => {
                let deadline = told.block.filter(|_| told.name != "RL.ASK");
                let deadline = deadline.map(|block| steady.plus(block.min(longest)));
                self.callers.waiting.insert(caller, (line.into(), deadline));
                self.tally.reach("callers that waited", 1);
                if is_alone {
                    self.promise(&told, caller);
                    self.beliefs.waits(&told, now).map_err(|why| format!("{line}: {why}"))?;
                }
            }
            Called::Replied(Reply::Error(error)) => {
                self.tally.reach("errors", 1);
                self.check_kind(&told, &error.to_string())?;
                let effects = self.copies.collect();
                // What had expired goes all the same.
                if effects.iter().any(|effect| !matches!(effect, Effect::Gone(_))) {
                    return Err(format!("{line}: {error}, and it has sent {effects:?}"));
                }
                let is_changed =
                    effects.is_empty() && before.is_some_and(|before| before != self.copies.primary().all());
                if is_changed {
                    return Err(format!("{line}: {error}, and it has changed something"));
                }
            }
            Called::Replied(reply) => {
                self.copies.collect();
                self.tally.reach(if reply.is_admission() { "admitted" } else { "other replies" }, 1);
                self.check(&told, &reply, now, is_alone)?;
            }
        }
        if told.name == "RL.POLICY" && self.callers.len() > 0 {
            self.tally.reach("policies changed while callers wait", 1);
        }
        if ["RENAME", "COPY"].contains(&told.name) {
            self.tokens.rename(&told);
        }
        // A server finds by its periodic tasks only that a key has come, or expires at another time.
        self.is_unseen |= ["RENAME", "COPY", "PERSIST", "PEXPIREAT", "RL.POLICY"].contains(&told.name);
        Ok(())
    }

    fn check(&mut self, told: &Told<'_>, reply: &Reply, now: Time, is_alone: bool) -> Result<(), String> {
        let checked = self.beliefs.check(told, reply, now, is_alone);
        let is_checked = checked.map_err(|why| format!("{}: {why}", told.words.join(" ")))?;
        self.tally.reach("calls that a model decided too", usize::from(is_checked));
        let token =
            self.tokens.check(told, reply).map_err(|why| format!("{}: {why}", told.words.join(" ")))?;
        self.tally.reach("fencing tokens", usize::from(token));
        Ok(())
    }

    /// Limits are refused for no other limit of their key: only where a sketch or the amount of a shedder is, or the reverse.
    fn check_kind(&self, told: &Told<'_>, error: &str) -> Result<(), String> {
        let is_limits = |key: &&str| {
            let stored = self.copies.primary().stored(&(0, key.as_bytes()));
            let kind = stored.and_then(|(bytes, _)| Kind::from_byte(*bytes.first()?));
            kind.is_none_or(|kind| kind.is_limit() || kind == Kind::LimitSet)
        };
        let is_of_limits = !["RL.SHED", "RL.SKETCH"].contains(&told.name);
        let keys: Vec<&str> = keys().into_iter().filter(|key| told.names(key)).collect();
        if error.starts_with("WRONGTYPE") && is_of_limits && keys.iter().all(is_limits) {
            return Err(format!("{}: {error}, and its keys hold limits", told.words.join(" ")));
        }
        Ok(())
    }

    /// Lets time pass on all nodes. The primary's alarm rings whenever it is due.
    pub(super) fn pass(&mut self, span: Span) -> Result<(), String> {
        let end = self.copies.primary().now().plus(span);
        let mut rings = 0;
        while let Some(due) = self.copies.primary().next_ring().filter(|due| *due <= end) {
            let now = self.copies.primary().now();
            rings = if due > now { 0 } else { rings + 1 };
            if rings > MOST_RINGS {
                return Err(format!("the alarm rings again and again for {}", self.callers));
            }
            self.move_clocks(due.since(now));
            self.ring()?;
        }
        self.move_clocks(end.since(self.copies.primary().now()));
        self.callers.leave_in_time(end, MOMENT)?;
        self.callers.keep_promises(end, MOMENT)
    }

    /// Notes when a caller that waits alone is to be admitted.
    fn promise(&mut self, told: &Told<'_>, caller: Caller) {
        let memory = self.copies.primary();
        // Others may wait elsewhere, and take this limit when they are admitted.
        if self.callers.len() == 1
            && let Some(peek) = told.peek()
            && let Some(retry) = retry_of(&reply(memory, &peek))
        {
            self.callers.promises.insert(caller, (told.key().into(), memory.now().plus(retry)));
            self.tally.reach("callers that waited alone", 1);
        }
    }

    fn move_clocks(&self, span: Span) {
        for node in &self.copies.nodes {
            node.memory.set_clock(node.memory.clock().plus(span).min(LATEST));
            node.memory.pass(span);
        }
    }

    /// The alarm rings once. Returns how many callers were admitted, and how many waits ended.
    fn ring(&mut self) -> Result<[usize; 2], String> {
        let memory = self.copies.primary();
        let (now, steady) = (memory.clock(), memory.now());
        let (mut admitted, mut ended) = (0, 0);
        for (caller, reply) in memory.ring() {
            ended += 1;
            let (line, deadline) =
                self.callers.waiting.remove(&caller).ok_or("a reply to nobody who waits")?;
            if reply.is_admission() {
                admitted += 1;
            } else if let Some(deadline) = deadline
                && let Some(retry) = retry_of(&reply)
                && steady.plus(retry) <= deadline
            {
                let left = deadline.since(steady);
                return Err(format!(
                    "{line}: refused although it could be admitted in {retry:?}, with {left:?} left"
                ));
            }
            let told = Told::of(&line);
            self.beliefs.begin(&told, self.copies.primary());
            let fair = self.fair_lines.end(&told, caller, &reply, self.copies.primary());
            self.tally.reach(
                "waits that the model of fair lines ended too",
                usize::from(fair.map_err(|why| format!("{line}: {why}"))?),
            );
            self.check(&told, &reply, now, false)?;
        }
        self.tally.reach("callers that were admitted at last", admitted);
        self.send();
        Ok([admitted, ended])
    }

    pub(super) fn hang_up(&mut self, number: usize) {
        let number = number % self.callers.len().max(1);
        if let Some(caller) = self.callers.waiting.keys().nth(number).copied() {
            self.callers.waiting.remove(&caller);
            self.fair_lines.leave(caller);
            self.copies.primary().hang_up(caller);
            self.tally.reach("callers that left", 1);
        }
    }

    /// The periodic tasks of the primary.
    pub(super) fn cron(&mut self) -> Result<(), String> {
        if self.copies.primary().is_paused() {
            return Ok(());
        }
        self.copies.send_owed();
        let memory = self.copies.primary();
        memory.node().waiting.with(|state| {
            state.lines.end_hungers(memory.now());
            state.lines.nudge(32);
        });
        self.is_unseen = false;
        self.pass(Span::ZERO)
    }

    /// Tries all callers. If lines have done what was due, none is admitted.
    pub(super) fn try_all(&mut self) -> Result<(), String> {
        if self.copies.primary().is_paused() || self.callers.len() == 0 {
            return Ok(());
        }
        if self.is_unseen {
            self.cron()?;
        }
        self.pass(MOMENT)?;
        let memory = self.copies.primary();
        let soon = memory.now().plus(SOON);
        if memory.next_ring().is_some_and(|due| due <= soon) {
            return Ok(());
        }
        let (tenants, hungry) = memory.node().waiting.with(|State { lines, .. }| {
            let tenants = |key: &str| lines.count_tenants::<dyn OfDatabase>(&(0, key.as_bytes())).0 > 1;
            (keys().iter().filter(|key| tenants(key)).count(), lines.hungry())
        });
        // A caller of several limits may come back to a line when it is tried, where its tenant then counts with it instead of with its
        // hunger. So others have room that did not before.
        if hungry > 0 && self.callers.has_of_several() {
            return Ok(());
        }
        self.tally.reach("lines of several tenants", tenants);
        self.tally.reach("hungry tenants", hungry);
        self.tally.reach("callers that waited rightly", self.callers.len());
        self.fair_lines.is_at_rest(self.copies.primary())?;
        let text =
            |world: &World| world.copies.primary().node().waiting.with(|state| format!("{:?}", state.lines));
        let before = if self.is_thorough { text(self) } else { String::new() };
        let waiting = self.callers.to_string();
        let memory = self.copies.primary();
        memory.node().waiting.with(|state| state.lines.mark_all());
        for rings in 0.. {
            let memory = self.copies.primary();
            if memory.next_ring().is_none_or(|due| due > memory.now()) {
                break;
            }
            if rings > MOST_RINGS {
                return Err(format!("the alarm rings again and again for {}", self.callers));
            }
            match self.ring()? {
                [0, 0] => {}
                [admitted, ended] if admitted == ended => {
                    let left = &self.callers;
                    return Err(format!(
                        "one waited for what is admitted now: {waiting}; left are {left}; {before}"
                    ));
                }
                // One is refused now, because another limit has no room before its time has passed. It may have kept others off.
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}
