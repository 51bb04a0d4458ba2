//! Calls answered from memory, by the arithmetic of the module: what its commands do, less the server around them.
//!
//! Every call brings its time with `AT`. Nothing expires: an expired key and a settled one answer alike. Of commands
//! there are those that a trial needs; a key is asked in one way as long as it lives.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::limit::codec::Reader;
use crate::limit::concurrent::{parse_id, rebase, release, reset};
use crate::limit::{
    Amount, Answer, AnyState, Bounds, Error, Kept, Leases, Limiter, Manner, Name, Part, Purpose, Reading,
    Request, State, Verdict, Words, check, find, look, parse_multi, parse_shed, read_clock, rule,
    with_limiter,
};
use crate::reply::{Reply, Server};
use crate::time::{Span, Time};

pub struct Memory {
    /// What each key holds, limit by limit.
    keys: BTreeMap<Vec<u8>, Limits>,
    dice: Dice,
}

type Limits = BTreeMap<Name, AnyState>;

/// The module's defaults.
const BOUNDS: Bounds = Bounds { leases: 1_000_000, log_entries: 1_000_000 };

impl Memory {
    pub fn new() -> Memory {
        Memory { keys: BTreeMap::new(), dice: Dice::new(2) }
    }

    fn answer(&mut self, words: &[&[u8]]) -> Result<Reply, Error> {
        let [command, key, rest @ ..] = words else { return Err(Error::Arity) };
        let command = command.strip_prefix(b"RL.").ok_or(Error::Syntax)?;
        match (command, rest) {
            (b"MULTI", [only, rest @ ..]) if *key == b"1" => self.multi(only, rest),
            (b"SHED", _) => self.shed(key, rest),
            (b"RELEASE", _) => self.release(key, rest),
            _ => self.limit(command, key, rest),
        }
    }

    /// `RL.<LIMITER> key <parameters> [options]`.
    fn limit(&mut self, command: &[u8], key: &[u8], rest: &[&[u8]]) -> Result<Reply, Error> {
        let row = find(command).ok_or(Error::Syntax)?;
        let mut request = Request::default();
        let limiter = (row.parse)(&mut Words::new(rest, BOUNDS), &mut request)?;
        if !row.allows.manner(request.manner()) {
            return Err(Error::Syntax);
        }
        let at = request.at.ok_or(Error::Syntax)?;
        let limits = self.keys.entry(key.to_vec()).or_default();
        let answer = with_limiter!(&limiter, limiter => {
            ask(limits, limiter, at, request.cost(), request.manner())
        })?;
        Ok(Reply::Five(answer.five()))
    }

    /// `RL.MULTI 1 key [AT at] LIMIT ...`, on one key and strictly.
    fn multi(&mut self, key: &[u8], rest: &[&[u8]]) -> Result<Reply, Error> {
        let (request, parts) = parse_multi(&mut Words::new(rest, BOUNDS), 1, Purpose::Take)?;
        let at = request.at.ok_or(Error::Syntax)?;
        let limits = self.keys.entry(key.to_vec()).or_default();
        for part in &parts {
            with_limiter!(&part.limiter, limiter => set_back(limits, limiter, at))?;
        }
        let probe =
            |part: &Part<'_>| with_limiter!(&part.limiter, limiter => peek(limits, limiter, at, part.cost));
        let probed = parts.iter().map(probe).collect::<Result<Vec<_>, _>>()?;
        let all = Answer::all(probed.into_iter()).ok_or(Error::Syntax)?;
        if !all.verdict.admits() {
            return Ok(Reply::Five(all.five()));
        }
        let mut taken = Vec::new();
        for part in &parts {
            taken.push(with_limiter!(&part.limiter, limiter => {
                ask(limits, limiter, at, part.cost, Manner::Strict)
            })?);
        }
        Answer::all(taken.into_iter()).map(|all| Reply::Five(all.five())).ok_or(Error::Internal)
    }

    /// `RL.SHED key utilization [options]`.
    fn shed(&mut self, key: &[u8], rest: &[&[u8]]) -> Result<Reply, Error> {
        let (shed, utilization, at) = parse_shed(&mut Words::new(rest, BOUNDS))?;
        let at = at.ok_or(Error::Syntax)?;
        let limits = self.keys.entry(key.to_vec()).or_default();
        let name = Name::of::<Amount>(shed.silence());
        let amount = limits.entry(name).or_insert_with(|| shed.fresh(at).kept());
        let amount = Amount::of_mut(amount).ok_or(Error::WrongType)?;
        *amount = shed.report(amount, at, utilization);
        let chance = shed.chance(amount);
        Ok(Reply::Chance(chance > 0.0 && part(self.dice.any()) < chance, chance))
    }

    /// `RL.RELEASE key id AT at`.
    fn release(&mut self, key: &[u8], rest: &[&[u8]]) -> Result<Reply, Error> {
        let mut words = Words::new(rest, BOUNDS);
        let (id, at) = (parse_id(&mut words)?, words.at()?.ok_or(Error::Syntax)?);
        let held = self.keys.get_mut(key).into_iter().flat_map(Limits::values_mut).find_map(Leases::of_mut);
        let Some(leases) = held else { return Ok(Reply::Integer(0)) };
        let last_reset = |leases: &Leases| reset(leases, leases.last());
        let now = read(leases, at, last_reset, |leases, out| {
            Leases::encode_change(&rebase(leases, at), out);
        });
        let held = leases.held(id, now).is_some();
        change(leases, |leases, out| {
            if let Some(change) = release(leases, id, now) {
                Leases::encode_change(&change, out);
            }
        });
        Ok(Reply::Integer(held.into()))
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

/// Of such bits, from 0 to less than 1, as the server makes it of its random bytes.
#[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
fn part(bits: u64) -> f64 {
    (bits >> 11) as f64 / 2f64.powi(53)
}

/// Moves the state of one of several limits, if the clock was set back; whatever comes of the call.
fn set_back<L: Limiter>(limits: &mut Limits, limiter: &L, at: Time) -> Result<(), Error> {
    if let Some(state) = limits.get_mut(&Name::of::<L::State>(limiter.span())) {
        let state = L::State::of_mut(state).ok_or(Error::WrongType)?;
        instant(limiter, state, at);
    }
    Ok(())
}

/// What the call would be told.
fn peek<L: Limiter>(limits: &Limits, limiter: &L, at: Time, cost: u64) -> Result<Answer, Error> {
    match limits.get(&Name::of::<L::State>(limiter.span())) {
        None => Ok(look(limiter, &limiter.fresh(at), at, cost)),
        Some(state) => {
            L::State::of(state).map(|state| look(limiter, state, at, cost)).ok_or(Error::WrongType)
        }
    }
}

/// Asks, and takes if it may. What is refused leaves no state where there was none.
fn ask<L: Limiter>(
    limits: &mut Limits,
    limiter: &L,
    at: Time,
    cost: u64,
    manner: Manner,
) -> Result<Answer, Error> {
    let name = Name::of::<L::State>(limiter.span());
    if let Some(state) = limits.get_mut(&name) {
        let state = L::State::of_mut(state).ok_or(Error::WrongType)?;
        return decide(limiter, state, at, cost, manner).map(|(answer, _)| answer);
    }
    let mut state = limiter.fresh(at);
    let (answer, charged) = decide(limiter, &mut state, at, cost, manner)?;
    if charged {
        limits.insert(name, state.kept());
    }
    Ok(answer)
}

/// The answer, and whether the state was charged.
fn decide<L: Limiter>(
    limiter: &L,
    state: &mut L::State,
    at: Time,
    cost: u64,
    manner: Manner,
) -> Result<(Answer, bool), Error> {
    if cost == 0 {
        return Ok((look(limiter, state, at, 0), false));
    }
    check(limiter, state, at, cost, manner)?;
    let now = instant(limiter, state, at);
    let lag = now.since(at);
    let (mut verdict, granted) = rule(limiter, state, now, lag, cost, manner)?;
    let charged = verdict.admits() || limiter.counts_refused() && verdict != Verdict::NEVER;
    if charged {
        change(state, |state, out| L::State::encode_change(&limiter.charge(state, now, granted), out));
    }
    if charged && !verdict.admits() {
        // It counts this very refusal.
        verdict = limiter.judge(state, now, granted).delayed(lag);
    }
    Ok((Answer { verdict, gauge: limiter.gauge(state, now).delayed(lag) }, charged))
}

/// At which to decide.
fn instant<L: Limiter>(limiter: &L, state: &mut L::State, at: Time) -> Time {
    let last_reset = |state: &L::State| limiter.gauge(state, state.last()).reset;
    read(state, at, last_reset, |state, out| L::State::encode_change(&limiter.rebase(state, at), out))
}

/// Likewise; `rebase` writes down what moves the state to then, if the clock was set back.
fn read<S: State>(
    state: &mut S,
    at: Time,
    reset: impl FnOnce(&S) -> Span,
    rebase: impl FnOnce(&S, &mut Vec<u8>),
) -> Time {
    match read_clock(state.last(), at, || reset(state)) {
        Reading::At(now) => now,
        Reading::SetBack => {
            change(state, rebase);
            at
        }
    }
}

/// As on a replica: the change becomes bytes, and they are applied.
fn change<S: State>(state: &mut S, write: impl FnOnce(&S, &mut Vec<u8>)) {
    let mut bytes = Vec::new();
    write(state, &mut bytes);
    if let Some(change) = S::decode_change(&mut Reader::new(&bytes)) {
        state.apply(change);
    }
}
