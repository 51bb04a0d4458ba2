//! The arguments of a call with several limits.
//!
//! ```text
//! [COST cost] [AT at] [FORCE] [HOLD id ttl] LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [LIMIT ...]
//! ```
//!
//! The options before the first `LIMIT` apply to all limits.

use alloc::vec::Vec;

use ratelimit_core::{Capabilities, Limiter, MAX_PAIRS, Manner, Part, Span, Time, with_limiter};

use crate::arguments::Arguments;
use crate::catalog::{is_option, named};
use crate::error::Error;
use crate::request::{Request, option_of};

/// What a call with several limits does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Charge,
    Peek,
    Refund,
    /// Each limit needs a cost.
    Settle,
}

/// A call with several limits.
pub struct Multi<'a> {
    pub at: Option<Time>,
    pub manner: Manner,
    /// The id of a hold, and how long it lasts.
    pub hold: Option<(&'a [u8], Span)>,
    pub parts: Vec<Part<'a>>,
}

/// Reads the arguments after the keys. `keys` is the number of keys.
#[inline(always)]
pub fn multi<'a>(arguments: &mut Arguments<'_, 'a>, keys: u64, purpose: Purpose) -> Result<Multi<'a>, Error> {
    arguments.end_options_at("LIMIT", keys);
    let mut defaults = Request::default();
    arguments.options(&mut defaults, |_, _| Ok(false)).map_err(|error| match error {
        Error::NotForCommand(option) if is_option(option) => Error::belongs_in(option),
        error => error,
    })?;
    let charges = purpose == Purpose::Charge;
    // The limits may have costs of their own.
    defaults.without_cost().check(Capabilities { force: charges, hold: charges, ..Capabilities::NONE })?;
    if defaults.on.is_some() {
        return Err(Error::belongs_in("ON"));
    }
    if defaults.shadow {
        return Err(Error::belongs_in("SHADOW"));
    }
    let mut parts = Vec::new();
    while arguments.next_section() {
        // This bounds the work: a call of a megabyte is rejected after 64 limits.
        if parts.len() == MAX_PAIRS {
            return Err(Error::TooManyPairs);
        }
        let number = parts.len() + 1;
        parts.push(part(arguments, &defaults, purpose).map_err(|error| error.in_limit(number))?);
    }
    if parts.is_empty() {
        return Err(Error::absent("LIMIT"));
    }
    if defaults.hold.is_some() && !parts.iter().any(Part::can_be_held) {
        return Err(Error::needs("HOLD", "a limit that can be held"));
    }
    Ok(Multi { at: defaults.at, manner: defaults.manner(), hold: defaults.hold, parts })
}

/// Reads one limit, after the word `LIMIT`.
fn part<'a>(
    arguments: &mut Arguments<'_, 'a>,
    defaults: &Request<'a>,
    purpose: Purpose,
) -> Result<Part<'a>, Error> {
    let mut own = Request::default();
    let (row, limiter) = named(arguments, &mut own)?;
    let (mut name, capabilities) =
        with_limiter!(&limiter, limiter => (limiter.name(), limiter.capabilities()));
    if own.shadow {
        name.length = name.length.in_shadow();
    }
    if own.at.is_some() {
        return Err(Error::belongs_before("AT"));
    }
    if own.manner() == Manner::Force && purpose == Purpose::Charge {
        return Err(Error::belongs_before("FORCE"));
    }
    if own.hold.is_some() && purpose == Purpose::Charge {
        return Err(Error::belongs_before("HOLD"));
    }
    own.check(Capabilities::NONE)?;
    if purpose == Purpose::Settle && own.own_cost().or(defaults.own_cost()).is_none() {
        return Err(Error::absent("COST"));
    }
    if capabilities.counts_refused {
        return Err(Error::NotForCommand("COUNTREFUSED"));
    }
    if purpose == Purpose::Refund && !capabilities.refund {
        return Err(Error::NotForCommand(row.name));
    }
    let manner = defaults.manner();
    // With FORCE, a penalty is only looked at.
    if !capabilities.allows(manner) && !capabilities.bans {
        return Err(Error::NotForCommand(option_of(manner)).of_command("", row.name));
    }
    let on = own.on.and_then(|on| usize::try_from(on - 1).ok());
    Ok(Part { limiter, name, cost: cost(capabilities, &own, defaults), on })
}

/// A limit's own cost, or the call's default cost. Of the default, a limiter whose requests cost 1 takes at most 1. So
/// a default of 0 makes it peek.
fn cost(capabilities: Capabilities, own: &Request<'_>, defaults: &Request<'_>) -> u64 {
    let default = defaults.cost();
    let default = if capabilities.one_each { default.min(1) } else { default };
    own.own_cost().unwrap_or(default)
}
