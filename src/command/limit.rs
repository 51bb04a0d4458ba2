//! `RL.<LIMITER> key <parameters> [options]`: asks, and takes if it may.

use crate::limit::with_limiter;
use crate::limit::{
    Answer, CATALOG, Error, Limiter, Manner, Request, State, Verdict, check, look, may_err, rule,
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
    let mut key = Key::<L::State>::open(call, 1, Access::Change)?;
    if let Some(state) = key.state()
        && asked < state.last()
        && may_err::<L>(manner)
    {
        check(limiter, state, asked, cost, manner)?;
    }
    let now = read_clock(&mut key, limiter, asked)?;
    let lag = now.since(asked);
    let judged = match manner {
        Manner::Strict if !L::BOOKS => {
            let judge = |state: &L::State| limiter.judge(state, now, cost).delayed(lag);
            Ok((key.with_state(|| limiter.fresh(now), judge), cost))
        }
        _ => key.with_state(|| limiter.fresh(now), |state| rule(limiter, state, now, lag, cost, manner)),
    };
    let charged =
        judged.and_then(|(verdict, granted)| charge(&mut key, limiter, now, lag, (verdict, granted)));
    let gauge = key.with_state(|| limiter.fresh(now), |state| limiter.gauge(state, now));
    // What the reading of the clock has moved is made known, whatever came of the rest.
    key.commit(clock.max(now), gauge.reset);
    let (verdict, granted) = charged?;
    Ok((Answer { verdict, gauge: gauge.delayed(lag) }, granted))
}

/// Charges what was granted, or notes that it was not, where refusals count; the verdict then counts this very one.
#[inline(always)]
fn charge<L: Limiter>(
    key: &mut Key<'_, '_, L::State>,
    limiter: &L,
    now: Time,
    lag: Span,
    (verdict, granted): (Verdict, u64),
) -> Result<(Verdict, u64), Error> {
    // What can never be admitted is not counted.
    let counts = verdict.admits() || limiter.counts_refused() && verdict != Verdict::NEVER;
    if counts {
        key.change(limiter.fresh(now), |state, out| {
            L::State::encode_change(&limiter.charge(state, now, granted), out);
        })?;
    }
    if !counts || verdict.admits() {
        return Ok((verdict, granted));
    }
    let judge = |state: &L::State| limiter.judge(state, now, granted).delayed(lag);
    Ok((key.with_state(|| limiter.fresh(now), judge), granted))
}

/// The answer that a request would get of a key, as it is.
pub fn glance<L: Limiter>(key: &Key<'_, '_, L::State>, limiter: &L, now: Time, cost: u64) -> Answer {
    key.with_state(|| limiter.fresh(now), |state| look(limiter, state, now, cost))
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
