//! The thinking: what limiters there are, and the few questions that all of them answer.
//!
//! Everything here is arithmetic. There is no server, no clock and no chance: `now` is an argument. A limiter is
//! its parameters; they come with each call. What a key stores is the limiter's state, and a state is only ever
//! changed by applying a *change*, which is bytes: the same bytes on the node that decided, on its replicas, and
//! when an append-only file is read.
//!
//! ```text
//! words --parse--> limiter          state --judge--> verdict
//!                                     |
//!                                     +--charge--> change --apply--> state --gauge--> gauge
//! ```

mod batch_bucket;
pub mod codec;
pub mod concurrent;
mod error;
mod fraction;
mod gcra;
#[cfg(test)]
mod laws;
mod leases;
mod sliding_buckets;
mod sliding_window;
mod token_bucket;
mod words;

pub use batch_bucket::{Batch, BatchBucket};
use codec::{Reader, put};
pub use concurrent::Concurrent;
pub use error::Error;
pub use gcra::{Arrival, Gcra};
pub use leases::Leases;
pub use sliding_buckets::{Buckets, SlidingBuckets};
pub use sliding_window::{Counts, SlidingWindow};
pub use token_bucket::{Level, TokenBucket};
pub use words::{Bounds, Request, Words, is};

use crate::time::{Span, Time};

/// An algorithm with its parameters.
///
/// Instants never go backwards: [`reading`] sees to it that `now` is at or after the state's last charge. `judge`
/// and `gauge` take a state as it was left, however long ago.
pub trait Limiter {
    type State: State;

    /// The state of a key that nobody has asked about.
    fn fresh(&self, now: Time) -> Self::State;

    /// Would a request of this cost be admitted?
    fn judge(&self, state: &Self::State, now: Time, cost: u64) -> Verdict;

    /// What admitting that request changes; time passes up to `now` on the way.
    fn charge<'a>(
        &'a self,
        state: &'a Self::State,
        now: Time,
        cost: u64,
    ) -> <Self::State as State>::Change<'a>;

    /// How the state looks at `now`.
    fn gauge(&self, state: &Self::State, now: Time) -> Gauge;

    /// What moves the state back to `now`, when the clock was set back.
    fn rebase<'a>(&'a self, state: &'a Self::State, now: Time) -> <Self::State as State>::Change<'a>;

    /// Judges and gauges as if the state had been moved back to `now`. Where nothing depends on where the clock
    /// stands, only on time that passed, that is how it was at its last charge.
    fn look_back(&self, state: &Self::State, _now: Time, cost: u64) -> (Verdict, Gauge) {
        (self.judge(state, state.last(), cost), self.gauge(state, state.last()))
    }
}

/// What a key stores for a limiter.
pub trait State: Sized {
    const KIND: Kind;

    /// What a charge does to the state, in a form that replicas can repeat. For a small state it is the new state;
    /// for a collection only what changed, in absolute terms: applied twice it does no more than once.
    type Change<'a>;

    /// The instant of the last charge.
    fn last(&self) -> Time;

    /// What a change to a missing key is applied to.
    fn blank() -> Self;

    fn apply(&mut self, change: Self::Change<'_>);

    fn encode_change(change: &Self::Change<'_>, out: &mut Vec<u8>);

    /// Reads what `encode_change` wrote. `None` if it is malformed: nothing that it returns can harm a state.
    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Self::Change<'a>>;

    /// Writes the state; the bytes depend on the logical state alone.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what `encode` wrote, or is `None`.
    fn decode(reader: &mut Reader<'_>) -> Option<Self>;

    /// Bytes that the state holds outside itself.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// How many pieces must be freed with it.
    fn effort(&self) -> usize {
        1
    }

    /// Names the stored figures, for people.
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
}

/// A stored figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Figure {
    Count(u64),
    Signed(i64),
    Length(Span),
    At(Time),
}

/// A state of a few words, which is its own change.
pub trait Small: Copy {
    const KIND: Kind;
    /// How many of the words count.
    const WORDS: usize;

    fn last(&self) -> Time;
    fn words(&self) -> [u64; 4];
    fn from_reader(reader: &mut Reader<'_>) -> Option<Self>;
    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure));
    /// All zeros; only there to be replaced by the first change.
    fn zero() -> Self;
}

impl<S: Small> State for S {
    const KIND: Kind = S::KIND;
    type Change<'a> = S;

    fn last(&self) -> Time {
        Small::last(self)
    }

    fn blank() -> S {
        S::zero()
    }

    fn apply(&mut self, change: S) {
        *self = change;
    }

    fn encode_change(change: &S, out: &mut Vec<u8>) {
        change.encode(out);
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<S> {
        S::from_reader(reader)
    }

    #[inline(always)]
    fn encode(&self, out: &mut Vec<u8>) {
        for word in self.words().iter().take(S::WORDS) {
            put(out, *word);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<S> {
        S::from_reader(reader)
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        Small::describe(self, figure);
    }
}

/// Later than any instant a state can hold: the year 9999 and the longest that a limiter may take from there.
const HORIZON: Time = Time::LATEST.plus(Span::CENTURY).plus(Span::CENTURY).plus(Span::CENTURY);

fn instant(reader: &mut Reader<'_>) -> Option<Time> {
    reader.word_up_to(Time::LATEST.as_micros()).map(Time::from_micros)
}

fn duration(reader: &mut Reader<'_>) -> Option<Span> {
    reader.word_up_to(Span::CENTURY.as_micros()).filter(|micros| *micros > 0).map(Span::from_micros)
}

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

/// How a limiter stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauge {
    /// The most that could ever be admitted at once.
    pub limit: u64,
    /// The most that would be admitted right now; rounded down.
    pub remaining: u64,
    /// How long until the state is as good as new; rounded up.
    pub reset: Span,
}

/// What a caller is told: the verdict, and how the limiter stands after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    pub verdict: Verdict,
    pub gauge: Gauge,
}

impl Answer {
    /// The same answer for a caller whose clock is so far behind the state's last charge: what is to come, comes that
    /// much later for them.
    #[must_use]
    pub fn delayed(self, lag: Span) -> Answer {
        if lag == Span::ZERO {
            return self;
        }
        let later = |span: Span| if span > Span::ZERO { span.plus(lag) } else { span };
        let verdict = match self.verdict {
            Verdict::Admit { wait } => Verdict::Admit { wait: later(wait) },
            Verdict::Refuse { retry } => Verdict::Refuse { retry: retry.map(later) },
        };
        Answer { verdict, gauge: Gauge { reset: later(self.gauge.reset), ..self.gauge } }
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

/// One limit that a request must pass: a limiter, its state, an instant and a cost.
pub trait Claim {
    /// The verdict on this limit alone. Changes nothing that counts.
    fn judge(&mut self) -> Verdict;
    /// Takes the cost; only after a `judge` that admitted.
    fn charge(&mut self);
    /// The verdict given, and how the limit stands now.
    fn answer(&self) -> Answer;
}

/// Decides a request that must pass all these limits: judges all, then charges all or none.
///
/// The combined answer; `None` if there is no limit to pass.
pub fn decide_all<C: Claim + ?Sized>(claims: &mut [&mut C]) -> Option<Answer> {
    let mut admitted = true;
    for claim in claims.iter_mut() {
        admitted &= claim.judge().admits();
    }
    if admitted {
        for claim in claims.iter_mut() {
            claim.charge();
        }
    }
    claims.iter().map(|claim| claim.answer()).reduce(Answer::and)
}

/// What the clock reads for a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Decide at this instant: now, or that of the last charge when the clock stepped back behind it. No time
    /// passes then, so a step back grants nothing.
    At(Time),
    /// The last charge is further ahead than a whole reset: the clock was set back for good. The state must be
    /// moved, or its callers would wait until the old time comes round again.
    SetBack,
}

pub fn reading<L: Limiter>(limiter: &L, state: &L::State, now: Time) -> Reading {
    read_clock(state.last(), now, || limiter.gauge(state, state.last()).reset)
}

/// The same for whoever knows the reset without a limiter.
pub fn read_clock(last: Time, now: Time, reset: impl FnOnce() -> Span) -> Reading {
    if now >= last {
        Reading::At(now)
    } else if last.since(now) > reset() {
        Reading::SetBack
    } else {
        Reading::At(last)
    }
}

/// The answer that a request would get, without charging it. A cost of 0 is a look, which nothing refuses.
pub fn look<L: Limiter>(limiter: &L, state: &L::State, now: Time, cost: u64) -> Answer {
    let (verdict, gauge, lag) = match reading(limiter, state, now) {
        Reading::At(then) => (limiter.judge(state, then, cost), limiter.gauge(state, then), then.since(now)),
        Reading::SetBack => {
            let (verdict, gauge) = limiter.look_back(state, now, cost);
            (verdict, gauge, Span::ZERO)
        }
    };
    let verdict = if cost == 0 { Verdict::ADMIT } else { verdict };
    Answer { verdict, gauge }.delayed(lag)
}

/// A limiter as callers know it.
pub struct Row {
    /// The command is `RL.` and this.
    pub name: &'static str,
    pub syntax: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    /// What the server should know; `fast` only where a call is O(1) whatever its options.
    pub flags: &'static str,
    pub parse: for<'a> fn(&mut Words<'_, 'a>, &mut Request) -> Result<AnyLimiter<'a>, Error>,
}

/// Every limiter, once.
pub const CATALOG: [Row; 4] = [
    Row {
        name: "TOKENBUCKET",
        syntax: "key capacity refill period [BATCH] [COST cost] [AT at]",
        summary: "Takes tokens from a bucket that is refilled at a steady rate",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: token_bucket::parse,
    },
    Row {
        name: "GCRA",
        syntax: "key max_burst count period [COST cost] [AT at]",
        summary: "Limits a rate by the generic cell rate algorithm",
        complexity: "O(1)",
        flags: "write deny-oom fast",
        parse: gcra::parse,
    },
    Row {
        name: "SLIDINGWINDOW",
        syntax: "key limit window [PRECISION precision] [COST cost] [AT at]",
        summary: "Limits a count over a window that slides with the clock",
        complexity: "O(1), with PRECISION O(N) where N is the number of sub-buckets in use",
        flags: "write deny-oom",
        parse: sliding_window::parse,
    },
    Row {
        name: "CONCURRENT",
        syntax: "key capacity ttl id [RESERVED reserved] [CRITICAL] [COST cost] [AT at]",
        summary: "Takes or renews a lease, of which so many may be held at once",
        complexity: "O(log(N)) where N is the number of leases, and O(N/64) after many of them ended at once",
        flags: "write deny-oom",
        parse: concurrent::parse,
    },
];

/// The row of a limiter's name, case-insensitive.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    const ROWS: &[Row] = &CATALOG;
    ROWS.iter().find(|row| is(name, row.name))
}

/// A parsed limiter of any kind. `with_limiter!` takes it apart again.
pub enum AnyLimiter<'a> {
    TokenBucket(TokenBucket),
    BatchBucket(BatchBucket),
    Gcra(Gcra),
    SlidingWindow(SlidingWindow),
    SlidingBuckets(SlidingBuckets),
    Concurrent(Concurrent<'a>),
}

/// Runs `$body` with `$limiter` bound to the limiter inside, of its own type.
#[macro_export]
macro_rules! with_limiter {
    ($any:expr, $limiter:ident => $body:expr) => {
        match $any {
            $crate::limit::AnyLimiter::TokenBucket($limiter) => $body,
            $crate::limit::AnyLimiter::BatchBucket($limiter) => $body,
            $crate::limit::AnyLimiter::Gcra($limiter) => $body,
            $crate::limit::AnyLimiter::SlidingWindow($limiter) => $body,
            $crate::limit::AnyLimiter::SlidingBuckets($limiter) => $body,
            $crate::limit::AnyLimiter::Concurrent($limiter) => $body,
        }
    };
}

/// What a key holds. The numbers are part of the encoding: never change or reuse one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Level = 1,
    Batch = 2,
    Arrival = 3,
    Counts = 4,
    Buckets = 5,
    Leases = 6,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Option<Kind> {
        let kinds = [Kind::Level, Kind::Batch, Kind::Arrival, Kind::Counts, Kind::Buckets, Kind::Leases];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The limiter whose state it is, and its mode, as `RL.INFO` tells them.
    pub fn title(self) -> (&'static str, &'static str) {
        match self {
            Kind::Level => ("TOKENBUCKET", "continuous"),
            Kind::Batch => ("TOKENBUCKET", "batch"),
            Kind::Arrival => ("GCRA", "plain"),
            Kind::Counts => ("SLIDINGWINDOW", "weighted"),
            Kind::Buckets => ("SLIDINGWINDOW", "precision"),
            Kind::Leases => ("CONCURRENT", "leases"),
        }
    }
}

/// Runs `$body` with `$State` standing for the type of state of this kind.
#[macro_export]
macro_rules! with_state {
    ($kind:expr, $State:ident => $body:expr) => {{
        macro_rules! run {
            ($type:ty) => {{
                type $State = $type;
                $body
            }};
        }
        match $kind {
            $crate::limit::Kind::Level => run!($crate::limit::Level),
            $crate::limit::Kind::Batch => run!($crate::limit::Batch),
            $crate::limit::Kind::Arrival => run!($crate::limit::Arrival),
            $crate::limit::Kind::Counts => run!($crate::limit::Counts),
            $crate::limit::Kind::Buckets => run!($crate::limit::Buckets),
            $crate::limit::Kind::Leases => run!($crate::limit::Leases),
        }
    }};
}
