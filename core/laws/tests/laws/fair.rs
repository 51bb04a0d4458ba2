//! Laws of fair lines, on whole nodes in memory:
//!
//! - Each tenant that waits holds its fair share, or less than one cost below it. Progressive filling gives the shares.
//! - No waiting tenant is below another one after its next lease.
//! - A tenant that waits and holds nothing becomes the first while others' leases end. Meanwhile no other tenant gets more
//!   grants than its weight and cost allow, however many tenants come.
//! - In the long run tenants get slots, grants and tokens as their weights say: however long their jobs take, however many
//!   callers they have, whether these wait or poll, and whatever they estimate and settle.
//!
//! That lines serve in the order of a model is shown by the world and by the search of all orders.

mod settled;
mod shop;

use std::collections::{BTreeMap, BTreeSet};

use num_rational::BigRational;
use proptest::prelude::*;
use ratelimit_core::Span;
use ratelimit_dice::Dice;
use ratelimit_laws::{Want, fill, ratio};

use shop::*;

fn shares(capacity: u64, tenants: &[(u64, u64)]) -> Vec<BigRational> {
    let wants: Vec<Want> =
        tenants.iter().map(|(want, weight)| Want { want: *want, weight: *weight }).collect();
    fill(capacity, &wants)
}

#[test]
fn progressive_filling_gives_max_min_fair_shares() {
    for (capacity, tenants, expected) in [
        (120, &[(1000, 1), (60, 1), (10, 1)][..], "55 55 10"),
        (120, &[(1000, 6), (1000, 4), (1000, 2)], "60 40 20"),
        (10, &[(100, 1), (5, 1), (1, 1)], "9/2 9/2 1"),
        (10, &[(2, 1), (3, 5), (0, 7)], "2 3 0"),
        (75, &[(75, 51), (24, 24)], "51 24"),
        (0, &[(2, 1)], "0"),
        (10, &[], ""),
    ] {
        let shares: Vec<String> = shares(capacity, tenants).iter().map(BigRational::to_string).collect();
        assert_eq!(shares.join(" "), expected);
    }
}

/// Leases are whole, so they differ from the shares of progressive filling. With equal weights each tenant is less than one
/// cost above its share. With unequal ones a heavy tenant may hold more: of 75 slots, a weight of 51 beside fifty tenants of
/// weight 1 gets 50. Its share is 37.9, but each of the others reaches its level only with a whole slot.
fn is_filled(capacity: u64, tenants: &[(u64, u64, u64)]) {
    let mut shop = Shop::closed(capacity);
    for (tenant, (callers, weight, cost)) in (1..).zip(tenants) {
        (0..*callers).for_each(|_| shop.come(Customer { tenant, weight: *weight, cost: *cost }));
    }
    shop.open();
    let wants: Vec<(u64, u64)> =
        tenants.iter().map(|(callers, weight, cost)| (callers * cost, *weight)).collect();
    let shares = shares(capacity, &wants);
    let held: Vec<u64> = (1..).zip(tenants).map(|(tenant, _)| shop.holds(tenant)).collect();
    let most = tenants.iter().map(|(.., cost)| *cost).max().unwrap_or(0);
    let are_equal = tenants.iter().all(|(_, weight, _)| *weight == tenants[0].1);
    for (index, (_, weight, cost)) in tenants.iter().enumerate() {
        let about = format!("{held:?} of {capacity} for {tenants:?}, and the shares are {shares:?}");
        assert!(!are_equal || ratio(held[index]) < &shares[index] + ratio(most), "{about}");
        if held[index] == wants[index].0 {
            assert!(ratio(held[index]) >= shares[index], "{about}");
            continue;
        }
        let next = held[index] + cost;
        assert!(ratio(next) > shares[index], "{about}");
        for (other, (_, of_other, _)) in tenants.iter().enumerate() {
            assert!(held[other] * weight <= next * of_other, "{about}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No share can grow, except at the expense of one that is not greater by its weight.
    #[test]
    fn no_share_of_progressive_filling_can_grow(
        capacity in 0..200u64,
        tenants in prop::collection::vec((0..100u64, 1..12u64), 1..8),
    ) {
        let shares = shares(capacity, &tenants);
        let all: BigRational = shares.iter().sum();
        prop_assert!(all <= ratio(capacity));
        let level = |index: usize| &shares[index] / ratio(tenants[index].1);
        for (index, (want, _)) in tenants.iter().enumerate() {
            prop_assert!(shares[index] <= ratio(*want));
            if shares[index] < ratio(*want) {
                prop_assert_eq!(&all, &ratio(capacity));
                prop_assert!((0..tenants.len()).all(|other| level(other) <= level(index)));
            }
        }
    }

    #[test]
    fn who_waits_is_less_than_one_cost_below_its_share_and_envies_no_one(
        capacity in 1..80u64,
        tenants in prop::collection::vec((1..30u64, 1..12u64, 1..5u64), 1..6),
        equal in any::<bool>(),
    ) {
        let of = |(callers, weight, cost): (u64, u64, u64)| (callers, if equal { 3 } else { weight }, cost.min(capacity));
        is_filled(capacity, &tenants.into_iter().map(of).collect::<Vec<_>>());
    }
}

#[test]
fn capacity_goes_to_tenants_and_not_to_callers_also_from_one_that_held_everything() {
    is_filled(120, &[(1000, 1, 1), (60, 1, 1), (10, 1, 1)]);
    let mut shop = Shop::new(120);
    for (tenant, callers) in [(1, 300), (2, 60), (3, 10)] {
        (0..callers).for_each(|_| shop.come(plain(tenant)));
    }
    assert_eq!(shop.holds(1), 120);
    (0..2000).for_each(|_| shop.turn_over());
    assert_eq!([1, 2, 3].map(|tenant| shop.holds(tenant)), [55, 55, 10]);
}

/// Tenants share ten slots. Each has as many callers as fit, and one more, which come again and again. Simpler rules starve the
/// first: the least held by weight, or the earliest tag. Returns its part of the grants, in thousandths.
fn grants_of_first(tenants: &[(u64, u64)]) -> usize {
    let mut shop = Shop::new(10);
    let customers =
        (1..).zip(tenants).map(|(tenant, (weight, cost))| Customer { tenant, weight: *weight, cost: *cost });
    // The first one comes last, when everything is held.
    for customer in customers.collect::<Vec<_>>().into_iter().rev() {
        (0..=10 / customer.cost).for_each(|_| shop.come(customer));
    }
    shop.grants.clear();
    while shop.grants.len() < 3000 {
        shop.turn_over();
    }
    shop.granted(1) * 1000 / shop.grants.len()
}

#[test]
fn no_one_starves_by_a_large_cost_or_a_small_weight() {
    let light = [[(1, 1)].as_slice(), &[(2, 1); 11]].concat();
    let large = [[(1, 2)].as_slice(), &[(1, 1); 10]].concat();
    let tenants = [&[(1, 10), (1, 1), (1, 1)][..], &light, &large, &[(1, 1), (100, 1)]];
    // One grant in 21, 23, 21 and 101: what its weight allows by its cost.
    assert_eq!(tenants.map(grants_of_first), [47, 43, 47, 9]);
}

#[test]
fn jobs_that_last_ten_times_as_long_get_as_many_slots() {
    let mut shop = Shop::new(10);
    (0..40).for_each(|caller| shop.come(plain(1 + caller / 20)));
    let (mut held, mut ends) = ([0; 2], BTreeMap::new());
    for now in 0..2000u64 {
        for (id, customer) in &shop.held {
            ends.entry(*id).or_insert(now + if customer.tenant == 1 { 100 } else { 10 });
        }
        while let Some(nth) = shop.held.iter().position(|(id, _)| ends.get(id).is_some_and(|end| *end <= now))
        {
            let customer = shop.end(nth);
            shop.come(customer);
        }
        if now >= 1000 {
            held = [held[0] + shop.holds(1), held[1] + shop.holds(2)];
        }
    }
    assert_eq!(held.map(|held| held / 100), [50, 50]);
}

/// A tenant waits, or polls, and holds nothing. Others come, wait, poll, and end their leases. Checks how many grants each of
/// them gets meanwhile. Returns their number.
fn others_before(dice: &mut Dice, poor: Customer, capacity: u64, waits: bool, newcomers: u64) -> usize {
    let mut shop = Shop::new(capacity);
    // Each tenant has its own weight and cost.
    let of = |tenant: u64| {
        let weight = if tenant.is_multiple_of(3) { 1 + tenant % 7 } else { 1 };
        Customer { tenant, weight, cost: 1 + tenant * 7 % capacity.min(4) }
    };
    while shop.waits() < 12 {
        shop.come(of(2 + dice.below(8)));
    }
    let poll = shop.id();
    if waits {
        shop.come(poor);
    } else {
        shop.ask(poll, poor);
    }
    if shop.granted(1) > 0 {
        return 0;
    }
    shop.grants.clear();
    let mut tenants = 10;
    while shop.granted(1) == 0 {
        assert!(shop.grants.len() < 20_000, "{poor:?} starves");
        if dice.below(10) < newcomers {
            tenants += 1;
            let id = shop.id();
            if dice.one_in(2) { shop.come(of(tenants)) } else { _ = shop.ask(id, of(tenants)) }
        }
        if shop.held.is_empty() || dice.one_in(3) {
            shop.come(of(2 + dice.below(8)));
        } else {
            shop.end(dice.index(shop.held.len()));
        }
        shop.pass(Span::from_millis(100));
        if !waits {
            shop.ask(poll, poor);
        }
    }
    for customer in (2..=tenants).map(of) {
        let most = (poor.cost * customer.weight).div_ceil(customer.cost * poor.weight) + 2;
        let granted = shop.granted(customer.tenant) as u64;
        assert!(granted <= most, "{granted} of at most {most} to {customer:?} before {poor:?}");
    }
    shop.grants.len() - 1
}

#[test]
fn each_other_tenant_gets_only_what_its_weight_allows_before_one_that_holds_nothing() {
    let (mut dice, mut grants) = (Dice::new(2), 0);
    for round in 0..200 {
        let capacity = 1 + dice.below(10);
        let poor = Customer { tenant: 1, weight: 1 + dice.below(3), cost: 1 + dice.below(capacity) };
        grants += others_before(&mut dice, poor, capacity, round % 2 == 0, round % 4);
    }
    assert!(grants > 1000, "{grants}");
}

/// Workers of three tenants poll for ten slots in about this interval of milliseconds, and work for a second on each. Returns
/// the average slots of each tenant, in tenths.
fn slots(workers: [usize; 3], interval: u64, hunger: u64, same_ids: bool) -> [usize; 3] {
    const BEFORE: u64 = 20_000;
    const COUNTED: u64 = 120_000;
    let (mut dice, mut shop, mut clock) = (Dice::new(1), Shop::new(10), 0);
    assert!(ratelimit_laws::set(&shop.memory, "hunger", hunger));
    // When each worker acts next, the id by which it asks, its tenant, and whether it holds a slot.
    let mut acts: BTreeSet<(u64, u64, u64, bool)> = BTreeSet::new();
    for (tenant, count) in (1..).zip(workers) {
        acts.extend((0..count).map(|_| (dice.below(2 * interval), shop.id(), tenant, false)));
    }
    while let Some((time, mut id, tenant, works)) = acts.pop_first() {
        if time > BEFORE + COUNTED {
            break;
        }
        if time > clock {
            shop.pass(Span::from_millis(time - clock));
            clock = time;
        }
        if time <= BEFORE {
            shop.grants.clear();
        }
        if works {
            shop.end_of(id);
        }
        if works || !same_ids {
            id = shop.id();
        }
        let admitted = shop.ask(id, plain(tenant));
        let rest = if admitted { 1000 } else { interval / 2 + dice.below(interval) };
        acts.insert((time + rest, id, tenant, admitted));
    }
    [1, 2, 3].map(|tenant| (shop.granted(tenant) * 20 / 120).div_ceil(2))
}

#[test]
fn a_hundred_workers_that_poll_leave_five_and_one_their_slots() {
    for (interval, hunger, same_ids) in
        [(50, 1000, true), (500, 1000, true), (500, 1000, false), (100, 200, false)]
    {
        let slots = slots([100, 5, 1], interval, hunger, same_ids);
        assert_eq!(slots, [50, 40, 10], "each {interval} ms, the same ids: {same_ids}");
    }
    // Without hunger each lease goes to the worker that asks next, mostly the one whose lease has ended.
    assert!(slots([100, 5, 1], 100, 0, true)[0] >= 90);
}
