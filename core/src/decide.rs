//! Verdicts and answers, what is done with a request that does not fit, and how the clock is read.

use alloc::vec::Vec;

use crate::limiter::{Limiter, TooLong};
use crate::state::State;
use crate::state::codec::Reader;
use crate::time::{Span, Time};

/// The outcome for one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Admit {
        /// How long to wait before acting.
        wait: Span,
    },
    Refuse {
        /// When this very request would be admitted; `None` is never.
        retry: Option<Span>,
    },
}

impl Verdict {
    pub const ADMIT: Verdict = Verdict::Admit { wait: Span::ZERO };
    pub const NEVER: Verdict = Verdict::Refuse { retry: None };

    pub fn refuse(retry: Span) -> Verdict {
        Verdict::Refuse { retry: Some(retry) }
    }

    pub fn admits(self) -> bool {
        matches!(self, Verdict::Admit { .. })
    }

    /// The verdict as a caller sees it whose clock lags.
    #[must_use]
    pub fn delayed(self, lag: Span) -> Verdict {
        match self {
            verdict if lag == Span::ZERO => verdict,
            Verdict::Admit { wait } => Verdict::Admit { wait: later(wait, lag) },
            Verdict::Refuse { retry } => Verdict::Refuse { retry: retry.map(|retry| later(retry, lag)) },
        }
    }

    /// The verdict on two requests that are admitted together or not at all.
    fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Admit { wait: a }, Verdict::Admit { wait: b }) => Verdict::Admit { wait: a.max(b) },
            (Verdict::Admit { .. }, refused) | (refused, Verdict::Admit { .. }) => refused,
            (Verdict::Refuse { retry: Some(a) }, Verdict::Refuse { retry: Some(b) }) => {
                Verdict::refuse(a.max(b))
            }
            _ => Verdict::NEVER,
        }
    }
}

/// Limit, remaining and reset at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauge {
    /// The most that could ever be admitted at once.
    pub limit: u64,
    /// The most that would be admitted right now; rounded down.
    pub remaining: u64,
    /// The time until the limit is fully reset; rounded up.
    pub reset: Span,
}

impl Gauge {
    /// The gauge as a caller sees it whose clock lags.
    #[must_use]
    pub fn delayed(self, lag: Span) -> Gauge {
        Gauge { reset: later(self.reset, lag), ..self }
    }
}

/// Zero stays zero; any other delay grows by the lag.
fn later(span: Span, lag: Span) -> Span {
    if span > Span::ZERO { span.plus(lag) } else { span }
}

/// The reply to a request: the verdict, and the gauge after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    pub verdict: Verdict,
    pub gauge: Gauge,
}

impl Answer {
    /// limited, limit, remaining, `retry_after` and `reset_after` in milliseconds, in the order of redis-cell.
    pub fn integers(&self) -> [i64; 5] {
        let Answer { verdict, gauge: Gauge { limit, remaining, reset } } = *self;
        let (limited, retry) = match verdict {
            Verdict::Admit { wait } => (0, millis(wait)),
            Verdict::Refuse { retry: Some(retry) } => (1, millis(retry)),
            Verdict::Refuse { retry: None } => (1, -1),
        };
        [limited, clamped(limit), clamped(remaining), retry, millis(reset)]
    }

    /// redis-cell's: in seconds, and -1 where nothing needs to be waited for.
    pub fn integers_of_cell(&self) -> [i64; 5] {
        let Answer { verdict, gauge: Gauge { limit, remaining, reset } } = *self;
        let (limited, retry) = match verdict {
            Verdict::Admit { .. } => (0, -1),
            Verdict::Refuse { retry } => (1, retry.map_or(-1, secs)),
        };
        [limited, clamped(limit), clamped(remaining), retry, secs(reset)]
    }

    /// The answer for limits that are asked together; `None` if there are none.
    pub fn all(answers: impl Iterator<Item = Answer>) -> Option<Answer> {
        answers.reduce(Answer::and)
    }

    /// The answer for two limits that are asked together: the tighter one's figures, the later reset.
    fn and(self, other: Answer) -> Answer {
        let tighter = if other.gauge.remaining < self.gauge.remaining { other.gauge } else { self.gauge };
        Answer {
            verdict: self.verdict.and(other.verdict),
            gauge: Gauge { reset: self.gauge.reset.max(other.gauge.reset), ..tighter },
        }
    }
}

fn secs(span: Span) -> i64 {
    clamped(span.as_secs_up())
}

fn millis(span: Span) -> i64 {
    clamped(span.as_millis_up())
}

/// The number as Redis replies it; the largest that fits if it does not.
pub fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What is done with a request that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manner {
    /// It is refused.
    #[default]
    Strict,
    /// It is granted what remains; refused if nothing does.
    Partial,
    /// It is admitted all the same, into debt.
    Force,
    /// It is booked ahead, if the wait is at most `longest`.
    Reserve { longest: Span },
}

/// What the clock reads for a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Decide at this instant: now, or the last charge if now is before it. No time passes then, so a step back of the
    /// clock grants nothing.
    At(Time),
    /// The last charge is further ahead than a whole reset: the clock was set back for good. The state must move to
    /// now, or its callers would wait until the old time comes round again.
    SetBack,
}

pub fn reading<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> Reading {
    read_clock(state.last(), now, || limiter.gauge(state, state.last()).reset)
}

/// The reading for a state by its last charge and the reset as of then.
pub fn read_clock(last: Time, now: Time, reset: impl FnOnce() -> Span) -> Reading {
    if now >= last {
        Reading::At(now)
    } else if last.since(now) > reset() {
        Reading::SetBack
    } else {
        Reading::At(last)
    }
}

/// The answer that a request would get. A cost of 0 is always admitted.
pub fn peek<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Answer {
    let (verdict, gauge, lag) = match reading(limiter, state, now) {
        Reading::At(then) => (limiter.judge(state, then, cost), limiter.gauge(state, then), then.since(now)),
        Reading::SetBack => {
            let moved = moved(limiter, state, now);
            (limiter.judge(&moved, now, cost), limiter.gauge(&moved, now), Span::ZERO)
        }
    };
    let verdict = if cost == 0 { Verdict::ADMIT } else { verdict };
    Answer { verdict: verdict.delayed(lag), gauge: gauge.delayed(lag) }
}

/// A copy of the state as it will be when a clock that was set back has moved it to `now`.
fn moved<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> L::State {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    // What was just encoded can be decoded.
    let mut copy = L::State::decode(&mut Reader::new(&bytes)).unwrap_or_else(L::State::blank);
    copy.apply(limiter.rebase(state, now));
    copy
}

/// Whether [`rule`] would return an error, for a state whose clock may have been set back.
pub fn check<L: Limiter>(
    limiter: &L,
    state: &L::State,
    now: Time,
    cost: u64,
    manner: Manner,
) -> Result<(), TooLong> {
    match reading(limiter, state, now) {
        Reading::At(then) => rule(limiter, state, then, then.since(now), cost, manner),
        Reading::SetBack => rule(limiter, &moved(limiter, state, now), now, Span::ZERO, cost, manner),
    }
    .map(drop)
}

/// The verdict on a request, and how much of its cost is charged if it is admitted.
///
/// Limiters know nothing of manners: `PARTIAL` grants `gauge.remaining`, and `FORCE` and `RESERVE` charge what was not
/// admitted. The verdict is that of a caller whose clock lags behind `now` by `lag`.
///
/// # Errors
///
/// If the debt or booking would take over 100 years to be worked off.
pub fn rule<L: Limiter>(
    limiter: &L,
    state: &L::State,
    now: Time,
    lag: Span,
    cost: u64,
    manner: Manner,
) -> Result<(Verdict, u64), TooLong> {
    let judge = |cost| limiter.judge(state, now, cost).delayed(lag);
    let (verdict, granted) = match manner {
        Manner::Strict => (judge(cost), cost),
        Manner::Partial => {
            let granted = cost.min(limiter.gauge(state, now).remaining);
            // If nothing remains, the verdict is that on a cost of 1, which refuses.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(verdict: Verdict, limit: u64, remaining: u64, reset: u64) -> Answer {
        Answer { verdict, gauge: Gauge { limit, remaining, reset: Span::from_millis(reset) } }
    }

    fn refused(millis: u64) -> Verdict {
        Verdict::refuse(Span::from_millis(millis))
    }

    fn waits(millis: u64) -> Verdict {
        Verdict::Admit { wait: Span::from_millis(millis) }
    }

    #[test]
    fn asked_together_the_tightest_limit_tells_and_the_longest_wait_counts() {
        let all = |answers: &[Answer]| Answer::all(answers.iter().copied());
        assert_eq!(all(&[]), None);
        let (wide, tight) = (answer(waits(10), 9, 5, 400), answer(waits(30), 3, 2, 100));
        assert_eq!(all(&[wide, tight]), Some(answer(waits(30), 3, 2, 400)));
        // Of equals the first.
        assert_eq!(all(&[tight, answer(waits(0), 7, 2, 0)]).map(|all| all.gauge.limit), Some(3));
        // Of those that refuse, the longest; what would be admitted has no say in it.
        let no = [answer(waits(9000), 9, 5, 0), answer(refused(20), 9, 0, 0), answer(refused(70), 9, 0, 0)];
        assert_eq!(all(&no).map(|all| all.verdict), Some(refused(70)));
        let never = answer(Verdict::NEVER, 1, 1, 0);
        assert_eq!(all(&[no[1], never, no[2]]).map(|all| all.verdict), Some(Verdict::NEVER));
    }
}
