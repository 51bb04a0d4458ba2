//! What each command says of itself. Those of limiters are rows of the catalog.

use crate::calls::{CellCall, ShedCall, SketchCall};
use crate::catalog::LIMITERS;
use crate::help::{Documentation, OWN_PREFIX, Subcommand};
use crate::keys::{KeyUse, Keys};
use crate::vocabulary::{
    self, ASKED_COST, AT, Argument, BAD, BLOCK, COST, CRITICAL_CALL, DELAY, DEPTH, FAIR, FORCE, FULL, GOOD,
    HELD_ID, HOLD, HOLD_TTL, HOLDERS, ID, ITEM, KEY, KEYS, LAST, LEASE_ID, LIMIT, LIMITER, MAX_BURST,
    MOST_HOLDERS, NUMKEYS, OF, ON, OUTCOME, PARAMETER, PERIOD, POLICY_COST, POLICY_ON, POLICY_SHADOW,
    QUANTITY, RAMP, RATE, REFUNDED, SECONDS, SETTLED, SETTLED_TENANT, SHADOW, TENANT, TIER, TRIED_KEY, TTL,
    UTILIZATION, VERSION, WEIGHT, WIDTH,
};

const COMPLEXITY: &str = "The sum of the limiters' commands, for each key";
const SIX: &str = "The five combined integers of RL.MULTI, and the number of the pair of a limit and a key that binds: from 1, \
                   limits outermost. If refused, it is the one with the longest retry, else the one with the least remaining; 0 \
                   if none can refuse.";
const EACH: &str =
    "With FULL two elements: these integers, and an array with the five integers of each pair.";
const SYNTAX: &str = "numkeys key ... [COST cost] [AT at] [FORCE] [HOLD id ttl] [BLOCK timeout [CRITICAL]] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [TENANT tenant [WEIGHT weight]]} ...";
const WITHOUT_FORCE: &str =
    "numkeys key ... [COST cost] [AT at] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW]} ...";
const QUEUE: Argument = Argument::word("key", "the stream or list");
pub const MAXLEN: Argument = Argument::count("maxlen", "the most entries that the stream or list may hold");
const WORKERS: Argument = Argument::word("key", "the key, named after the workers that share the load");
const ITEMS: Argument = Argument::word("key", "the key, named after what its items are, such as addresses");

/// All commands but those of limiters.
const OTHERS: &[Documentation] = &[
    SKETCH,
    SHED,
    THROTTLE,
    CL_THROTTLE,
    XADD,
    LPUSH,
    RPUSH,
    REFUND,
    MULTI,
    MULTIPEEK,
    MULTIREFUND,
    MULTIRELEASE,
    SETTLE,
    MULTISETTLE,
    ASK,
    ASKPEEK,
    ASKREFUND,
    ASKSETTLE,
    POLICY,
    RELEASE,
    RENEW,
    PEEK,
    EXPLAIN,
    INFO,
    TOP,
    HELP,
    APPLY,
];

/// All commands: those of limiters, in the order of the catalog, and the others.
pub fn all() -> impl Iterator<Item = &'static Documentation> + Clone {
    LIMITERS.iter().map(|row| &row.documentation).chain(OTHERS)
}

/// The command of this name, in upper or lower case. A command of the module's own may be named without its prefix.
pub fn find(name: &[u8]) -> Option<&'static Documentation> {
    let own_named =
        |command: &&Documentation| command.is_own() && command.name.as_bytes().eq_ignore_ascii_case(name);
    all().find(|command| command.is_named(name)).or_else(|| all().find(own_named))
}

pub const SKETCH: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: SketchCall::NAME,
    syntax: "key item max_burst count period [COST cost] [WIDTH width] [DEPTH depth] [AT at]",
    summary: "Limits the rate of each item, however many there are, in constant memory",
    complexity: "O(depth), and O(width * depth) for the call that makes the key",
    arguments: &[ITEMS, ITEM, MAX_BURST, RATE, PERIOD, COST, WIDTH, DEPTH, AT],
    reply: &[
        "Five integers: limited (1 if refused, else 0), limit, remaining, retry_after in ms (-1 if never), and reset_after in ms.",
        "They are those of the item. Without WIDTH and DEPTH, those of an existing key hold.",
    ],
    example: "RL.SKETCH addresses 203.0.113.7 9 10 1s",
    // Not fast, because of the call that makes the key.
    flags: "write deny-oom",
    keys: Keys::First(KeyUse::Update),
    varies: true,
};

pub const SHED: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: ShedCall::NAME,
    syntax: "key utilization [GOOD good] [BAD bad] [DELAY delay] [RAMP ramp] [TIER tier OF tiers] [AT at]",
    summary: "Sheds load with a chance that grows while workers are overloaded",
    complexity: "O(1)",
    arguments: &[WORKERS, UTILIZATION, GOOD, BAD, DELAY, RAMP, TIER, OF, AT],
    reply: &["Two elements: limited (1 if the call is shed, else 0), and the chance of that, 0 to 1."],
    example: "RL.SHED workers 0.75 TIER 1 OF 4",
    flags: "write deny-oom fast",
    keys: Keys::First(KeyUse::Update),
    varies: true,
};

pub const THROTTLE: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: CellCall::NAME,
    syntax: "key max_burst count period [quantity [AT at]]",
    summary: "Limits a rate by the generic cell rate algorithm, as redis-cell does",
    complexity: "O(1)",
    arguments: &[KEY, MAX_BURST, RATE, SECONDS, QUANTITY, AT],
    reply: &[
        "Five integers: limited (1 if refused, else 0), limit, remaining, retry_after in s (-1 if admitted or never), and reset_after in s.",
    ],
    example: "RL.THROTTLE user:1 14 30 60 1",
    flags: "write deny-oom fast",
    keys: Keys::First(KeyUse::Update),
    varies: true,
};

pub const CL_THROTTLE: Documentation =
    Documentation { prefix: "CL.", example: "CL.THROTTLE user:1 14 30 60 1", ..THROTTLE };

pub const XADD: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "XADD",
    syntax: "key maxlen id {field value} ...",
    summary: "Appends to a stream, unless it would then be too long",
    complexity: "O(1)",
    arguments: &[
        QUEUE,
        MAXLEN,
        Argument::word("id", "the id of the entry, usually *"),
        Argument::word("field", "the name of a field"),
        Argument::word("value", "the value of the field"),
    ],
    reply: &["The id of the entry, or nil if it does not fit."],
    example: "RL.XADD jobs 1000 * url https://example.org/",
    flags: "write deny-oom fast",
    keys: Keys::First(KeyUse::Insert),
    varies: true,
};

pub const LPUSH: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "LPUSH",
    syntax: "key maxlen element ...",
    summary: "Pushes all elements to a list's head, unless it would then be too long",
    complexity: "O(N) where N is the number of elements pushed",
    arguments: &[QUEUE, MAXLEN, Argument::word("element", "what is pushed")],
    reply: &["The length of the list, or nil if the elements do not all fit."],
    example: "RL.LPUSH jobs 1000 first second",
    flags: "write deny-oom fast",
    keys: Keys::First(KeyUse::Insert),
    varies: false,
};

pub const RPUSH: Documentation = Documentation {
    name: "RPUSH",
    summary: "Pushes all elements to a list's tail, unless it would then be too long",
    example: "RL.RPUSH jobs 1000 first second",
    ..LPUSH
};

pub const REFUND: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "REFUND",
    syntax: "key limiter parameter ... [COST cost] [AT at]",
    summary: "Gives back to a limiter what was charged and not used",
    complexity: "As the limiter's command",
    arguments: &[KEY, LIMITER, PARAMETER, REFUNDED, AT],
    reply: &["The five integers that the limiter's command would return after the refund."],
    example: "RL.REFUND user:1 GCRA 14 30 60s COST 3",
    flags: "write fast",
    keys: Keys::First(KeyUse::Update),
    varies: true,
};

pub const MULTI: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "MULTI",
    syntax: SYNTAX,
    summary: "Asks several limits on several keys at once, and charges them if all admit",
    complexity: "The sum of the limiters' commands, for each key",
    arguments: &[
        NUMKEYS,
        KEY,
        COST,
        AT,
        FORCE,
        HOLD,
        HOLD_TTL,
        BLOCK,
        CRITICAL_CALL,
        LIMIT,
        PARAMETER,
        ON,
        SHADOW,
        TENANT,
        WEIGHT,
    ],
    reply: &[
        "Two elements: the combined five integers, and an array with the five integers of each limit on each key.",
    ],
    example: "RL.MULTI 2 ip:1 user:7 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2",
    flags: "write deny-oom blocking getkeys-api",
    keys: Keys::Counted(KeyUse::Update),
    varies: true,
};

pub const MULTIPEEK: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "MULTIPEEK",
    syntax: WITHOUT_FORCE,
    summary: "Returns what RL.MULTI would return, and charges nothing",
    complexity: MULTI.complexity,
    arguments: &[NUMKEYS, KEY, COST, AT, LIMIT, PARAMETER, ON, SHADOW],
    reply: MULTI.reply,
    example: "RL.MULTIPEEK 2 ip:1 user:7 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2",
    flags: "readonly getkeys-api",
    keys: Keys::Counted(KeyUse::Read),
    varies: true,
};

pub const MULTIREFUND: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "MULTIREFUND",
    syntax: WITHOUT_FORCE,
    summary: "Gives back to several limits what was charged and not used",
    complexity: MULTI.complexity,
    arguments: &[NUMKEYS, KEY, REFUNDED, AT, LIMIT, PARAMETER, ON, SHADOW],
    reply: MULTI.reply,
    example: "RL.MULTIREFUND 2 ip:1 user:7 COST 3 LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 1000 1h ON 2",
    flags: "write fast getkeys-api",
    keys: Keys::Counted(KeyUse::Update),
    varies: true,
};

pub const SETTLE: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "SETTLE",
    syntax: "key id limiter parameter ... COST cost [AT at] [TENANT tenant]",
    summary: "Settles at its actual cost what a limiter's command holds",
    complexity: "As the limiter's command; O(N) for a log, where N is the number of its blocks of 64 entries",
    arguments: &[KEY, HELD_ID, LIMITER, PARAMETER, SETTLED, AT, SETTLED_TENANT],
    reply: &[
        "The five integers that the limiter's command would return after the settlement, and a sixth: 1, or 0 if nothing was held.",
    ],
    example: "RL.SETTLE llm:1 request-17 TOKENBUCKET 9000 9000 60s COST 450",
    flags: "write fast",
    keys: Keys::First(KeyUse::Update),
    varies: true,
};

pub const MULTISETTLE: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "MULTISETTLE",
    syntax: "numkeys key ... id [COST cost] [AT at] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [TENANT tenant]} ...",
    summary: "Settles at its actual cost what RL.MULTI holds",
    complexity: "The sum of RL.SETTLE, for each limit on each key",
    arguments: &[NUMKEYS, KEY, HELD_ID, SETTLED, AT, LIMIT, PARAMETER, ON, SHADOW, SETTLED_TENANT],
    reply: &["Three elements: the two of RL.MULTI, and the number of keys that held one of the limits."],
    example: "RL.MULTISETTLE 2 user:1 team:7 request-17 COST 450 LIMIT TOKENBUCKET 9000 9000 60s",
    flags: "write fast getkeys-api",
    keys: Keys::Counted(KeyUse::Update),
    varies: true,
};

pub const ASK: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "ASK",
    syntax: "key policy [COST cost] [ID id] [FORCE] [AT at] [HOLD id ttl] [BLOCK timeout [CRITICAL]] [TENANT tenant [WEIGHT weight]] [FULL] [KEYS {key} ...]",
    summary: "Asks the limits of a policy, and charges them if all admit",
    complexity: COMPLEXITY,
    arguments: &[
        KEY,
        vocabulary::POLICY,
        ASKED_COST,
        LEASE_ID,
        FORCE,
        AT,
        HOLD,
        HOLD_TTL,
        BLOCK,
        CRITICAL_CALL,
        TENANT,
        WEIGHT,
        FULL,
        KEYS,
    ],
    reply: &[SIX, EACH],
    example: "RL.ASK user:1 api",
    flags: "write deny-oom blocking getkeys-api",
    keys: Keys::FirstAndBehind(KeyUse::Update),
    varies: true,
};

pub const ASKPEEK: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "ASKPEEK",
    syntax: "key policy [COST cost] [ID id] [AT at] [FULL] [KEYS {key} ...]",
    summary: "Returns what RL.ASK would return, and charges nothing",
    complexity: COMPLEXITY,
    arguments: &[KEY, vocabulary::POLICY, ASKED_COST, LEASE_ID, AT, FULL, KEYS],
    reply: ASK.reply,
    example: "RL.ASKPEEK user:1 api",
    flags: "readonly getkeys-api",
    keys: Keys::FirstAndBehind(KeyUse::Read),
    varies: true,
};

pub const ASKREFUND: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "ASKREFUND",
    syntax: "key policy [COST cost] [ID id] [AT at] [FULL] [KEYS {key} ...]",
    summary: "Gives back to the limits of a policy what was charged and not used",
    complexity: COMPLEXITY,
    arguments: &[KEY, vocabulary::POLICY, REFUNDED, LEASE_ID, AT, FULL, KEYS],
    reply: ASK.reply,
    example: "RL.ASKREFUND user:1 api",
    flags: "write fast getkeys-api",
    keys: Keys::FirstAndBehind(KeyUse::Update),
    varies: true,
};

pub const ASKSETTLE: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "ASKSETTLE",
    syntax: "key policy id COST cost [ID id] [AT at] [TENANT tenant] [FULL] [KEYS {key} ...]",
    summary: "Settles at its actual cost what RL.ASK holds",
    complexity: "The sum of RL.SETTLE, for each limit on each key",
    arguments: &[KEY, vocabulary::POLICY, HELD_ID, SETTLED, LEASE_ID, AT, SETTLED_TENANT, FULL, KEYS],
    reply: &[
        "The five combined integers of RL.MULTISETTLE, and the number of keys that held one of the limits.",
        EACH,
    ],
    example: "RL.ASKSETTLE user:1 api request-17 COST 450",
    flags: "write fast getkeys-api",
    keys: Keys::FirstAndBehind(KeyUse::Update),
    varies: true,
};

pub const POLICY: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "POLICY",
    syntax: "{SET name [VERSION version] [SHADOW] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [FAIR]} ... | GET name | DEL name | LIST | STATS name | TRY name [LAST last] [KEY key] [SHADOW] {LIMIT limiter parameter ... [ON index] [COST cost] [SHADOW] [FAIR]} ... | LOAD | SAVE | HELP}",
    summary: "Stores limits under names, for RL.ASK",
    complexity: "O(log(N)) where N is the number of policies; O(N) for LIST, LOAD and SAVE; for TRY O(M*log(M)), in a thread of its own, where M is the number of recorded calls",
    arguments: &[
        Argument::word("SET", "stores a policy under a name of 1 to 64 of A-Z a-z 0-9 . _ : -"),
        VERSION,
        POLICY_SHADOW,
        LIMIT,
        PARAMETER,
        POLICY_ON,
        POLICY_COST,
        FAIR,
        Argument::word("GET", "returns a policy's version and limits"),
        Argument::word("DEL", "deletes a policy"),
        Argument::word("LIST", "returns the names and versions of all policies"),
        Argument::word("STATS", "returns how the calls of a policy ended"),
        Argument::word("TRY", "replays the recorded calls of a policy by it and by other limits"),
        LAST,
        TRIED_KEY,
        Argument::word("LOAD", "replaces all policies by those of the file ratelimit.policy-file"),
        Argument::word("SAVE", "writes all policies into that file"),
        Argument::word("HELP", "explains the command"),
    ],
    reply: &[
        "SET: the version. DEL: 1, or 0 if there was none. LOAD and SAVE: the number of policies.",
        "GET and STATS: a map, or nil if there is none. LIST: a map from names to versions. TRY: a map of what both would have decided.",
    ],
    example: "RL.POLICY SET api LIMIT GCRA 99 100 1s LIMIT SLIDINGWINDOW 10000 1d",
    flags: "admin",
    keys: Keys::None,
    varies: true,
};

impl Documentation {
    /// The subcommands, if the command only contains them. The server then checks their names and arities.
    pub fn subcommands(&self) -> impl Iterator<Item = Subcommand> {
        let flags = if self.name == POLICY.name { POLICY_FLAGS } else { &[] };
        flags.iter().map(|(name, flags)| {
            let mut branches = self.parts().into_iter().flat_map(|part| part.parts);
            Subcommand { name, flags, parts: branches.find_map(|branch| branch.behind(name)) }
        })
    }
}

/// The subcommands of `RL.POLICY`, and their flags.
const POLICY_FLAGS: &[(&str, &str)] = &[
    ("SET", "write deny-oom admin deny-script"),
    ("GET", READS),
    ("DEL", "write admin deny-script"),
    ("LIST", READS),
    ("STATS", READS),
    ("TRY", "admin deny-script"),
    ("LOAD", "write deny-oom admin deny-script"),
    ("SAVE", "admin"),
    ("HELP", READS),
    // What copies and the AOF receive. It is not documented.
    ("APPLY", "write admin deny-script allow-loading"),
];
const READS: &str = "admin allow-loading allow-stale";

pub const RELEASE: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "RELEASE",
    syntax: "key id [OUTCOME outcome] [AT at]",
    summary: "Ends a lease",
    complexity: "O(log(N)) where N is the number of leases",
    arguments: &[KEY, ID, OUTCOME, AT],
    reply: &["1 if the lease was held, else 0."],
    example: "RL.RELEASE user:1 request-17",
    flags: "write fast",
    keys: Keys::First(KeyUse::Delete),
    varies: true,
};

pub const RENEW: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "RENEW",
    syntax: "key ttl id [AT at]",
    summary: "Extends a lease that is still held",
    complexity: "O(log(N)) where N is the number of leases",
    arguments: &[KEY, TTL, ID, AT],
    reply: &["1 if the lease was held, else 0."],
    example: "RL.RENEW user:1 30s request-17",
    flags: "write fast",
    keys: Keys::First(KeyUse::Update),
    varies: true,
};

pub const MULTIRELEASE: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "MULTIRELEASE",
    syntax: "numkeys key ... id [OUTCOME outcome] [AT at]",
    summary: "Ends a lease on several keys, and returns how many held it",
    complexity: "O(log(N)) for each key, where N is the number of its leases",
    arguments: &[NUMKEYS, KEY, ID, OUTCOME, AT],
    reply: &["The number of keys that held the lease."],
    example: "RL.MULTIRELEASE 2 user:1 tenant:7 request-17",
    flags: "write fast getkeys-api",
    keys: Keys::Counted(KeyUse::Delete),
    varies: true,
};

pub const PEEK: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "PEEK",
    syntax: "key limiter parameter ... [COST cost] [AT at]",
    summary: "Returns what a limiter's command would return, and charges nothing",
    complexity: "As the limiter's command",
    arguments: &[KEY, LIMITER, PARAMETER, COST, AT],
    reply: &["The five integers that the limiter's command would return."],
    example: "RL.PEEK user:1 GCRA 14 30 60s",
    flags: "readonly",
    keys: Keys::First(KeyUse::Read),
    varies: true,
};

pub const EXPLAIN: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "EXPLAIN",
    syntax: "command [argument ...]",
    summary: "Says in sentences what a call would return now, and why, or what a key holds",
    complexity: "As the command that it explains, and O(N) where N is the number of holds of the keys; for a key as RL.INFO",
    arguments: &[
        Argument::word(
            "command",
            "a limiter's command, RL.SKETCH, RL.MULTI or RL.ASK, with or without RL.; or a key, alone",
        ),
        Argument::word("argument", "the command's arguments, as it would be sent"),
    ],
    reply: &[
        "An array of texts: the verdict, and a line for each limit on each key. The texts are for people; they may change.",
        "Of a key: what it holds, a line for each limit, the leases that end first, and who waits on this node.",
    ],
    example: "RL.EXPLAIN RL.GCRA user:1 14 30 60s",
    flags: "readonly getkeys-api",
    keys: Keys::OfInner(KeyUse::Read),
    varies: true,
};

pub const INFO: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "INFO",
    syntax: "key [LEASES [count]]",
    summary: "Returns what a key holds: its limits with their modes, lengths and figures, and its expiry",
    complexity: "O(1), or O(width * depth) for a sketch; with LEASES O(log(N) + count) where N is the number of leases",
    arguments: &[KEY, HOLDERS, MOST_HOLDERS],
    reply: &[
        "A map of what the key holds, or nil if it is missing. If callers wait or tenants are hungry for a missing key, it has only waiting and the tenants.",
        "If tenants share the key, a field tenants: an array of at most 100 maps, each with name, weight, held and waiting.",
        "Beside it a field tenants_count: how many tenants there are.",
        "With LEASES also a field leases: an array of maps, each with id, cost and left_ms, with shadow if a shadow counts it, and with fence, its token, if it was given one.",
    ],
    example: "RL.INFO user:1",
    flags: "readonly",
    keys: Keys::First(KeyUse::Read),
    varies: true,
};

pub const TOP: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "TOP",
    syntax: "[RESET | {[COUNT count] [PREVIOUS]}]",
    summary: "Returns the keys that are refused most on this node",
    complexity: "O(N*log(N)) where N is the number of entries that have a key, at most ratelimit.top",
    arguments: vocabulary::TOP,
    reply: &[
        "An array in descending order; each element has a key, its database, its refusals, and by how much these may be too many.",
        "An error if the setting ratelimit.top is 0. RESET: OK.",
    ],
    example: "RL.TOP COUNT 3",
    flags: "admin allow-stale",
    keys: Keys::None,
    varies: true,
};

pub const HELP: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "HELP",
    syntax: "[command]",
    summary: "Lists the commands, or explains one",
    complexity: "O(1)",
    arguments: &[Argument::word("command", "a command or a limiter, with or without RL.")],
    reply: &["An array of lines."],
    example: "RL.HELP gcra",
    flags: "readonly fast allow-loading allow-stale",
    keys: Keys::None,
    varies: false,
};

pub const APPLY: Documentation = Documentation {
    prefix: OWN_PREFIX,
    name: "APPLY",
    syntax: "{key payload} ...",
    summary: "Internal: repeats the effect of a command on a replica or from the AOF",
    complexity: "O(1) for each key, and the length of its payload or the cells of a sketch that it makes",
    arguments: &[
        Argument::word("key", "the key that a command changed"),
        Argument::word("payload", "the change"),
    ],
    reply: &["OK."],
    example: "",
    flags: "write",
    keys: Keys::Pairs,
    varies: false,
};

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::syntax::{Kind, Part};

    /// The names of all arguments, in the order of the syntax.
    fn names(parts: &[Part]) -> Vec<&'static str> {
        let mut names = Vec::new();
        for part in parts {
            match (part.kind, part.argument) {
                (Kind::All | Kind::OneOf, _) => names.extend(self::names(&part.parts)),
                (_, Some(argument)) => names.push(argument.name),
                (_, None) => panic!("{} is not explained", part.name()),
            }
        }
        names
    }

    #[test]
    fn each_argument_is_explained_once_in_the_order_of_the_syntax() {
        for command in all() {
            let mut distinct = Vec::new();
            for name in names(&command.parts()) {
                if !distinct.contains(&name) {
                    distinct.push(name);
                }
            }
            let explained: Vec<_> = command.arguments.iter().map(|argument| argument.name).collect();
            assert_eq!(explained, distinct, "{}", command.full_name());
        }
    }

    #[test]
    fn the_arity_asks_for_a_word_if_any_is_required() {
        for (name, arity) in [("GCRA", -2), ("XADD", -2), ("POLICY", -2), ("TOP", -1), ("HELP", -1)] {
            assert_eq!(find(name.as_bytes()).map(Documentation::arity), Some(arity), "{name}");
        }
    }

    #[test]
    fn a_command_is_found_by_its_name_and_an_own_one_without_its_prefix() {
        for command in all() {
            let name = command.full_name();
            assert_eq!(find(name.to_ascii_lowercase().as_bytes()).expect("a command").full_name(), name);
            let own = find(command.name.as_bytes()).expect("a command");
            assert!(own.is_own() && own.name == command.name, "{name}");
        }
        assert!(find(b"RL.").is_none() && find(b"").is_none());
    }
}
