//! `RL.CALENDAR`: where its windows begin and end in a time zone, and what a change of zone, anchor or unit keeps.

use redis::Connection;

use crate::support::debt::line;
use crate::support::{AOF_AT_ONCE, LATEST, SECOND, Server, T0, dump, ints, last_payload, multi, sync, text};

/// The instant `2025-01-31T23:30` in UTC, in microseconds.
fn utc(text: &str) -> u64 {
    let number = |from: usize, to: usize| text[from..to].parse::<u64>().unwrap();
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let years = (1970..year).map(|year| if leap(year) { 366 } else { 365 });
    let months = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days = years.sum::<u64>() + months.iter().zip(1..month).map(|(days, _)| days).sum::<u64>() + day - 1;
    ((days * 24 + number(11, 13)) * 60 + number(14, 16)) * 60 * SECOND
}

fn millis(micros: u64) -> i64 {
    i64::try_from(micros.div_ceil(1000)).unwrap()
}

/// Checks that windows begin at these instants and at no other.
fn windows(con: &mut Connection, parameters: &str, starts: &[&str]) {
    text(con, "DEL key");
    let ask = |at: u64| format!("RL.CALENDAR key 2 {parameters} AT {at}");
    for pair in starts.windows(2) {
        let (start, end) = (utc(pair[0]), utc(pair[1]));
        let told = format!("{parameters}, {} to {}", pair[0], pair[1]);
        let length = millis(end - start);
        // The count of the window before does not matter, up to the first microsecond.
        assert_eq!(ints(con, &ask(start)), [0, 2, 1, 0, length], "{told}");
        assert_eq!(ints(con, &ask(end - 1)), [0, 2, 0, 0, 1], "{told}");
        assert_eq!(ints(con, &ask(end - 1)), [1, 2, 0, 1, 1], "{told}");
        // A key that is first asked within the window finds the same one.
        let middle = start + (end - start) / 2;
        let fresh = ask(middle).replace(" key ", " other ");
        assert_eq!(ints(con, &fresh), [0, 2, 1, 0, millis(end - middle)], "{told}");
        text(con, "DEL other");
    }
}

#[test]
fn a_billing_month_that_begins_on_the_31st_in_lisbon() {
    let server = Server::start(&[]);
    // Summer time, an hour ahead of UTC, from 30 March to 26 October.
    windows(
        &mut server.connection(),
        "MONTH TZ Europe/Lisbon ANCHOR 31",
        &[
            "2024-12-31T00:00",
            "2025-01-31T00:00",
            "2025-02-28T00:00",
            "2025-03-30T23:00",
            "2025-04-29T23:00",
            "2025-05-30T23:00",
            "2025-06-29T23:00",
            "2025-07-30T23:00",
            "2025-08-30T23:00",
            "2025-09-29T23:00",
            "2025-10-31T00:00",
            "2025-11-30T00:00",
            "2025-12-31T00:00",
            "2026-01-31T00:00",
        ],
    );
}

#[test]
fn weeks_months_quarters_and_years() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (parameters, starts) in [
        // ISO weeks: the first one of 2025 begins in 2024.
        ("WEEK", &["2024-12-23T00:00", "2024-12-30T00:00", "2025-01-06T00:00"][..]),
        ("WEEK ANCHOR 1", &["2024-12-23T00:00", "2024-12-30T00:00", "2025-01-06T00:00"]),
        ("WEEK ANCHOR 7", &["2024-12-22T00:00", "2024-12-29T00:00", "2025-01-05T00:00"]),
        ("WEEK ANCHOR 4 TZ Asia/Kolkata", &["2024-12-25T18:30", "2025-01-01T18:30", "2025-01-08T18:30"]),
        // February in a leap year and in another.
        ("MONTH", &["2024-01-01T00:00", "2024-02-01T00:00", "2024-03-01T00:00"]),
        ("MONTH ANCHOR 30", &["2024-01-30T00:00", "2024-02-29T00:00", "2024-03-30T00:00"]),
        ("MONTH ANCHOR 29", &["2025-01-29T00:00", "2025-02-28T00:00", "2025-03-29T00:00"]),
        ("MONTH ANCHOR 15", &["2024-12-15T00:00", "2025-01-15T00:00", "2025-02-15T00:00"]),
        ("DAY", &["2024-02-28T00:00", "2024-02-29T00:00", "2024-03-01T00:00"]),
        ("DAY", &["2100-02-28T00:00", "2100-03-01T00:00", "2100-03-02T00:00"]),
        (
            "QUARTER TZ America/New_York",
            &["2024-10-01T04:00", "2025-01-01T05:00", "2025-04-01T04:00", "2025-07-01T04:00"],
        ),
        ("YEAR", &["2023-01-01T00:00", "2024-01-01T00:00", "2025-01-01T00:00"]),
        // The furthest offsets: two days apart.
        ("YEAR TZ +14:00", &["2023-12-31T10:00", "2024-12-31T10:00"]),
        ("YEAR TZ -14:00", &["2024-01-01T14:00", "2025-01-01T14:00"]),
        ("DAY TZ +14:00", &["2024-12-31T10:00", "2025-01-01T10:00"]),
        ("DAY TZ -14:00", &["2024-12-31T14:00", "2025-01-01T14:00"]),
        ("HOUR TZ +05:45", &["2025-01-01T00:15", "2025-01-01T01:15"]),
        ("HOUR TZ -03:30", &["2025-01-01T00:30", "2025-01-01T01:30"]),
    ] {
        windows(con, parameters, starts);
    }
}

#[test]
fn a_clock_change_makes_windows_longer_shorter_or_skips_them() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (parameters, starts) in [
        // 23 hours: at 1:00 in UTC, 2:00 becomes 3:00.
        ("DAY TZ Europe/Berlin", &["2025-03-28T23:00", "2025-03-29T23:00", "2025-03-30T22:00"][..]),
        // No hour from 2:00 to 3:00.
        ("HOUR TZ Europe/Berlin", &["2025-03-30T00:00", "2025-03-30T01:00", "2025-03-30T02:00"]),
        // 25 hours: at 1:00 in UTC, 3:00 becomes 2:00.
        ("DAY TZ Europe/Berlin", &["2025-10-24T22:00", "2025-10-25T22:00", "2025-10-26T23:00"]),
        // The hour from 2:00 to 3:00 returns, and reopens nothing.
        (
            "HOUR TZ Europe/Berlin",
            &["2025-10-25T23:00", "2025-10-26T00:00", "2025-10-26T02:00", "2025-10-26T03:00"],
        ),
        // Half an hour: at 15:00 in UTC, 2:00 becomes 1:30; at 15:30 in UTC, 2:00 becomes 2:30.
        ("DAY TZ Australia/Lord_Howe", &["2025-04-04T13:00", "2025-04-05T13:00", "2025-04-06T13:30"]),
        ("HOUR TZ Australia/Lord_Howe", &["2025-04-05T14:00", "2025-04-05T15:30", "2025-04-05T16:30"]),
        ("DAY TZ Australia/Lord_Howe", &["2025-10-03T13:30", "2025-10-04T13:30", "2025-10-05T13:00"]),
        (
            "HOUR TZ Australia/Lord_Howe",
            &["2025-10-04T14:30", "2025-10-04T15:30", "2025-10-04T16:00", "2025-10-04T17:00"],
        ),
        // Samoa had no 30 December 2011.
        (
            "DAY TZ Pacific/Apia",
            &["2011-12-28T10:00", "2011-12-29T10:00", "2011-12-30T10:00", "2011-12-31T10:00"],
        ),
        // A week of six days, and a month that was to begin on the day that is missing.
        ("WEEK TZ Pacific/Apia", &["2011-12-19T10:00", "2011-12-26T10:00", "2012-01-01T10:00"]),
        ("MONTH TZ Pacific/Apia ANCHOR 30", &["2011-11-30T10:00", "2011-12-30T10:00", "2012-01-29T10:00"]),
        // Midnight is skipped: the day begins at 1:00, which is 4:00 in UTC.
        ("DAY TZ America/Santiago", &["2024-09-07T04:00", "2024-09-08T04:00", "2024-09-09T03:00"]),
        // Midnight returns: it is 23:00 again, and still the same day.
        ("DAY TZ America/Santiago", &["2024-04-06T03:00", "2024-04-07T04:00", "2024-04-08T04:00"]),
    ] {
        windows(con, parameters, starts);
    }
}

#[test]
fn the_last_window_ends_with_the_year_9999_in_utc() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (parameters, starts) in [
        ("DAY", &["9999-12-30T00:00", "9999-12-31T00:00", "9999-12-31T24:00"][..]),
        ("DAY TZ -14:00", &["9999-12-30T14:00", "9999-12-31T14:00", "9999-12-31T24:00"]),
        ("HOUR", &["9999-12-31T22:00", "9999-12-31T23:00", "9999-12-31T24:00"]),
        ("MONTH ANCHOR 31", &["9999-11-30T00:00", "9999-12-31T00:00", "9999-12-31T24:00"]),
        ("YEAR TZ America/New_York", &["9998-01-01T05:00", "9999-01-01T05:00", "9999-12-31T24:00"]),
    ] {
        windows(con, parameters, starts);
    }
    for zone in ["UTC", "+14:00", "-14:00", "Pacific/Kiritimati", "Pacific/Apia"] {
        for unit in ["HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"] {
            text(con, "DEL key");
            let reply = ints(con, &format!("RL.CALENDAR key 9 {unit} TZ {zone} COST 4 AT {LATEST}"));
            assert_eq!(reply, [0, 9, 5, 0, 1], "{unit} {zone}");
        }
    }
}

#[test]
fn words_in_upper_and_lower_case_are_the_same() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for same in [
        [
            "MONTH TZ Europe/Lisbon ANCHOR 31",
            "month tz europe/lisbon anchor 31",
            "Month Anchor 31 Tz EUROPE/LISBON",
        ],
        ["DAY", "day TZ utc", "DAY TZ UTC"],
        ["WEEK TZ -03:30", "week ANCHOR 1 TZ -03:30", "WEEK TZ -03:30 ANCHOR 1"],
    ] {
        let dumps = same.map(|parameters| {
            text(con, "DEL key");
            ints(con, &format!("RL.CALENDAR key 9 {parameters} AT {T0}"));
            dump(con, "key")
        });
        assert!(dumps.iter().all(|dump| *dump == dumps[0]), "{same:?}");
    }
}

#[test]
fn another_zone_or_anchor_keeps_the_count_of_a_charge_in_its_window() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let hour = 3_600_000;
    for (charged, asked, at, reply) in [
        // The window of 10 June. In +10:00 a day begins at 14:00 in UTC.
        ("DAY", "DAY TZ +10:00", "2025-06-10T13:00", [0, 9, 5, 0, hour]),
        ("DAY", "DAY TZ +10:00", "2025-06-10T14:00", [0, 9, 9, 0, 0]),
        // In -10:00 it begins at 10:00 in UTC, so it holds the charge longer than the stored window lasts.
        ("DAY", "DAY TZ -10:00", "2025-06-10T23:00", [0, 9, 5, 0, 11 * hour]),
        ("DAY", "DAY TZ -10:00", "2025-06-11T00:00", [0, 9, 9, 0, 0]),
        // Another name for the same hours, and another offset of the same zone.
        ("DAY", "DAY TZ +00:00", "2025-06-10T23:00", [0, 9, 5, 0, hour]),
        ("DAY TZ America/New_York", "DAY TZ US/Eastern", "2025-06-11T03:00", [0, 9, 5, 0, hour]),
        // Anchors.
        ("MONTH", "MONTH ANCHOR 15", "2025-06-14T23:00", [0, 9, 5, 0, hour]),
        ("MONTH", "MONTH ANCHOR 15", "2025-06-15T00:00", [0, 9, 9, 0, 0]),
        ("MONTH ANCHOR 15", "MONTH ANCHOR 11", "2025-06-10T23:00", [0, 9, 5, 0, hour]),
        ("MONTH ANCHOR 15", "MONTH ANCHOR 11", "2025-06-11T00:00", [0, 9, 9, 0, 0]),
        ("WEEK", "WEEK ANCHOR 3", "2025-06-10T23:00", [0, 9, 5, 0, hour]),
        ("WEEK", "WEEK ANCHOR 3", "2025-06-11T00:00", [0, 9, 9, 0, 0]),
    ] {
        let told = format!("{charged}, then {asked} at {at}");
        text(con, "DEL key");
        ints(con, &format!("RL.CALENDAR key 9 {charged} COST 4 AT {}", utc("2025-06-10T12:00")));
        let before = dump(con, "key");
        let peek = format!("RL.PEEK key CALENDAR 9 {asked} COST 0 AT {}", utc(at));
        assert_eq!(ints(con, &peek), reply, "{told}");
        // Nor does a refusal write the other window.
        assert_eq!(ints(con, &format!("RL.CALENDAR key 3 {asked} COST 4 AT {}", utc(at)))[0], 1, "{told}");
        assert_eq!(dump(con, "key"), before, "{told}");
        // A charge does.
        let charge = format!("RL.CALENDAR key 9 {asked} AT {}", utc(at));
        assert_eq!(ints(con, &charge)[2], reply[2] - 1, "{told}");
        let (zone, back) = (ints(con, &peek), peek.replace(asked, charged));
        assert_eq!(zone[2], reply[2] - 1, "{told}");
        assert_eq!(ints(con, &back)[2], reply[2] - 1, "{told}: the last charge lies in both windows");
    }
}

#[test]
fn another_unit_keeps_the_count_of_a_charge_in_its_window() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let day = 86_400_000;
    for (charged, asked, at, reply) in [
        ("HOUR", "DAY", "2025-06-10T12:30", [0, 9, 5, 0, day / 48 * 23]),
        ("HOUR", "DAY", "2025-06-10T13:00", [0, 9, 9, 0, 0]),
        ("DAY", "HOUR", "2025-06-10T12:30", [0, 9, 5, 0, day / 48]),
        ("DAY", "HOUR", "2025-06-10T13:00", [0, 9, 9, 0, 0]),
        ("YEAR", "DAY", "2025-06-10T18:00", [0, 9, 5, 0, day / 4]),
        ("YEAR", "DAY", "2025-06-11T00:00", [0, 9, 9, 0, 0]),
        ("MONTH ANCHOR 2", "WEEK ANCHOR 2", "2025-06-16T00:00", [0, 9, 5, 0, day]),
        ("MONTH ANCHOR 2", "WEEK ANCHOR 2", "2025-06-17T00:00", [0, 9, 9, 0, 0]),
    ] {
        text(con, "DEL key");
        ints(con, &format!("RL.CALENDAR key 9 {charged} COST 4 AT {}", utc("2025-06-10T12:00")));
        let peek = format!("RL.PEEK key CALENDAR 9 {asked} COST 0 AT {}", utc(at));
        assert_eq!(ints(con, &peek), reply, "{charged}, then {asked} at {at}");
    }
}

#[test]
fn a_part_a_debt_and_a_refund_belong_to_the_window() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    // From 2023-11-14T23:00 in UTC on, half an hour is left in Newfoundland's hour.
    let (limiter, next) = ("CALENDAR 5 HOUR TZ -03:30", T0 + 1800 * SECOND);
    let ask = |options: &str, at: u64| format!("RL.CALENDAR key 5 HOUR TZ -03:30 {options} AT {at}");
    assert_eq!(ints(con, &line(limiter, "key", "COST 3")), [0, 5, 2, 0, 1_800_000]);
    assert_eq!(ints(con, &line(limiter, "key", "COST 3")), [1, 5, 2, 1_800_000, 1_800_000]);
    assert_eq!(ints(con, &line(limiter, "key", "COST 6")), [1, 5, 2, -1, 1_800_000]);
    assert_eq!(ints(con, &line(limiter, "key", "COST 7 PARTIAL")), [0, 5, 0, 0, 1_800_000, 2]);
    assert_eq!(ints(con, &line(limiter, "key", "PARTIAL")), [1, 5, 0, 1_800_000, 1_800_000, 0]);
    assert_eq!(ints(con, &line(limiter, "key", "FORCE COST 4")), [0, 5, 0, 0, 1_800_000]);
    let refund = |cost: u64, at: u64| format!("RL.REFUND key CALENDAR 5 HOUR TZ -03:30 COST {cost} AT {at}");
    assert_eq!(ints(con, &refund(3, T0)), [0, 5, 0, 0, 1_800_000], "still owes 1");
    assert_eq!(ints(con, &refund(2, T0)), [0, 5, 1, 0, 1_800_000]);
    // The debt does not outlast the window, and the next one gives nothing back of it.
    ints(con, &line(limiter, "key", "FORCE COST 40"));
    assert_eq!(ints(con, &ask("", next - 1)), [1, 5, 0, 1, 1]);
    assert_eq!(ints(con, &ask("COST 2", next)), [0, 5, 3, 0, 3_600_000]);
    assert_eq!(ints(con, &refund(1, next)), [0, 5, 4, 0, 3_600_000]);
    // Looks write nothing, and a window that is given back whole is gone.
    let before = (dump(con, "key"), last_payload(&server));
    assert_eq!(ints(con, &ask("COST 0", next)), [0, 5, 4, 0, 3_600_000]);
    assert_eq!(
        ints(con, &format!("RL.PEEK key {limiter} COST 5 AT {next}")),
        [1, 5, 4, 3_600_000, 3_600_000]
    );
    assert_eq!((dump(con, "key"), last_payload(&server)), before);
    assert_eq!(ints(con, &refund(9, next)), [0, 5, 5, 0, 0]);
    assert_eq!(text(con, "EXISTS key"), "0");
}

#[test]
fn a_calendar_beside_other_limits() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // T0 is 23:00 in UTC, and midnight in Lisbon is midnight in UTC.
    let limits = "LIMIT CALENDAR 9 DAY TZ Europe/Lisbon LIMIT CALENDAR 20 MONTH TZ Europe/Lisbon \
                  LIMIT FIXEDWINDOW 5 1m LIMIT CALENDAR 1 HOUR SHADOW";
    let ask = |options: &str, at: u64| format!("RL.MULTI 1 key {options} AT {at} {limits}");
    let (day, month) = (3_600_000, 16 * 86_400_000 + 3_600_000);
    let (all, each) = multi(con, &ask("COST 4", T0));
    assert_eq!(all, [0, 5, 1, 0, month]);
    let never = vec![1, 1, 1, -1, 0];
    assert_eq!(each, [vec![0, 9, 5, 0, day], vec![0, 20, 16, 0, month], vec![0, 5, 1, 0, 60_000], never]);
    // The window refuses, and no calendar is charged.
    assert_eq!(multi(con, &ask("COST 2", T0)).0, [1, 5, 1, 60_000, month]);
    let (all, each) = multi(con, &ask("COST 5", T0 + 60 * SECOND));
    assert_eq!((all[0], each[0][2], each[1][2], each[2][2]), (0, 0, 11, 0));
    // The day refuses for longer than the window.
    let (all, _) = multi(con, &ask("", T0 + 60 * SECOND));
    assert_eq!(all, [1, 9, 0, day - 60_000, month - 60_000]);
    // The next day the month still counts.
    let (all, each) = multi(con, &ask("", T0 + 3600 * SECOND));
    assert_eq!((all[0], each[0][2], each[1][2]), (0, 8, 10));
    assert_eq!(each[0][4], 86_400_000);
    assert_eq!(each[3], [0, 1, 0, 0, 3_600_000]);
    let back = format!("RL.MULTIREFUND 1 key COST 3 AT {} {limits}", T0 + 3600 * SECOND);
    assert_eq!(multi(con, &back).1.iter().map(|five| five[2]).collect::<Vec<_>>(), [9, 13, 5, 1]);
    let peek = format!("RL.MULTIPEEK 1 key COST 10 AT {} {limits}", T0 + 3600 * SECOND);
    assert_eq!(multi(con, &peek).1[0], [1, 9, 9, -1, 0]);
    let forced = format!("RL.MULTI 1 key FORCE COST 10 AT {} {limits}", T0 + 3600 * SECOND);
    assert_eq!(multi(con, &forced).1.iter().map(|five| five[2]).collect::<Vec<_>>(), [0, 3, 0, 0]);
    // An own command finds the limit of its unit, whatever the zone.
    let own = format!("RL.CALENDAR key 20 MONTH TZ UTC AT {}", T0 + 3600 * SECOND);
    assert_eq!(ints(con, &own)[2], 2);
}

#[test]
fn a_clock_that_was_set_back_moves_the_count_into_its_window() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ask = |at: &str| format!("RL.CALENDAR key 9 DAY TZ Europe/Berlin COST 2 AT {}", utc(at));
    assert_eq!(ints(con, &ask("2025-03-30T12:00"))[4], 36_000_000);
    // Ten hours back is no further than the reset: the call counts in the same window, and the caller waits longer.
    assert_eq!(ints(con, &ask("2025-03-30T02:00")), [0, 9, 5, 0, 72_000_000]);
    assert_eq!(ints(con, &ask("2025-03-30T12:00")), [0, 9, 3, 0, 36_000_000]);
    // Further back, it counts in the window of now: the one of 29 March.
    let before = dump(con, "key");
    let peek = format!("RL.PEEK key CALENDAR 9 DAY TZ Europe/Berlin COST 4 AT {}", utc("2025-03-29T22:00"));
    assert_eq!(ints(con, &peek), [1, 9, 3, 3_600_000, 3_600_000]);
    assert_eq!(dump(con, "key"), before);
    let refused = ask("2025-03-29T22:00").replace("COST 2", "COST 4");
    assert_eq!(ints(con, &refused), [1, 9, 3, 3_600_000, 3_600_000]);
    assert_ne!(dump(con, "key"), before, "a refusal moves it, too");
    assert_eq!(ints(con, &ask("2025-03-29T22:59")), [0, 9, 1, 0, 60_000]);
    assert_eq!(ints(con, &ask("2025-03-29T23:00")), [0, 9, 7, 0, 23 * 3_600_000]);
}

#[test]
fn a_replica_and_a_restart_keep_the_window() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let future = "2099-12-31T23:30";
    let ask = |parameters: &str, at: &str| format!("RL.CALENDAR key 9 {parameters} AT {}", utc(at));
    let steps = [
        ask("MONTH TZ Europe/Lisbon ANCHOR 31 COST 4", future),
        ask("MONTH TZ Europe/Lisbon ANCHOR 31 FORCE COST 9", future),
        // Refused: nothing is written.
        ask("MONTH TZ Europe/Lisbon ANCHOR 31", future),
        // Another anchor, another zone, another window, a clock that was set back.
        ask("MONTH TZ Europe/Lisbon ANCHOR 15 FORCE", future),
        ask("MONTH TZ Pacific/Auckland ANCHOR 15 FORCE", future),
        ask("MONTH TZ Pacific/Auckland ANCHOR 15", "2100-01-20T00:00"),
        ask("MONTH TZ Pacific/Auckland ANCHOR 15", "2098-01-20T00:00"),
        format!(
            "RL.REFUND key CALENDAR 9 MONTH TZ Pacific/Auckland ANCHOR 15 AT {}",
            utc("2098-01-20T00:00")
        ),
        format!(
            "RL.MULTI 1 key AT {} LIMIT CALENDAR 5 DAY TZ +05:45 LIMIT GCRA 9 1 1h",
            utc("2098-01-20T00:00")
        ),
    ];
    for step in steps {
        text(con, &step);
        sync(&server, &replica);
        let on_replica = &mut replica.connection();
        let told =
            |con: &mut Connection| (dump(con, "key"), text(con, "PEXPIRETIME key"), text(con, "RL.INFO key"));
        assert_eq!(told(con), told(on_replica), "{step}");
        let digest = text(con, "DEBUG DIGEST");
        assert_eq!(text(con, "DEBUG RELOAD"), "OK");
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{step}");
    }
    // The replica has never asked the calendar, and answers.
    let peek = format!("RL.PEEK key CALENDAR 5 DAY TZ +05:45 COST 0 AT {}", utc("2098-01-20T00:00"));
    assert_eq!(ints(&mut replica.connection(), &peek), [0, 5, 4, 0, 65_700_000]);
    // A key outlives its window.
    text(con, "DEL key");
    ints(con, "RL.CALENDAR key 9 YEAR");
    let reset = ints(con, "RL.CALENDAR key 9 YEAR COST 0")[4];
    assert!(ints(con, "PTTL key")[0] >= reset);
}
