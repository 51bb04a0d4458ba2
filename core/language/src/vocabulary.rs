//! The arguments and options of all commands: their values, defaults and meanings.
//!
//! A test holds each command's arguments against its syntax, and finds each argument of a limiter among the wrong calls.

use ratelimit_core::MAX_PAIRS;
use ratelimit_core::limiter::Unit;
use ratelimit_core::state::{MAX_DEPTH, MAX_WEIGHT, Shape};

pub use crate::argument::{Argument, Value, Values};
use crate::number::{DAY, SECOND};

/// Defines arguments from a table, and a list of them. A row has the name, the values and the meaning. If the meaning goes
/// on with a default, the default is a part of the sentence: `"…; ", 1 s` is "…; 1s by default".
macro_rules! arguments {
    (
        $(#[$about:meta])*
        $list:ident:
        $(
            $(#[$doc:meta])*
            $NAME:ident = $name:expr, $kind:ident $({ $($range:tt)* })? $(($other:expr))?,
            $meaning:literal $(, $default:literal $($unit:ident)? $(, $more:literal)?)?;
        )*
    ) => {
        $(
            $(#[$doc])*
            pub const $NAME: Argument = Argument {
                name: $name,
                values: Values::$kind $({ $($range)* })? $(($other))?,
                default: default_of!($kind $($default $($unit)?)?),
                meaning: concat!($meaning $(, $default $(, stringify!($unit))?, " by default" $(, $more)?)?),
            };
        )*
        $(#[$about])*
        pub const $list: &[Argument] = &[$($NAME),*];
    };
}

/// A default, in the notation of its kind of values.
macro_rules! default_of {
    ($kind:ident) => {
        None
    };
    (Real $default:literal) => {
        Some(Value::Real($default as f64))
    };
    (SPAN $default:literal) => {
        Some(Value::Millis($default))
    };
    ($kind:ident $default:literal s) => {
        Some(Value::Millis($default * SECOND))
    };
    ($kind:ident $default:literal d) => {
        Some(Value::Millis($default * DAY))
    };
    ($kind:ident $default:literal) => {
        Some(Value::Number($default))
    };
}

arguments! {
    ALL:
    KEY = "key", Word, "the key, named after what is limited, such as user:1";

    // The options that all limiters share.
    COST = "COST", COST, "how much the request takes, ", 1, "; 0 only looks";
    /// `COST` of a refund.
    REFUNDED = COST.name, COST, "how much is given back, ", 1, "; 0 only looks";
    AT = "AT", Instant, "when the request is made; the server's clock by default";
    PARTIAL = "PARTIAL", Flag, "grants what remains if the cost does not fit";
    FORCE = "FORCE", Flag, "admits and charges a cost that does not fit, as debt";
    RESERVE = "RESERVE", Flag, "books a cost that does not fit; the caller waits for retry_after";
    HOLD = "HOLD", Id, "holds the charge under this id, which the caller chooses, until it is settled";
    HOLD_TTL = "ttl", PERIOD, "how long the charge can be settled; then it stands";
    /// `COST` of a settlement.
    SETTLED = COST.name, COST, "the actual cost";
    /// The id of a settlement.
    HELD_ID = "id", Id, "the id of the hold";
    BLOCK = "BLOCK", SPAN,
        "waits in line until the request is admitted, at most for this time; 0 and longer times count as ratelimit.max-block";
    /// `CRITICAL` of a call that waits.
    CRITICAL_CALL = CRITICAL.name, Flag, "waits in front of all callers that are not critical";
    TENANT = "TENANT", Id, "the tenant of the caller: tenants take turns in the line, by their weights";
    WEIGHT = "WEIGHT", Number { min: 1, max: MAX_WEIGHT as u64 },
        "the weight of the tenant; without it the tenant keeps its weight, which is 1 at first";
    /// `TENANT` of a settlement.
    SETTLED_TENANT = TENANT.name, Id, "the tenant of the call that is settled";
    MAXWAIT = "MAXWAIT", SPAN, "the longest wait that is admitted; any by default";

    // The arguments of commands that take any limiter.
    LIMITER = "limiter", Word, "the limiter's name, without RL.";
    PARAMETER = "parameter", Word, "the limiter's parameters and own options";
    NUMKEYS = "numkeys", Number { min: 1, max: MAX_PAIRS as u64 }, "the number of keys that follow";
    LIMIT = "LIMIT", Word, "a limiter's name, without RL.; at most 64 pairs of a limit and a key";
    ON = "ON", UpTo { min: 1, argument: NUMKEYS.name },
        "the number of the only key that the limit is for; all keys by default";
    SHADOW = "SHADOW", Flag, "tries the limit: it answers for itself, and refuses no call";

    // Policies, and calls that ask them.
    POLICY = "policy", Word, "the name of a policy, which RL.POLICY SET gave it";
    VERSION = "VERSION", COUNT, "the version, above the stored one; one more than the stored one by default";
    /// `ON` of a policy.
    POLICY_ON = ON.name, Number { min: 1, max: MAX_PAIRS as u64 },
        "the number of the only key that the limit is for; all keys by default";
    /// `COST` of a policy.
    POLICY_COST = COST.name, COST, "the limit's own cost; the call's cost by default";
    POLICY_SHADOW = SHADOW.name, Flag,
        "tries the limit, or before the first LIMIT all limits: it refuses no call";
    FAIR = "FAIR", Flag, "lets the tenants of calls share the limit; for at most one limit, which takes BLOCK";
    /// `COST` of a call that asks a policy.
    ASKED_COST = COST.name, COST, "the cost for limits without a cost of their own, ", 1;
    LEASE_ID = "ID", Id, "the id of a lease, which the caller chooses; for policies with leases";
    FULL = "FULL", Flag, "returns the answer of each limit on each key, too";
    KEYS = "KEYS", Word, "the keys 2, 3 and so on, for policies with limits ON them; they end the call";

    // The parameters of limiters.
    CAPACITY = "capacity", COUNT, "the most that the bucket holds";
    REFILL = "refill", COUNT, "how many tokens are added per period";
    LEAK = "leak", COUNT, "how many requests leave the bucket per period";
    PERIOD = "period", PERIOD, "the length of a period";
    BATCH = "BATCH", Flag, "adds all tokens of a period at its end, not one by one";
    MAX_BURST = "max_burst", COST, "how many requests may come at once after the first";
    RATE = "count", COUNT, "how many requests are admitted per period";
    WINDOW_LIMIT = "limit", COUNT, "the most that is admitted per window";
    WINDOW = "window", PERIOD, "the length of the window";
    ALIGNED = "ALIGNED", Flag, "lets windows begin at multiples of their length, not at the first request";
    PRECISION = "PRECISION", PERIOD,
        "the length of a sub-bucket, which divides the window into at most 1024 equal parts";
    LOG_LIMIT = "limit", Setting("ratelimit.max-log-entries"), "the most that is admitted in any window";
    GAP = "GAP", SPAN, "the shortest time between two requests; ", 0;
    COUNTREFUSED = "COUNTREFUSED", Flag,
        "records refused requests too, so a caller that does not pause stays refused";
    UNIT = "unit", Word, "the length of a window: HOUR, DAY, WEEK, MONTH, QUARTER or YEAR";
    TZ = "TZ", Word,
        "the time zone: UTC (the default), an offset such as +02:00, or an IANA name such as Europe/Berlin";
    ANCHOR = "ANCHOR", Number { min: 0, max: 31 },
        "the hour at which a day begins, from 0 to 23, the weekday on which a week begins, from 1 for Monday to 7, or the day on which a month begins; 0 for a day and 1 for the others by default";
    STRIKES = "strikes", COUNT, "the number of strikes in a window that bans";
    STRIKE_WINDOW = "window", PERIOD, "how long strikes count, from the first one on";
    BAN = "ban", PERIOD, "how long the first ban lasts";
    GROW = "GROW", Number { min: 1, max: 1000 },
        "how many times longer each ban is than the one before; ", 1;
    MAX = "MAX", DurationFrom(BAN.name), "the longest ban; a hundred years by default";
    FORGIVE = "FORGIVE", PERIOD,
        "how long after a ban the next one is a step shorter again, and so on; ", 1 d;
    /// `COST` of a penalty.
    STRIKE = COST.name, COST, "the number of strikes, ", 1, "; 0 only asks whether there is a ban";
    INTERVAL = "interval", PERIOD, "the time between two requests";
    PERMITS = "permits", COUNT, "how many permits are made per period";
    BURST = "BURST", SPAN, "the idle time whose permits are stored; ", 1 s;
    WARMUP = "WARMUP", PERIOD, "the time from cold to the full rate, for a service that must warm up";
    COLDFACTOR = "COLDFACTOR", Real { min: 1, max: 1000 },
        "how many times longer a permit takes when the service is cold; ", 3;
    LEASES = "capacity", Setting("ratelimit.max-leases"), "the most leases that are held at once";
    TTL = "ttl", PERIOD, "how long the lease lasts unless it is renewed";
    ID = "id", Id, "the id of the lease, which the caller chooses";
    RESERVED = "RESERVED", UpTo { min: 0, argument: LEASES.name },
        "how much of the capacity only critical requests may take; ", 0;
    CRITICAL = "CRITICAL", Flag, "a request that may take what is reserved";
    FENCE = "FENCE", Flag,
        "gives the lease a fencing token, which is greater than all that the key's leases had before, and returns it";
    ADAPT = "ADAPT", Flag, "finds the limit from how requests end; the capacity is the most that it can be";
    GRADIENT = "GRADIENT", Flag, "finds it from how long requests take, too";
    FLOOR = "FLOOR", UpTo { min: 1, argument: LEASES.name },
        "the least that the limit can be; one more than what is reserved by default";
    START = "START", UpTo { min: 1, argument: LEASES.name },
        "the limit of a new table, from FLOOR to the capacity; 20 by default";
    BACKOFF = "BACKOFF", Number { min: 1, max: 90 }, "by how many percent a failure lowers the limit; ", 10;
    SLOW = "SLOW", PERIOD, "a request that takes longer has failed; none by default";
    OUTCOME = "OUTCOME", Word,
        "how the request ended, for leases with ADAPT: OK (the default), DROP as in an overload, or IGNORE";

    // RL.SKETCH, RL.SHED and RL.THROTTLE.
    ITEM = "item", Word, "what is limited, such as an address; any bytes";
    WIDTH = "WIDTH", Number { min: 1, max: Shape::MAX_WIDTH as u64 }, "the cells in a row, a power of two; ",
        16384, "; 8 bytes each, in all ratelimit.max-sketch-bytes at most";
    DEPTH = "DEPTH", Number { min: 1, max: MAX_DEPTH as u64 },
        "the rows, in each of which an item has a cell; ", 4;
    UTILIZATION = "utilization", Real { min: 0, max: 2 }, "the utilization of a worker; above 1 counts as 1";
    GOOD = "GOOD", Real { min: 0, max: 1 },
        "the utilization below which the chance falls; ", 0.7, ", at most BAD";
    BAD = "BAD", Real { min: 0, max: 1 }, "the utilization above which the chance grows; ", 0.8, ", below 1";
    DELAY = "DELAY", PERIOD, "how long workers must be overloaded before any call is shed; ", 28 s;
    RAMP = "RAMP", PERIOD, "how long the chance then takes from 0 to 1; ", 120 s;
    TIER = "TIER", UpTo { min: 1, argument: "tiers" },
        "the importance of the call: tier 1 is shed first; ", 1;
    OF = "OF", COUNT, "the number of tiers; ", 1;
    SECONDS = "period", Seconds, "the length of a period";
    QUANTITY = "quantity", COST, "how much the request takes, ", 1, "; 0 only looks";
}

// The options of `RL.POLICY TRY` and of `RL.TOP`, which no other command knows.
arguments! {
    /// The arguments of `RL.POLICY TRY`.
    TRY:
    LAST = "LAST", PERIOD, "replays only the calls of the last time before the newest one; all by default";
    TRIED_KEY = "KEY", Word, "the only key whose calls are counted; all by default";
}

arguments! {
    /// The arguments of `RL.TOP`.
    TOP:
    RESET = "RESET", Flag, "forgets the current window and the one before";
    COUNT = "COUNT", Number { min: 1, max: MOST_TOP }, "the most keys in the reply, ", 10;
    PREVIOUS = "PREVIOUS", Flag, "the window before the current one";
}

/// The option of `RL.INFO`, which no other command knows.
pub const HOLDERS: Argument = Argument {
    name: "LEASES",
    values: Values::Flag,
    default: None,
    meaning: "also returns who holds leases, those that end first at the beginning",
};
/// The value of [`HOLDERS`].
pub const MOST_HOLDERS: Argument = Argument {
    name: "count",
    values: Values::Number { min: 1, max: 10_000 },
    default: Some(Value::Number(100)),
    meaning: "the most leases in the reply, 100 by default",
};

/// The most entries of a window of `RL.TOP`.
pub const MOST_TOP: u64 = 10_000;

/// The names of all options, some of them more than once. `ID` is an ordinary word in most places.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    let options = ALL.iter().filter(|argument| argument.is_option() && argument.name != LEASE_ID.name);
    options.map(|option| option.name)
}

/// The words for the units of a calendar.
pub(crate) const UNITS: [(&str, Unit); 6] = [
    ("HOUR", Unit::Hour),
    ("DAY", Unit::Day(0)),
    ("WEEK", Unit::Week(1)),
    ("MONTH", Unit::Month(1)),
    ("QUARTER", Unit::Quarter),
    ("YEAR", Unit::Year),
];

/// The most bytes of a policy's name.
pub const MAX_NAME: usize = 64;
