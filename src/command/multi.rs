//! `RL.MULTI numkeys key [key ...] [COST cost] [AT at] [FORCE] LIMIT limiter parameter ... [ON i] [COST cost]
//! [LIMIT ...]`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: all limits on all keys, or none.
//!
//! All limits are judged first; only if all of them admit, all are charged. What changed goes to replicas and the AOF
//! in one command.

use super::pair::Pair;
use crate::limit::with_limiter;
use crate::limit::{AnyLimiter, Error, MOST_PAIRS, Manner, Part, Purpose, parse_multi};
use crate::server::{Access, Call, Command, Counter, Keys, Limits, Named, Outcome, Reply, When, clock};
use crate::time::{Span, Time};

pub struct Multi;
pub struct MultiPeek;
pub struct MultiRefund;

const SYNTAX: &str =
    "numkeys key ... [COST cost] [AT at] [FORCE] {LIMIT limiter parameter ... [ON on] [COST cost]} ...";
const LOOKS: &str =
    "numkeys key ... [COST cost] [AT at] {LIMIT limiter parameter ... [ON on] [COST cost]} ...";

/// Where the number of keys and the first of them are.
const NUMBER: usize = 1;
const FIRST: usize = 2;

impl Command for Multi {
    const NAME: &'static str = "MULTI";
    const SYNTAX: &'static str = SYNTAX;
    const SUMMARY: &'static str = "Asks several limits on several keys at once, and takes from all or none";
    const COMPLEXITY: &'static str = "The sum of the limiters' commands, for each key";
    const FLAGS: &'static str = "write deny-oom getkeys-api";
    const KEYS: Keys = Keys::Numbered;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut asked = Asked::read(call, Purpose::Take)?;
        let mut held = asked.open(call, Access::Change)?;
        let judged = asked.judge(&mut held);
        let charged = match judged {
            Ok(true) => asked.charge(&mut held),
            _ => Ok(()),
        };
        let admitted = judged == Ok(true);
        asked.gauge(&held);
        asked.commit(&mut held);
        call.publish(&held);
        drop(held);
        judged.and(charged.map(|()| admitted))?;
        if asked.pairs.iter().any(|pair| pair.cost > 0) {
            let outcome = if admitted { Outcome::Admitted } else { Outcome::Refused };
            call.count(Counter::Multi, outcome);
            for key in (0..asked.keys).filter(|key| asked.charges(*key)) {
                call.tell(FIRST + key, outcome);
            }
        }
        Ok(asked.reply())
    }
}

impl Command for MultiPeek {
    const NAME: &'static str = "MULTIPEEK";
    const SYNTAX: &'static str = LOOKS;
    const SUMMARY: &'static str = "Tells what RL.MULTI would reply, and charges nothing";
    const COMPLEXITY: &'static str = Multi::COMPLEXITY;
    const FLAGS: &'static str = "readonly getkeys-api";
    const KEYS: Keys = Keys::NumberedRead;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut asked = Asked::read(call, Purpose::Probe)?;
        let held = asked.open(call, Access::Look)?;
        asked.each(&held, |pair, part, limits, now| {
            with_limiter!(&part.limiter, limiter => pair.look(limiter, limits, now, part.cost));
        });
        Ok(asked.reply())
    }
}

impl Command for MultiRefund {
    const NAME: &'static str = "MULTIREFUND";
    const SYNTAX: &'static str = LOOKS;
    const SUMMARY: &'static str = "Gives back to several limits what was charged and not used";
    const COMPLEXITY: &'static str = Multi::COMPLEXITY;
    const FLAGS: &'static str = "write fast getkeys-api";
    const KEYS: Keys = Keys::Numbered;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let mut asked = Asked::read(call, Purpose::GiveBack)?;
        let mut held = asked.open(call, Access::Change)?;
        held.iter_mut().for_each(Limits::keep_form);
        let refunded = asked.refund(&mut held);
        asked.gauge(&held);
        asked.commit(&mut held);
        call.publish(&held);
        refunded.map(|()| asked.reply())
    }
}

struct Asked<'a> {
    keys: usize,
    parts: Vec<Part<'a>>,
    manner: Manner,
    purpose: Purpose,
    clock: Time,
    now: Time,
    /// Limits outermost.
    pairs: Vec<Pair>,
}

impl<'a> Asked<'a> {
    fn read(call: &Call<'a>, purpose: Purpose) -> Result<Self, Error> {
        let keys = call.parse(NUMBER..FIRST, |words| words.number("numkeys", 1, MOST_PAIRS as u64))?;
        let count = usize::try_from(keys).unwrap_or(usize::MAX);
        if call.len() <= FIRST + count {
            return Err(Error::Arity);
        }
        let (request, parts) = call.parse(FIRST + count.., |words| parse_multi(words, keys, purpose))?;
        let names = || call.arguments(FIRST).take(count).enumerate();
        if names().any(|(place, name)| names().take(place).any(|(_, other)| other == name)) {
            return Err(Error::SameKeys);
        }
        let clock = clock();
        let now = request.at.unwrap_or(clock);
        let mut asked = Asked {
            keys: count,
            parts,
            manner: request.manner(),
            purpose,
            clock,
            now,
            pairs: Vec::with_capacity(4),
        };
        asked.pair()?;
        Ok(asked)
    }

    /// Pairs the limits with the keys they are for.
    fn pair(&mut self) -> Result<(), Error> {
        for (place, part) in self.parts.iter().enumerate() {
            for key in (0..self.keys).filter(|key| part.is_for(*key)) {
                let mut before = self.parts.iter().take(place).filter(|other| other.is_for(key));
                if before.any(|other| other.name == part.name) {
                    return Err(Error::Syntax);
                }
                if self.pairs.len() == MOST_PAIRS {
                    return Err(Error::TooManyPairs);
                }
                self.pairs.push(Pair::new(place, key, part.cost, self.now));
            }
        }
        Ok(())
    }

    /// Whether a key is asked for more than a look.
    fn charges(&self, key: usize) -> bool {
        self.pairs.iter().any(|pair| pair.key == key && pair.cost > 0)
    }

    fn open<'c>(&self, call: &'c Call<'a>, access: Access) -> Result<Vec<Limits<'c, 'a>>, Error> {
        let when = When { clock: self.clock, now: self.now };
        let open = |key| {
            let parts = self.parts.iter().filter(|part| part.is_for(key));
            Limits::open(
                call,
                FIRST + key,
                access,
                when,
                Named::of(parts.map(|part| (part.name, part.cost > 0 && self.purpose == Purpose::Take))),
            )
        };
        (0..self.keys).map(open).collect()
    }

    /// Does something with each pair, the limit and the key.
    fn each(
        &mut self,
        held: &[Limits<'_, 'a>],
        mut run: impl FnMut(&mut Pair, &Part<'a>, &Limits<'_, 'a>, Time),
    ) {
        for pair in &mut self.pairs {
            if let (Some(part), Some(limits)) = (self.parts.get(pair.part), held.get(pair.key)) {
                run(pair, part, limits, self.now);
            }
        }
    }

    /// The same, where the key may change.
    fn change(
        &mut self,
        held: &mut [Limits<'_, 'a>],
        mut run: impl FnMut(&mut Pair, &AnyLimiter<'a>, &mut Limits<'_, 'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for pair in self.pairs.iter_mut().filter(|pair| pair.cost > 0) {
            if let (Some(part), Some(limits)) = (self.parts.get(pair.part), held.get_mut(pair.key)) {
                run(pair, &part.limiter, limits)?;
            }
        }
        Ok(())
    }

    /// Whether all admit.
    fn judge(&mut self, held: &mut [Limits<'_, 'a>]) -> Result<bool, Error> {
        let (now, manner) = (self.now, self.manner);
        self.change(held, |pair, limiter, limits| {
            with_limiter!(limiter, limiter => pair.check(limiter, limits, now, manner))
        })?;
        self.change(held, |pair, limiter, limits| {
            with_limiter!(limiter, limiter => pair.judge(limiter, limits, now, manner))
        })?;
        Ok(self.pairs.iter().all(|pair| pair.answer.verdict.admits()))
    }

    fn charge(&mut self, held: &mut [Limits<'_, 'a>]) -> Result<(), Error> {
        held.iter_mut().try_for_each(Limits::drop_faded)?;
        self.change(
            held,
            |pair, limiter, limits| with_limiter!(limiter, limiter => pair.charge(limiter, limits)),
        )
    }

    fn refund(&mut self, held: &mut [Limits<'_, 'a>]) -> Result<(), Error> {
        let now = self.now;
        self.change(
            held,
            |pair, limiter, limits| with_limiter!(limiter, limiter => pair.refund(limiter, limits, now)),
        )
    }

    /// How each limit stands now.
    fn gauge(&mut self, held: &[Limits<'_, 'a>]) {
        self.each(held, |pair, part, limits, now| {
            with_limiter!(&part.limiter, limiter => {
                if pair.cost == 0 {
                    pair.look(limiter, limits, now, 0);
                } else {
                    pair.gauge(limiter, limits);
                }
            });
        });
    }

    /// When the key was charged last, and how long it then takes to be as good as new, as far as its limits say that
    /// were asked for.
    fn reset(&self, key: usize) -> (Time, Span) {
        let pairs = self.pairs.iter().filter(|pair| pair.key == key && pair.cost > 0);
        let latest = pairs.clone().map(|pair| pair.now).max().unwrap_or(self.now);
        (latest, pairs.map(|pair| pair.answer.gauge.reset).max().unwrap_or_default())
    }

    /// A key of which something was given back, and all of whose limits are as good as new, is deleted.
    fn commit(&self, held: &mut [Limits<'_, 'a>]) {
        for (key, limits) in held.iter_mut().enumerate() {
            let (latest, reset) = self.reset(key);
            let given_back = self.pairs.iter().any(|pair| pair.key == key && pair.changed);
            if given_back && reset == Span::ZERO && limits.settled() {
                limits.delete();
            } else {
                limits.commit(latest, reset);
            }
        }
    }

    fn reply(&self) -> Reply {
        let delayed = |pair: &Pair| if pair.cost == 0 { pair.answer } else { pair.told() };
        Reply::Several(self.pairs.iter().map(delayed).collect())
    }
}
