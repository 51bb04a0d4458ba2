//! The windows of twenty zones against another library and its own copy of the database.
//!
//! By definition an instant lies in the window with the latest name that any local time up to it has reached. So the
//! tests step through time, keep that name, and compare.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use ratelimit_core::Time;
use ratelimit_core::limiter::{Unit, Zone};
use ratelimit_zones::find;

/// The end of the year 9999 in UTC, in microseconds.
const END: i64 = Time::END.as_micros().cast_signed();

const ZONES: [&str; 20] = [
    "Europe/Berlin",
    "Europe/Lisbon",
    "Atlantic/Azores",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Asuncion",
    "America/Santiago",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Gaza",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Antarctica/Troll",
];
const UNITS: [Unit; 11] = [
    Unit::Hour,
    Unit::Day(0),
    Unit::Day(2),
    Unit::Day(23),
    Unit::Week(1),
    Unit::Week(7),
    Unit::Month(1),
    Unit::Month(29),
    Unit::Month(31),
    Unit::Quarter,
    Unit::Year,
];
const SECOND: i64 = 1_000_000;

/// The window in microseconds.
fn window_of(zone: &dyn Zone, unit: Unit, at: i64) -> std::ops::Range<i64> {
    let (start, end) = zone.window(unit, Time::from_micros(at.try_into().unwrap()));
    let micros = |time: Time| i64::try_from(time.as_micros()).unwrap();
    micros(start)..micros(end)
}

fn local(zone: Tz, at: i64) -> NaiveDateTime {
    let utc = DateTime::<Utc>::from_timestamp_micros(at).unwrap().naive_utc();
    utc + zone.offset_from_utc_datetime(&utc).fix()
}

/// The name of the window that contains an instant, by chrono.
fn name(zone: Tz, unit: Unit, at: i64) -> NaiveDateTime {
    let local = local(zone, at);
    let date = local.date();
    let month_of = |year: i32, month: u32, day: u32| {
        let last = (28..=31).rev().find(|day| NaiveDate::from_ymd_opt(year, month, *day).is_some()).unwrap();
        NaiveDate::from_ymd_opt(year, month, day.min(last)).unwrap()
    };
    let named = match unit {
        Unit::Hour => return date.and_hms_opt(local.hour(), 0, 0).unwrap(),
        Unit::Day(hour) => {
            let mut date = (local - chrono::Duration::hours(hour.into())).date();
            while hour > 0 && is_skipped(zone, date) {
                date = date.pred_opt().unwrap();
            }
            return date.and_hms_opt(hour.into(), 0, 0).unwrap();
        }
        Unit::Week(first) => {
            let back = (i64::from(date.weekday().number_from_monday()) - i64::from(first)).rem_euclid(7);
            date - chrono::Duration::days(back)
        }
        Unit::Month(day) => {
            let this = month_of(date.year(), date.month(), day.into());
            let before =
                if date.month() == 1 { (date.year() - 1, 12) } else { (date.year(), date.month() - 1) };
            if this <= date { this } else { month_of(before.0, before.1, day.into()) }
        }
        Unit::Quarter => month_of(date.year(), (date.month() - 1) / 3 * 3 + 1, 1),
        Unit::Year => month_of(date.year(), 1, 1),
    };
    named.and_hms_opt(0, 0, 0).unwrap()
}

/// Whether no quarter of an hour of a date has an instant.
fn is_skipped(zone: Tz, date: NaiveDate) -> bool {
    let has = |minute: u32| {
        let local = date.and_hms_opt(minute / 60, minute % 60, 0).unwrap();
        zone.from_local_datetime(&local).earliest().is_some()
    };
    !has(12 * 60) && !(0..24 * 60).step_by(15).any(has)
}

/// The instants at which the offset changes, by chrono, to the second.
fn transitions(zone: Tz, from: i64, to: i64) -> Vec<i64> {
    let offset = |at: i64| local(zone, at) - DateTime::<Utc>::from_timestamp_micros(at).unwrap().naive_utc();
    let step = 6 * 3600 * SECOND;
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        if offset(at) != offset(at + step) {
            let (mut low, mut high) = (at, at + step);
            while high - low > SECOND {
                let middle = low + (high - low) / SECOND / 2 * SECOND;
                if offset(middle) == offset(at) { low = middle } else { high = middle }
            }
            found.push(high);
        }
        at += step;
    }
    found
}

fn year(year: i32) -> i64 {
    NaiveDate::from_ymd_opt(year, 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp_micros()
}

/// Whether both libraries know the same offsets for a year around a transition.
fn databases_agree(zone: &str, other: Tz, transition: i64) -> bool {
    let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone).unwrap();
    (-400 * 24..400 * 24).step_by(6).all(|hour| {
        let at = transition + hour * 3600 * SECOND;
        let offset = local(other, at) - DateTime::<Utc>::from_timestamp_micros(at).unwrap().naive_utc();
        i64::from(zone.to_offset(jiff::Timestamp::from_microsecond(at).unwrap()).seconds())
            == offset.num_seconds()
    })
}

/// Steps through time around a transition, and compares some instants' windows.
fn compare(zone: &dyn Zone, other: Tz, unit: Unit, transition: i64) {
    const MINUTE: i64 = 60 * SECOND;
    // By the minute where a clock may be set back, and by the hour far from it.
    let hours = |hours: std::ops::Range<i64>| hours.map(|hour| hour * 60 * MINUTE);
    let near = (-180..=180).map(|minute| minute * MINUTE);
    let mut instants: Vec<i64> =
        hours(-48..-3).chain(near).chain(hours(4..36)).chain([-1, 1, SECOND]).collect();
    instants.sort_unstable();
    let of = |at: i64| name(other, unit, at);
    let mut latest = of(transition + instants[0]);
    for since in instants {
        let at = transition + since;
        if at < 0 {
            continue;
        }
        latest = latest.max(of(at));
        let compared = since % (15 * MINUTE) == 0 && since.abs() <= 180 * MINUTE
            || since % (240 * MINUTE) == 0
            || since.abs() <= SECOND;
        if !compared || since < -36 * 60 * MINUTE {
            continue;
        }
        let window = window_of(zone, unit, at);
        assert!(window.contains(&at), "{other} {unit:?} {at}: {window:?}");
        // The window begins where the name is first reached, and ends where a later one is.
        assert!(of(window.start) >= latest, "{other} {unit:?} {at}: begins too early, {window:?}");
        // No instant is before 1970.
        let earlier = window.start > 0 && of(window.start - 1) >= latest;
        assert!(!earlier, "{other} {unit:?} {at}: begins too late, {window:?}");
        assert!(of(window.end) > latest, "{other} {unit:?} {at}: ends too early, {window:?}");
        assert!(of(window.end - 1) <= latest, "{other} {unit:?} {at}: ends too late, {window:?}");
    }
}

#[test]
fn the_windows_around_every_transition_are_those_of_another_library() {
    let (mut checked, mut disputed) = (0, Vec::new());
    for text in ZONES {
        let zone = find(text.as_bytes()).expect("a zone");
        let other: Tz = text.parse().expect("a zone there too");
        for transition in transitions(other, year(1970), year(2098)) {
            if !databases_agree(text, other, transition) {
                disputed.push((text, transition));
                continue;
            }
            checked += 1;
            for unit in UNITS {
                compare(zone, other, unit, transition);
            }
        }
    }
    println!("{checked} transitions, and {} that the databases place at different instants", disputed.len());
    // The libraries carry databases of different years. Iran's of 1979 and Morocco's after 2026 were changed.
    assert!(
        disputed.iter().all(|(zone, _)| ["Africa/Casablanca", "Asia/Tehran", "Asia/Gaza"].contains(zone)),
        "{disputed:?}"
    );
    assert!(checked > 3000, "{checked}");
}

#[test]
fn the_windows_of_every_day_follow_one_another() {
    for text in ZONES {
        let zone = find(text.as_bytes()).unwrap();
        for unit in UNITS.into_iter().filter(|unit| *unit != Unit::Hour) {
            let mut window = window_of(zone, unit, year(1970));
            while window.start < year(2101) {
                let next = window_of(zone, unit, window.end);
                assert_eq!(next.start, window.end, "{text} {unit:?}");
                assert_eq!(window_of(zone, unit, window.end - 1), window);
                window = next;
            }
        }
    }
}

#[test]
fn the_last_window_ends_with_the_year_9999() {
    for text in ["UTC", "+14:00", "-14:00", "Pacific/Kiritimati", "America/New_York"] {
        let zone = find(text.as_bytes()).unwrap();
        for unit in UNITS {
            let window = window_of(zone, unit, END - 1);
            assert_eq!(window.end, END, "{text} {unit:?}");
            assert!(window.start < END, "{text} {unit:?} {window:?}");
            assert!(window_of(zone, unit, 1_000_000_000_000_000).contains(&1_000_000_000_000_000));
        }
    }
}

#[test]
fn zones_are_names_of_the_database_and_offsets() {
    for good in [
        "UTC",
        "utc",
        "Europe/Berlin",
        "europe/BERLIN",
        "+00:00",
        "-00:00",
        "+14:00",
        "-14:00",
        "+05:45",
        "Etc/GMT+5",
    ] {
        assert!(find(good.as_bytes()).is_some(), "{good}");
    }
    for bad in [
        "",
        "+",
        "+2:00",
        "+02",
        "+0200",
        "+02:60",
        "+14:01",
        "-15:00",
        "+ab:cd",
        "02:00",
        "Berlin",
        "Europe/",
        "local",
        "Etc/Unknown",
        "../UTC",
        "+02:0",
        "Europe/Berlin ",
    ] {
        assert!(find(bad.as_bytes()).is_none(), "{bad}");
    }
}

/// A state stores the hash of zone, unit and anchor. Unit and anchor change its lowest bits.
#[test]
fn no_two_zones_have_the_same_hash() {
    let database = jiff::tz::TimeZoneDatabase::bundled();
    let names = database.available().map(|name| name.to_string());
    let minutes = -14 * 60..=14 * 60i32;
    let offsets = minutes.map(|minutes| {
        let sign = if minutes < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    });
    let (mut hashes, mut zones) = (std::collections::HashSet::new(), 0);
    for name in names.chain(offsets) {
        let zone = find(name.as_bytes()).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(zone.id(), find(name.to_uppercase().as_bytes()).unwrap().id());
        zones += 1;
        assert!(hashes.insert(zone.id() >> 12), "{name}");
    }
    assert!(zones > 2200, "{zones}");
}
