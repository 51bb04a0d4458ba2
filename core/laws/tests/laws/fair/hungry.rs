//! Callers that ask again and again without waiting.

use std::collections::BTreeSet;

use ratelimit_laws::fair::{Call, Limit, Outcome, Rule, Tenant, Wish};

use super::dice::Dice;
use super::pair::Pair;
use super::shop::*;

const SECOND: u64 = 1_000_000;

/// The grants to the workers of three tenants on ten slots, with jobs of a second, in 200 seconds. A worker that is refused
/// asks again after half a polling interval to one and a half.
fn grants_to_workers(interval: u64, hunger: u64) -> [usize; 3] {
    let mut dice = Dice::new(1);
    let mut shop = Shop::new(10, Rule::Fair);
    shop.pair.model.hunger = hunger;
    // When each worker acts next, and its lease.
    let mut workers: BTreeSet<(u64, usize, Tenant, Option<u64>)> = BTreeSet::new();
    for worker in 0..106 {
        let tenant = if worker < 100 {
            1
        } else if worker < 105 {
            2
        } else {
            3
        };
        workers.insert((dice.below(interval), worker, tenant, None));
    }
    while let Some((time, worker, tenant, lease)) = workers.pop_first() {
        if time > 220 * SECOND {
            break;
        }
        shop.pass(time - shop.pair.model.steady);
        if time <= 20 * SECOND {
            shop.grants.clear();
        }
        if let Some(lease) = lease {
            shop.end_of(lease);
        }
        let lease = shop.ask(plain(tenant));
        let rest = if lease.is_some() { SECOND } else { interval / 2 + dice.below(interval) };
        workers.insert((time + rest, worker, tenant, lease));
    }
    [1, 2, 3].map(|tenant| shop.granted(tenant))
}

#[test]
fn a_hundred_workers_leave_five_and_one_their_slots() {
    let grants = [(50_000, SECOND), (500_000, SECOND), (100_000, 200_000)]
        .map(|(interval, hunger)| grants_to_workers(interval, hunger));
    assert_eq!(grants, [[1000, 800, 200]; 3]);
}

#[test]
fn without_hunger_who_has_most_workers_gets_everything() {
    // Each lease goes to the worker that asks next. That is mostly the one whose lease has ended.
    assert_eq!(grants_to_workers(100_000, 0), [1800, 200, 0]);
}

#[test]
fn a_free_slot_is_kept_for_a_hunger_after_the_last_call() {
    let mut shop = Shop::new(2, Rule::Fair);
    (0..2).for_each(|_| assert!(shop.ask(plain(1)).is_some()));
    assert_eq!(shop.ask(plain(2)), None);
    shop.pass(SECOND / 2);
    assert_eq!(shop.ask(plain(2)), None);
    shop.end(0);
    // One slot is free, and kept for the tenant 2.
    assert_eq!(shop.ask(plain(1)), None);
    shop.pass(SECOND - 1);
    assert_eq!(shop.ask(plain(1)), None);
    shop.pass(1);
    assert!(shop.ask(plain(1)).is_some());
}

#[test]
fn a_slot_beside_the_kept_room_is_free() {
    let mut shop = Shop::new(3, Rule::Fair);
    (0..3).for_each(|_| assert!(shop.ask(plain(1)).is_some()));
    assert_eq!(shop.ask(plain(2)), None);
    shop.end(0);
    shop.end(0);
    assert!(shop.ask(plain(1)).is_some());
    assert_eq!(shop.ask(plain(1)), None);
    assert!(shop.ask(plain(2)).is_some());
}

#[test]
fn a_waiting_caller_leaves_the_same_room() {
    let mut shop = Shop::new(1, Rule::Fair);
    shop.come(plain(1));
    assert_eq!(shop.ask(plain(2)), None);
    shop.come(Customer { cost: 1, weight: 1, tenant: 1 });
    shop.end(0);
    assert_eq!(shop.grants, [1]);
    // The tenant 2 was hungry before.
    assert!(shop.ask(plain(2)).is_some());
    assert_eq!(shop.ask(plain(3)), None);
}

#[test]
fn two_hungry_tenants_in_equal_places_do_not_refuse_each_other() {
    for first in [2, 3] {
        let mut shop = Shop::new(1, Rule::Fair);
        shop.come(plain(1));
        assert_eq!([shop.ask(plain(2)), shop.ask(plain(3))], [None, None]);
        shop.end(0);
        let second = 5 - first;
        let grants = [first, second].map(|tenant| shop.ask(plain(tenant)).is_some());
        assert_eq!(grants, [first == 2, second == 2]);
    }
}

#[test]
fn a_tenant_that_asks_for_everything_gets_it_beside_new_tenants_that_ask_for_little() {
    let mut shop = Shop::new(10, Rule::Fair);
    let large = Customer { tenant: 1, weight: 1, cost: 10 };
    shop.ask(plain(2));
    assert_eq!(shop.ask(large), None);
    let mut passed = 0;
    for tenant in 3.. {
        // A new tenant comes, and the oldest lease ends.
        passed += usize::from(shop.ask(plain(tenant)).is_some());
        if !shop.held.is_empty() {
            shop.end(0);
        }
        shop.pass(SECOND / 10);
        if shop.ask(large).is_some() {
            break;
        }
        assert!(passed < 12);
    }
    // Each of the others raised the virtual time by 1.
    assert_eq!(passed, 10);
}

/// A wish for one of a pool of `most`, or of a quota.
fn wish(limit: usize, tenant: Tenant, cost: u64, most: u64) -> Wish {
    Wish { limit, tenant, weight: None, cost, most, critical: false }
}

#[test]
fn only_a_refusal_by_the_fair_limit_alone_makes_hungry_and_another_ends_it() {
    let mut pair = Pair::new(vec![Limit::leases(), Limit::leases()], Rule::Fair);
    let ask = |pair: &mut Pair, wishes: &[Wish]| {
        let id = 1 + pair.model.limits.iter().map(|limit| limit.used(pair.model.wall)).sum::<u64>();
        pair.arrive(&Call { wishes: wishes.to_vec(), id, ttl: SECOND }, false, 0)
    };
    assert_eq!(ask(&mut pair, &[wish(0, 1, 1, 1)]), Outcome::Admitted);
    assert_eq!(ask(&mut pair, &[wish(0, 2, 1, 1), wish(1, 0, 1, 1)]), Outcome::Refused(vec![0]));
    assert_eq!(pair.model.limits[0].hungry.keys().collect::<Vec<_>>(), [&2]);
    // What never fits does not count, in either way.
    assert_eq!(ask(&mut pair, &[wish(0, 3, 2, 1)]), Outcome::Refused(vec![0]));
    assert_eq!(ask(&mut pair, &[wish(0, 2, 2, 1)]), Outcome::Refused(vec![0]));
    assert_eq!(pair.model.limits[0].hungry.keys().collect::<Vec<_>>(), [&2]);
    assert_eq!(ask(&mut pair, &[wish(1, 0, 1, 1)]), Outcome::Admitted);
    assert_eq!(ask(&mut pair, &[wish(0, 2, 1, 1), wish(1, 0, 1, 1)]), Outcome::Refused(vec![0, 1]));
    assert!(pair.model.limits[0].hungry.is_empty());
}

#[test]
fn calls_without_a_tenant_on_a_key_without_tenants_make_nobody_hungry() {
    let mut shop = Shop::new(1, Rule::Fair);
    let nameless = Customer { tenant: 0, weight: 1, cost: 1 };
    assert!(shop.ask(nameless).is_some());
    assert_eq!(shop.ask(nameless), None);
    assert!(shop.pair.model.limits[0].hungry.is_empty());
    // A tenant is hungry now. So the empty name is one, too.
    assert_eq!(shop.ask(plain(1)), None);
    assert_eq!(shop.ask(nameless), None);
    assert_eq!(shop.pair.model.limits[0].hungry.keys().collect::<Vec<_>>(), [&0, &1]);
}

/// The grants of one slot in 1000 seconds to thirty tenants of one worker. Each asks every one to three seconds, and works for a
/// second.
fn grants_to_slow_workers(rule: Rule) -> usize {
    let mut dice = Dice::new(1);
    let mut shop = Shop::new(1, rule);
    let mut workers: BTreeSet<(u64, Tenant, Option<u64>)> =
        (1..=30).map(|tenant| (dice.below(2 * SECOND), tenant, None)).collect();
    while let Some((time, tenant, lease)) = workers.pop_first().filter(|(time, ..)| *time < 1000 * SECOND) {
        shop.pass(time - shop.pair.model.steady);
        if let Some(lease) = lease {
            shop.end_of(lease);
        }
        let lease = shop.ask(plain(tenant));
        let rest = if lease.is_some() { SECOND } else { SECOND + dice.below(2 * SECOND) };
        workers.insert((time + rest, tenant, lease));
    }
    shop.grants.len()
}

#[test]
fn tenants_that_ask_less_often_than_once_a_hunger_do_not_keep_a_free_slot_for_one_another() {
    let grants = grants_to_slow_workers(Rule::Fair);
    assert!(grants > 450, "{grants}");
    // If a refusal for the turn made hungry, too, each tenant would come behind another one that is away.
    assert_eq!(grants_to_slow_workers(Rule::HungryForTurn), 1);
}
