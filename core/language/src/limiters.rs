//! The parsers of each limiter's parameters and own options.

use core::num::NonZeroU64;

use ratelimit_core::limiter::{
    AlignedWindow, BatchBucket, Bursty, Calendar, Concurrent, FixedWindow, Gcra, LeakyBucket, Penalty,
    Refused, SlidingBuckets, SlidingLog, SlidingWindow, TokenBucket, Uniform, Unit as Window, Warming, Zone,
};
use ratelimit_core::state::MAX_BUCKETS;
use ratelimit_core::{AnyLimiter, Manner, Period, Span};

#[cfg(feature = "zones")]
use ratelimit_zones::{find, utc};

use crate::adaptive::Adaptive;
use crate::arguments::{Arguments, is, lease_id};
use crate::error::Error;
use crate::number::Duration;
use crate::request::{Request, option_of};
use crate::vocabulary::{
    ALIGNED, ANCHOR, BAN, BATCH, BURST, CAPACITY, COLDFACTOR, COUNTREFUSED, CRITICAL, FENCE, FORGIVE, GAP,
    GROW, HOLD, INTERVAL, LEAK, LEASES, LOG_LIMIT, MAX, MAX_BURST, MAXWAIT, PERIOD, PERMITS, PRECISION, RATE,
    REFILL, RESERVED, STRIKE_WINDOW, STRIKES, TTL, TZ, UNIT, UNITS, WARMUP, WINDOW, WINDOW_LIMIT,
};

#[cfg(not(feature = "zones"))]
use no_zones::{find, utc};

type Parsed<'a> = Result<AnyLimiter<'a>, Error>;

/// `capacity refill period [BATCH]`
#[inline(always)]
pub(crate) fn token_bucket<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let capacity = arguments.read(CAPACITY)?;
    let refill = arguments.read(REFILL)?;
    let period = arguments.read(PERIOD)?;
    Ok(if request.options_and_flag(arguments, BATCH)? {
        AnyLimiter::BatchBucket(BatchBucket::new(capacity, refill, period)?)
    } else {
        AnyLimiter::TokenBucket(TokenBucket::new(capacity, refill, period)?)
    })
}

/// `capacity leak period`
#[inline(always)]
pub(crate) fn leaky_bucket<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let capacity = arguments.read(CAPACITY)?;
    let leak = arguments.read(LEAK)?;
    let period = arguments.read(PERIOD)?;
    request.options(arguments, |_, _| Ok(false))?;
    Ok(AnyLimiter::LeakyBucket(LeakyBucket::new(capacity, leak, period)?))
}

/// `max_burst count period`
#[inline(always)]
pub(crate) fn gcra<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = max_burst(arguments)?;
    let count = arguments.read(RATE)?;
    let period = arguments.read(PERIOD)?;
    request.options(arguments, |_, _| Ok(false))?;
    Ok(AnyLimiter::Gcra(Gcra::new(limit, count, period)?))
}

/// Reads `max_burst`, and returns the limit, `max_burst` + 1.
#[inline(always)]
pub(crate) fn max_burst(arguments: &mut Arguments<'_, '_>) -> Result<NonZeroU64, Error> {
    let max_burst = arguments.read(MAX_BURST)?;
    Ok(NonZeroU64::MIN.saturating_add(max_burst))
}

/// `limit window [ALIGNED]`
#[inline(always)]
pub(crate) fn fixed_window<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = arguments.read(WINDOW_LIMIT)?;
    let window = arguments.read(WINDOW)?;
    Ok(if request.options_and_flag(arguments, ALIGNED)? {
        AnyLimiter::AlignedWindow(AlignedWindow { limit, window })
    } else {
        AnyLimiter::FixedWindow(FixedWindow { limit, window })
    })
}

/// `limit window [PRECISION precision]`
#[inline(always)]
pub(crate) fn sliding_window<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = arguments.read(WINDOW_LIMIT)?;
    let window = arguments.read(WINDOW)?;
    let mut precision = None;
    request.options(arguments, |word, arguments| arguments.option(word, PRECISION, &mut precision))?;
    let Some(precision) = precision else {
        return Ok(AnyLimiter::SlidingWindow(SlidingWindow { limit, window }));
    };
    match SlidingBuckets::new(limit, window, precision) {
        Some(buckets) => Ok(AnyLimiter::SlidingBuckets(buckets)),
        None => Err(not_precise(window, precision)),
    }
}

/// The error for sub-buckets of this length that do not divide the window.
#[cold]
fn not_precise(window: Period, precision: Period) -> Error {
    let [window, precision] = [window, precision].map(|period| period.span().as_millis_up());
    let parts = window / precision.max(1);
    let [whole, part] = [window, precision].map(Duration);
    if parts == 0 {
        Error::invalid(format_args!("PRECISION {part} is longer than the window {whole}"))
    } else if !window.is_multiple_of(precision) {
        Error::invalid(format_args!("PRECISION {part} does not divide the window {whole} into equal parts"))
    } else {
        let parts = format_args!("{parts} parts; at most {MAX_BUCKETS}");
        Error::invalid(format_args!("PRECISION {part} divides the window {whole} into {parts}"))
    }
}

/// `limit window [GAP gap] [COUNTREFUSED]`
#[inline(always)]
pub(crate) fn sliding_log<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    // Each entry weighs at least 1. So with this limit, admitted requests never exceed the bound on entries.
    let most = arguments.bounds().log_entries;
    let limit = arguments.read_bounded(LOG_LIMIT, most)?;
    let window = arguments.read(WINDOW)?;
    let (mut gap, mut recorded) = (None, false);
    request.options(arguments, |word, arguments| {
        Ok(arguments.option(word, GAP, &mut gap)? || Arguments::flag(word, COUNTREFUSED, &mut recorded)?)
    })?;
    let refused = if recorded { Refused::Recorded } else { Refused::Forgotten };
    let manner = request.manner();
    if recorded && matches!(manner, Manner::Partial | Manner::Force) {
        return Err(Error::exclude(COUNTREFUSED.name, option_of(manner)));
    }
    if recorded && request.hold.is_some() {
        return Err(Error::exclude(COUNTREFUSED.name, HOLD.name));
    }
    let (gap, most) = (GAP.or(gap)?, NonZeroU64::new(most).unwrap_or(limit));
    Ok(AnyLimiter::SlidingLog(SlidingLog { limit, window, gap, refused, most }))
}

/// `limit unit [TZ zone] [ANCHOR anchor]`
#[inline(always)]
pub(crate) fn calendar<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let limit = arguments.read(WINDOW_LIMIT)?;
    let word = arguments.word(UNIT.name)?;
    let Some((_, unit)) = UNITS.iter().find(|(name, _)| is(word, name)) else {
        return Err(arguments.missing_or(word, UNIT.name, no_unit(word)));
    };
    let (mut zone, mut anchor) = (None, None);
    request.options(arguments, |word, arguments| {
        Ok(arguments.option_by(word, TZ, &mut zone, time_zone)?
            || arguments.option_by(word, ANCHOR, &mut anchor, |arguments| {
                let range = match unit {
                    Window::Day(_) => (0, 23),
                    Window::Week(_) => (1, 7),
                    Window::Month(_) => (1, 31),
                    _ => return Err(Error::needs(ANCHOR.name, "DAY, WEEK or MONTH")),
                };
                arguments.read_in(ANCHOR, range)
            })?)
    })?;
    let unit = match (unit, anchor) {
        (Window::Day(_), Some(anchor)) => Window::Day(anchor),
        (Window::Week(_), Some(anchor)) => Window::Week(anchor),
        (Window::Month(_), Some(anchor)) => Window::Month(anchor),
        (unit, _) => *unit,
    };
    let zone = match zone {
        Some(zone) => zone,
        None => utc().ok_or_else(|| no_zone(b"UTC"))?,
    };
    Ok(AnyLimiter::Calendar(Calendar::new(limit, unit, zone)))
}

#[cold]
fn no_unit(word: &[u8]) -> Error {
    Error::must_be(UNIT.name, format_args!("HOUR, DAY, WEEK, MONTH, QUARTER or YEAR"), word)
}

/// The value of `TZ`.
fn time_zone(arguments: &mut Arguments<'_, '_>) -> Result<&'static dyn Zone, Error> {
    let word = arguments.word(TZ.name)?;
    find(word).ok_or_else(|| arguments.missing_or(word, TZ.name, no_zone(word)))
}

#[cold]
fn no_zone(word: &[u8]) -> Error {
    Error::must_be(TZ.name, format_args!("UTC, an offset such as +02:00 or an IANA time zone"), word)
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
    let strikes = arguments.read(STRIKES)?;
    let window = arguments.read(STRIKE_WINDOW)?;
    let ban: Period = arguments.read(BAN)?;
    let (mut grow, mut longest, mut forgive) = (None, None, None);
    request.options(arguments, |word, arguments| {
        let from_ban =
            |arguments: &mut Arguments<'_, 'a>| arguments.read_bounded(MAX, ban.span().as_millis_up());
        Ok(arguments.option(word, GROW, &mut grow)?
            || arguments.option_by(word, MAX, &mut longest, from_ban)?
            || arguments.option(word, FORGIVE, &mut forgive)?)
    })?;
    Ok(AnyLimiter::Penalty(Penalty {
        strikes,
        window,
        ban,
        grow: GROW.or(grow)?,
        longest: longest.unwrap_or(Span::CENTURY),
        forgive: FORGIVE.or(forgive)?,
    }))
}

/// `interval`
#[inline(always)]
pub(crate) fn uniform<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let interval = arguments.read(INTERVAL)?;
    request.options(arguments, |_, _| Ok(false))?;
    Ok(AnyLimiter::Uniform(Uniform { interval }))
}

/// `permits period [BURST burst | WARMUP warmup [COLDFACTOR factor]] [MAXWAIT maxwait]`
#[inline(always)]
pub(crate) fn smooth<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    let permits = arguments.read(PERMITS)?;
    let period = arguments.read(PERIOD)?;
    let (mut burst, mut warmup, mut factor, mut longest) = (None, None, None, None);
    request.options(arguments, |word, arguments| {
        Ok(arguments.option(word, BURST, &mut burst)?
            || arguments.option(word, WARMUP, &mut warmup)?
            || arguments.option(word, COLDFACTOR, &mut factor)?
            || arguments.option(word, MAXWAIT, &mut longest)?)
    })?;
    let longest = longest.unwrap_or(Span::FOREVER);
    match (burst, warmup, factor) {
        (burst, None, None) => {
            Ok(AnyLimiter::Bursty(Bursty::new(permits, period, BURST.or(burst)?, longest)))
        }
        (None, Some(warmup), factor) => {
            let warming = Warming::new(permits, period, warmup, COLDFACTOR.or(factor)?, longest);
            warming.map(AnyLimiter::Warming).ok_or(Error::Internal)
        }
        (Some(_), Some(_), _) => Err(Error::exclude(BURST.name, WARMUP.name)),
        (_, None, Some(_)) => Err(Error::needs(COLDFACTOR.name, WARMUP.name)),
    }
}

/// `capacity ttl id [RESERVED n] [CRITICAL] [FENCE] [ADAPT [GRADIENT] [FLOOR n] [START n] [BACKOFF percent] [SLOW d]]`
#[inline(always)]
pub(crate) fn concurrent<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request<'a>) -> Parsed<'a> {
    // Each lease costs at least 1. So with this capacity, admitted requests never exceed the bound on leases.
    let capacity: u64 = arguments.read_bounded(LEASES, arguments.bounds().leases)?;
    let ttl = arguments.read(TTL)?;
    let id = if arguments.has_ids() { lease_id(arguments)? } else { &[] };
    let plain = Concurrent::plain(capacity, ttl, id);
    // Most calls have no options.
    let limiter = if arguments.is_empty() { plain } else { with_options(plain, arguments, request)? };
    Ok(AnyLimiter::Concurrent(limiter))
}

#[inline(never)]
fn with_options<'a>(
    plain: Concurrent<'a>,
    arguments: &mut Arguments<'_, 'a>,
    request: &mut Request<'a>,
) -> Result<Concurrent<'a>, Error> {
    let capacity = plain.limit;
    let (mut reserved, mut critical, mut fenced, mut adaptive) = (None, false, false, Adaptive::default());
    let can_be_fenced = arguments.is_undivided();
    request.options(arguments, |word, arguments| {
        let up_to_capacity = |arguments: &mut Arguments<'_, 'a>| arguments.read_bounded(RESERVED, capacity);
        Ok(arguments.option_by(word, RESERVED, &mut reserved, up_to_capacity)?
            || Arguments::flag(word, CRITICAL, &mut critical)?
            || can_be_fenced && Arguments::flag(word, FENCE, &mut fenced)?
            || adaptive.option(word, arguments, capacity)?)
    })?;
    if fenced {
        request.fence();
    }
    let reserved = RESERVED.or(reserved)?;
    let kept = if critical { 0 } else { reserved };
    Ok(Concurrent {
        limit: capacity - kept,
        reserved: kept,
        critical,
        tenant: request.tenant(),
        adapt: if adaptive.is_given { Some(adaptive.adapt(capacity, reserved)?) } else { None },
        ..plain
    })
}
