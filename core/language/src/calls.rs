//! The parsers of the commands that decide beside the limiters: `RL.THROTTLE`, `RL.SKETCH`, `RL.SHED`, and of `RL.TOP`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use ratelimit_core::adapt::Ending;
use ratelimit_core::limiter::{Gcra, Shed, Sketch, Tier};
use ratelimit_core::state::Shape;
use ratelimit_core::{MAX_COUNT, Span, Time};

use crate::arguments::{Arguments, is, lease_id};
use crate::error::Error;
use crate::limiters::max_burst;
use crate::vocabulary::{
    AT, BAD, COST, COUNT, DELAY, DEPTH, GOOD, HOLDERS, ITEM, MOST_HOLDERS, OF, OUTCOME, PERIOD, PREVIOUS,
    QUANTITY, RAMP, RATE, RESET, SECONDS, TIER, TTL, UTILIZATION, WIDTH,
};

/// The arguments of redis-cell's `CL.THROTTLE`.
pub struct CellCall {
    pub gcra: Gcra,
    /// The cost.
    pub quantity: u64,
    pub at: Option<Time>,
}

impl CellCall {
    /// The command's name without its prefix.
    pub const NAME: &'static str = "THROTTLE";
}

/// redis-cell's `max_burst count period [quantity [AT at]]`, with the period in seconds.
pub fn cell(arguments: &mut Arguments<'_, '_>) -> Result<CellCall, Error> {
    let limit = max_burst(arguments)?;
    let (count, period) = (arguments.read(RATE)?, arguments.read(SECONDS)?);
    let quantity = match arguments.peek() {
        None => QUANTITY.or(None)?,
        Some(word) if is(word, AT.name) => return Err(Error::needs(AT.name, QUANTITY.name)),
        Some(_) => arguments.read(QUANTITY)?,
    };
    let at = arguments.at()?;
    Ok(CellCall { gcra: Gcra::new(limit, count, period)?, quantity, at })
}

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
    let item = arguments.word(ITEM.name)?;
    let limit = max_burst(arguments)?;
    let (count, period) = (arguments.read(RATE)?, arguments.read(PERIOD)?);
    let (mut cost, mut width, mut depth) = (None, None, None);
    let at = arguments.options_and_at(|word, arguments| {
        Ok(arguments.option(word, COST, &mut cost)?
            || arguments.option(word, WIDTH, &mut width)?
            || arguments.option(word, DEPTH, &mut depth)?)
    })?;
    let (sketch, cost) = (Sketch::new(limit, count, period)?, COST.or(cost)?);
    let shape = shape(width, depth, arguments.bounds().sketch_bytes)?;
    Ok(SketchCall { item, sketch, cost, at, shape, width, depth })
}

/// The shape of a new sketch of at most `most` bytes. The default shape is always allowed.
fn shape(width: Option<u32>, depth: Option<u32>, most: u64) -> Result<Shape, Error> {
    if (width, depth) == (None, None) {
        return Ok(Shape::DEFAULT);
    }
    let width: u32 = WIDTH.or(width)?;
    if !width.is_power_of_two() {
        return Err(Error::invalid(format_args!("WIDTH must be a power of two; got '{width}'")));
    }
    let depth = DEPTH.or(depth)?;
    let shape = Shape::new(width, depth).filter(|shape| shape.bytes() <= most);
    shape.ok_or_else(|| {
        let bytes = 8 * u64::from(width) * u64::from(depth);
        let bound = format_args!("at most {most} bytes (ratelimit.max-sketch-bytes); got {bytes}");
        Error::invalid(format_args!("WIDTH * DEPTH * 8 must be {bound}"))
    })
}

impl SketchCall<'_> {
    /// The error for a key whose sketch has another shape than the call wants.
    #[cold]
    pub fn of_other_shape(&self, held: Shape) -> Error {
        let (width, depth) = (held.width(), held.depth());
        let wanted = [(WIDTH.name, self.width), (DEPTH.name, self.depth)].into_iter();
        let wanted: Vec<String> =
            wanted.filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
        let wanted = wanted.join(" ");
        Error::OtherKind(
            format!("the key holds SKETCH with WIDTH {width} DEPTH {depth}, not {wanted}").into(),
        )
    }

    /// The command's name without its prefix.
    pub const NAME: &'static str = "SKETCH";

    /// Whether the call's options agree with a sketch of this shape.
    pub fn is_for(&self, shape: Shape) -> bool {
        self.width.is_none_or(|width| width == shape.width())
            && self.depth.is_none_or(|depth| depth == shape.depth())
    }
}

/// The arguments of `RL.RELEASE` and `RL.MULTIRELEASE` after the keys.
pub struct ReleaseCall<'a> {
    pub id: &'a [u8],
    pub ending: Ending,
    pub at: Option<Time>,
}

/// `id [OUTCOME OK | DROP | IGNORE] [AT at]`
pub fn release<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<ReleaseCall<'a>, Error> {
    let id = lease_id(arguments)?;
    let mut ending = None;
    let at = arguments
        .options_and_at(|word, arguments| arguments.option_by(word, OUTCOME, &mut ending, outcome))?;
    Ok(ReleaseCall { id, ending: ending.unwrap_or_default(), at })
}

/// `ttl id [AT at]` of `RL.RENEW`
pub fn renew<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<(Span, &'a [u8], Option<Time>), Error> {
    Ok((arguments.read(TTL)?, lease_id(arguments)?, arguments.at()?))
}

/// The words for the endings of a request.
pub(crate) const OUTCOMES: [(&str, Ending); 3] =
    [("OK", Ending::Well), ("DROP", Ending::Failed), ("IGNORE", Ending::Unknown)];

/// The value of `OUTCOME`.
#[cold]
fn outcome(arguments: &mut Arguments<'_, '_>) -> Result<Ending, Error> {
    let word = arguments.word(OUTCOME.name)?;
    let ending = OUTCOMES.iter().find(|(name, _)| is(word, name)).map(|(_, ending)| *ending);
    ending.ok_or_else(|| Error::must_be(OUTCOME.name, format_args!("OK, DROP or IGNORE"), word))
}

/// What `RL.TOP` asks for.
#[derive(Clone, Copy)]
pub struct TopCall {
    /// The most keys in the reply.
    pub count: usize,
    /// The window before the current one.
    pub previous: bool,
}

/// `[RESET | [COUNT count] [PREVIOUS]]`. `None` for `RESET`.
pub fn top(arguments: &mut Arguments<'_, '_>) -> Result<Option<TopCall>, Error> {
    let (mut reset, mut count, mut previous) = (false, None, false);
    arguments.own_options(|word, arguments| {
        Ok(Arguments::flag(word, RESET, &mut reset)?
            || arguments.option(word, COUNT, &mut count)?
            || Arguments::flag(word, PREVIOUS, &mut previous)?)
    })?;
    match (reset, count, previous) {
        (true, None, false) => Ok(None),
        (true, Some(_), _) => Err(Error::exclude(RESET.name, COUNT.name)),
        (true, None, true) => Err(Error::exclude(RESET.name, PREVIOUS.name)),
        (false, ..) => Ok(Some(TopCall { count: COUNT.or(count)?, previous })),
    }
}

/// `[LEASES [count]]` of `RL.INFO`: the most leases in the reply. `None` without the option.
pub fn info(arguments: &mut Arguments<'_, '_>) -> Result<Option<usize>, Error> {
    if arguments.is_empty() {
        return Ok(None);
    }
    let word = arguments.word(HOLDERS.name)?;
    if !is(word, HOLDERS.name) {
        return Err(Error::near(word));
    }
    let count = if arguments.is_empty() { None } else { Some(arguments.read(MOST_HOLDERS)?) };
    match arguments.peek() {
        None => MOST_HOLDERS.or(count).map(Some),
        Some(word) => Err(Error::near(word)),
    }
}

/// The arguments of `RL.SHED`, a report of the workers' utilization.
pub struct ShedCall {
    pub shed: Shed,
    /// From 0 to 1.
    pub utilization: f64,
    pub at: Option<Time>,
}

impl ShedCall {
    /// The command's name without its prefix.
    pub const NAME: &'static str = "SHED";
}

/// `utilization [GOOD good] [BAD bad] [DELAY delay] [RAMP ramp] [TIER tier OF tiers] [AT at]`
pub fn shed(arguments: &mut Arguments<'_, '_>) -> Result<ShedCall, Error> {
    let utilization = f64::min(arguments.read(UTILIZATION)?, 1.0);
    let (mut good, mut bad, mut delay, mut ramp, mut own_tier) = (None, None, None, None, None);
    let at = arguments.options_and_at(|word, arguments| {
        Ok(arguments.option(word, GOOD, &mut good)?
            || arguments.option(word, BAD, &mut bad)?
            || arguments.option(word, DELAY, &mut delay)?
            || arguments.option(word, RAMP, &mut ramp)?
            || arguments.option_by(word, TIER, &mut own_tier, tier)?
            || is(word, OF.name)
                && Err(match own_tier {
                    Some(_) => Error::twice(OF.name),
                    None => Error::needs(OF.name, TIER.name),
                })?)
    })?;
    let tier = own_tier.unwrap_or(Tier::ONLY);
    let (good, bad) = (GOOD.or(good)?, BAD.or(bad)?);
    let shed = Shed::new(good, bad, DELAY.or(delay)?, RAMP.or(ramp)?, tier).ok_or_else(|| {
        let got = format_args!("got GOOD {good} and BAD {bad}");
        Error::invalid(format_args!("GOOD and BAD must be 0 <= GOOD <= BAD < 1; {got}"))
    })?;
    Ok(ShedCall { shed, utilization, at })
}

/// `tier OF tiers`
fn tier(arguments: &mut Arguments<'_, '_>) -> Result<Tier, Error> {
    let tier = arguments.read_bounded(TIER, MAX_COUNT)?;
    if !arguments.peek().is_some_and(|word| is(word, OF.name)) {
        return Err(Error::needs(TIER.name, OF.name));
    }
    arguments.word(OF.name)?;
    let of: NonZeroU64 = arguments.read(OF)?;
    Tier::new(tier, of).ok_or_else(|| {
        Error::invalid(format_args!("{} must be an integer from 1 to {of}; got '{tier}'", TIER.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_shape_of_a_sketch_is_that_of_the_core() {
        assert_eq!(Shape::new(WIDTH.or(None).unwrap(), DEPTH.or(None).unwrap()), Some(Shape::DEFAULT));
    }
}
