//! What an event does to a state.

use ratelimit_core::State;
use ratelimit_core::adapt::Ending;
use ratelimit_core::limiter::{Limiter, release};
use ratelimit_core::state::{Leases, hash_of_id};

use super::event::{Broken, Effect, Event, NO_WAKE_IS_LOST};
use super::node::{HUNGER, Node, TICK, Works, name_of};
use super::rules;
use super::size::{POOL, RATE};
use super::trial::{text, ticks};
use crate::fair::Kind;
use crate::states::obey;

/// What is used of a grant of two: nothing, which counts as one, or more than was granted.
const USES: [u8; 2] = [0, 3];

impl Node {
    /// All that can happen next. `blank` are the tenants of whom nothing is known: each is as good as the others.
    pub fn events(&self, blank: u8) -> Vec<Event> {
        let mut events = Vec::new();
        let number = |place: usize| u8::try_from(place).unwrap_or(u8::MAX);
        if self.idle() > 0 {
            let first = blank.trailing_zeros();
            let tenants = (0..number(self.size.tenants))
                .filter(|tenant| blank & 1 << tenant == 0 || u32::from(*tenant) == first);
            for tenant in tenants {
                events.extend((0..number(self.size.asks.len())).map(|ask| Event::Call { ask, tenant }));
            }
        }
        let alike = |works: &Works| {
            let lease = works.lease.map(|lease| (lease.cost, lease.ends));
            (works.tenant, lease, works.hold)
        };
        for (place, works) in self.works.iter().enumerate() {
            if self.works.iter().take(place).any(|other| alike(other) == alike(works)) {
                continue;
            }
            events.extend(works.lease.map(|_| Event::Release(number(place))));
            if works.hold.is_some() {
                events.extend(USES.map(|used| Event::Settle(number(place), used)));
            }
        }
        events.extend((0..number(self.waiting.len())).map(Event::GiveUp));
        let hungry = self.model.limits[POOL].hungry.keys();
        events.extend(
            hungry.filter_map(|tenant| Some(Event::Forget(u8::try_from(tenant.checked_sub(1)?).ok()?))),
        );
        events.push(Event::Tick);
        events
    }

    /// The state after an event, and what the event did.
    ///
    /// # Errors
    ///
    /// A property that does not hold.
    pub fn after(&self, event: Event) -> Result<(Node, Effect), Broken> {
        self.with(event, Effect::default())
    }

    /// The same, with words.
    ///
    /// # Errors
    ///
    /// A property that does not hold.
    pub fn told(&self, event: Event) -> Result<(Node, Effect), Broken> {
        self.with(event, Effect::told())
    }

    fn with(&self, event: Event, mut effect: Effect) -> Result<(Node, Effect), Broken> {
        let mut node = self.clone();
        match event {
            Event::Call { ask, tenant } => node.call(ask, tenant, &mut effect)?,
            Event::Release(place) => node.release(usize::from(place), &mut effect)?,
            Event::Settle(place, used) => node.settle(usize::from(place), used.into(), &mut effect)?,
            Event::GiveUp(place) => node.give_up(usize::from(place), &mut effect)?,
            Event::Forget(tenant) => node.forget(tenant, &mut effect)?,
            Event::Tick => node.tick(&mut effect)?,
        }
        let waits = |caller| node.waiting.iter().any(|waits| waits.caller == caller);
        for (place, waited) in self.waiting.iter().enumerate() {
            effect.gone |= u8::from(!waits(waited.caller)) << place;
        }
        rules::of_step(self, &node, event, &effect)?;
        Ok((node, effect))
    }

    fn release(&mut self, place: usize, effect: &mut Effect) -> Result<(), Broken> {
        let Some(lease) = self.works[place].lease.take() else { return Ok(()) };
        effect.tell(|| format!("{} releases a lease of {}", text(self.works[place].tenant), lease.cost));
        self.tidy();
        let id = lease.id.to_be_bytes();
        if let Some(mut table) = self.pool.take() {
            let mut bytes = Vec::new();
            if let Some(change) = release(&table, &id, Ending::Well, self.now) {
                Leases::encode_change(&change, &mut bytes);
            }
            obey(&mut table, &bytes);
            self.pool = Some(table);
        }
        self.model.release(POOL, lease.id);
        self.lines.mark(&0);
        self.drop_keys();
        self.lines.serve(&0, Node::name(POOL), hash_of_id(&id), self.now);
        self.serve(effect)
    }

    fn settle(&mut self, place: usize, used: u64, effect: &mut Effect) -> Result<(), Broken> {
        let Some(hold) = self.works[place].hold.take() else { return Ok(()) };
        let tenant = self.works[place].tenant;
        effect.tell(|| format!("{} settles {} at {used}", text(tenant), hold.granted));
        self.settlements -= 1;
        self.tidy();
        self.model.settle(RATE, 1 + u32::from(tenant), hold.granted, used);
        self.lines.correct(&1, Node::name(RATE), name_of(tenant), hold.granted, used);
        self.serve(effect)
    }

    fn give_up(&mut self, place: usize, effect: &mut Effect) -> Result<(), Broken> {
        let waits = self.waiting.remove(place);
        effect.tell(|| format!("{} waits no longer", text(waits.call.tenant)));
        self.model.leave(waits.number);
        if !self.lines.leave(waits.caller) {
            return Err(Broken::new(NO_WAKE_IS_LOST, "a caller waits of whom the lines know nothing"));
        }
        self.serve(effect)
    }

    fn forget(&mut self, tenant: u8, effect: &mut Effect) -> Result<(), Broken> {
        effect.tell(|| format!("{} gives up what was refused", text(tenant)));
        let Some(id) = self.refused(tenant) else { return Ok(()) };
        self.model.release(POOL, id);
        self.lines.serve(&0, Node::name(POOL), hash_of_id(&id.to_be_bytes()), self.now);
        self.serve(effect)
    }

    fn tick(&mut self, effect: &mut Effect) -> Result<(), Broken> {
        self.now = self.now.plus(TICK);
        effect.ticks = true;
        effect.tell(|| "a tick passes".to_owned());
        self.model.pass(TICK.as_micros());
        self.tokens = (self.tokens + 1).min(self.size.capacities[RATE]);
        for works in &mut self.works {
            works.lease = works.lease.filter(|lease| lease.ends > self.now);
            works.hold = works.hold.filter(|hold| hold.ends > self.now);
        }
        self.tidy();
        // The lines say when they are to be looked at. If that is not now, no one waits for it.
        let due = [self.lines.next_due(), self.lines.next_look()].into_iter().flatten().min();
        if due.is_none_or(|due| due > self.now) {
            self.serves_nobody()?;
        }
        self.serve(effect)?;
        if self.drop_keys() {
            // The server deletes a key in its own time, which may be later. No one waits for that.
            self.serves_nobody()?;
            self.serve(effect)?;
        }
        Ok(())
    }

    /// Deletes the keys of which nothing is left. Returns whether there was one.
    fn drop_keys(&mut self) -> bool {
        let bucket = self.bucket();
        let pool_ends = self.pool.as_ref().is_some_and(|pool| pool.count(self.now) == 0);
        let rate_ends = self.rate.is_some_and(|level| bucket.gauge(&level, self.now).reset.as_micros() == 0);
        if pool_ends {
            self.pool = None;
            self.lines.replace(&0);
            if let Kind::Leases { leases, .. } = &mut self.model.limits[POOL].kind {
                leases.clear();
            }
        }
        if rate_ends {
            self.rate = None;
            self.lines.replace(&1);
        }
        pool_ends || rate_ends
    }

    /// Marking all lines would serve no one.
    ///
    /// # Errors
    ///
    /// If it does.
    pub fn serves_nobody(&self) -> Result<(), Broken> {
        let mut node = self.clone();
        node.lines.mark_all();
        node.serve(&mut Effect::default())?;
        let served =
            self.waiting.iter().find(|waits| node.waiting.iter().all(|other| other.caller != waits.caller));
        served.map_or(Ok(()), |served| {
            let what =
                format!("{} is admitted if all lines are marked, and not before", text(served.call.tenant));
            Err(Broken::new(NO_WAKE_IS_LOST, what))
        })
    }

    /// What is held and who waits, in words.
    pub fn text(&self) -> String {
        let works = self.works.iter().map(|works| {
            let lease =
                works.lease.map(|lease| format!("{} for {}", lease.cost, ticks(lease.ends, self.now)));
            let hold = works.hold.map(|hold| format!("holds {}", hold.granted));
            let parts: Vec<String> = lease.into_iter().chain(hold).collect();
            format!("{} {}", text(works.tenant), parts.join(" and "))
        });
        let waiting = self.waiting.iter().map(|waits| text(waits.call.tenant).to_owned());
        let hungry = self.model.limits[POOL].hungry.iter().map(|(tenant, hunger)| {
            let left = hunger.ends.saturating_sub(self.model.steady).div_ceil(HUNGER.as_micros());
            format!(
                "{} for {left}",
                tenant.checked_sub(1).map_or("nobody", |tenant| text(u8::try_from(tenant).unwrap_or(0)))
            )
        });
        let [works, waiting, hungry] = [works.collect::<Vec<_>>(), waiting.collect(), hungry.collect()];
        let list = |list: Vec<String>| if list.is_empty() { "-".to_owned() } else { list.join(", ") };
        format!("held: {}; waiting: {}; hungry: {}", list(works), list(waiting), list(hungry))
    }
}
