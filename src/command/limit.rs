//! `RL.<LIMITER> key <parameters> [options]`: asks, and takes if it may.

use crate::limit::with_limiter;
use crate::limit::{
    Answer, CATALOG, Claim, Error, Limiter, Manner, Request, State, Verdict, decide_all, look, rule,
};
use crate::server::{Access, Call, Command, Counter, Key, Keys, Outcome, Reply, clock};
use crate::time::{Span, Time};

/// The command of a row of the catalog.
pub struct Limit<const ROW: usize>;

#[allow(clippy::indexing_slicing, reason = "checked when it is compiled")]
impl<const ROW: usize> Command for Limit<ROW> {
    const NAME: &'static str = CATALOG[ROW].name;
    const SYNTAX: &'static str = CATALOG[ROW].syntax;
    const SUMMARY: &'static str = CATALOG[ROW].summary;
    const COMPLEXITY: &'static str = CATALOG[ROW].complexity;
    const FLAGS: &'static str = CATALOG[ROW].flags;
    const KEYS: Keys = Keys::Update;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut request = Request::default();
        let limiter = call.parse(2.., |words| (CATALOG[ROW].parse)(words, &mut request))?;
        let (cost, manner) = (request.cost(), request.manner());
        if !CATALOG[ROW].allows.manner(manner) {
            return Err(Error::Syntax);
        }
        let (answer, granted) =
            with_limiter!(limiter, limiter => ask(call, &limiter, cost, manner, request.at))?;
        if cost > 0 {
            call.decided(1, Counter::Row(ROW), Outcome::of(answer.verdict));
        }
        Ok(match manner {
            Manner::Partial => Reply::Granted(answer, granted),
            _ => Reply::Answer(answer),
        })
    }
}

/// The answer, and how much was granted.
pub fn ask<L: Limiter>(
    call: &Call<'_>,
    limiter: &L,
    cost: u64,
    manner: Manner,
    at: Option<Time>,
) -> Result<(Answer, u64), Error> {
    let clock = clock();
    let asked = at.unwrap_or(clock);
    if cost == 0 {
        let key = Key::<L::State>::open(call, 1, Access::Look)?;
        return Ok((glance(&key, limiter, asked, 0), 0));
    }
    let key = Key::<L::State>::open(call, 1, Access::Change)?;
    let mut claim = KeyClaim::new(limiter, key, asked, cost, manner)?;
    let answer = decide_all(&mut [&mut claim]).ok_or(Error::Internal)?;
    let KeyClaim { key, now, lag, cost, failed, .. } = claim;
    key.commit(clock.max(now), answer.gauge.reset);
    match failed {
        None => Ok((Answer { gauge: answer.gauge.delayed(lag), ..answer }, cost)),
        Some(error) => Err(error),
    }
}

/// The answer that a request would get of a key, as it is.
pub fn glance<L: Limiter>(key: &Key<'_, '_, L::State>, limiter: &L, now: Time, cost: u64) -> Answer {
    match key.state() {
        Some(state) => look(limiter, state, now, cost),
        None => look(limiter, &limiter.fresh(now), now, cost),
    }
}

/// The instant at which to decide on a key that may be changed; if the clock was set back, its state is moved to now.
#[inline]
pub fn read_clock<L: Limiter>(
    key: &mut Key<'_, '_, L::State>,
    limiter: &L,
    asked: Time,
) -> Result<Time, Error> {
    key.read_clock(
        asked,
        |state| limiter.gauge(state, state.last()).reset,
        |state, out| L::State::encode_change(&limiter.rebase(state, asked), out),
    )
}

/// A request to one limiter on one key.
struct KeyClaim<'k, 'c, 'a, L: Limiter> {
    limiter: &'k L,
    key: Key<'c, 'a, L::State>,
    now: Time,
    /// How far the caller's clock is behind that.
    lag: Span,
    /// What is asked for, and once it is judged, what is granted.
    cost: u64,
    manner: Manner,
    verdict: Verdict,
    /// Why nothing could be decided.
    failed: Option<Error>,
}

impl<'k, 'c, 'a, L: Limiter> KeyClaim<'k, 'c, 'a, L> {
    /// The claim at the instant that the clock reads for the key's state.
    fn new(
        limiter: &'k L,
        mut key: Key<'c, 'a, L::State>,
        asked: Time,
        cost: u64,
        manner: Manner,
    ) -> Result<Self, Error> {
        let now = read_clock(&mut key, limiter, asked)?;
        Ok(KeyClaim {
            limiter,
            key,
            now,
            lag: now.since(asked),
            cost,
            manner,
            verdict: Verdict::ADMIT,
            failed: None,
        })
    }

    /// The verdict in a manner that is not strict. What cannot be decided is not admitted; why is told in the end.
    #[cold]
    fn rule(&mut self) -> Verdict {
        match self.with_state(|state| rule(self.limiter, state, self.now, self.lag, self.cost, self.manner)) {
            Ok((verdict, granted)) => {
                self.cost = granted;
                verdict
            }
            Err(error) => {
                self.failed = Some(error);
                Verdict::NEVER
            }
        }
    }

    fn with_state<T>(&self, body: impl FnOnce(&L::State) -> T) -> T {
        match self.key.state() {
            Some(state) => body(state),
            None => body(&self.limiter.fresh(self.now)),
        }
    }
}

impl<L: Limiter> Claim for KeyClaim<'_, '_, '_, L> {
    fn judge(&mut self) -> Verdict {
        self.verdict = match self.manner {
            Manner::Strict if !L::BOOKS => {
                self.with_state(|state| self.limiter.judge(state, self.now, self.cost)).delayed(self.lag)
            }
            _ => self.rule(),
        };
        self.verdict
    }

    fn charge(&mut self) {
        let Self { limiter, key, now, cost, failed, .. } = self;
        let charged = key.change(limiter.fresh(*now), |state, out| {
            L::State::encode_change(&limiter.charge(state, *now, *cost), out);
        });
        *failed = charged.err();
    }

    /// A request that can never be admitted is not counted. One that is, counts against its own next try.
    fn refuse(&mut self) {
        if self.limiter.counts_refused() && matches!(self.verdict, Verdict::Refuse { retry: Some(_) }) {
            self.charge();
            self.verdict =
                self.with_state(|state| self.limiter.judge(state, self.now, self.cost)).delayed(self.lag);
        }
    }

    fn answer(&self) -> Answer {
        let gauge = self.with_state(|state| self.limiter.gauge(state, self.now));
        Answer { verdict: self.verdict, gauge }
    }
}
