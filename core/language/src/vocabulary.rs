//! The arguments and options of all commands: their values and meanings, as `RL.HELP` and `COMMAND DOCS` explain them.
//!
//! The parsers enforce these ranges. A test holds each command's arguments against its syntax, and makes every call
//! of a limiter that they forbid.

use core::fmt;

use ratelimit_core::limiter::Unit;
use ratelimit_core::state::{MAX_DEPTH, MAX_ID, Shape};
use ratelimit_core::{MAX_COUNT, MAX_PAIRS, Span, Time};

/// An argument or an option of a command.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The name in the syntax: an option's token, or the name of any other argument.
    pub name: &'static str,
    pub values: Values,
    /// A phrase without capital and full stop.
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
    /// Milliseconds from `min` to a hundred years, or an integer with a unit.
    Duration {
        min: u64,
    },
    /// Milliseconds from another argument of the call to a hundred years, or an integer with a unit.
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

/// The longest duration, in milliseconds: a hundred years of 365 days.
pub const LONGEST: u64 = Span::CENTURY.as_micros() / 1000;
/// The longest duration in seconds.
pub const LONGEST_SECONDS: u64 = LONGEST / 1000;

impl Argument {
    pub const fn new(name: &'static str, values: Values, meaning: &'static str) -> Argument {
        Argument { name, values, meaning }
    }

    /// A count from 1 to [`MAX_COUNT`].
    pub const fn count(name: &'static str, meaning: &'static str) -> Argument {
        Argument::new(name, Values::Number { min: 1, max: MAX_COUNT }, meaning)
    }

    pub const fn duration(name: &'static str, meaning: &'static str) -> Argument {
        Argument::new(name, Values::Duration { min: 1 }, meaning)
    }

    pub const fn flag(name: &'static str, meaning: &'static str) -> Argument {
        Argument::new(name, Values::Flag, meaning)
    }

    pub const fn word(name: &'static str, meaning: &'static str) -> Argument {
        Argument::new(name, Values::Word, meaning)
    }

    /// Whether it is an option, whose name is in upper case.
    pub fn is_option(&self) -> bool {
        self.name.starts_with(|letter: char| letter.is_ascii_uppercase())
    }
}

impl Values {
    pub fn is_duration(self) -> bool {
        matches!(self, Values::Duration { .. } | Values::DurationFrom(_))
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
            Values::Duration { min } => write!(f, "duration, {min} to {LONGEST} ms"),
            Values::DurationFrom(argument) => write!(f, "duration, {argument} to {LONGEST} ms"),
            Values::Seconds => write!(f, "1 to {LONGEST_SECONDS} s"),
            Values::Instant => {
                let (min, max) = (Time::EARLIEST.as_micros(), Time::LATEST.as_micros());
                write!(f, "Unix time in microseconds, {min} to {max}")
            }
            Values::Id => write!(f, "1 to {MAX_ID} bytes"),
        }
    }
}

pub const KEY: Argument = Argument::word("key", "the key, named after what is limited, such as user:1");

// The options that all limiters share.

pub const COST: Argument = Argument::new(
    "COST",
    Values::Number { min: 0, max: MAX_COUNT },
    "how much the request takes, 1 by default; 0 only looks",
);
/// `COST` of a refund.
pub const REFUNDED: Argument = Argument::new(
    COST.name,
    Values::Number { min: 0, max: MAX_COUNT },
    "how much is given back, 1 by default; 0 only looks",
);
pub const AT: Argument =
    Argument::new("AT", Values::Instant, "when the request is made; the server's clock by default");
pub const PARTIAL: Argument = Argument::flag("PARTIAL", "grants what remains if the cost does not fit");
pub const FORCE: Argument = Argument::flag("FORCE", "admits and charges a cost that does not fit, as debt");
pub const RESERVE: Argument =
    Argument::flag("RESERVE", "books a cost that does not fit; the caller waits for retry_after");
pub const HOLD: Argument = Argument::new(
    "HOLD",
    Values::Id,
    "holds the charge under this id, which the caller chooses, until it is settled",
);
pub const HOLD_TTL: Argument =
    Argument::duration("ttl", "how long the charge can be settled; then it stands");
/// `COST` of a settlement.
pub const SETTLED: Argument =
    Argument::new(COST.name, Values::Number { min: 0, max: MAX_COUNT }, "the actual cost");
/// The id of a settlement.
pub const HELD_ID: Argument = Argument::new("id", Values::Id, "the id of the hold");
pub const BLOCK: Argument = Argument::new(
    "BLOCK",
    Values::Duration { min: 0 },
    "waits in line until the request is admitted, at most for this time; 0 and longer times count as ratelimit.max-block",
);
pub const MAXWAIT: Argument = Argument::new(
    "MAXWAIT",
    Values::Duration { min: 0 },
    "the longest wait that is admitted; any by default",
);

// The arguments of commands that take any limiter.

pub const LIMITER: Argument = Argument::word("limiter", "the limiter's name, without RL.");
pub const PARAMETER: Argument = Argument::word("parameter", "the limiter's parameters and own options");
pub const NUMKEYS: Argument = Argument::new(
    "numkeys",
    Values::Number { min: 1, max: MAX_PAIRS as u64 },
    "the number of keys that follow",
);

pub const LIMIT: Argument =
    Argument::word("LIMIT", "a limiter's name, without RL.; at most 64 pairs of a limit and a key");
pub const ON: Argument = Argument::new(
    "ON",
    Values::UpTo { min: 1, argument: "numkeys" },
    "the number of the only key that the limit is for; all keys by default",
);
pub const SHADOW: Argument =
    Argument::flag("SHADOW", "tries the limit: it answers for itself, and refuses no call");

// Policies, and calls that ask them.

pub const POLICY: Argument = Argument::word("policy", "the name of a policy, which RL.POLICY SET gave it");
pub const VERSION: Argument = Argument::new(
    "VERSION",
    Values::Number { min: 1, max: MAX_COUNT },
    "the version, above the stored one; one more than the stored one by default",
);
/// `ON` of a policy.
pub const POLICY_ON: Argument = Argument::new(
    ON.name,
    Values::Number { min: 1, max: MAX_PAIRS as u64 },
    "the number of the only key that the limit is for; all keys by default",
);
/// `COST` of a policy.
pub const POLICY_COST: Argument = Argument::new(
    COST.name,
    Values::Number { min: 0, max: MAX_COUNT },
    "the limit's own cost; the call's cost by default",
);
pub const POLICY_SHADOW: Argument =
    Argument::flag("SHADOW", "tries the limit, or before the first LIMIT all limits: it refuses no call");
/// `COST` of a call that asks a policy.
pub const ASKED_COST: Argument = Argument::new(
    COST.name,
    Values::Number { min: 0, max: MAX_COUNT },
    "the cost for limits without a cost of their own, 1 by default",
);
pub const LEASE_ID: Argument =
    Argument::new("ID", Values::Id, "the id of a lease, which the caller chooses; for policies with leases");
pub const FULL: Argument = Argument::flag("FULL", "replies the answer of each limit on each key, too");
pub const KEYS: Argument =
    Argument::word("KEYS", "the keys 2, 3 and so on, for policies with limits ON them; they end the call");

// The parameters of limiters.

pub const CAPACITY: Argument = Argument::count("capacity", "the most that the bucket holds");
pub const REFILL: Argument = Argument::count("refill", "how many tokens are added per period");
pub const LEAK: Argument = Argument::count("leak", "how many requests leave the bucket per period");
pub const PERIOD: Argument = Argument::duration("period", "the length of a period");
pub const BATCH: Argument = Argument::flag("BATCH", "adds all tokens of a period at its end, not one by one");
pub const MAX_BURST: Argument = Argument::new(
    "max_burst",
    Values::Number { min: 0, max: MAX_COUNT },
    "how many requests may come at once after the first",
);
pub const RATE: Argument = Argument::count("count", "how many requests are admitted per period");
pub const WINDOW_LIMIT: Argument = Argument::count("limit", "the most that is admitted per window");
pub const WINDOW: Argument = Argument::duration("window", "the length of the window");
pub const ALIGNED: Argument =
    Argument::flag("ALIGNED", "lets windows begin at multiples of their length, not at the first request");
pub const PRECISION: Argument = Argument::duration(
    "PRECISION",
    "the length of a sub-bucket, which divides the window into at most 1024 equal parts",
);
pub const LOG_LIMIT: Argument = Argument::new(
    "limit",
    Values::Setting("ratelimit.max-log-entries"),
    "the most that is admitted in any window",
);
pub const GAP: Argument =
    Argument::new("GAP", Values::Duration { min: 0 }, "the shortest time between two requests; 0 by default");
pub const COUNTREFUSED: Argument = Argument::flag(
    "COUNTREFUSED",
    "records refused requests too, so a caller that does not pause stays refused",
);
pub const UNIT: Argument =
    Argument::word("unit", "the length of a window: HOUR, DAY, WEEK, MONTH, QUARTER or YEAR");
pub const TZ: Argument = Argument::word(
    "TZ",
    "the time zone: UTC (the default), an offset such as +02:00, or an IANA name such as Europe/Berlin",
);
pub const ANCHOR: Argument = Argument::new(
    "ANCHOR",
    Values::Number { min: 1, max: 31 },
    "the weekday on which a week begins, from 1 for Monday to 7, or the day on which a month begins; 1 by default",
);
pub const STRIKES: Argument = Argument::count("strikes", "the number of strikes in a window that bans");
pub const STRIKE_WINDOW: Argument =
    Argument::duration("window", "how long strikes count, from the first one on");
pub const BAN: Argument = Argument::duration("ban", "how long the first ban lasts");
pub const GROW: Argument = Argument::new(
    "GROW",
    Values::Number { min: 1, max: 1000 },
    "how many times longer each ban is than the one before; 1 by default",
);
pub const MAX: Argument =
    Argument::new("MAX", Values::DurationFrom(BAN.name), "the longest ban; a hundred years by default");
pub const FORGIVE: Argument = Argument::duration(
    "FORGIVE",
    "how long after a ban the next one is a step shorter again, and so on; 1d by default",
);
/// `COST` of a penalty.
pub const STRIKE: Argument = Argument::new(
    COST.name,
    Values::Number { min: 0, max: MAX_COUNT },
    "the number of strikes, 1 by default; 0 only asks whether there is a ban",
);
pub const INTERVAL: Argument = Argument::duration("interval", "the time between two requests");
pub const PERMITS: Argument = Argument::count("permits", "how many permits are made per period");
pub const BURST: Argument = Argument::new(
    "BURST",
    Values::Duration { min: 0 },
    "the idle time whose permits are stored; 1s by default",
);
pub const WARMUP: Argument =
    Argument::duration("WARMUP", "the time from cold to the full rate, for a service that must warm up");
pub const COLDFACTOR: Argument = Argument::new(
    "COLDFACTOR",
    Values::Real { min: 1, max: 1000 },
    "how many times longer a permit takes when the service is cold; 3 by default",
);
pub const LEASES: Argument = Argument::new(
    "capacity",
    Values::Setting("ratelimit.max-leases"),
    "the most leases that are held at once",
);
pub const TTL: Argument = Argument::duration("ttl", "how long the lease lasts unless it is renewed");
pub const ID: Argument = Argument::new("id", Values::Id, "the id of the lease, which the caller chooses");
pub const RESERVED: Argument = Argument::new(
    "RESERVED",
    Values::UpTo { min: 0, argument: "capacity" },
    "how much of the capacity only critical requests may take; 0 by default",
);
pub const CRITICAL: Argument = Argument::flag("CRITICAL", "a request that may take what is reserved");

// RL.SKETCH, RL.SHED and RL.THROTTLE.

pub const ITEM: Argument = Argument::word("item", "what is limited, such as an address; any bytes");
pub const WIDTH: Argument = Argument::new(
    "WIDTH",
    Values::Number { min: 1, max: Shape::MAX_WIDTH as u64 },
    "the cells in a row, a power of two; 16384 by default; 8 bytes each, in all ratelimit.max-sketch-bytes at most",
);
pub const DEPTH: Argument = Argument::new(
    "DEPTH",
    Values::Number { min: 1, max: MAX_DEPTH as u64 },
    "the rows, in each of which an item has a cell; 4 by default",
);

pub const UTILIZATION: Argument = Argument::new(
    "utilization",
    Values::Real { min: 0, max: 2 },
    "the utilization of a worker; above 1 counts as 1",
);
pub const GOOD: Argument = Argument::new(
    "GOOD",
    Values::Real { min: 0, max: 1 },
    "the utilization below which the chance falls; 0.7 by default, at most BAD",
);
pub const BAD: Argument = Argument::new(
    "BAD",
    Values::Real { min: 0, max: 1 },
    "the utilization above which the chance grows; 0.8 by default, below 1",
);
pub const DELAY: Argument = Argument::duration(
    "DELAY",
    "how long workers must be overloaded before any call is shed; 28s by default",
);
pub const RAMP: Argument =
    Argument::duration("RAMP", "how long the chance then takes from 0 to 1; 120s by default");
pub const TIER: Argument = Argument::new(
    "TIER",
    Values::UpTo { min: 1, argument: "tiers" },
    "the importance of the call: tier 1 is shed first; 1 by default",
);
pub const OF: Argument = Argument::count("OF", "the number of tiers; 1 by default");
pub const SECONDS: Argument = Argument::new("period", Values::Seconds, "the length of a period");
pub const QUANTITY: Argument = Argument::new(
    "quantity",
    Values::Number { min: 0, max: MAX_COUNT },
    "how much the request takes, 1 by default; 0 only looks",
);

/// The words for the units of a calendar.
pub(crate) const UNITS: [(&str, Unit); 6] = [
    ("HOUR", Unit::Hour),
    ("DAY", Unit::Day),
    ("WEEK", Unit::Week(1)),
    ("MONTH", Unit::Month(1)),
    ("QUARTER", Unit::Quarter),
    ("YEAR", Unit::Year),
];

/// The most bytes of a policy's name.
pub const MAX_NAME: usize = 64;

/// The names of all options.
pub const OPTIONS: [&str; 37] = [
    COST.name,
    AT.name,
    PARTIAL.name,
    FORCE.name,
    RESERVE.name,
    MAXWAIT.name,
    HOLD.name,
    BLOCK.name,
    LIMIT.name,
    ON.name,
    SHADOW.name,
    VERSION.name,
    FULL.name,
    KEYS.name,
    BATCH.name,
    ALIGNED.name,
    PRECISION.name,
    GAP.name,
    COUNTREFUSED.name,
    TZ.name,
    ANCHOR.name,
    GROW.name,
    MAX.name,
    FORGIVE.name,
    BURST.name,
    WARMUP.name,
    COLDFACTOR.name,
    RESERVED.name,
    CRITICAL.name,
    WIDTH.name,
    DEPTH.name,
    GOOD.name,
    BAD.name,
    DELAY.name,
    RAMP.name,
    TIER.name,
    OF.name,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CATALOG;

    #[test]
    fn every_option_of_a_limiter_is_known() {
        for argument in CATALOG.iter().flat_map(|row| row.arguments).filter(|argument| argument.is_option()) {
            assert!(OPTIONS.contains(&argument.name), "{}", argument.name);
        }
    }
}
