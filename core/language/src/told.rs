//! The error that a wrong call replies: which argument is missing, with the syntax; the name of the command; and what the caller
//! may have meant.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::argument::Values;
use crate::arguments::missing;
use crate::catalog::{Row, find};
use crate::check::{WrongCall, explained};
use crate::docs;
use crate::error::Error;
use crate::guess::guess;
use crate::help::Documentation;
use crate::number::{duration, integer};
use crate::syntax::{self, Kind, Part};
use crate::vocabulary::{ID, KEY, LIMITER, PARAMETER};

/// Of calls with more words the reply is the error alone, so a call of a megabyte is not parsed again and again.
pub const MOST_WORDS: usize = 128;

/// The error that the call replies.
#[must_use]
#[cold]
pub fn told(error: Error, call: &WrongCall<'_>) -> Error {
    let Documentation { prefix, name, .. } = *call.command;
    if name == docs::EXPLAIN.name
        && let Some((word, words)) = call.words.split_first()
        && let Some(command) = explained(word)
    {
        return told(error, &WrongCall { command, words, ..*call });
    }
    if let Error::WrongType(held) = error {
        return Error::of_other_type(held, wanted(name));
    }
    if call.words.len() > MOST_WORDS {
        return call.with_syntax(error).of_command(prefix, name);
    }
    // Another error, such as that of full memory, is of a call that lacks nothing.
    let may_lack = error.is_of_a_word() || matches!(error, Error::Missing(_) | Error::Arity);
    let error = if may_lack { call.lacking().map_or(error, Error::absent) } else { error };
    let advice = if error.is_of_a_word() { guess(&error, call) } else { None };
    let error = call.with_syntax(error).of_command(prefix, name);
    match advice {
        Some(advice) => error.and(&advice),
        None => error,
    }
}

/// What a command wants its key to hold.
fn wanted(command: &'static str) -> &'static str {
    match command {
        "XADD" => "a stream",
        "LPUSH" | "RPUSH" => "a list",
        "THROTTLE" => "GCRA",
        "SKETCH" | "SHED" => command,
        _ => find(command.as_bytes()).map_or("limits", Row::name),
    }
}

impl<'c> WrongCall<'c> {
    /// The first argument that the call lacks.
    fn lacking(&self) -> Option<&'static str> {
        let (parts, words) = self.parts();
        let name = missing(required(&parts).into_iter(), words, None);
        let takes_key = parts.first().is_some_and(|part| part.kind == Kind::Key);
        if takes_key && self.parses_with_key() { Some(KEY.name) } else { name }
    }

    /// Whether the first word cannot be meant as a key, and the call is right with a key before it.
    fn parses_with_key(&self) -> bool {
        let is_no_key =
            |word: &&[u8]| integer(word).is_some() || duration(word).is_some() || find(word).is_some();
        self.words.first().is_some_and(is_no_key) && {
            let words: Vec<&[u8]> = [&b"key"[..]].into_iter().chain(self.words.iter().copied()).collect();
            self.parses(self.command, &words)
        }
    }

    /// The parts of the syntax after the command's name, and the words for them: those of a subcommand without its word.
    fn parts(&self) -> (Vec<Part>, &'c [&'c [u8]]) {
        let sub = self.words.split_first().and_then(|(word, words)| {
            let mut subs = self.command.subcommands();
            let sub = subs.find(|sub| word.eq_ignore_ascii_case(sub.name.as_bytes()))?;
            Some((sub.parts.unwrap_or_default(), words))
        });
        sub.unwrap_or_else(|| (self.command.parts(), self.words))
    }

    /// Adds the syntax to the error of an argument that is missing.
    fn with_syntax(&self, error: Error) -> Error {
        match error {
            Error::Missing(missing) => {
                let syntax = self.syntax(missing.limiter.and_then(|name| docs::find(name.as_bytes())));
                Error::invalid(format_args!("{} is missing: {syntax}", missing.name))
            }
            Error::InLimit(limit, error) => self.with_syntax(*error).in_limit(limit),
            error => error,
        }
    }

    /// The syntax without options, such as `RL.PEEK key GCRA max_burst count period [options]`.
    fn syntax(&self, limiter: Option<&Documentation>) -> String {
        let (parts, words) = self.parts();
        let name = match self.words.first() {
            Some(sub) if words.len() < self.words.len() => {
                format!("{} {}", self.command.full_name(), String::from_utf8_lossy(sub).to_ascii_uppercase())
            }
            _ => self.command.full_name(),
        };
        let syntax = format!("{name} {}", syntax::brief(&parts));
        let Some(limiter) = limiter else { return syntax };
        let has_ids = self.command.name != docs::POLICY.name;
        let parameters = required(&limiter.parts()).into_iter().skip(1).map(|(name, _)| name);
        let parameters = parameters.filter(|name| has_ids || *name != ID.name);
        let names: Vec<&str> = [limiter.name].into_iter().chain(parameters).collect();
        syntax.replace(&format!("{} parameter [parameter ...]", LIMITER.name), &names.join(" "))
    }
}

/// The arguments that each call begins with. Of those of a limiter, the limiter's row knows more.
fn required(parts: &[Part]) -> Vec<(&'static str, Values)> {
    let mut required = Vec::new();
    for part in parts {
        match part.kind {
            Kind::Token | Kind::OneOf => break,
            _ if part.is_optional || part.token.is_some() || part.argument_name() == Some(PARAMETER.name) => {
                break;
            }
            Kind::All => required.extend(self::required(&part.parts)),
            _ => required.extend(part.argument_name().map(|name| (name, part.values()))),
        }
        if part.is_repeated {
            break;
        }
    }
    required
}
