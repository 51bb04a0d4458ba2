//! What the caller of a wrong call may have meant: the call with one change, if that is right.
//!
//! The word at which the parser stopped is replaced by words that people mean by such a word. Each of these calls is parsed, and the
//! first that is right is proposed. So what is proposed parses, in whatever command the word stands.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::argument::Values;
use crate::arguments::{Arguments, is, without_prefix};
use crate::calls::OUTCOMES;
use crate::check::{WrongCall, check};
use crate::docs;
use crate::error::Error;
use crate::help::Documentation;
use crate::keys::Keys;
use crate::meant::{MEANT, is_like_an_option};
use crate::number::{DAY, Duration, SECOND, duration, integer};
use crate::shown::nearest;
#[cfg(feature = "zones")]
use crate::shown::nearest_within;
use crate::vocabulary::{
    AT, COST, COUNT, HOLDERS, LAST, LEASE_ID, OF, PREVIOUS, RESET, TRIED_KEY, TZ, UNITS, option_names,
};

/// The most changes of a call that are tried.
const MOST_TRIED: usize = 32;
/// The longest word that is changed or shown, and the longest call.
const LONGEST: usize = 64;
const LONGEST_CALL: usize = 160;
/// Shorter names of zones are all near to one another.
#[cfg(feature = "zones")]
const SHORTEST_ZONE: usize = 5;
/// The shortest name of a city in which two letters may be wrong.
#[cfg(feature = "zones")]
const SHORTEST_CHANGED: usize = 8;

/// Other words for units of a calendar.
const UNITS_MEANT: [(&str, &str); 8] = [
    ("HOURLY", "HOUR"),
    ("DAILY", "DAY"),
    ("WEEKLY", "WEEK"),
    ("MONTHLY", "MONTH"),
    ("MO", "MONTH"),
    ("QUARTERLY", "QUARTER"),
    ("YEARLY", "YEAR"),
    ("ANNUAL", "YEAR"),
];

/// Several units of a calendar that are one other unit.
const LONGER_UNITS: [(&str, &str, &str); 4] =
    [("24", "HOUR", "DAY"), ("7", "DAY", "WEEK"), ("3", "MONTH", "QUARTER"), ("12", "MONTH", "YEAR")];

/// Units of durations, and other words for them.
const DURATIONS: [(&str, &[&str]); 6] = [
    ("ms", &["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("m", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("d", &["d", "day", "days"]),
    ("w", &["w", "week", "weeks"]),
];

/// Limiters of a limit and a window.
const WINDOWS: [&str; 3] = ["FIXEDWINDOW", "SLIDINGWINDOW", "SLIDINGLOG"];
const CALENDAR: &str = "CALENDAR";

/// The change of a wrong call that makes it right, as a text that follows its error.
pub(crate) fn guess(error: &Error, call: &WrongCall<'_>) -> Option<String> {
    let mut arguments = Arguments::new(call.words, call.bounds);
    // If the parser stops at another error than the command, as for a missing policy, its last word is not the wrong one.
    check(call.command, &mut arguments, call.asks).err().filter(|found| found == error)?;
    // The last word that was read.
    let at = call.words.len().checked_sub(arguments.rest().len())?.checked_sub(1)?;
    let mut changes = Changes { call, at, is_unknown: error.is_of_an_unknown_word(), tried: 0, found: None };
    changes.look();
    changes.found
}

/// Tries changes of a call, those that are meant most likely first.
struct Changes<'c> {
    call: &'c WrongCall<'c>,
    at: usize,
    /// Whether no argument may stand there. Otherwise one stands there, and its value is wrong.
    is_unknown: bool,
    tried: usize,
    /// The text of the first change that is right. No further one is tried.
    found: Option<String>,
}

impl Changes<'_> {
    fn word(&self, at: Option<usize>) -> Option<&str> {
        plain(self.call.words.get(at?)?)
    }

    fn look(&mut self) {
        // Of a wrong word, what cannot be seen may be what is wrong.
        let Some(word) = self.call.words.get(self.at).filter(|word| word.len() <= LONGEST) else { return };
        let seen: Vec<u8> = word.iter().copied().filter(u8::is_ascii_graphic).collect();
        let word = String::from_utf8(seen).unwrap_or_default();
        let next = self.word(self.at.checked_add(1)).map(str::to_owned);
        let next = next.as_deref();
        let before = self.word(self.at.checked_sub(1)).map(str::to_owned).unwrap_or_default();
        self.durations(&word, next);
        self.units(&word, next);
        if is(before.as_bytes(), TZ.name) {
            for zone in zones(&word) {
                self.replace(1, &[&zone]);
            }
        }
        if let Some(number) = integer(word.as_bytes()) {
            if is(before.as_bytes(), AT.name) {
                for factor in [1000, 1_000_000] {
                    self.replace(1, &[&format!("{}", number.saturating_mul(factor))]);
                }
            }
            // An option that is there already was taken for a key or an id.
            for option in [COST, COUNT].into_iter().filter(|option| !is(before.as_bytes(), option.name)) {
                self.replace(1, &[option.name, &word]);
            }
        }
        if let Some((name, value)) = word.split_once(['=', ':']) {
            for option in self.options(name) {
                self.replace(1, &[option, value]);
            }
        }
        for option in self.options(&word) {
            self.replace(1, &[option]);
        }
        if self.at == 0 {
            self.number_of_keys();
        }
        if let Some(next) = next.filter(|_| self.word(Some(self.at)).is_some()) {
            let words = [next.into(), word];
            self.whole(2, &words, "; did you mean ", "?");
        }
    }

    /// The words of the language that may be meant by a word: those that it is another word for, and the nearest ones. Values are
    /// units and outcomes only.
    fn options(&self, word: &str) -> Vec<&'static str> {
        let word = word.trim_start_matches('-').as_bytes();
        // A limiter's name with the prefix has an error of its own.
        let word = without_prefix(word).filter(|name| docs::find(name).is_none()).unwrap_or(word);
        let others =
            [LEASE_ID, HOLDERS, RESET, COUNT, PREVIOUS, OF, LAST, TRIED_KEY].map(|argument| argument.name);
        let commands = docs::all().filter(|command| command.is_own()).map(|command| command.name);
        let words = option_names().chain(others).chain(commands).filter(|_| self.is_unknown);
        let values = OUTCOMES.iter().map(|(name, _)| *name).chain(UNITS.iter().map(|(name, _)| *name));
        let known: Vec<&str> = words.chain(values).collect();
        let of_others = MEANT.iter().filter(|(other, option)| is(word, other) && known.contains(option));
        let mut meant: Vec<&str> = of_others.map(|(_, option)| *option).collect();
        meant.extend(nearest(word, known.into_iter()).into_iter().take(8));
        meant
    }

    /// The number of keys in front of them: those before the first option or limit. No proposal makes an option a key.
    fn number_of_keys(&mut self) {
        let WrongCall { command, words, .. } = *self.call;
        let is_known = |word: &&&[u8]| option_names().any(|option| is(word, option));
        let before: Vec<&&[u8]> = words.iter().take_while(|word| !is_known(word)).collect();
        let (Keys::Counted(_), Some((first, others))) = (command.keys, before.split_first()) else { return };
        if others.iter().any(|word| is_like_an_option(word) || integer(word).is_some()) {
            return;
        }
        let Some(first) = plain(first).map(str::to_owned) else { return };
        let ids = usize::from([docs::MULTISETTLE.name, docs::MULTIRELEASE.name].contains(&command.name));
        let keys = others.len().saturating_sub(ids);
        let new = match first.bytes().next() {
            Some(b'0'..=b'9' | b'+' | b'-') => vec![format!("{keys}")],
            _ => vec![format!("{}", keys.saturating_add(1)), first],
        };
        self.whole(1, &new, "; did you mean ", "?");
    }

    /// `60sec`, `60 s` and `minute` for `60s` and `1m`; `60s` for 60 seconds.
    fn durations(&mut self, word: &str, next: Option<&str>) {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = word.split_at_checked(digits).unwrap_or((word, ""));
        if let Some(unit) = unit_of(unit) {
            let number = if number.is_empty() { "1" } else { number };
            self.replace(1, &[&format!("{number}{unit}")]);
        }
        if unit.is_empty()
            && let Some(unit) = next.and_then(unit_of)
        {
            self.replace(2, &[&format!("{number}{unit}")]);
        }
        if let Some(millis) = duration(word.as_bytes()).filter(|_| self.wants_seconds())
            && millis.is_multiple_of(SECOND)
        {
            self.replace(1, &[&format!("{}", millis / SECOND)]);
        }
        if let Some(millis) = decimal(word) {
            self.replace(1, &[&format!("{}", Duration(millis))]);
        }
    }

    /// Whether the wrong word stands for a number of seconds.
    fn wants_seconds(&self) -> bool {
        let parts = self.call.command.parts();
        parts.get(self.at).is_some_and(|part| part.token.is_none() && part.values() == Values::Seconds)
    }

    /// `MONTHLY` and `1 MONTH` for `MONTH`, and a window of a month for the calendar's.
    fn units(&mut self, word: &str, next: Option<&str>) {
        let hours = [(DAY / 24, "HOUR"), (DAY, "DAY"), (7 * DAY, "WEEK")];
        let millis = duration(word.as_bytes());
        let of_duration = hours.into_iter().find(|(length, _)| Some(*length) == millis);
        if let Some(unit) = calendar_unit(word).or(of_duration.map(|(_, unit)| unit)) {
            self.replace(1, &[unit]);
            self.calendar(1, unit);
        }
        let Some(unit) = next.and_then(calendar_unit) else { return };
        let longer = LONGER_UNITS.into_iter().find(|(number, of, _)| (*number, *of) == (word, unit));
        let unit = match (word, longer) {
            ("1", _) => unit,
            (_, Some((.., longer))) => longer,
            _ => return,
        };
        self.whole(2, &[unit.into()], "; a window is one unit: ", "");
        self.calendar(2, unit);
    }

    /// Makes a window one of a calendar. Its unit replaces the next `count` words.
    fn calendar(&mut self, count: usize, unit: &str) {
        let WrongCall { command, words, .. } = *self.call;
        let is_window = |name: &[u8]| WINDOWS.iter().any(|window| is(name, window));
        let Some(own) = docs::find(CALENDAR.as_bytes()) else { return };
        if is_window(command.name.as_bytes()) {
            let Some(changed) = self.changed(count, &[unit.into()]) else { return };
            if let Some(shown) = shown(own, &changed) {
                self.try_out(own, &changed, || format!("; did you mean {shown}?"));
            }
        } else if let Some(limiter) = self.at.checked_sub(2)
            && words.get(limiter).is_some_and(|name| is_window(name))
            && let Some(limit) = self.word(limiter.checked_add(1)).map(str::to_owned)
        {
            let at = core::mem::replace(&mut self.at, limiter);
            self.replace(2 + count, &[CALENDAR, &limit, unit]);
            self.at = at;
        }
    }

    /// Replaces the next `count` words, and proposes the new ones.
    fn replace(&mut self, count: usize, new: &[&str]) {
        let words: Vec<String> = new.iter().map(|word| (*word).into()).collect();
        let Some(words) = self.changed(count, &words) else { return };
        self.try_out(self.call.command, &words, || format!("; did you mean {}?", new.join(" ")));
    }

    /// Replaces the next `count` words, and proposes the whole call.
    fn whole(&mut self, count: usize, new: &[String], before: &str, after: &str) {
        let command = self.call.command;
        let Some(words) = self.changed(count, new) else { return };
        if let Some(shown) = shown(command, &words) {
            self.try_out(command, &words, || format!("{before}{shown}{after}"));
        }
    }

    /// Parses a changed call. If it is right, the text proposes it.
    fn try_out(&mut self, command: &Documentation, words: &[String], text: impl FnOnce() -> String) {
        self.tried += 1;
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        self.found = self.call.parses(command, &words).then(text);
    }

    /// The call with `new` in place of the next `count` words. `None` if it has words that are long or no text, or if enough was
    /// tried.
    fn changed(&self, count: usize, new: &[String]) -> Option<Vec<String>> {
        if self.found.is_some() || self.tried == MOST_TRIED {
            return None;
        }
        let words = self.call.words;
        let before = words.get(..self.at)?.iter().map(|word| plain(word).map(str::to_owned));
        let after =
            words.get(self.at.checked_add(count)?..)?.iter().map(|word| plain(word).map(str::to_owned));
        before.chain(new.iter().cloned().map(Some)).chain(after).collect()
    }
}

/// A whole call; `None` if it is too long.
fn shown(command: &Documentation, words: &[String]) -> Option<String> {
    let shown = format!("{} {}", command.full_name(), words.join(" "));
    (shown.len() <= LONGEST_CALL).then_some(shown)
}

/// A word that can be shown as it is.
fn plain(word: &[u8]) -> Option<&str> {
    let is_plain = (1..=LONGEST).contains(&word.len()) && word.iter().all(u8::is_ascii_graphic);
    str::from_utf8(word).ok().filter(|_| is_plain)
}

/// The unit of a duration that a word means.
fn unit_of(word: &str) -> Option<&'static str> {
    // A capital M alone may be a month.
    let means = |other: &&str| word.eq_ignore_ascii_case(other) && word != "M";
    DURATIONS.iter().find(|(_, others)| others.iter().any(means)).map(|(unit, _)| *unit)
}

/// A duration with a decimal point, in milliseconds.
fn decimal(word: &str) -> Option<u64> {
    let (whole, rest) = word.split_once('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (part, unit) = rest.split_at_checked(digits)?;
    let unit = duration(format!("1{}", unit_of(unit)?).as_bytes())?;
    let scale = 10_u64.checked_pow(u32::try_from(digits).ok()?)?;
    let parts = whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(part.parse().ok()?)?;
    let millis = parts.checked_mul(unit)?;
    millis.is_multiple_of(scale).then_some(millis / scale)
}

/// The unit of a calendar that a word means.
fn calendar_unit(word: &str) -> Option<&'static str> {
    let word = word.strip_prefix('1').unwrap_or(word);
    let word = if word.len() > 3 { word.strip_suffix(['s', 'S']).unwrap_or(word) } else { word };
    let units = UNITS.iter().map(|(unit, _)| (*unit, *unit)).chain(UNITS_MEANT);
    units.into_iter().find(|(other, _)| is(word.as_bytes(), other)).map(|(_, unit)| unit)
}

/// The time zones that a word may mean: an offset, the zone of a city, or the nearest names.
fn zones(word: &str) -> Vec<String> {
    offset(word).into_iter().chain(named_zones(word)).collect()
}

#[cfg(not(feature = "zones"))]
fn named_zones(_: &str) -> Vec<String> {
    Vec::new()
}

#[cfg(feature = "zones")]
fn named_zones(word: &str) -> Vec<String> {
    let names = ratelimit_zones::names();
    let is_meant = |name: &str| letters(name).eq(letters(word));
    let of_city = |name: &&String| is_meant(city(name)) || is_meant(name);
    let mut meant: Vec<String> = names.iter().filter(of_city).take(2).cloned().collect();
    if word.len() < SHORTEST_ZONE {
        return meant;
    }
    // Two letters from a short name is another city.
    let most = if city(word).len() < SHORTEST_CHANGED { 1 } else { 2 };
    let near = nearest_within(most, word.as_bytes(), names.iter().map(|name| &**name));
    meant.extend(near.into_iter().take(2).map(Into::into));
    let cities = nearest_within(most, word.as_bytes(), names.iter().map(|name| city(name)));
    let of_near = |name: &&String| cities.first().is_some_and(|near| city(name) == *near);
    meant.extend(names.iter().filter(of_near).take(1).cloned());
    meant
}

/// The part of a zone's name that is a city.
#[cfg(feature = "zones")]
fn city(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A name without what may stand between its words.
#[cfg(feature = "zones")]
fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(u8::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase())
}

/// `UTC+2`, `GMT-3` and `+2` for `+02:00` and `-03:00`.
fn offset(word: &str) -> Option<String> {
    let word = word.strip_prefix("UTC").or(word.strip_prefix("GMT")).unwrap_or(word);
    let (sign, hours) = word.split_at_checked(1).filter(|(sign, _)| ["+", "-"].contains(sign))?;
    let (hours, minutes) = hours.split_once(':').unwrap_or((hours, "00"));
    let hours = if hours.len() > 1 { hours.into() } else { format!("0{hours}") };
    Some(format!("{sign}{hours}:{minutes}"))
}
