//! A request to several limits on several keys: all admit it and are charged, or none is charged.
//!
//! Every limit is judged on every key that it applies to. If all admit, all are charged. Each pair of a limit and a key
//! is judged as if it were the only one.
//!
//! A limit can be a *shadow*, to try it. It is judged and answers for itself, but it refuses no call. An admitted call
//! charges each shadow pair that admits it. So with one shadow on one key, its state is that of a limit that also refuses.
//!
//! A *penalty* bans callers that are refused too often. An admitted call does not charge it. If another limit that is no
//! shadow refuses, on any key of the call, each penalty of the call records a strike. It refuses during a ban, and enters the
//! combined answer only then.
//!
//! ```text
//! RL.MULTI 2 ip:1 user:7 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2
//!
//! three pairs: GCRA on ip:1, GCRA on user:7, FIXEDWINDOW on user:7
//! ```
//!
//! `part.rs` is a limit of the call, `pair.rs` a limit on one key with its decision so far. `outcome.rs` answers the
//! caller, and `held.rs` holds what a call charges, and settles it.

mod held;
mod outcome;
mod pair;
mod part;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use part::Part;

use crate::answer::{Answer, Manner};
use crate::ask::Ask;
use crate::hold;
use crate::limiter::TooLong;
use crate::limits::{Error, Limits, Place};
use crate::line::Claim;
use crate::state::{Leases, Name};
use crate::time::{Span, Time};
use pair::{Pair, Stage};

/// The most pairs of a limit and a key in a call.
pub const MAX_PAIRS: usize = 64;

/// Why a call with several limits fails. `limit` is the index of a limit in the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JointError {
    /// An earlier limit on the same key has the same name.
    SameName { name: Name, limit: usize },
    /// There are more than [`MAX_PAIRS`] pairs.
    TooMany,
    /// [`Error::TooLong`]. Nothing was changed.
    TooLong { limit: usize },
    /// [`Error::TooManyLimits`].
    TooManyLimits,
    /// [`Error::Defect`].
    Defect,
}

/// What a call does once it is planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It is admitted: all limits are charged, and the shadows that admit it.
    Charge,
    /// It is refused, and strikes its penalties if a strict limit refuses it.
    Strike,
    /// It is refused, and waits.
    Nothing,
}

/// All pairs of a call: those of the first limit, then those of the second, and so on.
pub struct Joint<'p, 'a> {
    parts: &'p [Part<'a>],
    pairs: Vec<Pair<'p, 'a>>,
    /// The caller's time.
    at: Time,
    behind: Option<Box<Behind>>,
    /// The first limit whose debt or booking would be too long.
    too_long: Option<usize>,
}

/// The pairs for which others wait ahead of the call: the index of each, and the time until the first of the others is
/// tried. At least one.
struct Behind(Vec<(usize, Span)>);

impl<'p, 'a> Joint<'p, 'a> {
    /// Pairs each limit with each of the `keys` keys that it applies to.
    ///
    /// # Errors
    ///
    /// If two limits of the same name apply to one key, or if there are more than [`MAX_PAIRS`] pairs.
    pub fn new(parts: &'p [Part<'a>], keys: usize, at: Time, manner: Manner) -> Result<Self, JointError> {
        let mut pairs = Vec::with_capacity(4);
        for (limit, part) in parts.iter().enumerate() {
            for key in (0..keys).filter(|key| part.is_for(*key)) {
                let mut before = parts.iter().take(limit).filter(|other| other.is_for(key));
                if before.any(|other| other.name == part.name) {
                    return Err(JointError::SameName { name: part.name, limit });
                }
                if pairs.len() == MAX_PAIRS {
                    return Err(JointError::TooMany);
                }
                // First a penalty is only checked for a ban. It is struck later.
                let cost = if part.is_penalty() { 0 } else { part.cost };
                let ask = Ask::new(Place::of(part.name.length), at, cost, manner);
                pairs.push(Pair {
                    part,
                    limit,
                    key,
                    ask,
                    can_be_too_long: false,
                    stage: Stage::Asked,
                    refunded: false,
                    stands: false,
                    held: None,
                });
            }
        }
        Ok(Joint { parts, pairs, at, behind: None, too_long: None })
    }

    /// The limits of the call that apply to a key.
    pub fn named(&self, key: usize) -> impl Iterator<Item = &'p Part<'a>> + Clone + use<'p, 'a> {
        self.parts.iter().filter(move |part| part.is_for(key))
    }

    /// Whether the call changes a limit of a key, and does not only peek.
    pub fn charges(&self, key: usize) -> bool {
        self.named(key).any(|part| part.cost > 0)
    }

    /// Judges all pairs. If all that are not shadows admit, charges them and the shadows that admit too. If one refuses,
    /// strikes the penalties. Returns whether the call is admitted.
    ///
    /// # Errors
    ///
    /// [`JointError::TooLong`] is found before anything is changed.
    pub fn take<K: Limits>(&mut self, keys: &mut [K]) -> Result<bool, JointError> {
        for (key, limits) in keys.iter().enumerate() {
            self.plan(key, limits);
        }
        let admitted = self.admits()?;
        self.act(keys, if admitted { Act::Charge } else { Act::Strike })?;
        Ok(admitted)
    }

    /// Judges the pairs of a key, and changes nothing. All keys are planned before the call acts.
    #[inline(always)]
    pub fn plan(&mut self, key: usize, limits: &impl Limits) {
        for pair in self.pairs.iter_mut().filter(|pair| pair.key == key) {
            if pair.charges() {
                if pair.plan(limits).is_err() {
                    self.too_long = Some(self.too_long.map_or(pair.limit, |first| first.min(pair.limit)));
                }
            } else if pair.part.is_penalty() {
                // A penalty that is not to be struck refuses during a ban, too.
                pair.peek(limits);
            }
        }
    }

    /// Whether the call is admitted, once all keys are planned.
    ///
    /// # Errors
    ///
    /// [`JointError::TooLong`].
    pub fn admits(&self) -> Result<bool, JointError> {
        if let Some(limit) = self.too_long {
            return Err(JointError::TooLong { limit });
        }
        let has_room = self.pairs.iter().all(|pair| pair.admits() || pair.part.is_shadow());
        Ok(has_room && self.behind.is_none())
    }

    /// Does what was planned. States move if the clock was set back, whatever the decision.
    ///
    /// # Errors
    ///
    /// [`JointError::Defect`] if a change cannot be applied.
    pub fn act<K: Limits>(&mut self, keys: &mut [K], act: Act) -> Result<(), JointError> {
        each(
            &mut self.pairs,
            keys,
            Pair::charges,
            |pair, limits| with_limiter!(&pair.part.limiter, limiter => pair.ask.catch_up(limits, limiter)),
        )?;
        match act {
            Act::Charge => self.charge(keys, false)?,
            Act::Strike if self.strikes() => self.charge(keys, true)?,
            Act::Strike | Act::Nothing => {}
        }
        self.gauge(keys);
        if self.behind.is_some() {
            self.fall_behind();
        }
        Ok(())
    }

    /// Notes for one of the keys where others wait. `ahead` returns the time until the first caller ahead of the call is
    /// tried; `None` if no caller is ahead. A lease that is held already is requested without standing in line.
    #[cold]
    pub fn line_up<K: Limits>(
        &mut self,
        key: usize,
        limits: &K,
        ahead: impl Fn(&Part<'a>, Claim<&'a [u8]>, Option<(&Leases, Time)>) -> Option<Span>,
    ) {
        let pairs = self.pairs.iter_mut().enumerate();
        for (index, pair) in pairs.filter(|(_, pair)| pair.key == key && pair.can_be_behind()) {
            pair.stands = !with_limiter!(&pair.part.limiter, limiter => pair.ask.is_held(limits, limiter));
            let part = pair.part;
            if pair.stands
                && let Some(first) = pair.claim(limits, |claim, leases| ahead(part, claim, leases))
            {
                self.behind.get_or_insert_with(|| Box::new(Behind(Vec::new()))).0.push((index, first));
            }
        }
    }

    /// Changes the answers of the limits for which others wait ahead of the call.
    #[cold]
    pub fn fall_behind(&mut self) {
        for (index, first) in self.behind.iter().flat_map(|behind| &behind.0) {
            let Some(pair) = self.pairs.get_mut(*index) else { continue };
            if let Stage::Decided(answer) = &mut pair.stage {
                *answer = answer.behind(*first);
            }
        }
    }

    /// Finds the pairs that are too long, and changes nothing.
    #[inline(always)]
    fn check<K: Limits>(&self, keys: &[K]) -> Result<(), JointError> {
        for pair in self.pairs.iter().filter(|pair| pair.can_be_too_long) {
            let Some(limits) = keys.get(pair.key) else { continue };
            pair.check(limits).map_err(|TooLong| JointError::TooLong { limit: pair.limit })?;
        }
        Ok(())
    }

    /// Computes the answers of the penalties of a key that a refusal would strike. It changes nothing.
    pub fn peek_strikes(&mut self, key: usize, limits: &impl Limits) {
        let is_struck = |pair: &&mut Pair<'_, '_>| {
            pair.key == key && pair.part.is_penalty() && pair.charges() && pair.admits()
        };
        for pair in self.pairs.iter_mut().filter(is_struck) {
            pair.ask.cost = pair.part.cost;
            pair.peek(limits);
        }
    }

    /// Whether a limit that is neither a shadow nor a penalty refuses the call, and so strikes its penalties.
    pub fn strikes(&self) -> bool {
        self.pairs.iter().any(|pair| pair.part.is_strict() && !pair.admits())
    }

    /// From now on the call only looks at its limits: its id is held already.
    pub fn look(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.ask.cost = 0);
    }

    /// Each pair, in order: the limit, its index in the call, and the index of the key.
    pub fn pairs(&self) -> impl Iterator<Item = (&'p Part<'a>, usize, usize)> {
        self.pairs.iter().map(|pair| (pair.part, pair.limit, pair.key))
    }

    /// The time until the first caller is tried that is ahead of the call for a pair, which the index gives.
    pub fn ahead(&self, pair: usize) -> Option<Span> {
        let mut behind = self.behind.iter().flat_map(|behind| &behind.0);
        behind.find(|(index, _)| *index == pair).map(|(_, first)| *first)
    }

    /// Charges the pairs that admit: the penalties if `strikes`, else all others.
    fn charge<K: Limits>(&mut self, keys: &mut [K], strikes: bool) -> Result<(), JointError> {
        let charged =
            |pair: &Pair<'_, '_>| pair.charges() && pair.admits() && pair.part.is_penalty() == strikes;
        // Only a charge drops limits: a shadow that refuses may be the only pair of a key.
        let of_key = |key: usize| self.pairs.iter().filter(move |pair| pair.key == key && charged(pair));
        for (key, limits) in keys.iter_mut().enumerate().filter(|(key, _)| of_key(*key).next().is_some()) {
            // The key was not prepared for strikes, which are rare.
            if strikes {
                limits.make_room(of_key(key).map(|pair| pair.part.name));
            }
            let named = self.named(key).map(|part| part.name);
            let now = of_key(key).map(|pair| pair.ask.now()).max().unwrap_or(self.at);
            let dropped = limits.drop_faded(self.at, named).and_then(|()| hold::pass(limits, now));
            dropped.map_err(|_| JointError::Defect)?;
        }
        each(&mut self.pairs, keys, charged, |pair, limits| {
            let Pair { part, ask, stage, .. } = pair;
            let Stage::Judged(judged) = *stage else { return Ok(()) };
            with_limiter!(&part.limiter, limiter => {
                ask.charge(limits, limiter, part.cost)?;
                // The strike may have banned.
                let verdict = if strikes { ask.verdict(limits, limiter, 0) } else { judged };
                // No other pair of the call has the same key and name, so no later charge changes this state.
                *stage = Stage::Decided(Answer { verdict, gauge: ask.gauge(limits, limiter) });
            });
            Ok(())
        })
    }

    /// Computes the answers that the call would get on one of the keys. It changes nothing.
    pub fn peek(&mut self, key: usize, limits: &impl Limits) {
        self.pairs.iter_mut().filter(|pair| pair.key == key).for_each(|pair| pair.peek(limits));
    }

    /// Gives each limit its cost back. Penalties are only looked at.
    ///
    /// # Errors
    ///
    /// [`JointError::Defect`] if a change cannot be applied.
    pub fn refund<K: Limits>(&mut self, keys: &mut [K]) -> Result<(), JointError> {
        each(
            &mut self.pairs,
            keys,
            |_| true,
            |pair, limits| {
                if pair.charges() && !pair.part.is_penalty() {
                    with_limiter!(&pair.part.limiter, limiter => {
                        let refunded = pair.ask.refund(limits, limiter)?;
                        pair.give_back(refunded, pair.ask.gauge(limits, limiter));
                    });
                } else {
                    pair.peek(limits);
                }
                pair.settle(limits);
                Ok(())
            },
        )
    }

    /// Computes the gauges that are not known yet, and the answers of pairs that only peek.
    fn gauge<K: Limits>(&mut self, keys: &[K]) {
        for pair in self.pairs.iter_mut().filter(|pair| matches!(pair.stage, Stage::Asked | Stage::Judged(_)))
        {
            let Some(limits) = keys.get(pair.key) else { continue };
            if let Stage::Judged(verdict) = pair.stage {
                let gauge = with_limiter!(&pair.part.limiter, limiter => pair.ask.gauge(limits, limiter));
                pair.stage = Stage::Decided(Answer { verdict, gauge });
            } else {
                pair.peek(limits);
            }
        }
    }
}

/// Calls `run` with some of the pairs, each with its key.
fn each<'p, 'a, K>(
    pairs: &mut [Pair<'p, 'a>],
    keys: &mut [K],
    chosen: impl Fn(&Pair<'p, 'a>) -> bool,
    mut run: impl FnMut(&mut Pair<'p, 'a>, &mut K) -> Result<(), Error>,
) -> Result<(), JointError> {
    for pair in pairs.iter_mut().filter(|pair| chosen(pair)) {
        if let Some(limits) = keys.get_mut(pair.key) {
            run(pair, limits).map_err(|error| match error {
                Error::TooLong => JointError::TooLong { limit: pair.limit },
                Error::TooManyLimits => JointError::TooManyLimits,
                Error::Defect => JointError::Defect,
            })?;
        }
    }
    Ok(())
}
