//! The parsers of each limiter's parameters and own options.

use core::num::NonZeroU64;

use ratelimit_core::limiter::{
    AlignedWindow, BatchBucket, Bursty, Concurrent, FixedWindow, Gcra, LeakyBucket, Refused, Shed,
    SlidingBuckets, SlidingLog, SlidingWindow, Tier, TokenBucket, Uniform, Warming,
};
use ratelimit_core::state::MAX_ID;
use ratelimit_core::{AnyLimiter, MAX_COUNT, Manner, Period, Span, Time};

use crate::arguments::{Arguments, is, once};
use crate::error::Error;
use crate::request::Request;

type Parsed<'a> = Result<AnyLimiter<'a>, Error>;

/// `capacity refill period [BATCH]`
#[inline(always)]
pub(crate) fn token_bucket<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let capacity = arguments.count("capacity")?;
    let refill = arguments.count("refill")?;
    let period = arguments.duration("period")?;
    Ok(if arguments.options_and_flag(request, "BATCH")? {
        AnyLimiter::BatchBucket(BatchBucket::new(capacity, refill, period)?)
    } else {
        AnyLimiter::TokenBucket(TokenBucket::new(capacity, refill, period)?)
    })
}

/// `capacity leak period`
#[inline(always)]
pub(crate) fn leaky_bucket<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let capacity = arguments.count("capacity")?;
    let leak = arguments.count("leak")?;
    let period = arguments.duration("period")?;
    arguments.options(request, |_, _| Ok(false))?;
    Ok(AnyLimiter::LeakyBucket(LeakyBucket::new(capacity, leak, period)?))
}

/// `max_burst count period`
#[inline(always)]
pub(crate) fn gcra<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let limit = max_burst(arguments)?;
    let count = arguments.count("count")?;
    let period = arguments.duration("period")?;
    arguments.options(request, |_, _| Ok(false))?;
    Ok(AnyLimiter::Gcra(Gcra::new(limit, count, period)?))
}

/// Reads `max_burst`, and returns the limit, `max_burst` + 1.
fn max_burst(arguments: &mut Arguments<'_, '_>) -> Result<NonZeroU64, Error> {
    let max_burst = arguments.number("max_burst", 0, MAX_COUNT)?;
    Ok(NonZeroU64::MIN.saturating_add(max_burst))
}

/// The arguments of redis-cell's `CL.THROTTLE`.
pub struct Cell {
    pub gcra: Gcra,
    /// The cost.
    pub quantity: u64,
    pub at: Option<Time>,
}

/// redis-cell's `max_burst count period [quantity [AT at]]`, with the period in seconds.
pub fn cell(arguments: &mut Arguments<'_, '_>) -> Result<Cell, Error> {
    let limit = max_burst(arguments)?;
    let count = arguments.count("count")?;
    let seconds = arguments.positive("period", Span::CENTURY.as_micros() / 1_000_000)?;
    let period = Period::from_millis(seconds.saturating_mul(THOUSAND));
    let quantity = if arguments.is_empty() { 1 } else { arguments.number("quantity", 0, MAX_COUNT)? };
    let at = arguments.at()?;
    Ok(Cell { gcra: Gcra::new(limit, count, period)?, quantity, at })
}

const THOUSAND: NonZeroU64 = NonZeroU64::new(1000).unwrap();

/// `limit window [ALIGNED]`
#[inline(always)]
pub(crate) fn fixed_window<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let limit = arguments.count("limit")?;
    let window = arguments.duration("window")?;
    Ok(if arguments.options_and_flag(request, "ALIGNED")? {
        AnyLimiter::AlignedWindow(AlignedWindow { limit, window })
    } else {
        AnyLimiter::FixedWindow(FixedWindow { limit, window })
    })
}

/// `limit window [PRECISION precision]`
#[inline(always)]
pub(crate) fn sliding_window<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let limit = arguments.count("limit")?;
    let window = arguments.duration("window")?;
    let mut precision = None;
    arguments.options(request, |word, arguments| {
        let own = is(word, "PRECISION");
        if own {
            once(&mut precision, arguments.duration("PRECISION"))?;
        }
        Ok(own)
    })?;
    let Some(precision) = precision else {
        return Ok(AnyLimiter::SlidingWindow(SlidingWindow { limit, window }));
    };
    let buckets = SlidingBuckets::new(limit, window, precision).ok_or(Error::Precision)?;
    Ok(AnyLimiter::SlidingBuckets(buckets))
}

/// `limit window [GAP gap] [COUNTREFUSED]`
#[inline(always)]
pub(crate) fn sliding_log<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    // Each entry weighs at least 1. So with this limit, admitted requests never exceed the bound on entries.
    let most = arguments.bounds().log_entries;
    let limit = arguments.positive("limit", most)?;
    let window = arguments.duration("window")?;
    let (mut gap, mut recorded) = (None, None);
    arguments.options(request, |word, arguments| {
        if is(word, "GAP") {
            once(&mut gap, arguments.duration_or_zero("GAP"))?;
        } else if is(word, "COUNTREFUSED") {
            once(&mut recorded, Ok(Refused::Recorded))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    let refused = recorded.unwrap_or(Refused::Forgotten);
    if refused == Refused::Recorded && request.manner() != Manner::Strict {
        return Err(Error::Syntax);
    }
    let most = NonZeroU64::new(most).unwrap_or(limit);
    Ok(AnyLimiter::SlidingLog(SlidingLog { limit, window, gap: gap.unwrap_or_default(), refused, most }))
}

/// `interval`
#[inline(always)]
pub(crate) fn uniform<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let interval = arguments.duration("interval")?;
    arguments.options(request, |_, _| Ok(false))?;
    Ok(AnyLimiter::Uniform(Uniform { interval }))
}

/// `permits period [BURST burst | WARMUP warmup [COLDFACTOR factor]] [MAXWAIT maxwait]`
#[inline(always)]
pub(crate) fn smooth<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    let permits = arguments.count("permits")?;
    let period = arguments.duration("period")?;
    let (mut burst, mut warmup, mut factor, mut longest) = (None, None, None, None);
    arguments.options(request, |word, arguments| {
        if is(word, "BURST") {
            once(&mut burst, arguments.duration_or_zero("BURST"))?;
        } else if is(word, "WARMUP") {
            once(&mut warmup, arguments.duration("WARMUP"))?;
        } else if is(word, "COLDFACTOR") {
            once(&mut factor, arguments.real())?;
        } else if is(word, "MAXWAIT") {
            once(&mut longest, arguments.duration_or_zero("MAXWAIT"))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    let longest = longest.unwrap_or(Span::FOREVER);
    match (burst, warmup, factor) {
        (burst, None, None) => {
            let burst = burst.unwrap_or(Span::from_millis(1000));
            Ok(AnyLimiter::Bursty(Bursty::new(permits, period, burst, longest)))
        }
        (None, Some(warmup), factor) => {
            let warming = Warming::new(permits, period, warmup, factor.unwrap_or(3.0), longest);
            let range = Error::OutOfRange { name: "COLDFACTOR", min: 1, max: 1000 };
            warming.map(AnyLimiter::Warming).ok_or(range)
        }
        _ => Err(Error::Syntax),
    }
}

/// `capacity ttl id [RESERVED n] [CRITICAL]`
#[inline(always)]
pub(crate) fn concurrent<'a>(arguments: &mut Arguments<'_, 'a>, request: &mut Request) -> Parsed<'a> {
    // Each lease costs at least 1. So with this capacity, admitted requests never exceed the bound on leases.
    let capacity = arguments.number("capacity", 1, arguments.bounds().leases)?;
    let ttl = arguments.duration("ttl")?;
    let id = lease_id(arguments)?;
    let (mut reserved, mut critical) = (None, None);
    arguments.options(request, |word, arguments| {
        if is(word, "RESERVED") {
            once(&mut reserved, arguments.number("RESERVED", 0, capacity))?;
        } else if is(word, "CRITICAL") {
            once(&mut critical, Ok(()))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    let reserved_for_others = if critical.is_some() { 0 } else { reserved.unwrap_or(0) };
    Ok(AnyLimiter::Concurrent(Concurrent { limit: capacity - reserved_for_others, ttl, id }))
}

/// The id of a lease.
pub fn lease_id<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<&'a [u8], Error> {
    let id = arguments.word()?;
    if (1..=MAX_ID).contains(&id.len()) { Ok(id) } else { Err(Error::IdLength) }
}

/// The arguments of `RL.SHED`, a report of the workers' utilization.
pub struct Report {
    pub shed: Shed,
    /// From 0 to 1.
    pub utilization: f64,
    pub at: Option<Time>,
}

/// `utilization [GOOD good] [BAD bad] [DELAY delay] [RAMP ramp] [TIER tier OF of] [AT at]`
pub fn shed(arguments: &mut Arguments<'_, '_>) -> Result<Report, Error> {
    let utilization = arguments.real()?.clamp(0.0, 1.0);
    let (mut good, mut bad, mut delay, mut ramp, mut own_tier) = (None, None, None, None, None);
    let at = arguments.options_and_at(|word, arguments| {
        if is(word, "GOOD") {
            once(&mut good, arguments.real())?;
        } else if is(word, "BAD") {
            once(&mut bad, arguments.real())?;
        } else if is(word, "DELAY") {
            once(&mut delay, arguments.duration("DELAY"))?;
        } else if is(word, "RAMP") {
            once(&mut ramp, arguments.duration("RAMP"))?;
        } else if is(word, "TIER") {
            once(&mut own_tier, tier(arguments))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    let shed = Shed::new(
        good.unwrap_or(0.7),
        bad.unwrap_or(0.8),
        delay.unwrap_or(DELAY),
        ramp.unwrap_or(RAMP),
        own_tier.unwrap_or(Tier::ONLY),
    );
    Ok(Report { shed: shed.ok_or(Error::Utilization)?, utilization, at })
}

const DELAY: Period = Period::of(Span::from_millis(28_000)).unwrap();
const RAMP: Period = Period::of(Span::from_millis(120_000)).unwrap();

/// `tier OF of`
fn tier(arguments: &mut Arguments<'_, '_>) -> Result<Tier, Error> {
    let tier = arguments.count("TIER")?;
    if !is(arguments.word()?, "OF") {
        return Err(Error::Syntax);
    }
    let of = arguments.count("OF")?;
    Tier::new(tier, of).ok_or(Error::OutOfRange { name: "TIER", min: 1, max: of.get() })
}
