//! The arguments of a call, which are parsed in order into checked values.

use core::num::NonZeroU64;
use core::slice;

use ratelimit_core::{MAX_COUNT, Period, Span, Time};

use crate::error::Error;
use crate::request::Request;

/// The operator's bounds on arguments.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The largest capacity of `RL.CONCURRENT`, which is the most leases of a key.
    pub leases: u64,
    /// The largest limit of `RL.SLIDINGLOG`, and the most entries of a log.
    pub log_entries: u64,
}

/// The arguments after the key, in order.
pub struct Arguments<'w, 'a> {
    words: slice::Iter<'w, &'a [u8]>,
    bounds: Bounds,
    /// The error for a missing argument: [`Error::Arity`], but [`Error::Syntax`] among the options.
    missing: Error,
    /// `Some` if the arguments have sections, as those of `RL.MULTI` do.
    section: Option<Section>,
}

/// A call in sections, each of which ends with options.
#[derive(Clone, Copy)]
struct Section {
    /// The word that begins the next section.
    word: &'static str,
    /// The number of keys: the option `ON` takes 1 to `keys`.
    keys: u64,
}

impl<'w, 'a> Arguments<'w, 'a> {
    pub fn new(words: &'w [&'a [u8]], bounds: Bounds) -> Self {
        Arguments { words: words.iter(), bounds, missing: Error::Arity, section: None }
    }

    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// From now on, options end at `word`, and `ON 1..=keys` is one of them.
    pub fn end_options_at(&mut self, word: &'static str, keys: u64) {
        self.section = Some(Section { word, keys });
    }

    /// Skips the word that begins the next section. Returns whether there is one.
    pub fn next_section(&mut self) -> bool {
        self.missing = Error::Syntax;
        self.words.next().is_some()
    }

    /// The number of keys, if the arguments have sections.
    pub(crate) fn keys_of_section(&self) -> Option<u64> {
        self.section.map(|section| section.keys)
    }

    /// The next word, unless it begins the next section.
    fn option_word(&mut self) -> Option<&'a [u8]> {
        if let Some(section) = self.section
            && self.words.as_slice().first().is_some_and(|word| is(word, section.word))
        {
            return None;
        }
        self.words.next().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    /// Any word.
    pub fn word(&mut self) -> Result<&'a [u8], Error> {
        self.words.next().copied().ok_or(self.missing)
    }

    /// A count from 1 to [`MAX_COUNT`]. `name` is the argument's name in errors, here and below.
    #[inline(always)]
    pub fn count(&mut self, name: &'static str) -> Result<NonZeroU64, Error> {
        self.positive(name, MAX_COUNT)
    }

    /// An integer from 1 to `max`.
    #[inline(always)]
    pub fn positive(&mut self, name: &'static str, max: u64) -> Result<NonZeroU64, Error> {
        let number = NonZeroU64::new(self.number(name, 1, max)?);
        number.ok_or(Error::OutOfRange { name, min: 1, max })
    }

    /// A duration in milliseconds, from 1 to a hundred years.
    #[inline(always)]
    pub fn duration(&mut self, name: &'static str) -> Result<Period, Error> {
        self.positive(name, LONGEST).map(Period::from_millis)
    }

    /// A duration in milliseconds, from 0 to a hundred years.
    pub fn duration_or_zero(&mut self, name: &'static str) -> Result<Span, Error> {
        self.number(name, 0, LONGEST).map(Span::from_millis)
    }

    /// An integer from `min` to `max`.
    #[inline]
    pub fn number(&mut self, name: &'static str, min: u64, max: u64) -> Result<u64, Error> {
        match u64::try_from(parse_integer(self.word()?)?) {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(Error::OutOfRange { name, min, max }),
        }
    }

    /// A finite decimal number.
    pub fn real(&mut self) -> Result<f64, Error> {
        let text = str::from_utf8(self.word()?).map_err(|_| Error::NotReal)?;
        text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or(Error::NotReal)
    }

    /// The value of `AT`: Unix time in microseconds.
    pub(crate) fn instant(&mut self) -> Result<Time, Error> {
        let (min, max) = (Time::EARLIEST.as_micros(), Time::LATEST.as_micros());
        match u64::try_from(parse_integer(self.word()?)?) {
            Ok(micros) if (min..=max).contains(&micros) => Ok(Time::from_micros(micros)),
            Ok(micros) if micros > max => Err(Error::OutOfRange { name: "AT", min, max }),
            _ => Err(Error::AtUnit),
        }
    }

    /// Reads all remaining arguments as `[AT at]`.
    pub fn at(&mut self) -> Result<Option<Time>, Error> {
        self.options_and_at(|_, _| Ok(false))
    }

    /// Reads all remaining arguments as options in any order: `[AT at]` and the command's own. `own` reads an option's
    /// value, and returns whether the option is one of its own.
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

    /// Reads the options, in any order. Those that all limiters share go into `request`. `own` reads the value of an
    /// option of the limiter's own, and returns whether the option is one of its own.
    #[inline(always)]
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
        if request.contradicts_itself() { Err(Error::Syntax) } else { Ok(()) }
    }

    /// Reads the options. The limiter's only own option is `flag`, which has no value. Returns whether it is given.
    #[inline(always)]
    pub(crate) fn options_and_flag(&mut self, request: &mut Request, flag: &str) -> Result<bool, Error> {
        let mut given = None;
        self.options(request, |word, _| {
            let own = is(word, flag);
            if own {
                once(&mut given, Ok(()))?;
            }
            Ok(own)
        })?;
        Ok(given.is_some())
    }
}

/// The longest duration, in milliseconds.
const LONGEST: u64 = Span::CENTURY.as_micros() / 1000;

/// The bit that distinguishes a lower case letter from its upper case.
const LOWER: u8 = 0x20;

/// Whether a word is this option, in upper or lower case. Options consist of upper case letters.
#[inline(always)]
pub(crate) fn is(word: &[u8], option: &str) -> bool {
    debug_assert!(option.bytes().all(|letter| letter.is_ascii_uppercase()), "{option}");
    // Most words differ in their lengths or first letters, so this is faster than `eq_ignore_ascii_case`.
    word.len() == option.len()
        && word.iter().zip(option.bytes()).all(|(byte, letter)| byte & !LOWER == letter)
}

/// Stores an option's value. If the option was given before, the result is an error.
#[inline(always)]
pub(crate) fn once<T>(option: &mut Option<T>, value: Result<T, Error>) -> Result<(), Error> {
    match option.replace(value?) {
        None => Ok(()),
        Some(_) => Err(Error::Syntax),
    }
}

/// Parses a decimal integer as Redis does: with an optional minus sign, but without plus sign, leading zeros or spaces.
#[inline(always)]
fn parse_integer(bytes: &[u8]) -> Result<i64, Error> {
    // Nearly all arguments are positive and so short that they need no other check.
    if let [b'1'..=b'9', ..] | b"0" = bytes
        && bytes.len() <= 18
    {
        let mut number = 0;
        for byte in bytes {
            let digit = i64::from(*byte) - i64::from(b'0');
            if !(0..=9).contains(&digit) {
                return Err(Error::NotInteger);
            }
            number = number * 10 + digit;
        }
        return Ok(number);
    }
    parse_any_integer(bytes)
}

/// [`parse_integer`] for negative and long integers.
#[inline(never)]
fn parse_any_integer(bytes: &[u8]) -> Result<i64, Error> {
    let canonical = matches!(bytes.strip_prefix(b"-").unwrap_or(bytes), [b'1'..=b'9', ..]);
    let number = str::from_utf8(bytes).ok().filter(|_| canonical).and_then(|text| text.parse().ok());
    number.ok_or(Error::NotInteger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_an_option_in_upper_or_lower_case_only() {
        for option in ["AT", "COST", "LIMIT", "COUNTREFUSED"] {
            assert!(is(option.as_bytes(), option) && is(option.to_ascii_lowercase().as_bytes(), option));
            for place in 0..option.len() {
                for byte in 0..=u8::MAX {
                    let mut word = option.as_bytes().to_vec();
                    word[place] = byte;
                    assert_eq!(is(&word, option), word.eq_ignore_ascii_case(option.as_bytes()), "{word:?}");
                }
            }
        }
        assert!(!is(b"COS", "COST") && !is(b"COSTS", "COST") && !is(b"", "COST"));
    }

    #[test]
    fn integers_are_parsed_as_redis_parses_them() {
        assert_eq!(parse_integer(b"0"), Ok(0));
        assert_eq!(parse_integer(b"-7"), Ok(-7));
        assert_eq!(parse_integer(b"999999999999999999"), Ok(999_999_999_999_999_999));
        assert_eq!(parse_integer(b"1000000000000000000"), Ok(1_000_000_000_000_000_000));
        assert_eq!(parse_integer(b"9223372036854775807"), Ok(i64::MAX));
        assert_eq!(parse_integer(b"-9223372036854775808"), Ok(i64::MIN));
        for not_one in ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808"] {
            assert_eq!(parse_integer(not_one.as_bytes()), Err(Error::NotInteger), "{not_one:?}");
        }
        assert_eq!(parse_integer(b"-9223372036854775809"), Err(Error::NotInteger));
        for not_one in [&b"1\0"[..], b"1:", b"1/", b"\xb2", b"1\xff", b"1\xb2"] {
            assert_eq!(parse_integer(not_one), Err(Error::NotInteger), "{not_one:?}");
        }
    }
}
