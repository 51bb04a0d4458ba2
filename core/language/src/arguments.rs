//! The arguments of a call, which are parsed in order into checked values.

use core::num::NonZeroU64;
use core::slice;

use ratelimit_core::state::MAX_ID;
use ratelimit_core::{Kind, MAX_COUNT, MAX_PAIRS, Period, Span, Time};

use crate::error::{Error, Unit};
use crate::number::{duration, integer};
use crate::vocabulary::{LONGEST, LONGEST_SECONDS, OPTIONS};

/// The operator's bounds on arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The largest capacity of `RL.CONCURRENT`, which is the most leases of a key.
    pub leases: u64,
    /// The largest limit of `RL.SLIDINGLOG`, and the most entries of a log.
    pub log_entries: u64,
    /// The most bytes of the cells of a sketch that a call makes.
    pub sketch_bytes: u64,
}

impl Bounds {
    /// The defaults of the module's settings.
    pub const DEFAULT: Bounds = Bounds { leases: 1_000_000, log_entries: 1_000_000, sketch_bytes: 8 << 20 };
}

/// The arguments after the key, in order.
pub struct Arguments<'w, 'a> {
    words: slice::Iter<'w, &'a [u8]>,
    bounds: Bounds,
    /// `Some` if the arguments have sections, as those of `RL.MULTI` do.
    sections: Option<Sections>,
}

/// The sections of a call. Options end where the next section begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections {
    /// The word that begins the next section.
    word: &'static str,
    /// The largest value of `ON`, if the sections are limits.
    keys: Option<u64>,
    /// Whether leases are given with their ids.
    ids: bool,
}

impl Sections {
    /// The limits of a policy, without the ids of leases.
    pub(crate) const OF_POLICY: Sections =
        Sections { word: "LIMIT", keys: Some(MAX_PAIRS as u64), ids: false };
    /// The keys at the end of a call.
    pub(crate) const KEYS: Sections = Sections { word: "KEYS", keys: None, ids: true };

    /// Limits for this number of keys.
    pub(crate) fn limits(keys: u64) -> Sections {
        Sections { word: "LIMIT", keys: Some(keys), ids: true }
    }
}

impl<'w, 'a> Arguments<'w, 'a> {
    pub fn new(words: &'w [&'a [u8]], bounds: Bounds) -> Self {
        Arguments { words: words.iter(), bounds, sections: None }
    }

    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// From now on, the arguments have these sections.
    pub(crate) fn divide(&mut self, sections: Sections) {
        self.sections = Some(sections);
    }

    /// The remaining words.
    pub(crate) fn rest(&self) -> &'w [&'a [u8]] {
        self.words.as_slice()
    }

    /// Skips the word that begins the next section. Returns whether there is one.
    pub fn next_section(&mut self) -> bool {
        self.words.next().is_some()
    }

    /// The largest value of `ON`, if the sections are limits.
    pub(crate) fn most_keys(&self) -> Option<u64> {
        self.sections?.keys
    }

    /// Whether leases are given with their ids.
    pub(crate) fn has_ids(&self) -> bool {
        self.sections.is_none_or(|sections| sections.ids)
    }

    /// The next word, unless it begins the next section.
    #[inline(always)]
    pub(crate) fn option_word(&mut self) -> Option<&'a [u8]> {
        if let Some(sections) = self.sections
            && self.peek().is_some_and(|word| is(word, sections.word))
        {
            return None;
        }
        self.words.next().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    /// Any word. `name` is the argument's name in errors, here and below.
    #[inline(always)]
    pub fn word(&mut self, name: &'static str) -> Result<&'a [u8], Error> {
        self.words.next().copied().ok_or_else(|| Error::missing(name))
    }

    /// The next word, which is not taken.
    pub(crate) fn peek(&self) -> Option<&'a [u8]> {
        self.words.as_slice().first().copied()
    }

    /// A count from 1 to [`MAX_COUNT`].
    #[inline(always)]
    pub fn count(&mut self, name: &'static str) -> Result<NonZeroU64, Error> {
        self.positive(name, MAX_COUNT)
    }

    /// An integer from 1 to `max`.
    #[inline(always)]
    pub fn positive(&mut self, name: &'static str, max: u64) -> Result<NonZeroU64, Error> {
        not_zero(self.number(name, 1, max)?)
    }

    /// An integer from `min` to `max`.
    #[inline(always)]
    pub fn number(&mut self, name: &'static str, min: u64, max: u64) -> Result<u64, Error> {
        let word = self.word(name)?;
        match integer(word) {
            Some(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(self.out_of_range(word, name, min, max, Unit::None)),
        }
    }

    /// An integer from 1 to `max`.
    pub(crate) fn small_number(&mut self, name: &'static str, max: u32) -> Result<u32, Error> {
        u32::try_from(self.number(name, 1, max.into())?).map_err(|_| Error::Internal)
    }

    /// A duration from 1 ms to a hundred years: milliseconds, or an integer with a unit.
    #[inline(always)]
    pub fn duration(&mut self, name: &'static str) -> Result<Period, Error> {
        Ok(Period::from_millis(not_zero(self.millis(name, 1)?)?))
    }

    /// A duration from 0 to a hundred years.
    #[inline(always)]
    pub fn duration_or_zero(&mut self, name: &'static str) -> Result<Span, Error> {
        self.millis(name, 0).map(Span::from_millis)
    }

    /// A duration from `least` to a hundred years.
    pub(crate) fn duration_from(&mut self, name: &'static str, least: Period) -> Result<Span, Error> {
        self.millis(name, least.span().as_millis_up()).map(Span::from_millis)
    }

    /// A duration in milliseconds.
    #[inline(always)]
    fn millis(&mut self, name: &'static str, min: u64) -> Result<u64, Error> {
        let word = self.word(name)?;
        match duration(word) {
            Some(millis) if (min..=LONGEST).contains(&millis) => Ok(millis),
            _ => Err(self.out_of_range(word, name, min, LONGEST, Unit::Millis)),
        }
    }

    /// A duration in whole seconds, from 1 s to a hundred years.
    pub(crate) fn seconds(&mut self, name: &'static str) -> Result<NonZeroU64, Error> {
        let word = self.word(name)?;
        let seconds = integer(word).filter(|seconds| *seconds <= LONGEST_SECONDS);
        let out_of_range = || self.out_of_range(word, name, 1, LONGEST_SECONDS, Unit::Seconds);
        seconds.and_then(NonZeroU64::new).ok_or_else(out_of_range)
    }

    /// A decimal number from `min` to `max`.
    #[inline(always)]
    pub fn real(&mut self, name: &'static str, min: u16, max: u16) -> Result<f64, Error> {
        let word = self.word(name)?;
        let number = str::from_utf8(word).ok().and_then(|text| text.parse().ok());
        let in_range = number.filter(|number| (f64::from(min)..=f64::from(max)).contains(number));
        in_range.ok_or_else(|| self.out_of_range(word, name, min.into(), max.into(), Unit::None))
    }

    /// The value of `AT`: Unix time in microseconds.
    pub(crate) fn instant(&mut self, name: &'static str) -> Result<Time, Error> {
        let (min, max) = (Time::EARLIEST.as_micros(), Time::LATEST.as_micros());
        let word = self.word(name)?;
        match integer(word) {
            Some(micros) if (min..=max).contains(&micros) => Ok(Time::from_micros(micros)),
            Some(micros) if micros > max => Err(self.out_of_range(word, name, min, max, Unit::None)),
            _ if self.begins_section(word) => Err(Error::missing(name)),
            _ => Err(Error::AtUnit),
        }
    }

    /// The error for a word that is no number, or one outside of its range.
    #[cold]
    fn out_of_range(&self, word: &[u8], name: &'static str, min: u64, max: u64, unit: Unit) -> Error {
        if self.begins_section(word) {
            return Error::missing(name);
        }
        Error::OutOfRange { name, min, max, unit }
    }

    /// Whether the word begins the next section. In place of an argument, that argument was left out.
    pub(crate) fn begins_section(&self, word: &[u8]) -> bool {
        self.sections.is_some_and(|sections| is(word, sections.word))
    }

    /// The error for a word that is none of the options here.
    #[cold]
    pub(crate) fn unknown(&self, word: &[u8]) -> Error {
        match OPTIONS.iter().find(|option| is(word, option)) {
            Some(option) => Error::NotForCommand(option),
            None if self.most_keys().is_some() && is_limiter(word) => {
                Error::near_because(word, "a limit begins with LIMIT")
            }
            None => Error::near(word),
        }
    }

    /// Reads the value of the option `name`, if `word` is this option. Returns whether it is.
    #[inline(always)]
    pub(crate) fn option<T>(
        &mut self,
        word: &[u8],
        name: &'static str,
        value: &mut Option<T>,
        read: impl FnOnce(&mut Self, &'static str) -> Result<T, Error>,
    ) -> Result<bool, Error> {
        if !is(word, name) {
            return Ok(false);
        }
        match value.replace(read(self, name)?) {
            None => Ok(true),
            Some(_) => Err(Error::twice(name)),
        }
    }

    /// Notes the option `name`, which has no value, if `word` is this option. Returns whether it is.
    #[inline(always)]
    pub(crate) fn flag(word: &[u8], name: &'static str, given: &mut bool) -> Result<bool, Error> {
        if !is(word, name) {
            return Ok(false);
        }
        if *given {
            return Err(Error::twice(name));
        }
        *given = true;
        Ok(true)
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
        let mut at = None;
        self.own_options(|word, arguments| {
            Ok(arguments.option(word, "AT", &mut at, Arguments::instant)? || own(word, arguments)?)
        })?;
        Ok(at)
    }

    /// Reads all remaining arguments as options in any order. `own` reads an option's value, and returns whether there is
    /// such an option.
    pub(crate) fn own_options(
        &mut self,
        mut own: impl FnMut(&[u8], &mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        while let Some(word) = self.words.next() {
            if !own(word, self)? {
                return Err(self.unknown(word));
            }
        }
        Ok(())
    }
}

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

/// The id of a lease or a hold.
#[inline(always)]
pub fn lease_id<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<&'a [u8], Error> {
    let id = arguments.word("id")?;
    if !(1..=MAX_ID).contains(&id.len()) {
        return Err(Error::IdLength);
    }
    // `LIMIT` and a limiter's name begin the next limit, so the id was left out.
    if arguments.begins_section(id)
        && arguments.peek().is_some_and(|word| is_limiter(without_prefix(word).unwrap_or(word)))
    {
        return Err(Error::missing("id"));
    }
    Ok(id)
}

/// Whether a word is a limiter's name, in upper or lower case.
#[cold]
fn is_limiter(word: &[u8]) -> bool {
    Kind::ALL.iter().any(|kind| kind.is_limit() && is(word, kind.title().0))
}

/// The name after the prefix `RL.`, if the word has it.
pub(crate) fn without_prefix(word: &[u8]) -> Option<&[u8]> {
    let (prefix, name) = word.split_at_checked(3)?;
    prefix.eq_ignore_ascii_case(b"RL.").then_some(name)
}

/// A number that was checked not to be 0.
#[inline(always)]
fn not_zero(number: u64) -> Result<NonZeroU64, Error> {
    match NonZeroU64::new(number) {
        Some(number) => Ok(number),
        // `ok_or` would make the error each time, and drop it.
        None => Err(Error::Internal),
    }
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
}
