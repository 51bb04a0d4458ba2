//! Callers that ask again and again without waiting.

use std::collections::BTreeSet;

use ratelimit_laws::fair::{Call, Limit, Outcome, Rule, Tenant, Wish};

use super::dice::Dice;
use super::pair::Pair;
use super::shop::*;

const SECOND: u64 = 1_000_000;

/// By which id a worker asks again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    Same,
    Fresh,
}

/// Workers that poll for slots, and work for a second on each.
struct Crowd {
    slots: u64,
    /// How many workers each tenant has.
    workers: Vec<usize>,
    /// A worker that was refused asks again after a time from this one, in microseconds, to so much more.
    interval: (u64, u64),
    hunger: u64,
    ids: Ids,
    rule: Rule,
    /// Whether all ask for the first time at once, and those whose jobs end at once release before any of them asks again.
    together: bool,
}

/// Two minutes, after 20 seconds that do not count.
const BEFORE: u64 = 20;
const COUNTED: u64 = 120;

impl Crowd {
    /// A hundred workers, five and one on ten slots.
    fn of_three(interval: u64, hunger: u64, ids: Ids) -> Crowd {
        let workers = vec![100, 5, 1];
        Crowd {
            slots: 10,
            workers,
            interval: (interval / 2, interval),
            hunger,
            ids,
            rule: Rule::Fair,
            together: false,
        }
    }

    /// Each tenant has one worker, and is hungry for a second.
    fn of_one_each(slots: u64, tenants: usize, interval: (u64, u64), rule: Rule) -> Crowd {
        Crowd {
            slots,
            workers: vec![1; tenants],
            interval,
            hunger: SECOND,
            ids: Ids::Same,
            rule,
            together: false,
        }
    }

    /// The grants to each tenant in the time that counts.
    fn work(&self) -> Vec<usize> {
        let mut dice = Dice::new(1);
        let mut shop = Shop::new(self.slots, self.rule);
        shop.pair.model.hunger = self.hunger;
        // When each worker acts next, the id by which it asks, and whether it holds a slot.
        let mut workers: BTreeSet<(u64, u64, Tenant, bool)> = BTreeSet::new();
        let (least, more) = self.interval;
        let mut ids = 1 << 32;
        for (tenant, count) in (1..).zip(&self.workers) {
            for _ in 0..*count {
                ids += 1;
                let first = if self.together { 0 } else { dice.below(least + more) };
                workers.insert((first, ids, tenant, false));
            }
        }
        while let Some((time, mut id, tenant, works)) = workers.pop_first() {
            if time > (BEFORE + COUNTED) * SECOND {
                break;
            }
            shop.pass(time - shop.pair.model.steady);
            if time <= BEFORE * SECOND {
                shop.grants.clear();
            }
            if works {
                shop.end_of(id);
            }
            if works || self.ids == Ids::Fresh {
                ids += 1;
                id = ids;
            }
            if works && self.together {
                workers.insert((time + 1, id, tenant, false));
                continue;
            }
            let admitted = shop.ask_again(plain(tenant), id);
            let rest = if admitted { SECOND } else { least + dice.below(more) };
            workers.insert((time + rest, id, tenant, admitted));
        }
        (1..).zip(&self.workers).map(|(tenant, _)| shop.granted(tenant)).collect()
    }

    /// The share of the slots that is used, in thousandths.
    fn used(&self) -> usize {
        self.work().iter().sum::<usize>() * 1000 / usize::try_from(COUNTED * self.slots).expect("a few")
    }
}

/// The average slots of each tenant, in tenths.
fn slots(grants: &[usize]) -> Vec<usize> {
    let tenths = |grants: &usize| (grants * 20 / usize::try_from(COUNTED).expect("a few")).div_ceil(2);
    grants.iter().map(tenths).collect()
}

#[test]
fn a_hundred_workers_leave_five_and_one_their_slots() {
    for (interval, hunger) in [(50_000, SECOND), (500_000, SECOND), (100_000, 200_000)] {
        for ids in [Ids::Same, Ids::Fresh] {
            let shares = slots(&Crowd::of_three(interval, hunger, ids).work());
            println!("100 : 5 : 1 pollers, each {interval} us, {ids:?} ids: {shares:?} tenths of slots");
            assert_eq!(shares, [50, 40, 10]);
        }
    }
}

#[test]
fn leases_that_end_in_the_same_instant_go_to_who_asks_first_but_for_one_of_each_tenant() {
    for ids in [Ids::Same, Ids::Fresh] {
        let polls = Crowd::of_three(100_000, SECOND, ids);
        let together = Crowd { together: true, interval: (100_000, 1), ..polls };
        let shares = slots(&together.work());
        println!("100 : 5 : 1 pollers whose jobs begin together, {ids:?} ids: {shares:?} tenths of slots");
        assert!(shares[0] >= 60 && shares[1] >= 20 && shares[2] >= 5, "{shares:?}");
    }
}

#[test]
fn without_hunger_who_has_most_workers_gets_everything() {
    // Each lease goes to the worker that asks next. That is mostly the one whose lease has ended.
    let shares = slots(&Crowd::of_three(100_000, 0, Ids::Same).work());
    assert_eq!(shares, [90, 0, 10]);
}

/// Slots, tenants, and how often they poll.
const POLLS: [(u64, usize, u64); 3] = [(10, 50, 900_000), (10, 50, 100_000), (20, 60, 900_000)];

#[test]
fn slots_are_used_as_if_room_were_kept_for_one_tenant_only() {
    for (slots, tenants, interval) in POLLS {
        let polls = (interval * 9 / 10, interval / 5);
        let used = |rule| Crowd::of_one_each(slots, tenants, polls, rule).used();
        let [each, all, fair] = [Rule::RoomForEach, Rule::RoomForAll, Rule::Fair].map(used);
        println!("{tenants} tenants that poll each {interval} us for {slots} slots, thousandths used:");
        println!("room for each alone {each}, for all together {all}, for those that would hold less {fair}");
        assert!(fair + 2 >= each && all < fair);
    }
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
        pair.arrive(&Call { wishes: wishes.to_vec(), id, ttl: SECOND, estimated: false }, false, 0)
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

#[test]
fn tenants_that_ask_less_often_than_once_a_hunger_do_not_keep_a_free_slot_for_one_another() {
    let used = |rule| Crowd::of_one_each(1, 30, (SECOND, 2 * SECOND), rule).used();
    let [fair, for_turn] = [Rule::Fair, Rule::HungryForTurn].map(used);
    println!(
        "30 pollers, each 1 to 3 s, for a slot: {fair} thousandths used, {for_turn} if hungry for the turn"
    );
    assert!(fair > 450, "{fair}");
    // If a refusal for the turn made hungry, too, each tenant would come behind another one that is away.
    assert!(for_turn < 20, "{for_turn}");
}
