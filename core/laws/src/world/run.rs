//! What an event does to a world, and how a history ends.

use ratelimit_core::Span;
use ratelimit_engine::waiting::{OfDatabase, State};

use super::draw::keys;
use super::event::{Event, NODES};
use super::state::{EARLIEST, LATEST, World};
use super::told::Told;

impl World {
    pub(super) fn run(&mut self, event: &Event) -> Result<(), String> {
        self.tally.event(event.name());
        if matches!(event, Event::Expire | Event::Pause(_) | Event::Step(..) | Event::Set(..)) {
            self.callers.touch(|_| true);
        }
        match event {
            Event::Call(line) if self.copies.primary().is_paused() && Told::of(line).is_look() => {
                self.call(line)?;
                if self.copies.send() > 0 {
                    return Err(format!("{line}: it has sent something during a pause"));
                }
            }
            // The server holds up what else clients send during a pause.
            Event::Call(_) | Event::Unit(_) | Event::Expire | Event::Evict(_)
                if self.copies.primary().is_paused() => {}
            Event::Call(line) => {
                self.call(line)?;
                self.send();
            }
            Event::Unit(lines) => {
                self.copies.primary().set_in_unit(true);
                let called = lines.iter().try_for_each(|line| self.call(line));
                self.copies.primary().set_in_unit(false);
                self.send();
                called?;
            }
            Event::Pass(micros) => self.pass(Span::from_micros(*micros))?,
            Event::Step(node, micros) => self.step(node % NODES, *micros),
            Event::HangUp(caller) => self.hang_up(*caller),
            Event::Deliver(node, most) => {
                let count = self.copies.deliver(node % NODES, *most)?;
                self.tally.reach("units applied by copies", count);
            }
            Event::Cut(node) => self.copies.cut(node % NODES),
            Event::Join(node) => {
                let is_full = self.copies.join(node % NODES)?;
                self.tally.reach("full copies", usize::from(is_full));
            }
            Event::Broken(node) => self.copies.break_off(node % NODES, node / NODES > 0)?,
            Event::Promote(node) => self.promote(node % NODES),
            Event::Crash(missing) => self.crash(*missing)?,
            Event::Rewrite(with_policies) => self.copies.rewrite(*with_policies),
            Event::Expire => {
                self.copies.primary().expire_all();
                self.send();
            }
            Event::Evict(key) => self.evict(*key),
            Event::Pause(paused) => self.copies.primary().pause(*paused),
            Event::Set(name, value) => {
                self.fair_lines.forget();
                let nodes = self.copies.nodes.iter().map(|node| &node.memory);
                self.settings.change(name, *value, nodes);
                // A server tries callers anew only by its periodic tasks.
                self.is_unseen = true;
            }
            Event::Cron => self.cron()?,
            Event::Try => self.try_all()?,
            Event::Quiet => self.copies.quiet(&self.settings)?,
        }
        self.callers.count(self.copies.primary())
    }

    pub(super) fn send(&mut self) {
        let count = self.copies.send();
        self.tally.reach("effects", count);
    }

    fn evict(&mut self, key: usize) {
        let keys = keys();
        let name = keys[key % keys.len()];
        self.copies.primary().delete(&(0, name.as_bytes()));
        self.beliefs.forget_key(name);
        self.fair_lines.forget_key(name);
        self.callers.touch(|key| key == name);
        self.send();
    }

    /// Sets the wall clock of a node.
    fn step(&mut self, node: usize, micros: i64) {
        let memory = &self.copies.nodes[node].memory;
        let (clock, span) = (memory.clock(), Span::from_micros(micros.unsigned_abs()));
        let set = if micros < 0 { clock.minus(span) } else { clock.plus(span) };
        memory.set_clock(set.clamp(EARLIEST, LATEST));
        if node == self.copies.primary {
            self.is_unseen = true;
            self.fair_lines.forget();
            self.tokens.set_clock(self.copies.primary().clock().as_micros());
            if micros < 0 {
                self.beliefs.forget();
            }
        }
    }

    fn promote(&mut self, node: usize) {
        if node == self.copies.primary {
            return;
        }
        self.note_end_of_primary("at a failover");
        let before = self.copies.primary().clock();
        let lost = self.copies.promote(node);
        if lost != Some(0) || self.copies.primary().clock() < before {
            self.beliefs.forget();
        }
        self.tally.reach("units lost at a failover", lost.unwrap_or(0));
        self.begin_primary();
    }

    fn crash(&mut self, missing: usize) -> Result<(), String> {
        self.note_end_of_primary("at a crash");
        let missing = self.copies.crash(missing, &self.settings)?;
        if missing > 0 {
            self.beliefs.forget();
        }
        self.tally.reach("units lost at a crash", missing);
        self.begin_primary();
        Ok(())
    }

    /// All clients have lost their connections.
    fn begin_primary(&mut self) {
        self.callers.clear();
        self.fair_lines.forget();
        self.tokens.go_on(self.copies.primary().clock().as_micros());
        self.is_unseen = false;
        for node in &self.copies.nodes {
            node.memory.pause(false);
        }
    }

    fn note_end_of_primary(&mut self, when: &str) {
        let (holds, leases) = (self.beliefs.held(), self.fair_lines.ids().leases.len());
        let names = match when {
            "at a crash" => ["callers waiting at a crash", "holds open at a crash", "leases held at a crash"],
            _ => ["callers waiting at a failover", "holds open at a failover", "leases held at a failover"],
        };
        for (name, count) in names.into_iter().zip([self.callers.len(), holds, leases]) {
            self.tally.reach(name, count);
        }
    }

    /// The end of a history: when all else has gone, each caller that waits is served, and then all nodes are the same.
    pub(super) fn end(&mut self) -> Result<(), String> {
        if self.copies.primary().is_paused() {
            self.run(&Event::Pause(false))?;
        }
        self.copies.quiet(&self.settings)?;
        while self.callers.len() > 0 {
            let before = self.callers.len();
            for event in [
                Event::Call("FLUSHALL".into()),
                Event::Pass(61_000_000),
                Event::Cron,
                Event::Pass(61_000_000),
            ] {
                self.run(&event)?;
            }
            if self.callers.len() == before {
                let lines = self.copies.primary().node().waiting.with(|state| format!("{:?}", state.lines));
                return Err(format!(
                    "nothing is held, and still they wait: {} {lines} {:?}",
                    self.callers,
                    self.copies.primary().all()
                ));
            }
        }
        self.pass(Span::from_millis(61_000))?;
        self.cron()?;
        self.copies.quiet(&self.settings)?;
        let left = self.copies.primary().node().waiting.with(|State { lines, .. }| {
            let tenants = |key: &&str| lines.count_tenants::<dyn OfDatabase>(&(0, key.as_bytes())).0;
            [lines.len(), lines.hungry(), keys().iter().map(tenants).sum()]
        });
        if left == [0; 3] {
            Ok(())
        } else {
            Err(format!("callers, hungry and other tenants at the end: {left:?}"))
        }
    }
}
