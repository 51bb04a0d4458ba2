//! The errors of calls. Their texts are part of the contract with callers.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use ratelimit_core::limiter::{self, TooLong};
use ratelimit_core::state::{MAX_BUCKETS, MAX_ID, MAX_LIMITS};
use ratelimit_core::{JointError, Kind, MAX_PAIRS, Name, Span};

use crate::vocabulary::{MAX_NAME, UNITS};

/// Why a call is an error. Except for [`Error::Internal`], nothing was changed.
///
/// A refusal is not an error but a [`Verdict`](ratelimit_core::Verdict).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Too few or too many arguments.
    Arity,
    /// A word is unknown, missing, given twice, or in the wrong place. The text goes on after `ERR syntax error`.
    Syntax(Box<str>),
    /// A policy, a call of one, or the file of policies is not valid. The text goes on after `ERR `.
    Policy(Box<str>),
    /// The name of a policy is too long, or has bytes that a name may not have.
    PolicyName,
    /// A known option or limiter that the command does not take.
    NotForCommand(&'static str),
    /// An argument is no number, or outside of its range. `name` is its name in the command's syntax. The unit begins with
    /// a space, or is empty.
    OutOfRange { name: &'static str, min: u64, max: u64, unit: &'static str },
    /// No call can satisfy a limit of a policy, because it asks for more than the limit.
    CostAboveLimit { cost: u64, limit: u64 },
    /// The thresholds of `RL.SHED` are out of order.
    Thresholds,
    /// `AT` is not in microseconds, but probably in seconds or milliseconds.
    AtUnit,
    /// The id of a lease is empty or longer than [`MAX_ID`] bytes.
    IdLength,
    /// The precision does not divide the window into at most [`MAX_BUCKETS`] parts.
    Precision,
    /// The width of a sketch is no power of two.
    Width,
    /// The cells of a sketch need more than `most` bytes.
    SketchBytes { most: u64 },
    /// The unit of `RL.CALENDAR` is none of its words.
    CalendarUnit,
    /// No time zone has this name, and it is no offset.
    TimeZone,
    /// Two keys of a call are the same.
    SameKeys,
    /// A call names more than [`MAX_PAIRS`] pairs of a limit and a key.
    TooManyPairs,
    /// A key would hold more than [`MAX_LIMITS`] limits.
    TooManyLimits,
    /// A limiter, a debt or a booking would take over 100 years to be fully reset.
    TooLong,
    /// A key would have more holds than the setting allows, or a hold more charges than it can remember.
    TooManyHolds,
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
    /// An error in one of the limits of a call. The first limit has the number 1.
    InLimit(usize, Box<Error>),
}

/// The most bytes of a caller's word in an error.
const MAX_SHOWN: usize = 64;

#[cold]
fn syntax(text: fmt::Arguments<'_>) -> Error {
    Error::Syntax(format!("{text}").into())
}

/// The texts of syntax errors.
impl Error {
    /// A word that is not known where it stands.
    pub(crate) fn near(word: &[u8]) -> Error {
        syntax(format_args!(" near '{}'", shown(word)))
    }

    /// A word that is not known where it stands, and what is wrong with it.
    pub fn near_because(word: &[u8], why: &str) -> Error {
        syntax(format_args!(" near '{}': {why}", shown(word)))
    }

    /// The call ends, or the limit, before this argument. The names of options are in upper case.
    pub(crate) fn missing(name: &'static str) -> Error {
        if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            syntax(format_args!(": {name} needs a value"))
        } else {
            syntax(format_args!(": {name} is missing"))
        }
    }

    pub(crate) fn twice(option: &'static str) -> Error {
        syntax(format_args!(": {option} is given twice"))
    }

    pub(crate) fn exclude(one: &'static str, other: &'static str) -> Error {
        syntax(format_args!(": {one} and {other} exclude each other"))
    }

    pub(crate) fn needs(option: &'static str, other: &'static str) -> Error {
        syntax(format_args!(": {option} needs {other}"))
    }

    /// A call needs this option, with its value.
    pub fn absent(option: &'static str) -> Error {
        syntax(format_args!(": {option} is missing"))
    }

    /// An option in a limit that belongs before the first one.
    pub(crate) fn belongs_before(option: &'static str) -> Error {
        syntax(format_args!(": {option} belongs before the first LIMIT"))
    }

    /// An option before the first limit that belongs in one.
    pub(crate) fn belongs_in(option: &'static str) -> Error {
        syntax(format_args!(": {option} belongs in a LIMIT"))
    }

    /// A text about the policy of this name.
    #[cold]
    pub(crate) fn policy(name: &[u8], what: fmt::Arguments<'_>) -> Error {
        Error::Policy(format!("policy '{}' {what}", shown(name)).into())
    }

    /// There is no policy of this name.
    #[cold]
    pub fn no_policy(name: &[u8]) -> Error {
        Error::Policy(format!("no such policy '{}'", shown(name)).into())
    }

    /// The version that is to be set is not above that of the stored policy.
    #[cold]
    pub fn old_version(name: &[u8], stored: u64) -> Error {
        Error::policy(name, format_args!("is at version {stored}"))
    }

    /// The policy has a limit of a limiter that does not take the option, or the command.
    #[cold]
    pub(crate) fn not_for_policy(name: &[u8], limiter: &str, word: &str) -> Error {
        Error::policy(name, format_args!("has a {limiter} limit, {word} is not for it"))
    }

    fn same_name(name: Name) -> Error {
        let (limiter, mode) = name.kind.title();
        let mode = match mode {
            // The options that give a limit another name.
            "batch" => " BATCH",
            "aligned" => " ALIGNED",
            "precision" => " with PRECISION",
            "warming" => " with WARMUP",
            _ => "",
        };
        let shadow = if name.length.is_shadow() { " with SHADOW" } else { "" };
        if name.length.span() == Span::ZERO {
            return syntax(format_args!(": {limiter}{shadow} twice on one key"));
        }
        if let Some(unit) = calendar_unit(name) {
            return syntax(format_args!(": {limiter} {unit}{shadow} twice on one key"));
        }
        let millis = name.length.span().as_millis_up();
        syntax(format_args!(": {limiter}{mode} of {millis} ms{shadow} twice on one key"))
    }

    /// Names the command in the error: `prefix` and `name`, joined.
    #[must_use]
    #[cold]
    pub fn of_command(self, prefix: &str, name: &str) -> Error {
        match self {
            Error::NotForCommand(word) => syntax(format_args!(": {word} is not for {prefix}{name}")),
            Error::InLimit(limit, error) => error.of_command(prefix, name).in_limit(limit),
            other => other,
        }
    }

    /// The error in a limit of a call. The first limit has the number 1.
    #[must_use]
    #[cold]
    pub(crate) fn in_limit(self, limit: usize) -> Error {
        Error::InLimit(limit, Box::new(self))
    }
}

/// The unit in the name of a calendar's limit.
fn calendar_unit(name: Name) -> Option<&'static str> {
    let of_length = |(_, unit): &&(&str, limiter::Unit)| unit.length() == name.length.span();
    UNITS.iter().filter(|_| name.kind == Kind::Page).find(of_length).map(|(word, _)| *word)
}

/// A caller's word, escaped and cut off.
fn shown(word: &[u8]) -> impl fmt::Display {
    word.get(..MAX_SHOWN).unwrap_or(word).escape_ascii()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Arity => write!(f, "ERR wrong number of arguments"),
            Error::Syntax(text) => write!(f, "ERR syntax error{text}"),
            Error::Policy(text) => write!(f, "ERR {text}"),
            Error::PolicyName => write!(f, "ERR name must be 1 to {MAX_NAME} of A-Z a-z 0-9 . _ : -"),
            Error::NotForCommand(word) => write!(f, "ERR syntax error: {word} is not for this command"),
            Error::OutOfRange { name, min, max, unit } => {
                write!(f, "ERR {name} must be between {min} and {max}{unit}")
            }
            Error::CostAboveLimit { cost, limit } => write!(f, "ERR COST {cost} is above the limit {limit}"),
            Error::Thresholds => write!(f, "ERR GOOD and BAD must be 0 <= GOOD <= BAD < 1"),
            Error::AtUnit => write!(f, "ERR AT must be Unix time in microseconds"),
            Error::IdLength => write!(f, "ERR id must be between 1 and {MAX_ID} bytes"),
            Error::Precision => {
                write!(f, "ERR PRECISION must divide window into at most {MAX_BUCKETS} parts")
            }
            Error::Width => write!(f, "ERR WIDTH must be a power of two"),
            Error::SketchBytes { most } => {
                write!(f, "ERR WIDTH * DEPTH * 8 must be at most {most} bytes (ratelimit.max-sketch-bytes)")
            }
            Error::CalendarUnit => write!(f, "ERR unit must be HOUR, DAY, WEEK, MONTH, QUARTER or YEAR"),
            Error::TimeZone => {
                write!(f, "ERR TZ must be UTC, an offset such as +02:00 or an IANA time zone")
            }
            Error::SameKeys => write!(f, "ERR keys must differ"),
            Error::TooManyPairs => write!(f, "ERR at most {MAX_PAIRS} pairs of a limit and a key"),
            Error::TooManyLimits => write!(f, "ERR at most {MAX_LIMITS} limits a key"),
            Error::TooLong => write!(f, "ERR limit would take too long to refill"),
            Error::TooManyHolds => write!(f, "ERR too many holds"),
            Error::StreamId => {
                write!(f, "ERR Invalid stream ID specified as stream command argument")
            }
            Error::WrongType => {
                write!(f, "WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Error::Payload => write!(f, "ERR malformed payload, or one of a newer version"),
            Error::OutOfMemory => write!(f, "OOM command not allowed when used memory > 'maxmemory'."),
            Error::Internal => write!(f, "ERR internal error of the ratelimit module, please report it"),
            Error::InLimit(limit, error) => write!(f, "{error} (LIMIT {limit})"),
        }
    }
}

impl core::error::Error for Error {}

impl From<TooLong> for Error {
    fn from(TooLong: TooLong) -> Error {
        Error::TooLong
    }
}

impl From<ratelimit_core::Error> for Error {
    fn from(error: ratelimit_core::Error) -> Error {
        match error {
            ratelimit_core::Error::TooLong => Error::TooLong,
            ratelimit_core::Error::TooManyLimits => Error::TooManyLimits,
            ratelimit_core::Error::Defect => Error::Internal,
        }
    }
}

impl From<JointError> for Error {
    fn from(error: JointError) -> Error {
        match error {
            JointError::SameName { name, limit } => Error::same_name(name).in_limit(limit + 1),
            JointError::TooMany => Error::TooManyPairs,
            JointError::TooLong { limit } => Error::TooLong.in_limit(limit + 1),
            JointError::TooManyHolds => Error::TooManyHolds,
            JointError::TooManyLimits => Error::TooManyLimits,
            JointError::Defect => Error::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_texts_contain_the_bounds() {
        let period = Error::OutOfRange { name: "period", min: 1, max: 3_153_600_000_000, unit: " ms" };
        assert_eq!(period.to_string(), "ERR period must be between 1 and 3153600000000 ms");
        assert_eq!(Error::IdLength.to_string(), "ERR id must be between 1 and 256 bytes");
        assert_eq!(Error::Precision.to_string(), "ERR PRECISION must divide window into at most 1024 parts");
    }

    #[test]
    fn a_caller_s_word_is_shown_escaped_and_cut_off() {
        assert_eq!(Error::near(b"CO\r\nST'\xff").to_string(), r"ERR syntax error near 'CO\r\nST\'\xff'");
        let long = Error::near(&[b'A'; 65]).to_string();
        assert_eq!(long, std::format!("ERR syntax error near '{}'", "A".repeat(64)));
    }

    #[test]
    fn an_error_names_its_command_and_its_limit() {
        let told = Error::NotForCommand("RESERVE").in_limit(2).of_command("RL.", "MULTI").to_string();
        assert_eq!(told, "ERR syntax error: RESERVE is not for RL.MULTI (LIMIT 2)");
    }
}
