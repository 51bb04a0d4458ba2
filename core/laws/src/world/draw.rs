//! What happens next, by chance.

use ratelimit_dice::Dice;

use super::believed::limits;
use super::event::{Event, NODES};
use super::fair_lines::{Ids, POOL, SHARE};

/// The keys beside those with a model.
const OTHERS: [&str; 10] = ["pool", "found", "share", "slots", "team", "x", "y", "shed", "sketch", "penalty"];
const POLICIES: [&str; 2] = ["p", "q"];

/// All keys.
pub(super) fn keys() -> Vec<&'static str> {
    limits().map(|(key, _)| key).chain(OTHERS).collect()
}

/// Calls with holes: `{c}` is a cost, `{t}` a tenant, `{b}` a wait or nothing, `{h}` a hold or nothing, `{i}` an id, `{k}` any key,
/// `{f}` a wish for a token or nothing, `{x}` one of two keys with many limits, `{l}` a limit, `{p}` a policy.
///
/// The first groups are those for whose limits callers wait most.
const CALLS: [(u64, &[&str]); 8] = [
    // Leases that find their limit.
    (
        8,
        &[
            "RL.CONCURRENT found 6 20s {i} ADAPT FLOOR 1 SLOW 5s{b}{f}",
            "RL.CONCURRENT found 6 20s {i} ADAPT FLOOR 2 GRADIENT",
            "RL.RELEASE found {i}",
            "RL.RELEASE found {i} OUTCOME DROP",
        ],
    ),
    // Leases of several keys.
    (
        8,
        &[
            "RL.MULTI 2 slots team{b} LIMIT CONCURRENT 3 20s {i}{t} ON 1 LIMIT SLIDINGLOG 6 30s ON 2",
            "RL.MULTI 2 slots team BLOCK 1d LIMIT CONCURRENT 3 20s {i}{t} ON 1 LIMIT SLIDINGLOG 6 30s ON 2",
            "RL.MULTI 2 slots x{b} LIMIT CONCURRENT 3 20s {i} CRITICAL ON 1 LIMIT GCRA 2 1 5s ON 2 COST 2",
            "RL.CONCURRENT slots 3 20s {i}{f}{t}{b}",
            "RL.CONCURRENT slots 3 5s {i}{f}{t} BLOCK 1d",
            "RL.MULTIRELEASE 2 slots team {i}",
            "RL.RELEASE slots {i}",
            "RL.RENEW slots 10s {i}",
        ],
    ),
    // Policies.
    (
        6,
        &[
            "RL.ASK {x} {p}{c}{b} ID {i}{t} KEYS slots",
            "RL.ASK {x} {p} ID {i} BLOCK 1d{t} KEYS slots",
            "RL.ASK {x} {p}{c}{h} ID {i} KEYS slots",
            "RL.ASKSETTLE {x} {p} {i} COST 1 ID {i} KEYS slots",
            "RL.ASKREFUND {x} {p}{c} ID {i} KEYS slots",
            "RL.POLICY SET {p} LIMIT {l} LIMIT CONCURRENT 3 20s FAIR ON 2",
            "RL.POLICY SET {p} LIMIT {l} ON 1",
            "RL.POLICY SET {p} LIMIT CONCURRENT 3 20s FAIR CRITICAL ON 2 LIMIT {l} ON 1",
            "RL.POLICY SET {p} LIMIT CONCURRENT 4 30s ON 2 LIMIT {l} SHADOW ON 1",
            "RL.POLICY DEL {p}",
        ],
    ),
    // Several limits.
    (
        8,
        &[
            "RL.MULTI 1 {x}{c} LIMIT {l} LIMIT {l}",
            "RL.MULTI 2 x y{c}{b} LIMIT {l} LIMIT {l} ON 2",
            "RL.MULTI 2 x y{c}{h} LIMIT {l} LIMIT {l} ON 2",
            "RL.MULTI 2 x y{c}{h} LIMIT {l} LIMIT PENALTY 2 30s 20s ON 1",
            "RL.MULTI 2 x y FORCE{c} LIMIT {l} SHADOW LIMIT {l}",
            "RL.MULTISETTLE 2 x y {i} COST 1 LIMIT {l} LIMIT {l} ON 2",
            "RL.MULTIREFUND 2 x y{c} LIMIT {l} LIMIT {l} ON 2",
            "RL.SETTLE {x} {i} {l}{c}",
            "RL.REFUND {x} {l}{c}",
        ],
    ),
    // Any limiter on any key.
    (
        2,
        &[
            "RL.PENALTY penalty 3 20s 30s{c}",
            "RL.SHED shed 0.5",
            "RL.SKETCH sketch {i} 4 6 60s{c}",
            "RL.SMOOTH {x} 6 60s MAXWAIT 30s",
            "RL.UNIFORM {x} 5s RESERVE MAXWAIT 12s",
            "RL.SLIDINGLOG {x} 4 20s COUNTREFUSED{c}",
            "RL.GCRA {k} 2 1 5s{c}{b}",
            "RL.FIXEDWINDOW {k} 3 10s{c}",
            "RL.GCRA {x} 2 1 5s AT 1700002900000000",
            "RL.GCRA {x} 0 1 2s AT 1700009000000000",
            "RL.GCRA {x} 0 1 2s BLOCK 1d",
        ],
    ),
    // What other commands do to keys.
    (
        1,
        &[
            "DEL {k}",
            "DEL {k}",
            "RENAME {x} {k}",
            "RENAME {k} {x}",
            "RENAME {k} {k}",
            "COPY {k} {k} REPLACE",
            "COPY {x} {k}",
            "PERSIST {k}",
            "PEXPIREAT {k} 1700003100000",
            "FLUSHALL",
        ],
    ),
    (
        3,
        &[
            "RL.INFO {k}",
            "RL.INFO pool LEASES 3",
            "RL.PEEK {x} {l}{c}",
            "RL.MULTIPEEK 2 x y{c} LIMIT {l} LIMIT {l} ON 2",
            "RL.ASKPEEK {x} {p}{c} ID {i} KEYS slots",
            "EXISTS {k} {k}",
        ],
    ),
    // Errors.
    (
        1,
        &[
            "RL.GCRA {x} 5 6 60s COST 9223372036854775808",
            "RL.CONCURRENT pool 4 30s",
            "RL.MULTI 2 x x LIMIT {l}",
            "RL.MULTI 2 x y LIMIT {l} COST",
            "RL.ASK {x} none",
            "RL.GCRA sketch 5 6 60s HOLD a 1s BLOCK 0s",
            "RL.SHED {k} 0.5",
            "RL.SKETCH {k} a 4 6 60s",
            "RL.SETTLE {x} {i} CONCURRENT 3 20s {i} COST 1",
            "RL.POLICY SET {p} LIMIT",
        ],
    ),
];

const TENANTS: [&str; 6] = ["", " TENANT a", " TENANT a", " TENANT b", " TENANT c WEIGHT 3", " TENANT d"];

/// The number of the groups with lines.
const WITH_LINES: usize = 3;

/// Settings of operators at their ends, and back at their defaults.
const SETTINGS: [(&str, &[u64]); 6] = [
    ("hunger", &[0, 1, 1000, 1000, 60_000]),
    ("max-tenants", &[0, 1, 10_000, 10_000]),
    ("max-holds", &[1, 3, 10_000, 10_000]),
    ("max-waiters", &[0, 3, 10_000, 10_000, 10_000]),
    ("max-waiters-per-key", &[1, 1000, 1000]),
    ("max-block", &[1, 86_400_000, 86_400_000, 86_400_000]),
];

const KINDS: [&str; 12] = [
    "GCRA 2 1 5s",
    "TOKENBUCKET 4 1 5s",
    "TOKENBUCKET 6 2 20s BATCH",
    "LEAKYBUCKET 3 1 5s",
    "FIXEDWINDOW 6 60s",
    "FIXEDWINDOW 3 10s",
    "FIXEDWINDOW 5 60s ALIGNED",
    "CALENDAR 9 DAY",
    "SLIDINGWINDOW 5 30s",
    "SLIDINGWINDOW 5 60s PRECISION 10s",
    "SLIDINGLOG 4 20s",
    "UNIFORM 5s",
];

/// What a history is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Much time passes, and all kinds of faults come.
    Varied,
    /// Many callers wait: most calls are for limits with lines, little time passes, and faults are few.
    Crowded,
    /// The same, for the two limits whose lines have a model, which few faults end.
    Fair,
}

impl Style {
    pub(super) fn of(dice: &mut Dice) -> Style {
        *dice.pick(&[Style::Varied, Style::Crowded, Style::Fair])
    }
}

/// The next event.
pub(super) fn draw(dice: &mut Dice, style: Style, ids: &Ids) -> Event {
    let node = dice.index(NODES);
    match dice.below(256) {
        0..150 => Event::Call(call(dice, style, ids)),
        150..154 if style != Style::Fair => {
            Event::Unit((0..=dice.below(3)).map(|_| call(dice, style, ids)).collect())
        }
        150..208 if style == Style::Varied => Event::Pass(span(dice)),
        150..208 => Event::Pass(moment(dice)),
        208..234 => Event::Deliver(node, *dice.pick(&[1, 3, 1000])),
        234..237 => Event::HangUp(dice.index(64)),
        237..243 => Event::Join(node),
        243..245 => Event::Cron,
        245..247 => Event::Try,
        247 => Event::Cut(node),
        248 => Event::Expire,
        _ if style == Style::Crowded && dice.below(8) > 0 => Event::Try,
        _ if style == Style::Fair && dice.below(32) > 0 => Event::Try,
        _ => rarely(dice, node),
    }
}

/// What would make a history of many short ones if it came often.
fn rarely(dice: &mut Dice, node: usize) -> Event {
    match dice.below(32) {
        0..8 => Event::Evict(dice.index(keys().len())),
        8..12 => Event::Step(node, step(dice)),
        12..16 => {
            let (name, values) = dice.pick(&SETTINGS);
            Event::Set((*name).into(), *dice.pick::<u64>(values))
        }
        16..20 => Event::Pause(dice.one_in(4)),
        20..22 => Event::Rewrite(dice.one_in(2)),
        22..24 => Event::Broken(dice.index(2 * NODES)),
        24..27 => Event::Promote(node),
        27..29 => Event::Crash(*dice.pick(&[0, 0, 1, 5, 100])),
        _ => Event::Quiet,
    }
}

/// How far a clock is set, in microseconds: mostly not far.
fn step(dice: &mut Dice) -> i64 {
    let micros = match dice.below(4) {
        0 => dice.below(3_000_000),
        1 => dice.below(100_000_000),
        2 => 1_000_000 * dice.below(7200),
        _ => 86_400_000_000 * dice.below(400),
    };
    if dice.one_in(2) { micros.cast_signed() } else { -micros.cast_signed() }
}

/// How much time passes, in microseconds: often none, and often as long as something lasts.
fn span(dice: &mut Dice) -> u64 {
    match dice.below(16) {
        0..5 => 0,
        5..7 => dice.below(2000),
        7..11 => dice.below(3_000_000),
        11 => 1_000_000 * dice.below(30),
        12 => 5_000_000,
        13 => 10_000_000,
        14 => *dice.pick(&[1, 1000, 2000, 19_999_999, 20_000_000, 29_999_999, 30_000_000]),
        _ => *dice.pick(&[60_000_000, 61_000_000, 3_600_000_000]),
    }
}

/// The same where many callers wait: whole milliseconds, as a line wakes at most once in each.
fn moment(dice: &mut Dice) -> u64 {
    1000 * match dice.below(32) {
        0..16 => 0,
        16..24 => dice.below(10),
        24..29 => dice.below(1000),
        29 => *dice.pick(&[1000, 2000, 5000]),
        30 => dice.below(10_000),
        _ => span(dice) / 1000,
    }
}

fn call(dice: &mut Dice, style: Style, ids: &Ids) -> String {
    let [tames, leases] = match style {
        Style::Varied => [18, 26],
        Style::Crowded => [6, 24],
        Style::Fair => [6, 60],
    };
    let number = dice.below(60);
    if number < tames {
        return tame(dice);
    }
    if number < leases {
        return fair(dice, ids);
    }
    let weight = |(place, (weight, _)): (usize, &(u64, &[&str]))| {
        if style == Style::Crowded && place >= WITH_LINES { weight / 3 } else { *weight }
    };
    let mut number = dice.below(CALLS.iter().enumerate().map(weight).sum());
    for (place, group) in CALLS.iter().enumerate() {
        let weight = weight((place, group));
        if number < weight {
            return filled(dice.pick::<&str>(group.1), dice);
        }
        number -= weight;
    }
    String::new()
}

/// A call on a key that has a model.
fn tame(dice: &mut Dice) -> String {
    let all: Vec<(&str, &str)> = limits().collect();
    let (key, limit) = *dice.pick(&all);
    if dice.one_in(5) {
        return filled(&format!("RL.SETTLE {key} {{i}} {limit} COST {}", dice.below(6)), dice);
    }
    let (limiter, parameters) = limit.split_once(' ').unwrap_or((limit, ""));
    let manner = *dice.pick(&["", "", "", "", "", " PARTIAL", " FORCE", "{b}", "{b}"]);
    filled(&format!("RL.{limiter} {key} {parameters}{{c}}{{h}}{manner}"), dice)
}

/// A call on one of the two keys with a model of their lines.
fn fair(dice: &mut Dice, ids: &Ids) -> String {
    if dice.one_in(60) {
        return format!("DEL {}", dice.pick(&["pool", "pool", "share"]));
    }
    if dice.one_in(3) {
        let tenant = *dice.pick(&TENANTS);
        let line = match dice.below(8) {
            0..2 => {
                let id = Ids::held(&ids.holds, dice);
                format!(
                    "RL.SETTLE share r{id} {}{tenant} COST {}",
                    SHARE.replace(" share", ""),
                    dice.below(5)
                )
            }
            2 if dice.one_in(40) => "RL.REFUND share TOKENBUCKET 4 1 5s".into(),
            2..5 => {
                let id = 100 + dice.below(1 << 40);
                format!("RL.{SHARE}{{c}} HOLD r{id} 60s{tenant} BLOCK 1d")
            }
            5 => format!("RL.{SHARE}{{c}}{tenant} BLOCK 1d CRITICAL"),
            _ => format!("RL.{SHARE}{{c}}{tenant} BLOCK 1d"),
        };
        return filled(&line, dice);
    }
    let (held, new) = (Ids::held(&ids.leases, dice), ids.of_call(dice));
    let line = match dice.below(12) {
        0..3 => format!("RL.RELEASE pool r{held}"),
        3 => format!("RL.RENEW pool 10s r{held}"),
        4 => format!("RL.{POOL} r{held}{{t}}"),
        5 => format!("RL.{POOL} r{new} COST 2{{t}}{{b}}"),
        6 => format!("RL.{POOL} r{new}{{t}} RESERVED 1{{b}}"),
        7 if dice.one_in(3) => format!("RL.{POOL} r{new} CRITICAL{{t}} BLOCK 60s"),
        7..9 => format!("RL.{POOL} r{new}{{t}} BLOCK 1d"),
        9 => format!("RL.{POOL} r{new}{{t}}{{b}}"),
        _ => format!("RL.{POOL} r{new}{{t}}"),
    };
    filled(&line, dice)
}

fn filled(call: &str, dice: &mut Dice) -> String {
    let mut line = String::with_capacity(call.len() + 40);
    let mut rest = call;
    while let Some((before, behind)) = rest.split_once('{') {
        line += before;
        let (hole, behind) = behind.split_once('}').unwrap_or((behind, ""));
        line += &fill(hole, dice);
        rest = behind;
    }
    line + rest
}

fn fill(hole: &str, dice: &mut Dice) -> String {
    let id = |dice: &mut Dice| format!("r{}", dice.below(10));
    match hole {
        "c" => {
            (*dice.pick(&["", "", " COST 2", " COST 3", " COST 1", " COST 4", " COST 0", " COST 7"])).into()
        }
        "t" => (*dice.pick(&TENANTS)).into(),
        "b" => {
            (*dice.pick(&["", " BLOCK 1ms", " BLOCK 5s", " BLOCK 60s", " BLOCK 1d", " BLOCK 5s CRITICAL"]))
                .into()
        }
        "f" => (*dice.pick(&["", " FENCE"])).into(),
        "h" if dice.one_in(2) => String::new(),
        "h" => format!(" HOLD {} {}", id(dice), dice.pick(&["1s", "5s", "60s", "1d"])),
        "i" => id(dice),
        "x" => (*dice.pick(&["x", "y"])).into(),
        "l" => (*dice.pick(&KINDS)).into(),
        "p" => (*dice.pick(&POLICIES)).into(),
        "k" => (*dice.pick(&keys())).into(),
        other => unreachable!("no words for {other}"),
    }
}
