//! Instants and durations in whole microseconds. All arithmetic saturates.

use core::num::NonZeroU64;

/// An instant, in microseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(u64);

/// A duration, in microseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Span(u64);

/// A duration above zero, so that limiters can divide by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Period(NonZeroU64);

impl Time {
    /// The Unix epoch. In states it stands for never.
    pub const EPOCH: Time = Time(0);
    /// 2001-09-09, the earliest instant that an argument may have. Today's time in seconds or milliseconds is a smaller
    /// number, so a caller that confuses the units gets an error.
    pub const EARLIEST: Time = Time(1_000_000_000_000_000);
    /// The end of the year 9999, the latest instant that an argument may have.
    pub const LATEST: Time = Time(253_402_300_799_999_999);
    /// The end of the year 9999, a microsecond after [`Time::LATEST`].
    pub const END: Time = Time(Time::LATEST.0 + 1);
    /// The latest deadline that a state stores: the end of the year 9999, and three times the longest reset.
    pub const HORIZON: Time = Time::LATEST.plus(Span::CENTURY).plus(Span::CENTURY).plus(Span::CENTURY);

    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1000))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// In milliseconds, rounded up.
    pub const fn as_millis_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    #[must_use]
    pub const fn plus(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    #[must_use]
    pub const fn minus(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    pub const ZERO: Span = Span(0);
    pub const FOREVER: Span = Span(u64::MAX);
    /// 100 years of 365 days, the longest duration that an argument may have.
    pub const CENTURY: Span = Span::from_millis(3_153_600_000_000);

    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1000))
    }

    /// From microseconds in 128 bits, at most [`Span::FOREVER`].
    pub fn from_wide(micros: u128) -> Span {
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub const fn minus(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    #[must_use]
    pub const fn times(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }

    #[must_use]
    pub const fn half(self) -> Span {
        Span(self.0 / 2)
    }

    /// In milliseconds, rounded up, so that a caller that sleeps for them is never early. If the microseconds were
    /// rounded up already, the result is the same as if the exact value were rounded up once.
    pub const fn as_millis_up(self) -> u64 {
        self.0.saturating_add(999) / 1000
    }

    /// In seconds, rounded up like [`Span::as_millis_up`].
    pub const fn as_secs_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }
}

impl Period {
    pub const LONGEST: Period = Period(NonZeroU64::MAX);

    pub const fn from_millis(millis: NonZeroU64) -> Period {
        Period(millis.saturating_mul(THOUSAND))
    }

    /// `None` if the span is zero.
    pub const fn of(span: Span) -> Option<Period> {
        match NonZeroU64::new(span.0) {
            Some(micros) => Some(Period(micros)),
            None => None,
        }
    }

    pub const fn span(self) -> Span {
        Span(self.0.get())
    }

    pub const fn micros(self) -> NonZeroU64 {
        self.0
    }

    /// The time since the start of the period that contains `at`, where periods start at the clock's multiples.
    pub fn elapsed(self, at: Time) -> Span {
        Span(at.0 % self.0)
    }

    /// The number of the period that contains `at`, where periods start at the clock's multiples.
    pub fn number(self, at: Time) -> u64 {
        at.0 / self.0
    }
}

const THOUSAND: NonZeroU64 = NonZeroU64::new(1000).unwrap();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_up() {
        assert_eq!(Span::from_micros(0).as_millis_up(), 0);
        assert_eq!(Span::from_micros(1).as_millis_up(), 1);
        assert_eq!(Span::from_micros(1000).as_millis_up(), 1);
        assert_eq!(Span::from_micros(1001).as_millis_up(), 2);
    }

    #[test]
    fn the_time_since_a_later_instant_is_zero() {
        let (early, late) = (Time::from_micros(5), Time::from_micros(8));
        assert_eq!(late.since(early), Span::from_micros(3));
        assert_eq!(early.since(late), Span::ZERO);
    }

    #[test]
    fn instants_and_durations_saturate() {
        assert_eq!(Time::from_micros(u64::MAX).plus(Span::CENTURY), Time::from_micros(u64::MAX));
        assert_eq!(Time::from_micros(1).minus(Span::CENTURY), Time::EPOCH);
        assert_eq!(Span::from_wide(u128::MAX), Span::from_micros(u64::MAX));
        assert_eq!(Period::from_millis(NonZeroU64::MAX).span(), Span::FOREVER);
        assert_eq!(Period::of(Span::ZERO), None);
    }
}
