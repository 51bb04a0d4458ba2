//! Answers calls from memory, with the arithmetic and the command language of the module, and no server.
//!
//! Every call has its instant in `AT`. Nothing expires: an expired key and a fully reset one answer alike. Only the
//! commands of a trial are supported, and a key holds either limits or the amount of `RL.SHED`.

use std::collections::BTreeMap;
use std::error;
use std::slice;

use ratelimit_core::lease::{Action, act};
use ratelimit_core::limiter::{Amount, Sketched};
use ratelimit_core::line::Comer;
use ratelimit_core::state::{Blueprint, Cells};
use ratelimit_core::{Answer, Ask, Joint, LimitSet, Limiter, Lines, Place, Span, State, with_limiter};
use ratelimit_language::{
    Arguments, Bounds, Error, Purpose, ReleaseCall, Request, SketchCall, find, multi, release, shed, sketch,
};

use crate::reply::{Reply, Server};
use crate::trial::{SEED, falls};
use ratelimit_dice::Dice;

pub struct Memory {
    /// By key.
    limits: BTreeMap<Vec<u8>, LimitSet>,
    /// The amounts of `RL.SHED`, by key.
    amounts: BTreeMap<Vec<u8>, Amount>,
    /// The cells of `RL.SKETCH`, by key.
    sketches: BTreeMap<Vec<u8>, Cells>,
    /// Tenants of leases that were refused, for which room is kept.
    lines: Lines<Vec<u8>>,
    hunger: Span,
    dice: Dice,
}

type Answered = Result<Reply, Box<dyn error::Error>>;

const NO_INSTANT: &str = "a call has its instant in AT";

/// The key of a sketch's hash, which a server draws at random. With any key, the few users of a trial hardly ever share all
/// their cells.
const HASH_KEY: [u64; 2] = [1, 2];

/// The module's defaults.
const MOST_HUNGRY: usize = 10_000;
const BOUNDS: Bounds = Bounds::DEFAULT;

impl Memory {
    pub fn new() -> Memory {
        Memory::with_hunger(1000)
    }

    /// With another `ratelimit.hunger`, in milliseconds.
    pub fn with_hunger(hunger: u64) -> Memory {
        Memory {
            lines: Lines::default(),
            hunger: Span::from_millis(hunger),
            limits: BTreeMap::new(),
            amounts: BTreeMap::new(),
            sketches: BTreeMap::new(),
            dice: Dice::new(SEED),
        }
    }

    fn answer(&mut self, words: &[&[u8]]) -> Answered {
        let [command, key, rest @ ..] = words else { return Err("a call has a command and a key".into()) };
        let command = command.strip_prefix(b"RL.").ok_or("a command begins with RL.")?;
        match (command, rest) {
            (b"MULTI", [only, rest @ ..]) if *key == b"1" => self.multi(only, rest),
            (b"SHED", _) => self.shed(key, rest),
            (b"SKETCH", _) => self.sketch(key, rest),
            (b"RELEASE", _) => self.release(key, rest),
            _ => self.limit(command, key, rest),
        }
    }

    /// `RL.<LIMITER> key <parameters> [options]`.
    fn limit(&mut self, command: &[u8], key: &[u8], rest: &[&[u8]]) -> Answered {
        let row = find(command).ok_or("no limiter has this name")?;
        let mut request = Request::default();
        let limiter = (row.parse)(&mut Arguments::new(rest, BOUNDS), &mut request)?;
        let answer = with_limiter!(&limiter, limiter => self.ask(key, limiter, &request))?;
        Ok(Reply::Five(answer.integers()))
    }

    /// Asks a limiter, and charges it if it admits.
    fn ask<L: Limiter>(
        &mut self,
        key: &[u8],
        limiter: &L,
        request: &Request<'_>,
    ) -> Result<Answer, Box<dyn error::Error>> {
        request.check(limiter.capabilities())?;
        let at = request.at.ok_or(NO_INSTANT)?;
        let limits = self.limits.entry(key.to_vec()).or_default();
        let mut ask = Ask::new(place(limits, limiter)?, at, request.cost(), request.manner());
        if request.cost() == 0 {
            return Ok(ask.peek(limits, limiter));
        }
        if !limiter.capabilities().early || ask.is_held(limits, limiter) {
            return Ok(ask.take(limits, limiter).map_err(Error::from)?.answer());
        }
        // Others may come before it, if the call is for leases that tenants share.
        let lines = &mut self.lines;
        let mut has_tenants = limiter.tenant().is_some();
        let claim = ask.claim(limits, limiter, limiter.tenant(), |claim, leases| {
            has_tenants |= leases.is_some_and(|(leases, _)| leases.has_tenants());
            lines.follow(key, limiter.name(), leases.map(|(leases, _)| leases), at, at);
            claim
        });
        let ahead = lines.ahead(key, limiter.name(), &claim, Comer::Passes, at);
        let answer = ask.peek(limits, limiter);
        let refused = !answer.verdict.admits();
        if ahead.is_none() && !refused {
            lines.grant(key, limiter.name(), &claim);
        }
        if has_tenants
            && (ahead.is_some() || refused)
            && claim.pool.is_some_and(|pool| claim.cost <= pool.most)
        {
            lines.starve(
                &key.to_vec(),
                limiter.name(),
                &claim.into_owned(),
                at.plus(self.hunger),
                MOST_HUNGRY,
            );
        }
        match ahead {
            Some(first) => Ok(answer.behind(first)),
            None => Ok(ask.take(limits, limiter).map_err(Error::from)?.answer()),
        }
    }

    /// `RL.MULTI 1 key AT at LIMIT ...`.
    fn multi(&mut self, key: &[u8], rest: &[&[u8]]) -> Answered {
        let call = multi(&mut Arguments::new(rest, BOUNDS), 1, Purpose::Charge)?;
        let at = call.at.ok_or(NO_INSTANT)?;
        let mut joint = Joint::new(&call.parts, 1, at, call.manner).map_err(Error::from)?;
        joint.take(slice::from_mut(self.limits(key))).map_err(Error::from)?;
        joint.combined().map(|all| Reply::Five(all.integers())).ok_or("a call has a limit".into())
    }

    /// `RL.SHED key utilization [options]`.
    fn shed(&mut self, key: &[u8], rest: &[&[u8]]) -> Answered {
        let report = shed(&mut Arguments::new(rest, BOUNDS))?;
        let at = report.at.ok_or(NO_INSTANT)?;
        let amount = self.amounts.entry(key.to_vec()).or_insert_with(|| report.shed.fresh(at));
        *amount = report.shed.report(amount, at, report.utilization);
        let chance = report.shed.chance(amount);
        Ok(Reply::Chance(falls(&mut self.dice, chance), chance))
    }

    /// `RL.SKETCH key item <parameters> [options]`.
    fn sketch(&mut self, key: &[u8], rest: &[&[u8]]) -> Answered {
        let sketching = sketch(&mut Arguments::new(rest, BOUNDS))?;
        let SketchCall { item, cost, at, .. } = sketching;
        let at = at.ok_or(NO_INSTANT)?;
        let begin = || Blueprint { shape: sketching.shape, hash_key: HASH_KEY };
        let Sketched { answer, change, .. } =
            sketching.sketch.decide(self.sketches.get(key), begin, item, cost, at);
        if let Some(change) = change {
            self.sketches.entry(key.to_vec()).or_insert_with(Cells::blank).apply(change);
        }
        Ok(Reply::Five(answer.integers()))
    }

    /// `RL.RELEASE key id [OUTCOME outcome] AT at`.
    fn release(&mut self, key: &[u8], rest: &[&[u8]]) -> Answered {
        let mut arguments = Arguments::new(rest, BOUNDS);
        let ReleaseCall { id, ending, at } = release(&mut arguments)?;
        let at = at.ok_or(NO_INSTANT)?;
        let acted = act(self.limits(key), Action::Release(ending), id, at).map_err(Error::from)?;
        Ok(Reply::Integer(acted.held.into()))
    }

    fn limits(&mut self, key: &[u8]) -> &mut LimitSet {
        self.limits.entry(key.to_vec()).or_default()
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Server for Memory {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.answer(&words).map_err(|error| error.to_string())
    }
}

/// Where the limit is that a limiter's own command is about.
fn place<L: Limiter>(limits: &LimitSet, limiter: &L) -> Result<Place, Error> {
    if limits.stored().is_empty() {
        return Ok(Place::of(limiter.name().length));
    }
    limits
        .find(limiter.name())
        .ok_or_else(|| Error::other_kind(limits.limits().map(|limit| limit.name), Some(limiter.name())))
}
