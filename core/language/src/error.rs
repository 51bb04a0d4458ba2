//! What can be wrong with a call, as data. The texts are part of the contract.

use core::fmt;

use ratelimit_core::limiter::{MAX_BUCKETS, TooLong};
use ratelimit_core::state::{MAX_ID, MAX_LIMITS};
use ratelimit_core::{MAX_PAIRS, PairError};

/// A malformed call, or a key of another kind: found before anything is changed.
///
/// A refusal is no error: it is a [`Verdict`](ratelimit_core::Verdict).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Too few arguments.
    Arity,
    /// An unknown word, an option given twice, or one without its value.
    Syntax,
    /// Not a number that fits 64 bits, written as Redis writes it.
    NotInteger,
    /// Not a finite decimal number.
    NotReal,
    /// Thresholds of the shedder out of order.
    Utilization,
    /// An argument outside its range, by its name in the command's syntax.
    OutOfRange { name: &'static str, min: u64, max: u64 },
    /// `AT` in seconds or milliseconds.
    AtUnit,
    /// A lease's id is empty or too long.
    IdLength,
    /// Sub-buckets that do not tile the window, or too many of them.
    Precision,
    /// The same key twice in a call.
    SameKeys,
    /// More pairs of a limit and a key than a call may name.
    TooManyPairs,
    /// More limits than a key may hold.
    TooManyLimits,
    /// A limiter, a debt or a booking that would take over 100 years to be fully reset.
    TooLong,
    /// Not the id of a stream's entry.
    StreamId,
    /// The key holds something else, or another limiter's state.
    WrongType,
    /// An `RL.APPLY` payload that this version cannot read.
    Payload,
    /// A defect of the module.
    Internal,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Arity => write!(f, "ERR wrong number of arguments"),
            Error::Syntax => write!(f, "ERR syntax error"),
            Error::NotInteger => write!(f, "ERR value is not an integer or out of range"),
            Error::NotReal => write!(f, "ERR value is not a valid float"),
            Error::Utilization => write!(f, "ERR GOOD and BAD must be 0 <= GOOD <= BAD < 1"),
            Error::OutOfRange { name, min, max } => write!(f, "ERR {name} must be between {min} and {max}"),
            Error::AtUnit => write!(f, "ERR AT must be Unix time in microseconds"),
            Error::IdLength => write!(f, "ERR id must be between 1 and {MAX_ID} bytes"),
            Error::Precision => {
                write!(f, "ERR PRECISION must divide window into at most {MAX_BUCKETS} parts")
            }
            Error::SameKeys => write!(f, "ERR keys must differ"),
            Error::TooManyPairs => write!(f, "ERR at most {MAX_PAIRS} pairs of a limit and a key"),
            Error::TooManyLimits => write!(f, "ERR at most {MAX_LIMITS} limits a key"),
            Error::TooLong => write!(f, "ERR limit would take too long to refill"),
            Error::StreamId => {
                write!(f, "ERR Invalid stream ID specified as stream command argument")
            }
            Error::WrongType => {
                write!(f, "WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Error::Payload => write!(f, "ERR malformed payload, or one of a newer version"),
            Error::Internal => write!(f, "ERR internal error of the ratelimit module, please report it"),
        }
    }
}

impl From<TooLong> for Error {
    fn from(TooLong: TooLong) -> Error {
        Error::TooLong
    }
}

impl From<ratelimit_core::Error> for Error {
    fn from(error: ratelimit_core::Error) -> Error {
        match error {
            ratelimit_core::Error::TooLong => Error::TooLong,
            ratelimit_core::Error::Defect => Error::Internal,
        }
    }
}

impl From<PairError> for Error {
    fn from(error: PairError) -> Error {
        match error {
            PairError::SameName => Error::Syntax,
            PairError::TooMany => Error::TooManyPairs,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn texts() {
        let period = Error::OutOfRange { name: "period", min: 1, max: 3_153_600_000_000 };
        assert_eq!(period.to_string(), "ERR period must be between 1 and 3153600000000");
        assert_eq!(Error::IdLength.to_string(), "ERR id must be between 1 and 256 bytes");
        assert_eq!(Error::Precision.to_string(), "ERR PRECISION must divide window into at most 1024 parts");
    }
}
