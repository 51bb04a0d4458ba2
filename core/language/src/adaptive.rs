//! The parser of `ADAPT` and its options.

use ratelimit_core::Period;
use ratelimit_core::adapt::{Adapt, Rule, Settings};

use crate::argument::Argument;
use crate::arguments::Arguments;
use crate::error::Error;
use crate::vocabulary::{ADAPT, BACKOFF, FLOOR, GRADIENT, SLOW, START};

/// `ADAPT` and its options.
#[derive(Default)]
pub(crate) struct Adaptive {
    /// Whether one of them is given.
    pub(crate) is_given: bool,
    adapts: bool,
    gradient: bool,
    floor: Option<u64>,
    start: Option<u64>,
    backoff: Option<u64>,
    slow: Option<Period>,
}

/// The default of `START`.
const USUAL_START: u64 = 20;

impl Adaptive {
    /// Reads the value of an option. Returns whether `word` is one of these options.
    #[inline(never)]
    pub(crate) fn option(
        &mut self,
        word: &[u8],
        arguments: &mut Arguments<'_, '_>,
        capacity: u64,
    ) -> Result<bool, Error> {
        let is_one = Arguments::flag(word, ADAPT, &mut self.adapts)?
            || Arguments::flag(word, GRADIENT, &mut self.gradient)?
            || arguments.option_by(word, FLOOR, &mut self.floor, |arguments| {
                arguments.read_bounded(FLOOR, capacity)
            })?
            || arguments.option_by(word, START, &mut self.start, |arguments| {
                arguments.read_bounded(START, capacity)
            })?
            || arguments.option(word, BACKOFF, &mut self.backoff)?
            || arguments.option(word, SLOW, &mut self.slow)?;
        self.is_given |= is_one;
        Ok(is_one)
    }

    /// What a call with these options asks of a limit with this capacity.
    #[inline(never)]
    pub(crate) fn adapt(&self, ceiling: u64, reserved: u64) -> Result<Adapt, Error> {
        let Adaptive { adapts, gradient, floor, start, backoff, slow, .. } = *self;
        if !adapts {
            let given = [
                (gradient, GRADIENT),
                (floor.is_some(), FLOOR),
                (start.is_some(), START),
                (backoff.is_some(), BACKOFF),
                (slow.is_some(), SLOW),
            ];
            let option = given.into_iter().find(|(given, _)| *given).map_or("", |(_, option)| option.name);
            return Err(Error::needs(option, ADAPT.name));
        }
        let least = reserved + 1;
        if least > ceiling {
            let what = format_args!("RESERVED must be below the capacity, for ADAPT; got '{reserved}'");
            return Err(Error::invalid(what));
        }
        let floor = within(FLOOR, floor.unwrap_or(least), (least, ceiling))?;
        let start = start.unwrap_or_else(|| USUAL_START.min(ceiling).max(floor));
        let start = within(START, start, (floor, ceiling))?;
        let [ceiling, floor, reserved, start] =
            [ceiling, floor, reserved, start].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let rule = if gradient { Rule::Latency } else { Rule::Failures };
        let backoff: u64 = BACKOFF.or(backoff)?;
        let backoff = u8::try_from(backoff).map_err(|_| Error::Internal)?;
        let slow = slow.map_or(0, |slow| slow.micros().get());
        Ok(Adapt { settings: Settings { rule, ceiling, floor, reserved, backoff, slow }, start })
    }
}

/// The number, which must lie between two others of the call.
fn within(option: Argument, number: u64, (least, most): (u64, u64)) -> Result<u64, Error> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    let name = option.name;
    Err(Error::invalid(format_args!("{name} must be an integer from {least} to {most}; got '{number}'")))
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};

    use ratelimit_core::AnyLimiter;

    use super::*;
    use crate::arguments::Bounds;
    use crate::catalog::find;
    use crate::request::Request;

    fn parsed(line: &str) -> Result<Option<Adapt>, String> {
        let words: std::vec::Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let row = find(words[0]).expect("a limiter");
        let parsed = (row.parse)(&mut Arguments::new(&words[1..], Bounds::DEFAULT), &mut Request::default());
        match parsed.map_err(|error| error.to_string())? {
            AnyLimiter::Concurrent(concurrent) => Ok(concurrent.adapt),
            _ => Ok(None),
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_page() {
        assert_eq!(parsed("CONCURRENT 100 1s a"), Ok(None));
        let settings =
            Settings { rule: Rule::Failures, ceiling: 100, floor: 1, reserved: 0, backoff: 10, slow: 0 };
        assert_eq!(parsed("CONCURRENT 100 1s a ADAPT"), Ok(Some(Adapt { settings, start: 20 })));
        let few = Settings { ceiling: 5, floor: 3, reserved: 2, ..settings };
        assert_eq!(parsed("CONCURRENT 5 1s a RESERVED 2 ADAPT"), Ok(Some(Adapt { settings: few, start: 5 })));
        let all = Settings { rule: Rule::Latency, floor: 30, backoff: 50, slow: 1_500_000, ..settings };
        assert_eq!(
            parsed("CONCURRENT 100 1s a adapt gradient slow 1500ms backoff 50 floor 30 critical"),
            Ok(Some(Adapt { settings: all, start: 30 }))
        );
    }

    #[test]
    fn what_no_limit_can_be_is_an_error() {
        for (line, error) in [
            ("GRADIENT", "ERR syntax error: GRADIENT needs ADAPT"),
            ("SLOW 1s", "ERR syntax error: SLOW needs ADAPT"),
            ("ADAPT FLOOR", "ERR syntax error: FLOOR needs a value"),
            ("ADAPT ADAPT", "ERR syntax error: ADAPT is given twice"),
            ("ADAPT BACKOFF 91", "ERR BACKOFF must be an integer from 1 to 90; got '91'"),
            ("ADAPT SLOW 5", "ERR SLOW needs a unit: 5ms, 5s or 5m"),
            ("ADAPT FLOOR 11", "ERR FLOOR must be an integer from 1 to 10; got '11'"),
            ("ADAPT FLOOR 2 RESERVED 2", "ERR FLOOR must be an integer from 3 to 10; got '2'"),
            ("ADAPT RESERVED 10", "ERR RESERVED must be below the capacity, for ADAPT; got '10'"),
            ("ADAPT START 4 FLOOR 5", "ERR START must be an integer from 5 to 10; got '4'"),
        ] {
            let line = std::format!("CONCURRENT 10 1s a {line}");
            assert_eq!(parsed(&line), Err(String::from(error)), "{line}");
        }
    }
}
