//! Where the fuzzer begins: inputs that it would not soon find by chance, and what it once found.

use ratelimit_core::adapt::Ending;
use ratelimit_core::lease::{Action, act};
use ratelimit_core::limiter::release;
use ratelimit_core::state::codec::{put as put_word, put_bytes, put_short, put_words};
use ratelimit_core::state::{Begun, Charge, HoldChange, Holds, Leases, Move, Moved, SetChange};
use ratelimit_core::{
    Ask, Hold, Kind, Length, LimitSet, Limiter, Manner, Name, Place, Span, State, Time, with_limiter,
};
use ratelimit_language::{Arguments, FORMS, shed};
use ratelimit_laws::{T0, charged, decoded, encoded};

use crate::bytes::Bytes;
use crate::decode::HELD;
use crate::lines::{BOUNDS, CENTURY, FORM_COUNT, line, parse, template};

/// A file of the corpus: its name and its bytes.
pub type Seed = (String, Vec<u8>);

/// The seeds of each target.
pub fn seeds() -> [(&'static str, Vec<Seed>); 3] {
    [("words", calls()), ("history", lives()), ("decode", states())]
}

/// A call of each form, and calls with other options and of other commands.
fn calls() -> Vec<Seed> {
    let forms = FORMS.iter().map(|form| form.words(10, 1000, "holder"));
    let others = [
        "TOKENBUCKET 5 10 1000 BATCH COST 3 AT 1700002800000000 PARTIAL",
        "TOKENBUCKET 9007199254740991 9007199254740991 3153600000000 RESERVE MAXWAIT 0",
        "LEAKYBUCKET 3 1 1000 FORCE",
        "GCRA 0 1 3153600000000 RESERVE",
        "FIXEDWINDOW 5 60000 ALIGNED COST 0",
        "SLIDINGWINDOW 100 61440 PRECISION 60",
        "SLIDINGLOG 200 1000 GAP 0 COUNTREFUSED",
        "UNIFORM 250 FORCE COST 9007199254740991",
        "SMOOTH 2 1000 BURST 0 MAXWAIT 3153600000000",
        "SMOOTH 2 1000 WARMUP 4000 COLDFACTOR 1e3 COST 7",
        "CONCURRENT 300 30000 holder RESERVED 300 CRITICAL",
        "CONCURRENT 300 30000 holder RESERVED 301",
        "SHED 0.95 GOOD 0.6 BAD 0.9999 DELAY 1 RAMP 3153600000000 TIER 2 OF 3 AT 253402300799999999",
        "THROTTLE 15 30 60 0 AT 1000000000000000",
        "MULTI 2 COST 2 FORCE LIMIT GCRA 9 10 1000 ON 2 LIMIT fixedwindow 5 1000 COST 0",
        "MULTIPEEK 1 AT 1700002800000000 LIMIT CONCURRENT 5 1000 LIMIT LIMIT UNIFORM 5",
        "MULTIREFUND 1 LIMIT SLIDINGLOG 5 1000 GAP 7 LIMIT TOKENBUCKET 1 1 1",
        "SLIDINGWINDOW 100 1h PRECISION 60s",
        "SMOOTH 2 500ms WARMUP 1w MAXWAIT 0s",
        "CONCURRENT 3 36500d holder",
        "SHED 2 DELAY 1m",
        "MULTI 2 LIMIT GCRA 9 10 1s LIMIT GCRA 4 5 1s SHADOW ON 2",
        "TOKENBUCKET 9000 9000 1m COST 600 PARTIAL HOLD request 5m",
        "SLIDINGLOG 200 1m FORCE HOLD request 36500d AT 1700002800000000",
        "MULTI 2 COST 600 HOLD request 5m LIMIT GCRA 9 10 1s ON 2 LIMIT FIXEDWINDOW 5000 1h COST 0 LIMIT UNIFORM 1s",
        "SETTLE request GCRA 9 10 1s COST 0",
        "SETTLE request SLIDINGWINDOW 100 1h PRECISION 60s COST 450 AT 1700002800000000",
        "MULTISETTLE 2 request COST 450 LIMIT GCRA 9 10 1s LIMIT CALENDAR 9 MONTH ON 2 COST 0 LIMIT UNIFORM 1s SHADOW",
        "POLICY LIMIT GCRA 99 100 1s LIMIT CALENDAR 5 month tz Europe/Lisbon ON 2 COST 3",
        "POLICY VERSION 7 SHADOW LIMIT CONCURRENT 20 30s RESERVED 5 LIMIT PENALTY 3 10m 1h GROW 2",
        "ASK",
        "ASK COST 5 ID request FORCE AT 1700002800000000 FULL KEYS a b",
        "ASK HOLD request 5m KEYS KEYS",
        "ASKPEEK ID KEYS",
        "ASKREFUND COST 0 FULL",
        "ASKSETTLE request COST 450 KEYS org",
        "CONCURRENT 300 30s holder RESERVED 3 ADAPT GRADIENT FLOOR 4 START 20 BACKOFF 90 SLOW 1500ms",
        "POLICY LIMIT CONCURRENT 300 30s ADAPT SLOW 1s LIMIT CONCURRENT 20 30s ADAPT FLOOR 21 SHADOW",
        "CONCURRENT 300 30000 holder TENANT TENANT WEIGHT 1000 COST 2",
        "FIXEDWINDOW 5 60000 BLOCK 5s TENANT t",
        "MULTI 2 BLOCK 5s LIMIT CONCURRENT 9 1m id ON 2 TENANT LIMIT WEIGHT 7 LIMIT GCRA 9 10 1s ON 1",
        "SETTLE request GCRA 9 10 1s COST 0 TENANT t",
        "POLICY LIMIT CONCURRENT 20 30s FAIR LIMIT GCRA 99 100 1s",
        "ASK ID request TENANT t WEIGHT 3 BLOCK 5s",
    ];
    let calls = forms.chain(others.map(String::from));
    calls.enumerate().map(|(i, line)| (format!("call-{i:02}"), line.into_bytes())).collect()
}

/// Writes what [`Bytes::number`] reads as `least` and this number.
fn put(out: &mut Vec<u8>, number: u64) {
    let bits = u64::BITS - number.leading_zeros();
    let bytes = number.to_be_bytes();
    out.extend(u8::try_from(bits));
    out.extend_from_slice(&bytes[8 - bits.div_ceil(8) as usize..]);
}

/// The numbers of a form with middling parameters: 20 requests, periods of a second or more.
fn parameters(form: u8) -> Vec<u8> {
    let template = template(form);
    let numbers: [u64; 5] = if template.contains("{tenth}") {
        // The precision and the number of parts, then the limit.
        [99, 9, 19, 0, 0]
    } else if template.starts_with("CONCURRENT") {
        [BOUNDS.leases - 1, 99_999, 1, 0, 0]
    } else {
        [19, 999, 999, 59_999, 0]
    };
    let mut out = Vec::new();
    for number in numbers {
        put(&mut out, number.min(CENTURY - 1));
    }
    // Only the numbers that the form reads.
    let mut unread = Bytes(&out);
    line(form, &mut unread);
    let read = out.len() - unread.0.len();
    out.truncate(read);
    out
}

/// The first byte of a history.
fn first(form: u8, tame: bool) -> u8 {
    if tame { form } else { FORM_COUNT + form }
}

/// The form of this template.
fn form(of: &str) -> u8 {
    (0..FORM_COUNT).find(|form| template(*form) == of).expect("a form of the table")
}

/// A tame and a wild history of each form, and findings.
fn lives() -> Vec<Seed> {
    let lives = (0..2 * FORM_COUNT).map(|first| {
        let mut life = vec![first];
        life.extend(parameters(first % FORM_COUNT));
        for step in 0..20u8 {
            life.push(step.wrapping_mul(37));
            (0..3).for_each(|number| put(&mut life, u64::from(step) * number % 11));
        }
        (format!("life-{first:02}"), life)
    });
    let mut lives: Vec<Seed> = lives.collect();
    // A window of one sub-bucket is charged, refunded, and charged again in two sub-buckets.
    let mut life = vec![first(form("SLIDINGWINDOW {limit} {period} PRECISION {tenth}"), false), 0, 0, 0];
    life.extend([0, 0, 32, 0, 0xf0, 0, 1, 1, 0, 0]);
    lives.push(("empty-other-precision".into(), life));
    // A lease is taken, and then renewed and released by callers whose clocks lag by a millisecond.
    let concurrent = form("CONCURRENT {limit} {period} {id}");
    let mut life = vec![first(concurrent, false)];
    life.extend(parameters(concurrent));
    for step in [0, 0xa5, 0x25] {
        life.push(step);
        if step > 0 {
            put(&mut life, 1000);
        }
        put(&mut life, 0);
    }
    lives.push(("lagging-renewal".into(), life));
    // A bucket is charged in 2023 and in 9999; more tokens come in than 64 bits hold.
    let mut life = vec![first(form("TOKENBUCKET {limit} {limit} {period} BATCH"), false)];
    for number in [0, (1 << 53) - 2, 0] {
        put(&mut life, number);
    }
    life.extend([0, 0, 6]);
    put(&mut life, Time::LATEST.since(Time::EARLIEST).as_micros());
    life.push(0);
    lives.push(("long-idle-large-batch".into(), life));
    lives
}

/// A state of each kind after many charges, and the changes of some more; and findings.
fn states() -> Vec<Seed> {
    let mut states: Vec<_> = (0..FORM_COUNT).map(of_form).collect();
    let report = shed(&mut Arguments::new(&[b"0.9"], BOUNDS)).expect("a report");
    let later = T0.plus(Span::from_millis(50));
    let amount = report.shed.report(&report.shed.fresh(T0), later, report.utilization);
    states.push(input(Kind::Amount, 0, &encoded(&amount), &encoded(&amount)));
    states.push(set());
    states.extend([holds(), set_with_holds()]);
    let states = states.into_iter().enumerate().map(|(i, bytes)| (format!("state-{i:02}"), bytes));
    let mut states: Vec<Seed> = states.collect();
    states.push(("same-name-twice".into(), set_of_one_name()));
    states.push(("larger-capacity".into(), set_that_grows()));
    states.push(("moved-twice-leases".into(), leases_that_move_twice()));
    states.push(("moved-twice-log".into(), log_that_moves_twice()));
    states.push(("adaptive-leases".into(), leases_that_adapt()));
    states
}

/// A set with a limit of each kind, and changes of each sort.
fn set() -> Vec<u8> {
    let mut limits: Vec<(Name, Vec<u8>)> = (0..FORM_COUNT).map(|form| run(form, 3).0).collect();
    limits.sort_by_key(|(name, _)| *name);
    limits.dedup_by_key(|(name, _)| *name);
    let mut state = Vec::new();
    put_word(&mut state, limits.len() as u64);
    for (name, bytes) in &limits {
        put_limit(&mut state, *name, bytes);
    }
    let set: LimitSet = decoded(&state).expect("limits in the order of their names");
    assert_eq!(encoded(&set), state);
    // The kind that forms have twice is the log. GCRA's state is its own change.
    let (name, arrival) = limits.iter().find(|(name, _)| name.kind == Kind::Arrival).expect("a form of GCRA");
    let renamed = Name { length: Length::of(Span::from_millis(7)), ..*name };
    let mut changes = Vec::new();
    for change in [
        SetChange::Limit { name: *name, change: arrival },
        SetChange::Renamed { from: *name, to: renamed },
        SetChange::Limit { name: *name, change: arrival },
        SetChange::Dropped { name: renamed },
    ] {
        LimitSet::encode_change(&change, &mut changes);
    }
    input(Kind::LimitSet, form("GCRA {burst} {limit} {period}"), &state, &changes)
}

const FIRST: &str = "SLIDINGLOG {limit} {period}";

/// A set in which two limits are held under two ids each.
fn held_set() -> LimitSet {
    let mut set = LimitSet::blank();
    for (id, seconds) in [(HELD, 60), (b"b", 5)] {
        for template in [FIRST, "TOKENBUCKET {limit} {limit} {period}"] {
            let id = if template == FIRST { id } else { &[id, id].concat() };
            let form = form(template);
            let words = line(form, &mut Bytes(&parameters(form)));
            let limiter = parse(&words).expect("good parameters");
            let hold = Hold { id, ttl: Span::from_millis(1000 * seconds), most: 10 };
            with_limiter!(&limiter, limiter => {
                let place = Place::of(limiter.name().length);
                let taken = Ask::new(place, T0, 3, Manner::Force).take_and_hold(&mut set, limiter, &hold);
                assert!(taken.is_ok_and(|taken| taken.verdict.admits()));
            });
        }
    }
    set
}

/// Changes of holds: one begins, the instants of others move, one ends, and time passes.
fn changes_of_holds(name: Name) -> Vec<Vec<u8>> {
    let later = T0.plus(Span::from_millis(20));
    let charges = vec![Charge { name, cost: 7, at: T0 }];
    let begun = Some(Begun { id: b"c", ends: later.plus(Span::from_millis(900)), charges });
    let moved = Some(Moved { name, number: 1, by: Move::Step { from: T0, to: later } });
    let passed = HoldChange::passed(later);
    let changes = [
        HoldChange { begun, ..passed.clone() },
        HoldChange { moved, ..passed.clone() },
        HoldChange { ended: Some(HELD), ..passed },
        HoldChange::passed(T0.plus(Span::from_millis(30_000))),
    ];
    let bytes = changes.iter().map(|change| {
        let mut bytes = Vec::new();
        Holds::encode_change(change, &mut bytes);
        bytes
    });
    bytes.collect()
}

/// The holds of a set alone, and changes of them.
fn holds() -> Vec<u8> {
    let set = held_set();
    let holds: &Holds = set.get(Length::NONE).expect("holds");
    let form = form(FIRST);
    let (name, _) = run(form, 1).0;
    input(Kind::Holds, form, &encoded(holds), &changes_of_holds(name).concat())
}

/// A set with holds beside its limits, and changes of them.
fn set_with_holds() -> Vec<u8> {
    let form = form(FIRST);
    let (name, _) = run(form, 1).0;
    let holds = Name { kind: Kind::Holds, length: Length::NONE };
    let mut changes = Vec::new();
    for change in changes_of_holds(name) {
        LimitSet::encode_change(&SetChange::Limit { name: holds, change: &change }, &mut changes);
    }
    let renamed = Name { length: Length::of(Span::from_millis(7)), ..name };
    LimitSet::encode_change(&SetChange::Renamed { from: name, to: renamed }, &mut changes);
    input(Kind::LimitSet, form, &encoded(&held_set()), &changes)
}

/// A set with two limits of one name.
fn set_of_one_name() -> Vec<u8> {
    let form = form("GCRA {burst} {limit} {period}");
    let ((name, arrival), _) = run(form, 1);
    let mut state = Vec::new();
    put_word(&mut state, 2);
    for _ in 0..2 {
        put_limit(&mut state, name, &arrival);
    }
    input(Kind::LimitSet, form, &state, &[])
}

/// A set with a bucket that has filled up since, asked under a larger capacity: its tokens stay as they were.
fn set_that_grows() -> Vec<u8> {
    let form = form("TOKENBUCKET {limit} {limit} {period}");
    let ((name, level), _) = run(form, 1);
    let mut state = Vec::new();
    put_word(&mut state, 1);
    put_limit(&mut state, name, &level);
    let mut larger = Vec::new();
    for number in [1999, 999, 999] {
        put(&mut larger, number);
    }
    input_under(&larger, Kind::LimitSet, form, &state, &[])
}

fn put_limit(out: &mut Vec<u8>, name: Name, state: &[u8]) {
    out.push(name.kind as u8);
    put_word(out, name.length.to_word());
    out.extend_from_slice(state);
}

/// A table whose clock is set back to an instant other than that of the change.
fn leases_that_move_twice() -> Vec<u8> {
    let mut state = Vec::new();
    put_words(&mut state, [5000, 1]);
    put_bytes(&mut state, b"a");
    put_words(&mut state, [9000, 1]);
    let mut change = vec![1];
    put_words(&mut change, [5000, 5000, 1000]);
    input(Kind::Leases, 0, &state, &change)
}

/// Leases whose limit finds itself, and the change that a failure makes.
fn leases_that_adapt() -> Vec<u8> {
    let mut set = LimitSet::blank();
    for id in ["a", "b"] {
        let words = format!("CONCURRENT 20 1m {id} ADAPT GRADIENT START 15");
        let limiter = parse(&words).expect("good parameters");
        with_limiter!(&limiter, limiter => {
            let mut ask = Ask::new(Place::of(limiter.name().length), T0, 1, Manner::Strict);
            assert!(ask.take(&mut set, limiter).is_ok_and(|taken| taken.verdict.admits()));
        });
    }
    let later = T0.plus(Span::from_millis(20));
    act(&mut set, Action::Release(Ending::Well), b"a", later).expect("a change that can be read");
    let leases: &Leases = set.get(Length::NONE).expect("what was charged");
    let change = release(leases, b"b", Ending::Failed, later).expect("a lease that is held");
    let mut bytes = Vec::new();
    Leases::encode_change(&change, &mut bytes);
    input(Kind::Leases, 0, &encoded(leases), &bytes)
}

/// As [`leases_that_move_twice`].
fn log_that_moves_twice() -> Vec<u8> {
    let mut state = Vec::new();
    put_words(&mut state, [5000, 1, 6000, 1]);
    put_short(&mut state, 2000 << 1);
    let mut change = vec![1];
    put_words(&mut change, [5000, 1, 6000, 5000, 4000]);
    input(Kind::Log, 0, &state, &change)
}

fn of_form(form: u8) -> Vec<u8> {
    let ((name, state), changes) = run(form, 20);
    input(name.kind, form, &state, &changes)
}

fn input(kind: Kind, form: u8, state: &[u8], changes: &[u8]) -> Vec<u8> {
    input_under(&parameters(form), kind, form, state, changes)
}

fn input_under(parameters: &[u8], kind: Kind, form: u8, state: &[u8], changes: &[u8]) -> Vec<u8> {
    let place = Kind::ALL.iter().position(|other| *other == kind).expect("a kind of all");
    let mut input = Vec::from_iter(u8::try_from(place));
    put(&mut input, T0.as_micros() + 20_000);
    input.push(form);
    input.extend_from_slice(parameters);
    input.extend_from_slice(&u16::try_from(state.len()).unwrap_or(u16::MAX).to_le_bytes());
    input.extend_from_slice(state);
    input.extend_from_slice(changes);
    input
}

/// The name and the bytes of a limit after this many charges, a few microseconds apart, and the changes of five more.
fn run(form: u8, charges: u64) -> ((Name, Vec<u8>), Vec<u8>) {
    let parameters = parameters(form);
    let (mut name, mut state, mut before, mut changes) = (None, None, None, Vec::new());
    for charge in 0..charges + 5 {
        let words = line(form, &mut Bytes(&parameters)).replace("holder", &format!("{charge}-"));
        let limiter = parse(&words).expect("good parameters");
        let now = T0.plus(Span::from_micros(50 * charge + charge % 7));
        if charge == charges {
            before.clone_from(&state);
        }
        let change = with_limiter!(&limiter, limiter => {
            name = Some(limiter.name());
            force(limiter, &mut state, now)
        });
        if charge >= charges {
            changes.extend_from_slice(&change);
        }
    }
    ((name.expect("a charge"), before.unwrap_or_default()), changes)
}

/// Charges a cost of 1, whether it fits or not; returns the change.
fn force<L: Limiter>(limiter: &L, stored: &mut Option<Vec<u8>>, now: Time) -> Vec<u8> {
    let before = stored.as_ref().map(|bytes| decoded(bytes).expect("a state that was just encoded"));
    let before = before.unwrap_or_else(|| limiter.fresh(now));
    let mut change = Vec::new();
    L::State::encode_change(&limiter.charge(&before, now, 1), &mut change);
    *stored = Some(encoded(&charged(limiter, &before, now, 1)));
    change
}
