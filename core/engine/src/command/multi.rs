//! `RL.MULTI numkeys key [key ...] [COST cost] [AT at] [FORCE] [HOLD id ttl] [BLOCK timeout] LIMIT limiter parameter ...
//! [ON index] [COST cost] [SHADOW] [TENANT tenant [WEIGHT weight]] [LIMIT ...]`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys.
//!
//! All limits are judged first. If all of them admit, all are charged; else none is, and penalties are struck. The changes
//! of all keys are replicated in one command.

use std::iter::empty;

use ratelimit_core::line::Cost;
use ratelimit_core::state::Leases;
use ratelimit_core::{
    Answer, Hold, HoldOutcome, Joint, JointError, Limits, Manner, Part, Period, Span, Time,
};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::vocabulary::NUMKEYS;
use ratelimit_language::{Error, MultiCall, Purpose, miscounted, multi};

use super::entry::Command;
use super::wait::wait_for;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::{Key, SeveralKeys, publish};
use crate::reply::Reply;
use crate::slot::Slot;
use crate::waiting::{Turns, Wait, Waits};

pub struct Multi;
pub struct MultiPeek;
pub struct MultiRefund;

/// The places of the number of keys, and of the first key.
const NUMBER: usize = 1;
pub(super) const FIRST: usize = 2;

impl Command for Multi {
    const DOCUMENTATION: Documentation = docs::MULTI;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (keys, arguments) = parse(call, Purpose::Charge)?;
        let several = Several::of(keys, &arguments);
        match several.take(call, Counter::Multi, arguments.hold, arguments.block)? {
            Taken::Decided(joint, _) => reply(&joint),
            Taken::Waits(wait) => Ok(Reply::Wait(wait)),
        }
    }
}

impl Command for MultiPeek {
    const DOCUMENTATION: Documentation = docs::MULTIPEEK;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (keys, arguments) = parse(call, Purpose::Peek)?;
        reply(&Several::of(keys, &arguments).peek()?)
    }
}

impl Command for MultiRefund {
    const DOCUMENTATION: Documentation = docs::MULTIREFUND;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (keys, arguments) = parse(call, Purpose::Refund)?;
        reply(&Several::of(keys, &arguments).refund(call)?)
    }
}

/// A request to several limits on several keys.
pub(super) struct Several<'p, 'c, H> {
    pub(super) keys: SeveralKeys<'c, H>,
    pub(super) parts: &'p [Part<'c>],
    pub(super) at: Option<Time>,
    pub(super) manner: Manner,
}

/// The outcome of a request to several limits.
pub(super) enum Taken<'p, 'a> {
    /// The outcome is `None` if the request charges no limit, or if the id is held.
    Decided(Joint<'p, 'a>, Option<Outcome>),
    Waits(Box<Wait>),
}

/// The id of a hold, and how long it lasts.
type WantedHold<'a> = Option<(&'a [u8], Span)>;

impl<'p, 'c, H: Host> Several<'p, 'c, H> {
    pub(super) fn of(keys: SeveralKeys<'c, H>, arguments: &'p MultiCall<'c>) -> Self {
        Several { keys, parts: &arguments.parts, at: arguments.at, manner: arguments.manner }
    }

    pub(super) fn joint(&self, at: Time) -> Result<Joint<'p, 'c>, Error> {
        Ok(Joint::new(self.parts, self.keys.count(), at, self.manner)?)
    }

    /// Charges the limits, and holds the charge if `hold` is given. `block` is the longest wait, if the caller can wait.
    #[inline(never)]
    pub(super) fn take(
        &self,
        call: &H,
        counter: Counter,
        hold: WantedHold<'c>,
        block: Option<Period>,
    ) -> Result<Taken<'p, 'c>, Error> {
        if call.only_looks() {
            return self.look(call, counter);
        }
        let clock = call.clock();
        let at = self.at.unwrap_or(clock);
        let mut joint = self.joint(at)?;
        let mut keys = self.keys.open()?;
        for (place, key) in keys.iter_mut().enumerate() {
            prepare(&joint, place, key, at)?;
        }
        if call.somebody_waits() {
            for (place, key) in keys.iter().enumerate() {
                self.line_up(call, &mut joint, place, key, block.is_some());
            }
        }
        let mut wait = None;
        let waits = |joint: &Joint<'_, '_>, open: &[Key<H::Slot<'c>>]| {
            wait = block.and_then(|block| wait_for(call, block, &self.keys, joint, open));
            wait.is_some()
        };
        let admitted = match hold {
            None => joint.take_or_wait(&mut keys, waits)?,
            Some((id, ttl)) => {
                make_room_for_holds(&joint, &mut keys);
                match joint.take_and_hold_or_wait(
                    &mut keys,
                    &Hold { id, ttl, most: call.node().settings.most_holds() },
                    waits,
                )? {
                    HoldOutcome::Admitted => true,
                    HoldOutcome::Refused => false,
                    HoldOutcome::Already => return Ok(Taken::Decided(joint, None)),
                }
            }
        };
        commit(&joint, &mut keys, clock, at);
        if admitted && call.somebody_waits() {
            self.grant(call, &joint, &keys, hold);
        } else if !admitted && block.is_none() {
            self.starve(call, &joint, &keys);
        }
        drop(keys);
        if let Some(wait) = wait {
            return Ok(Taken::Waits(wait));
        }
        if self.parts.iter().all(|part| part.cost == 0) {
            return Ok(Taken::Decided(joint, None));
        }
        let outcome = if admitted { Outcome::Admitted } else { Outcome::Refused };
        call.node().counts.add(counter, outcome);
        if admitted && joint.refuses_in_shadow() {
            call.node().counts.refused_in_shadow.add_one();
        }
        self.notify(call, &joint, outcome);
        Ok(Taken::Decided(joint, Some(outcome)))
    }

    /// Refuses a caller that leaves its lines while nothing may be written.
    #[cold]
    fn look(&self, call: &H, counter: Counter) -> Result<Taken<'p, 'c>, Error> {
        let mut joint = self.peek_and(|joint, place, key| self.line_up(call, joint, place, key, true))?;
        joint.fall_behind();
        call.node().counts.add(counter, Outcome::Refused);
        self.notify(call, &joint, Outcome::Refused);
        Ok(Taken::Decided(joint, Some(Outcome::Refused)))
    }

    /// Notes the limits of a key for which others wait ahead of the call.
    #[cold]
    pub(super) fn line_up(
        &self,
        call: &H,
        joint: &mut Joint<'p, 'c>,
        place: usize,
        key: &Key<H::Slot<'c>>,
        can_wait: bool,
    ) {
        let at = self.keys.place(place);
        joint.line_up(place, key, |part, claim, leases| {
            if !call.has_line(at, part.name) && !call.only_looks() {
                return None;
            }
            call.follow(at, part.name, leases);
            call.ahead(at, part.name, &claim, can_wait)
        });
    }

    /// Notes in the lines that the call is admitted, and with `HOLD` that its cost is an estimate.
    #[cold]
    fn grant(&self, call: &H, joint: &Joint<'_, '_>, keys: &[Key<H::Slot<'c>>], hold: WantedHold<'_>) {
        for (key, part, claim) in joint.granted(keys) {
            let is_estimated = hold.is_some() && part.can_be_held();
            let cost = if is_estimated { Cost::Estimated } else { Cost::Known };
            call.grant(self.keys.place(key), part.name, &claim, cost);
        }
        for (key, id) in joint.renewed() {
            call.serve(self.keys.place(key), id);
        }
    }

    /// Leases refused a call that does not wait: its tenant is hungry for some time, unless another limit refuses the call.
    fn starve(&self, call: &H, joint: &Joint<'_, '_>, keys: &[Key<H::Slot<'c>>]) {
        if !self.parts.iter().any(Part::has_room_early) {
            return;
        }
        for (key, part, claim, alone) in joint.hungry(keys) {
            let place = self.keys.place(key);
            if alone {
                let leases = keys.get(key).and_then(|key| key.state::<Leases>(part.name.length));
                call.starve(place, part.name, &claim, leases.is_some_and(Leases::has_tenants));
            } else if call.somebody_waits() {
                call.sate(place, part.name, claim.tenant);
            }
        }
    }

    /// Counts a decision's refusals for `RL.TOP`, and sends its keyspace events.
    #[inline(always)]
    fn notify(&self, call: &H, joint: &Joint<'_, '_>, outcome: Outcome) {
        if outcome == Outcome::Refused && call.node().settings.counts_refusals() {
            self.count_refusals(call, joint);
        }
        if call.node().settings.sends_events() {
            self.send_events(call, joint, outcome);
        }
    }

    #[cold]
    fn count_refusals(&self, call: &H, joint: &Joint<'_, '_>) {
        for key in (0..self.keys.count()).filter(|key| joint.refuses(*key)) {
            call.count_refusal(self.keys.place(key));
        }
    }

    #[cold]
    fn send_events(&self, call: &H, joint: &Joint<'_, '_>, outcome: Outcome) {
        for key in (0..self.keys.count()).filter(|key| joint.charges(*key)) {
            call.notify(self.keys.place(key), outcome);
        }
    }

    /// Computes the answers that the call would get, and changes nothing.
    pub(super) fn peek(&self) -> Result<Joint<'p, 'c>, Error> {
        self.peek_and(|_, _, _| ())
    }

    fn peek_and(
        &self,
        before: impl Fn(&mut Joint<'p, 'c>, usize, &Key<H::Slot<'c>>),
    ) -> Result<Joint<'p, 'c>, Error> {
        let at = self.at.unwrap_or_else(|| self.keys.clock());
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
    pub(super) fn refund(&self, call: &H) -> Result<Joint<'p, 'c>, Error> {
        self.give_back(call, Joint::refund).map(|(joint, ())| joint)
    }

    /// Settles what is held under the id. Returns the number of keys in which something was held, too.
    pub(super) fn settle(&self, call: &H, id: &[u8]) -> Result<(Joint<'p, 'c>, u64), Error> {
        self.give_back(call, |joint, keys| joint.settle(keys, id))
    }

    fn give_back<T>(
        &self,
        call: &H,
        change: impl FnOnce(&mut Joint<'p, 'c>, &mut [Key<H::Slot<'c>>]) -> Result<T, JointError>,
    ) -> Result<(Joint<'p, 'c>, T), Error> {
        let clock = call.clock();
        let at = self.at.unwrap_or(clock);
        let mut joint = self.joint(at)?;
        let mut keys = self.keys.open()?;
        for key in &mut *keys {
            key.prepare(at, empty(), empty(), &empty())?;
        }
        let changed = change(&mut joint, &mut keys)?;
        commit(&joint, &mut keys, clock, at);
        drop(keys);
        if call.somebody_waits() {
            for (key, part, held, actual) in joint.settled_for_tenant() {
                let tenant = part.tenant.map_or(&[][..], |tenant| tenant.name);
                call.correct(self.keys.place(key), part.name, tenant, held, actual);
            }
        }
        Ok((joint, changed))
    }
}

/// Prepares a key for the limits that the call may charge.
#[inline(always)]
pub(super) fn prepare(
    joint: &Joint<'_, '_>,
    place: usize,
    key: &mut Key<impl Slot>,
    at: Time,
) -> Result<(), Error> {
    let named = joint.named(place);
    let charged = named.clone().filter(|part| part.cost > 0);
    let at_once = charged.clone().filter(|part| !part.is_penalty()).map(|part| part.name);
    let charged = charged.map(|part| part.name);
    key.prepare(at, at_once, charged, &named.map(|part| part.name))
}

/// Prepares the keys in which the call holds something.
fn make_room_for_holds(joint: &Joint<'_, '_>, keys: &mut [Key<impl Slot>]) {
    for (place, key) in keys.iter_mut().enumerate() {
        if joint.named(place).any(Part::can_be_held) {
            key.make_room_for_holds();
        }
    }
}

/// Parses the keys, and the arguments after them. An error says so if the number of keys is wrong.
pub(super) fn parse<H: Host>(
    call: &H,
    purpose: Purpose,
) -> Result<(SeveralKeys<'_, H>, MultiCall<'_>), Error> {
    parse_counted(call, purpose).map_err(|error| miscounted(call.arguments(NUMBER)).unwrap_or(error))
}

#[inline(always)]
fn parse_counted<H: Host>(call: &H, purpose: Purpose) -> Result<(SeveralKeys<'_, H>, MultiCall<'_>), Error> {
    let keys = keys(call)?;
    let count = keys.count();
    let arguments = call.parse(FIRST + count.., |arguments| multi(arguments, count as u64, purpose))?;
    Ok((keys, arguments))
}

/// Returns the keys, after two checks: all differ, and an argument follows the last one.
pub(super) fn keys<H: Host>(call: &H) -> Result<SeveralKeys<'_, H>, Error> {
    let count: usize = call.parse(NUMBER..FIRST, |arguments| arguments.read(NUMKEYS))?;
    if call.len() <= FIRST + count {
        return Err(Error::Arity);
    }
    SeveralKeys::new(call, [FIRST..FIRST + count, 0..0])
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

fn reply(joint: &Joint<'_, '_>) -> Result<Reply, Error> {
    answers(joint).map(|(combined, answers)| Reply::Answers(combined, answers))
}

/// The combined answer, and that of each limit on each key.
#[inline(always)]
pub(super) fn answers(joint: &Joint<'_, '_>) -> Result<(Answer, Vec<Answer>), Error> {
    let combined = joint.combined().ok_or(Error::Internal)?;
    Ok((combined, joint.answers().collect()))
}
