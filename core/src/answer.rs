//! The reply to a caller: verdict, gauge and answer. And the manner in which a request that does not fit is handled.

use crate::count::MAX_COUNT;
use crate::time::Span;

/// The decision on one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Admit {
        /// How long the caller must wait before it acts.
        wait: Span,
    },
    Refuse {
        /// The time until the same request would be admitted, if no other comes first; `None` if never.
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

    /// The time until the limit has room if no other request comes; `None` if it never has.
    pub fn time_to_room(self) -> Option<Span> {
        match self {
            Verdict::Admit { .. } => Some(Span::ZERO),
            Verdict::Refuse { retry } => retry,
        }
    }

    /// The verdict as seen by a caller whose clock lags by `lag`.
    #[must_use]
    pub fn delayed(self, lag: Span) -> Verdict {
        match self {
            verdict if lag == Span::ZERO => verdict,
            Verdict::Admit { wait } => Verdict::Admit { wait: later(wait, lag) },
            Verdict::Refuse { retry } => Verdict::Refuse { retry: retry.map(|retry| later(retry, lag)) },
        }
    }

    /// The verdict if a wait may be at most `longest`.
    pub(crate) fn within(self, longest: Span) -> Verdict {
        match self {
            Verdict::Admit { wait } if wait > longest => Verdict::refuse(wait.minus(longest)),
            verdict => verdict,
        }
    }

    /// The verdict on two requests that are admitted together or not at all.
    pub(crate) fn and(self, other: Verdict) -> Verdict {
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
    /// The largest cost that can be admitted at once when nothing else is charged.
    pub limit: u64,
    /// The largest cost that would be admitted now, rounded down.
    pub remaining: u64,
    /// The time until the limit is fully reset, rounded up.
    pub reset: Span,
}

impl Gauge {
    /// The gauge as seen by a caller whose clock lags by `lag`.
    #[must_use]
    pub fn delayed(self, lag: Span) -> Gauge {
        Gauge { reset: later(self.reset, lag), ..self }
    }
}

/// Zero stays zero; any other delay grows by the lag.
fn later(span: Span, lag: Span) -> Span {
    if span > Span::ZERO { span.plus(lag) } else { span }
}

/// The least retry of a caller that is refused because others wait.
const LEAST_RETRY: Span = Span::from_millis(1);

/// The reply to a request: the verdict, and the gauge after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    pub verdict: Verdict,
    pub gauge: Gauge,
}

impl Answer {
    /// The reply: limited, limit, remaining, `retry_after` and `reset_after`, in milliseconds.
    ///
    /// `retry_after` is the wait of an admitted request, and -1 if the request can never be admitted. Each integer is at
    /// most [`MAX_COUNT`], which clients in JavaScript and Lua hold exactly.
    #[inline(always)]
    pub fn integers(&self) -> [i64; 5] {
        let Answer { verdict, gauge: Gauge { limit, remaining, reset } } = *self;
        let (limited, retry) = match verdict {
            Verdict::Admit { wait } => (0, millis(wait)),
            Verdict::Refuse { retry: Some(retry) } => (1, millis(retry)),
            Verdict::Refuse { retry: None } => (1, -1),
        };
        [limited, capped(limit), capped(remaining), retry, millis(reset)]
    }

    /// The reply of redis-cell: the same integers in seconds. `retry_after` is -1 if the request was admitted, too.
    pub fn integers_of_cell(&self) -> [i64; 5] {
        let Answer { verdict, gauge: Gauge { limit, remaining, reset } } = *self;
        let (limited, retry) = match verdict {
            Verdict::Admit { .. } => (0, -1),
            Verdict::Refuse { retry } => (1, retry.map_or(-1, secs)),
        };
        [limited, capped(limit), capped(remaining), retry, secs(reset)]
    }

    /// The answer if others wait for the limit, and the first of them may be admitted after `retry`: a refusal, with nothing
    /// remaining. Its retry is a lower bound.
    #[must_use]
    pub fn behind(self, retry: Span) -> Answer {
        let verdict = self.verdict.and(Verdict::refuse(retry.max(LEAST_RETRY)));
        Answer { verdict, gauge: Gauge { remaining: 0, ..self.gauge } }
    }

    /// The order of the answers of several limits. The least one binds: a refusal before an admission, then the longer retry,
    /// or the smaller remaining.
    pub(crate) fn slack(&self) -> (bool, i64) {
        match self.verdict {
            Verdict::Admit { .. } => (true, capped(self.gauge.remaining)),
            Verdict::Refuse { retry: Some(retry) } => (false, -millis(retry)),
            Verdict::Refuse { retry: None } => (false, i64::MIN),
        }
    }

    /// The answer for several limits that admit together or not at all; `None` if there are none.
    pub fn all(answers: impl Iterator<Item = Answer>) -> Option<Answer> {
        answers.reduce(Answer::and)
    }

    /// The answer for two limits: limit and remaining of the one with less remaining, and the longer reset.
    fn and(self, other: Answer) -> Answer {
        let tighter = if other.gauge.remaining < self.gauge.remaining { other.gauge } else { self.gauge };
        Answer {
            verdict: self.verdict.and(other.verdict),
            gauge: Gauge { reset: self.gauge.reset.max(other.gauge.reset), ..tighter },
        }
    }
}

fn secs(span: Span) -> i64 {
    capped(span.as_secs_up())
}

fn millis(span: Span) -> i64 {
    capped(span.as_millis_up())
}

/// The number as an integer of an answer, at most [`MAX_COUNT`].
fn capped(number: u64) -> i64 {
    number.min(MAX_COUNT).cast_signed()
}

/// The number as the signed integer of a reply, at most `i64::MAX`.
pub fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How a request that does not fit is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manner {
    /// It is refused.
    #[default]
    Strict,
    /// It is granted what remains. If nothing remains, it is refused.
    Partial,
    /// It is admitted and charged as debt.
    Force,
    /// It is booked ahead if the wait is at most `longest`, and otherwise refused.
    Reserve { longest: Span },
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
    fn several_limits_answer_with_the_least_remaining_and_the_longest_wait() {
        let all = |answers: &[Answer]| Answer::all(answers.iter().copied());
        assert_eq!(all(&[]), None);
        let (wide, tight) = (answer(waits(10), 9, 5, 400), answer(waits(30), 3, 2, 100));
        assert_eq!(all(&[wide, tight]), Some(answer(waits(30), 3, 2, 400)));
        // If two limits have the same remaining, the first one answers.
        assert_eq!(all(&[tight, answer(waits(0), 7, 2, 0)]).map(|all| all.gauge.limit), Some(3));
        // The retry is the longest of the refusals. The wait of an admission does not count.
        let no = [answer(waits(9000), 9, 5, 0), answer(refused(20), 9, 0, 0), answer(refused(70), 9, 0, 0)];
        assert_eq!(all(&no).map(|all| all.verdict), Some(refused(70)));
        let never = answer(Verdict::NEVER, 1, 1, 0);
        assert_eq!(all(&[no[1], never, no[2]]).map(|all| all.verdict), Some(Verdict::NEVER));
    }

    #[test]
    fn no_integer_of_a_reply_exceeds_the_largest_count() {
        let most = 9_007_199_254_740_991;
        let huge = Gauge { limit: u64::MAX, remaining: u64::MAX, reset: Span::FOREVER };
        let of = |verdict| Answer { verdict, gauge: huge };
        assert_eq!(of(Verdict::refuse(Span::FOREVER)).integers(), [1, most, most, most, most]);
        assert_eq!(of(Verdict::Admit { wait: Span::FOREVER }).integers(), [0, most, most, most, most]);
        // In seconds, the longest duration is smaller.
        let secs = 18_446_744_073_710;
        assert_eq!(of(Verdict::refuse(Span::FOREVER)).integers_of_cell(), [1, most, most, secs, secs]);
        assert_eq!(of(Verdict::NEVER).integers(), [1, most, most, -1, most]);
    }
}
