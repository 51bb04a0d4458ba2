//! A request to several limits on several keys.

use std::iter::empty;

use ratelimit_core::line::Cost;
use ratelimit_core::state::Leases;
use ratelimit_core::{Act, Hold, Joint, JointError, Limits, Manner, Part, Period, Span, Time};
use ratelimit_language::{Error, MultiCall};

use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::{Key, OpenKeys, SeveralKeys, publish};
use crate::slot::Slot;
use crate::waiting::{Turns, Wait, Waits, Wanted};

/// A request to several limits on several keys.
pub struct Several<'p, 'c, H> {
    pub keys: SeveralKeys<'c, H>,
    pub parts: &'p [Part<'c>],
    pub at: Option<Time>,
    pub manner: Manner,
}

/// What such a request will do.
pub struct Plan<'p, 'c> {
    /// The verdict of each limit on each key.
    pub joint: Joint<'p, 'c>,
    /// Whether its id is held already. Then it only looks, and has the answers.
    pub is_held: bool,
    pub is_admitted: bool,
    /// If it is refused and waits.
    pub wait: Option<Box<Wait>>,
}

impl Plan<'_, '_> {
    /// Whether its refusal strikes the penalties of the call.
    pub fn strikes(&self) -> bool {
        !self.is_admitted && self.wait.is_none() && self.joint.strikes()
    }
}

/// The outcome of such a request.
pub enum Taken<'p, 'a> {
    /// The outcome is `None` if the request charges no limit, or if the id is held.
    Decided(Joint<'p, 'a>, Option<Outcome>),
    Waits(Box<Wait>),
}

/// The id of a hold, and how long it lasts.
type WantedHold<'a> = Option<(&'a [u8], Span)>;

/// The keys of a call, prepared for it: all open, or opened one by one to be read.
pub trait Prepared<S: Slot> {
    /// Calls `look` with the key of this index.
    fn with<T>(&mut self, key: usize, look: impl FnOnce(&Key<S>) -> T) -> Result<T, Error>;
}

impl<S: Slot> Prepared<S> for OpenKeys<S> {
    #[inline(always)]
    fn with<T>(&mut self, key: usize, look: impl FnOnce(&Key<S>) -> T) -> Result<T, Error> {
        self.get(key).map(look).ok_or(Error::Internal)
    }
}

/// The keys of a request that are opened to be read, one at a time.
pub struct ToRead<'s, 'p, 'c, H: Host> {
    several: &'s Several<'p, 'c, H>,
    at: Time,
    /// The last one.
    open: Option<(usize, Key<H::Slot<'c>>)>,
}

impl<'s, 'p, 'c, H: Host> ToRead<'s, 'p, 'c, H> {
    pub fn of(several: &'s Several<'p, 'c, H>, at: Time) -> Self {
        ToRead { several, at, open: None }
    }
}

impl<'c, H: Host> Prepared<H::Slot<'c>> for ToRead<'_, '_, 'c, H> {
    fn with<T>(&mut self, key: usize, look: impl FnOnce(&Key<H::Slot<'c>>) -> T) -> Result<T, Error> {
        if !matches!(self.open, Some((open, _)) if open == key) {
            self.open = None;
            let mut opened = self.several.keys.peek(key)?;
            self.several.prepare(key, &mut opened, self.at)?;
            self.open = Some((key, opened));
        }
        self.open.as_ref().map(|(_, open)| look(open)).ok_or(Error::Internal)
    }
}

impl<'p, 'c, H: Host> Several<'p, 'c, H> {
    pub fn of(keys: SeveralKeys<'c, H>, arguments: &'p MultiCall<'c>) -> Self {
        Several { keys, parts: &arguments.parts, at: arguments.at, manner: arguments.manner }
    }

    /// The limits of the request on its keys, which are not judged yet.
    pub fn joint(&self, at: Time) -> Result<Joint<'p, 'c>, Error> {
        Ok(Joint::new(self.parts, self.keys.count(), at, self.manner)?)
    }

    /// Plans the request. `left` is how long its caller can wait.
    #[inline(always)]
    pub fn plan(
        &self,
        mut joint: Joint<'p, 'c>,
        keys: &mut impl Prepared<H::Slot<'c>>,
        hold: Option<&Hold<'_>>,
        can_wait: bool,
        left: impl FnOnce() -> Option<Span>,
    ) -> Result<Plan<'p, 'c>, Error> {
        if let Some(hold) = hold
            && self.is_held(&mut joint, keys, hold)?
        {
            return Ok(Plan { joint, is_held: true, is_admitted: true, wait: None });
        }
        let somebody_waits = self.keys.call.somebody_waits();
        for place in 0..self.keys.count() {
            keys.with(place, |key| {
                if somebody_waits {
                    self.line_up(&mut joint, place, key, can_wait);
                }
                joint.plan(place, key);
            })?;
        }
        let is_admitted = joint.admits()?;
        let wait = if is_admitted || !can_wait { None } else { self.wait(&joint, keys, left) };
        Ok(Plan { joint, is_held: false, is_admitted, wait })
    }

    /// Whether a key holds the id already; the request then looks at all keys. A key without room for another hold is an error.
    #[cold]
    fn is_held(
        &self,
        joint: &mut Joint<'p, 'c>,
        keys: &mut impl Prepared<H::Slot<'c>>,
        hold: &Hold<'_>,
    ) -> Result<bool, Error> {
        let (mut is_held, mut has_room) = (false, true);
        for place in 0..self.keys.count() {
            keys.with(place, |key| {
                is_held |= joint.is_held(key, hold);
                has_room &= joint.has_room(place, key, hold);
            })?;
        }
        if is_held {
            joint.look();
            for place in 0..self.keys.count() {
                keys.with(place, |key| joint.peek(place, key))?;
            }
        } else if !has_room {
            return Err(Error::TooManyHolds);
        }
        Ok(is_held)
    }

    /// The wait of a refused request; `None` if it must not wait.
    #[cold]
    fn wait(
        &self,
        joint: &Joint<'p, 'c>,
        keys: &mut impl Prepared<H::Slot<'c>>,
        left: impl FnOnce() -> Option<Span>,
    ) -> Option<Box<Wait>> {
        let (refusing, left) = (joint.waits_for()?, left()?);
        if !refusing.iter().all(|(_, _, part, retry)| *retry <= left || part.has_room_early()) {
            return None;
        }
        let wanted = refusing.into_iter().map(|(pair, key, part, retry)| {
            let claim = keys.with(key, |key| joint.claim(pair, key)).ok()??;
            Some(Wanted { key: self.keys.place(key), name: part.name, claim, retry })
        });
        let wanted: Vec<_> = wanted.collect::<Option<_>>()?;
        let places = (0..self.keys.count()).map(|key| self.keys.place(key)).collect();
        self.keys.call.wait(left, places, wanted.into_iter())
    }

    /// Charges the limits, and holds the charge if `hold` is given. `block` is the longest wait, if the caller can wait.
    #[inline(never)]
    pub fn take(
        &self,
        counter: Counter,
        hold: WantedHold<'c>,
        block: Option<Period>,
    ) -> Result<Taken<'p, 'c>, Error> {
        if self.keys.call.only_looks() {
            return self.look(counter);
        }
        let clock = self.keys.call.clock();
        let at = self.at.unwrap_or(clock);
        let joint = self.joint(at)?;
        let mut keys = self.keys.open()?;
        for (place, key) in keys.iter_mut().enumerate() {
            self.prepare(place, key, at)?;
        }
        let hold = hold.map(|hold| self.keys.call.hold(hold));
        let left = || self.keys.call.time_to_wait(block);
        let plan = self.plan(joint, &mut keys, hold.as_ref(), block.is_some(), left)?;
        let Plan { mut joint, is_held, is_admitted, wait } = plan;
        if is_held {
            return Ok(Taken::Decided(joint, None));
        }
        if hold.is_some() {
            make_room_for_holds(&joint, &mut keys);
        }
        let act = match wait {
            _ if is_admitted => Act::Charge,
            None => Act::Strike,
            Some(_) => Act::Nothing,
        };
        joint.act(&mut keys, act)?;
        if let Some(hold) = hold.filter(|_| is_admitted) {
            joint.hold(&mut keys, &hold)?;
        }
        commit(&joint, &mut keys, clock, at);
        if is_admitted && self.keys.call.somebody_waits() {
            self.grant(&joint, &keys, hold.is_some());
        } else if !is_admitted && block.is_none() {
            self.starve(&joint, &keys);
        }
        drop(keys);
        if let Some(wait) = wait {
            return Ok(Taken::Waits(wait));
        }
        if self.parts.iter().all(|part| part.cost == 0) {
            return Ok(Taken::Decided(joint, None));
        }
        let outcome = if is_admitted { Outcome::Admitted } else { Outcome::Refused };
        self.keys.call.node().counts.add(counter, outcome);
        if is_admitted && joint.refuses_in_shadow() {
            self.keys.call.node().counts.refused_in_shadow.add_one();
        }
        self.notify(&joint, outcome);
        Ok(Taken::Decided(joint, Some(outcome)))
    }

    /// Refuses a caller that leaves its lines while nothing may be written.
    #[cold]
    fn look(&self, counter: Counter) -> Result<Taken<'p, 'c>, Error> {
        let mut joint = self.peek_and(|joint, place, key| self.line_up(joint, place, key, true))?;
        joint.fall_behind();
        self.keys.call.node().counts.add(counter, Outcome::Refused);
        self.notify(&joint, Outcome::Refused);
        Ok(Taken::Decided(joint, Some(Outcome::Refused)))
    }

    /// Notes the limits of a key for which others wait ahead of the call.
    #[cold]
    fn line_up(&self, joint: &mut Joint<'p, 'c>, place: usize, key: &Key<H::Slot<'c>>, can_wait: bool) {
        let at = self.keys.place(place);
        joint.line_up(place, key, |part, claim, leases| {
            if !self.keys.call.has_line(at, part.name) && !self.keys.call.only_looks() {
                return None;
            }
            self.keys.call.follow(at, part.name, leases);
            self.keys.call.ahead(at, part.name, &claim, can_wait)
        });
    }

    /// Notes in the lines that the call is admitted, and with `HOLD` that its cost is an estimate.
    #[cold]
    fn grant(&self, joint: &Joint<'_, '_>, keys: &[Key<H::Slot<'c>>], holds: bool) {
        for (key, part, claim) in joint.granted(keys) {
            let is_estimated = holds && part.can_be_held();
            let cost = if is_estimated { Cost::Estimated } else { Cost::Known };
            self.keys.call.grant(self.keys.place(key), part.name, &claim, cost);
        }
        for (key, id) in joint.renewed() {
            self.keys.call.serve(self.keys.place(key), id);
        }
    }

    /// Leases refused a call that does not wait: its tenant is hungry for some time, unless another limit refuses the call.
    fn starve(&self, joint: &Joint<'_, '_>, keys: &[Key<H::Slot<'c>>]) {
        if !self.parts.iter().any(Part::has_room_early) {
            return;
        }
        for (key, part, claim, alone) in joint.hungry(keys) {
            let place = self.keys.place(key);
            if alone {
                let leases = keys.get(key).and_then(|key| key.state::<Leases>(part.name.length));
                self.keys.call.starve(place, part.name, &claim, leases.is_some_and(Leases::has_tenants));
            } else if self.keys.call.somebody_waits() {
                self.keys.call.sate(place, part.name, claim.tenant);
            }
        }
    }

    /// Counts a decision's refusals for `RL.TOP`, and sends its keyspace events.
    #[inline(always)]
    fn notify(&self, joint: &Joint<'_, '_>, outcome: Outcome) {
        if outcome == Outcome::Refused && self.keys.call.node().settings.counts_refusals() {
            self.count_refusals(joint);
        }
        if self.keys.call.node().settings.sends_events() {
            self.send_events(joint, outcome);
        }
    }

    #[cold]
    fn count_refusals(&self, joint: &Joint<'_, '_>) {
        for key in (0..self.keys.count()).filter(|key| joint.refuses(*key)) {
            self.keys.call.count_refusal(self.keys.place(key));
        }
    }

    #[cold]
    fn send_events(&self, joint: &Joint<'_, '_>, outcome: Outcome) {
        for key in (0..self.keys.count()).filter(|key| joint.charges(*key)) {
            self.keys.call.notify(self.keys.place(key), outcome);
        }
    }

    /// Computes the answers that the call would get, and changes nothing.
    pub fn peek(&self) -> Result<Joint<'p, 'c>, Error> {
        self.peek_and(|_, _, _| ())
    }

    fn peek_and(
        &self,
        before: impl Fn(&mut Joint<'p, 'c>, usize, &Key<H::Slot<'c>>),
    ) -> Result<Joint<'p, 'c>, Error> {
        let at = self.at.unwrap_or_else(|| self.keys.call.clock());
        let mut joint = self.joint(at)?;
        for place in 0..self.keys.count() {
            let mut key = self.keys.peek(place)?;
            key.prepare(at, empty(), empty(), &empty())?;
            before(&mut joint, place, &key);
            joint.peek(place, &key);
        }
        Ok(joint)
    }

    /// Gives each limit its cost back.
    pub fn refund(&self) -> Result<Joint<'p, 'c>, Error> {
        self.give_back(Joint::refund).map(|(joint, ())| joint)
    }

    /// Settles what is held under the id. Returns the number of keys in which something was held, too.
    pub fn settle(&self, id: &[u8]) -> Result<(Joint<'p, 'c>, u64), Error> {
        self.give_back(|joint, keys| joint.settle(keys, id))
    }

    fn give_back<T>(
        &self,
        change: impl FnOnce(&mut Joint<'p, 'c>, &mut [Key<H::Slot<'c>>]) -> Result<T, JointError>,
    ) -> Result<(Joint<'p, 'c>, T), Error> {
        let clock = self.keys.call.clock();
        let at = self.at.unwrap_or(clock);
        let mut joint = self.joint(at)?;
        let mut keys = self.keys.open()?;
        for key in &mut *keys {
            key.prepare(at, empty(), empty(), &empty())?;
        }
        let changed = change(&mut joint, &mut keys)?;
        commit(&joint, &mut keys, clock, at);
        drop(keys);
        if self.keys.call.somebody_waits() {
            for (key, part, held, actual) in joint.settled_for_tenant() {
                let tenant = part.tenant.map_or(&[][..], |tenant| tenant.name);
                self.keys.call.correct(self.keys.place(key), part.name, tenant, held, actual);
            }
        }
        Ok((joint, changed))
    }

    /// Prepares a key for the limits that the request may charge.
    #[inline(always)]
    fn prepare(&self, place: usize, key: &mut Key<impl Slot>, at: Time) -> Result<(), Error> {
        let named = self.parts.iter().filter(|part| part.is_for(place));
        let charged = named.clone().filter(|part| part.cost > 0);
        let at_once = charged.clone().filter(|part| !part.is_penalty()).map(|part| part.name);
        let charged = charged.map(|part| part.name);
        key.prepare(at, at_once, charged, &named.map(|part| part.name))
    }
}

/// Prepares the keys in which the call holds something.
fn make_room_for_holds(joint: &Joint<'_, '_>, keys: &mut [Key<impl Slot>]) {
    for (place, key) in keys.iter_mut().enumerate() {
        if joint.named(place).any(Part::can_be_held) {
            key.make_room_for_holds();
        }
    }
}

/// Commits the changes of all keys and publishes them. A key that is fully reset after a refund or a settlement is deleted.
#[inline(always)]
fn commit(joint: &Joint<'_, '_>, keys: &mut [Key<impl Slot>], clock: Time, at: Time) {
    for (place, key) in keys.iter_mut().enumerate() {
        let (latest, reset) = joint.reset(place);
        key.settle(joint.gave_back(place).then_some(at), clock, latest, reset);
    }
    publish(keys);
}
