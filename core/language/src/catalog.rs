//! The catalog: a row for every limiter.

use alloc::format;

use ratelimit_core::{AnyLimiter, Capabilities};

use crate::arguments::{Arguments, is, missing, without_prefix};
use crate::calls::{CellCall, ShedCall, SketchCall};
use crate::error::Error;
use crate::help::{Documentation, OWN_PREFIX};
use crate::keys::{KeyUse, Keys};
use crate::limiters;
use crate::number::{duration, integer};
use crate::request::Request;
use crate::vocabulary::{
    ADAPT, ALIGNED, ANCHOR, AT, Argument, BACKOFF, BAN, BATCH, BLOCK, BURST, CAPACITY, COLDFACTOR, COST,
    COUNTREFUSED, CRITICAL, CRITICAL_CALL, FENCE, FLOOR, FORCE, FORGIVE, GAP, GRADIENT, GROW, HOLD, HOLD_TTL,
    ID, INTERVAL, KEY, LEAK, LEASES, LIMITER, LOG_LIMIT, MAX, MAX_BURST, MAXWAIT, PARTIAL, PERIOD, PERMITS,
    PRECISION, RATE, REFILL, RESERVE, RESERVED, SLOW, START, STRIKE, STRIKE_WINDOW, STRIKES, TENANT, TTL, TZ,
    UNIT, Values, WARMUP, WEIGHT, WINDOW, WINDOW_LIMIT,
};

/// A limiter's command.
pub struct Row {
    pub documentation: Documentation,
    /// Parses the arguments after the key. The options that all limiters share go into the [`Request`].
    pub parse: for<'a> fn(&mut Arguments<'_, 'a>, &mut Request<'a>) -> Result<AnyLimiter<'a>, Error>,
}

const FIVE: &str = "Five integers: limited (1 if refused, else 0), limit, remaining, retry_after in ms (-1 if never), \
                    and reset_after in ms.";
const GRANTED: &str = "With PARTIAL a sixth integer: granted.";
const BOOKED: &str = "With RESERVE, an admitted caller waits for retry_after before it acts.";
const WAIT: &str = "An admitted caller waits for retry_after before it acts.";

/// A limiter's row, from the function that parses its arguments, and its documentation. The syntax and the arguments of most
/// limiters end alike: in a row of `debt` and of `booked`, which can also book ahead, the macro adds the end. In an `own` row
/// it adds nothing to them.
macro_rules! row {
    (debt $parse:path, $($own:tt)*) => {
        row! {
            @ " [PARTIAL | FORCE] [HOLD id ttl] [BLOCK timeout [CRITICAL]] [TENANT tenant [WEIGHT weight]]"
            [PARTIAL, FORCE, HOLD, HOLD_TTL, BLOCK, CRITICAL_CALL, TENANT, WEIGHT]
            $parse, $($own)*
        }
    };
    (booked $parse:path, $($own:tt)*) => {
        row! {
            @ " [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]] [HOLD id ttl] [BLOCK timeout [CRITICAL]] [TENANT tenant [WEIGHT weight]]"
            [PARTIAL, FORCE, RESERVE, MAXWAIT, HOLD, HOLD_TTL, BLOCK, CRITICAL_CALL, TENANT, WEIGHT]
            $parse, $($own)*
        }
    };
    (@ $end:literal [$($option:ident),*] $parse:path, $own:literal [$($argument:ident),*] $($field:tt)*) => {
        row! {
            own $parse,
            syntax: concat!("key ", $own, " [COST cost] [AT at]", $end),
            arguments: &[KEY, $($argument,)* COST, AT, $($option),*],
            $($field)*
        }
    };
    (own $parse:path, $($field:tt)*) => {
        Row {
            documentation: Documentation {
                prefix: OWN_PREFIX,
                keys: Keys::First(KeyUse::Update),
                varies: true,
                $($field)*
            },
            parse: $parse,
        }
    };
}

/// Every limiter, once.
pub const CATALOG: [Row; 11] = [
    row! {
        booked limiters::token_bucket, "capacity refill period [BATCH]" [CAPACITY, REFILL, PERIOD, BATCH]
        name: "TOKENBUCKET",
        summary: "Takes tokens from a bucket that is refilled at a steady rate",
        complexity: "O(1)",
        reply: &[FIVE, GRANTED, BOOKED],
        example: "RL.TOKENBUCKET user:1 15 30 60s",
        flags: "write deny-oom blocking fast",
    },
    row! {
        debt limiters::leaky_bucket, "capacity leak period" [CAPACITY, LEAK, PERIOD]
        name: "LEAKYBUCKET",
        summary: "Queues requests in a bucket that drains at a steady rate, and returns the wait",
        complexity: "O(1)",
        reply: &[FIVE, GRANTED, WAIT],
        example: "RL.LEAKYBUCKET printer 10 1 1s",
        flags: "write deny-oom blocking fast",
    },
    row! {
        booked limiters::gcra, "max_burst count period" [MAX_BURST, RATE, PERIOD]
        name: "GCRA",
        summary: "Limits a rate by the generic cell rate algorithm",
        complexity: "O(1)",
        reply: &[FIVE, GRANTED, BOOKED],
        example: "RL.GCRA user:1 14 30 60s",
        flags: "write deny-oom blocking fast",
    },
    row! {
        debt limiters::fixed_window, "limit window [ALIGNED]" [WINDOW_LIMIT, WINDOW, ALIGNED]
        name: "FIXEDWINDOW",
        summary: "Limits a count over windows that follow one another",
        complexity: "O(1)",
        reply: &[FIVE, GRANTED],
        example: "RL.FIXEDWINDOW user:1 1000 1d ALIGNED",
        flags: "write deny-oom blocking fast",
    },
    row! {
        debt limiters::calendar, "limit unit [TZ zone] [ANCHOR anchor]" [WINDOW_LIMIT, UNIT, TZ, ANCHOR]
        name: "CALENDAR",
        summary: "Limits a count over the hours, days, weeks, months, quarters or years of a time zone",
        complexity: "O(1)",
        reply: &[FIVE, GRANTED],
        example: "RL.CALENDAR plan:1 10000 MONTH TZ Europe/Lisbon ANCHOR 31",
        flags: "write deny-oom blocking fast",
    },
    row! {
        debt limiters::sliding_window, "limit window [PRECISION precision]" [WINDOW_LIMIT, WINDOW, PRECISION]
        name: "SLIDINGWINDOW",
        summary: "Limits a count over a window that slides with the clock",
        complexity: "O(1), with PRECISION O(N) where N is the number of sub-buckets in use",
        reply: &[FIVE, GRANTED],
        example: "RL.SLIDINGWINDOW user:1 100 1m PRECISION 1s",
        flags: "write deny-oom blocking",
    },
    row! {
        debt limiters::sliding_log, "limit window [GAP gap] [COUNTREFUSED]" [LOG_LIMIT, WINDOW, GAP, COUNTREFUSED]
        name: "SLIDINGLOG",
        summary: "Limits a count over any window exactly, with a log of requests",
        complexity: "O(log(N)) where N is the number of entries in the log",
        reply: &[FIVE, GRANTED],
        example: "RL.SLIDINGLOG login:1 5 15m COUNTREFUSED",
        flags: "write deny-oom blocking",
    },
    row! {
        own limiters::uniform,
        name: "UNIFORM",
        syntax: "key interval [COST cost] [AT at] [FORCE | RESERVE [MAXWAIT maxwait]] [BLOCK timeout [CRITICAL]] [TENANT tenant [WEIGHT weight]]",
        summary: "Admits one request per interval",
        complexity: "O(1)",
        arguments: &[KEY, INTERVAL, COST, AT, FORCE, RESERVE, MAXWAIT, BLOCK, CRITICAL_CALL, TENANT, WEIGHT],
        reply: &[FIVE, BOOKED],
        example: "RL.UNIFORM crawler:example.org 2s RESERVE",
        flags: "write deny-oom blocking fast",
    },
    row! {
        own limiters::smooth,
        name: "SMOOTH",
        syntax: "key permits period [BURST burst | WARMUP warmup [COLDFACTOR factor]] [MAXWAIT maxwait] [COST cost] [AT at]",
        summary: "Spaces requests as Guava's RateLimiter does, and returns the wait",
        complexity: "O(1)",
        arguments: &[KEY, PERMITS, PERIOD, BURST, WARMUP, COLDFACTOR, MAXWAIT, COST, AT],
        reply: &[FIVE, WAIT],
        example: "RL.SMOOTH backend 100 1s WARMUP 10s MAXWAIT 500ms",
        flags: "write deny-oom fast",
    },
    row! {
        own limiters::concurrent,
        name: "CONCURRENT",
        syntax: "key capacity ttl id [RESERVED reserved] [CRITICAL] [FENCE] [ADAPT [GRADIENT] [FLOOR floor] [START start] [BACKOFF backoff] [SLOW slow]] [COST cost] [AT at] [BLOCK timeout] [TENANT tenant [WEIGHT weight]]",
        summary: "Takes or renews one of a bounded number of leases",
        complexity: "O(log(N)) where N is the number of leases",
        arguments: &[
            KEY, LEASES, TTL, ID, RESERVED, CRITICAL, FENCE, ADAPT, GRADIENT, FLOOR, START, BACKOFF, SLOW, COST, AT,
            BLOCK, TENANT, WEIGHT,
        ],
        reply: &[
            FIVE,
            "With FENCE a sixth integer: the fencing token of the lease, or 0 if the call is refused or only looks.",
            "The same id renews the lease.",
        ],
        example: "RL.CONCURRENT user:1 20 30s request-17",
        flags: "write deny-oom blocking",
    },
    row! {
        own limiters::penalty,
        name: "PENALTY",
        syntax: "key strikes window ban [GROW grow] [MAX max] [FORGIVE forgive] [COST cost] [AT at]",
        summary: "Bans after repeated offences, longer each time",
        complexity: "O(1)",
        arguments: &[KEY, STRIKES, STRIKE_WINDOW, BAN, GROW, MAX, FORGIVE, STRIKE, AT],
        reply: &[
            "Five integers: limited (1 during a ban, else 0), strikes, how many more strikes bring a ban, retry_after and \
             reset_after in ms.",
            "retry_after is when the ban ends.",
        ],
        example: "RL.PENALTY ip:1 3 10m 10m GROW 2 MAX 1d",
        flags: "write deny-oom fast",
    },
];

/// The catalog in one place, for references to its rows.
pub(crate) const LIMITERS: &[Row] = &CATALOG;

impl Row {
    /// The name without its prefix.
    pub const fn name(&self) -> &'static str {
        self.documentation.name
    }

    pub const fn arguments(&self) -> &'static [Argument] {
        self.documentation.arguments
    }

    /// Whether the limiter has an argument or an option of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.arguments().iter().any(|argument| argument.name == name)
    }

    /// The parameters of a limit, with the id of a lease if `has_ids`.
    pub(crate) fn parameters(&self, has_ids: bool) -> impl Iterator<Item = (&'static str, Values)> {
        let parameters = self.arguments().iter().skip(1).take_while(|argument| !argument.is_option());
        let parameters = parameters.map(|argument| (argument.name, argument.values));
        parameters.filter(move |(name, _)| has_ids || *name != ID.name)
    }

    /// The error in these words of a limit, or the one that a parameter is missing.
    #[cold]
    fn lacking(&self, arguments: &Arguments<'_, '_>, words: &[&[u8]], error: Error) -> Error {
        let parameters = self.parameters(arguments.has_ids());
        missing(parameters, words, arguments.section()).map_or(error, Error::absent).of_limiter(self.name())
    }

    /// The error for a limiter that lacks what the command does.
    pub fn lacks(&self, capabilities: Capabilities) -> Error {
        Error::NotForCommand(if capabilities.counts_refused { COUNTREFUSED.name } else { self.name() })
    }
}

/// The row of the limiter of this name, in upper or lower case.
pub fn find(name: &[u8]) -> Option<&'static Row> {
    LIMITERS.iter().find(|row| is(name, row.name()))
}

/// Reads a limiter's name, and the arguments of its command after the key.
#[inline(always)]
pub fn named<'a>(
    arguments: &mut Arguments<'_, 'a>,
    request: &mut Request<'a>,
) -> Result<(&'static Row, AnyLimiter<'a>), Error> {
    let word = arguments.word(LIMITER.name)?;
    let row = find(word).ok_or_else(|| no_limiter(word, arguments))?;
    let words = arguments.rest();
    match (row.parse)(arguments, request) {
        Ok(limiter) => Ok((row, limiter)),
        // Another limiter takes the option.
        Err(Error::NotForCommand(option)) if is_option(option) => {
            Err(Error::NotForCommand(option).of_command("", row.name()))
        }
        Err(error) => Err(row.lacking(arguments, words, error)),
    }
}

/// Whether any limiter takes this option.
pub(crate) fn is_option(option: &str) -> bool {
    CATALOG.iter().any(|row| row.takes(option))
}

/// The error for a word in place of a limiter's name.
#[cold]
fn no_limiter(word: &[u8], arguments: &Arguments<'_, '_>) -> Error {
    if arguments.begins_section(word) {
        return Error::missing(LIMITER.name);
    }
    let prefixed = without_prefix(word);
    for command in [ShedCall::NAME, SketchCall::NAME, CellCall::NAME] {
        if is(prefixed.unwrap_or(word), command) {
            return Error::NotForCommand(command);
        }
    }
    match prefixed.and_then(find) {
        Some(row) => Error::near_because(word, &format!("the limiter's name is {}", row.name())),
        None if integer(word).is_some() || duration(word).is_some() => {
            Error::near_because(word, "the name of a limiter belongs here")
        }
        None => Error::near(word),
    }
}
