//! `RL.<LIMITER> key <parameters> [COST cost] [AT at]`: asks, and takes if it may.

use crate::limit::{
    Answer, CATALOG, Claim, Error, Limiter, Reading, Request, State, Verdict, decide_all, look, reading,
};
use crate::server::{Access, Call, Command, Key, Keys, Outcome, Reply, clock, count};
use crate::time::{Span, Time};
use crate::with_limiter;

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
        let limiter = call.parse(2, |words| (CATALOG[ROW].parse)(words, &mut request))?;
        let answer = with_limiter!(limiter, limiter => ask(call, &limiter, &request))?;
        if request.cost() > 0 {
            count(ROW, if answer.verdict.admits() { Outcome::Admitted } else { Outcome::Refused });
        }
        Ok(Reply::Answer(answer))
    }
}

fn ask<L: Limiter>(call: &Call<'_>, limiter: &L, request: &Request) -> Result<Answer, Error> {
    let clock = clock();
    let now = request.at.unwrap_or(clock);
    if request.cost() == 0 {
        let key = Key::<L::State>::open(call, 1, Access::Look)?;
        return Ok(glance(&key, limiter, now, 0));
    }
    let key = Key::<L::State>::open(call, 1, Access::Change)?;
    let mut claim = KeyClaim::new(limiter, key, now, request.cost());
    let answer = decide_all(&mut [&mut claim]).ok_or(Error::Internal)?;
    claim.key.commit(clock.max(now), answer.gauge.reset);
    Ok(answer)
}

/// The answer that a request would get of a key, as it is.
pub fn glance<L: Limiter>(key: &Key<'_, '_, L::State>, limiter: &L, now: Time, cost: u64) -> Answer {
    match key.state() {
        Some(state) => look(limiter, state, now, cost),
        None => look(limiter, &limiter.fresh(now), now, cost),
    }
}

/// A request to one limiter on one key.
struct KeyClaim<'k, 'c, 'a, L: Limiter> {
    limiter: &'k L,
    key: Key<'c, 'a, L::State>,
    now: Time,
    /// How far the caller's clock is behind `now`.
    lag: Span,
    cost: u64,
    verdict: Verdict,
}

impl<'k, 'c, 'a, L: Limiter> KeyClaim<'k, 'c, 'a, L> {
    /// The claim at the instant that the clock reads for the key's state. If the clock was set back, the state is
    /// moved to now; that is the one thing that is written even if the request is refused.
    fn new(limiter: &'k L, mut key: Key<'c, 'a, L::State>, asked: Time, cost: u64) -> Self {
        let mut now = asked;
        match key.state().map_or(Reading::At(now), |state| reading(limiter, state, now)) {
            Reading::At(instant) => now = instant,
            Reading::SetBack => {
                key.change(limiter.fresh(now), |state, out| {
                    L::State::encode_change(&limiter.rebase(state, now), out);
                });
                key.forget_deadline();
            }
        }
        KeyClaim { limiter, key, now, lag: now.since(asked), cost, verdict: Verdict::ADMIT }
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
        self.verdict = self.with_state(|state| self.limiter.judge(state, self.now, self.cost));
        self.verdict
    }

    fn charge(&mut self) {
        let Self { limiter, key, now, cost, .. } = self;
        key.change(limiter.fresh(*now), |state, out| {
            L::State::encode_change(&limiter.charge(state, *now, *cost), out);
        });
    }

    fn answer(&self) -> Answer {
        let gauge = self.with_state(|state| self.limiter.gauge(state, self.now));
        Answer { verdict: self.verdict, gauge }.delayed(self.lag)
    }
}
