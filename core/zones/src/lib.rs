//! The windows of a calendar: hours, days, weeks, months, quarters and years in a time zone.
//!
//! # What a window is
//!
//! A window's name is the local date on which it begins, with the hour of the anchor if it is a day that has one; that of an
//! hour is a local hour. Window `n` begins at the first instant whose local time is at or after its name, and it ends where
//! window `n + 1` begins. So:
//!
//! - A date that returns because the clock is set back does not begin a second time.
//! - A date that is skipped has no window. A day that begins at an hour and is skipped would last from the skip to the hour of
//!   the next, so it is left out, and the day before it goes on until then.
//! - A midnight or hour that is skipped does not delay the day: the day begins at the skip.
//!
//! ```text
//! Europe/Berlin, days
//!
//! 2025-03-30    23 hours, from 2025-03-29T23:00Z
//! 2025-10-26    25 hours, from 2025-10-25T22:00Z
//! ```
//!
//! The last window ends with the year 9999 in UTC.
//!
//! The zones are those of the IANA database, which is compiled in: the machine's own is never read, so all nodes agree.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::OnceLock;

use jiff::civil::{Date, DateTime, Time as Clock, Weekday};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp, ToSpan};
use ratelimit_core::Time;
use ratelimit_core::limiter::{Unit, Zone};

/// The end of the year 9999 in UTC, in microseconds since the epoch.
const END: i64 = Time::END.as_micros().cast_signed();

/// A time zone that a call has named. It lives as long as the process: there are some six hundred names and less than
/// two thousand offsets.
struct Named {
    /// In lower case.
    name: Box<[u8]>,
    id: u64,
    zone: TimeZone,
}

/// The zones that were named: an open-addressing table by id. It has room for more than all of them.
static NAMED: [OnceLock<Named>; 4096] = [const { OnceLock::new() }; 4096];

/// No zone has a longer name.
const LONGEST_NAME: usize = 64;

/// UTC.
pub fn utc() -> Option<&'static dyn Zone> {
    static UTC: OnceLock<Option<&'static dyn Zone>> = OnceLock::new();
    *UTC.get_or_init(|| find(b"UTC"))
}

/// The time zone of this name, in upper or lower case: `UTC`, an offset from `-14:00` to `+14:00`, or a name of the IANA
/// database.
pub fn find(name: &[u8]) -> Option<&'static dyn Zone> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let id = hash(name);
    let first = usize::try_from(id).unwrap_or_default();
    let places = (0..NAMED.len()).filter_map(|step| NAMED.get(first.wrapping_add(step) % NAMED.len()));
    for place in places {
        // Another thread may take the place meanwhile, so it is looked at again.
        if place.get().is_none() {
            let named = Named { name: name.to_ascii_lowercase().into(), id, zone: parse(name)? };
            _ = place.set(named);
        }
        match place.get() {
            Some(named) if named.id == id && named.name.eq_ignore_ascii_case(name) => return Some(named),
            _ => {}
        }
    }
    None
}

/// The names of the IANA database.
pub fn names() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect()
    })
}

/// A hash of a name that does not depend on the case of its letters. States store it, so it must never change.
fn hash(name: &[u8]) -> u64 {
    // The bit that distinguishes a lower case letter is set in digits and signs too.
    const LOWER: u64 = 0x2020_2020_2020_2020;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = name.as_chunks();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    let add = |hash: u64, word: &[u8; 8]| {
        let mixed = (hash ^ (u64::from_le_bytes(*word) | LOWER)).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 29)
    };
    add(words.iter().fold(name.len() as u64, add), &last)
}

fn parse(name: &[u8]) -> Option<TimeZone> {
    if name.starts_with(b"+") || name.starts_with(b"-") {
        return offset(name);
    }
    // The library also has a name for a zone that is not known.
    TimeZoneDatabase::bundled().get(str::from_utf8(name).ok()?).ok().filter(|zone| !zone.is_unknown())
}

/// `+hh:mm` or `-hh:mm`, up to 14 hours.
fn offset(text: &[u8]) -> Option<TimeZone> {
    let [sign, h1, h2, b':', m1, m2] = text else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i32::from(byte - b'0'));
    let (hours, minutes) = (digit(h1)? * 10 + digit(h2)?, digit(m1)? * 10 + digit(m2)?);
    let seconds = hours * 3600 + minutes * 60;
    if minutes > 59 || seconds > FURTHEST {
        return None;
    }
    let offset = Offset::from_seconds(if *sign == b'-' { -seconds } else { seconds }).ok()?;
    Some(offset.to_time_zone())
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name.escape_ascii())
    }
}

/// The furthest fixed offset, in seconds.
const FURTHEST: i32 = 14 * 3600;
/// More than any offset from UTC, in microseconds.
const FAR: i64 = 26 * 3600 * SECOND;
const SECOND: i64 = 1_000_000;

impl Zone for Named {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    fn window(&self, unit: Unit, at: Time) -> (Time, Time) {
        let at = i64::try_from(at.as_micros()).unwrap_or(END).min(END - 1);
        let mut name = floor(unit, self.zone.to_datetime(instant(at)));
        while self.is_skipped(unit, name) {
            name = floor(unit, name.saturating_sub(1.second()));
        }
        let mut start = self.first(name);
        loop {
            let mut next = following(unit, name);
            while let Some(skipped) = next.filter(|next| self.is_skipped(unit, *next)) {
                next = following(unit, skipped);
            }
            let end = next.map_or(END, |next| self.first(next).min(END));
            match next {
                // A later window has begun already: the local date has returned, or the database ends before `at`.
                Some(next) if end <= at => (name, start) = (next, end),
                _ => return (time(start), time(end)),
            }
        }
    }

    fn show(&self, at: Time, out: &mut dyn fmt::Write) -> fmt::Result {
        let at = instant(i64::try_from(at.as_micros()).unwrap_or(END));
        let (local, offset) = (self.zone.to_datetime(at), self.zone.to_offset(at).seconds());
        let (date, clock) = (local.date(), local.time());
        write!(out, "{date} {:02}:{:02}", clock.hour(), clock.minute())?;
        if clock.second() > 0 {
            write!(out, ":{:02}", clock.second())?;
        }
        // Offsets before the zones of today have seconds, which are left out.
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
        write!(out, " {sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Named {
    /// The offset from UTC, in microseconds.
    fn offset(&self, at: i64) -> i64 {
        i64::from(self.zone.to_offset(instant(at)).seconds()) * SECOND
    }

    /// Whether the name is of a day that begins at an hour, and no instant has its date.
    fn is_skipped(&self, unit: Unit, name: DateTime) -> bool {
        let begins_at_an_hour = matches!(unit, Unit::Day(hour) if hour > 0);
        begins_at_an_hour && {
            let midnight = name.date().to_datetime(Clock::midnight());
            self.zone.to_datetime(instant(self.first(midnight))).date() > name.date()
        }
    }

    /// The first instant whose local time is at or after `name`.
    fn first(&self, name: DateTime) -> i64 {
        let name = micros(name);
        // No zone is this far ahead, so here the local time is before the name.
        let mut start = name - FAR;
        loop {
            // The local time runs evenly up to the next transition.
            let reaches = (name - self.offset(start)).max(start);
            let transition = self.zone.following(instant(start)).next();
            match transition.map(|transition| transition.timestamp().as_microsecond()) {
                Some(next) if next <= reaches => start = next,
                _ => return reaches,
            }
        }
    }
}

/// The name of the window that contains a local time.
fn floor(unit: Unit, local: DateTime) -> DateTime {
    let date = local.date();
    let named = match unit {
        Unit::Hour => return date.to_datetime(Clock::constant(local.hour(), 0, 0, 0)),
        Unit::Day(hour) => {
            let this = at_hour(date, hour);
            let named = if this <= local {
                Some(this)
            } else {
                date.yesterday().ok().map(|date| at_hour(date, hour))
            };
            return named.unwrap_or(DateTime::MIN);
        }
        Unit::Week(first) => date.checked_sub(days_since(date.weekday(), first).days()).ok(),
        Unit::Month(day) => {
            let this = in_month(date, day);
            if this <= date { Some(this) } else { months_later(date, -1).map(|month| in_month(month, day)) }
        }
        Unit::Quarter => months_later(date, -i64::from((date.month() - 1) % 3)),
        Unit::Year => months_later(date, -i64::from(date.month() - 1)),
    };
    named.unwrap_or(Date::MIN).to_datetime(Clock::midnight())
}

/// The name of the next window; `None` after the year 9999.
fn following(unit: Unit, name: DateTime) -> Option<DateTime> {
    let date = name.date();
    let next = match unit {
        Unit::Hour => return name.checked_add(Span::new().hours(1)).ok(),
        Unit::Day(hour) => return date.tomorrow().ok().map(|date| at_hour(date, hour)),
        Unit::Week(_) => date.checked_add(Span::new().days(7)).ok(),
        Unit::Month(day) => months_later(date, 1).map(|month| in_month(month, day)),
        Unit::Quarter => months_later(date, 3),
        Unit::Year => months_later(date, 12),
    };
    next.map(|date| date.to_datetime(Clock::midnight()))
}

/// This hour of a date.
fn at_hour(date: Date, hour: u8) -> DateTime {
    date.to_datetime(Clock::constant(hour.cast_signed(), 0, 0, 0))
}

/// The days since the last weekday with this number.
fn days_since(weekday: Weekday, first: u8) -> i64 {
    (i64::from(weekday.to_monday_one_offset()) - i64::from(first)).rem_euclid(7)
}

/// This day of the month of a date, or the month's last.
fn in_month(date: Date, day: u8) -> Date {
    let day = i8::try_from(day).unwrap_or(i8::MAX).min(date.days_in_month());
    Date::new(date.year(), date.month(), day).unwrap_or(date)
}

/// The first day of the month that is a number of months after that of a date.
fn months_later(date: Date, months: i64) -> Option<Date> {
    date.first_of_month().checked_add(Span::new().months(months)).ok()
}

/// A local time in microseconds since the epoch of the same local time in UTC.
fn micros(local: DateTime) -> i64 {
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    let since = local.duration_since(epoch);
    since.as_secs() * SECOND
}

/// The instant, or the nearest that the database knows: its last is 9999-12-30T22:00Z.
fn instant(at: i64) -> Timestamp {
    Timestamp::from_microsecond(at).unwrap_or(if at < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

fn time(at: i64) -> Time {
    Time::from_micros(at.try_into().unwrap_or_default())
}
