//! A request to the limit of a limiter's own command.

use std::iter::once;

use ratelimit_core::hold::{find, has_room, held};
use ratelimit_core::line::{Claim, Cost};
use ratelimit_core::state::{Leases, Tenant};
use ratelimit_core::{Answer, Ask, Hold, Limiter, Limits, Manner, Period, Place, Span, Taken, Time, Verdict};
use ratelimit_language::{Error, Request};

use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::Key;
use crate::slot::{Access, Slot};
use crate::waiting::{Turns, Wait, Waits, Wanted};

/// What a call asks of the limit.
#[derive(Clone, Copy, Default)]
pub struct Wish<'a> {
    pub cost: u64,
    pub manner: Manner,
    pub at: Option<Time>,
    pub hold: Option<Hold<'a>>,
    /// As [`Request::block`].
    pub block: Option<Period>,
    /// As [`Request::is_critical`].
    pub critical: bool,
    pub tenant: Option<Tenant<'a>>,
}

impl<'a> Wish<'a> {
    pub fn of(request: &Request<'a>, call: &impl Host) -> Wish<'a> {
        Wish {
            cost: request.cost(),
            manner: request.manner(),
            at: request.at,
            hold: request.hold().map(|hold| call.hold(hold)),
            block: request.block(),
            critical: request.is_critical(),
            tenant: request.tenant(),
        }
    }
}

/// What a request will do.
pub enum Plan<'a> {
    /// What it would hold is held already, so it only looks.
    Held {
        granted: u64,
    },
    /// Its lease is held already, and is renewed.
    Renews(Place),
    /// No other call comes before it. `claim` is what it asked of the line, if there is one.
    Proceeds {
        place: Place,
        claim: Option<(Claim<&'a [u8]>, Cost)>,
    },
    Stands(Stands<'a>),
}

/// A request that others come before, or that waits.
pub struct Stands<'a> {
    place: Place,
    /// What the limit itself says.
    pub answer: Answer,
    pub claim: Claim<&'a [u8]>,
    /// The time until the first of those is tried that come before the request.
    pub ahead: Option<Span>,
    pub wait: Option<Box<Wait>>,
}

impl Stands<'_> {
    /// The time until the limit has room if no other caller comes; `None` if it never has.
    pub fn retry(&self) -> Option<Span> {
        self.answer.verdict.time_to_room()
    }
}

/// Plans a request of a cost above 0. `left` is how long its caller can wait.
pub fn plan<'a, L: Limiter>(
    call: &impl Host,
    key: &mut Key<impl Slot>,
    limiter: &L,
    wish: &Wish<'a>,
    at: Time,
    left: impl FnOnce() -> Option<Span>,
) -> Result<Plan<'a>, Error> {
    let place = key.own_place(limiter)?;
    if let Some(charges) = wish.hold.and_then(|hold| held(key, hold.id, at)) {
        return Ok(Plan::Held { granted: find(key, charges, limiter).map_or(0, |charge| charge.cost) });
    }
    let plain = Ask::new(place, at, wish.cost, Manner::Strict);
    if plain.is_held(key, limiter) {
        return Ok(Plan::Renews(place));
    }
    key.place_to_charge(limiter, at)?;
    let name = limiter.name();
    let is_in_line = wish.block.is_some() || call.somebody_waits() && call.has_line(1, name);
    if wish.manner == Manner::Force || !is_in_line {
        return Ok(Plan::Proceeds { place, claim: None });
    }
    let claim = plain.claim(key, limiter, wish.tenant, wish.critical, |claim, leases| {
        call.follow(1, name, leases);
        claim
    });
    let ahead = call.ahead(1, name, &claim, wish.block.is_some());
    let answer = in_line(plain, wish.manner).peek(key, limiter);
    let books = matches!(wish.manner, Manner::Reserve { .. }) && answer.verdict != Verdict::NEVER;
    // A booking can be admitted before the cost fits.
    let answer = if books { Answer { verdict: Verdict::ADMIT, ..answer } } else { answer };
    if answer.verdict.admits() && ahead.is_none() {
        // A part of the cost is granted if the whole does not fit.
        let cost =
            if wish.manner == Manner::Partial { claim.cost.min(answer.gauge.remaining) } else { claim.cost };
        let estimated = if wish.hold.is_some() { Cost::Estimated } else { Cost::Known };
        return Ok(Plan::Proceeds { place, claim: Some((Claim { cost, ..claim }, estimated)) });
    }
    let wait = answer.verdict.time_to_room().and_then(|retry| {
        let left = left().filter(|left| retry <= *left || limiter.capabilities().early)?;
        call.wait(left, vec![1], once(Wanted { key: 1, name, claim, retry }))
    });
    if ahead.is_none() && wait.is_none() {
        return Ok(Plan::Proceeds { place, claim: None });
    }
    Ok(Plan::Stands(Stands { place, answer, claim, ahead, wait }))
}

/// The plain request by which a request of this manner is judged in line. A part of the cost is granted if 1 is.
fn in_line(mut plain: Ask, manner: Manner) -> Ask {
    if manner == Manner::Partial {
        plain.cost = 1;
    }
    plain
}

/// The outcome of a request.
pub enum Done {
    /// The answer, and what was granted of the cost, or the fencing token of a caller that wants it.
    Decided(Answer, u64),
    Waits(Box<Wait>),
}

/// Makes a request of a cost above 0: plans it, and acts.
#[cold]
#[inline(never)]
pub fn request<L: Limiter>(
    call: &impl Host,
    counter: Counter,
    limiter: &L,
    wish: &Wish<'_>,
) -> Result<Done, Error> {
    let clock = call.clock();
    let at = wish.at.unwrap_or(clock);
    let access = if call.only_looks() { Access::Read } else { Access::Write };
    let mut key = Key::open(call, 1, access)?;
    let planned = plan(call, &mut key, limiter, wish, at, || call.time_to_wait(wish.block))?;
    let (place, claim) = match planned {
        Plan::Held { granted } => return Ok(Done::Decided(look(&key, limiter, 0, at)?, granted)),
        // The lease exists by now, so the call returns what is held. Others always come before a request that only looks.
        Plan::Renews(place) | Plan::Proceeds { place, .. } if call.only_looks() => {
            let token = sixth(&key, limiter, place, Verdict::ADMIT, 0);
            return Ok(Done::Decided(look(&key, limiter, 0, at)?, token));
        }
        Plan::Stands(stands) => return stand(call, counter, key, limiter, wish, (clock, at), stands),
        Plan::Renews(place) => {
            if let Some(id) = limiter.lease_id() {
                call.serve(1, id);
            }
            (place, None)
        }
        Plan::Proceeds { place, claim } => (place, claim),
    };
    let mut ask = Ask::new(place, at, wish.cost, wish.manner);
    if wish.hold.is_some_and(|hold| !has_room(&key, &hold, at, 1)) {
        return Err(Error::TooManyHolds);
    }
    if let Some((claim, cost)) = claim {
        call.grant(1, limiter.name(), &claim, cost);
    }
    let taken = match &wish.hold {
        None => ask.take(&mut key, limiter)?,
        Some(hold) => {
            key.make_room_for_holds();
            ask.take_and_hold(&mut key, limiter, hold)?
        }
    };
    finish(call, &mut key, limiter, &ask, &taken, clock, wish.block.is_none());
    let sixth = sixth(&key, limiter, ask.place, taken.verdict, taken.granted);
    drop(key);
    call.record(1, counter, Outcome::of(taken.verdict));
    Ok(Done::Decided(taken.answer(), sixth))
}

/// The sixth integer of a reply: the fencing token of the lease if the caller wants it, else what was granted.
fn sixth<L: Limiter>(key: &Key<impl Slot>, limiter: &L, place: Place, verdict: Verdict, granted: u64) -> u64 {
    let token = limiter.token(key.state::<L::State>(place.stored));
    token.map_or(granted, |token| if verdict.admits() { token } else { 0 })
}

/// Acts for a request that others come before, or that waits. It writes what a refusal writes where no one waits: a state that moves
/// because the clock was set back, and the refusal itself in a log that counts refusals.
fn stand<L: Limiter>(
    call: &impl Host,
    counter: Counter,
    mut key: Key<impl Slot>,
    limiter: &L,
    wish: &Wish<'_>,
    (clock, at): (Time, Time),
    stands: Stands<'_>,
) -> Result<Done, Error> {
    let retry = stands.retry();
    let Stands { place, mut answer, claim, ahead, wait } = stands;
    let mut ask = in_line(Ask::new(place, at, wish.cost, Manner::Strict), wish.manner);
    if !call.only_looks() {
        if answer.verdict.admits() {
            ask.read_clock(&mut key, limiter)?;
        } else {
            answer = ask.take(&mut key, limiter)?.answer();
        }
        key.commit(clock, ask.now(), ask.gauge(&key, limiter).reset);
        key.publish();
    }
    let is_shared = is_shared(&key, &ask, limiter);
    drop(key);
    if let Some(wait) = wait {
        return Ok(Done::Waits(wait));
    }
    if wish.block.is_none() && retry.is_some() {
        call.starve(1, limiter.name(), &claim, is_shared);
    }
    call.record(1, counter, Outcome::Refused);
    Ok(Done::Decided(answer.behind(ahead.unwrap_or_default()), 0))
}

/// Requests a cost above 0 of a limit for which no one waits, and charges it if the limit admits it. `find` finds the limit in the key,
/// at the caller's instant.
#[inline(always)]
pub fn take<'c, H: Host, L: Limiter>(
    call: &'c H,
    limiter: &L,
    cost: u64,
    manner: Manner,
    at: Option<Time>,
    find: impl FnOnce(&mut Key<H::Slot<'c>>, Time) -> Result<Place, Error>,
) -> Result<Taken, Error> {
    let clock = call.clock();
    let at = at.unwrap_or(clock);
    let mut key = Key::open(call, 1, Access::Write)?;
    let place = find(&mut key, at)?;
    let mut ask = Ask::new(place, at, cost, manner);
    let taken = ask.take(&mut key, limiter)?;
    finish(call, &mut key, limiter, &ask, &taken, clock, true);
    Ok(taken)
}

/// Ends the change of a key by a request that was decided. `passes` is whether its caller does not wait if it is refused.
#[inline(always)]
fn finish<L: Limiter>(
    call: &impl Host,
    key: &mut Key<impl Slot>,
    limiter: &L,
    ask: &Ask,
    taken: &Taken,
    clock: Time,
    passes: bool,
) {
    key.commit(clock, ask.now(), taken.gauge.reset);
    key.publish();
    if passes && !taken.verdict.admits() && limiter.capabilities().early {
        starve(call, key, limiter, ask);
    }
}

/// A limit of leases refused a request that does not wait. If tenants share them, that of the request is hungry for some time.
#[cold]
#[inline(never)]
fn starve<L: Limiter>(call: &impl Host, key: &Key<impl Slot>, limiter: &L, ask: &Ask) {
    let is_shared = is_shared(key, ask, limiter);
    if is_shared || limiter.tenant().is_some() {
        let claim = ask.claim(key, limiter, limiter.tenant(), false, |claim, _| claim);
        call.starve(1, limiter.name(), &claim, is_shared);
    }
}

/// Whether a limit is a table of leases, some of which have tenants.
#[inline(always)]
fn is_shared<L: Limiter>(key: &Key<impl Slot>, ask: &Ask, limiter: &L) -> bool {
    let state = key.state::<L::State>(ask.place.stored);
    state.and_then(|state| limiter.leases(state)).is_some_and(Leases::has_tenants)
}

/// Returns the answer that a request would get, and changes nothing.
pub fn peek<L: Limiter>(call: &impl Host, limiter: &L, cost: u64, at: Option<Time>) -> Result<Answer, Error> {
    let key = Key::open(call, 1, Access::Read)?;
    look(&key, limiter, cost, at.unwrap_or_else(|| call.clock()))
}

/// [`peek`] on an open key.
pub fn look<L: Limiter>(key: &Key<impl Slot>, limiter: &L, cost: u64, at: Time) -> Result<Answer, Error> {
    let place = key.own_place(limiter)?;
    Ok(Ask::new(place, at, cost, Manner::Strict).peek_strike(key, limiter))
}
