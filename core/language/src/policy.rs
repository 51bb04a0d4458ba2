//! Policies: limits under a name, which are parsed once, and the calls that ask them.
//!
//! ```text
//! [VERSION version] [SHADOW] LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [FAIR] [LIMIT ...]
//! [COST cost] [ID id] [FORCE] [AT at] [HOLD id ttl] [BLOCK timeout [CRITICAL]] [TENANT tenant [WEIGHT weight]] [FULL] [KEYS key ...]
//! ```

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ratelimit_core::{
    AnyLimiter, Capabilities, Joint, Limiter, Manner, Part, Period, Span, Time, Verdict, with_limiter,
};

use crate::arguments::{Arguments, Bounds, Sections, caller_name, is, is_limiter};
use crate::catalog::{Row, named};
use crate::error::Error;
use crate::multi::{before_limits, cost, limits, one_tenant, part_of};
use crate::number::{Duration, duration};
use crate::request::{Purpose, Request};
use crate::vocabulary::{
    AT, COST, FAIR, FORCE, FULL, ID, KEYS, LAST, LEASE_ID, LIMIT, MAX_NAME, ON, SHADOW, TRIED_KEY, VERSION,
};
use crate::words::words_of_policy;

/// Reads the name of a policy that is to be stored: 1 to [`MAX_NAME`] of `A-Z a-z 0-9 . _ : -`.
pub fn policy_name<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<&'a str, Error> {
    let word = arguments.word("name")?;
    if is(word, LIMIT.name) && arguments.peek().is_some_and(is_limiter) {
        return Err(Error::missing("name"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let is_name = (1..=MAX_NAME).contains(&word.len()) && word.iter().copied().all(allowed);
    let name = str::from_utf8(word).ok().filter(|_| is_name);
    name.ok_or_else(|| Error::must_be("name", format_args!("1 to {MAX_NAME} of A-Z a-z 0-9 . _ : -"), word))
}

/// `RL.POLICY TRY name [LAST duration] [KEY key] [SHADOW] LIMIT ...`.
pub struct TryCall<'a> {
    pub name: &'a str,
    /// How long before the newest call the replay begins; with the oldest one if `None`.
    pub last: Option<Span>,
    /// The only key that is counted.
    pub key: Option<&'a [u8]>,
    /// The limits to try.
    pub policy: Policy,
}

impl<'a> TryCall<'a> {
    /// Reads the arguments after the word `TRY`.
    pub fn parse(arguments: &mut Arguments<'_, 'a>) -> Result<TryCall<'a>, Error> {
        let name = policy_name(arguments)?;
        let (mut last, mut key) = (None, None);
        while let Some(word) = arguments.peek() {
            if !(is(word, LAST.name) || is(word, TRIED_KEY.name)) {
                break;
            }
            arguments.next_section();
            if !arguments.option(word, LAST, &mut last)? {
                arguments.option_by(word, TRIED_KEY, &mut key, |arguments| arguments.word(TRIED_KEY.name))?;
            }
        }
        match Policy::parse(arguments)? {
            (None, policy) => Ok(TryCall { name, last: last.map(Period::span), key, policy }),
            (Some(_), _) => Err(Error::NotForCommand(VERSION.name)),
        }
    }
}

/// The limits of a policy.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The words after the version, with a space between two.
    words: String,
    /// The bounds under which the limits are valid; `None` if they are not parsed.
    bounds: Option<Bounds>,
    /// With the default cost, and without the ids of leases.
    parts: Vec<Part<'static>>,
    /// The cost that the policy gives each limit; the call's cost if `None`.
    own_costs: Vec<Option<u64>>,
    /// The least number of keys.
    keys: usize,
    has_leases: bool,
    /// The index of the limit that tenants share.
    fair: Option<usize>,
    /// The first limiter that does not support `FORCE`.
    unforced: Option<&'static str>,
    /// The first limiter without refunds.
    unrefunded: Option<&'static str>,
}

/// A call of a policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyCall<'a> {
    request: Request<'a>,
    /// The id of a lease.
    id: Option<&'a [u8]>,
    /// Whether the caller wants the answer of each limit on each key.
    pub full: bool,
    /// The number of keys behind `KEYS`. They are the last words of the call.
    pub more_keys: usize,
}

impl Policy {
    /// Reads a policy after its name, and its version if one is given.
    ///
    /// # Errors
    ///
    /// Also if no call of the policy can be valid, with any number of keys.
    pub fn parse(arguments: &mut Arguments<'_, '_>) -> Result<(Option<u64>, Policy), Error> {
        arguments.divide(Sections::OF_POLICY);
        let (mut version, mut defaults) = (None, Request::default());
        let read =
            defaults.options(arguments, |word, arguments| arguments.option(word, VERSION, &mut version));
        read.map_err(before_limits)?;
        not_of_call(&defaults)?;
        if defaults.own_cost().is_some() {
            return Err(Error::belongs_in(COST.name));
        }
        if defaults.on.is_some() {
            return Err(Error::belongs_in(ON.name));
        }
        let rest = arguments.rest();
        let bounds = arguments.bounds();
        if defaults.fair {
            return Err(Error::belongs_in(FAIR.name));
        }
        let limits = limits(arguments, |arguments| limit(arguments, defaults.shadow))?;
        let parts: Vec<Part<'static>> = limits.iter().map(|limit| limit.part).collect();
        let keys = parts.iter().filter_map(|part| part.on).max().map_or(1, |on| on + 1);
        let mut is_fair = false;
        for (limit, number) in limits.iter().zip(1..) {
            one_tenant(&mut is_fair, limit.fair, FAIR.name, keys as u64, limit.part.on)
                .map_err(|error| error.in_limit(number))?;
        }
        // With more keys there are only more pairs.
        Joint::new(&parts, keys, Time::EARLIEST, Manner::Strict)?;
        let first_that = |lacks: fn(&Capabilities) -> bool| {
            limits.iter().find(|limit| lacks(&limit.capabilities)).map(|limit| limit.row.name())
        };
        let policy = Policy {
            words: words(defaults.shadow, rest)?,
            bounds: Some(bounds),
            keys,
            has_leases: limits.iter().any(|limit| limit.row.takes(ID.name)),
            fair: limits.iter().position(|limit| limit.fair),
            own_costs: limits.iter().map(|limit| limit.own_cost).collect(),
            parts,
            unforced: first_that(|capabilities| !capabilities.allows_jointly(Manner::Force)),
            unrefunded: first_that(|capabilities| !capabilities.refund),
        };
        Ok((version, policy))
    }

    /// Whether a limit of it has leases.
    pub fn has_leases(&self) -> bool {
        self.has_leases
    }

    /// The limiters, in order.
    pub fn limiters(&self) -> impl Iterator<Item = &AnyLimiter<'static>> {
        self.parts.iter().map(|part| &part.limiter)
    }

    /// The words after the version, with a space between two.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The words of each limit, without the options of a request.
    pub fn each_words(&self) -> Vec<String> {
        let words: Vec<&[u8]> = self.words.split(' ').map(str::as_bytes).collect();
        words_of_policy(&words)
    }

    /// The words of each limit, in order, without the word `LIMIT`.
    pub fn limits(&self) -> impl Iterator<Item = &str> {
        let limits = self.words.strip_prefix("SHADOW ").unwrap_or(&self.words);
        limits.strip_prefix("LIMIT ").unwrap_or(limits).split(" LIMIT ")
    }

    /// The words with each duration in one form: the same for `1m` and `60s`, and for `0` and `0ms`.
    pub fn canonical(&self) -> String {
        canonical(&self.words)
    }

    /// The words of each limit, as in [`canonical`](Self::canonical).
    pub fn canonical_limits(&self) -> impl Iterator<Item = String> {
        self.limits().map(canonical)
    }

    /// A policy that is not parsed, of words as a node stores them. [`Policy::within`] parses it.
    pub fn of_words(words: &str) -> Policy {
        Policy { words: words.into(), ..Policy::default() }
    }

    /// The bounds under which the limits are valid; `None` if they are not parsed.
    pub fn bounds(&self) -> Option<Bounds> {
        self.bounds
    }

    /// The same policy under other bounds.
    ///
    /// # Errors
    ///
    /// If a limit exceeds them.
    pub fn within(&self, bounds: Bounds) -> Result<Policy, Error> {
        let words: Vec<&[u8]> = self.words.split(' ').map(str::as_bytes).collect();
        Policy::parse(&mut Arguments::new(&words, bounds)).map(|(_, policy)| policy)
    }

    /// The limits of a call of the policy `name`.
    #[inline(always)]
    pub fn parts<'a>(
        &self,
        name: &[u8],
        asked: &PolicyCall<'a>,
        purpose: Purpose,
    ) -> Result<Cow<'_, [Part<'a>]>, Error> {
        self.check(name, asked, purpose)?;
        let has_tenant = self.fair.is_some() && asked.request.tenant().is_some();
        let parts = if asked.request.own_cost().is_none()
            && !self.has_leases
            && !has_tenant
            && !asked.request.critical
        {
            Cow::Borrowed(self.parts.as_slice())
        } else {
            Cow::Owned(self.filled(asked))
        };
        if asked.request.hold.is_some() && !parts.iter().any(Part::can_be_held) {
            asked.request.check_held_cost()?;
            return Err(Error::policy(name, format_args!("has no limit that can be held")));
        }
        Ok(parts)
    }

    #[inline(always)]
    fn check(&self, name: &[u8], asked: &PolicyCall<'_>, purpose: Purpose) -> Result<(), Error> {
        if asked.more_keys + 1 < self.keys {
            return Err(Error::policy(
                name,
                format_args!("needs {} keys; got {}", self.keys, asked.more_keys + 1),
            ));
        }
        // A settlement only looks at leases.
        if self.has_leases && asked.id.is_none() && matches!(purpose, Purpose::Charge | Purpose::Peek) {
            return Err(Error::policy(name, format_args!("needs an ID")));
        }
        if asked.more_keys > 0
            && asked.request.tenant().is_some()
            && self.fair.and_then(|fair| self.parts.get(fair)).is_some_and(|part| part.on.is_none())
        {
            return Err(Error::policy(
                name,
                format_args!("has a FAIR limit without ON, which takes one key"),
            ));
        }
        let forced = self.unforced.filter(|_| asked.request.manner() == Manner::Force);
        if let Some(limiter) = forced {
            return Err(Error::not_for_policy(name, limiter, FORCE.name));
        }
        let refunded = self.unrefunded.filter(|_| purpose == Purpose::Refund);
        if let Some(limiter) = refunded {
            return Err(Error::not_for_policy(name, limiter, "RL.ASKREFUND"));
        }
        Ok(())
    }

    /// The limits with the call's cost, and with its id of a lease.
    fn filled<'a>(&self, asked: &PolicyCall<'a>) -> Vec<Part<'a>> {
        let filled = |(index, (part, own_cost)): (usize, (&Part<'static>, &Option<u64>))| {
            let capabilities = with_limiter!(&part.limiter, limiter => limiter.capabilities());
            let cost = cost(*own_cost, capabilities, &asked.request);
            let tenant = asked.request.tenant().filter(|_| self.fair == Some(index));
            let limiter = part.limiter.for_caller(asked.id.unwrap_or(&[]), tenant);
            let part = Part { cost, limiter, tenant, ..*part };
            if asked.request.critical { part.made_critical() } else { part }
        };
        self.parts.iter().zip(&self.own_costs).enumerate().map(filled).collect()
    }
}

/// A limit of a policy that is read.
struct Limit {
    row: &'static Row,
    capabilities: Capabilities,
    part: Part<'static>,
    own_cost: Option<u64>,
    fair: bool,
}

/// Reads one limit, after the word `LIMIT`. If `shadow`, it is a shadow in any case.
fn limit(arguments: &mut Arguments<'_, '_>, shadow: bool) -> Result<Limit, Error> {
    let mut own = Request::default();
    let (row, limiter) = named(arguments, &mut own)?;
    let capabilities = with_limiter!(&limiter, limiter => limiter.capabilities());
    not_of_call(&own)?;
    own.check_for_one(capabilities)?;
    let own_cost = own.own_cost();
    let cost = cost(own_cost, capabilities, &Request::default());
    check_fits(&limiter, cost)?;
    let part = part_of(limiter.for_caller(&[], None), &own, shadow || own.shadow, cost);
    if own.fair && !capabilities.block {
        return Err(Error::NotForCommand(FAIR.name).of_command("", row.name()));
    }
    if own.fair && part.is_shadow() {
        return Err(Error::exclude(FAIR.name, SHADOW.name));
    }
    Ok(Limit { row, capabilities, part, own_cost, fair: own.fair })
}

/// Checks that the limit can admit its cost: a fresh one would, at once or in time.
fn check_fits(limiter: &AnyLimiter<'_>, cost: u64) -> Result<(), Error> {
    with_limiter!(limiter, limiter => {
        let now = Time::EARLIEST;
        let fresh = limiter.fresh(now);
        match limiter.judge(&fresh, now, cost) {
            Verdict::NEVER => {
                let limit = limiter.most(limiter.gauge(&fresh, now));
                Err(Error::invalid(format_args!("COST {cost} is above the limit {limit}")))
            }
            _ => Ok(()),
        }
    })
}

/// Checks that a policy has no option that belongs in its calls.
fn not_of_call(options: &Request<'_>) -> Result<(), Error> {
    let at = if options.at.is_some() { Err(Error::NotForCommand(AT.name)) } else { Ok(()) };
    at.and_then(|()| options.check(Capabilities::NONE)).map_err(|error| error.of_command("", "a policy"))
}

/// The words of a policy's limits, as they are stored: words of letters in upper case, the others as they are.
fn words(shadow: bool, limits: &[&[u8]]) -> Result<String, Error> {
    let mut words = String::from(if shadow { "SHADOW" } else { "" });
    for word in limits {
        // No argument has other bytes; they would not survive in a file.
        let Some(text) =
            str::from_utf8(word).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))
        else {
            return Err(Error::near(word));
        };
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(text);
        if text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            let start = words.len() - text.len();
            words.get_mut(start..).into_iter().for_each(str::make_ascii_uppercase);
        }
    }
    Ok(words)
}

/// Words with each duration in one form.
fn canonical(words: &str) -> String {
    let canonical = |word: &str| duration(word.as_bytes()).map(|millis| Duration(millis).to_string());
    let words = words.split(' ').map(|word| canonical(word).unwrap_or_else(|| word.into()));
    words.collect::<Vec<_>>().join(" ")
}

impl<'a> PolicyCall<'a> {
    /// Reads the arguments after the name of the policy. Those of a settlement begin with the id of the hold.
    #[inline(always)]
    pub fn parse(arguments: &mut Arguments<'_, 'a>, purpose: Purpose) -> Result<PolicyCall<'a>, Error> {
        let mut asked = PolicyCall::default();
        arguments.divide(Sections::KEYS);
        let PolicyCall { request, id, full, more_keys } = &mut asked;
        request.options(arguments, |word, arguments| {
            Ok(arguments.option_by(word, LEASE_ID, id, |arguments| caller_name(arguments, LEASE_ID))?
                || Arguments::flag(word, FULL, full)?)
        })?;
        if arguments.next_section() {
            *more_keys = arguments.rest().len();
            if *more_keys == 0 {
                return Err(Error::missing(KEYS.name));
            }
        }
        match purpose {
            Purpose::Settle => request.check_settlement(),
            _ => request.check_for_all(purpose),
        }?;
        if purpose == Purpose::Settle && request.own_cost().is_none() {
            return Err(Error::absent(COST.name));
        }
        Ok(asked)
    }

    /// Whether it is for one key, holds nothing, does not wait, and wants no more than the combined answer.
    pub fn is_plain(&self) -> bool {
        self.more_keys == 0 && !self.full && self.request.hold.is_none() && self.request.block.is_none()
    }

    pub fn at(&self) -> Option<Time> {
        self.request.at
    }

    /// The cost, if the caller gave one.
    pub fn own_cost(&self) -> Option<u64> {
        self.request.own_cost()
    }

    pub fn manner(&self) -> Manner {
        self.request.manner()
    }

    /// How long the caller waits at most until its request is admitted; `None` if it does not wait.
    pub fn block(&self) -> Option<Period> {
        self.request.block
    }

    /// The id of a hold, and how long it lasts.
    pub fn hold(&self) -> Option<(&'a [u8], Span)> {
        self.request.hold()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    const BOUNDS: Bounds = Bounds { leases: 100, log_entries: 100, ..Bounds::DEFAULT };

    fn policy(line: &str) -> Result<(Option<u64>, Policy), Error> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        Policy::parse(&mut Arguments::new(&words, BOUNDS))
    }

    fn asked(line: &str) -> PolicyCall<'_> {
        let words: Vec<&[u8]> = line.split_ascii_whitespace().map(str::as_bytes).collect();
        PolicyCall::parse(&mut Arguments::new(&words, BOUNDS), Purpose::Charge).expect("a good call")
    }

    #[test]
    fn a_policy_is_stored_in_words_that_make_it_again() {
        let (version, policy) =
            policy("shadow Version 7 limit gcra 9 10 1s cost 2 Limit Calendar 5 month tz Europe/Lisbon on 2")
                .expect("a good policy");
        assert_eq!(version, Some(7));
        let words = "SHADOW LIMIT GCRA 9 10 1s COST 2 LIMIT CALENDAR 5 MONTH TZ Europe/Lisbon ON 2";
        assert_eq!(policy.words(), words);
        assert_eq!(policy.within(BOUNDS).expect("the same policy").words(), words);
        assert!(policy.parts.iter().all(Part::is_shadow));
    }

    #[test]
    fn each_limit_has_its_words() {
        for line in ["", "SHADOW "] {
            let (_, policy) =
                policy(&format!("{line}LIMIT GCRA 9 10 1s COST 2 LIMIT CALENDAR 5 MONTH SHADOW"))
                    .expect("a good policy");
            let limits: Vec<&str> = policy.limits().collect();
            assert_eq!(limits, ["GCRA 9 10 1s COST 2", "CALENDAR 5 MONTH SHADOW"]);
        }
    }

    #[test]
    fn equal_durations_have_one_canonical_form() {
        let canonical = |line: &str| policy(line).expect("a good policy").1.canonical();
        let line = "LIMIT GCRA 0 60 1m LIMIT SLIDINGLOG 60 1h GAP 1s";
        assert_eq!(canonical(line), "LIMIT GCRA 0ms 60 1m LIMIT SLIDINGLOG 60 1h GAP 1s");
        assert_eq!(
            canonical("LIMIT GCRA 0 60 60s LIMIT SLIDINGLOG 60 3600000ms GAP 1000ms"),
            canonical(line)
        );
        assert_ne!(canonical("LIMIT GCRA 0 60 60ms LIMIT SLIDINGLOG 60 1h GAP 1s"), canonical(line));
    }

    #[test]
    fn the_cost_of_a_call_is_that_of_limits_without_their_own() {
        let line =
            "LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 9 1s COST 0 LIMIT PENALTY 3 1s 1s LIMIT CONCURRENT 9 1s";
        let (_, policy) = policy(line).expect("a good policy");
        let costs = |call: &str| {
            let asked = asked(call);
            let parts = policy.parts(b"name", &asked, Purpose::Charge).expect("limits");
            let leases = parts.last().map(|part| part.limiter);
            assert!(matches!(leases, Some(AnyLimiter::Concurrent(leases)) if leases.id == b"x"));
            parts.iter().map(|part| part.cost).collect::<Vec<_>>()
        };
        assert_eq!(costs("ID x"), [1, 0, 1, 1]);
        assert_eq!(costs("ID x COST 5"), [5, 0, 1, 1]);
        assert_eq!(costs("COST 0 ID x"), [0, 0, 0, 0]);
    }

    #[test]
    fn bounds_that_shrink_are_an_error_of_the_limit() {
        let (_, policy) = policy("LIMIT GCRA 9 10 1s LIMIT SLIDINGLOG 100 1s").expect("a good policy");
        let smaller = Bounds { log_entries: 99, ..BOUNDS };
        let error = policy.within(smaller).expect_err("too long a log").to_string();
        assert_eq!(
            error,
            "ERR limit must be an integer from 1 to 99 (ratelimit.max-log-entries); got '100' (LIMIT 2)"
        );
    }
}
