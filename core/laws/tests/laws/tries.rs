//! `RL.POLICY TRY` says what two nodes would have decided that get the same calls: one with the policy as it is, and one with the limits
//! to try. Of a policy with one limit a model in rational numbers says the same.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;

use ratelimit_core::limiter::{FixedWindow, Penalty, Rate, Refused, SlidingLog, SlidingWindow, Unit};
use ratelimit_core::{Period, Span, Time};
use ratelimit_dice::Dice;
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::{FieldValue, Fields, Reply};
use ratelimit_laws::{
    Model, Offender, arrivals, batches, continuous, entries, opened, overlapping, recent, same_dates,
};

use super::T0;

/// The limits of one key. The first ones can be held, forced and refunded.
const ONE_KEY: &[&str] = &[
    "LIMIT GCRA 4 5 10s",
    "LIMIT TOKENBUCKET 6 3 20s",
    "LIMIT TOKENBUCKET 6 3 20s BATCH",
    "LIMIT FIXEDWINDOW 5 30s",
    "LIMIT SLIDINGWINDOW 5 30s",
    "LIMIT SLIDINGLOG 4 15s",
    "LIMIT CALENDAR 9 HOUR",
    "LIMIT GCRA 2 3 5s LIMIT FIXEDWINDOW 9 1m",
    "LIMIT GCRA 4 5 10s LIMIT SLIDINGLOG 3 20s SHADOW",
    "SHADOW LIMIT TOKENBUCKET 2 1 10s",
    "LIMIT GCRA 2 3 5s COST 1 LIMIT TOKENBUCKET 30 10 1m",
    "LIMIT GCRA 4 5 10s LIMIT PENALTY 3 1m 2m",
];
const TWO_KEYS: &[&str] = &[
    "LIMIT GCRA 4 5 10s ON 1 LIMIT FIXEDWINDOW 9 30s ON 2",
    "LIMIT TOKENBUCKET 6 3 20s",
    "LIMIT SLIDINGWINDOW 5 30s ON 2 LIMIT GCRA 2 3 5s ON 1",
];

fn reply(memory: &Memory, words: &[&str]) -> Reply {
    match memory.call(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()) {
        Called::Replied(reply) => reply,
        Called::Waits(_) => panic!("{words:?} waits"),
    }
}

fn call(memory: &Memory, at: Time, line: &str) -> Reply {
    memory.set_clock(at);
    reply(memory, &line.split(' ').collect::<Vec<_>>())
}

fn node(policy: &str) -> Memory {
    let memory = Memory::new(0);
    memory.node().settings.record.value.store(1_000_000, Relaxed);
    assert!(matches!(call(&memory, T0, &format!("RL.POLICY SET p {policy}")), Reply::Integer(1)), "{policy}");
    memory
}

/// A call with the names of its keys, as a line.
fn any_call(dice: &mut Dice, keys: usize) -> String {
    let key = dice.below(6);
    let more = if keys == 2 { format!(" KEYS all{}", dice.below(2)) } else { String::new() };
    let cost = if dice.one_in(3) { format!(" COST {}", 1 + dice.below(4)) } else { String::new() };
    match dice.below(12) {
        0 => format!("RL.ASKREFUND k{key} p{cost}{more}"),
        1 | 2 => format!("RL.ASKSETTLE k{key} p h{} COST {}{more}", dice.below(40), dice.below(5)),
        3 => format!("RL.ASK k{key} p{cost} FORCE{more}"),
        4..6 => format!("RL.ASK k{key} p{cost} HOLD h{} 20s{more}", dice.below(40)),
        6 => format!("RL.ASKPEEK k{key} p{more}"),
        7 => format!("RL.ASK k{key} p COST 0{more}"),
        _ => format!("RL.ASK k{key} p{cost}{more}"),
    }
}

fn number(fields: &Fields, name: &str) -> u64 {
    let value = fields.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    match value {
        Some(FieldValue::Integer(number)) => number.cast_unsigned(),
        _ => panic!("{name} is no number"),
    }
}

fn tried(memory: &Memory, line: &str) -> Fields {
    match call(memory, memory.clock(), line) {
        Reply::Map(fields) => fields,
        Reply::Error(error) => panic!("{line}: {error}"),
        _ => panic!("{line}: no map"),
    }
}

/// What the nodes decide of which `TRY` tells.
#[derive(Default, Debug, PartialEq)]
struct Sums {
    calls: u64,
    admitted: u64,
    refused_now: u64,
    refused_then: u64,
    newly_refused: u64,
    newly_admitted: u64,
    keys: u64,
    keys_newly_refused: u64,
    skipped: u64,
}

impl Sums {
    fn of(fields: &Fields) -> Sums {
        let number = |name| number(fields, name);
        Sums {
            calls: number("calls"),
            admitted: number("admitted"),
            refused_now: number("refused_now"),
            refused_then: number("refused_then"),
            newly_refused: number("newly_refused"),
            newly_admitted: number("newly_admitted"),
            keys: number("keys"),
            keys_newly_refused: number("keys_newly_refused"),
            skipped: number("skipped"),
        }
    }
}

/// Whether a call of the node is admitted; `None` if it is an error.
fn is_admitted(reply: &Reply) -> Option<bool> {
    (!matches!(reply, Reply::Error(_))).then(|| reply.is_admission())
}

fn compare(seed: u64, calls: usize, policies: &[&str], keys: usize) {
    let dice = &mut Dice::new(seed);
    let (now, then) = (*dice.pick(policies), *dice.pick(policies));
    let [recorded, other] = [now, then].map(node);
    let mut at = T0;
    let mut sums = Sums::default();
    let mut of_keys: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..calls {
        at = at.plus(Span::from_micros(dice.below(4_000_000)));
        let line = any_call(dice, keys);
        let before = number_of_calls(&recorded);
        let by_now = call(&recorded, at, &line).is_admission();
        // A look, a repeated hold or an error is no call.
        if number_of_calls(&recorded) == before {
            continue;
        }
        let by_then = is_admitted(&call(&other, at, &line));
        if !line.starts_with("RL.ASK ") {
            continue;
        }
        let Some(by_then) = by_then else {
            sums.skipped += 1;
            continue;
        };
        let key = line.split(' ').nth(1).unwrap_or_default().to_owned();
        sums.calls += 1;
        sums.admitted += u64::from(by_now);
        sums.refused_now += u64::from(!by_now);
        sums.refused_then += u64::from(!by_then);
        sums.newly_refused += u64::from(by_now && !by_then);
        sums.newly_admitted += u64::from(!by_now && by_then);
        *of_keys.entry(key).or_default() += u64::from(by_now && !by_then);
    }
    sums.keys = of_keys.len() as u64;
    sums.keys_newly_refused = of_keys.values().filter(|newly| **newly > 0).count() as u64;
    let fields = tried(&recorded, &format!("RL.POLICY TRY p {then}"));
    assert_eq!(Sums::of(&fields), sums, "seed {seed}: {now} and {then}");
    // By itself, the policy decides as it did.
    let same = Sums::of(&tried(&recorded, &format!("RL.POLICY TRY p {now}")));
    assert_eq!(
        (same.refused_now, same.newly_refused, same.newly_admitted),
        (same.calls - same.admitted, 0, 0)
    );
    // Each key by itself makes the whole.
    let each = of_keys.keys().map(|key| tried(&recorded, &format!("RL.POLICY TRY p KEY {key} {then}")));
    let refused: u64 = each.map(|fields| number(&fields, "newly_refused")).sum();
    assert_eq!(refused, sums.newly_refused, "seed {seed}: {now} and {then}");
}

fn number_of_calls(memory: &Memory) -> u64 {
    memory.node().record().counts()[0].1
}

#[test]
fn a_replay_decides_as_nodes_that_got_the_calls() {
    for seed in 0..120 {
        compare(seed, 400, ONE_KEY, 1);
    }
}

#[test]
fn a_replay_of_calls_with_two_keys_decides_as_nodes_that_got_them() {
    for seed in 0..60 {
        compare(seed, 400, TWO_KEYS, 2);
    }
}

/// A limit, and what makes its model.
type Modelled = (String, Box<dyn Fn() -> Box<dyn Model>>);

/// A limit whose refusals are strikes.
struct Struck {
    limit: Box<dyn Model>,
    offender: Offender,
}

impl Model for Struck {
    fn ask(&mut self, now: u64, cost: u64) -> bool {
        let is_free = self.offender.banned(now).is_none();
        let admitted = is_free && self.limit.ask(now, cost);
        if is_free && !admitted {
            self.offender.ask(now, 1);
        }
        admitted
    }
}

fn modelled(dice: &mut Dice) -> Modelled {
    let positive = |number: u64| NonZeroU64::new(number).expect("a positive number");
    let [limit, count, seconds] = [1 + dice.below(9), 1 + dice.below(5), 1 + dice.below(30)];
    let period = Period::from_millis(positive(seconds * 1000));
    let rate = Rate { limit: positive(limit), count: positive(count), period };
    let window = FixedWindow { limit: positive(limit), window: period };
    match dice.below(9) {
        0 => (format!("GCRA {} {count} {seconds}s", limit - 1), Box::new(move || Box::new(arrivals(rate)))),
        1 => {
            (format!("TOKENBUCKET {limit} {count} {seconds}s"), Box::new(move || Box::new(continuous(rate))))
        }
        2 => (
            format!("TOKENBUCKET {limit} {count} {seconds}s BATCH"),
            Box::new(move || Box::new(batches(rate))),
        ),
        3 => (format!("FIXEDWINDOW {limit} {seconds}s"), Box::new(move || Box::new(opened(window)))),
        4 => (
            format!("SLIDINGLOG {limit} {seconds}s"),
            Box::new(move || Box::new(recent(limit, period.span()))),
        ),
        5 => (
            format!("SLIDINGWINDOW {limit} {seconds}s"),
            Box::new(move || Box::new(overlapping(SlidingWindow { limit: positive(limit), window: period }))),
        ),
        6 => {
            let (unit, word) = *dice.pick(&[
                (Unit::Hour, "HOUR"),
                (Unit::Day(22), "DAY ANCHOR 22"),
                (Unit::Day(23), "DAY ANCHOR 23"),
            ]);
            let limit = limit * 20;
            (format!("CALENDAR {limit} {word}"), Box::new(move || Box::new(same_dates(limit, unit, 0))))
        }
        7 => {
            let gap = 1 + dice.below(seconds * 500);
            let most = positive(1_000_000);
            let span = Span::from_micros(gap * 1000);
            let log = SlidingLog {
                limit: positive(limit),
                window: period,
                gap: span,
                refused: Refused::Forgotten,
                most,
            };
            (format!("SLIDINGLOG {limit} {seconds}s GAP {gap}ms"), Box::new(move || Box::new(entries(log))))
        }
        _ => {
            let [strikes, ban, forgive] = [2 + dice.below(3), seconds * 500, seconds * 3000];
            let penalty = Penalty {
                strikes: positive(strikes),
                window: period,
                ban: Period::from_millis(positive(ban)),
                grow: positive(2),
                longest: Span::from_micros(ban * 4000),
                forgive: Period::from_millis(positive(forgive)),
            };
            let struck = move || Struck { limit: Box::new(arrivals(rate)), offender: Offender::new(penalty) };
            (
                format!(
                    "GCRA {} {count} {seconds}s LIMIT PENALTY {strikes} {seconds}s {ban}ms GROW 2 MAX {}ms FORGIVE {forgive}ms",
                    limit - 1,
                    ban * 4
                ),
                Box::new(move || Box::new(struck())),
            )
        }
    }
}

#[test]
fn a_hundred_thousand_calls_are_refused_as_models_in_rational_numbers_refuse_them() {
    for seed in 0..100 {
        let dice = &mut Dice::new(seed);
        let [(now, _), (then, model)] = [modelled(dice), modelled(dice)];
        let memory = node(&format!("LIMIT {now}"));
        let mut models: BTreeMap<u64, Box<dyn Model>> = BTreeMap::new();
        let (mut at, mut refused) = (T0, 0);
        for _ in 0..1000 {
            at = at.plus(Span::from_micros(dice.below(3_000_000)));
            let (key, cost) = (dice.below(4), 1 + dice.below(3));
            call(&memory, at, &format!("RL.ASK k{key} p COST {cost}"));
            refused += u64::from(!models.entry(key).or_insert_with(&model).ask(at.as_micros(), cost));
        }
        let fields = tried(&memory, &format!("RL.POLICY TRY p LIMIT {then}"));
        assert_eq!(number(&fields, "calls"), 1000);
        assert_eq!(number(&fields, "refused_then"), refused, "seed {seed}: {then}");
        assert_eq!(number(&fields, "from_us").max(T0.as_micros()), number(&fields, "from_us"));
        assert_eq!(number(&fields, "to_us"), at.as_micros());
    }
}

#[test]
fn a_replay_after_each_call_leaves_no_room_that_calls_do_not_use() {
    let memory = node("LIMIT GCRA 4 5 10s");
    for _ in 0..1000 {
        call(&memory, T0, "RL.ASK k p");
        tried(&memory, "RL.POLICY TRY p LIMIT GCRA 1 2 10s");
    }
    let [(_, calls), (_, bytes), _] = memory.node().record().counts();
    assert_eq!(calls, 1000);
    assert!(bytes <= calls * 70, "{bytes} bytes");
}
