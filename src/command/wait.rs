//! `BLOCK`, and calls of limits for which others wait: first come, first served.

use std::iter::once;

use ratelimit_core::hold::held;
use ratelimit_core::{Answer, Ask, Joint, Limiter, Manner, Period, Span, Time, Verdict};
use ratelimit_language::Error;

use crate::server::{Access, Call, Key, SeveralKeys, Wait, Wanted, clock};

/// A request to the limit of a limiter's own command.
pub struct Wish<'a> {
    pub cost: u64,
    pub manner: Manner,
    pub at: Option<Time>,
    /// The id of a hold.
    pub hold: Option<&'a [u8]>,
    /// As [`Request::block`](ratelimit_language::Request::block).
    pub block: Option<Period>,
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
pub fn line_up<L: Limiter>(call: &Call<'_>, limiter: &L, wish: &Wish<'_>) -> Result<InLine, Error> {
    let name = limiter.name();
    let ahead = || call.ahead(1, name, limiter.is_critical());
    let is_behind = ahead().is_some();
    if !is_behind && wish.block.is_none() {
        return Ok(InLine::Proceeds);
    }
    let clock = clock();
    let at = wish.at.unwrap_or(clock);
    let access = if call.only_looks() { Access::Read } else { Access::Write };
    let mut key = Key::open(call, 1, access)?;
    let plain = Ask::new(key.own_place(limiter)?, at, wish.cost, Manner::Strict);
    let mut ask = in_manner(plain, wish.manner);
    if ask.is_held(&key, limiter) || wish.hold.is_some_and(|id| held(&key, id, at).is_some()) {
        return Ok(InLine::Proceeds);
    }
    let mut answer = answer_in_line(&ask, wish.manner, &key, limiter);
    if answer.verdict.admits() && !is_behind {
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
    drop(key);
    let retry = match answer.verdict {
        Verdict::Refuse { retry } => retry,
        Verdict::Admit { .. } => Some(Span::ZERO),
    };
    if let Some(retry) = retry
        && let Some(left) = call.time_to_wait(wish.block)
        && (retry <= left || limiter.capabilities().early)
    {
        let wanted = Wanted { key: 1, name, critical: limiter.is_critical(), retry };
        if let Some(wait) = call.wait(left, vec![1], once(wanted)) {
            return Ok(InLine::Waits(wait));
        }
    }
    Ok(ahead().map_or(InLine::Proceeds, |first| InLine::IsBehind(answer.behind(first))))
}

/// The plain request by which a request of this manner is judged in line. A part of the cost is granted if 1 is.
pub fn in_manner(mut plain: Ask, manner: Manner) -> Ask {
    if manner == Manner::Partial {
        plain.cost = 1;
    }
    plain
}

/// The answer to such a request. A booking can be admitted before the cost fits.
pub fn answer_in_line<L: Limiter>(ask: &Ask, manner: Manner, key: &Key<'_, '_>, limiter: &L) -> Answer {
    let mut answer = ask.peek(key, limiter);
    if matches!(manner, Manner::Reserve { .. }) && answer.verdict != Verdict::NEVER {
        answer.verdict = Verdict::ADMIT;
    }
    answer
}

/// The wait of a call with several limits that is refused; `None` if it must not wait.
pub fn wait_for(
    call: &Call<'_>,
    block: Period,
    keys: &SeveralKeys<'_, '_>,
    joint: &Joint<'_, '_>,
) -> Option<Box<Wait>> {
    wait_within(call, call.time_to_wait(Some(block))?, keys, joint)
}

/// As [`wait_for`], for a call that can wait for `left`.
pub fn wait_within(
    call: &Call<'_>,
    left: Span,
    keys: &SeveralKeys<'_, '_>,
    joint: &Joint<'_, '_>,
) -> Option<Box<Wait>> {
    let refusing = joint.waits_for()?;
    let in_time = refusing.iter().all(|(_, part, retry)| *retry <= left || part.has_room_early());
    let wanted = refusing.into_iter().map(|(key, part, retry)| Wanted {
        key: keys.place(key),
        name: part.name,
        critical: part.is_critical(),
        retry,
    });
    let places = (0..keys.count()).map(|key| keys.place(key)).collect();
    if in_time { call.wait(left, places, wanted) } else { None }
}
