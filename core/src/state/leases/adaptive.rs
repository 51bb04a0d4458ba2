//! The adaptive limit of a table, and when each lease was taken: what `ADAPT` keeps beside the leases.

use alloc::vec::Vec;

use super::beside::Beside;
use crate::adapt::{Adapted, LONGEST_MEAN, Latency, ONE, Probe, Rule, Settings, Window};
use crate::state::codec::{Reader, put_short};
use crate::state::table::size_class;
use crate::time::Span;

/// How long a table remembers its limit after its last change.
pub(super) const MEMORY: Span = Span::from_millis(3_600_000);

/// Its instants are the microseconds of ticks.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    pub(super) limit: Adapted,
    /// When each lease was taken, if it was taken with `ADAPT`.
    pub(super) taken: Beside,
}

impl Adaptive {
    pub(super) fn new(limit: Adapted) -> Adaptive {
        Adaptive { limit, taken: Beside::default() }
    }

    /// The bytes that are allocated.
    pub(super) fn allocated(&self) -> usize {
        size_class(size_of::<Adaptive>()) + self.taken.allocated()
    }
}

// The first byte of an encoded limit: its rule, whether a failure has lowered it, and its probe.
const BY_LATENCY: u8 = 1;
const LOWERED: u8 = 2;
const DRAINS: u8 = 4;
const MEASURES: u8 = 8;
/// As [`DRAINS`], and the instant at which the probe began follows.
const DRAINS_SINCE: u8 = DRAINS | MEASURES;

/// Writes a limit whose instants are ages.
pub(super) fn encode_limit(limit: &Adapted, out: &mut Vec<u8>) {
    let Adapted { settings, exact, credit, lowered, latency } = *limit;
    let Settings { rule, ceiling, floor, reserved, backoff, slow } = settings;
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let (probe, since) = match latency.probe {
        Probe::No => (0, None),
        Probe::Drains(None) => (DRAINS, None),
        Probe::Drains(since) => (DRAINS_SINCE, since),
        Probe::Measures(since) => (MEASURES, Some(since)),
    };
    out.push(bit(rule == Rule::Latency, BY_LATENCY) | bit(lowered.is_some(), LOWERED) | probe);
    out.push(backoff);
    let words = [ceiling, floor, reserved].map(u64::from).into_iter().chain([slow, exact, credit]);
    words.chain(lowered).for_each(|word| put_short(out, word));
    if rule == Rule::Latency {
        let Latency { long, short, windows, most, window: Window { count, began, sum, held }, .. } = latency;
        let words = [long, short, windows, most].into_iter().chain(since).chain([count]);
        words.for_each(|word| put_short(out, word));
        if count > 0 {
            for word in [began, sum, held] {
                put_short(out, word);
            }
        }
    }
}

/// Reads what [`encode_limit`] wrote; `None` if it is malformed.
pub(super) fn decode_limit(reader: &mut Reader<'_>) -> Option<Adapted> {
    let flags = reader.byte()?;
    let has = |bit: u8| flags & bit != 0;
    let by_latency = has(BY_LATENCY);
    let mode = flags & !(BY_LATENCY | LOWERED);
    if flags > BY_LATENCY | LOWERED | DRAINS_SINCE {
        return reader.newer();
    }
    if mode > 0 && !by_latency {
        return None;
    }
    let backoff = reader.byte().filter(|percent| (1..=90).contains(percent))?;
    let mut part = |most: u64| u32::try_from(reader.short_up_to(most)?).ok();
    let ceiling = part(u32::MAX.into())?;
    let floor = part(ceiling.into())?;
    let reserved = part(u64::from(floor).checked_sub(1)?)?;
    let rule = if by_latency { Rule::Latency } else { Rule::Failures };
    let slow = reader.short_up_to(Span::CENTURY.as_micros())?;
    let settings = Settings { rule, ceiling, floor, reserved, backoff, slow };
    let exact = reader.short_up_to(u64::from(ceiling) * ONE)?;
    let is_exact = exact >= u64::from(floor) * ONE && (by_latency || exact.is_multiple_of(ONE));
    let credit = reader.short().filter(|_| is_exact)?;
    let lowered = if has(LOWERED) { Some(reader.short()?) } else { None };
    let latency = if by_latency { decode_latency(reader, mode)? } else { Latency::default() };
    Some(Adapted { settings, exact, credit, lowered, latency })
}

fn decode_latency(reader: &mut Reader<'_>, mode: u8) -> Option<Latency> {
    let long = reader.short_up_to(LONGEST_MEAN)?;
    let short = reader.short_up_to(LONGEST_MEAN)?;
    let (windows, most) = (reader.short()?, reader.short()?);
    let probe = match mode {
        DRAINS => Probe::Drains(None),
        DRAINS_SINCE => Probe::Drains(Some(reader.short()?)),
        MEASURES => Probe::Measures(reader.short()?),
        _ => Probe::No,
    };
    let mut window = Window { count: reader.short()?, ..Window::default() };
    if window.count > 0 {
        (window.began, window.sum, window.held) = (reader.short()?, reader.short()?, reader.short()?);
    }
    Some(Latency { long, short, windows, most, probe, window })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> impl Strategy<Value = Adapted> {
        let settings = (any::<bool>(), 1u32..100, 1u32..100, 0u32..100, 1u8..=90, 0u64..1000);
        let latency =
            (0..=LONGEST_MEAN, 0..=LONGEST_MEAN, any::<[u64; 2]>(), 0u8..4, any::<[u64; 5]>(), any::<bool>());
        (settings, any::<u64>(), any::<u64>(), any::<Option<u64>>(), latency).prop_map(
            |((by_latency, ceiling, floor, reserved, backoff, slow), exact, credit, lowered, latency)| {
                let floor = floor.min(ceiling);
                let rule = if by_latency { Rule::Latency } else { Rule::Failures };
                let settings =
                    Settings { rule, ceiling, floor, reserved: reserved.min(floor - 1), backoff, slow };
                let (long, short, [windows, most], probe, [since, count, began, sum, held], empty) = latency;
                let probes =
                    [Probe::No, Probe::Drains(None), Probe::Drains(Some(since)), Probe::Measures(since)];
                let probe = probes[usize::from(probe)];
                let window =
                    if empty { Window::default() } else { Window { count: count.max(1), began, sum, held } };
                let latency = Latency { long, short, windows, most, probe, window };
                Adapted { settings, exact, credit, lowered, latency }.adopt(settings)
            },
        )
    }

    proptest! {
        #[test]
        fn a_limit_that_is_encoded_and_decoded_is_the_same(limit in limits()) {
            let mut bytes = Vec::new();
            encode_limit(&limit, &mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(decode_limit(&mut reader), Some(limit));
            prop_assert!(reader.is_empty());
        }
    }
}
