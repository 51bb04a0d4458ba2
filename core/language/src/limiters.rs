//! The parsers of each limiter's parameters and own options.

use core::num::NonZeroU64;

use ratelimit_core::limiter::{
    AlignedWindow, BatchBucket, Bursty, Calendar, Concurrent, FixedWindow, Gcra, LeakyBucket, Penalty,
    Refused, Shed, Sketch, SlidingBuckets, SlidingLog, SlidingWindow, Tier, TokenBucket, Uniform,
    Unit as Window, Warming, Zone,
};
use ratelimit_core::state::{MAX_DEPTH, Shape};
use ratelimit_core::{AnyLimiter, MAX_COUNT, Manner, Period, Span, Time};

#[cfg(feature = "zones")]
use ratelimit_zones::{find, utc};

use crate::arguments::{Arguments, is, lease_id};
use crate::error::{Error, Unit};
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
    let seconds = arguments.seconds("period")?;
    let period = Period::from_millis(seconds.saturating_mul(THOUSAND));
    let quantity = match arguments.peek() {
        None => 1,
        Some(word) if is(word, "AT") => return Err(Error::needs("AT", "quantity")),
        Some(_) => arguments.number("quantity", 0, MAX_COUNT)?,
    };
    let at = arguments.at()?;
    Ok(Cell { gcra: Gcra::new(limit, count, period)?, quantity, at })
}

const THOUSAND: NonZeroU64 = NonZeroU64::new(1000).unwrap();

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

/// The arguments of `RL.SKETCH`.
pub struct Sketching<'a> {
    pub item: &'a [u8],
    pub sketch: Sketch,
    pub cost: u64,
    pub at: Option<Time>,
    /// The shape of a sketch that the call makes.
    pub shape: Shape,
    width: Option<u32>,
    depth: Option<u32>,
}

/// `item max_burst count period [COST cost] [WIDTH width] [DEPTH depth] [AT at]`
pub fn sketch<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<Sketching<'a>, Error> {
    let item = arguments.word("item")?;
    let limit = max_burst(arguments)?;
    let count = arguments.count("count")?;
    let period = arguments.duration("period")?;
    let (mut cost, mut width, mut depth) = (None, None, None);
    let at = arguments.options_and_at(|word, arguments| {
        Ok(arguments
            .option(word, "COST", &mut cost, |arguments, name| arguments.number(name, 0, MAX_COUNT))?
            || arguments.option(word, "WIDTH", &mut width, |arguments, name| {
                arguments.small_number(name, Shape::MAX_WIDTH)
            })?
            || arguments.option(word, "DEPTH", &mut depth, |arguments, name| {
                arguments.small_number(name, MAX_DEPTH)
            })?)
    })?;
    let (sketch, cost) = (Sketch::new(limit, count, period)?, cost.unwrap_or(1));
    let shape = shape(width, depth, arguments.bounds().sketch_bytes)?;
    Ok(Sketching { item, sketch, cost, at, shape, width, depth })
}

/// The shape of a new sketch of at most `most` bytes. The default shape is always allowed.
fn shape(width: Option<u32>, depth: Option<u32>, most: u64) -> Result<Shape, Error> {
    if (width, depth) == (None, None) {
        return Ok(Shape::DEFAULT);
    }
    let width = width.unwrap_or(Shape::DEFAULT.width());
    if !width.is_power_of_two() {
        return Err(Error::Width);
    }
    let shape = Shape::new(width, depth.unwrap_or(Shape::DEFAULT.depth()));
    shape.filter(|shape| shape.bytes() <= most).ok_or(Error::SketchBytes { most })
}

impl Sketching<'_> {
    /// Whether the call's options agree with a sketch of this shape.
    pub fn is_for(&self, shape: Shape) -> bool {
        self.width.is_none_or(|width| width == shape.width())
            && self.depth.is_none_or(|depth| depth == shape.depth())
    }
}

/// What `RL.TOP` asks for.
#[derive(Clone, Copy)]
pub struct TopAsked {
    /// The most keys in the reply.
    pub count: usize,
    /// The window before the current one.
    pub previous: bool,
}

/// `[RESET | [COUNT count] [PREVIOUS]]`, with a count of at most `most`. `None` for `RESET`.
pub fn top(arguments: &mut Arguments<'_, '_>, most: u64) -> Result<Option<TopAsked>, Error> {
    let (mut reset, mut count, mut previous) = (false, None, false);
    arguments.own_options(|word, arguments| {
        Ok(Arguments::flag(word, "RESET", &mut reset)?
            || arguments
                .option(word, "COUNT", &mut count, |arguments, name| arguments.number(name, 1, most))?
            || Arguments::flag(word, "PREVIOUS", &mut previous)?)
    })?;
    match (reset, count, previous) {
        (true, None, false) => Ok(None),
        (true, Some(_), _) => Err(Error::exclude("RESET", "COUNT")),
        (true, None, true) => Err(Error::exclude("RESET", "PREVIOUS")),
        (false, ..) => {
            let count = usize::try_from(count.unwrap_or(10)).unwrap_or(usize::MAX);
            Ok(Some(TopAsked { count, previous }))
        }
    }
}

/// The arguments of `RL.SHED`, a report of the workers' utilization.
pub struct Report {
    pub shed: Shed,
    /// From 0 to 1.
    pub utilization: f64,
    pub at: Option<Time>,
}

/// `utilization [GOOD good] [BAD bad] [DELAY delay] [RAMP ramp] [TIER tier OF tiers] [AT at]`
pub fn shed(arguments: &mut Arguments<'_, '_>) -> Result<Report, Error> {
    let utilization = arguments.real("utilization", 0, 2)?.min(1.0);
    let (mut good, mut bad, mut delay, mut ramp, mut own_tier) = (None, None, None, None, None);
    let at = arguments.options_and_at(|word, arguments| {
        Ok(arguments.option(word, "GOOD", &mut good, |arguments, name| arguments.real(name, 0, 1))?
            || arguments.option(word, "BAD", &mut bad, |arguments, name| arguments.real(name, 0, 1))?
            || arguments.option(word, "DELAY", &mut delay, Arguments::duration)?
            || arguments.option(word, "RAMP", &mut ramp, Arguments::duration)?
            || arguments.option(word, "TIER", &mut own_tier, tier)?
            || is(word, "OF")
                && Err(if own_tier.is_some() { Error::twice("OF") } else { Error::needs("OF", "TIER") })?)
    })?;
    let shed = Shed::new(
        good.unwrap_or(0.7),
        bad.unwrap_or(0.8),
        delay.unwrap_or(DELAY),
        ramp.unwrap_or(RAMP),
        own_tier.unwrap_or(Tier::ONLY),
    );
    match shed {
        Some(shed) => Ok(Report { shed, utilization, at }),
        None => Err(Error::Thresholds),
    }
}

const DELAY: Period = Period::of(Span::from_millis(28_000)).unwrap();
const RAMP: Period = Period::of(Span::from_millis(120_000)).unwrap();

/// `tier OF tiers`
fn tier(arguments: &mut Arguments<'_, '_>, name: &'static str) -> Result<Tier, Error> {
    let tier = arguments.count(name)?;
    if !arguments.peek().is_some_and(|word| is(word, "OF")) {
        return Err(Error::needs(name, "OF"));
    }
    arguments.word("OF")?;
    let of = arguments.count("OF")?;
    Tier::new(tier, of).ok_or(Error::OutOfRange { name, min: 1, max: of.get(), unit: Unit::None })
}
