//! The arguments of a call with several limits.
//!
//! ```text
//! [COST cost] [AT at] [FORCE] [HOLD id ttl] [BLOCK timeout [CRITICAL]]
//!     LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [TENANT tenant [WEIGHT weight]] [LIMIT ...]
//! ```
//!
//! The options before the first `LIMIT` apply to all limits.

use alloc::format;
use alloc::vec::Vec;
use core::mem::replace;

use ratelimit_core::{
    AnyLimiter, Capabilities, Limiter, MAX_PAIRS, Manner, Part, Period, Span, Time, with_limiter,
};

use crate::arguments::{Arguments, Sections, is};
use crate::catalog::{find, is_option, named};
use crate::error::Error;
use crate::meant::is_like_an_option;
use crate::number::integer;
use crate::request::{Purpose, Request, option_of};
use crate::shown::shown;
use crate::vocabulary::{AT, COST, HOLD, LIMIT, NUMKEYS, ON, SHADOW, TENANT, option_names};

/// A call with several limits.
pub struct MultiCall<'a> {
    pub at: Option<Time>,
    pub manner: Manner,
    /// The id of a hold, and how long it lasts.
    pub hold: Option<(&'a [u8], Span)>,
    /// How long the caller waits at most until its request is admitted; `None` if it does not wait.
    pub block: Option<Period>,
    pub parts: Vec<Part<'a>>,
}

/// Reads the arguments after the keys. `keys` is the number of keys.
#[inline(always)]
pub fn multi<'a>(
    arguments: &mut Arguments<'_, 'a>,
    keys: u64,
    purpose: Purpose,
) -> Result<MultiCall<'a>, Error> {
    arguments.divide(Sections::limits(keys));
    let mut defaults = Request::default();
    defaults.options(arguments, |_, _| Ok(false)).map_err(before_limits)?;
    if let Some(option) = defaults.tenant_option()
        && matches!(purpose, Purpose::Charge | Purpose::Settle)
    {
        return Err(Error::belongs_in(option));
    }
    defaults.check_for_all(purpose)?;
    if defaults.on.is_some() {
        return Err(Error::belongs_in(ON.name));
    }
    if defaults.shadow {
        return Err(Error::belongs_in(SHADOW.name));
    }
    let mut has_tenant = false;
    let parts = limits(arguments, |arguments| {
        let part = part(arguments, &defaults, purpose)?;
        one_tenant(&mut has_tenant, part.tenant.is_some(), TENANT.name, keys, part.on)?;
        Ok(part)
    })?;
    if defaults.hold.is_some() && !parts.iter().any(Part::can_be_held) {
        defaults.check_held_cost()?;
        return Err(Error::needs(HOLD.name, "a limit that can be held"));
    }
    let Request { at, hold, block, .. } = defaults;
    Ok(MultiCall { at, manner: defaults.manner(), hold, block, parts })
}

/// The error for a wrong `numkeys`, which begins the `words` of a call that is wrong. `None` if nothing shows that it is
/// wrong.
#[cold]
pub fn miscounted<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<Error> {
    let keys = usize::try_from(integer(words.next()?)?).ok().filter(|keys| (1..=MAX_PAIRS).contains(keys))?;
    let words: Vec<&[u8]> = words.collect();
    let begins_limit =
        |pair: &[&[u8]]| matches!(pair, [word, name] if is(word, LIMIT.name) && find(name).is_some());
    let limit = words.windows(2).position(begins_limit);
    if let Some(before) = limit.filter(|before| *before < keys) {
        let key = match before {
            0 => {
                return Some(Error::invalid(format_args!(
                    "{} is {keys}, but no key comes before LIMIT",
                    NUMKEYS.name
                )));
            }
            1 => "the first key".into(),
            _ => format!("key {before}"),
        };
        return Some(Error::invalid(format_args!("{} is {keys}, but LIMIT follows {key}", NUMKEYS.name)));
    }
    let is_known = |word: &&[u8]| option_names().any(|option| is(word, option));
    let known = words.iter().position(is_known).filter(|before| *before > keys)?;
    // A limit without the word `LIMIT`, and a misspelt option, have errors of their own.
    words.get(keys).filter(|word| find(word).is_none() && !is_like_an_option(word))?;
    let first = shown(words.get(known).copied().unwrap_or_default());
    Some(Error::invalid(format_args!("{} is {keys}, but {known} keys come before {first}", NUMKEYS.name)))
}

/// The error before the first limit: an option that any limiter takes belongs in a limit.
#[cold]
pub(crate) fn before_limits(error: Error) -> Error {
    match error {
        Error::NotForCommand(option) if is_option(option) => Error::belongs_in(option),
        error => error,
    }
}

/// Reads limits, one after each word `LIMIT`.
#[inline(always)]
pub(crate) fn limits<'w, 'a, T>(
    arguments: &mut Arguments<'w, 'a>,
    mut read: impl FnMut(&mut Arguments<'w, 'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut limits = Vec::new();
    while arguments.next_section() {
        // This bounds the work: a call of a megabyte is rejected after 64 limits.
        if limits.len() == MAX_PAIRS {
            return Err(Error::TooManyPairs);
        }
        limits.push(read(arguments).map_err(|error| error.in_limit(limits.len() + 1))?);
    }
    if limits.is_empty() { Err(Error::absent(LIMIT.name)) } else { Ok(limits) }
}

/// Reads one limit of a call, after the word `LIMIT`.
fn part<'a>(
    arguments: &mut Arguments<'_, 'a>,
    defaults: &Request<'a>,
    purpose: Purpose,
) -> Result<Part<'a>, Error> {
    let mut own = Request::default();
    let (row, limiter) = named(arguments, &mut own)?;
    let capabilities = with_limiter!(&limiter, limiter => limiter.capabilities());
    if own.at.is_some() {
        return Err(Error::belongs_before(AT.name));
    }
    if purpose == Purpose::Charge
        && let Some(option) = own.option_for_all()
    {
        return Err(Error::belongs_before(option));
    }
    own.check_for_one(capabilities)?;
    match purpose {
        // Of a call that takes the option, it is the limiter that does not.
        Purpose::Charge => own
            .check_tenant(capabilities, defaults.block.is_some())
            .map_err(|error| error.of_command("", row.name()))?,
        Purpose::Settle => own.check_settlement()?,
        Purpose::Peek | Purpose::Refund => own.check_tenant(Capabilities::NONE, false)?,
    }
    if purpose == Purpose::Settle && own.own_cost().or(defaults.own_cost()).is_none() {
        return Err(Error::absent(COST.name));
    }
    if purpose == Purpose::Refund && !capabilities.refund {
        return Err(Error::NotForCommand(row.name()));
    }
    let manner = defaults.manner();
    if !capabilities.allows_jointly(manner) {
        return Err(Error::NotForCommand(option_of(manner)).of_command("", row.name()));
    }
    let cost = cost(own.own_cost(), capabilities, defaults);
    let part = Part { tenant: own.tenant(), ..part_of(limiter, &own, own.shadow, cost) };
    Ok(if defaults.critical { part.made_critical() } else { part })
}

/// The part of a call that is a limit with these options of its own.
#[inline(always)]
pub(crate) fn part_of<'a>(limiter: AnyLimiter<'a>, own: &Request<'_>, shadow: bool, cost: u64) -> Part<'a> {
    let mut name = with_limiter!(&limiter, limiter => limiter.name());
    if shadow {
        name.length = name.length.in_shadow();
    }
    let on = own.on.and_then(|on| usize::try_from(on - 1).ok());
    Part { limiter, name, cost, on, tenant: None, critical: false }
}

/// Checks that at most one limit has the option `TENANT` or `FAIR`, and that this limit applies to one key only. `has_one` is
/// whether a limit before had it, `has` whether this one does.
pub(crate) fn one_tenant(
    has_one: &mut bool,
    has: bool,
    option: &'static str,
    keys: u64,
    on: Option<usize>,
) -> Result<(), Error> {
    if has && replace(has_one, true) {
        return Err(Error::twice(option));
    }
    if has && keys > 1 && on.is_none() {
        return Err(Error::needs(option, "ON, as there are several keys"));
    }
    Ok(())
}

/// A limit's own cost, or the call's default cost. Of the default, a limiter whose requests cost 1 takes at most 1. So
/// a default of 0 makes it peek.
pub(crate) fn cost(own: Option<u64>, capabilities: Capabilities, defaults: &Request<'_>) -> u64 {
    let default = defaults.cost();
    let default = if capabilities.one_each { default.min(1) } else { default };
    own.unwrap_or(default)
}
