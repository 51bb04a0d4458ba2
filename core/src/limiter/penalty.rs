//! Penalties: a ban after repeated offences, each longer than the one before.
//!
//! A call is a *strike*. Strikes are counted in a window that the first one opens. The strike that completes the number
//! bans: for a while the caller is refused, and no strikes are recorded. Each ban raises the level, and with it the next
//! ban. The level falls again while the caller behaves.
//!
//! ```text
//! RL.PENALTY key 3 10m 10m GROW 2 MAX 1d FORGIVE 1d
//!
//! level              0        1        2        3    ...  7, 8
//! ban             10 min   20 min   40 min   80 min  ...  21 h, 1 d
//!
//! It falls by one for each day since the last ban ended.
//! ```
//!
//! Source: <https://github.com/fail2ban/fail2ban>, the settings `bantime.increment` in `config/jail.conf`.
//!
//! When not to use it: where many people share the key, such as the address of an office. One of them bans all.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::count::MAX_STORED;
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Small};
use crate::time::{Period, Span, Time};

/// A ban after this number of strikes within a window.
#[derive(Clone, Copy, Debug)]
pub struct Penalty {
    pub strikes: NonZeroU64,
    pub window: Period,
    /// The first ban.
    pub ban: Period,
    /// The factor by which a ban is longer than the one before.
    pub grow: NonZeroU64,
    /// The longest ban, at least `ban`.
    pub longest: Span,
    /// The time without a ban after which the level falls by one.
    pub forgive: Period,
}

/// The strikes since the window opened, and the level of the next ban.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Strikes {
    count: u64,
    /// When the window opened.
    start: Time,
    /// The level at the end of the last ban.
    level: u64,
    /// The end of the last ban; the epoch if there was none.
    end: Time,
    /// The time after which the level falls by one.
    forgive: Span,
    last: Time,
}

/// The highest level: a ban of 1 ms that doubles is a hundred years after 42 times.
const MAX_LEVEL: u64 = 42;

impl Strikes {
    fn bans(&self, now: Time) -> bool {
        now < self.end
    }

    /// When the level is 0 again.
    fn forgiven(&self) -> Time {
        if self.level == 0 { Time::EPOCH } else { self.end.plus(self.forgive.times(self.level)) }
    }
}

impl Penalty {
    /// The ban at a level.
    fn ban(&self, level: u64) -> Span {
        let mut ban = self.ban.span();
        for _ in 0..level {
            ban = ban.times(self.grow.get());
        }
        ban.min(self.longest)
    }

    /// The level, at most the first at which the ban is the longest. It is 0 if bans do not grow.
    fn capped(&self, level: u64) -> u64 {
        let mut ban = self.ban.span();
        for lower in 0..level {
            if self.grow.get() == 1 || ban >= self.longest {
                return lower;
            }
            ban = ban.times(self.grow.get());
        }
        level
    }

    /// The level at `now`.
    fn level(&self, strikes: &Strikes, now: Time) -> u64 {
        strikes.level.saturating_sub(now.since(strikes.end).as_micros() / self.forgive.micros())
    }

    /// The strikes at `now`: none if the window has ended. At most `strikes` - 1, because a call may have lowered `strikes`.
    #[inline(always)]
    fn settled(&self, strikes: &Strikes, now: Time) -> Strikes {
        let open = now < strikes.start.plus(self.window.span());
        Strikes {
            count: if open { strikes.count.min(self.strikes.get() - 1) } else { 0 },
            level: self.capped(strikes.level),
            forgive: self.forgive.span(),
            last: now,
            ..*strikes
        }
    }

    /// The strikes after one that bans.
    fn banned(&self, strikes: &Strikes, now: Time) -> Strikes {
        let level = self.level(strikes, now);
        let end = now.plus(self.ban(level)).min(Time::END);
        Strikes { count: 0, level: self.capped(level + 1), end, ..*strikes }
    }
}

impl Limiter for Penalty {
    type State = Strikes;

    fn capabilities(&self) -> Capabilities {
        Capabilities { refund: true, bans: true, one_each: true, ..Capabilities::NONE }
    }

    fn length(&self) -> Span {
        self.window.span()
    }

    fn fresh(&self, now: Time) -> Strikes {
        Strikes { last: now, ..Strikes::zero() }
    }

    /// A cost of 0 asks whether there is a ban.
    #[inline(always)]
    fn judge(&self, strikes: &Strikes, now: Time, cost: u64) -> Verdict {
        if strikes.bans(now) {
            return Verdict::refuse(strikes.end.since(now));
        }
        if cost == 0 {
            return Verdict::ADMIT;
        }
        let strikes = self.settled(strikes, now);
        if strikes.count.saturating_add(cost) < self.strikes.get() {
            Verdict::ADMIT
        } else {
            Verdict::refuse(self.banned(&strikes, now).end.since(now))
        }
    }

    fn charge(&self, strikes: &Strikes, now: Time, cost: u64) -> Strikes {
        let strikes = self.settled(strikes, now);
        if strikes.bans(now) || cost == 0 {
            return strikes;
        }
        let count = strikes.count.saturating_add(cost);
        if count >= self.strikes.get() {
            return self.banned(&strikes, now);
        }
        let start = if strikes.count == 0 { now } else { strikes.start };
        Strikes { count, start, ..strikes }
    }

    /// A window whose count is refunded to zero is closed. A ban stays.
    fn refund<'a>(&'a self, strikes: &'a Strikes, now: Time, cost: u64) -> Option<Strikes> {
        let strikes = self.settled(strikes, now);
        Some(Strikes { count: strikes.count.saturating_sub(cost), ..strikes })
    }

    /// The limit is the number of strikes. What remains are the strikes up to the one that bans; 0 during a ban.
    #[inline(always)]
    fn gauge(&self, strikes: &Strikes, now: Time) -> Gauge {
        let strikes = self.settled(strikes, now);
        let limit = self.strikes.get();
        Gauge {
            limit,
            remaining: if strikes.bans(now) { 0 } else { limit - strikes.count },
            reset: strikes.until(self.window.span()).since(now),
        }
    }

    fn rebase<'a>(&'a self, strikes: &'a Strikes, now: Time) -> Strikes {
        let moved = |at: Time| {
            if at > strikes.last {
                now.plus(at.since(strikes.last))
            } else {
                now.minus(strikes.last.since(at))
            }
        };
        let settled = self.settled(strikes, strikes.last);
        Strikes { start: moved(strikes.start), end: moved(strikes.end), last: now, ..settled }
    }
}

impl LimitState for Strikes {
    fn until(&self, window: Span) -> Time {
        let counted = if self.count > 0 { self.start.plus(window) } else { Time::EPOCH };
        let until = counted.max(self.end).max(self.forgiven());
        if until > self.last { until } else { Time::EPOCH }
    }
}

impl Small for Strikes {
    const KIND: Kind = Kind::Strikes;

    fn last(&self) -> Time {
        self.last
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [start, end, last] = [self.start, self.end, self.last].map(Time::as_micros);
        put_words(out, [self.count, start, self.level, end, self.forgive.as_micros(), last]);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Strikes> {
        let (count, start) = (reader.word_up_to(MAX_STORED)?, reader.instant()?);
        let (level, end) = (reader.word_up_to(MAX_LEVEL)?, reader.horizon()?);
        let forgive = reader.span()?;
        let last = reader.instant()?;
        (start <= last && end <= Time::END).then_some(Strikes { count, start, level, end, forgive, last })
    }

    fn zero() -> Strikes {
        let [start, end, last] = [Time::EPOCH; 3];
        Strikes { count: 0, start, level: 0, end, forgive: Span::ZERO, last }
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("strikes", Figure::Count(self.count));
        figure("window_start_us", Figure::At(self.start));
        figure("level", Figure::Count(self.level));
        figure("ban_end_us", Figure::At(self.end));
    }
}
