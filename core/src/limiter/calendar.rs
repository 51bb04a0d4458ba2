//! The calendar window: a counter for each hour, day, week, month, quarter or year of a time zone.
//!
//! The limiter asks the calendar only when a request opens a window, or names another zone or anchor. Its state stores the
//! window's start and end, so a call costs as much as one of a fixed window, and replicas need no time zones.
//!
//! ```text
//! RL.CALENDAR key 1000 MONTH TZ Europe/Lisbon ANCHOR 31
//!
//! 2025-01-31 to 2025-02-27     one window
//! 2025-02-28 to 2025-03-30     the next: February has no 31st
//! ```
//!
//! Source: <https://docs.stripe.com/billing/subscriptions/billing-cycle>, for windows that begin on the 31st.
//!
//! When not to use it: all keys of a zone reset at the same instant, and up to twice the limit can pass around it.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter, fixed_window};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_STORED;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Move, Small};
use crate::time::{Span, Time};

/// The length of a calendar's windows, and where they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Hour,
    /// The hour at which a day begins, from 0 to 23.
    Day(u8),
    /// The weekday on which a week begins: 1 is Monday, 7 is Sunday.
    Week(u8),
    /// The day on which a month begins, from 1 to 31. In a shorter month it is the last one.
    Month(u8),
    Quarter,
    Year,
}

/// A time zone.
pub trait Zone: fmt::Debug + Sync {
    /// A hash of the zone's name, which states store. It must never change.
    fn id(&self) -> u64;

    /// The start and the end of the window that contains an instant. Windows follow one another without a gap.
    fn window(&self, unit: Unit, at: Time) -> (Time, Time);

    /// Writes the local date and time of an instant, and the offset from UTC, such as `2026-12-15 00:00 -03:00`.
    fn show(&self, at: Time, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// A limit on each window of a calendar.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    pub limit: NonZeroU64,
    pub unit: Unit,
    zone: &'static dyn Zone,
    /// The hash of zone, unit and anchor.
    hash: u64,
}

/// An instant that is shown as a date of a time zone.
pub struct Local {
    zone: &'static dyn Zone,
    at: Time,
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.zone.show(self.at, f)
    }
}

/// The count of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Page {
    count: u64,
    start: Time,
    end: Time,
    last: Time,
    /// The hash of zone, unit and anchor that the window is of.
    zone: u64,
}

impl Unit {
    /// The usual length, which is the length of time in a limit's name.
    pub fn length(self) -> Span {
        const DAY: u64 = 86_400_000;
        Span::from_millis(match self {
            Unit::Hour => DAY / 24,
            Unit::Day(_) => DAY,
            Unit::Week(_) => 7 * DAY,
            Unit::Month(_) => 30 * DAY,
            Unit::Quarter => 91 * DAY,
            Unit::Year => 365 * DAY,
        })
    }

    /// A number for each unit and anchor, which states store.
    fn number(self) -> u64 {
        let (unit, anchor) = match self {
            Unit::Hour => (0, 0),
            Unit::Day(anchor) => (1, anchor),
            Unit::Week(anchor) => (2, anchor),
            Unit::Month(anchor) => (3, anchor),
            Unit::Quarter => (4, 0),
            Unit::Year => (5, 0),
        };
        unit << 8 | u64::from(anchor)
    }
}

impl Calendar {
    #[inline(always)]
    pub fn new(limit: NonZeroU64, unit: Unit, zone: &'static dyn Zone) -> Calendar {
        Calendar { limit, unit, zone, hash: zone.id() ^ unit.number() }
    }

    /// When the window ends that contains `now`.
    pub fn renewal(&self, page: &Page, now: Time) -> Local {
        Local { zone: self.zone, at: self.settled(page, now).end }
    }

    /// The page of the window that contains `now`.
    #[inline(always)]
    fn settled(&self, page: &Page, now: Time) -> Page {
        if now < page.end && page.zone == self.hash {
            Page { last: now, ..*page }
        } else {
            self.turned(page, now)
        }
    }

    /// The page of a window that begins, or of a window by another zone, unit or anchor.
    ///
    /// The second keeps the count if the stored window has not ended and the last charge lies in the new one.
    #[cold]
    fn turned(&self, page: &Page, now: Time) -> Page {
        let (start, end) = self.zone.window(self.unit, now);
        let kept = now < page.end && (start..end).contains(&page.last);
        Page { count: if kept { page.count } else { 0 }, start, end, last: now, zone: self.hash }
    }

    /// The count at `now`, and the time until its window ends. It does not ask the calendar about a window that no request has
    /// opened.
    #[inline(always)]
    fn counted(&self, page: &Page, now: Time) -> (u64, Span) {
        if now >= page.end {
            return (0, Span::ZERO);
        }
        let page = self.settled(page, now);
        (page.count, page.end.since(now))
    }
}

impl Limiter for Calendar {
    type State = Page;

    fn capabilities(&self) -> Capabilities {
        Capabilities::DEBT
    }

    fn length(&self) -> Span {
        self.unit.length()
    }

    /// The calendar is asked when the page is judged or charged.
    fn fresh(&self, now: Time) -> Page {
        Page { count: 0, start: now, end: now, last: now, zone: 0 }
    }

    #[inline(always)]
    fn judge(&self, page: &Page, now: Time, cost: u64) -> Verdict {
        let (count, rest) = self.counted(page, now);
        fixed_window::judge(self.limit, count, rest, cost)
    }

    #[inline(always)]
    fn charge(&self, page: &Page, now: Time, cost: u64) -> Page {
        let page = self.settled(page, now);
        Page { count: page.count.saturating_add(cost).min(MAX_STORED), ..page }
    }

    fn refund<'a>(&'a self, page: &'a Page, now: Time, cost: u64) -> Option<Page> {
        let page = self.settled(page, now);
        Some(Page { count: page.count.saturating_sub(cost), ..page })
    }

    fn give_back<'a>(&'a self, page: &'a Page, now: Time, at: Time, cost: u64) -> Option<Page> {
        let page = self.settled(page, now);
        let counts = (page.start..page.end).contains(&at);
        counts.then(|| Page { count: page.count.saturating_sub(cost), ..page })
    }

    fn moves_charges(&self, page: &Page, _: Span) -> bool {
        page.zone != self.hash
    }

    /// The whole count of the window moves.
    fn moved_charges(&self, page: &Page, _: Span, now: Time) -> Option<Move> {
        let counts = now < page.end;
        Some(if counts { Move::all_since(page.start, page.last, now) } else { Move::NOWHERE })
    }

    #[inline(always)]
    fn gauge(&self, page: &Page, now: Time) -> Gauge {
        let (count, rest) = self.counted(page, now);
        fixed_window::gauge(self.limit, count, rest)
    }

    /// Windows follow the clock, so the count moves to the window that contains `now`.
    fn rebase<'a>(&'a self, page: &'a Page, now: Time) -> Page {
        let (start, end) = self.zone.window(self.unit, now);
        Page { count: page.count, start, end, last: now, zone: self.hash }
    }
}

impl LimitState for Page {
    fn until(&self, _length: Span) -> Time {
        if self.count > 0 { self.end } else { Time::EPOCH }
    }
}

impl Small for Page {
    const KIND: Kind = Kind::Page;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [start, end, last] = [self.start, self.end, self.last].map(Time::as_micros);
        put_words(out, [self.count, start, end, last, self.zone]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Page> {
        let count = reader.word_up_to(MAX_STORED)?;
        let (start, end, last, zone) =
            (reader.instant()?, reader.horizon()?, reader.instant()?, reader.word()?);
        let open = last < end || count == 0;
        (start <= last && open && end <= Time::END).then_some(Page { count, start, end, last, zone })
    }

    fn zero() -> Page {
        Page { count: 0, start: Time::EPOCH, end: Time::EPOCH, last: Time::EPOCH, zone: 0 }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("count", Figure::Count(self.count));
        figure("window_start_us", Figure::At(self.start));
        figure("window_end_us", Figure::At(self.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, n};

    /// Hours that begin a number of minutes after those of the clock.
    #[derive(Debug)]
    struct Late(u64);

    impl Zone for Late {
        fn id(&self) -> u64 {
            self.0 << 32
        }

        fn window(&self, _unit: Unit, at: Time) -> (Time, Time) {
            let late = Span::from_millis(60_000 * self.0);
            let start = at.minus(Span::from_micros(at.minus(late).as_micros() % HOUR.as_micros()));
            (start, start.plus(HOUR))
        }

        fn show(&self, at: Time, out: &mut dyn fmt::Write) -> fmt::Result {
            write!(out, "{}", at.as_micros())
        }
    }

    const HOUR: Span = Span::from_millis(3_600_000);
    /// Hours from the start of an hour, and from the middle of one.
    fn hours() -> (Calendar, Calendar) {
        let of = |zone| Calendar::new(n(3), Unit::Hour, zone);
        (of(&Late(0)), of(&Late(30)))
    }

    /// Minutes after `T0`, the start of an hour.
    fn at(minutes: u64) -> Time {
        T0.plus(Span::from_millis(60_000 * minutes))
    }

    #[test]
    fn a_window_ends_where_the_calendar_says() {
        let (_, half) = hours();
        let page = charged(&half, None, at(40), 3);
        assert_eq!(half.judge(&page, at(89), 1), Verdict::refuse(Span::from_millis(60_000)));
        assert_eq!(half.judge(&page, at(90), 3), Verdict::ADMIT);
        assert_eq!(half.gauge(&page, at(40)).reset, Span::from_millis(3_000_000));
        assert_eq!(half.judge(&page, at(40), 4), Verdict::NEVER);
    }

    #[test]
    fn another_zone_keeps_the_count_if_the_last_charge_lies_in_its_window() {
        let (full, half) = hours();
        // From 0:30 to 1:30. The last charge is at 0:40.
        let page = charged(&half, None, at(40), 2);
        assert_eq!(full.gauge(&page, at(50)).remaining, 1, "0:40 lies between 0:00 and 1:00");
        assert_eq!(full.gauge(&page, at(70)).remaining, 3, "and not between 1:00 and 2:00");
        assert_eq!(half.gauge(&page, at(70)).remaining, 1);
        // From 0:00 to 1:00, so it has ended although 0:40 lies between 0:30 and 1:30.
        let page = charged(&full, None, at(40), 2);
        assert_eq!(half.gauge(&page, at(59)).remaining, 1);
        assert_eq!(half.gauge(&page, at(60)).remaining, 3);
        // A charge by the other zone moves the page to its window.
        let moved = charged(&full, Some(charged(&half, None, at(40), 2)), at(50), 1);
        assert_eq!(full.gauge(&moved, at(50)).reset, Span::from_millis(600_000));
    }

    #[test]
    fn another_zone_moves_what_was_charged_if_it_keeps_the_count() {
        let (full, half) = hours();
        // From 0:00 to 1:00. A charge at 0:40 lies between 0:30 and 1:30, too.
        let page = charged(&full, None, at(40), 2);
        assert!(half.moves_charges(&page, HOUR) && !full.moves_charges(&page, HOUR));
        let given_back = |now| {
            let moved = half.moved_charges(&page, HOUR, now).unwrap().of(at(40));
            half.give_back(&page, now, moved, 1).map(|page| half.gauge(&page, now).remaining)
        };
        assert_eq!(given_back(at(59)), Some(2));
        assert_eq!(
            half.moved_charges(&page, HOUR, at(60)).unwrap().of(at(40)),
            Time::EPOCH,
            "it counts no more"
        );
    }

    #[test]
    fn another_anchor_is_another_zone() {
        let month = |day| Calendar::new(n(3), Unit::Month(day), &Late(0));
        assert_eq!(month(1).name(), month(31).name());
        let page = charged(&month(1), None, at(10), 2);
        assert_eq!((page.zone, month(31).hash), (0x301, 0x31f));
    }
}
