//! Tenants that simpler rules starve, or keep below their share.

use ratelimit_laws::fair::Rule;

use super::shop::*;

/// Tenants, the first of which would starve, share a capacity. Each has as many callers as fit, and one more. They come
/// again and again. Returns the share of grants that the first gets, in thousandths.
fn grants_of_first(rule: Rule, capacity: u64, tenants: &[(u64, u64)]) -> usize {
    let mut shop = Shop::new(capacity, rule);
    let customers =
        (1..).zip(tenants).map(|(tenant, (weight, cost))| Customer { tenant, weight: *weight, cost: *cost });
    // The first one comes last, when everything is held.
    for customer in customers.collect::<Vec<_>>().into_iter().rev() {
        (0..=capacity / customer.cost).for_each(|_| shop.come(customer));
    }
    shop.grants.clear();
    while shop.grants.len() < 3000 {
        shop.turn_over(1);
    }
    shop.granted(1) * 1000 / shop.grants.len()
}

/// Weights and costs.
const STARVED: [(u64, &[(u64, u64)]); 4] = [
    (10, &[(1, 10), (1, 1), (1, 1)]),
    (10, &[(1, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1)]),
    (10, &[(1, 2), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]),
    (10, &[(1, 1), (100, 1)]),
];

#[test]
fn least_held_by_weight_starves_large_costs_and_small_weights() {
    let grants = STARVED.map(|(capacity, tenants)| grants_of_first(Rule::LeastHeld, capacity, tenants));
    assert_eq!(grants, [0, 0, 0, 0]);
}

#[test]
fn nobody_starves_in_a_fair_line() {
    let grants = STARVED.map(|(capacity, tenants)| grants_of_first(Rule::Fair, capacity, tenants));
    // One grant in 21, 23, 21 and 101: what its weight allows by its cost.
    assert_eq!(grants, [47, 43, 47, 9]);
}

/// Two tenants share ten slots. The jobs of the first last ten times as long. Returns what each holds on average, in tenths.
fn held_with_long_jobs(rule: Rule) -> [u64; 2] {
    let mut shop = Shop::new(10, rule);
    for tenant in [1, 2] {
        (0..20).for_each(|_| shop.come(plain(tenant)));
    }
    let mut held = [0; 2];
    let mut jobs: Vec<(u64, u64)> = Vec::new();
    for now in 0..2000u64 {
        for (id, customer) in &shop.held {
            if !jobs.iter().any(|(other, _)| other == id) {
                jobs.push((*id, now + if customer.tenant == 1 { 100 } else { 10 }));
            }
        }
        let ends = |id: u64| jobs.iter().any(|(other, end)| *other == id && *end <= now);
        while let Some(nth) = shop.held.iter().position(|(id, _)| ends(*id)) {
            let customer = shop.end(nth);
            shop.come(customer);
        }
        if now >= 1000 {
            held[0] += shop.holds(1);
            held[1] += shop.holds(2);
        }
    }
    held.map(|held| held / 100)
}

#[test]
fn tags_alone_give_the_slots_to_long_jobs() {
    assert_eq!(held_with_long_jobs(Rule::Fair), [50, 50]);
    assert_eq!(held_with_long_jobs(Rule::LeastTag), [90, 9]);
}

#[test]
fn tags_alone_do_not_see_who_holds_everything() {
    let mut shop = Shop::new(15, Rule::LeastTag);
    (0..115).for_each(|_| shop.come(plain(1)));
    shop.come(plain(2));
    shop.grants.clear();
    shop.end(0);
    assert_eq!(shop.grants, [1]);
}
