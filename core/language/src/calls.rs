//! The parsers of the commands that decide beside the limiters: `RL.THROTTLE`, `RL.SKETCH`, `RL.SHED`, and of `RL.TOP`.

use core::num::NonZeroU64;

use ratelimit_core::limiter::{Gcra, Shed, Sketch, Tier};
use ratelimit_core::state::{MAX_DEPTH, Shape};
use ratelimit_core::{MAX_COUNT, Period, Span, Time};

use crate::arguments::{Arguments, is};
use crate::error::{Error, Unit};
use crate::limiters::max_burst;

/// The arguments of redis-cell's `CL.THROTTLE`.
pub struct CellCall {
    pub gcra: Gcra,
    /// The cost.
    pub quantity: u64,
    pub at: Option<Time>,
}

/// redis-cell's `max_burst count period [quantity [AT at]]`, with the period in seconds.
pub fn cell(arguments: &mut Arguments<'_, '_>) -> Result<CellCall, Error> {
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
    Ok(CellCall { gcra: Gcra::new(limit, count, period)?, quantity, at })
}

const THOUSAND: NonZeroU64 = NonZeroU64::new(1000).unwrap();

/// The arguments of `RL.SKETCH`.
pub struct SketchCall<'a> {
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
pub fn sketch<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<SketchCall<'a>, Error> {
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
    Ok(SketchCall { item, sketch, cost, at, shape, width, depth })
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

impl SketchCall<'_> {
    /// Whether the call's options agree with a sketch of this shape.
    pub fn is_for(&self, shape: Shape) -> bool {
        self.width.is_none_or(|width| width == shape.width())
            && self.depth.is_none_or(|depth| depth == shape.depth())
    }
}

/// What `RL.TOP` asks for.
#[derive(Clone, Copy)]
pub struct TopCall {
    /// The most keys in the reply.
    pub count: usize,
    /// The window before the current one.
    pub previous: bool,
}

/// `[RESET | [COUNT count] [PREVIOUS]]`, with a count of at most `most`. `None` for `RESET`.
pub fn top(arguments: &mut Arguments<'_, '_>, most: u64) -> Result<Option<TopCall>, Error> {
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
            Ok(Some(TopCall { count, previous }))
        }
    }
}

/// The arguments of `RL.SHED`, a report of the workers' utilization.
pub struct ShedCall {
    pub shed: Shed,
    /// From 0 to 1.
    pub utilization: f64,
    pub at: Option<Time>,
}

/// `utilization [GOOD good] [BAD bad] [DELAY delay] [RAMP ramp] [TIER tier OF tiers] [AT at]`
pub fn shed(arguments: &mut Arguments<'_, '_>) -> Result<ShedCall, Error> {
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
        Some(shed) => Ok(ShedCall { shed, utilization, at }),
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
