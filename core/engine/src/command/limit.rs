//! `RL.<LIMITER> key <parameters> [options]`: makes a request to a limit, which is charged if it admits.

use ratelimit_core::hold::{find, has_room, held};
use ratelimit_core::{Answer, AnyLimiter, Ask, Hold, Limiter, Manner, Place, Taken, Time, with_limiter};
use ratelimit_language::help::Documentation;
use ratelimit_language::{CATALOG, Error, Request};

use super::entry::Command;
use super::wait::{InLine, Wish, line_up, starve};
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::Key;
use crate::reply::Reply;
use crate::slot::{Access, Slot};
use crate::waiting::Waits;

/// The command of a limiter, by its row in the catalog.
pub struct Limit<const ROW: usize>;

#[allow(clippy::indexing_slicing, reason = "checked at compile time")]
impl<const ROW: usize> Command for Limit<ROW> {
    const DOCUMENTATION: Documentation = CATALOG[ROW].documentation;

    #[inline(always)]
    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let mut request = Request::default();
        let limiter = call.parse(2.., |arguments| (CATALOG[ROW].parse)(arguments, &mut request))?;
        let any = &limiter;
        with_limiter!(any, limiter => {
            request.check(limiter.capabilities())?;
            let (cost, manner) = (request.cost(), request.manner());
            if (request.block().is_some() || call.somebody_waits())
                && let Some(reply) = in_line(call, Counter::Row(ROW), any, &request)?
            {
                return Ok(reply);
            }
            if let Some((id, ttl)) = request.hold() {
                let hold = Hold { id, ttl, most: call.node().settings.most_holds() };
                return take_and_hold(call, Counter::Row(ROW), limiter, &request, &hold);
            }
            let (answer, granted) = if cost == 0 {
                (peek(call, limiter, 0, request.at)?, 0)
            } else {
                let find = |key: &mut Key<H::Slot<'_>>, at| key.place_to_charge(limiter, at);
                let refused = |key: &Key<H::Slot<'_>>, ask: &Ask| {
                    if request.block().is_none() {
                        starve(call, key, limiter, ask);
                    }
                };
                let taken = take(call, limiter, cost, manner, request.at, find, refused)?;
                call.record(1, Counter::Row(ROW), Outcome::of(taken.verdict));
                (taken.answer(), taken.granted)
            };
            Ok(reply(answer, granted, manner))
        })
    }
}

/// The reply to a request if others wait for the limit, or if its caller can wait. `None` if it is decided as if no caller
/// waited.
#[cold]
#[inline(never)]
fn in_line(
    call: &impl Host,
    counter: Counter,
    limiter: &AnyLimiter<'_>,
    request: &Request<'_>,
) -> Result<Option<Reply>, Error> {
    let (cost, manner) = (request.cost(), request.manner());
    if cost == 0 || manner == Manner::Force {
        return Ok(None);
    }
    let hold = request.hold().map(|(id, _)| id);
    let wish = Wish { cost, manner, at: request.at, hold, block: request.block(), tenant: request.tenant() };
    Ok(match with_limiter!(limiter, limiter => line_up(call, limiter, &wish))? {
        // The caller's lease or hold exists by now, so the call returns what is held.
        InLine::Proceeds if call.only_looks() => {
            let answer = with_limiter!(limiter, limiter => peek(call, limiter, 0, request.at))?;
            Some(reply(answer, 0, manner))
        }
        InLine::Proceeds => None,
        InLine::Waits(wait) => Some(Reply::Wait(wait)),
        InLine::IsBehind(answer) => {
            call.record(1, counter, Outcome::Refused);
            Some(reply(answer, 0, manner))
        }
    })
}

#[inline(always)]
fn reply(answer: Answer, granted: u64, manner: Manner) -> Reply {
    match manner {
        Manner::Partial => Reply::Six(answer, granted),
        _ => Reply::Answer(answer),
    }
}

/// Requests a cost above 0, and charges it if the limit admits it. `find` finds the limit in the key, at the caller's
/// instant. `refused` is called if the limit refuses.
#[inline(always)]
pub fn take<'c, H: Host, L: Limiter>(
    call: &'c H,
    limiter: &L,
    cost: u64,
    manner: Manner,
    at: Option<Time>,
    find: impl FnOnce(&mut Key<H::Slot<'c>>, Time) -> Result<Place, Error>,
    refused: impl FnOnce(&Key<H::Slot<'c>>, &Ask),
) -> Result<Taken, Error> {
    let clock = call.clock();
    let at = at.unwrap_or(clock);
    let mut key = Key::open(call, 1, Access::Write)?;
    let place = find(&mut key, at)?;
    let mut ask = Ask::new(place, at, cost, manner);
    let taken = ask.take(&mut key, limiter)?;
    key.commit(clock, ask.now(), taken.gauge.reset);
    key.publish();
    if !taken.verdict.admits() {
        refused(&key, &ask);
    }
    Ok(taken)
}

/// Makes a request, and holds what is charged. If the id is held already, it only looks.
#[inline(never)]
fn take_and_hold<L: Limiter>(
    call: &impl Host,
    counter: Counter,
    limiter: &L,
    request: &Request<'_>,
    hold: &Hold<'_>,
) -> Result<Reply, Error> {
    let (clock, manner) = (call.clock(), request.manner());
    let at = request.at.unwrap_or(clock);
    let mut key = Key::open(call, 1, Access::Write)?;
    if let Some(charges) = held(&key, hold.id, at) {
        let place = key.own_place(limiter)?;
        let granted = find(&key, charges, limiter).map_or(0, |charge| charge.cost);
        let answer = Ask::new(place, at, 0, Manner::Strict).peek(&key, limiter);
        return Ok(reply(answer, granted, manner));
    }
    if !has_room(&key, hold, at, 1) {
        return Err(Error::TooManyHolds);
    }
    let place = key.place_to_charge(limiter, at)?;
    key.make_room_for_holds();
    let mut ask = Ask::new(place, at, request.cost(), manner);
    let taken = ask.take_and_hold(&mut key, limiter, hold)?;
    key.commit(clock, ask.now(), taken.gauge.reset);
    key.publish();
    drop(key);
    call.record(1, counter, Outcome::of(taken.verdict));
    Ok(reply(taken.answer(), taken.granted, manner))
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
