//! The laws of sketches, on random histories.
//!
//! Sketches are small, so that items often share cells. Parameters change between calls, and the clock steps back.
//! [`Slow`] is the model: it decides each request in wide integers and never begins anew. Beside it runs one exact GCRA
//! for each item, in rational numbers.

use std::collections::{BTreeMap, HashMap};

use num_rational::BigRational;
use proptest::prelude::*;
use proptest::sample::Index;

use ratelimit_core::limiter::{Gcra, Rate, Sketch, Sketched};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{Blueprint, Cells, CellsChange as Change, Places, Shape};
use ratelimit_core::{
    Answer, Ask, Gauge, LimitSet, Limiter, Manner, Period, Place, Span, State, Time, Verdict,
};
use ratelimit_laws::{copy, encoded, ratio};

use super::T0;
use super::differential::each;

/// A request for an item.
#[derive(Clone, Debug)]
struct Request {
    item: u8,
    cost: u64,
    rate: Rate,
    step: Step,
}

/// How the callers' clock moves before a request, in microseconds.
#[derive(Clone, Copy, Debug)]
enum Step {
    On(u64),
    Back(u64),
    /// Back from the last charge by the reset of all items, and this much more.
    Reset(u64),
    To(Time),
}

/// A sketch as the server keeps it: each change is encoded, and applied from its bytes.
struct Key {
    blueprint: Blueprint,
    cells: Option<Cells>,
    /// The encoded changes since the sketch began.
    changes: Vec<Vec<u8>>,
}

/// The model. It knows which items share a cell from the blueprint. All numbers are microseconds.
struct Slow {
    /// By the places of the cells.
    cells: BTreeMap<usize, u128>,
    last: u128,
    latest: u128,
    shift: u128,
    /// The true arrival time of each item.
    exact: HashMap<u8, BigRational>,
}

/// The clock as the model reads it.
#[derive(Clone, Copy)]
struct Clock {
    now: u128,
    lag: u128,
    shift: u128,
}

fn sketch(rate: &Rate) -> Sketch {
    Sketch::new(rate.limit, rate.count, rate.period).expect("a rate")
}

fn span(micros: u128) -> Span {
    Span::from_wide(micros)
}

impl Key {
    fn new(blueprint: Blueprint) -> Key {
        Key { blueprint, cells: None, changes: Vec::new() }
    }

    fn decide(&self, request: &Request, at: Time) -> Sketched {
        let begin = || {
            assert!(self.cells.is_none(), "a sketch that begins anew keeps its blueprint");
            self.blueprint
        };
        sketch(&request.rate).decide(self.cells.as_ref(), begin, &[request.item], request.cost, at)
    }

    fn peek(&self, request: &Request, cost: u64, at: Time) -> Answer {
        sketch(&request.rate).peek(self.cells.as_ref(), &[request.item], cost, at)
    }

    /// Returns whether the sketch began with this change.
    fn apply(&mut self, change: &Change<'_>) -> bool {
        let bytes = encoded_change(change);
        let begins = matches!(change, Change::Charged { begun: Some(_), .. });
        if begins {
            self.changes.clear();
        }
        apply(self.cells.get_or_insert_with(Cells::blank), &bytes);
        self.changes.push(bytes);
        begins
    }

    fn take(&mut self, request: &Request, at: Time) -> (Sketched, bool) {
        let sketched = self.decide(request, at);
        let begins = sketched.change.is_some_and(|change| self.apply(&change));
        (sketched, begins)
    }

    /// The callers' time after a step from `at`.
    fn step(&self, at: Time, step: Step) -> Time {
        let then = match (step, &self.cells) {
            (Step::On(micros), _) => at.plus(Span::from_micros(micros)),
            (Step::Back(micros), _) => at.minus(Span::from_micros(micros)),
            (Step::Reset(more), Some(cells)) => {
                let reset = cells.latest().since(cells.last_shifted());
                cells.last().minus(reset).minus(Span::from_micros(more))
            }
            (Step::Reset(_), None) => at,
            (Step::To(then), _) => then,
        };
        then.clamp(Time::EARLIEST, Time::LATEST)
    }
}

fn encoded_change(change: &Change<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Cells::encode_change(change, &mut bytes);
    bytes
}

/// Applies an encoded change. Its bytes are those of the change that they decode to.
fn apply(cells: &mut Cells, bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let change = Cells::decode_change(&mut reader).expect("a change that was just encoded");
    assert!(reader.is_empty());
    assert_eq!(encoded_change(&change), bytes);
    cells.apply(change);
}

impl Slow {
    fn new() -> Slow {
        Slow { cells: BTreeMap::new(), last: 0, latest: 0, shift: 0, exact: HashMap::new() }
    }

    fn read(&self, at: Time) -> Clock {
        let now = u128::from(at.as_micros()) + self.shift;
        match self.last.saturating_sub(now) {
            0 => Clock { now, lag: 0, shift: self.shift },
            back if back > self.latest - self.last.min(self.latest) => {
                Clock { now: self.last, lag: 0, shift: self.shift + back }
            }
            back => Clock { now: self.last, lag: back, shift: self.shift },
        }
    }

    fn due(&self, places: &Places) -> u128 {
        places.iter().map(|place| self.cells.get(&place).copied().unwrap_or(0)).min().expect("a place")
    }

    /// The arrival time after the request, or how long it must wait.
    fn judge(rate: &Rate, due: u128, clock: Clock, cost: u64) -> Result<u128, Verdict> {
        let [limit, count, period] = parts(rate);
        let after = due.max(clock.now) * count + u128::from(cost) * period;
        let most = clock.now * count + limit * period;
        match after.checked_sub(most) {
            None | Some(0) => Ok(after.div_ceil(count)),
            Some(_) if u128::from(cost) > limit => Err(Verdict::NEVER),
            Some(early) => Err(Verdict::refuse(span(early.div_ceil(count) + clock.lag))),
        }
    }

    fn gauge(rate: &Rate, due: u128, clock: Clock) -> Gauge {
        let [limit, count, period] = parts(rate);
        let ahead = due.saturating_sub(clock.now);
        let remaining = (limit * period).saturating_sub(ahead * count) / period;
        let reset = if ahead == 0 { 0 } else { ahead + clock.lag };
        let remaining = u64::try_from(remaining).expect("at most the limit");
        Gauge { limit: rate.limit.get(), remaining, reset: span(reset) }
    }

    fn peek(&self, places: &Places, rate: &Rate, cost: u64, at: Time) -> Answer {
        let (clock, due) = (self.read(at), self.due(places));
        let verdict = Slow::judge(rate, due, clock, cost).err().unwrap_or(Verdict::ADMIT);
        Answer { verdict, gauge: Slow::gauge(rate, due, clock) }
    }

    fn take(&mut self, places: &Places, request: &Request, at: Time) -> Answer {
        let Request { item, cost, rate, .. } = request;
        let (clock, due) = (self.read(at), self.due(places));
        // A missing sketch has no clock.
        if self.last > 0 {
            self.shift = clock.shift;
        }
        let (verdict, due) = match Slow::judge(rate, due, clock, *cost) {
            Err(verdict) => (verdict, due),
            Ok(after) => {
                assert!(conforms(self.exact.entry(*item).or_default(), rate, clock.now, *cost), "too much");
                for place in places.iter() {
                    let cell = self.cells.entry(place).or_default();
                    *cell = after.max(*cell);
                }
                self.last = clock.now;
                self.latest = self.latest.max(after);
                (Verdict::ADMIT, after)
            }
        };
        Answer { verdict, gauge: Slow::gauge(rate, due, clock) }
    }
}

fn parts(rate: &Rate) -> [u128; 3] {
    [rate.limit, rate.count, rate.period.micros()].map(|part| part.get().into())
}

/// An item's exact GCRA: charges the request, and returns whether it is admitted.
fn conforms(due: &mut BigRational, rate: &Rate, now: u128, cost: u64) -> bool {
    let now = BigRational::from_integer(now.into());
    let interval = ratio(rate.period.micros().get()) / ratio(rate.count.get());
    *due = due.clone().max(now.clone()) + ratio(cost) * &interval;
    *due <= now + ratio(rate.limit.get()) * interval
}

/// Makes the requests, and checks all laws at each. Returns how many were admitted, and how often the sketch began.
fn follow(blueprint: Blueprint, requests: &[Request]) -> (usize, usize) {
    let (mut key, mut slow) = (Key::new(blueprint), Slow::new());
    let (mut at, mut admitted, mut begun) = (T0, 0, 0);
    for (i, request) in requests.iter().enumerate() {
        at = key.step(at, request.step);
        let places = blueprint.places(&[request.item]);
        let rate = &request.rate;

        let looked = key.peek(request, 0, at);
        assert!(looked.verdict.admits());
        assert_eq!(looked.gauge, slow.peek(&places, rate, 1, at).gauge, "request {i}: {request:?} at {at:?}");
        let remaining = looked.gauge.remaining;
        assert!(remaining == 0 || key.peek(request, remaining, at).verdict.admits());
        assert!(!key.peek(request, remaining + 1, at).verdict.admits());
        let peeked = key.peek(request, request.cost, at);
        assert_eq!(peeked, slow.peek(&places, rate, request.cost, at));

        let (clock, shift) = (slow.read(at), slow.shift);
        let (sketched, begins) = key.take(request, at);
        let answer = slow.take(&places, request, at);
        assert_eq!(sketched.answer, answer, "request {i}: {request:?} at {at:?}");
        assert_eq!(answer.verdict, peeked.verdict, "a peek answers as the call would");
        assert_eq!(u128::from(sketched.now.as_micros()), clock.now - clock.shift);
        assert_eq!(sketched.reset, span(slow.latest.saturating_sub(clock.now)));
        let changes = answer.verdict.admits() || slow.shift != shift;
        assert_eq!(sketched.change.is_some(), changes, "a refusal changes nothing but the shift");
        admitted += usize::from(answer.verdict.admits());
        begun += usize::from(begins);

        let Some(cells) = &key.cells else { continue };
        if i % 8 == 0 || i + 1 == requests.len() {
            holds(cells, &slow, &blueprint, at);
        }
        if let Verdict::Refuse { retry } = answer.verdict {
            retry_is_kept(&key, request, at, retry);
            let is_reset = clock.now >= slow.latest;
            assert!(!is_reset || request.cost > rate.limit.get(), "a fully reset sketch refuses nobody");
        }
    }
    (admitted, begun)
}

/// What holds for every state.
fn holds(cells: &Cells, slow: &Slow, blueprint: &Blueprint, at: Time) {
    copy(cells);
    // A sketch that began anew has another clock than the model, which goes on.
    let ahead = slow.last - u128::from(cells.last_shifted().as_micros());
    assert_eq!(u128::from(cells.latest().as_micros()) + ahead, slow.latest.max(slow.last));
    assert_eq!(u128::from(cells.shift().as_micros()) + ahead, slow.shift);
    for (item, exact) in &slow.exact {
        let due = u128::from(cells.arrival(&blueprint.places(&[*item])).as_micros()) + ahead;
        let is_reset = *exact <= BigRational::from_integer(slow.last.into());
        assert!(is_reset || BigRational::from_integer(due.into()) >= *exact, "item {item}: {due}");
    }
    let shape = cells.blueprint().shape;
    for (at, now) in [(at, slow.read(at).now), (cells.last(), slow.last)] {
        let later = slow.cells.values().filter(|cell| **cell > now).count();
        let share =
            f64::from(u32::try_from(later).expect("few cells")) / f64::from(shape.width() * shape.depth());
        assert!((cells.ahead(at) - share).abs() < 1e-9, "{share} of the cells are ahead");
    }
}

/// The same request is admitted after the retry, and not a microsecond earlier.
fn retry_is_kept(key: &Key, request: &Request, at: Time, retry: Option<Span>) {
    let Some(retry) = retry else {
        assert!(request.cost > request.rate.limit.get());
        return;
    };
    assert!(retry > Span::ZERO);
    let verdict = |then| key.decide(request, then).answer.verdict;
    assert!(verdict(at.plus(retry)).admits());
    let early = at.plus(retry.minus(Span::from_micros(1)));
    assert_eq!(verdict(early), Verdict::refuse(Span::from_micros(1)));
}

fn blueprints() -> impl Strategy<Value = Blueprint> {
    (0..=6u32, 1..=8u32, any::<[u64; 2]>()).prop_map(|(width, depth, hash_key)| {
        let shape = Shape::new(1 << width, depth).expect("a shape");
        Blueprint { shape, hash_key }
    })
}

/// Rates of about the same length. The count divides the period in half of them.
fn rates() -> impl Strategy<Value = Rate> {
    let counts = prop_oneof![Just(1), Just(2), Just(5), Just(3), Just(7), 1..2000u64, Just(1 << 40)];
    let millis = prop_oneof![Just(1), Just(1000), 1..5000u64, Just(3_153_600_000_000)];
    (1..7u64, counts, millis).prop_map(|(limit, count, millis)| Rate {
        limit: limit.min(count).try_into().expect("above zero"),
        count: count.try_into().expect("above zero"),
        period: Period::from_millis(millis.try_into().expect("above zero")),
    })
}

/// Rates whose count divides the period in microseconds.
fn whole_rates() -> impl Strategy<Value = Rate> {
    let counts = prop::sample::select(vec![1, 2, 4, 5, 8, 25, 125, 1000]);
    (1..7u64, counts, 1..5000u64).prop_map(|(limit, count, millis)| Rate {
        limit: limit.try_into().expect("above zero"),
        count: count.try_into().expect("above zero"),
        period: Period::from_millis(millis.try_into().expect("above zero")),
    })
}

fn small_steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::On(0)),
        4 => (0..100u64).prop_map(Step::On),
        6 => (0..1_000_000u64).prop_map(Step::On),
        2 => (0..10_000_000u64).prop_map(Step::On),
        2 => (0..1_000_000u64).prop_map(Step::Back),
        1 => (0..100_000_000_000u64).prop_map(Step::Back),
        1 => (0..3u64).prop_map(Step::Reset),
    ]
}

/// Mostly from end to end of what `AT` allows.
fn far_steps() -> impl Strategy<Value = Step> {
    let ends = [Time::EARLIEST, T0, Time::LATEST].map(Step::To).to_vec();
    let years = 0..Span::CENTURY.as_micros();
    prop_oneof![
        4 => prop::sample::select(ends),
        2 => years.clone().prop_map(Step::On),
        1 => years.prop_map(Step::Back),
        2 => (0..3u64).prop_map(Step::Reset),
        4 => small_steps(),
    ]
}

fn histories(
    rates: impl Strategy<Value = Rate>,
    steps: impl Strategy<Value = Step>,
    items: u8,
) -> impl Strategy<Value = Vec<Request>> {
    // A history has few rates, of which each request has one.
    let requests = prop::collection::vec((0..items, any::<Index>(), any::<Index>(), steps), 1..80);
    (prop::collection::vec(rates, 1..4), requests).prop_map(|(rates, requests)| {
        let request = |(item, cost, rate, step): (u8, Index, Index, Step)| {
            let rate = rates[rate.index(rates.len())];
            // Most requests are cheap; one more than the limit is never admitted.
            let most = usize::try_from(rate.limit.get() + 1).expect("a small limit");
            let cost = cost.index(most).min(cost.index(most * 3) + 1).max(1) as u64;
            Request { item, cost, rate, step }
        };
        requests.into_iter().map(request).collect()
    })
}

/// A sketch after some requests, and its changes.
fn played(blueprint: Blueprint, requests: &[Request]) -> Key {
    let (mut key, mut at) = (Key::new(blueprint), T0);
    for request in requests {
        at = key.step(at, request.step);
        key.take(request, at);
    }
    key
}

#[test]
fn a_hundred_thousand_calls_of_the_sketch() {
    let (mut calls, mut admitted) = (0, 0);
    each((blueprints(), histories(rates(), small_steps(), 20)), |(blueprint, requests)| {
        let (of_these, begun) = follow(blueprint, &requests);
        assert!(begun <= 1, "a sketch begins anew only if its clock is about to overflow");
        admitted += of_these;
        calls += requests.len();
        requests.len()
    });
    assert!((calls / 10..calls * 9 / 10).contains(&admitted), "{admitted} of {calls}");
}

#[test]
fn callers_in_the_years_2001_and_9999_keep_a_sketch_going() {
    let rate = Rate {
        limit: 2.try_into().expect("above zero"),
        count: 1.try_into().expect("above zero"),
        period: Period::from_millis(1000.try_into().expect("above zero")),
    };
    let ends = [Time::LATEST, Time::EARLIEST].map(Step::To);
    let requests: Vec<Request> =
        (0..10_000).map(|i| Request { item: 0, cost: 1, rate, step: ends[i / 3 % 2] }).collect();
    let blueprint = Blueprint { shape: Shape::new(1, 1).expect("a shape"), hash_key: [0; 2] };
    let (admitted, begun) = follow(blueprint, &requests);
    // Each visit to 9999 admits two of three requests. In 2001 the clock stands still, so none is admitted.
    assert_eq!(admitted, 3334);
    // Each visit to 9999 finds the sketch fully reset, 8,000 years on.
    assert_eq!(begun, 1667);
}

/// What no call makes: instants after which a clock could overflow.
#[test]
fn changes_beyond_the_latest_instants_are_malformed() {
    let reads = |last, shift, arrival| {
        let change = Change::Charged { begun: None, last, shift, places: Places::NONE, arrival };
        Cells::decode_change(&mut Reader::new(&encoded_change(&change))).is_some()
    };
    let (latest, more) = (Cells::LATEST, Span::from_micros(1));
    let (shift, arrival) = (latest.since(Time::EPOCH), latest.plus(Span::CENTURY).plus(Span::CENTURY));
    assert!(reads(latest, shift, arrival));
    assert!(!reads(latest.plus(more), shift, arrival));
    assert!(!reads(latest, shift.plus(more), arrival));
    assert!(!reads(latest, shift, arrival.plus(more)));
    for (word, fits) in [(arrival, true), (arrival.plus(more), false)] {
        let cells = word.as_micros().to_le_bytes();
        let piece = encoded_change(&Change::Piece { first: 0, cells: &cells });
        assert_eq!(Cells::decode_change(&mut Reader::new(&piece)).is_some(), fits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sketch_decides_as_its_model(
        blueprint in blueprints(),
        requests in histories(rates(), small_steps(), 20),
    ) {
        follow(blueprint, &requests);
    }

    #[test]
    fn a_sketch_survives_far_jumps_of_the_clock(
        blueprint in blueprints(),
        requests in histories(rates(), far_steps(), 5),
    ) {
        follow(blueprint, &requests);
    }

    #[test]
    fn an_item_alone_gets_the_replies_of_gcra(
        blueprint in blueprints(),
        requests in histories(whole_rates(), prop_oneof![4 => small_steps(), 1 => far_steps()], 1),
    ) {
        let (mut sketch, mut key, mut at) = (Key::new(blueprint), LimitSet::default(), T0);
        let place = Place::of(gcra(&requests[0].rate).name().length);
        for (i, request) in requests.iter().enumerate() {
            at = sketch.step(at, request.step);
            let ask = |cost| Ask::new(place, at, cost, Manner::Strict);
            let gcra = gcra(&request.rate);
            for cost in [0, 1, request.cost] {
                prop_assert_eq!(sketch.peek(request, cost, at), ask(cost).peek(&key, &gcra), "peek {}", i);
            }
            let (sketched, _) = sketch.take(request, at);
            let mut ask = ask(request.cost);
            let taken = ask.take(&mut key, &gcra).expect("no error").answer();
            prop_assert_eq!(sketched.answer, taken, "request {}: {:?} at {:?}", i, request, at);
            prop_assert_eq!(sketched.now, ask.now());
        }
    }

    /// The rate may have no whole number of microseconds for a request. The GCRA reads the clock of the sketch.
    #[test]
    fn no_item_gets_more_generous_replies_than_those_of_gcra(
        blueprint in blueprints(),
        requests in histories(rates(), small_steps(), 6),
    ) {
        let (mut sketch, mut at) = (Key::new(blueprint), T0);
        let mut keys: HashMap<u8, LimitSet> = HashMap::new();
        for request in &requests {
            at = sketch.step(at, request.step);
            let (Sketched { answer, now, .. }, _) = sketch.take(request, at);
            let shift = sketch.cells.as_ref().map_or(Span::ZERO, Cells::shift);
            let gcra = gcra(&request.rate);
            let place = Place::of(gcra.name().length);
            let key = keys.entry(request.item).or_default();
            // A change of parameters keeps the arrival time, under whatever name.
            let stored = key.limits().next().map_or(place, |limit| Place::of(limit.name.length));
            let mut ask = Ask::new(stored, now.plus(shift), request.cost, Manner::Strict);
            let peeked = ask.peek(key, &gcra);
            let lag = now.since(at);
            if let (Verdict::Refuse { retry: Some(exact) }, Verdict::Refuse { retry: Some(retry) }) =
                (peeked.verdict, answer.verdict)
            {
                prop_assert!(retry >= exact.plus(lag));
            }
            prop_assert!(peeked.verdict.admits() || !answer.verdict.admits());
            if answer.verdict.admits() {
                let taken = ask.take(key, &gcra).expect("no error").answer();
                prop_assert!(taken.verdict.admits());
                prop_assert!(answer.gauge.remaining <= taken.gauge.remaining);
                prop_assert!(answer.gauge.reset >= taken.gauge.reset);
            }
        }
    }

    #[test]
    fn changes_may_come_in_any_order_and_more_than_once(
        blueprint in blueprints(),
        requests in histories(rates(), prop_oneof![9 => small_steps(), 1 => far_steps()], 20),
        order in prop::collection::vec(any::<Index>(), 200),
    ) {
        let Key { cells, changes, .. } = played(blueprint, &requests);
        let Some((first, rest)) = changes.split_first() else { return Ok(()) };
        let mut replica = Cells::blank();
        apply(&mut replica, first);
        let again = order.iter().filter(|_| !rest.is_empty()).map(|index| &rest[index.index(rest.len())]);
        for change in again.chain(rest.iter().rev()) {
            apply(&mut replica, change);
        }
        prop_assert_eq!(Some(replica), cells);
    }

    /// A rewritten AOF. The sketch has three pieces.
    #[test]
    fn pieces_may_come_in_any_order_after_the_first(
        hash_key in any::<[u64; 2]>(),
        requests in histories(rates(), small_steps(), 255),
        before in blueprints(),
        turn in any::<Index>(),
    ) {
        let blueprint = Blueprint { shape: Shape::new(1 << 14, 1).expect("a shape"), hash_key };
        let Some(cells) = played(blueprint, &requests).cells else { return Ok(()) };
        let mut pieces: Vec<Vec<u8>> = cells.pieces().collect();
        prop_assert!((1..=4).contains(&pieces.len()));
        prop_assert!(pieces.iter().all(|piece| piece.len() <= 64 << 10));
        // A piece whose cells no charge has reached is left out.
        prop_assert_eq!(Cells::new(blueprint).pieces().count(), 1);
        // The first piece replaces what the key held before.
        let mut copy = Cells::new(before);
        apply(&mut copy, &pieces.remove(0));
        let turn = if pieces.is_empty() { 0 } else { turn.index(pieces.len()) };
        pieces.rotate_left(turn);
        for piece in pieces.iter().rev().chain(&pieces) {
            apply(&mut copy, piece);
        }
        prop_assert_eq!(encoded(&copy), encoded(&cells));
    }

    /// The requests between two pieces are kept: they come from a client after a restart.
    #[test]
    fn a_piece_lowers_no_cell(
        blueprint in blueprints(),
        requests in histories(rates(), small_steps(), 20),
        later in histories(rates(), small_steps(), 20),
    ) {
        let Some(cells) = played(blueprint, &requests).cells else { return Ok(()) };
        let mut key = Key::new(blueprint);
        key.cells = Some(cells.clone());
        for request in &later {
            key.take(request, T0.plus(Span::from_millis(100_000)));
        }
        let after = key.cells.expect("cells");
        let mut again = after.clone();
        cells.pieces().skip(1).for_each(|piece| apply(&mut again, &piece));
        prop_assert_eq!(again, after);
    }

    /// Bytes that are random, or good ones of which some are changed.
    #[test]
    fn no_bytes_make_a_sketch_panic(
        random in prop::collection::vec(any::<u8>(), 0..200),
        first in 0..4u8,
        blueprint in blueprints(),
        requests in histories(rates(), far_steps(), 20),
        which in any::<Index>(),
        flips in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
        tail in prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(any::<u8>(), 1..9)],
    ) {
        let key = played(blueprint, &requests);
        let mut good: Vec<Vec<u8>> = key.changes.clone();
        good.extend(key.cells.iter().flat_map(Cells::pieces));
        good.extend(key.cells.iter().map(encoded));
        good.push([&[first], &random[..]].concat());
        let mut bytes = good.swap_remove(which.index(good.len()));
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.extend(tail);
        let mut states = vec![Cells::blank(), Cells::new(blueprint)];
        for cells in &states {
            let exact = encoded(cells);
            for wrong in [&[&exact[..], &[0]].concat(), &exact[1..], &exact[..exact.len() - 1]] {
                prop_assert!(Cells::decode(&mut Reader::new(wrong)).is_none());
            }
        }
        states.extend(key.cells);
        if let Some(decoded) = Cells::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(encoded(&decoded), &*bytes);
            states.push(decoded);
        }
        if let Some(change) = Cells::decode_change(&mut Reader::new(&bytes)) {
            // No test needs 256 MiB of zeros.
            let huge = matches!(change, Change::Charged { begun: Some(Blueprint { shape, .. }), .. } if shape.bytes() > 1 << 16);
            states.iter_mut().filter(|_| !huge).for_each(|cells| cells.apply(change));
        }
        for cells in states {
            ask_after(cells, &requests)?;
        }
    }
}

fn gcra(rate: &Rate) -> Gcra {
    Gcra::new(rate.limit, rate.count, rate.period).expect("a rate")
}

/// Makes requests to a state from bytes. Each state on the way is read back.
fn ask_after(cells: Cells, requests: &[Request]) -> Result<(), TestCaseError> {
    let mut key = Key::new(*cells.blueprint());
    key.cells = Some(cells);
    let mut at = T0;
    for request in requests.iter().take(9) {
        at = key.step(at, request.step);
        let peeked = key.peek(request, request.cost, at);
        prop_assert_eq!(key.take(request, at).0.answer.verdict, peeked.verdict);
        let cells = key.cells.as_ref().expect("cells");
        copy(cells);
        prop_assert!((0.0..=1.0).contains(&cells.ahead(at)));
    }
    Ok(())
}
