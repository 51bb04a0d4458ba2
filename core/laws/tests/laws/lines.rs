//! Laws of lines, on random histories of callers that wait for leases and buckets on several keys:
//!
//! - No caller is admitted while an earlier one of the same or a better rank stands in a line of the call.
//! - When no caller is due, the first of each line is refused by the limit itself, and is tried again when it has room.
//! - Everyone is admitted, or times out, once others give back what they took.
//! - A caller is tried only if a line was marked, a wake came, or the first of a line left it.
//! - All order and all counts are those of plain vectors.
//! - Callers time out once, in the order of their deadlines.
//! - With no caller ahead, a call with several limits is decided as without lines.
//! - A call that waits, or that only lines refuse, charges nothing and strikes no penalty.
//!
//! `lines/world.rs` has the limits and the vectors. `lines/joint.rs` has the last two laws.

mod joint;
mod world;

use std::collections::BTreeMap;

use proptest::prelude::*;
use ratelimit_core::line::{Claim, Comer};
use ratelimit_core::{Span, Time};

use super::T0;
use world::*;

/// Wishes for several limits, each within its capacity.
fn wishes(limits: &[Limit]) -> impl Strategy<Value = Vec<Wish>> + use<> {
    let capacities: Vec<u64> = limits.iter().map(Limit::capacity).collect();
    let cost = prop_oneof![3 => Just(0u64), 1 => any::<u64>()];
    let number = prop_oneof![3 => Just(1), 3 => Just(2), 1 => Just(3), 1 => Just(4)];
    let limits = number.prop_flat_map(move |number| {
        prop::collection::btree_map(0..LIMITS, (cost.clone(), prop::bool::weighted(0.2)), number)
    });
    let wishes = limits.prop_map(move |wishes| {
        let wish = |(limit, (cost, critical))| Wish { limit, cost: 1 + cost % capacities[limit], critical };
        wishes.into_iter().map(wish).collect::<Vec<_>>()
    });
    wishes.prop_shuffle()
}

fn events(limits: &[Limit]) -> impl Strategy<Value = Vec<Event>> + use<> {
    let timeout = prop::option::of(prop_oneof![Just(0), 0..200u64, 0..3000u64]);
    let blocks = prop::bool::weighted(0.9);
    let arrive = (wishes(limits), blocks, timeout).prop_map(|(wishes, blocks, timeout)| Event::Arrive {
        wishes,
        blocks,
        timeout,
    });
    let lease = (0..KEYS, 0..9usize).prop_map(|(key, lease)| (2 * usize::from(key), lease));
    let charge = (0..LIMITS, 1..4u64);
    let event = prop_oneof![
        12 => arrive,
        10 => lease.clone().prop_map(|(limit, lease)| Event::Release { limit, lease }),
        1 => (lease, 1..500u64).prop_map(|((limit, lease), micros)| Event::Renew { limit, lease, micros }),
        1 => charge.clone().prop_map(|(limit, cost)| Event::Force { limit, cost }),
        2 => charge.prop_map(|(limit, cost)| Event::Refund { limit, cost }),
        6 => prop_oneof![0..50u64, 0..1000u64].prop_map(Event::Pass),
        2 => (0..9usize).prop_map(Event::Leave),
        1 => (0..KEYS).prop_map(Event::Mark),
        1 => Just(Event::MarkAll),
        1 => (1..3usize).prop_map(Event::Nudge),
        8 => prop_oneof![1 => 1..4usize, 3 => Just(usize::MAX)].prop_map(Event::Serve),
    ];
    prop::collection::vec(event, 1..70)
}

fn histories() -> impl Strategy<Value = (Vec<Limit>, Vec<Event>)> {
    let ttl = prop::option::weighted(0.7, prop_oneof![1..100u64, 1..2000u64]);
    let leases = (1..4u64, ttl).prop_map(|(capacity, ttl)| Limit::leases(capacity, ttl));
    let bucket = (1..4u64, prop_oneof![1..100u64, 1..1000u64])
        .prop_map(|(capacity, interval)| Limit::bucket(capacity, interval));
    let of_key = (leases, bucket).prop_map(|(leases, bucket)| [leases, bucket]);
    prop::collection::vec(of_key, usize::from(KEYS)).prop_flat_map(|limits| {
        let limits = limits.concat();
        let events = events(&limits);
        (Just(limits), events)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn callers_are_served_in_order_and_none_is_forgotten((limits, events) in histories()) {
        let mut world = World::new(limits);
        for event in &events {
            world.happen(event);
        }
        world.finish();
        for key in 0..KEYS {
            prop_assert_eq!(world.lines.at_key(&key), 0);
        }
    }

    /// If callers are tried after each event, none is behind another that could be admitted.
    #[test]
    fn callers_that_are_served_at_once_are_never_held_up((limits, events) in histories()) {
        let mut world = World::new(limits);
        for event in &events {
            world.happen(event);
            world.happen(&Event::Serve(usize::MAX));
        }
        world.finish();
    }
}

#[test]
fn many_callers_wait_are_admitted_and_time_out_in_the_histories() {
    let (mut admitted, mut timed_out, mut tries, mut calls) = (0, 0, 0, 0);
    super::differential::each(histories(), |(limits, events)| {
        let mut world = World::new(limits);
        for event in &events {
            world.happen(event);
        }
        admitted += world.admitted.len();
        timed_out += world.timed_out.len();
        tries += world.tries;
        calls += events.len();
        10 * events.len()
    });
    assert!(admitted > calls / 60 && timed_out > calls / 100, "{admitted} and {timed_out} of {calls}");
    assert!(tries > 2 * admitted, "{tries} for {admitted}");
}

/// Leases of this capacity on each key, which end only when they are released. All are taken.
fn taken(capacity: u64) -> World {
    let of_key = || [Limit::leases(capacity, None), Limit::bucket(1, 1)];
    let mut world = World::new((0..KEYS).flat_map(|_| of_key()).collect());
    for key in 0..KEYS {
        for _ in 0..capacity {
            assert_eq!(world.arrive(&[lease_of(key)], false, None), None);
        }
    }
    world
}

/// A lease on a key.
fn lease_of(key: u8) -> Wish {
    Wish { limit: 2 * usize::from(key), cost: 1, critical: false }
}

fn wait(world: &mut World, keys: &[u8]) -> u64 {
    let wishes: Vec<Wish> = keys.iter().copied().map(lease_of).collect();
    world.arrive(&wishes, true, None).expect("it waits")
}

fn release(world: &mut World, key: u8) {
    world.release(2 * usize::from(key), 0);
    world.serve(usize::MAX);
}

#[test]
fn who_waits_for_one_limit_keeps_nobody_from_another() {
    let mut world = taken(1);
    let [third, fourth, fifth] = [&[0][..], &[1], &[0, 1]].map(|keys| wait(&mut world, keys));
    release(&mut world, 0);
    assert_eq!(world.admitted, [third]);
    // The fifth has left the line of the first key. So a sixth does not wait there.
    release(&mut world, 0);
    assert_eq!(world.admitted, [third]);
    assert_eq!(world.arrive(&[lease_of(0)], true, None), None);
    let seventh = wait(&mut world, &[0]);
    release(&mut world, 1);
    assert_eq!(world.admitted, [third, fourth]);
    // Now the fifth is the first of the line of the second key. It has moved back to the first key's line, before the
    // seventh.
    release(&mut world, 1);
    assert_eq!(world.admitted, [third, fourth]);
    release(&mut world, 0);
    assert_eq!(world.admitted, [third, fourth, fifth]);
    release(&mut world, 0);
    assert_eq!(world.admitted, [third, fourth, fifth, seventh]);
}

#[test]
fn callers_that_want_the_same_two_keys_in_any_order_do_not_block_each_other() {
    let mut world = taken(1);
    let callers: Vec<u64> =
        [[0, 1], [1, 0], [0, 1], [1, 0]].iter().map(|keys| wait(&mut world, keys)).collect();
    // Each release frees one of the keys. The other one is freed next.
    for turn in 0..callers.len() {
        release(&mut world, 0);
        assert_eq!(world.admitted.len(), turn);
        release(&mut world, 1);
        assert_eq!(world.admitted, callers[..=turn]);
    }
    world.finish();
}

#[test]
fn a_ring_of_callers_that_want_two_neighbours_each_comes_to_an_end() {
    let mut world = taken(1);
    for _ in 0..5 {
        for key in 0..KEYS {
            wait(&mut world, &[key, (key + 1) % KEYS]);
        }
    }
    world.finish();
    let order: Vec<u64> = (1..=15).collect();
    let mut admitted = world.admitted.clone();
    admitted.sort_unstable();
    assert_eq!(admitted, order);
}

#[test]
fn a_release_tries_two_of_ten_thousand_callers() {
    use ratelimit_core::{Lines, Stand};
    let (key, name) = place(0);
    let stand = || {
        vec![Stand {
            key,
            name,
            claim: Claim::plain(1, false).into_owned(),
            retry: Some(Span::from_millis(60_000)),
        }]
    };
    let mut lines = Lines::new();
    for _ in 0..10_000 {
        lines.enter(T0, T0.plus(Span::CENTURY), stand());
    }
    for admitted in 1..=10_000 {
        lines.mark(&key);
        assert_eq!(lines.due(T0), Some(admitted));
        assert!(lines.leave(admitted));
        if let Some(next) = lines.due(T0) {
            assert_eq!(next, admitted + 1);
            assert_eq!(lines.ahead(&key, name, &Claim::plain(1, false), Comer::Waits(next), T0), None);
            lines.stay(next, T0, stand());
        }
        assert_eq!(lines.due(T0), None);
    }
    assert!(lines.is_empty());
    assert_eq!(lines.next_due(), None);
}

#[test]
fn callers_of_ten_thousand_keys_wake_one_by_one() {
    use ratelimit_core::{Lines, Stand};
    let name = place(0).1;
    let at = |millis: u64| T0.plus(Span::from_millis(millis));
    let mut lines = Lines::new();
    for key in 0..10_000u64 {
        let retry = Some(Span::from_millis(10_000 - key));
        lines.enter(
            T0,
            at(99_999),
            vec![Stand { key, name, claim: Claim::plain(1, false).into_owned(), retry }],
        );
    }
    for millis in 1..=10_000 {
        assert_eq!(lines.next_due(), Some(at(millis)));
        assert_eq!(lines.due(at(millis)), Some(10_001 - millis));
        assert_eq!(lines.due(at(millis)), None);
    }
    // They have been tried, and none says when it may be tried again.
    assert_eq!(lines.next_due(), None);
    assert_eq!(lines.len(), 10_000);
}

#[test]
fn callers_time_out_in_the_order_of_their_deadlines() {
    let mut world = taken(1);
    let timeouts = [30, 10, 20, 10, 0, 40];
    let callers: Vec<u64> = timeouts
        .iter()
        .map(|timeout| world.arrive(&[lease_of(0)], true, Some(*timeout)).expect("it waits"))
        .collect();
    let mut out: BTreeMap<Time, Vec<u64>> = BTreeMap::new();
    for (caller, timeout) in callers.iter().zip(timeouts) {
        out.entry(T0.plus(Span::from_micros(timeout))).or_default().push(*caller);
    }
    for (deadline, callers) in out {
        assert_eq!(world.lines.next_deadline(), Some(deadline));
        world.timed_out.clear();
        world.now = Time::from_micros(deadline.as_micros() - 1);
        world.serve(usize::MAX);
        assert_eq!(world.timed_out, []);
        world.now = deadline;
        world.serve(usize::MAX);
        assert_eq!(world.timed_out, callers);
    }
    assert!(world.lines.is_empty());
}

#[test]
fn a_caller_whose_time_has_passed_is_returned_once_and_waits_until_it_leaves() {
    let mut world = taken(1);
    world.arrive(&[lease_of(0)], true, Some(5));
    let late = T0.plus(Span::from_micros(5));
    assert_eq!(world.lines.timed_out(late), Some(1));
    assert_eq!((world.lines.timed_out(late), world.lines.next_deadline()), (None, None));
    assert!(world.lines.waits(1));
    assert_eq!(world.lines.time_left(1, late), Some(Span::ZERO));
    assert!(world.lines.leave(1));
}

#[test]
fn a_line_that_is_due_tells_no_time() {
    use ratelimit_core::{Lines, Stand};
    let (key, name) = place(0);
    let mut lines = Lines::new();
    let retry = Some(Span::from_millis(60_000));
    lines.enter(
        T0,
        T0.plus(Span::CENTURY),
        vec![Stand { key, name, claim: Claim::plain(1, false).into_owned(), retry }],
    );
    assert_eq!(lines.ahead(&key, name, &Claim::plain(1, false), Comer::Passes, T0), retry);
    // A lease is released. The first caller will be tried at once.
    lines.mark(&key);
    assert_eq!(lines.next_due(), Some(Time::EPOCH));
    assert_eq!(lines.ahead(&key, name, &Claim::plain(1, false), Comer::Passes, T0), Some(Span::ZERO));
}
