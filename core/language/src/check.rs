//! Parses a whole call, and does nothing else.

use ratelimit_core::{Limiter, with_limiter};

use crate::arguments::{Arguments, Bounds, lease_id};
use crate::calls::{CellCall, ShedCall, SketchCall, cell, info, release, renew, shed, sketch, top};
use crate::catalog::find;
use crate::docs;
use crate::error::Error;
use crate::help::Documentation;
use crate::multi::multi;
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

/// Checks the arguments of a command. Those of the queues and of `RL.APPLY` are not known here, so they are never wrong.
pub(crate) fn check(
    command: &Documentation,
    arguments: &mut Arguments<'_, '_>,
    asks: &Asks<'_>,
) -> Result<(), Error> {
    if !command.is_own() && command.name != CellCall::NAME {
        return Ok(());
    }
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
        "HELP" => {
            let word = arguments.word("command")?;
            if docs::find(word).is_some() { Ok(()) } else { Err(Error::near(word)) }
        }
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
                _ => Ok(()),
            }
        }
    }
}

fn keys(arguments: &mut Arguments<'_, '_>) -> Result<u64, Error> {
    let count = arguments.read(NUMKEYS)?;
    for _ in 0..count {
        arguments.word(KEY.name)?;
    }
    Ok(count)
}

fn several(arguments: &mut Arguments<'_, '_>, purpose: Purpose) -> Result<(), Error> {
    let count = keys(arguments)?;
    if purpose == Purpose::Settle {
        lease_id(arguments)?;
    }
    multi(arguments, count, purpose).map(drop)
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

/// The command of a call to `RL.EXPLAIN`, if it can be explained.
pub fn explained(word: &[u8]) -> Option<&'static Documentation> {
    docs::find(word).filter(|command| {
        let others = [SketchCall::NAME, docs::MULTI.name, docs::ASK.name];
        command.is_own() && (find(command.name.as_bytes()).is_some() || others.contains(&command.name))
    })
}

fn explain(arguments: &mut Arguments<'_, '_>, asks: &Asks<'_>) -> Result<(), Error> {
    let word = arguments.word("command")?;
    match explained(word) {
        Some(command) => check(command, arguments, asks),
        None if arguments.is_empty() => Ok(()),
        None => Err(Error::near(word)),
    }
}
