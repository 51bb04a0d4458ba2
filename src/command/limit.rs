//! `RL.<LIMITER> key <parameters> [COST cost] [AT at]`: asks, and takes if it may.

use crate::limit::with_limiter;
use crate::limit::{Answer, CATALOG, Claim, Error, Limiter, Request, State, Verdict, decide_all, look};
use crate::server::{Access, Call, Command, Key, Keys, Outcome, Reply, clock, count};
use crate::time::Time;

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
    let asked = request.at.unwrap_or(clock);
    if request.cost() == 0 {
        let key = Key::<L::State>::open(call, 1, Access::Look)?;
        return Ok(glance(&key, limiter, asked, 0));
    }
    let key = Key::<L::State>::open(call, 1, Access::Change)?;
    let mut claim = KeyClaim::new(limiter, key, asked, request.cost())?;
    let answer = decide_all(&mut [&mut claim]).ok_or(Error::Internal)?;
    let KeyClaim { key, now, charged, .. } = claim;
    charged?;
    key.commit(clock.max(now), answer.gauge.reset);
    Ok(answer.delayed(now.since(asked)))
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
    cost: u64,
    verdict: Verdict,
    /// Whether the charge, if there was one, could be made.
    charged: Result<(), Error>,
}

impl<'k, 'c, 'a, L: Limiter> KeyClaim<'k, 'c, 'a, L> {
    /// The claim at the instant that the clock reads for the key's state.
    fn new(limiter: &'k L, mut key: Key<'c, 'a, L::State>, asked: Time, cost: u64) -> Result<Self, Error> {
        let now = key.read_clock(
            asked,
            |state| limiter.gauge(state, state.last()).reset,
            |state, out| L::State::encode_change(&limiter.rebase(state, asked), out),
        )?;
        Ok(KeyClaim { limiter, key, now, cost, verdict: Verdict::ADMIT, charged: Ok(()) })
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
        let charged = key.change(limiter.fresh(*now), |state, out| {
            L::State::encode_change(&limiter.charge(state, *now, *cost), out);
        });
        self.charged = charged.map(|_| ());
    }

    fn answer(&self) -> Answer {
        let gauge = self.with_state(|state| self.limiter.gauge(state, self.now));
        Answer { verdict: self.verdict, gauge }
    }
}
