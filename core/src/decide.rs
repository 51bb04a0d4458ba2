//! The decision on a state: how a limiter judges a request, in any manner and at any reading of the clock.

use crate::answer::{Answer, Manner, Verdict};
use crate::clock::{Reading, read_clock};
use crate::limiter::{Limiter, TooLong};
use crate::state::State;
use crate::time::{Span, Time};

/// The reading of the clock for a state.
#[inline(always)]
pub fn reading<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> Reading {
    read_clock(state.last(), now, || limiter.gauge(state, state.last()).reset)
}

/// The answer that a request would get. It changes nothing. A cost of 0 is always admitted, except during a ban.
pub fn peek<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Answer {
    when_decided(limiter, state, now, |state, then, lag| {
        let looks = cost == 0 && !limiter.capabilities().bans;
        let verdict = if looks { Verdict::ADMIT } else { judge(limiter, state, then, lag, cost) };
        Answer { verdict, gauge: limiter.gauge(state, then).delayed(lag) }
    })
}

/// As [`rule`], without the lag: `now` may be before the last charge. It changes nothing.
///
/// # Errors
///
/// As [`rule`].
pub fn foresee<L: Limiter>(
    limiter: &L,
    state: &L::State,
    now: Time,
    cost: u64,
    manner: Manner,
) -> Result<(Verdict, u64), TooLong> {
    when_decided(limiter, state, now, |state, then, lag| {
        let (verdict, granted) = rule(limiter, state, then, lag, cost, manner)?;
        let is_counted =
            limiter.capabilities().counts_refused && !verdict.admits() && verdict != Verdict::NEVER;
        let verdict =
            if is_counted { limiter.judge_counted(state, then, cost).delayed(lag) } else { verdict };
        Ok((verdict, granted))
    })
}

/// Calls `look` with the state as a request at `now` finds it, the instant at which that is decided, and how far `now` is
/// behind. It changes nothing.
pub fn when_decided<L: Limiter, T>(
    limiter: &L,
    state: &L::State,
    now: Time,
    look: impl FnOnce(&L::State, Time, Span) -> T,
) -> T {
    match reading(limiter, state, now) {
        Reading::At(then) => look(state, then, then.since(now)),
        Reading::SetBack => limiter.if_moved(state, now, |state, then| look(state, then, Span::ZERO)),
    }
}

/// The verdict on a request, as seen by a caller whose clock lags behind `now` by `lag`. The caller waits for the lag
/// too, so the lag counts against the longest wait.
#[inline(always)]
pub(crate) fn judge<L: Limiter>(limiter: &L, state: &L::State, now: Time, lag: Span, cost: u64) -> Verdict {
    limiter.judge(state, now, cost).delayed(lag).within(limiter.longest_wait())
}

/// The verdict on a request, and the part of its cost that is charged if it is admitted.
///
/// Limiters know nothing of manners. `PARTIAL` grants `gauge.remaining`; `FORCE` and `RESERVE` charge a cost that the
/// limiter did not admit. The verdict is as seen by a caller whose clock lags behind `now` by `lag`.
///
/// # Errors
///
/// If the debt or booking would take over 100 years to be paid off.
pub fn rule<L: Limiter>(
    limiter: &L,
    state: &L::State,
    now: Time,
    lag: Span,
    cost: u64,
    manner: Manner,
) -> Result<(Verdict, u64), TooLong> {
    let judge = |cost| judge(limiter, state, now, lag, cost);
    let (verdict, granted) = match manner {
        Manner::Strict => (judge(cost), cost),
        Manner::Partial => {
            let granted = cost.min(limiter.gauge(state, now).remaining);
            // If nothing remains, a cost of 1 yields the refusal and its retry.
            return Ok((judge(granted.max(1)), granted));
        }
        Manner::Force => (Verdict::ADMIT, cost),
        Manner::Reserve { longest } => match judge(cost) {
            Verdict::Refuse { retry: Some(wait) } if wait <= longest => (Verdict::Admit { wait }, cost),
            Verdict::Refuse { retry: Some(wait) } => (Verdict::refuse(wait.minus(longest)), cost),
            verdict => (verdict, cost),
        },
    };
    if verdict.admits() && limiter.reset_after(state, now, cost) > Span::CENTURY {
        return Err(TooLong);
    }
    Ok((verdict, granted))
}
