//! Instants and lengths of time in whole microseconds, saturating: no arithmetic on time can fail.

/// An instant, in microseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(u64);

/// A length of time, in microseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Span(u64);

impl Time {
    /// 2001-09-09: no number of seconds or milliseconds that a clock shows today is as large, so a caller who
    /// mixes up the units is told.
    pub const EARLIEST: Time = Time(1_000_000_000_000_000);
    /// The end of the year 9999.
    pub const LATEST: Time = Time(253_402_300_799_999_999);

    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1000))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The millisecond that begins at or after this instant.
    pub const fn as_millis_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    pub const fn plus(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    pub const fn minus(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    pub const ZERO: Span = Span(0);
    pub const FOREVER: Span = Span(u64::MAX);
    /// 100 years of 365 days: the longest duration that a caller may name.
    pub const CENTURY: Span = Span::from_millis(3_153_600_000_000);

    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1000))
    }

    /// A number of microseconds that was computed in 128 bits.
    pub fn from_wide(micros: u128) -> Span {
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    pub const fn minus(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    pub const fn quarter(self) -> Span {
        Span(self.0 / 4)
    }

    /// Rounded up, so that whoever sleeps that long is never early. Rounding up twice, to microseconds and then
    /// to milliseconds, gives the same as rounding the exact value up once.
    pub const fn as_millis_up(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// Likewise.
    pub const fn as_secs_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }
}

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
    fn nothing_lies_between_an_instant_and_a_later_one_looked_at_backwards() {
        let (early, late) = (Time::from_micros(5), Time::from_micros(8));
        assert_eq!(late.since(early), Span::from_micros(3));
        assert_eq!(early.since(late), Span::ZERO);
    }

    #[test]
    fn the_ends_of_time_saturate() {
        assert_eq!(Time::from_micros(u64::MAX).plus(Span::CENTURY), Time::from_micros(u64::MAX));
        assert_eq!(Time::from_micros(1).minus(Span::CENTURY), Time::from_micros(0));
        assert_eq!(Span::from_wide(u128::MAX), Span::from_micros(u64::MAX));
    }
}
