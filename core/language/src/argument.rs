//! What describes an argument. The parsers read by it, and `RL.HELP` and `COMMAND DOCS` explain it.

use core::fmt;
use core::num::NonZeroU64;

use ratelimit_core::state::MAX_ID;
use ratelimit_core::{MAX_COUNT, Period, Span, Time};

use crate::number::{Duration, duration, integer, real};

/// An argument or an option of a command.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The name in the syntax: an option's token, or the name of any other argument.
    pub name: &'static str,
    pub values: Values,
    /// The value of an option that is left out, if it is always the same.
    pub default: Option<Value>,
    /// A phrase without capital and full stop, with the default.
    pub meaning: &'static str,
}

/// The values that an argument takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// None: an option that stands alone.
    Flag,
    Number {
        min: u64,
        max: u64,
    },
    /// From 1 to the setting of this name.
    Setting(&'static str),
    /// A number from `min` to another argument of the call.
    UpTo {
        min: u64,
        argument: &'static str,
    },
    /// An integer with a unit, from `min` milliseconds to a hundred years.
    Duration {
        min: u64,
    },
    /// An integer with a unit, from another argument of the call to a hundred years.
    DurationFrom(&'static str),
    /// Whole seconds, up to a hundred years.
    Seconds,
    /// A decimal number from `min` to `max`.
    Real {
        min: u16,
        max: u16,
    },
    /// Unix time in microseconds.
    Instant,
    /// The id of a lease.
    Id,
    /// Any bytes, or what the meaning says.
    Word,
}

/// A value of an argument, within its range.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Number(u64),
    /// A duration in milliseconds.
    Millis(u64),
    Real(f64),
    Instant(Time),
}

/// The longest duration, in milliseconds: a hundred years of 365 days.
const LONGEST: u64 = Span::CENTURY.as_micros() / 1000;
const LONGEST_SECONDS: u64 = LONGEST / 1000;

impl Argument {
    /// A count from 1 to [`MAX_COUNT`].
    pub const fn count(name: &'static str, meaning: &'static str) -> Argument {
        Argument { name, values: Values::COUNT, default: None, meaning }
    }

    pub const fn word(name: &'static str, meaning: &'static str) -> Argument {
        Argument { name, values: Values::Word, default: None, meaning }
    }

    /// Whether it is an option, whose name is in upper case.
    pub fn is_option(&self) -> bool {
        self.name.starts_with(|letter: char| letter.is_ascii_uppercase())
    }
}

impl Values {
    /// A cost.
    pub(crate) const COST: Values = Values::Number { min: 0, max: MAX_COUNT };
    pub(crate) const COUNT: Values = Values::Number { min: 1, max: MAX_COUNT };
    pub(crate) const PERIOD: Values = Values::Duration { min: 1 };
    pub(crate) const SPAN: Values = Values::Duration { min: 0 };

    pub fn is_duration(self) -> bool {
        matches!(self, Values::Duration { .. } | Values::DurationFrom(_))
    }

    /// The least and the largest number; durations are in milliseconds. `bound` is the one of them that the call or a
    /// setting determines.
    #[inline(always)]
    pub(crate) fn range(self, bound: Option<u64>) -> (u64, u64) {
        match self {
            Values::Number { min, max } => (min, bound.unwrap_or(max)),
            Values::UpTo { min, .. } => (min, bound.unwrap_or(0)),
            Values::Setting(_) => (1, bound.unwrap_or(0)),
            Values::Duration { min } => (min, LONGEST),
            Values::DurationFrom(_) => (bound.unwrap_or(u64::MAX), LONGEST),
            Values::Seconds => (1, LONGEST_SECONDS),
            Values::Real { min, max } => (min.into(), max.into()),
            Values::Instant => (Time::EARLIEST.as_micros(), Time::LATEST.as_micros()),
            Values::Flag | Values::Id | Values::Word => (u64::MAX, 0),
        }
    }

    /// Parses a word; `None` unless it is a value in this [range](Values::range).
    #[inline(always)]
    pub(crate) fn parse(self, word: &[u8], (min, max): (u64, u64)) -> Option<Value> {
        if let Values::Real { min, max } = self {
            let range = f64::from(min)..=f64::from(max);
            return real(word).filter(|number| range.contains(number)).map(Value::Real);
        }
        let number = if self.is_duration() { duration(word) } else { integer(word) };
        let number = number.filter(|number| (min..=max).contains(number))?;
        Some(match self {
            Values::Duration { .. } | Values::DurationFrom(_) => Value::Millis(number),
            Values::Seconds => Value::Millis(number.saturating_mul(1000)),
            Values::Instant => Value::Instant(Time::from_micros(number)),
            _ => Value::Number(number),
        })
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Flag | Values::Word => Ok(()),
            Values::Number { min, max } => write!(f, "{min} to {max}"),
            Values::Real { min, max } => write!(f, "decimal, {min} to {max}"),
            Values::Setting(name) => write!(f, "1 to the setting {name}"),
            Values::UpTo { min, argument } => write!(f, "{min} to {argument}"),
            Values::Duration { min } => write!(f, "duration, {} to {}", Duration(*min), Duration(LONGEST)),
            Values::DurationFrom(argument) => write!(f, "duration, {argument} to {}", Duration(LONGEST)),
            Values::Seconds => write!(f, "1 to {LONGEST_SECONDS} s"),
            Values::Instant => {
                let (min, max) = self.range(None);
                write!(f, "Unix time in microseconds, {min} to {max}")
            }
            Values::Id => write!(f, "1 to {MAX_ID} bytes"),
        }
    }
}

/// A type that values of arguments are read as.
pub trait Read: Sized {
    /// `None` for a value of another kind.
    fn of(value: Value) -> Option<Self>;
}

macro_rules! read {
    ($($Type:ty: $value:pat => $read:expr;)*) => {
        $(impl Read for $Type {
            #[inline(always)]
            fn of(value: Value) -> Option<$Type> {
                if let $value = value { $read } else { None }
            }
        })*
    };
}

read! {
    u8: Value::Number(number) => number.try_into().ok();
    u32: Value::Number(number) => number.try_into().ok();
    u64: Value::Number(number) => Some(number);
    usize: Value::Number(number) => number.try_into().ok();
    NonZeroU64: Value::Number(number) => NonZeroU64::new(number);
    Span: Value::Millis(millis) => Some(Span::from_millis(millis));
    Period: Value::Millis(millis) => NonZeroU64::new(millis).map(Period::from_millis);
    f64: Value::Real(number) => Some(number);
    Time: Value::Instant(time) => Some(time);
}
