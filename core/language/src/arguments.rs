//! The arguments of a call, which are parsed in order into checked values.

use alloc::format;
use core::{fmt, mem, slice};

use ratelimit_core::state::MAX_ID;
use ratelimit_core::{Kind, MAX_PAIRS, Time};

use crate::argument::{Argument, Read, Value, Values};
use crate::error::Error;
use crate::number::{Duration, duration, integer};
use crate::shown::shown;
use crate::vocabulary::{AT, ID, KEYS, LIMIT, VERSION, option_names};

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
        Sections { word: LIMIT.name, keys: Some(MAX_PAIRS as u64), ids: false };
    /// The keys at the end of a call.
    pub(crate) const KEYS: Sections = Sections { word: KEYS.name, keys: None, ids: true };

    /// Limits for this number of keys.
    pub(crate) fn limits(keys: u64) -> Sections {
        Sections { word: LIMIT.name, keys: Some(keys), ids: true }
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

    /// The word that begins the next section.
    pub(crate) fn section(&self) -> Option<&'static str> {
        self.sections.map(|sections| sections.word)
    }

    /// Whether the arguments are those of one limit, and not of a section.
    pub(crate) fn is_undivided(&self) -> bool {
        self.sections.is_none()
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

    /// Any word. `name` is the argument's name in errors.
    #[inline(always)]
    pub fn word(&mut self, name: &'static str) -> Result<&'a [u8], Error> {
        self.words.next().copied().ok_or_else(|| Error::missing(name))
    }

    /// The next word, which is not taken.
    pub(crate) fn peek(&self) -> Option<&'a [u8]> {
        self.words.as_slice().first().copied()
    }

    /// The next word, as a value of this argument.
    #[inline(always)]
    pub fn read<T: Read>(&mut self, argument: Argument) -> Result<T, Error> {
        self.read_in(argument, argument.values.range(None))
    }

    /// As [`read`](Self::read), for an argument whose range depends on the call or a setting: `bound` is the largest
    /// value, or the least of [`Values::DurationFrom`](crate::argument::Values::DurationFrom).
    #[inline(always)]
    pub fn read_bounded<T: Read>(&mut self, argument: Argument, bound: u64) -> Result<T, Error> {
        self.read_in(argument, argument.values.range(Some(bound)))
    }

    /// As [`read`](Self::read), for an argument whose range depends on the call.
    #[inline(always)]
    pub(crate) fn read_in<T: Read>(&mut self, argument: Argument, range: (u64, u64)) -> Result<T, Error> {
        let word = self.word(argument.name)?;
        match argument.values.parse(word, range) {
            Some(value) => read(value),
            None => Err(self.missing_or(word, argument.name, argument.refused(word, range))),
        }
    }

    /// The error for a word that the argument `name` does not take. A word that begins the next section is none: the
    /// argument is missing.
    pub(crate) fn missing_or(&self, word: &[u8], name: &'static str, error: Error) -> Error {
        if self.begins_section(word) { Error::missing(name) } else { error }
    }

    /// Whether the word begins the next section.
    pub(crate) fn begins_section(&self, word: &[u8]) -> bool {
        self.sections.is_some_and(|sections| is(word, sections.word))
    }

    /// The error for a word that is none of the options here.
    #[cold]
    pub(crate) fn unknown(&self, word: &[u8]) -> Error {
        match option_names().find(|option| is(word, option)) {
            // Only policies have sections without ids, and a version.
            Some(option) if option == VERSION.name && !self.has_ids() => Error::belongs_before(option),
            Some(option) => Error::NotForCommand(option),
            None if self.most_keys().is_some() && is_limiter(word) => {
                Error::near_because(word, "a limit begins with LIMIT")
            }
            None => Error::near(word),
        }
    }

    /// Reads the value of an option, if `word` is this option. Returns whether it is.
    #[inline(always)]
    pub(crate) fn option<T: Read>(
        &mut self,
        word: &[u8],
        option: Argument,
        value: &mut Option<T>,
    ) -> Result<bool, Error> {
        Ok(is(word, option.name) && once(option, value.replace(self.read(option)?).as_ref())?)
    }

    /// As [`option`](Self::option), for a value that `read` reads.
    #[inline(always)]
    pub(crate) fn option_by<T>(
        &mut self,
        word: &[u8],
        option: Argument,
        value: &mut Option<T>,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<bool, Error> {
        Ok(is(word, option.name) && once(option, value.replace(read(self)?).as_ref())?)
    }

    /// Notes an option without a value, if `word` is this option. Returns whether it is.
    #[inline(always)]
    pub(crate) fn flag(word: &[u8], option: Argument, given: &mut bool) -> Result<bool, Error> {
        Ok(is(word, option.name) && once(option, mem::replace(given, true).then_some(&()))?)
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
        self.own_options(
            |word, arguments| Ok(arguments.option(word, AT, &mut at)? || own(word, arguments)?),
        )?;
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

/// Checks that an option had no value before. Returns true.
#[inline(always)]
fn once<T>(option: Argument, before: Option<&T>) -> Result<bool, Error> {
    match before {
        None => Ok(true),
        Some(_) => Err(Error::twice(option.name)),
    }
}

/// The id of a lease or a hold.
#[inline(always)]
pub fn lease_id<'a>(arguments: &mut Arguments<'_, 'a>) -> Result<&'a [u8], Error> {
    caller_name(arguments, ID)
}

/// A name that callers choose, such as the id of a lease.
#[inline(always)]
pub(crate) fn caller_name<'a>(
    arguments: &mut Arguments<'_, 'a>,
    argument: Argument,
) -> Result<&'a [u8], Error> {
    let id = arguments.word(argument.name)?;
    if !(1..=MAX_ID).contains(&id.len()) {
        return Err(Error::invalid(format_args!("{} must be 1 to {MAX_ID} bytes", argument.name)));
    }
    // `LIMIT` and a limiter's name begin the next limit, so the name was left out.
    if arguments.begins_section(id)
        && arguments.peek().is_some_and(|word| is_limiter(without_prefix(word).unwrap_or(word)))
    {
        return Err(Error::missing(argument.name));
    }
    Ok(id)
}

/// The first of these arguments that the words do not have: of those at the beginning of a call or of a limit. The word of an
/// option, or of a section, is no number and no duration.
#[cold]
pub(crate) fn missing(
    mut required: impl Iterator<Item = (&'static str, Values)>,
    words: &[&[u8]],
    section: Option<&'static str>,
) -> Option<&'static str> {
    let begins = |word: &[u8]| option_names().chain(section).any(|option| is(word, option));
    let mut words = words.iter();
    let lacks = |(_, values): &(&str, Values)| match values {
        Values::Flag | Values::Id | Values::Word => words.next().is_none(),
        _ => words.next().is_none_or(|word| begins(word)),
    };
    required.find(lacks).map(|(name, _)| name)
}

/// Whether a word is a limiter's name, in upper or lower case.
#[cold]
pub(crate) fn is_limiter(word: &[u8]) -> bool {
    Kind::ALL.iter().any(|kind| kind.is_limit() && is(word, kind.title().0))
}

/// The name after the prefix `RL.`, if the word has it.
pub fn without_prefix(word: &[u8]) -> Option<&[u8]> {
    let (prefix, name) = word.split_at_checked(3)?;
    prefix.eq_ignore_ascii_case(b"RL.").then_some(name)
}

impl Argument {
    /// The error for a word that is no value in this range.
    #[cold]
    fn refused(&self, word: &[u8], (min, max): (u64, u64)) -> Error {
        let must_be = |what: fmt::Arguments<'_>| Error::must_be(self.name, what, word);
        let number = integer(word);
        match self.values {
            Values::Duration { .. } | Values::DurationFrom(_) => match (number, duration(word)) {
                (Some(1..), _) => {
                    let (name, number) = (self.name, shown(word));
                    let units = format_args!("{number}ms, {number}s or {number}m");
                    Error::invalid(format_args!("{name} needs a unit: {units}"))
                }
                (_, Some(_)) => must_be(format_args!("from {} to {}", Duration(min), Duration(max))),
                _ => must_be(format_args!("a whole number with ms, s, m, h, d or w, such as 90s")),
            },
            // A small number is probably in seconds or milliseconds.
            Values::Instant if number.is_none_or(|micros| micros <= max) => {
                must_be(format_args!("Unix time in microseconds"))
            }
            Values::Real { .. } => {
                let error = must_be(format_args!("a number from {min} to {max}"));
                match word.strip_suffix(b"%").and_then(integer) {
                    Some(percent) if percent <= max.saturating_mul(100) => {
                        error.and(&format!("; {percent} % is {}.{:02}", percent / 100, percent % 100))
                    }
                    _ => error,
                }
            }
            Values::Setting(setting) => must_be(format_args!("an integer from {min} to {max} ({setting})")),
            Values::Seconds => must_be(format_args!("an integer from {min} to {max}, in seconds")),
            _ => must_be(format_args!("an integer from {min} to {max}")),
        }
    }

    /// The value that is given, or the default.
    #[inline(always)]
    pub(crate) fn or<T: Read>(self, given: Option<T>) -> Result<T, Error> {
        match (given, self.default) {
            (Some(given), _) => Ok(given),
            (None, Some(default)) => read(default),
            (None, None) => Err(Error::Internal),
        }
    }
}

/// A value that has the type of its argument.
#[inline(always)]
fn read<T: Read>(value: Value) -> Result<T, Error> {
    match T::of(value) {
        Some(value) => Ok(value),
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
