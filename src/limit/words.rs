//! The words of a request, read one after the other into values that cannot be wrong.

use std::slice;

use super::error::Error;
use crate::time::{Span, Time};

/// The largest count, 2^53 - 1: every client language has it exactly, JavaScript's numbers included.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// What the operator bounds; part of what a request is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most that one lease table may be asked to hold.
    pub leases: u64,
    /// The most entries that one log may be asked to hold.
    pub log_entries: u64,
}

/// What is done with a request that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manner {
    /// It is refused.
    #[default]
    Strict,
    /// It gets what is there, if that is anything.
    Partial,
    /// It is admitted all the same, into debt.
    Force,
    /// It is booked ahead, if it need not wait longer than that.
    Reserve { longest: Span },
}

/// The options that all limiters share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    cost: Option<u64>,
    /// Decide as of this instant, not by the server's clock.
    pub at: Option<Time>,
    manner: Option<Manner>,
    max_wait: Option<Span>,
    /// The only key it is for, from 1, where there are several.
    pub on: Option<u64>,
}

impl Request {
    pub fn cost(&self) -> u64 {
        self.cost.unwrap_or(1)
    }

    /// The cost, if it was said.
    pub fn own_cost(&self) -> Option<u64> {
        self.cost
    }

    pub fn manner(&self) -> Manner {
        match (self.manner, self.max_wait) {
            (Some(Manner::Reserve { .. }), Some(longest)) => Manner::Reserve { longest },
            (manner, _) => manner.unwrap_or_default(),
        }
    }

    /// Reads one of these options, if `word` is one.
    fn option(&mut self, word: &[u8], words: &mut Words<'_, '_>) -> Result<bool, Error> {
        if is(word, "COST") {
            once(&mut self.cost, words.number("COST", 0, MAX_COUNT))?;
        } else if is(word, "AT") {
            once(&mut self.at, words.instant())?;
        } else if is(word, "PARTIAL") {
            once(&mut self.manner, Ok(Manner::Partial))?;
        } else if is(word, "FORCE") {
            once(&mut self.manner, Ok(Manner::Force))?;
        } else if is(word, "RESERVE") {
            once(&mut self.manner, Ok(Manner::Reserve { longest: Span::FOREVER }))?;
        } else if let Some((_, keys)) = words.section
            && is(word, "ON")
        {
            once(&mut self.on, words.number("ON", 1, keys))?;
        } else if is(word, "MAXWAIT") {
            once(&mut self.max_wait, words.duration_or_none("MAXWAIT"))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// The words after the key, in order.
pub struct Words<'w, 'a> {
    words: slice::Iter<'w, &'a [u8]>,
    bounds: Bounds,
    /// What a missing word is: too few arguments, or among the options a syntax error.
    missing: Error,
    /// The word that ends the options, if what follows are more parameters; and of how many keys one may be named.
    section: Option<(&'static str, u64)>,
}

impl<'w, 'a> Words<'w, 'a> {
    pub fn new(words: &'w [&'a [u8]], bounds: Bounds) -> Self {
        Words { words: words.iter(), bounds, missing: Error::Arity, section: None }
    }

    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Lets options end before this word too, and be for one of so many keys.
    pub fn end_options_at(&mut self, section: &'static str, keys: u64) {
        self.section = Some((section, keys));
    }

    /// Passes the word that options ended before; whether there was one.
    pub fn next_section(&mut self) -> bool {
        self.missing = Error::Syntax;
        self.words.next().is_some()
    }

    /// The next word, if it belongs to the options.
    fn option_word(&mut self) -> Option<&'a [u8]> {
        if let Some((section, _)) = self.section
            && self.words.as_slice().first().is_some_and(|word| is(word, section))
        {
            return None;
        }
        self.words.next().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    pub fn word(&mut self) -> Result<&'a [u8], Error> {
        self.words.next().copied().ok_or(self.missing)
    }

    /// A count from 1.
    pub fn count(&mut self, name: &'static str) -> Result<u64, Error> {
        self.number(name, 1, MAX_COUNT)
    }

    /// A duration in milliseconds, from 1 to a hundred years.
    pub fn duration(&mut self, name: &'static str) -> Result<Span, Error> {
        self.duration_from(1, name)
    }

    /// A duration that may be none.
    pub fn duration_or_none(&mut self, name: &'static str) -> Result<Span, Error> {
        self.duration_from(0, name)
    }

    fn duration_from(&mut self, least: u64, name: &'static str) -> Result<Span, Error> {
        let longest = Span::CENTURY.as_micros() / 1000;
        self.number(name, least, longest).map(Span::from_millis)
    }

    pub fn number(&mut self, name: &'static str, min: u64, max: u64) -> Result<u64, Error> {
        match u64::try_from(integer(self.word()?)?) {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(Error::OutOfRange { name, min, max }),
        }
    }

    /// A finite decimal number.
    pub fn real(&mut self) -> Result<f64, Error> {
        let text = str::from_utf8(self.word()?).map_err(|_| Error::NotReal)?;
        text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or(Error::NotReal)
    }

    fn instant(&mut self) -> Result<Time, Error> {
        let (min, max) = (Time::EARLIEST.as_micros(), Time::LATEST.as_micros());
        match u64::try_from(integer(self.word()?)?) {
            Ok(micros) if (min..=max).contains(&micros) => Ok(Time::from_micros(micros)),
            Ok(micros) if micros > max => Err(Error::OutOfRange { name: "AT", min, max }),
            _ => Err(Error::AtUnit),
        }
    }

    /// Reads all that is left as `[AT at]`.
    pub fn at(&mut self) -> Result<Option<Time>, Error> {
        self.options_and_at(|_, _| Ok(false))
    }

    /// Reads all that is left as `[AT at]` and the options that `own` knows, in any order.
    pub fn options_and_at(
        &mut self,
        mut own: impl FnMut(&[u8], &mut Self) -> Result<bool, Error>,
    ) -> Result<Option<Time>, Error> {
        self.missing = Error::Syntax;
        let mut at = None;
        while let Some(word) = self.words.next() {
            if is(word, "AT") {
                once(&mut at, self.instant())?;
            } else if !own(word, self)? {
                return Err(Error::Syntax);
            }
        }
        Ok(at)
    }

    /// Reads all that is left as options, in any order: those that all limiters share into `request`, the others
    /// through `own`, which answers whether the word was one of its own.
    pub fn options(
        &mut self,
        request: &mut Request,
        mut own: impl FnMut(&[u8], &mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        self.missing = Error::Syntax;
        while let Some(word) = self.option_word() {
            if !own(word, self)? && !request.option(word, self)? {
                return Err(Error::Syntax);
            }
        }
        match (request.manner, request.max_wait) {
            (Some(Manner::Reserve { .. }), _) | (_, None) => Ok(()),
            // Only a booking waits.
            (_, Some(_)) => Err(Error::Syntax),
        }
    }
}

/// Whether a word is this option; options are case-insensitive.
pub fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

/// Fills an option's place; an option given twice is an error.
pub fn once<T>(place: &mut Option<T>, value: Result<T, Error>) -> Result<(), Error> {
    match place.replace(value?) {
        None => Ok(()),
        Some(_) => Err(Error::Syntax),
    }
}

/// The decimal integer that these bytes spell, by the rules of Redis: a minus sign or none, no plus sign, no
/// leading zeros, no spaces.
fn integer(bytes: &[u8]) -> Result<i64, Error> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let canonical = match digits {
        [] => false,
        [b'0'] => !negative,
        [first, ..] => *first != b'0',
    };
    if !canonical {
        return Err(Error::NotInteger);
    }
    // Nineteen digits always fit 64 bits without a sign, and no more than nineteen can fit with one.
    if digits.len() > 19 {
        return Err(Error::NotInteger);
    }
    let mut magnitude: u64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Error::NotInteger);
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    let number = if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
    number.ok_or(Error::NotInteger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_spelt_as_redis_spells_them() {
        assert_eq!(integer(b"0"), Ok(0));
        assert_eq!(integer(b"-7"), Ok(-7));
        assert_eq!(integer(b"9223372036854775807"), Ok(i64::MAX));
        assert_eq!(integer(b"-9223372036854775808"), Ok(i64::MIN));
        for not_one in ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808"] {
            assert_eq!(integer(not_one.as_bytes()), Err(Error::NotInteger), "{not_one:?}");
        }
        assert_eq!(integer(b"-9223372036854775809"), Err(Error::NotInteger));
        assert_eq!(integer(b"1\0"), Err(Error::NotInteger));
    }
}
