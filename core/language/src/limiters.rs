//! The parsers of each limiter's parameters and own options.

use core::num::NonZeroU64;

use ratelimit_core::limiter::{
    AlignedWindow, BatchBucket, Bursty, Calendar, Concurrent, FixedWindow, Gcra, LeakyBucket, Penalty,
    Refused, SlidingBuckets, SlidingLog, SlidingWindow, TokenBucket, Uniform, Unit as Window, Warming, Zone,
};
use ratelimit_core::{AnyLimiter, MAX_COUNT, Manner, Period, Span};

#[cfg(feature = "zones")]
use ratelimit_zones::{find, utc};

use crate::arguments::{Arguments, is, lease_id};
use crate::error::Error;
use crate::request::{Request, option_of};
use crate::vocabulary::UNITS;

#[cfg(not(feature = "zones"))]
use no_zones::{find, utc};

type Parsed<'a> = Result<AnyLimiter<'a>, Error>;

/// `capacity refill period [BATCH]`
#[inline(always)]
pub(crate) fn token_bucket<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let capacity = arguments.count("capacity")?;
    let refill = arguments.count("refill")?;
    let period = arguments.duration("period")?;
    Ok(if request.options_and_flag(arguments, "BATCH")? {
        AnyLimiter::BatchBucket(BatchBucket::new(capacity, refill, period)?)
    } else {
        AnyLimiter::TokenBucket(TokenBucket::new(capacity, refill, period)?)
    })
}

/// `capacity leak period`
#[inline(always)]
pub(crate) fn leaky_bucket<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let capacity = arguments.count("capacity")?;
    let leak = arguments.count("leak")?;
    let period = arguments.duration("period")?;
    request.options(arguments, |_, _| Ok(false))?;
    Ok(AnyLimiter::LeakyBucket(LeakyBucket::new(capacity, leak, period)?))
}

/// `max_burst count period`
#[inline(always)]
pub(crate) fn gcra<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = max_burst(arguments)?;
    let count = arguments.count("count")?;
    let period = arguments.duration("period")?;
    request.options(arguments, |_, _| Ok(false))?;
    Ok(AnyLimiter::Gcra(Gcra::new(limit, count, period)?))
}

/// Reads `max_burst`, and returns the limit, `max_burst` + 1.
#[inline(always)]
pub(crate) fn max_burst(arguments: &mut Arguments<'_, '_>) -> Result<NonZeroU64, Error> {
    let max_burst = arguments.number("max_burst", 0, MAX_COUNT)?;
    Ok(NonZeroU64::MIN.saturating_add(max_burst))
}

/// `limit window [ALIGNED]`
#[inline(always)]
pub(crate) fn fixed_window<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = arguments.count("limit")?;
    let window = arguments.duration("window")?;
    Ok(if request.options_and_flag(arguments, "ALIGNED")? {
        AnyLimiter::AlignedWindow(AlignedWindow { limit, window })
    } else {
        AnyLimiter::FixedWindow(FixedWindow { limit, window })
    })
}

/// `limit window [PRECISION precision]`
#[inline(always)]
pub(crate) fn sliding_window<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = arguments.count("limit")?;
    let window = arguments.duration("window")?;
    let mut precision = None;
    request.options(arguments, |word, arguments| {
        arguments.option(word, "PRECISION", &mut precision, Arguments::duration)
    })?;
    let Some(precision) = precision else {
        return Ok(AnyLimiter::SlidingWindow(SlidingWindow { limit, window }));
    };
    let buckets = SlidingBuckets::new(limit, window, precision).ok_or(Error::Precision)?;
    Ok(AnyLimiter::SlidingBuckets(buckets))
}

/// `limit window [GAP gap] [COUNTREFUSED]`
#[inline(always)]
pub(crate) fn sliding_log<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    // Each entry weighs at least 1. So with this limit, admitted requests never exceed the bound on entries.
    let most = arguments.bounds().log_entries;
    let limit = arguments.positive("limit", most)?;
    let window = arguments.duration("window")?;
    let (mut gap, mut recorded) = (None, false);
    request.options(arguments, |word, arguments| {
        Ok(arguments.option(word, "GAP", &mut gap, Arguments::duration_or_zero)?
            || Arguments::flag(word, "COUNTREFUSED", &mut recorded)?)
    })?;
    let refused = if recorded { Refused::Recorded } else { Refused::Forgotten };
    let manner = request.manner();
    if recorded && matches!(manner, Manner::Partial | Manner::Force) {
        return Err(Error::exclude("COUNTREFUSED", option_of(manner)));
    }
    if recorded && request.hold.is_some() {
        return Err(Error::exclude("COUNTREFUSED", "HOLD"));
    }
    let most = NonZeroU64::new(most).unwrap_or(limit);
    Ok(AnyLimiter::SlidingLog(SlidingLog { limit, window, gap: gap.unwrap_or_default(), refused, most }))
}

/// `limit unit [TZ zone] [ANCHOR anchor]`
#[inline(always)]
pub(crate) fn calendar<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = arguments.count("limit")?;
    let word = arguments.word("unit")?;
    let unit = UNITS.iter().find(|(name, _)| is(word, name));
    let Some((name, unit)) = unit else {
        return Err(if arguments.begins_section(word) {
            Error::missing("unit")
        } else {
            Error::CalendarUnit
        });
    };
    let (mut zone, mut anchor) = (None, None);
    request.options(arguments, |word, arguments| {
        Ok(arguments.option(word, "TZ", &mut zone, time_zone)?
            || arguments.option(word, "ANCHOR", &mut anchor, |arguments, option| {
                let most = if *name == "WEEK" { 7 } else { 31 };
                arguments.number(option, 1, most)
            })?)
    })?;
    let anchor = anchor.and_then(|anchor| u8::try_from(anchor).ok());
    let unit = match (unit, anchor) {
        (unit, None) => *unit,
        (Window::Week(_), Some(anchor)) => Window::Week(anchor),
        (Window::Month(_), Some(anchor)) => Window::Month(anchor),
        _ => return Err(Error::needs("ANCHOR", "WEEK or MONTH")),
    };
    let zone = match zone {
        Some(zone) => zone,
        None => known(utc())?,
    };
    Ok(AnyLimiter::Calendar(Calendar::new(limit, unit, zone)))
}

/// The value of `TZ`.
fn time_zone(arguments: &mut Arguments<'_, '_>, name: &'static str) -> Result<&'static dyn Zone, Error> {
    let word = arguments.word(name)?;
    if arguments.begins_section(word) { Err(Error::missing(name)) } else { known(find(word)) }
}

fn known(zone: Option<&'static dyn Zone>) -> Result<&'static dyn Zone, Error> {
    match zone {
        Some(zone) => Ok(zone),
        None => Err(Error::TimeZone),
    }
}

/// Without the feature, no zone is known.
#[cfg(not(feature = "zones"))]
mod no_zones {
    use super::Zone;

    pub(super) fn find(_name: &[u8]) -> Option<&'static dyn Zone> {
        None
    }

    pub(super) fn utc() -> Option<&'static dyn Zone> {
        None
    }
}

/// `strikes window ban [GROW grow] [MAX max] [FORGIVE forgive]`
#[inline(always)]
pub(crate) fn penalty<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let strikes = arguments.count("strikes")?;
    let window = arguments.duration("window")?;
    let ban = arguments.duration("ban")?;
    let (mut grow, mut longest, mut forgive) = (None, None, None);
    request.options(arguments, |word, arguments| {
        Ok(arguments
            .option(word, "GROW", &mut grow, |arguments, name| arguments.positive(name, MAX_GROWTH))?
            || arguments
                .option(word, "MAX", &mut longest, |arguments, name| arguments.duration_from(name, ban))?
            || arguments.option(word, "FORGIVE", &mut forgive, Arguments::duration)?)
    })?;
    Ok(AnyLimiter::Penalty(Penalty {
        strikes,
        window,
        ban,
        grow: grow.unwrap_or(NonZeroU64::MIN),
        longest: longest.unwrap_or(Span::CENTURY),
        forgive: forgive.unwrap_or(DAY),
    }))
}

/// The largest `GROW`.
const MAX_GROWTH: u64 = 1000;
const DAY: Period = Period::of(Span::from_millis(86_400_000)).unwrap();

/// `interval`
#[inline(always)]
pub(crate) fn uniform<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let interval = arguments.duration("interval")?;
    request.options(arguments, |_, _| Ok(false))?;
    Ok(AnyLimiter::Uniform(Uniform { interval }))
}

/// `permits period [BURST burst | WARMUP warmup [COLDFACTOR factor]] [MAXWAIT maxwait]`
#[inline(always)]
pub(crate) fn smooth<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let permits = arguments.count("permits")?;
    let period = arguments.duration("period")?;
    let (mut burst, mut warmup, mut factor, mut longest) = (None, None, None, None);
    request.options(arguments, |word, arguments| {
        Ok(arguments.option(word, "BURST", &mut burst, Arguments::duration_or_zero)?
            || arguments.option(word, "WARMUP", &mut warmup, Arguments::duration)?
            || arguments
                .option(word, "COLDFACTOR", &mut factor, |arguments, name| arguments.real(name, 1, 1000))?
            || arguments.option(word, "MAXWAIT", &mut longest, Arguments::duration_or_zero)?)
    })?;
    let longest = longest.unwrap_or(Span::FOREVER);
    match (burst, warmup, factor) {
        (burst, None, None) => {
            let burst = burst.unwrap_or(Span::from_millis(1000));
            Ok(AnyLimiter::Bursty(Bursty::new(permits, period, burst, longest)))
        }
        (None, Some(warmup), factor) => {
            let warming = Warming::new(permits, period, warmup, factor.unwrap_or(3.0), longest);
            warming.map(AnyLimiter::Warming).ok_or(Error::Internal)
        }
        (Some(_), Some(_), _) => Err(Error::exclude("BURST", "WARMUP")),
        (_, None, Some(_)) => Err(Error::needs("COLDFACTOR", "WARMUP")),
    }
}

/// `capacity ttl id [RESERVED n] [CRITICAL]`
#[inline(always)]
pub(crate) fn concurrent<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    // Each lease costs at least 1. So with this capacity, admitted requests never exceed the bound on leases.
    let capacity = arguments.number("capacity", 1, arguments.bounds().leases)?;
    let ttl = arguments.duration("ttl")?;
    let id = if arguments.has_ids() { lease_id(arguments)? } else { &[] };
    let (mut reserved, mut critical) = (None, false);
    request.options(arguments, |word, arguments| {
        let up_to_capacity = |arguments: &mut Arguments<'_, 'a>, name| arguments.number(name, 0, capacity);
        Ok(arguments.option(word, "RESERVED", &mut reserved, up_to_capacity)?
            || Arguments::flag(word, "CRITICAL", &mut critical)?)
    })?;
    let reserved_for_others = if critical { 0 } else { reserved.unwrap_or(0) };
    Ok(AnyLimiter::Concurrent(Concurrent { limit: capacity - reserved_for_others, ttl, id, critical }))
}
