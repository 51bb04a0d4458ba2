//! `BLOCK`, and calls of limits for which others wait: first come, first served.

use std::iter::once;

use ratelimit_core::hold::held;
use ratelimit_core::line::{Claim, Cost};
use ratelimit_core::state::{Leases, Tenant};
use ratelimit_core::{Answer, Ask, Joint, Limiter, Limits, Manner, Period, Span, Time, Verdict};
use ratelimit_language::Error;

use crate::host::Host;
use crate::key::{Key, SeveralKeys};
use crate::slot::{Access, Slot};
use crate::waiting::{Turns, Wait, Waits, Wanted};

/// A request to the limit of a limiter's own command.
pub struct Wish<'a> {
    pub cost: u64,
    pub manner: Manner,
    pub at: Option<Time>,
    /// The id of a hold.
    pub hold: Option<&'a [u8]>,
    /// As [`Request::block`](ratelimit_language::Request::block).
    pub block: Option<Period>,
    pub tenant: Option<Tenant<'a>>,
}

/// The outcome of a request when others wait, or when its caller can wait.
pub enum InLine {
    /// It is decided as if no caller waited.
    Proceeds,
    /// It is refused, because others come before it.
    IsBehind(Answer),
    Waits(Box<Wait>),
}

/// Finds the outcome of a request to the limit of a limiter's own command.
///
/// A refusal writes the same as where no other caller waits: a state that moves because the clock was set back, and the
/// refusal itself in a log that counts refusals.
pub fn line_up<L: Limiter>(call: &impl Host, limiter: &L, wish: &Wish<'_>) -> Result<InLine, Error> {
    let name = limiter.name();
    if wish.block.is_none() && !call.has_line(1, name) {
        return Ok(InLine::Proceeds);
    }
    let clock = call.clock();
    let at = wish.at.unwrap_or(clock);
    let access = if call.only_looks() { Access::Read } else { Access::Write };
    let mut key = Key::open(call, 1, access)?;
    let plain = Ask::new(key.own_place(limiter)?, at, wish.cost, Manner::Strict);
    let mut ask = in_manner(plain, wish.manner);
    if ask.is_held(&key, limiter) || wish.hold.is_some_and(|id| held(&key, id, at).is_some()) {
        if let Some(id) = limiter.lease_id().filter(|_| !call.only_looks()) {
            call.serve(1, id);
        }
        return Ok(InLine::Proceeds);
    }
    key.place_to_charge(limiter, at)?;
    let claim = plain.claim(&key, limiter, wish.tenant, |claim, leases| {
        call.follow(1, name, leases);
        claim
    });
    let ahead = || call.ahead(1, name, &claim, wish.block.is_some());
    let is_behind = ahead().is_some();
    let mut answer = answer_in_line(&ask, wish.manner, &key, limiter);
    if answer.verdict.admits() && !is_behind {
        // A part of the cost is granted if the whole does not fit.
        let cost =
            if wish.manner == Manner::Partial { claim.cost.min(answer.gauge.remaining) } else { claim.cost };
        let estimated = if wish.hold.is_some() { Cost::Estimated } else { Cost::Known };
        call.grant(1, name, &Claim { cost, ..claim }, estimated);
        return Ok(InLine::Proceeds);
    }
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
    let retry = match answer.verdict {
        Verdict::Refuse { retry } => retry,
        Verdict::Admit { .. } => Some(Span::ZERO),
    };
    if let Some(retry) = retry
        && let Some(left) = call.time_to_wait(wish.block)
        && (retry <= left || limiter.capabilities().early)
    {
        let wanted = Wanted { key: 1, name, claim, retry };
        if let Some(wait) = call.wait(left, vec![1], once(wanted)) {
            return Ok(InLine::Waits(wait));
        }
    }
    let Some(first) = ahead() else { return Ok(InLine::Proceeds) };
    if wish.block.is_none() && retry.is_some() {
        call.starve(1, name, &claim, is_shared);
    }
    Ok(InLine::IsBehind(answer.behind(first)))
}

/// A limit refused a request that does not wait. If tenants share its leases, that of the request is hungry for some time.
#[inline(always)]
pub fn starve<L: Limiter>(call: &impl Host, key: &Key<impl Slot>, limiter: &L, ask: &Ask) {
    if limiter.capabilities().early {
        starve_tenant(call, key, limiter, ask);
    }
}

#[cold]
#[inline(never)]
fn starve_tenant<L: Limiter>(call: &impl Host, key: &Key<impl Slot>, limiter: &L, ask: &Ask) {
    let is_shared = is_shared(key, ask, limiter);
    if is_shared || limiter.tenant().is_some() {
        let claim = ask.claim(key, limiter, limiter.tenant(), |claim, _| claim);
        call.starve(1, limiter.name(), &claim, is_shared);
    }
}

/// Whether a limit is a table of leases, some of which have tenants.
#[inline(always)]
fn is_shared<L: Limiter>(key: &Key<impl Slot>, ask: &Ask, limiter: &L) -> bool {
    let state = key.state::<L::State>(ask.place.stored);
    state.and_then(|state| limiter.leases(state)).is_some_and(Leases::has_tenants)
}

/// The plain request by which a request of this manner is judged in line. A part of the cost is granted if 1 is.
pub fn in_manner(mut plain: Ask, manner: Manner) -> Ask {
    if manner == Manner::Partial {
        plain.cost = 1;
    }
    plain
}

/// The answer to such a request. A booking can be admitted before the cost fits.
pub fn answer_in_line<L: Limiter>(ask: &Ask, manner: Manner, key: &Key<impl Slot>, limiter: &L) -> Answer {
    let mut answer = ask.peek(key, limiter);
    if matches!(manner, Manner::Reserve { .. }) && answer.verdict != Verdict::NEVER {
        answer.verdict = Verdict::ADMIT;
    }
    answer
}

/// The wait of a call with several limits that is refused; `None` if it must not wait.
pub fn wait_for(
    call: &impl Host,
    block: Period,
    keys: &SeveralKeys<'_, impl Host>,
    joint: &Joint<'_, '_>,
    open: &[Key<impl Slot>],
) -> Option<Box<Wait>> {
    let claim = |pair: usize, key: usize| joint.claim(pair, open.get(key)?);
    wait_within(call, call.time_to_wait(Some(block))?, keys, joint, claim)
}

/// As [`wait_for`], for a call that can wait for `left`. `claim` is what a pair on a key asks of its line.
pub fn wait_within<'a>(
    call: &impl Host,
    left: Span,
    keys: &SeveralKeys<'_, impl Host>,
    joint: &Joint<'_, 'a>,
    claim: impl Fn(usize, usize) -> Option<Claim<&'a [u8]>>,
) -> Option<Box<Wait>> {
    let refusing = joint.waits_for()?;
    let in_time = refusing.iter().all(|(_, _, part, retry)| *retry <= left || part.has_room_early());
    let wanted = refusing.into_iter().map(|(pair, key, part, retry)| {
        Some(Wanted { key: keys.place(key), name: part.name, claim: claim(pair, key)?, retry })
    });
    let wanted: Vec<_> = wanted.collect::<Option<_>>()?;
    let places = (0..keys.count()).map(|key| keys.place(key)).collect();
    if in_time { call.wait(left, places, wanted.into_iter()) } else { None }
}
