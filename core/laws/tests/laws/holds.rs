//! Holds: over a million calls that charge, hold and settle decide as a model that remembers each charge for itself.
//!
//! | law | exceptions |
//! |---|---|
//! | a settlement gives back where it was charged, or charges the shortfall | |
//! | an id is held once, and settled once | |
//! | after a charge, a key whose holds have ended stores none | |
//! | settling everything at 0 leaves a full limit, even after the clock was set back or parameters changed | |
//! | settling all except one at 0 leaves that one | buckets and GCRA: a refund pays off any debt |
//! | each limit of a call on several keys is held and settled as on a key of its own | |

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use ratelimit_core::hold::{find as find_held, has_room, held};
use ratelimit_core::limiter::{Gcra, Limiter};
use ratelimit_core::state::Holds;
use ratelimit_core::{
    AnyLimiter, Ask, Error, Gauge, Hold, Joint, Length, LimitSet, Manner, Place, Span, State, Time,
    with_limiter,
};
use ratelimit_language::{Arguments, Bounds, FORMS, Form, MultiCall, Purpose, Request, find, multi};
use ratelimit_laws::*;

use super::T0;
use super::differential::each;
use super::histories::*;

/// A call: the time since the one before it, and a cost.
#[derive(Clone, Copy, Debug)]
struct Call {
    wait: u64,
    cost: u64,
    action: Action<u8>,
}

/// Adds calls to generated parameters. Few ids are used, and most holds last for a few calls.
fn with_calls<P: Clone + std::fmt::Debug>(
    parameters: impl Strategy<Value = (P, Span, u64)>,
) -> impl Strategy<Value = (P, Vec<Call>)> {
    parameters.prop_flat_map(|(parameters, period, limit)| {
        let wait = prop_oneof![
            3 => Just(0),
            2 => 1..100u64,
            4 => 0..=period.as_micros() / 4,
            1 => 0..=period.as_micros() * 3,
            1 => Just(period.as_micros()),
        ];
        let manner = prop_oneof![5 => Just(Manner::Strict), 2 => Just(Manner::Partial), 1 => Just(Manner::Force)];
        let ttl = prop_oneof![3 => 1..=period.as_micros(), 1 => Just(period.as_micros() * 9)];
        let hold = (0..5u8, ttl).prop_map(|(id, ttl)| (id, Span::from_micros(ttl)));
        let action = prop_oneof![
            5 => (manner, prop::option::weighted(0.7, hold)).prop_map(|(manner, hold)| Action::Charge(manner, hold)),
            3 => (0..5u8).prop_map(Action::Settle),
        ];
        let call = (wait, 0..=limit + 1, action).prop_map(|(wait, cost, action)| Call {
            wait,
            // Only a settlement may cost nothing.
            cost: if matches!(action, Action::Settle(_)) { cost } else { cost.max(1) },
            action,
        });
        (Just(parameters), prop::collection::vec(call, 1..80))
    })
}

/// A limit on a key in memory.
struct Tested<L> {
    limiter: L,
    key: LimitSet,
}

impl<L: Limiter> Tested<L> {
    fn gauge(&self, now: Time) -> Gauge {
        Ask::new(self.place(), now, 0, Manner::Strict).peek(&self.key, &self.limiter).gauge
    }

    fn place(&self) -> Place {
        Place::of(Length::of(self.limiter.length()))
    }

    fn call(&mut self, now: Time, cost: u64, action: Action<u8>) -> Seen {
        let (place, key, limiter) = (self.place(), &mut self.key, &self.limiter);
        let (admitted, granted) = match action {
            Action::Charge(manner, hold) => {
                let mut ask = Ask::new(place, now, cost, manner);
                let id = [hold.map_or(0, |(id, _)| id)];
                let charges = hold.and_then(|_| held(key, &id, now));
                if let Some(charges) = charges {
                    (true, find_held(key, charges, limiter).expect("the only limit").cost)
                } else {
                    let taken = match hold {
                        None => ask.take(key, limiter),
                        Some((_, ttl)) => ask.take_and_hold(key, limiter, &Hold { id: &id, ttl, most: 9 }),
                    };
                    taken.map(|taken| (taken.verdict.admits(), taken.granted)).expect("a small debt")
                }
            }
            Action::Settle(id) => {
                let settled = Ask::settle_held(key, limiter, &[id], now, cost).expect("a small debt");
                (settled.is_some(), 0)
            }
        };
        copy(&self.key);
        (admitted, granted, self.gauge(now).remaining)
    }
}

/// Checks that a limit with holds and its model decide the same on generated calls.
fn agree<P: Clone + std::fmt::Debug, L: Limiter, M: Ledger>(
    parameters: impl Strategy<Value = (P, Span, u64)>,
    limiter: impl Fn(&P) -> L,
    model: impl Fn(P) -> M,
) {
    let (mut admitted, mut settled, mut called) = (0, 0, 0);
    each(with_calls(parameters), |(parameters, calls)| {
        let mut tested = Tested { limiter: limiter(&parameters), key: LimitSet::default() };
        let mut book = Book::new(model(parameters.clone()));
        let mut now = T0;
        for (i, Call { wait, cost, action }) in calls.iter().copied().enumerate() {
            now = now.plus(Span::from_micros(wait));
            let seen = tested.call(now, cost, action);
            assert_eq!(
                seen,
                book.call(now, cost, action),
                "call {i} of {calls:?} under {parameters:?}, {:?}",
                tested.key
            );
            let charged = seen.0 && matches!(action, Action::Charge(_, None));
            let holds = tested.key.get::<Holds>(Length::NONE);
            assert!(!charged || holds.is_some() != (book.held() == 0), "a charge drops what has ended");
            assert_eq!(holds.map_or(0, |holds| holds.count(now)), book.held() as u64);
            let stored = holds.map_or(0, |holds| holds.count(holds.last()));
            assert!(!charged || stored == book.held() as u64, "a charge drops those that have ended");
            match action {
                Action::Charge(..) => admitted += usize::from(seen.0),
                Action::Settle(_) => settled += usize::from(seen.0),
            }
        }
        called += calls.len();
        calls.len()
    });
    assert!(admitted > called / 10 && settled > called / 100, "{admitted} and {settled} of {called}");
}

#[test]
fn a_hundred_thousand_held_calls_of_the_token_bucket() {
    agree(token_buckets(), |bucket| *bucket, |bucket| owed(*bucket.rate()));
}

#[test]
fn a_hundred_thousand_held_calls_of_the_batch_bucket() {
    agree(batch_buckets(), |(bucket, _)| *bucket, |(_, rate)| missing_batches(rate));
}

#[test]
fn a_hundred_thousand_held_calls_of_the_leaky_bucket() {
    agree(leaky_buckets(), |bucket| *bucket, |bucket| owed(*bucket.rate()));
}

#[test]
fn a_hundred_thousand_held_calls_of_gcra() {
    agree(gcras(), |gcra: &Gcra| *gcra, |gcra| owed(*gcra.rate()));
}

#[test]
fn a_hundred_thousand_held_calls_of_the_fixed_window() {
    agree(fixed_windows(), |window| *window, opened_windows);
}

#[test]
fn a_hundred_thousand_held_calls_of_the_aligned_window() {
    agree(
        aligned_windows(),
        |window| *window,
        |window| charges(window.limit.get(), in_same_window(window.window)),
    );
}

#[test]
fn a_hundred_thousand_held_calls_of_the_calendar() {
    agree(
        calendars(),
        |(calendar, _)| *calendar,
        |(calendar, offset)| charges(calendar.limit.get(), on_same_dates(calendar.unit, offset)),
    );
}

#[test]
fn a_hundred_thousand_held_calls_of_the_sliding_window() {
    agree(sliding_windows(), |window| *window, |window| charges(window.limit.get(), overlap(window.window)));
}

#[test]
fn a_hundred_thousand_held_calls_of_sub_buckets() {
    agree(
        windows_of_buckets(),
        |(buckets, _)| *buckets,
        |(_, (limit, window, part))| charges(limit, in_recent_parts(window, part)),
    );
}

#[test]
fn a_hundred_thousand_held_calls_of_the_log() {
    agree(logs(), |log| *log, |log| charges(log.limit.get(), in_window(log.window.span())));
}

/// Logs are full after a few entries.
const BOUNDS: Bounds = Bounds { leases: 1000, log_entries: FULL, ..Bounds::DEFAULT };
const FULL: u64 = 3;

/// A charge of a limiter's own command with these parameters, which may change from call to call.
#[derive(Clone, Debug)]
struct Step {
    /// Microseconds since the call before; below zero if the clock was set back.
    wait: i64,
    cost: u64,
    manner: Manner,
    /// Gives the cost back, and does not hold it.
    refunds: bool,
    limit: u64,
    /// In milliseconds, a multiple of 10.
    period: u64,
}

impl Step {
    /// The limiter's name and parameters. A log cannot have a limit above the bound on its entries.
    fn words(&self, form: &Form) -> String {
        let is_log = form.template().starts_with("SLIDINGLOG");
        form.words(if is_log { self.limit.min(FULL) } else { self.limit }, self.period, "holder")
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![
        2 => Just(0),
        3 => 0..2_000_000i64,
        2 => 0..30_000_000i64,
        1 => -2_000_000..0i64,
        1 => -900_000_000..0i64,
    ];
    let manner = prop_oneof![4 => Just(Manner::Strict), 2 => Just(Manner::Partial), 2 => Just(Manner::Force)];
    let period = prop_oneof![4 => Just(10_000), 1 => Just(20_000), 2 => Just(2000), 1 => Just(30)];
    let refunds = prop::bool::weighted(0.1);
    let step = (wait, 1..5u64, manner, refunds, 2..=9u64, period).prop_map(
        |(wait, cost, manner, refunds, limit, period)| Step { wait, cost, manner, refunds, limit, period },
    );
    prop::collection::vec(step, 1..40)
}

fn moved(now: Time, wait: i64) -> Time {
    let span = Span::from_micros(wait.unsigned_abs());
    if wait < 0 { now.minus(span) } else { now.plus(span) }
}

fn split(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

/// The limiter of a name and parameters.
fn parsed<'a>(words: &[&'a [u8]]) -> AnyLimiter<'a> {
    let row = find(words[0]).expect("a limiter");
    (row.parse)(&mut Arguments::new(&words[1..], BOUNDS), &mut Request::default()).expect("good parameters")
}

/// Charges and holds under an id, and returns what was charged.
fn charge<L: Limiter>(key: &mut LimitSet, limiter: &L, now: Time, step: &Step, id: &[u8]) -> Option<u64> {
    let length = Length::of(limiter.length());
    let place = if key.stored().is_empty() { Place::of(length) } else { key.find(limiter.name())? };
    if step.refunds {
        Ask::new(place, now, step.cost, Manner::Strict).refund(key, limiter).expect("no defect");
        return None;
    }
    let hold = Hold { id, ttl: Span::CENTURY, most: 1000 };
    let taken = Ask::new(place, now, step.cost, step.manner).take_and_hold(key, limiter, &hold);
    let taken = taken.expect("a small debt");
    taken.verdict.admits().then_some(taken.granted)
}

fn settle<L: Limiter>(key: &mut LimitSet, limiter: &L, now: Time, id: &[u8]) {
    Ask::settle_held(key, limiter, id, now, 0).expect("nothing is charged").expect("it is held");
}

fn gauge<L: Limiter>(key: &LimitSet, limiter: &L, now: Time) -> Gauge {
    let place = key.find(limiter.name()).expect("it was charged");
    Ask::new(place, now, 0, Manner::Strict).peek(key, limiter).gauge
}

#[test]
fn a_hold_whose_charge_a_shorter_window_dropped_gives_nothing_back() {
    let mut key = LimitSet::default();
    let calls = [
        (0, 10_000, Manner::Strict),
        (30_000, 30, Manner::Strict),
        (1, 10_000, Manner::Strict),
        (1, 10_000, Manner::Strict),
        // The log is full: the weight of its oldest entry moves to the newest, and the first call is in the window.
        (1, 10_000, Manner::Force),
    ];
    let mut now = T0;
    for ((wait, period, manner), id) in calls.into_iter().zip(0u8..) {
        now = moved(now, wait);
        let step = Step { wait, cost: 1, manner, refunds: false, limit: FULL, period };
        let line = format!("SLIDINGLOG {FULL} {period}ms");
        let charged = with_limiter!(&parsed(&split(&line)), log => charge(&mut key, log, now, &step, &[id]));
        assert_eq!(charged, Some(1));
    }
    with_limiter!(&parsed(&split("SLIDINGLOG 3 10s")), log => {
        for id in 0..4 {
            settle(&mut key, log, now, &[id]);
        }
        assert_eq!(gauge(&key, log, now).remaining, FULL - 1);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn who_settles_all_at_zero_leaves_a_full_limit(
        steps in steps(),
        last in steps(),
        later in prop_oneof![Just(0), 1..20_000_000u64],
        reversed in any::<bool>(),
    ) {
        let last = last[0].clone();
        for form in FORMS.iter().filter(|form| !form.template().contains("GAP")) {
            let line = last.words(form);
            let words = split(&line);
            let ending = parsed(&words);
            if !with_limiter!(&ending, limiter => limiter.capabilities().hold) {
                continue;
            }
            let (mut key, mut now) = (LimitSet::default(), T0);
            let mut ids: Vec<([u8; 1], u64)> = Vec::new();
            // A bucket's tokens do not grow with its capacity, and a fraction is lost if the period changes.
            let pays_off = form.template().contains("BUCKET") || form.template().contains("GCRA");
            for (step, id) in steps.iter().chain([&last]).zip(0u8..) {
                now = moved(now, step.wait);
                let step = if pays_off { &Step { limit: last.limit, period: last.period, ..step.clone() } } else { step };
                let line = step.words(form);
                let words = split(&line);
                let limiter = parsed(&words);
                let charged = with_limiter!(&limiter, limiter => charge(&mut key, limiter, now, step, &[id]));
                ids.extend(charged.map(|cost| ([id], cost)));
                key = copy(&key);
            }
            now = now.plus(Span::from_micros(later));
            let Some((newest, cost)) = ids.pop() else { continue };
            if reversed {
                ids.reverse();
            }
            with_limiter!(&ending, limiter => {
                for (id, _) in &ids {
                    settle(&mut key, limiter, now, id);
                }
                let left = gauge(&key, limiter, now);
                let last_was_newest = usize::from(newest[0]) == steps.len();
                // A refund gives back what is held, and so does the settlement.
                let refunded = steps.iter().any(|step| step.refunds);
                if !pays_off && !refunded && last_was_newest && later == 0 {
                    prop_assert_eq!(left.remaining, left.limit.saturating_sub(cost), "{}", form.template());
                }
                settle(&mut key, limiter, now, &newest);
                let full = gauge(&key, limiter, now);
                prop_assert_eq!(full.remaining, full.limit, "{}", form.template());
                prop_assert_eq!(full.reset, Span::ZERO, "{}", form.template());
            });
            prop_assert!(key.get::<Holds>(Length::NONE).is_none());
        }
    }

    #[test]
    fn each_limit_of_a_call_is_held_and_settled_as_on_a_key_of_its_own(
        calls in prop::collection::vec((several(), 0..4u8, 0..3_000_000u64), 1..60),
    ) {
        let mut keys = [LimitSet::default(), LimitSet::default()];
        let mut alone: BTreeMap<(usize, usize), [LimitSet; 1]> = BTreeMap::new();
        let mut now = T0;
        for ((named, cost, settles, ttl), id, wait) in calls {
            now = now.plus(Span::from_micros(wait));
            let id = [id];
            let hold = Hold { id: &id, ttl: Span::from_micros(ttl), most: 3 };
            let line = line_of(&named, cost);
            let words = split(&line);
            let purpose = if settles { Purpose::Settle } else { Purpose::Charge };
            let call = parse(&words, 2, purpose);
            let mut joint = Joint::new(&call.parts, 2, now, Manner::Strict).expect("two keys");
            let pairs: Vec<(usize, usize)> =
                named.iter().flat_map(|(limit, on)| on.map_or(vec![0, 1], |on| vec![on]).into_iter().map(|key| (*limit, key))).collect();
            let is_held = keys.iter().any(|key| held(key, &id, now).is_some());
            let seen: Vec<_> = if settles {
                let count = joint.settle(&mut keys, &id).expect("a small debt");
                let mut gave_back = [false; 2];
                let settled = pairs.iter().filter(|pair| {
                    let key = alone.entry(**pair).or_default();
                    let settled = with_limiter!(&only(pair.0), limiter => {
                        Ask::settle_held(&mut key[0], limiter, &id, now, cost).expect("a small debt")
                    });
                    gave_back[pair.1] |= settled.is_some_and(|(_, gave_back)| gave_back);
                    settled.is_some()
                });
                let mut held_in: Vec<usize> = settled.map(|(_, key)| *key).collect();
                // On a key with others, a limit that is fully reset may be gone.
                prop_assert!((0..2).all(|key| gave_back[key] || !joint.gave_back(key)));
                held_in.sort_unstable();
                held_in.dedup();
                prop_assert_eq!(count, held_in.len() as u64);
                // What is held for limits that the call does not name ends with it.
                for ((_, key), set) in &mut alone {
                    if held_in.contains(key) {
                        ratelimit_core::hold::end(&mut set[0], &id, now).expect("no defect");
                    }
                }
                joint.answers().collect()
            } else {
                let room = |key: &LimitSet, charges| has_room(key, &hold, now, charges);
                let charges = |key| pairs.iter().filter(|pair| pair.1 == key).count();
                let full = (0..2).any(|key| charges(key) > 0 && !room(&keys[key], charges(key)));
                let held_in_call = keys.iter().any(|key| joint.is_held(key, &hold));
                prop_assert_eq!(held_in_call, is_held);
                let has_room = keys.iter().enumerate().all(|(place, key)| joint.has_room(place, key, &hold));
                prop_assert_eq!(has_room, !full);
                if is_held {
                    joint.look();
                    keys.iter().enumerate().for_each(|(place, key)| joint.peek(place, key));
                } else if full {
                    continue;
                } else {
                    let all = pairs.iter().all(|pair| {
                        let key = alone.entry(*pair).or_default();
                        with_limiter!(&only(pair.0), limiter => {
                            let ask = Ask::new(Place::of(Length::of(limiter.length())), now, cost, Manner::Strict);
                            ask.peek(&key[0], limiter).verdict.admits()
                        })
                    });
                    prop_assert_eq!(joint.take(&mut keys), Ok(all));
                    if all {
                        joint.hold(&mut keys, &hold).expect("room");
                    }
                    for pair in pairs.iter().filter(|_| all) {
                        let key = alone.entry(*pair).or_default();
                        with_limiter!(&only(pair.0), limiter => {
                            let mut ask = Ask::new(Place::of(Length::of(limiter.length())), now, cost, Manner::Strict);
                            ask.take_and_hold(&mut key[0], limiter, &hold).expect("no debt");
                        });
                    }
                }
                joint.answers().collect()
            };
            for (pair, answer) in pairs.iter().zip(seen) {
                let key = alone.entry(*pair).or_default();
                let gauge = with_limiter!(&only(pair.0), limiter => {
                    Ask::new(Place::of(Length::of(limiter.length())), now, 0, Manner::Strict).peek(&key[0], limiter).gauge
                });
                prop_assert_eq!(answer.gauge, gauge, "{:?}", pair);
            }
            for key in &keys {
                copy(key);
            }
        }
    }
}

const LIMITS: [&str; 6] = [
    "TOKENBUCKET 9 9 10s",
    "GCRA 4 5 1s",
    "FIXEDWINDOW 7 5s",
    "SLIDINGWINDOW 8 5s PRECISION 500ms",
    "SLIDINGLOG 3 5s",
    "CALENDAR 40 HOUR",
];

/// The numbers of the named limits with their only keys, a cost, whether the call settles, and the time of a hold.
fn several() -> impl Strategy<Value = (Vec<(usize, Option<usize>)>, u64, bool, u64)> {
    let limits = prop::collection::btree_map(0..LIMITS.len(), prop::option::of(0..2usize), 1..4);
    (limits.prop_map(|limits| limits.into_iter().collect()), 1..4u64, any::<bool>(), 1..6_000_000u64)
}

fn line_of(named: &[(usize, Option<usize>)], cost: u64) -> String {
    let mut line = format!("COST {cost}");
    for (limit, on) in named {
        write!(line, " LIMIT {}", LIMITS[*limit]).expect("a string is always writable");
        if let Some(on) = on {
            write!(line, " ON {}", on + 1).expect("a string is always writable");
        }
    }
    line
}

fn parse<'a>(words: &[&'a [u8]], keys: u64, purpose: Purpose) -> MultiCall<'a> {
    multi(&mut Arguments::new(words, BOUNDS), keys, purpose).expect("a good call")
}

fn only(limit: usize) -> AnyLimiter<'static> {
    parsed(&split(LIMITS[limit]))
}

#[test]
fn an_excess_that_would_take_a_century_is_an_error_that_changes_nothing() {
    let limiter = parsed(&[b"GCRA", b"0", b"1", b"1d"]);
    let AnyLimiter::Gcra(gcra) = limiter else { panic!("GCRA") };
    let mut key = LimitSet::default();
    let step = Step { wait: 0, cost: 1, manner: Manner::Strict, refunds: false, limit: 0, period: 0 };
    charge(&mut key, &gcra, T0, &step, b"a");
    let before = encoded(&key);
    assert!(matches!(Ask::settle_held(&mut key, &gcra, b"a", T0, 40_000), Err(Error::TooLong)));
    assert_eq!(encoded(&key), before);
}

/// Makes a call of several limits on one key.
fn call(key: &mut LimitSet, line: &str, at: u64, hold: Option<&[u8]>) -> Vec<u64> {
    let words = split(line);
    let call = parse(&words, 1, Purpose::Charge);
    let now = T0.plus(Span::from_millis(at));
    let mut joint = Joint::new(&call.parts, 1, now, Manner::Strict).expect("one key");
    let keys = std::slice::from_mut(key);
    match hold {
        None => _ = joint.take(keys).expect("no debt"),
        Some(id) => {
            let hold = Hold { id, ttl: Span::from_millis(300_000), most: 9 };
            assert!(joint.take(keys).expect("no debt"));
            joint.hold(keys, &hold).expect("room");
        }
    }
    joint.answers().map(|answer| answer.gauge.remaining).collect()
}

/// Settles several limits of one key, and returns whether something was held, and what remains of each.
fn settle_all(key: &mut LimitSet, line: &str, at: u64, id: &[u8]) -> (bool, Vec<u64>) {
    let words = split(line);
    let call = parse(&words, 1, Purpose::Settle);
    let now = T0.plus(Span::from_millis(at));
    let mut joint = Joint::new(&call.parts, 1, now, Manner::Strict).expect("one key");
    let held = joint.settle(std::slice::from_mut(key), id).expect("no debt");
    (held == 1, joint.answers().map(|answer| answer.gauge.remaining).collect())
}

#[test]
fn what_is_held_for_one_limit_is_not_given_back_to_another_of_its_kind() {
    let mut key = LimitSet::default();
    call(&mut key, "LIMIT GCRA 99 100 1s COST 50", 0, Some(b"r"));
    // This drops the first limit, which is fully reset.
    assert_eq!(call(&mut key, "LIMIT GCRA 99 100 1m COST 90", 2000, None), [10]);
    assert_eq!(settle_all(&mut key, "LIMIT GCRA 99 100 1m COST 0", 2000, b"r"), (false, vec![10]));
    let limiter = parsed(&[b"GCRA", b"99", b"100", b"1m"]);
    let now = T0.plus(Span::from_millis(2000));
    let own = with_limiter!(&limiter, limiter => Ask::settle_held(&mut key, limiter, b"r", now, 0));
    assert!(matches!(own, Ok(None)));
    assert_eq!(settle_all(&mut key, "LIMIT GCRA 99 100 1s COST 0", 2000, b"r"), (true, vec![100]));
    assert_eq!(call(&mut key, "LIMIT GCRA 99 100 1m COST 0", 2000, None), [10]);
}

#[test]
fn a_charge_is_settled_by_the_limit_of_its_name_or_by_one_of_its_kind_but_not_twice() {
    let held = "LIMIT FIXEDWINDOW 100 1s COST 50";
    // Neither limit has the name, and both are of the kind. The first one settles.
    let mut key = LimitSet::default();
    call(&mut key, held, 0, Some(b"r"));
    let both = "COST 20 LIMIT FIXEDWINDOW 100 2s LIMIT FIXEDWINDOW 100 3s";
    assert_eq!(settle_all(&mut key, both, 1, b"r"), (true, vec![80, 100]));
    // The second one has the name.
    let mut key = LimitSet::default();
    call(&mut key, held, 0, Some(b"r"));
    let both = "COST 20 LIMIT FIXEDWINDOW 100 2s LIMIT FIXEDWINDOW 100 1s";
    assert_eq!(settle_all(&mut key, both, 1, b"r"), (true, vec![100, 80]));
    // Two of the kind are held, and the limit has neither name.
    let mut key = LimitSet::default();
    call(&mut key, "COST 50 LIMIT FIXEDWINDOW 100 1s LIMIT FIXEDWINDOW 100 9s", 0, Some(b"r"));
    assert_eq!(settle_all(&mut key, "COST 20 LIMIT FIXEDWINDOW 100 2s", 1, b"r"), (false, vec![100]));
}

#[test]
fn a_caller_whose_clock_lags_ends_no_hold_of_another_caller() {
    let limiter = parsed(&[b"TOKENBUCKET", b"100000", b"1", b"1s"]);
    let AnyLimiter::TokenBucket(bucket) = limiter else { panic!("TOKENBUCKET") };
    let mut key = LimitSet::default();
    let (now, early) = (T0, T0.minus(Span::from_millis(10_000)));
    let place = Place::of(Length::of(bucket.length()));
    let hold = |id| Hold { id, ttl: Span::from_millis(5000), most: 9 };
    Ask::new(place, now, 50_000, Manner::Strict).take_and_hold(&mut key, &bucket, &hold(b"a")).expect("room");
    Ask::new(place, early, 1, Manner::Strict).take(&mut key, &bucket).expect("room");
    Ask::new(place, early, 1, Manner::Strict).take_and_hold(&mut key, &bucket, &hold(b"b")).expect("room");
    let words = split("LIMIT TOKENBUCKET 100000 1 1s");
    let several = parse(&words, 1, Purpose::Charge);
    let mut joint = Joint::new(&several.parts, 1, early, Manner::Strict).expect("one key");
    assert_eq!(joint.take(std::slice::from_mut(&mut key)), Ok(true));
    let after = now.plus(Span::from_millis(4999));
    for id in [b"a", b"b"] {
        assert!(
            held(&key, id, after).is_some() && held(&key, id, now.plus(Span::from_millis(5000))).is_none()
        );
    }
}

#[test]
fn no_step_of_the_clock_makes_room_for_a_hold() {
    let AnyLimiter::Gcra(gcra) = parsed(&[b"GCRA", b"999", b"1000", b"1ms"]) else { panic!("GCRA") };
    let mut key = LimitSet::default();
    let place = Place::of(Length::of(gcra.length()));
    for id in 0..9u8 {
        let now = T0.minus(Span::from_millis(10 * u64::from(id)));
        let hold = Hold { id: &[id], ttl: Span::from_millis(1), most: 2 };
        let room = has_room(&key, &hold, now, 1);
        assert_eq!(room, id < 2, "{id}");
        if room {
            Ask::new(place, now, 1, Manner::Strict).take_and_hold(&mut key, &gcra, &hold).expect("room");
        }
    }
}
