//! Answers calls from memory, with the arithmetic and the command language of the module, and no server.
//!
//! Nothing is deleted when it expires: to all but `EXISTS`, an expired key and a fully reset one answer alike. What only a
//! server has is a [`Failure`] that says so: callers that wait, policies, time zones.

mod alone;
mod elsewhere;
mod lease;
mod limit;
mod multi;

use std::collections::BTreeMap;
use std::{fmt, mem};

use ratelimit_core::answer::clamped;
use ratelimit_core::limiter::Amount;
use ratelimit_core::state::Cells;
use ratelimit_core::{Kind, LimitSet, LimitState, Lines, Name, Span, State, Time, with_kept};
use ratelimit_dice::Dice;
use ratelimit_language::{Arguments, Bounds, Error, find, without_prefix};

use crate::reply::{Full, Reply, Server};
use crate::trial::SEED;

pub struct Memory {
    keys: BTreeMap<Vec<u8>, Value>,
    /// Tenants of leases that were refused, for which room is kept.
    lines: Lines<Vec<u8>>,
    hunger: Span,
    dice: Dice,
    /// When a call without `AT` is made.
    clock: Option<Time>,
}

/// What a key holds.
enum Value {
    Limits(LimitSet),
    /// With when it is at rest.
    Amount(Amount, Time),
    /// With when all its items are fully reset.
    Cells(Cells, Time),
}

/// Why a call has no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A server replies with the same error.
    Error(Error),
    /// Only a server can reply: this needs it.
    NeedsServer(String),
}

type Answered<T = Full> = Result<T, Failure>;

/// What answers a command; the words are those after the command's name.
type Run = fn(&mut Memory, &[&[u8]]) -> Answered;

/// The commands beside those of the limiters: their names, the least number of words after the name, and what answers them.
const COMMANDS: [(&str, usize, Run); 15] = [
    ("CL.THROTTLE", 4, Memory::throttle),
    ("EXISTS", 1, Memory::exists),
    ("RL.MULTI", 5, Memory::multi),
    ("RL.MULTIPEEK", 5, Memory::multi_peek),
    ("RL.MULTIREFUND", 5, Memory::multi_refund),
    ("RL.MULTIRELEASE", 3, Memory::multi_release),
    ("RL.MULTISETTLE", 6, Memory::multi_settle),
    ("RL.PEEK", 3, Memory::peek),
    ("RL.REFUND", 3, Memory::refund),
    ("RL.RELEASE", 2, Memory::release),
    ("RL.RENEW", 3, Memory::renew),
    ("RL.SETTLE", 6, Memory::settle),
    ("RL.SHED", 2, Memory::shed),
    ("RL.SKETCH", 5, Memory::sketch),
    ("RL.THROTTLE", 4, Memory::throttle),
];

/// The module's defaults.
const MOST_HOLDS: u64 = 10_000;
const BOUNDS: Bounds = Bounds::DEFAULT;

impl Memory {
    pub fn new() -> Memory {
        Memory::with_hunger(1000)
    }

    /// With another `ratelimit.hunger`, in milliseconds.
    pub fn with_hunger(hunger: u64) -> Memory {
        Memory {
            keys: BTreeMap::new(),
            lines: Lines::default(),
            hunger: Span::from_millis(hunger),
            dice: Dice::new(SEED),
            clock: None,
        }
    }

    /// The reply to a command at an instant, in microseconds of Unix time. `AT` in the command replaces the instant.
    pub fn reply_at(&mut self, at: u64, line: &str) -> Answered {
        self.clock = Some(Time::from_micros(at));
        self.reply(line)
    }

    /// The reply to a command, its words between spaces.
    pub fn reply(&mut self, line: &str) -> Answered {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let Some((command, words)) = words.split_first() else { return Err(Error::Arity.into()) };
        if needs_zones(command, words) {
            return Err(needs_server("CALENDAR"));
        }
        let (prefix, name, answered) = if let Some(row) = without_prefix(command).and_then(find) {
            let least = row.documentation.syntax.split(' ').take_while(|word| !word.starts_with('[')).count();
            ("RL.", row.name(), (words.len() >= least).then(|| self.limit(row, words)))
        } else if let Some((name, least, run)) = COMMANDS.iter().find(|(name, ..)| is(command, name)) {
            ("", *name, (words.len() >= *least).then(|| run(self, words)))
        } else if elsewhere::has(command) {
            return Err(needs_server(&String::from_utf8_lossy(&command.to_ascii_uppercase())));
        } else {
            return Err(unknown(command, words).into());
        };
        answered.unwrap_or(Err(Error::Arity.into())).map_err(|failure| match failure {
            Failure::Error(Error::Arity) => {
                let name = format!("{prefix}{name}").to_ascii_lowercase();
                Error::invalid(format_args!("wrong number of arguments for '{name}' command")).into()
            }
            Failure::Error(error) => error.of_command(prefix, name).into(),
            failure @ Failure::NeedsServer(_) => failure,
        })
    }

    /// `EXISTS key ...`: a key expires when it is fully reset.
    #[allow(clippy::unnecessary_wraps, reason = "as every command")]
    fn exists(&mut self, keys: &[&[u8]]) -> Answered {
        let lasts = |value: &Value| self.clock.is_none_or(|now| value.until() > now);
        let count = keys.iter().filter(|key| self.keys.get(**key).is_some_and(lasts)).count();
        Ok(Reply::Integer(clamped(count as u64)).into())
    }

    /// The instant of a call.
    fn at(&self, given: Option<Time>) -> Answered<Time> {
        let missing = || Error::invalid(format_args!("a call has its instant in AT"));
        Ok(given.or(self.clock).ok_or_else(missing)?)
    }

    /// Runs with the limits of a key. `wanted` is the limit that the call is about, for the error that the key holds something
    /// else.
    fn with_limits<T>(
        &mut self,
        key: &[u8],
        wanted: Option<Name>,
        run: impl FnOnce(&mut Memory, &mut LimitSet) -> Answered<T>,
    ) -> Answered<T> {
        let mut limits = self.take(key, wanted)?;
        let done = run(self, &mut limits);
        self.put(key, limits);
        done
    }

    /// Takes the limits out of a key; [`put`](Self::put) puts them back.
    fn take(&mut self, key: &[u8], wanted: Option<Name>) -> Result<LimitSet, Error> {
        match self.keys.get_mut(key) {
            None => Ok(LimitSet::default()),
            Some(Value::Limits(limits)) => Ok(mem::take(limits)),
            Some(other) => Err(Error::other_kind(other.kind(), wanted.map(|name| name.kind))),
        }
    }

    /// A key without a limit is none.
    fn put(&mut self, key: &[u8], limits: LimitSet) {
        match self.keys.get_mut(key) {
            Some(Value::Limits(_)) if limits.is_empty() => _ = self.keys.remove(key),
            Some(Value::Limits(before)) => *before = limits,
            None if !limits.is_empty() => _ = self.keys.insert(key.to_vec(), Value::Limits(limits)),
            _ => {}
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Server for Memory {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        self.reply(line).map(|full| full.reply).map_err(|failure| failure.to_string())
    }
}

impl Value {
    fn is_limits(&self) -> bool {
        matches!(self, Value::Limits(_))
    }

    fn until(&self) -> Time {
        match self {
            Value::Limits(limits) => limits.until(),
            Value::Amount(_, until) | Value::Cells(_, until) => *until,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Value::Limits(_) => Kind::LimitSet,
            Value::Amount(..) => Kind::Amount,
            Value::Cells(..) => Kind::Cells,
        }
    }

    /// The error for a call that wants a state which has a key to itself.
    fn is_not<S: State>(&self) -> Failure {
        Error::other_kind(self.kind(), Some(S::KIND)).into()
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Error(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::NeedsServer(what) => write!(f, "{what} needs a server: it cannot be tried on this page"),
        }
    }
}

/// Whether a call is about a calendar. Its time zones are too large for a page.
fn needs_zones(command: &[u8], words: &[&[u8]]) -> bool {
    is(command, "RL.CALENDAR") || words.iter().skip(1).any(|word| is(word, "CALENDAR"))
}

/// Whether a word is this name, in upper or lower case.
fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

fn needs_server(what: &str) -> Failure {
    Failure::NeedsServer(what.into())
}

/// A server's error for a command that it does not have.
fn unknown(command: &[u8], words: &[&[u8]]) -> Error {
    let quoted = |word: &[u8]| format!("'{}'", String::from_utf8_lossy(word));
    let words: Vec<String> = words.iter().copied().map(quoted).collect();
    let (command, words) = (quoted(command), words.join(" "));
    Error::invalid(format_args!("unknown command {command}, with args beginning with: {words}"))
}

/// The key, and the arguments after it.
fn first<'w, 'a>(words: &'w [&'a [u8]]) -> Result<(&'a [u8], Arguments<'w, 'a>), Error> {
    let (key, rest) = words.split_first().ok_or(Error::Arity)?;
    Ok((key, Arguments::new(rest, BOUNDS)))
}

/// A key that is fully reset after something was given back holds nothing any more.
fn forget_if_reset(limits: &mut LimitSet, given_back: Option<Time>, reset: Span) {
    let is_reset = |at| match limits.stored() {
        [only] => with_kept!(&only.state, state => state.memory()) == Span::ZERO,
        _ => limits.until() <= at,
    };
    if reset == Span::ZERO && given_back.is_some_and(is_reset) {
        *limits = LimitSet::default();
    }
}
