//! The options that all limiters share.

use ratelimit_core::state::Tenant;
use ratelimit_core::{Capabilities, Manner, Period, Span, Time};

use crate::arguments::{Arguments, caller_name, is, lease_id};
use crate::error::Error;
use crate::vocabulary::{
    AT, Argument, BLOCK, COST, COUNTREFUSED, CRITICAL_CALL, FAIR, FENCE, FORCE, HOLD, HOLD_TTL, MAXWAIT, ON,
    PARTIAL, RESERVE, SHADOW, TENANT, Value, WEIGHT,
};

/// What a call with several limits does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Charge,
    Peek,
    Refund,
    /// Each limit needs a cost.
    Settle,
}

/// The options that all limiters share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Request<'a> {
    cost: Option<u64>,
    /// The instant at which to decide; the server's clock if `None`.
    pub at: Option<Time>,
    manner: Option<Manner>,
    max_wait: Option<Span>,
    /// The number, from 1, of the only key that the limit applies to; all keys of the call if `None`.
    pub on: Option<u64>,
    /// Whether the limit is a shadow.
    pub shadow: bool,
    /// Whether the limit of a policy is that which tenants share.
    pub(crate) fair: bool,
    /// Whether an option may be given that must be checked. Most calls have none.
    is_special: bool,
    pub(crate) hold: Option<(&'a [u8], Span)>,
    pub(crate) block: Option<Period>,
    /// Whether the caller waits in front of those that are not critical.
    pub(crate) critical: bool,
    /// Whether the caller wants the fencing token of its lease.
    fenced: bool,
    tenant: Option<&'a [u8]>,
    weight: Option<u32>,
}

impl<'a> Request<'a> {
    /// The cost; 1 if the caller gave none.
    pub fn cost(&self) -> u64 {
        self.cost.unwrap_or(DEFAULT_COST)
    }

    /// The cost, if the caller gave one.
    pub fn own_cost(&self) -> Option<u64> {
        self.cost
    }

    /// Checks the options for all limits of a call with several.
    #[inline(always)]
    pub(crate) fn check_for_all(&self, purpose: Purpose) -> Result<(), Error> {
        let charges = purpose == Purpose::Charge;
        // The limits may have costs of their own; a caller that waits asks for something in any case.
        let options = Request { cost: if self.block.is_some() { self.cost } else { None }, ..*self };
        // Of a tenant that does not wait, nothing is known before the limits are.
        let early = charges;
        options.check(Capabilities {
            force: charges,
            hold: charges,
            block: charges,
            early,
            ..Capabilities::NONE
        })
    }

    /// Checks the options of one of several limits, and whether its limiter can be one of them.
    #[inline(always)]
    pub(crate) fn check_for_one(&self, capabilities: Capabilities) -> Result<(), Error> {
        if self.is_special {
            self.check_special(Capabilities::NONE)?;
        }
        if capabilities.counts_refused { Err(Error::NotForCommand(COUNTREFUSED.name)) } else { Ok(()) }
    }

    /// The manner, with the longest wait of a booking.
    pub fn manner(&self) -> Manner {
        match (self.manner, self.max_wait) {
            (Some(Manner::Reserve { .. }), Some(longest)) => Manner::Reserve { longest },
            (manner, _) => manner.unwrap_or_default(),
        }
    }

    /// The id of a hold, and how long it lasts.
    pub fn hold(&self) -> Option<(&'a [u8], Span)> {
        self.hold
    }

    /// The option that a call with several limits takes for all of them, if one is given.
    #[inline(always)]
    pub(crate) fn option_for_all(&self) -> Option<&'static str> {
        match self {
            Request { is_special: false, .. } => None,
            Request { manner: Some(Manner::Force), .. } => Some(FORCE.name),
            Request { hold: Some(_), .. } => Some(HOLD.name),
            Request { block: Some(_), .. } => Some(BLOCK.name),
            Request { critical: true, .. } => Some(CRITICAL_CALL.name),
            _ => None,
        }
    }

    /// How long the caller waits at most until its request is admitted; `None` if it does not wait.
    #[inline(always)]
    pub fn block(&self) -> Option<Period> {
        self.block
    }

    /// Whether the caller waits in front of those that are not critical.
    pub fn is_critical(&self) -> bool {
        self.critical
    }

    /// Whether the caller wants the fencing token of its lease.
    #[inline(always)]
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// Notes the option `FENCE`, which only leases have.
    pub(crate) fn fence(&mut self) {
        (self.fenced, self.is_special) = (true, true);
    }

    /// Checks that the limiter or command supports the request's manner.
    ///
    /// # Errors
    ///
    /// Names the option that is not supported, or the one that is missing.
    #[inline(always)]
    pub fn check(&self, capabilities: Capabilities) -> Result<(), Error> {
        if !self.is_special {
            return Ok(());
        }
        self.check_special(capabilities)?;
        self.check_tenant(capabilities, self.block.is_some())
    }

    /// As [`check`](Self::check), for a settlement, which takes `TENANT` only.
    pub fn check_settlement(&self) -> Result<(), Error> {
        if !self.is_special {
            return Ok(());
        }
        self.check_special(Capabilities::NONE)?;
        if self.weight.is_some() { Err(Error::NotForCommand(WEIGHT.name)) } else { Ok(()) }
    }

    /// Checks `TENANT` and `WEIGHT` of a call that waits, or does not. A call that does not wait has a tenant only for leases.
    pub(crate) fn check_tenant(&self, capabilities: Capabilities, waits: bool) -> Result<(), Error> {
        match (self.tenant, self.weight) {
            (None, None) => Ok(()),
            (Some(_), _) if !capabilities.block => Err(Error::NotForCommand(TENANT.name)),
            (None, _) if !capabilities.block => Err(Error::NotForCommand(WEIGHT.name)),
            (None, Some(_)) => Err(Error::needs(WEIGHT.name, TENANT.name)),
            (Some(_), _) if !waits && !capabilities.early => Err(Error::needs(TENANT.name, BLOCK.name)),
            (Some(_), _) => Ok(()),
        }
    }

    /// The tenant, if one is given.
    pub fn tenant(&self) -> Option<Tenant<'a>> {
        self.tenant.map(|name| Tenant { name, weight: self.weight })
    }

    /// `TENANT` or `WEIGHT`, if one is given.
    pub(crate) fn tenant_option(&self) -> Option<&'static str> {
        match (self.tenant, self.weight) {
            (Some(_), _) => Some(TENANT.name),
            (None, Some(_)) => Some(WEIGHT.name),
            (None, None) => None,
        }
    }

    fn check_special(&self, capabilities: Capabilities) -> Result<(), Error> {
        if self.fenced && !capabilities.early {
            return Err(Error::NotForCommand(FENCE.name));
        }
        let waits_without_booking =
            self.max_wait.is_some() && !matches!(self.manner, Some(Manner::Reserve { .. }));
        if waits_without_booking || !capabilities.allows(self.manner()) {
            return Err(self.misfit(capabilities));
        }
        self.check_hold(capabilities)?;
        self.check_block(capabilities)?;
        match self.block {
            _ if !self.critical => Ok(()),
            _ if !capabilities.block => Err(Error::NotForCommand(CRITICAL_CALL.name)),
            None => Err(Error::needs(CRITICAL_CALL.name, BLOCK.name)),
            Some(_) => Ok(()),
        }
    }

    fn check_hold(&self, capabilities: Capabilities) -> Result<(), Error> {
        match self.manner {
            _ if self.hold.is_none() => Ok(()),
            _ if !capabilities.hold => Err(Error::NotForCommand(HOLD.name)),
            Some(Manner::Reserve { .. }) => Err(Error::exclude(HOLD.name, RESERVE.name)),
            _ => self.check_held_cost(),
        }
    }

    /// A call that costs nothing has nothing to hold.
    pub(crate) fn check_held_cost(&self) -> Result<(), Error> {
        if self.cost == Some(0) { Err(Error::needs(HOLD.name, "a COST above 0")) } else { Ok(()) }
    }

    fn check_block(&self, capabilities: Capabilities) -> Result<(), Error> {
        match self.manner {
            _ if self.block.is_none() => Ok(()),
            _ if capabilities.counts_refused => Err(Error::exclude(BLOCK.name, COUNTREFUSED.name)),
            _ if !capabilities.block => Err(Error::NotForCommand(BLOCK.name)),
            Some(manner) => Err(Error::exclude(BLOCK.name, option_of(manner))),
            None if self.at.is_some() => Err(Error::exclude(BLOCK.name, AT.name)),
            None if self.cost == Some(0) => Err(Error::needs(BLOCK.name, "a COST above 0")),
            None => Ok(()),
        }
    }

    #[cold]
    fn misfit(&self, capabilities: Capabilities) -> Error {
        match self.manner {
            Some(manner) if !capabilities.allows(manner) => Error::NotForCommand(option_of(manner)),
            _ if capabilities.reserve => Error::needs(MAXWAIT.name, RESERVE.name),
            _ => Error::NotForCommand(MAXWAIT.name),
        }
    }

    /// Reads the options, in any order. `own` reads the value of an
    /// option of the limiter's own, and returns whether the option is one of its own.
    #[inline(always)]
    pub fn options(
        &mut self,
        arguments: &mut Arguments<'_, 'a>,
        mut own: impl FnMut(&[u8], &mut Arguments<'_, 'a>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        while let Some(word) = arguments.option_word() {
            if !own(word, arguments)? && !self.option(word, arguments)? {
                return Err(arguments.unknown(word));
            }
        }
        Ok(())
    }

    /// Reads the options. The limiter's only own option is `flag`, which has no value. Returns whether it is given.
    #[inline(always)]
    pub(crate) fn options_and_flag(
        &mut self,
        arguments: &mut Arguments<'_, 'a>,
        flag: Argument,
    ) -> Result<bool, Error> {
        let mut given = false;
        self.options(arguments, |word, _| Arguments::flag(word, flag, &mut given))?;
        Ok(given)
    }

    /// Reads the value of an option. Returns whether `word` is one of these options.
    #[inline]
    fn option(&mut self, word: &[u8], arguments: &mut Arguments<'_, 'a>) -> Result<bool, Error> {
        if arguments.option(word, COST, &mut self.cost)? || arguments.option(word, AT, &mut self.at)? {
            return Ok(true);
        }
        if let Some(keys) = arguments.most_keys()
            && (arguments.option_by(word, ON, &mut self.on, |arguments| arguments.read_bounded(ON, keys))?
                || Arguments::flag(word, SHADOW, &mut self.shadow)?)
        {
            return Ok(true);
        }
        self.is_special = true;
        Ok(self.manner_from(word)?
            || arguments.option(word, MAXWAIT, &mut self.max_wait)?
            || arguments.option_by(word, HOLD, &mut self.hold, hold)?
            || arguments.option_by(word, BLOCK, &mut self.block, block)?
            || Arguments::flag(word, CRITICAL_CALL, &mut self.critical)?
            || arguments
                .option_by(word, TENANT, &mut self.tenant, |arguments| caller_name(arguments, TENANT))?
            || arguments.option(word, WEIGHT, &mut self.weight)?
            || !arguments.has_ids() && Arguments::flag(word, FAIR, &mut self.fair)?)
    }

    /// Notes the manner, if `word` is one. Returns whether it is.
    #[inline(always)]
    fn manner_from(&mut self, word: &[u8]) -> Result<bool, Error> {
        let manner = if is(word, PARTIAL.name) {
            Manner::Partial
        } else if is(word, FORCE.name) {
            Manner::Force
        } else if is(word, RESERVE.name) {
            Manner::Reserve { longest: Span::FOREVER }
        } else {
            return Ok(false);
        };
        match self.manner.replace(manner) {
            None => Ok(true),
            Some(given) if given == manner => Err(Error::twice(option_of(manner))),
            Some(given) => Err(Error::exclude(option_of(given), option_of(manner))),
        }
    }
}

/// The cost of a request without `COST`.
const DEFAULT_COST: u64 = match COST.default {
    Some(Value::Number(cost)) => cost,
    _ => panic!(),
};

/// The values of `HOLD`: an id, and how long the hold lasts.
#[cold]
fn hold<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<(&'a [u8], Span), Error> {
    let hold = lease_id(arguments).and_then(|id| Ok((id, arguments.read(HOLD_TTL)?)));
    hold.map_err(|error| match error {
        Error::Missing(_) => Error::needs(HOLD.name, "an id and a ttl, such as HOLD request-17 1m"),
        error => error,
    })
}

/// The value of `BLOCK`. Zero is as long as the settings allow.
#[cold]
fn block(arguments: &mut Arguments<'_, '_>) -> Result<Period, Error> {
    Ok(Period::of(arguments.read(BLOCK)?).unwrap_or(Period::LONGEST))
}

/// The option for a manner. That of a plain request is empty.
pub fn option_of(manner: Manner) -> &'static str {
    match manner {
        Manner::Strict => "",
        Manner::Partial => PARTIAL.name,
        Manner::Force => FORCE.name,
        Manner::Reserve { .. } => RESERVE.name,
    }
}
