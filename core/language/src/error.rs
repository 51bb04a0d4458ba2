//! The errors of calls. Their texts are part of the contract with callers.

use core::fmt;

use ratelimit_core::limiter::TooLong;
use ratelimit_core::state::{MAX_BUCKETS, MAX_ID, MAX_LIMITS};
use ratelimit_core::{MAX_PAIRS, PairError};

/// Why a call is an error. Except for [`Error::Internal`], nothing was changed.
///
/// A refusal is not an error but a [`Verdict`](ratelimit_core::Verdict).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Too few arguments.
    Arity,
    /// A word is unknown, or an option is given twice, without its value, or where it is not allowed.
    Syntax,
    /// An argument is not an integer of 64 bits, as Redis writes it.
    NotInteger,
    /// An argument is not a finite decimal number.
    NotReal,
    /// The thresholds of `RL.SHED` are out of order.
    Utilization,
    /// An argument is outside its range. `name` is its name in the command's syntax.
    OutOfRange { name: &'static str, min: u64, max: u64 },
    /// `AT` is not in microseconds, but probably in seconds or milliseconds.
    AtUnit,
    /// The id of a lease is empty or longer than [`MAX_ID`] bytes.
    IdLength,
    /// The precision does not divide the window into at most [`MAX_BUCKETS`] parts.
    Precision,
    /// Two keys of a call are the same.
    SameKeys,
    /// A call names more than [`MAX_PAIRS`] pairs of a limit and a key.
    TooManyPairs,
    /// A key would hold more than [`MAX_LIMITS`] limits.
    TooManyLimits,
    /// A limiter, a debt or a booking would take over 100 years to be fully reset.
    TooLong,
    /// An argument is not the id of a stream entry.
    StreamId,
    /// The key holds another type, or another limiter's state.
    WrongType,
    /// This version cannot read the payload of an `RL.APPLY`.
    Payload,
    /// The server's memory is full. The server refuses its own commands with the same text.
    OutOfMemory,
    /// A bug in the module.
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
            Error::OutOfMemory => write!(f, "OOM command not allowed when used memory > 'maxmemory'."),
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
    fn the_texts_contain_the_bounds() {
        let period = Error::OutOfRange { name: "period", min: 1, max: 3_153_600_000_000 };
        assert_eq!(period.to_string(), "ERR period must be between 1 and 3153600000000");
        assert_eq!(Error::IdLength.to_string(), "ERR id must be between 1 and 256 bytes");
        assert_eq!(Error::Precision.to_string(), "ERR PRECISION must divide window into at most 1024 parts");
    }
}
