//! Parses a whole call, and does nothing else.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use ratelimit_core::{Joint, Limiter, Time, with_limiter};

use crate::arguments::{Arguments, Bounds, lease_id, without_prefix};
use crate::calls::{CellCall, ShedCall, SketchCall, cell, info, release, renew, shed, sketch, top};
use crate::catalog::{CATALOG, Row, find};
use crate::docs;
use crate::error::Error;
use crate::help::Documentation;
use crate::multi::{MultiCall, multi};
use crate::named::{peek, refund, settle};
use crate::policy::{Policy, PolicyCall, TryCall, policy_name};
use crate::request::{Purpose, Request};
use crate::vocabulary::{KEY, NUMKEYS};

/// Whether a call of the policy of a name is valid.
pub type Asks<'p> = dyn Fn(&[u8], &PolicyCall<'_>, Purpose) -> bool + 'p;

/// A call that is wrong.
#[derive(Clone, Copy)]
pub struct WrongCall<'c> {
    pub command: &'c Documentation,
    /// The words after the command's name.
    pub words: &'c [&'c [u8]],
    pub bounds: Bounds,
    pub asks: &'c Asks<'c>,
}

impl WrongCall<'_> {
    /// Whether another call is right.
    pub(crate) fn parses(&self, command: &Documentation, words: &[&[u8]]) -> bool {
        check(command, &mut Arguments::new(words, self.bounds), self.asks).is_ok()
    }
}

/// Checks the arguments of a command. The server parses those of the queues and of `RL.APPLY`, so a changed call to one of them counts
/// as wrong, and is never proposed.
pub(crate) fn check(
    command: &Documentation,
    arguments: &mut Arguments<'_, '_>,
    asks: &Asks<'_>,
) -> Result<(), Error> {
    if let Some(row) = find(command.name.as_bytes()) {
        arguments.word(KEY.name)?;
        let mut request = Request::default();
        let limiter = (row.parse)(arguments, &mut request)?;
        return with_limiter!(&limiter, limiter => request.check(limiter.capabilities()));
    }
    match command.name {
        "MULTI" => several(arguments, Purpose::Charge),
        "MULTIPEEK" => several(arguments, Purpose::Peek),
        "MULTIREFUND" => several(arguments, Purpose::Refund),
        "MULTISETTLE" => several(arguments, Purpose::Settle),
        "MULTIRELEASE" => keys(arguments).and_then(|_| release(arguments).map(drop)),
        "ASK" => ask(arguments, Purpose::Charge, asks),
        "ASKPEEK" => ask(arguments, Purpose::Peek, asks),
        "ASKREFUND" => ask(arguments, Purpose::Refund, asks),
        "ASKSETTLE" => ask(arguments, Purpose::Settle, asks),
        "POLICY" => policy(arguments),
        "EXPLAIN" => explain(arguments, asks),
        "HELP" => helped(arguments).map(drop),
        "TOP" => top(arguments).map(drop),
        _ => {
            arguments.word(KEY.name)?;
            match command.name {
                SketchCall::NAME => sketch(arguments).map(drop),
                ShedCall::NAME => shed(arguments).map(drop),
                CellCall::NAME => cell(arguments).map(drop),
                "PEEK" => peek(arguments).map(drop),
                "REFUND" => refund(arguments).map(drop),
                "SETTLE" => settle(arguments).map(drop),
                "RELEASE" => release(arguments).map(drop),
                "RENEW" => renew(arguments).map(drop),
                "INFO" => info(arguments).map(drop),
                _ => Err(Error::Arity),
            }
        }
    }
}

fn keys(arguments: &mut Arguments<'_, '_>) -> Result<u64, Error> {
    let count = arguments.read(NUMKEYS)?;
    let mut keys = BTreeSet::new();
    for _ in 0..count {
        if !keys.insert(arguments.word(KEY.name)?) {
            return Err(Error::SameKeys);
        }
    }
    Ok(count)
}

fn several(arguments: &mut Arguments<'_, '_>, purpose: Purpose) -> Result<(), Error> {
    let count = keys(arguments)?;
    if purpose == Purpose::Settle {
        lease_id(arguments)?;
    }
    let MultiCall { parts, manner, .. } = multi(arguments, count, purpose)?;
    Joint::new(&parts, usize::try_from(count).unwrap_or(usize::MAX), Time::EARLIEST, manner)?;
    Ok(())
}

fn ask(arguments: &mut Arguments<'_, '_>, purpose: Purpose, asks: &Asks<'_>) -> Result<(), Error> {
    arguments.word(KEY.name)?;
    let name = arguments.word("policy")?;
    if purpose == Purpose::Settle {
        lease_id(arguments)?;
    }
    let call = PolicyCall::parse(arguments, purpose)?;
    if asks(name, &call, purpose) { Ok(()) } else { Err(Error::near(name)) }
}

fn policy(arguments: &mut Arguments<'_, '_>) -> Result<(), Error> {
    let word = arguments.word("SET")?;
    if word.eq_ignore_ascii_case(b"SET") {
        policy_name(arguments)?;
        Policy::parse(arguments).map(drop)
    } else if word.eq_ignore_ascii_case(b"TRY") {
        TryCall::parse(arguments).map(drop)
    } else {
        Ok(())
    }
}

/// The command that `RL.HELP` explains; `None` if it lists them.
pub fn helped(arguments: &mut Arguments<'_, '_>) -> Result<Option<&'static Documentation>, Error> {
    if arguments.is_empty() {
        return Ok(None);
    }
    let word = arguments.word("command")?;
    let command = docs::find(word).ok_or_else(|| Error::near_because(word, "RL.HELP lists the commands"))?;
    arguments.peek().map_or(Ok(Some(command)), |word| Err(Error::near(word)))
}

/// The command of a call to `RL.EXPLAIN`, if it can be explained.
pub(crate) fn explained(word: &[u8]) -> Option<&'static Documentation> {
    docs::find(word).filter(|command| {
        let others = [SketchCall::NAME, docs::MULTI.name, docs::ASK.name];
        command.is_own() && (find(command.name.as_bytes()).is_some() || others.contains(&command.name))
    })
}

/// Reads the command whose call `RL.EXPLAIN` explains. `None` if the word is a key, which is described: a word alone that is no
/// command's name.
pub fn explains(arguments: &mut Arguments<'_, '_>) -> Result<Option<&'static Documentation>, Error> {
    let word = arguments.word("command")?;
    let is_command = || docs::find(word).is_some_and(|command| command.is_named(word));
    match explained(word) {
        None if arguments.is_empty() && !is_command() && without_prefix(word).is_none() => Ok(None),
        None if let Some(command) = arguments.peek().and_then(explained)
            && !is_command() =>
        {
            Err(Error::key_before_command(command.name, word))
        }
        None => {
            let names = CATALOG.iter().map(Row::name).collect::<Vec<_>>().join(", ");
            let why = format!("RL.EXPLAIN explains RL.MULTI, RL.ASK, RL.SKETCH and the limiters: {names}");
            Err(Error::near_because(word, &why))
        }
        command => Ok(command),
    }
}

fn explain(arguments: &mut Arguments<'_, '_>, asks: &Asks<'_>) -> Result<(), Error> {
    explains(arguments)?.map_or(Ok(()), |command| check(command, arguments, asks))
}
