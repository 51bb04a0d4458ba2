//! The errors of calls. Their texts are part of the contract with callers.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;

use ratelimit_core::limiter::TooLong;
use ratelimit_core::state::MAX_LIMITS;
use ratelimit_core::{JointError, Kind, MAX_PAIRS, Name};

use crate::shown::{Guess, Shown, shown};

/// Why a call is an error. Except for [`Error::Internal`], nothing was changed.
///
/// A refusal is not an error but a [`Verdict`](ratelimit_core::Verdict).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// No argument at all. [`Error::of_command`] makes it the text of the server.
    Arity,
    /// An argument is missing. [`told`](crate::told) adds the syntax.
    Missing(Box<Missing>),
    /// A word is unknown, missing, given twice, or in the wrong place. The text goes on after `ERR syntax error`.
    Syntax(Box<str>),
    /// An argument has a value that it does not take, or a policy or its file is not valid. The text goes on after `ERR `.
    Invalid(Box<str>),
    /// A known option or limiter that the command does not take.
    NotForCommand(&'static str),
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
    /// The key holds a value of this type, which is none of the module's. [`told`](crate::told) adds what the command wants.
    WrongType(&'static str),
    /// The key holds another value of this module. The text goes on after `WRONGTYPE `.
    OtherKind(Box<str>),
    /// This version cannot read the payload of an `RL.APPLY`.
    Payload,
    /// The server's memory is full. The server refuses its own commands with the same text.
    OutOfMemory,
    /// A bug in the module.
    Internal,
    /// An error in one of the limits of a call. The first limit has the number 1.
    InLimit(usize, Box<Error>),
}

/// An argument that is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    pub(crate) name: &'static str,
    /// The limiter whose argument it is, if that is not the command's own.
    pub(crate) limiter: Option<&'static str>,
}

#[cold]
fn syntax(text: fmt::Arguments<'_>) -> Error {
    Error::Syntax(format!("{text}").into())
}

/// The texts of syntax errors.
impl Error {
    /// A word that is not known where it stands.
    pub fn near(word: &[u8]) -> Error {
        syntax(format_args!("{NEAR}'{}'", shown(word)))
    }

    /// A word that is not known where it stands, and what is wrong with it.
    pub fn near_because(word: &[u8], why: &str) -> Error {
        syntax(format_args!("{NEAR}'{}': {why}", shown(word)))
    }

    /// The call ends, or the limit, before this argument. The names of options are in upper case.
    #[cold]
    pub fn missing(name: &'static str) -> Error {
        if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            syntax(format_args!(": {name} needs a value"))
        } else {
            Error::absent(name)
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

    /// A call needs this argument, or this option with its value.
    #[cold]
    pub fn absent(name: &'static str) -> Error {
        Error::Missing(Box::new(Missing { name, limiter: None }))
    }

    /// The error in a call that names this limiter.
    #[must_use]
    #[cold]
    pub(crate) fn of_limiter(self, name: &'static str) -> Error {
        match self {
            Error::Missing(missing) => Error::Missing(Box::new(Missing { limiter: Some(name), ..*missing })),
            error => error,
        }
    }

    /// The key holds another type than these commands want.
    #[cold]
    pub(crate) fn of_other_type(held: &str, wanted: &str) -> Error {
        Error::OtherKind(format!("the key holds {held}, not {wanted}").into())
    }

    /// Whether another word in the place of a wrong one may be right.
    pub(crate) fn is_of_a_word(&self) -> bool {
        match self {
            Error::Invalid(_) => true,
            Error::InLimit(_, error) => error.is_of_a_word(),
            error => error.is_of_an_unknown_word(),
        }
    }

    /// Whether it is about a word that is not known where it stands.
    pub(crate) fn is_of_an_unknown_word(&self) -> bool {
        match self {
            Error::Syntax(text) => text.starts_with(NEAR),
            Error::InLimit(_, error) => error.is_of_an_unknown_word(),
            _ => false,
        }
    }

    /// The error, and what the caller may do about it.
    #[must_use]
    pub(crate) fn and(self, advice: &str) -> Error {
        match self {
            Error::Syntax(text) => Error::Syntax(format!("{text}{advice}").into()),
            Error::Invalid(text) => Error::Invalid(format!("{text}{advice}").into()),
            Error::InLimit(limit, error) => error.and(advice).in_limit(limit),
            other => other,
        }
    }

    /// An option in a limit that belongs before the first one.
    pub(crate) fn belongs_before(option: &'static str) -> Error {
        syntax(format_args!(": {option} belongs before the first LIMIT"))
    }

    /// An option before the first limit that belongs in one.
    pub(crate) fn belongs_in(option: &'static str) -> Error {
        syntax(format_args!(": {option} belongs in a LIMIT"))
    }

    /// A value is not valid, or a policy, or its file.
    #[cold]
    pub fn invalid(text: fmt::Arguments<'_>) -> Error {
        Error::Invalid(format!("{text}").into())
    }

    /// An argument has another value than it must have.
    #[cold]
    pub(crate) fn must_be(name: &str, what: fmt::Arguments<'_>, word: &[u8]) -> Error {
        Error::invalid(format_args!("{name} must be {what}; got '{}'", shown(word)))
    }

    /// A text about the policy of this name.
    #[cold]
    pub fn policy(name: &[u8], what: fmt::Arguments<'_>) -> Error {
        Error::invalid(format_args!("policy '{}' {what}", shown(name)))
    }

    /// There is no policy of this name, but of these `names`.
    #[cold]
    pub fn no_policy<'n>(name: &[u8], names: impl Iterator<Item = &'n str>) -> Error {
        Error::invalid(format_args!("no such policy '{}'{}", shown(name), Guess::of(name, names)))
    }

    /// There is no policy of this name, but one of the key's.
    #[cold]
    pub fn policy_before_key(name: &[u8], key: &[u8]) -> Error {
        let (name, key) = (shown(name), shown(key));
        let why = format_args!("the key comes first, and '{key}' is a policy");
        Error::invalid(format_args!("no such policy '{name}'; {why}"))
    }

    /// The word is no command that `RL.EXPLAIN` explains, but the next one is.
    #[cold]
    pub(crate) fn key_before_command(command: &str, key: &[u8]) -> Error {
        // Behind RL.MULTI, the number of keys is before them.
        let key = if command == "MULTI" { String::new() } else { format!("{} ", shown(key)) };
        syntax(format_args!(": the command comes first: RL.EXPLAIN {command} {key}..."))
    }

    /// The key holds another value of this module: limits, a sketch or an amount. `wanted` is `None` for any limits.
    #[cold]
    pub fn other_kind(held: Kind, wanted: Option<Kind>) -> Error {
        let held = if held.is_limit() || held == Kind::LimitSet { "limits" } else { held.title().0 };
        let wanted = wanted.map_or("limits", |kind| kind.title().0);
        Error::of_other_type(held, wanted)
    }

    /// The version that is to be set is not above that of the stored policy.
    #[cold]
    pub fn old_version(name: &[u8], stored: u64) -> Error {
        Error::policy(name, format_args!("is at version {stored}"))
    }

    /// The words of a policy have more bytes than one may have.
    #[cold]
    pub fn policy_too_long(name: &str, most: usize) -> Error {
        Error::policy(name.as_bytes(), format_args!("is longer than {most} bytes"))
    }

    /// The policy has a limit of a limiter that does not take the option, or the command.
    #[cold]
    pub(crate) fn not_for_policy(name: &[u8], limiter: &str, word: &str) -> Error {
        Error::policy(name, format_args!("has a {limiter} limit; {word} is not for it"))
    }

    /// No subcommand has this name. The server replies the same.
    #[cold]
    pub fn unknown_subcommand(word: &[u8]) -> Error {
        let word = String::from_utf8_lossy(word.get(..128).unwrap_or(word));
        Error::invalid(format_args!("unknown subcommand '{word}'. Try RL.POLICY HELP."))
    }

    fn same_name(name: Name) -> Error {
        syntax(format_args!(": {} twice on one key", Shown(name)))
    }

    /// Names the command in the error: `prefix` and `name`, joined.
    #[must_use]
    #[cold]
    pub fn of_command(self, prefix: &str, name: &str) -> Error {
        match self {
            Error::NotForCommand(word) => syntax(format_args!(": {word} is not for {prefix}{name}")),
            Error::Arity => {
                let name = format!("{prefix}{name}").to_ascii_lowercase();
                Error::invalid(format_args!("wrong number of arguments for '{name}' command"))
            }
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Arity => write!(f, "ERR wrong number of arguments"),
            Error::Missing(missing) => write!(f, "ERR {} is missing", missing.name),
            Error::Syntax(text) => write!(f, "ERR syntax error{text}"),
            Error::Invalid(text) => write!(f, "ERR {text}"),
            Error::NotForCommand(word) => write!(f, "ERR syntax error: {word} is not for this command"),
            Error::SameKeys => write!(f, "ERR keys must differ"),
            Error::TooManyPairs => write!(f, "ERR at most {MAX_PAIRS} pairs of a limit and a key"),
            Error::TooManyLimits => write!(f, "ERR at most {MAX_LIMITS} limits a key"),
            Error::TooLong => write!(f, "ERR limit would take too long to refill"),
            Error::TooManyHolds => write!(f, "ERR too many holds"),
            Error::StreamId => {
                write!(f, "ERR Invalid stream ID specified as stream command argument")
            }
            Error::OtherKind(text) => write!(f, "WRONGTYPE {text}"),
            Error::WrongType(held) => write!(f, "WRONGTYPE the key holds {held}"),
            Error::Payload => write!(f, "ERR malformed payload, or one of a newer version"),
            Error::OutOfMemory => write!(f, "OOM command not allowed when used memory > 'maxmemory'."),
            Error::Internal => write!(f, "ERR internal error of the ratelimit module, please report it"),
            Error::InLimit(limit, error) => write!(f, "{error} (LIMIT {limit})"),
        }
    }
}

impl core::error::Error for Error {}

/// How the text of a word begins that is not known where it stands.
const NEAR: &str = " near ";

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
    fn a_caller_s_word_is_shown_escaped_and_cut_off() {
        assert_eq!(Error::near(b"CO\r\nST'\xff").to_string(), r"ERR syntax error near 'CO\r\nST\'\xff'");
        let long = Error::near(&[b'A'; 65]).to_string();
        assert_eq!(long, std::format!("ERR syntax error near '{}...'", "A".repeat(64)));
    }

    #[test]
    fn an_error_names_its_command_and_its_limit() {
        let told = Error::NotForCommand("RESERVE").in_limit(2).of_command("RL.", "MULTI").to_string();
        assert_eq!(told, "ERR syntax error: RESERVE is not for RL.MULTI (LIMIT 2)");
    }
}
